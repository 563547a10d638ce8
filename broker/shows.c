#include "broker/engine.h"

#include <utlist.h>

enum { SHOW_BUDGET = 2000 };

struct show {
    struct broker *broker;
    uint64_t now_ms;
    struct session *session;
    const struct subscription *subscription;
};

void show_refill(struct broker *broker) {
    broker->show_budget = SHOW_BUDGET;
}

static bool on_retained(void *context, struct message *message) {
    const struct show *show = context;
    const struct subscription *subscription = show->subscription;
    struct delivery delivery = {.qos = message->qos < subscription->qos ? message->qos : subscription->qos,
                                .retain = true,
                                .identifiers = &subscription->identifier,
                                .identifier_count = subscription->identifier != 0};

    if (subscription->no_local && message->publisher == show->session->number) return true;
    if (!session_has_room(show->broker, show->session, delivery.qos)) return false;
    session_deliver(show->broker, show->now_ms, show->session, message, &delivery);
    return true;
}

/* The store that the filter looks into which is shown next. */
static struct retained *store_of(const struct broker *broker, const struct held *held) {
    const struct held_filter *filter = &held->filters[held->shown];

    return sys_retained_for(broker, filter->text, filter->size);
}

static void end_walk(struct broker *broker, struct held *held) {
    if (held->walking) retained_walk_end(store_of(broker, held), &held->walk);
    held->walking = false;
}

static void drop(struct broker *broker, struct client *client, struct held *held) {
    end_walk(broker, held);
    DL_DELETE(client->shows, held);
    held_free(held);
}

/* One filter; false if it is not done. */
static bool show_filter(struct broker *broker, uint64_t now_ms, struct held *held) {
    const struct held_filter *filter = &held->filters[held->shown];
    struct session *session = held->client->session;
    struct show show = {.broker = broker, .now_ms = now_ms, .session = session, .subscription = &filter->subscription};

    if (filter->send_retained && session_holds(broker, session, filter->text, filter->size)) {
        struct retained *retained = store_of(broker, held);
        if (!held->walking) retained_walk_begin(retained, &held->walk);
        held->walking = true;
        if (!retained_walk_on(retained, &held->walk, now_ms, filter->text, filter->size, &broker->show_budget,
                              on_retained, &show))
            return false;
    }
    end_walk(broker, held);
    return true;
}

/* False if it can take no more, or the budget is used up. */
static bool show_held(struct broker *broker, uint64_t now_ms, struct held *held) {
    for (; held->shown < held->filter_count; held->shown++)
        if (!show_filter(broker, now_ms, held)) return false;
    return true;
}

void show_wake(struct broker *broker, struct client *client) {
    if (client->shows == NULL || client->is_showing) return;
    client->is_showing = true;
    DL_APPEND2(broker->showing, client, show_prev, show_next);
}

static void stop_showing(struct broker *broker, struct client *client) {
    if (!client->is_showing) return;
    client->is_showing = false;
    DL_DELETE2(broker->showing, client, show_prev, show_next);
}

void show_forget_client(struct broker *broker, struct client *client) {
    stop_showing(broker, client);
    while (client->shows != NULL)
        drop(broker, client, client->shows);
}

static void show_client(struct broker *broker, uint64_t now_ms, struct client *client) {
    while (client->shows != NULL && client->doom == 0 && show_held(broker, now_ms, client->shows))
        drop(broker, client, client->shows);
    stop_showing(broker, client);
    if (broker->show_budget == 0) show_wake(broker, client); /* behind the others */
}

static bool has_any(const struct held *held) {
    for (uint32_t i = 0; i < held->filter_count; i++)
        if (held->filters[i].send_retained) return true;
    return false;
}

void show_add(struct broker *broker, struct held *held) {
    if (!has_any(held)) {
        held_free(held);
        return;
    }
    DL_APPEND(held->client->shows, held);
    show_client(broker, broker->now_ms, held->client);
}

bool show_some(struct broker *broker, uint64_t now_ms) {
    if (broker->showing == NULL || broker->show_budget == 0) return false;
    show_client(broker, now_ms, broker->showing);
    return true;
}
