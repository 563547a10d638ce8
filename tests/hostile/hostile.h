/* hostile_hobnobd: a hobnobd that does harm on order. It is the real daemon with its own key and valid token, a member
 * like any other; its gossip is wrapped at link time (CMakeLists.txt), so that between its own packets it says what the
 * orders want, by datagram and by link.
 *
 * HOSTILE_ORDERS names a file to which orders are appended, one a line: a word of attacks.c and how many rounds of it,
 * one round each ROUND_MS. When all rounds are done a line "hostile: WORD done" goes to the log. Orders run together.
 */
#ifndef TESTS_HOSTILE_HOSTILE_H
#define TESTS_HOSTILE_HOSTILE_H

#include "gossip/verbs.h"

#define ROUND_MS 20u

/* One round of an attack. Rounds count from 0. */
typedef void hostile_attack(struct gossip *gossip, uint64_t round);
/* NULL: no such word. */
hostile_attack *hostile_attack_named(const char *word);

/* Bytes as they are, past everything that an honest broker would mind. They go out with the next pump. */
void hostile_send(const struct gossip_address *to, const uint8_t *bytes, size_t size);
/* A datagram that was received, of the newest; NULL past the end. */
const struct gossip_datagram *hostile_heard(size_t index);

#endif
