#include "broker/link_news.h"

#include "broker/link.h"

#include <stdio.h>
#include <string.h>

static uint64_t due_ms(const struct federation *federation, const struct link_news *news) {
    if (news->state_changed) return federation->now_ms;
    if (!news->counts_rose) return UINT64_MAX;
    return news->counts_ms > federation->now_ms ? news->counts_ms : federation->now_ms;
}

static void come_by(struct federation *federation, const struct link_news *news) {
    uint64_t at_ms = federation->limits.sys_interval_s != UINT32_MAX ? due_ms(federation, news) : UINT64_MAX;
    if (at_ms < federation->news_ms) federation->news_ms = at_ms;
}

void link_news_up(struct federation *federation, struct peer *peer) {
    peer->news.state_changed = true;
    come_by(federation, &peer->news);
}

void link_news_ended(struct federation *federation, struct peer *peer, const char *why) {
    peer->news.state_changed = true;
    snprintf(peer->news.why, sizeof peer->news.why, "%s", why);
    come_by(federation, &peer->news);
}

void link_news_count(struct federation *federation, struct peer *peer) {
    if (peer->news.counts_rose) return;
    peer->news.counts_rose = true;
    come_by(federation, &peer->news);
}

/* ---- telling ---- */

/* A level of a topic: the name if it can be one as it is, else the id. */
static void level_of(const struct peer *peer, char level[sizeof peer->name]) {
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (peer->name[0] != '\0' && peer->name[strspn(peer->name, good)] == '\0') {
        memcpy(level, peer->name, sizeof peer->name);
        return;
    }
    for (size_t i = 0; i < sizeof peer->id.bytes; i++)
        snprintf(level + 2 * i, 3, "%02x", peer->id.bytes[i]);
}

static void tell(struct federation *federation, const struct peer *peer, const char *what, const char *text) {
    char level[sizeof peer->name], topic[128];
    level_of(peer, level);
    snprintf(topic, sizeof topic, "$SYS/federation/links/%s/%s", level, what);
    broker_tell_sys(federation->broker, federation->now_ms, topic, text);
}

/* An end goes first: of a link that came back at once both are told. */
static void tell_state(struct federation *federation, struct peer *peer) {
    struct link_news *news = &peer->news;
    bool is_up = peer->link && peer->link->state == LINK_UP;
    news->state_changed = false;
    if (news->why[0] != '\0') {
        tell(federation, peer, "state", news->why);
        news->why[0] = '\0';
        news->up = false;
    }
    if (is_up && !news->up) tell(federation, peer, "state", "up");
    news->up = is_up;
}

static void tell_count(struct federation *federation, struct peer *peer, size_t index, const char *what,
                       uint64_t count) {
    char text[24];
    if (peer->news.counts[index] == count) return;
    peer->news.counts[index] = count;
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    tell(federation, peer, what, text);
}

static void tell_counts(struct federation *federation, struct peer *peer) {
    const struct link_info *totals = &peer->totals;
    char what[64];
    peer->news.counts_rose = false;
    peer->news.counts_ms = federation->now_ms + LINK_NEWS_MS;
    tell_count(federation, peer, 0, "lost", totals->lost);
    tell_count(federation, peer, 1, "reordered", totals->reordered);
    for (int i = 0; i < LINK_AT_COUNT; i++) {
        snprintf(what, sizeof what, "dropped/%s", link_limit_name((enum link_at)i));
        tell_count(federation, peer, 2 + (size_t)i, what, totals->dropped_at[i]);
    }
}

void link_news_tick(struct federation *federation) {
    if (federation->news_ms > federation->now_ms) return;
    federation->news_ms = UINT64_MAX;
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (!peer) continue;
        if (peer->news.state_changed) tell_state(federation, peer);
        if (peer->news.counts_rose && peer->news.counts_ms <= federation->now_ms) tell_counts(federation, peer);
        come_by(federation, &peer->news);
    }
}
