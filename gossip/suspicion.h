/* How long a member stays suspected: Lifeguard section IV.B. Three times the minimum with no independent accuser,
 * shrinking with each to the minimum; when nobody else could confirm (two members) it is the minimum at once. */
#ifndef GOSSIP_SUSPICION_H
#define GOSSIP_SUSPICION_H

#include "gossip/gossip.h"

#define SUSPICION_ACCUSERS_MAX 4u /* the first and three independent ones */
#define SUSPICION_SPREAD 3u       /* longest over shortest */

struct suspicion {
    bool running;
    uint64_t started_ms;
    struct member_id accusers[SUSPICION_ACCUSERS_MAX];
    uint32_t accuser_count;
};

void suspicion_start(struct suspicion *suspicion, uint64_t now_ms, const struct member_id *accuser);
/* Would this accuser count? */
bool suspicion_lacks(const struct suspicion *suspicion, const struct member_id *accuser);
/* True if this accuser was new and counts. */
bool suspicion_confirm(struct suspicion *suspicion, const struct member_id *accuser);
/* member_count: alive and suspect, with ourselves. */
uint64_t suspicion_timeout_ms(const struct suspicion *suspicion, uint32_t min_ms, uint32_t member_count);
uint64_t suspicion_deadline_ms(const struct suspicion *suspicion, uint32_t min_ms, uint32_t member_count);

#endif
