/* What a broker may do to a federation that has the gossip key and a valid token: it stays a member by a core that is
 * as honest as any, and says more than that core does, by datagram and by link. For a daemon (hostile.h) and for the
 * simulator of whole brokers (tests/sim/hostile.h).
 */
#ifndef TESTS_HOSTILE_ATTACKS_H
#define TESTS_HOSTILE_ATTACKS_H

#include "gossip/verbs.h"

#define HOSTILE_ROUND_MS 20u /* between two rounds of an attack */
#define HOSTILE_HEARD_MAX 256u

struct hostile {
    struct gossip *gossip; /* the core; attacks look into it */
    /* Bytes as they are, past everything that an honest broker would mind. */
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size);
    void *context;
    struct gossip_datagram heard[HOSTILE_HEARD_MAX]; /* the newest, to be sent again; .to is where it came from */
    size_t heard_count;
};

/* One round of an attack. Rounds count from 0. What goes by link is in the core afterwards, as any packet of it. */
typedef void hostile_attack(struct hostile *hostile, uint64_t round);
/* NULL: no such word. */
hostile_attack *hostile_attack_named(const char *word);
const char *hostile_word_at(size_t index); /* NULL past the end */

/* A datagram that the core is given. */
void hostile_hear(struct hostile *hostile, const struct gossip_address *from, const uint8_t *bytes, size_t size);

#endif
