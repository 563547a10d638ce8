/* What somebody asks for again and again is done ever more rarely, so that it costs little in the end; the first few
 * times come soon, since they may have good reason. */
#ifndef GOSSIP_RESTRAINT_H
#define GOSSIP_RESTRAINT_H

#include <stdbool.h>
#include <stdint.h>

struct restraint {
    uint64_t next_ms; /* not before that */
    uint32_t gap_ms;  /* it was so long since the last time; 0: there was none */
};

static inline bool restraint_lets(const struct restraint *restraint, uint64_t now_ms) {
    return now_ms >= restraint->next_ms;
}

/* Nothing is remembered any more, as nobody has asked for the longest gap. */
static inline bool restraint_is_over(const struct restraint *restraint, uint64_t now_ms, uint32_t longest_ms) {
    return restraint->gap_ms == 0 || now_ms >= restraint->next_ms + longest_ms;
}

/* It is done now. */
static inline void restraint_grow(struct restraint *restraint, uint64_t now_ms, uint32_t first_ms,
                                  uint32_t longest_ms) {
    uint32_t gap_ms = restraint_is_over(restraint, now_ms, longest_ms) ? first_ms : 2 * restraint->gap_ms;
    restraint->gap_ms = gap_ms < longest_ms ? gap_ms : longest_ms;
    restraint->next_ms = now_ms + restraint->gap_ms;
}

#endif
