#include "broker/engine.h"

#include <string.h>

#define YEAR_2100_MS 4102444800000u
#define DAY_MS 86400000u
/* A clock that is set, not one that is kept. */
#define CLOCK_STEP_MS 600000u

static uint64_t wall_ms(const struct broker *broker, uint64_t now_ms) {
    uint64_t offset = (uint64_t)broker->wall_offset_ms;

    if (broker->wall_offset_ms < 0 && now_ms < 0 - offset) return 0;
    return now_ms + offset;
}

/* Steps past the stamp given, or to the wall clock if that is ahead of it. */
static void clock_pass(struct broker *broker, uint64_t now_ms, const struct stamp *stamp) {
    uint64_t wall = wall_ms(broker, now_ms);

    if (wall > stamp->wall_ms) {
        broker->clock.wall_ms = wall;
        broker->clock.count = 0;
    } else if (stamp->count < UINT32_MAX) {
        broker->clock.wall_ms = stamp->wall_ms;
        broker->clock.count = stamp->count + 1;
    } else if (stamp->wall_ms < UINT64_MAX) {
        broker->clock.wall_ms = stamp->wall_ms + 1;
        broker->clock.count = 0;
    }
}

struct stamp clock_stamp(struct broker *broker, uint64_t now_ms) {
    struct stamp before = broker->clock;

    clock_pass(broker, now_ms, &before);
    memcpy(broker->clock.origin, broker->id, sizeof broker->id);
    return broker->clock;
}

void broker_clock_seen(struct broker *broker, uint64_t now_ms, const struct stamp *stamp) {
    struct stamp latest = broker->clock;

    if (stamp->wall_ms > latest.wall_ms || (stamp->wall_ms == latest.wall_ms && stamp->count > latest.count))
        latest = *stamp;
    clock_pass(broker, now_ms, &latest);
}

/* A stamp that nothing can follow would make its topic's last word for ever, and end all retaining: what is accepted is
 * always far from there. Clocks may be wrong by as much as they like up to 2100, since not every board has a battery.
 */
bool broker_clock_believes(const struct broker *broker, uint64_t now_ms, uint64_t stamp_wall_ms) {
    uint64_t latest = YEAR_2100_MS, wall = wall_ms(broker, now_ms);

    if (wall > latest) latest = wall;
    if (broker->clock.wall_ms > latest) latest = broker->clock.wall_ms;
    return stamp_wall_ms <= latest || stamp_wall_ms - latest <= DAY_MS;
}

uint64_t clock_wall_of(const struct broker *broker, uint64_t now_ms, uint64_t at_ms) {
    uint64_t wall = wall_ms(broker, now_ms);

    if (at_ms == UINT64_MAX) return 0;
    if (at_ms >= now_ms)
        wall = at_ms - now_ms < UINT64_MAX - wall ? wall + (at_ms - now_ms) : UINT64_MAX;
    else
        wall = now_ms - at_ms < wall ? wall - (now_ms - at_ms) : 0;
    return wall > 0 ? wall : 1;
}

uint64_t clock_time_of(const struct broker *broker, uint64_t now_ms, uint64_t at_wall_ms) {
    uint64_t wall = wall_ms(broker, now_ms);

    if (at_wall_ms == 0) return UINT64_MAX;
    if (at_wall_ms <= wall) return wall - at_wall_ms < now_ms ? now_ms - (wall - at_wall_ms) : 0;
    return at_wall_ms - wall < UINT64_MAX - now_ms ? now_ms + (at_wall_ms - wall) : UINT64_MAX;
}

static bool is_step(int64_t before_ms, int64_t after_ms) {
    uint64_t difference =
        after_ms > before_ms ? (uint64_t)after_ms - (uint64_t)before_ms : (uint64_t)before_ms - (uint64_t)after_ms;

    return before_ms != 0 && difference > CLOCK_STEP_MS;
}

void broker_set_wall_offset(struct broker *broker, int64_t offset_ms) {
    /* All expiries in the store are by the old clock, and would be read by the new one: the state is written anew. */
    if (broker->journal.is_on && is_step(broker->wall_offset_ms, offset_ms)) journal_lose(&broker->journal);
    broker->wall_offset_ms = offset_ms;
}
