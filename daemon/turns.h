/* How long the turns of the loop last: from the moment the system wakes it until all that came of it is written.
 * Meanwhile nobody else is heard, so a long turn is a delay for every client. To the millisecond, as the loop's time.
 */
#ifndef DAEMON_TURNS_H
#define DAEMON_TURNS_H

#include <uv.h>

#define TURNS_BUCKETS 6u
extern const uint32_t turns_bucket_us[TURNS_BUCKETS]; /* upper bounds; the last is UINT32_MAX */

struct turns_counters {
    uint64_t count, us, us_max;
    uint64_t buckets[TURNS_BUCKETS]; /* each turn in the first whose bound it does not exceed */
};

struct turns {
    uv_check_t check;
    uint64_t woke_ms;      /* 0: it has not slept yet, and what was before is the start */
    uint64_t suspended_ms; /* since the machine was started */
    struct turns_counters counters;
};

/* Turns count from the first sleep on. */
void turns_start(struct turns *turns, uv_loop_t *loop);
/* Call it when all is written, before the loop sleeps. */
void turns_end(struct turns *turns);
/* How long the machine was suspended since the last call, in ms: time that the loop's clock does not know. Less than a
 * tenth of a second is 0. */
uint64_t turns_suspended_ms(struct turns *turns);
void turns_close(struct turns *turns);

void turns_count(struct turns_counters *counters, uint64_t us);

#endif
