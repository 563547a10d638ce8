#include "gossip/cover_inside.h"

#include <string.h>

#define HALVE_MS 300000u /* what came in so long ago counts half */
#define WINDOW_MS 60000u
#define ALARM_PERCENT 1u
#define ALARM_LEAST 20u /* so few in a window are no sign */
#define ALARM_AGAIN_MS 600000u

/* FNV-1a (Fowler, Noll, Vo) is enough: these are our own rows, and a wrong guess costs a bad choice. */
uint64_t traffic_hash(uint64_t above, struct level level) {
    uint64_t hash = above ^ 0xcbf29ce484222325u;
    for (uint32_t i = 0; i < level.size; i++)
        hash = (hash ^ (uint8_t)level.text[i]) * 0x100000001b3u;
    return (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u;
}

double traffic_share(const struct cover *cover, uint64_t path) {
    const struct cover_traffic *traffic = &cover->traffic;
    uint64_t here = 0, all = 0;
    for (uint32_t i = 0; i < COVER_SPOTS_MAX; i++) {
        all += traffic->spots[i].count;
        if (traffic->spots[i].path == path) here = traffic->spots[i].count;
    }
    return here == 0 ? 0 : (double)here / (double)all;
}

static void halve(struct cover_traffic *traffic, uint64_t now_ms) {
    if (traffic->halve_ms == 0) traffic->halve_ms = now_ms + HALVE_MS;
    if (now_ms < traffic->halve_ms) return;
    uint64_t times = (now_ms - traffic->halve_ms) / HALVE_MS + 1;
    traffic->halve_ms = now_ms + HALVE_MS;
    for (uint32_t i = 0; i < COVER_SPOTS_MAX; i++)
        traffic->spots[i].count = times < 32 ? traffic->spots[i].count >> times : 0;
}

static void note_spot(struct cover_traffic *traffic, uint64_t path) {
    struct cover_spot *least = &traffic->spots[0];
    for (uint32_t i = 0; i < COVER_SPOTS_MAX; i++) {
        struct cover_spot *spot = &traffic->spots[i];
        if (spot->count > 0 && spot->path == path) {
            if (spot->count < UINT32_MAX) spot->count++;
            return;
        }
        if (spot->count < least->count) least = spot;
    }
    /* As in Misra and Gries 1982: a newcomer wears down the least before it takes its place. */
    if (least->count > 1)
        least->count--;
    else
        *least = (struct cover_spot){.path = path, .count = 1};
}

/* The topmost merged node that the name comes in through: only that can be split. */
static bool merged_above(const struct cover *cover, const char *name, size_t size, uint64_t *hash) {
    struct path path;
    path_of_filter(name, size, &path);
    uint32_t at = cover->shown.node_count > 0 ? LEVELS_ROOT : 0;
    if (at == 0 || (size > 0 && name[0] == '$')) return false;
    *hash = 0;
    for (uint32_t i = 0; at != 0; i++) {
        if (levels_node(&cover->shown, at)->mark & MERGED) return true;
        if (i == path.count) return false;
        at = levels_find(&cover->shown, at, path.levels[i]);
        *hash = traffic_hash(*hash, path.levels[i]);
    }
    return false;
}

/* A minute is over. */
static void close_window(struct cover_traffic *traffic, uint64_t now_ms) {
    if (traffic->window_ms == 0) traffic->window_ms = now_ms + WINDOW_MS;
    if (now_ms < traffic->window_ms) return;
    uint64_t all = traffic->wanted + traffic->unwanted;
    traffic->over = traffic->unwanted >= ALARM_LEAST && traffic->unwanted * 100 > all * ALARM_PERCENT;
    traffic->wanted = traffic->unwanted = 0;
    traffic->window_ms = now_ms + WINDOW_MS;
}

void cover_note_unwanted(struct cover *cover, uint64_t now_ms, const char *name, size_t size) {
    uint64_t path;
    close_window(&cover->traffic, now_ms);
    if (cover->merged_count == 0 || !merged_above(cover, name, size, &path)) return;
    halve(&cover->traffic, now_ms);
    note_spot(&cover->traffic, path);
    cover->traffic.unwanted++;
    cover->unwanted++;
    cover->relieved = true;
}

void cover_note_wanted(struct cover *cover, uint64_t now_ms, uint64_t count) {
    close_window(&cover->traffic, now_ms);
    cover->traffic.wanted += count;
}

bool cover_take_alarm(struct cover *cover, uint64_t now_ms) {
    struct cover_traffic *traffic = &cover->traffic;
    close_window(traffic, now_ms);
    if (!traffic->over || now_ms < traffic->alarm_ms) return false;
    traffic->alarm_ms = now_ms + ALARM_AGAIN_MS;
    cover->alarms++;
    return true;
}
