/* Who the two brokers are that somebody asks about. */
#include <stdio.h>
#include <string.h>

#include "daemon/node_inside.h"

/* The higher, the more there is to be said of it, where several have one name. */
static int rank(enum member_state state) {
    static const int ranks[] = {
        [MEMBER_UNVERIFIED] = 1, [MEMBER_LEFT] = 2, [MEMBER_DOWN] = 3, [MEMBER_SUSPECT] = 4, [MEMBER_ALIVE] = 5};
    return ranks[state];
}

static bool find(const struct node *node, uint64_t now_ms, const char *name, struct member_info *found) {
    struct member_info member;
    bool any = false;
    for (size_t i = 0; gossip_member_at(node->gossip, now_ms, i, &member); i++) {
        if (strcmp(member.name, name) != 0 || (any && rank(member.state) <= rank(found->state))) continue;
        *found = member;
        any = true;
    }
    return any;
}

static void say_heard(const struct member_info *member, const char *what, char out[96]) {
    if (member->heard_ms_ago == UINT64_MAX)
        snprintf(out, 96, "%s; it was never heard", what);
    else
        snprintf(out, 96, "%s; it was last heard %llu.%llu s ago", what,
                 (unsigned long long)(member->heard_ms_ago / 1000),
                 (unsigned long long)(member->heard_ms_ago / 100 % 10));
}

static void tell_member(const struct member_info *member, struct why_end *end) {
    memcpy(end->id.bytes, member->id.bytes, sizeof(end->id.bytes));
    end->is_there = member->state == MEMBER_ALIVE || member->state == MEMBER_SUSPECT;
    switch (member->state) {
    case MEMBER_ALIVE: break;
    case MEMBER_SUSPECT: say_heard(member, "is suspect: it does not answer", end->standing); break;
    case MEMBER_DOWN: say_heard(member, "is down", end->standing); break;
    case MEMBER_LEFT: snprintf(end->standing, sizeof(end->standing), "has left the federation in order"); break;
    case MEMBER_UNVERIFIED:
        snprintf(end->standing, sizeof(end->standing), "has not shown a token that is good here");
        break;
    }
}

static struct why_end end_of(const struct node *node, uint64_t now_ms, const char *name) {
    struct why_end end = {.is_there = false};
    struct member_info member = {.self = false};
    snprintf(end.name, sizeof(end.name), "%s", name);
    if (strcmp(name, node->name) == 0) {
        memcpy(end.id.bytes, node->id.bytes, sizeof(end.id.bytes));
        end.is_there = true;
    } else if (node->gossip == NULL) {
        snprintf(end.standing, sizeof(end.standing), "is not known: %.40s is alone, without listen.peers", node->name);
    } else if (find(node, now_ms, name, &member)) {
        tell_member(&member, &end);
    } else {
        snprintf(end.standing, sizeof(end.standing), "is not known here; hobnob members lists who is");
    }
    return end;
}

uint64_t node_why(struct node *node, uint64_t now_ms, const char *topic, size_t size, const char *from,
                  const char *to) {
    const struct why_end from_end = end_of(node, now_ms, from), to_end = end_of(node, now_ms, to);
    const uint64_t question = broker_why_ask(node->broker, now_ms, topic, size, &from_end, &to_end);
    node_pump(node, now_ms);
    return question;
}
