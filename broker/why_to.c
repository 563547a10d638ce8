/* Where it is subscribed to. */
#include "broker/interest.h"
#include "broker/session.h"
#include "broker/share.h"
#include "broker/why_near.h"
#include "broker/why_path.h"

#include <stdio.h>

/* ---- subscriptions ---- */

struct subscribed {
    uint64_t count, of_sessions, connected;
    uint8_t qos_max;
};

static void on_subscription(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct subscribed *subscribed = context;
    if (subscriber->kind == SUBSCRIBER_PEER) return;
    if (subscriber->kind == SUBSCRIBER_SHARE && !share_has_members_here(subscriber)) return;
    subscribed->count++;
    if (subscription->qos > subscribed->qos_max) subscribed->qos_max = subscription->qos;
    if (subscriber->kind != SUBSCRIBER_SESSION) return;
    subscribed->of_sessions++;
    subscribed->connected += ((const struct session *)(const void *)subscriber)->client != NULL;
}

static struct subscribed subscribed_to(const struct why_path *path) {
    struct subscribed subscribed = {.count = 0};
    subs_match(path->federation->subs, path->topic, path->size, on_subscription, &subscribed);
    return subscribed;
}

static void tell_nobody(const struct why_path *path) {
    static const char *const changes[] = {
        [WHY_OTHER] = "another word", [WHY_MORE] = "one level more", [WHY_LESS] = "one level less"};
    struct why_near near;
    struct why_list filter = {.named = 0}, topic = {.named = 0};
    if (!why_near(path->federation, path->topic, path->size, &near)) {
        why_stops(path->steps, WHY_SUBSCRIPTION, "nobody subscribes to it: no filter of a client here matches");
        return;
    }
    why_list_add(&filter, near.interest->row.named.text, near.interest->row.named.size);
    why_list_add(&topic, path->topic, path->size);
    why_stops(path->steps, WHY_SUBSCRIPTION, "no subscription matches; nearest: %s matches no %s: %s at level %zu",
              why_list_text(&filter), why_list_text(&topic), changes[near.change], near.level);
}

/* False if nobody here would get it. names: of some of the filters, or empty. */
static bool tell_subscribed(const struct why_path *path, const struct subscribed *subscribed, const char *names) {
    bool all_away = subscribed->count == subscribed->of_sessions && subscribed->connected == 0;
    const char *colon = names[0] != '\0' ? ": " : "";
    unsigned long long count = subscribed->count, away = subscribed->of_sessions - subscribed->connected;
    if (all_away && subscribed->qos_max == 0) {
        why_stops(path->steps, WHY_SUBSCRIPTION,
                  "%llu subscription%s at QoS 0, of clients that are not connected: for them nothing is kept%s%s",
                  count, count == 1 ? " matches" : "s match", colon, names);
        return false;
    }
    why_passes(path->steps, WHY_SUBSCRIPTION, "%llu subscription%s, at QoS %u%s; %llu of clients not connected%s%s%s",
               count, count == 1 ? " matches" : "s match", subscribed->qos_max,
               subscribed->qos_max > 0 && count > 1 ? " at most" : "", away,
               all_away ? ", for which QoS 1 and 2 wait" : "", colon, names);
    return true;
}

void why_tell_here(const struct why_path *path) {
    struct subscribed subscribed = subscribed_to(path);
    if (subscribed.count == 0)
        tell_nobody(path);
    else
        tell_subscribed(path, &subscribed, "");
}

/* ---- joins ---- */

/* What matches, and the one of them that is nearest to being joined. */
struct interested {
    const struct why_path *path;
    struct why_list filters;
    struct interest *best;
};

static const struct want *want_of(const struct why_path *path, struct interest *interest) {
    return path->peer && interest ? interest_want(interest, path->peer) : NULL;
}

static bool is_better(const struct want *want, const struct want *than) {
    static const uint8_t ranks[] = {
        [WANT_REFUSED] = 0, [WANT_ASLEEP] = 1, [WANT_NEW] = 2, [WANT_SENT] = 3, [WANT_JOINED] = 4};
    return want && (!than || ranks[want->state] > ranks[than->state]);
}

