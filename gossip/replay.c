#include "gossip/replay.h"

#include <string.h>

#define OTHER_LIFE_MS 5000u

static uint32_t *oldest(struct replay *replay) {
    uint32_t *found = replay->newest;
    for (unsigned i = 1; i < REPLAY_WINDOW; i++)
        if (replay->newest[i] < *found) found = &replay->newest[i];
    return found;
}

uint32_t replay_newest(const struct replay *replay) {
    uint32_t newest = 0;
    for (unsigned i = 0; i < REPLAY_WINDOW; i++)
        if (replay->newest[i] > newest) newest = replay->newest[i];
    return newest;
}

static uint8_t life_of(uint64_t prefix) {
    return (uint8_t)(prefix >> 48); /* the same when the counter has begun anew */
}

static void begin(struct replay *replay, const struct replay_place *place) {
    *replay = (struct replay){
        .epoch = place->epoch, .prefix = place->prefix, .life = life_of(place->prefix), .again_ms = replay->again_ms};
}

/* It slept, and its sender may have begun to count anew since (seal.c): within half of all numbers, what is ahead is
 * newer. */
static bool is_ahead(uint32_t number, uint32_t newest) {
    return newest == 0 || number - newest - 1 < UINT32_MAX / 2;
}

static bool has_come(const struct replay *replay, uint32_t number) {
    for (unsigned i = 0; i < REPLAY_WINDOW; i++)
        if (replay->newest[i] == number) return true;
    return false;
}

/* False if it is of another life than the one that is known. */
static bool is_same_life(struct replay *replay, const struct replay_place *place) {
    if (replay->prefix == 0) return life_of(place->prefix) == replay->life || replay_newest(replay) == 0;
    if (place->prefix == replay->prefix + 1) begin(replay, place);
    return place->prefix == replay->prefix;
}

/* Which prefix it has is known again with the first that is new. */
static void learn_prefix(struct replay *replay, const struct replay_place *place, uint32_t number) {
    uint32_t newest = replay_newest(replay);
    if (number < newest) begin(replay, place);
    replay->prefix = place->prefix;
    replay->life = life_of(place->prefix);
}

enum replay_result replay_take(struct replay *replay, const struct replay_place *place, uint64_t now_ms) {
    uint32_t number = place->counter + 1;
    if (place->epoch < replay->epoch) return REPLAY_OTHER;
    /* An epoch that is raised within a life goes on counting. */
    if (place->epoch > replay->epoch && place->prefix != replay->prefix) begin(replay, place);
    replay->epoch = place->epoch;
    if (!is_same_life(replay, place)) {
        if (now_ms < replay->again_ms) return REPLAY_OTHER;
        replay->again_ms = now_ms + OTHER_LIFE_MS;
        begin(replay, place);
    }
    if (replay->prefix == 0) {
        if (!is_ahead(number, replay_newest(replay))) return REPLAY_AGAIN;
        learn_prefix(replay, place, number);
    }
    uint32_t *slot = oldest(replay);
    if (number <= *slot || has_come(replay, number)) return REPLAY_AGAIN;
    *slot = number;
    return REPLAY_NEW;
}

void replay_wake(struct replay *replay, uint64_t epoch, uint8_t life, uint32_t newest) {
    memset(replay, 0, sizeof *replay);
    replay->epoch = epoch;
    replay->life = life;
    for (unsigned i = 0; i < REPLAY_WINDOW; i++)
        replay->newest[i] = newest;
}
