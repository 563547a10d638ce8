/* Which packets of one sender have come already: whoever has seen one on its way can send it again, with its source
 * forged, and without any key. The counter of the nonce numbers the packets of a life, to whomever they go, so those
 * that reach one receiver have gaps: it keeps the newest ones themselves and not a row of bits (RFC 4303, 3.4.3). */
#ifndef GOSSIP_REPLAY_H
#define GOSSIP_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define REPLAY_WINDOW 32u

struct replay {
    uint64_t epoch;                 /* of the sender: each life has a prefix of its own; */
    uint64_t prefix;                /* 0: only the next is known, as the record has slept */
    uint8_t life;                   /* of the prefix */
    uint64_t again_ms;              /* when another life in that epoch is believed again */
    uint32_t newest[REPLAY_WINDOW]; /* counters, each with 1 added; 0: none. In no order */
};

/* A packet's place among those of its sender. */
struct replay_place {
    uint64_t epoch, prefix;
    uint32_t counter;
};

enum replay_result {
    REPLAY_NEW,
    REPLAY_AGAIN, /* it came before, or is older than all that are kept: it may have */
    REPLAY_OTHER  /* of an earlier life: who knows whether it came before */
};

/* Notes it when it is new. Who has lost its disk may have two lives in one epoch, until it learns of the first: they
 * have no order, so the other one is taken for the newer, once in 5 s. */
enum replay_result replay_take(struct replay *replay, const struct replay_place *place, uint64_t now_ms);
/* The highest counter, with 1 added; 0: there is none. With 8 bits of the prefix all that a sleeping member keeps: of
 * what was up to there, all counts as having come. */
uint32_t replay_newest(const struct replay *replay);
void replay_wake(struct replay *replay, uint64_t epoch, uint8_t life, uint32_t newest);

#endif