static void on_interest(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct interested *interested = context;
    struct interest *interest = (struct interest *)(void *)((char *)subscriber - offsetof(struct interest, subscriber));
    if (interest->count == 0) return; /* it lingers */
    why_list_add(&interested->filters, interest->row.named.text, interest->row.named.size);
    if (!interested->best ||
        is_better(want_of(interested->path, interest), want_of(interested->path, interested->best)))
        interested->best = interest;
}

static void tell_row(const struct why_path *path, const struct row *row) {
    uint64_t known = path->peer->known_sequence;
    if (row->sequence == 0)
        why_passes(path->steps, WHY_ROW, "this interest is not in the registry yet");
    else if (row->sequence > known)
        why_passes(path->steps, WHY_ROW,
                   "%s may not know of this interest yet: it is number %llu of the registry log, %s is at %llu",
                   path->peer->name, (unsigned long long)row->sequence, path->peer->name, (unsigned long long)known);
    else
        why_passes(path->steps, WHY_ROW, "%s knows of this interest from the registry", path->peer->name);
}

static const char *refusal_of(const struct want *want) {
    return want->status == JOINED_PRIVATE ? "nothing under it leaves that broker (federation.export, private_topics)"
                                          : "it has no room for more joins";
}

static void tell_want(const struct why_path *path, const struct interest *interest, const struct want *want) {
    const char *name = path->peer->name;
    struct why_list list = {.named = 0};
    why_list_add(&list, interest->row.named.text, interest->row.named.size);
    const char *filter = why_list_text(&list);
    switch ((enum want_state)want->state) {
    case WANT_JOINED: why_passes(path->steps, WHY_JOIN, "has joined %s at %s, confirmed", filter, name); break;
    case WANT_SENT:
        why_stops(path->steps, WHY_JOIN, "has said join %s to %s, which has not answered yet", filter, name);
        break;
    case WANT_NEW:
    case WANT_ASLEEP:
        why_passes(path->steps, WHY_JOIN, "joins %s at %s as soon as there is a link", filter, name);
        break;
    case WANT_REFUSED:
        why_stops(path->steps, WHY_JOIN, "%s refused the join of %s: %s", name, filter, refusal_of(want));
        break;
    }
}

static void tell_received(const struct why_path *path) {
    const struct link_info *totals = &path->peer->totals;
    why_passes(path->steps, WHY_QUEUE,
               "%llu publications came from %s so far, on any topic; %llu were lost, %llu refused",
               (unsigned long long)totals->publications_received, path->peer->name, (unsigned long long)totals->lost,
               (unsigned long long)totals->refused);
    if (why_is_linked(path->peer) && path->peer->link->is_behind)
        why_stops(path->steps, WHY_QUEUE, "takes nothing that lasts for now: memory is short, or its store far behind");
}

static void tell_joins(const struct why_path *path, struct interest *best) {
    const struct want *want = want_of(path, best);
    if (!want || want->state != WANT_JOINED) tell_row(path, &best->row);
    why_passes(path->steps, WHY_ADVERT, "%s of %s for it",
               peer_adverts(path->peer, path->topic, path->size) ? "sees an advert" : "sees no advert",
               path->peer->name);
    if (want)
        tell_want(path, best, want);
    else
        why_passes(path->steps, WHY_JOIN, "joins at %s when it is invited to the topic", path->peer->name);
    why_tell_link(path);
    tell_received(path);
}

void why_tell_to(const struct why_path *path) {
    struct interested interested = {.path = path};
    struct subscribed subscribed = subscribed_to(path);
    subs_match(path->federation->interest_tree, path->topic, path->size, on_interest, &interested);
    if (subscribed.count == 0)
        tell_nobody(path);
    else if (tell_subscribed(path, &subscribed, why_list_text(&interested.filters)) && !interested.best)
        why_stops(path->steps, WHY_ROW, "memory was short when it was subscribed to: other brokers were not told");
    if (!why_tell_policy(path, POLICY_IMPORT) || !interested.best) return;
    if (!path->peer || !path->peer->alive)
        why_stops(path->steps, WHY_MEMBER, "sees the publisher's broker as down or left, or does not know it");
    else
        tell_joins(path, interested.best);
}
