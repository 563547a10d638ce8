/* What is too much for datagrams goes over links, one helper at a time, and not from whoever is busy: a checkpoint of
 * many chunks, a table in which much differs. */
#ifndef GOSSIP_CATCHUP_H
#define GOSSIP_CATCHUP_H

#include "gossip/gossip.h"

#define CATCHUP_SERVED_MAX 16u   /* who is served at a time, whatever limits.transfers_max says */
#define CATCHUP_BUSY_MAX 16u     /* helpers that put us off lately */
#define CATCHUP_SMALL_CHUNKS 16u /* a checkpoint of so many chunks goes by datagrams too */

struct catchup {
    /* Whom we serve. */
    struct {
        struct member_id id;
        uint64_t until_ms; /* 0: nobody */
    } served[CATCHUP_SERVED_MAX];
    uint64_t tokens, tokens_ms; /* bytes that may be sent now, as of then */
    bool told;                  /* the packet in hand was put off already */
    /* Whom we ask. */
    struct {
        struct member_id id;
        uint64_t until_ms;
    } busy[CATCHUP_BUSY_MAX];
    struct member_id source; /* who is asked for its whole table, */
    bool source_asked;       /* or will be once there is a link */
    uint64_t source_until_ms;
};

#endif
