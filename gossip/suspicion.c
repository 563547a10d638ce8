#include "gossip/suspicion.h"

#include <string.h>

void suspicion_start(struct suspicion *suspicion, uint64_t now_ms, const struct member_id *accuser) {
    memset(suspicion, 0, sizeof *suspicion);
    suspicion->running = true;
    suspicion->started_ms = now_ms;
    suspicion->accusers[0] = *accuser;
    suspicion->accuser_count = 1;
}

bool suspicion_lacks(const struct suspicion *suspicion, const struct member_id *accuser) {
    if (suspicion->accuser_count == SUSPICION_ACCUSERS_MAX) return false;
    for (uint32_t i = 0; i < suspicion->accuser_count; i++)
        if (memcmp(&suspicion->accusers[i], accuser, sizeof *accuser) == 0) return false;
    return true;
}

bool suspicion_confirm(struct suspicion *suspicion, const struct member_id *accuser) {
    if (!suspicion_lacks(suspicion, accuser)) return false;
    suspicion->accusers[suspicion->accuser_count++] = *accuser;
    return true;
}

uint64_t suspicion_timeout_ms(const struct suspicion *suspicion, uint32_t min_ms, uint32_t member_count) {
    /* log2(confirmations + 1) / log2(expected + 1), in thousandths, for up to three of each. */
    static const uint32_t log2_thousandths[] = {0, 1000, 1585, 2000};
    uint32_t expected = member_count > 2 ? member_count - 2 : 0; /* without the suspect and the first accuser */
    if (expected >= SUSPICION_ACCUSERS_MAX) expected = SUSPICION_ACCUSERS_MAX - 1;
    uint32_t confirmed = suspicion->accuser_count - 1;
    if (confirmed >= expected) return min_ms;
    uint64_t span = (uint64_t)min_ms * (SUSPICION_SPREAD - 1);
    return min_ms + span - span * log2_thousandths[confirmed] / log2_thousandths[expected];
}

uint64_t suspicion_deadline_ms(const struct suspicion *suspicion, uint32_t min_ms, uint32_t member_count) {
    return suspicion->started_ms + suspicion_timeout_ms(suspicion, min_ms, member_count);
}
