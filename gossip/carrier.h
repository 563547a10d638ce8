/* By which way a member is reached: datagrams where they pass, the link to it where they do not.
 *
 * Inside the core a link is an address of a family that exists nowhere else, so that what writes packets and answers
 * them need not know the difference. */
#ifndef GOSSIP_CARRIER_H
#define GOSSIP_CARRIER_H

#include "gossip/gossip.h"

#define ADDRESS_LINK 255u      /* family; ip is the id of the member at the far end */
#define CARRIER_WANTS_MAX 64u  /* links wanted at a time, whatever limits.links_max says */
#define CARRIER_DIALS_MAX 64u  /* addresses of nobody known that are dialled for a link */
#define CARRIER_NEED_MS 10000u /* how long a link is wanted for what needs it once */

/* Of one member. */
struct way {
    bool link;        /* a link to it is up */
    bool by_link;     /* datagrams to it are not answered, though it is there */
    bool other_key;   /* what comes from its address was sealed with a key that is not ours: stray.c */
    bool silent;      /* the ping of this round that went by datagram was not answered in time */
    uint8_t silences; /* rounds in a row of which that is true */
    uint8_t misses;   /* those of them that were answered by another way: then it was not the member that was silent */
    uint8_t passes;   /* trials in a row that were answered */
    uint16_t doubt;   /* that datagrams pass, after that silence (doubt.h): where much is lost, little */
    uint64_t asked;   /* the number of the last ping that went by datagram */
    uint64_t try_ms;  /* datagrams are tried again then */
};

struct carrier_want {
    struct member_id id;
    uint64_t until_ms; /* 0: the slot is free */
    uint64_t tell_ms;  /* next time the caller is told */
    bool due;          /* to be told now */
};

struct carrier_dial {
    struct gossip_address address;
    uint64_t asked_ms, next_ms;
    uint64_t stray_ms; /* before that, what does not open from there hurries nobody */
    uint32_t wait_ms;  /* 0: the slot is free */
    bool due;
};

struct carrier {
    uint64_t next_ms;                 /* carrier_tick(); NEVER without any link or want */
    uint64_t link_since_ms;           /* of the first thing by link after the last by datagram */
    uint64_t datagram_ms, link_ms;    /* when something of another was heard by either way, or NEVER */
    size_t link_count, by_link_count; /* members with way.link, with way.by_link */
    uint64_t stray_until_ms;          /* stray.c may look at so many more until then */
    uint32_t stray_looks;
    bool try_all;        /* datagrams, to all that are reached by link */
    uint32_t due_count;  /* wants and dials to be told */
    uint32_t dial_count; /* the first of the dials, that were ever used */
    struct queued_datagram *packets, *packets_last;
    size_t packet_count;
    struct carrier_dial dials[CARRIER_DIALS_MAX];
    struct carrier_want wants[CARRIER_WANTS_MAX];
};

#endif
