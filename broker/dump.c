/* The whole durable state as records, in the order of broker_restore(). */
#include "broker/durable.h"

#include "broker/engine.h"

static void dump_subscriptions(struct broker *broker, const struct session *session) {
    for (uint32_t i = 0; i < session->filters.count; i++)
        durable_subscribed(broker, session, &session->filters.items[i]);
}

static void dump_messages(struct broker *broker, uint64_t now_ms, struct outgoing *outgoing, uint64_t before) {
    for (; outgoing != NULL; outgoing = outgoing->next)
        broker_dump_message(broker, now_ms, outgoing->message, before);
}

static void dump_outgoing(struct broker *broker, const struct session *session, const struct outgoing *outgoing) {
    for (; outgoing != NULL; outgoing = outgoing->next) {
        struct record record = durable_queued_record(session, outgoing);
        journal_add(&broker->journal, &record);
    }
}

static void dump_received(struct broker *broker, const struct session *session) {
    for (uint16_t id = session_received_next(session, 0); id != 0; id = session_received_next(session, id))
        durable_received(broker, session, id);
}

void dump_session(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct record record = durable_session_record(broker, now_ms, session);

    journal_add(&broker->journal, &record);
    dump_subscriptions(broker, session);
    for (struct outgoing *outgoing = session->inflight; outgoing != NULL; outgoing = outgoing->next)
        durable_queued(broker, now_ms, session, outgoing);
    for (struct outgoing *outgoing = session->queue; outgoing != NULL; outgoing = outgoing->next)
        durable_queued(broker, now_ms, session, outgoing);
    dump_received(broker, session);
}

static void dump_sessions(struct broker *broker, uint64_t now_ms, uint64_t before) {
    struct session *session, *next;

    HASH_ITER(hh, broker->sessions, session, next) {
        struct record record = durable_session_record(broker, now_ms, session);
        if (session->durable) journal_add(&broker->journal, &record);
    }
    HASH_ITER(hh, broker->sessions, session, next) {
        if (!session->durable) continue;
        dump_subscriptions(broker, session);
        dump_messages(broker, now_ms, session->inflight, before);
        dump_messages(broker, now_ms, session->queue, before);
        dump_outgoing(broker, session, session->inflight);
        dump_outgoing(broker, session, session->queue);
        dump_received(broker, session);
    }
}

struct dumping {
    struct broker *broker;
    uint64_t now_ms;
};

static bool dump_retained(void *context, struct message *message) {
    const struct dumping *dumping = context;

    durable_retained(dumping->broker, dumping->now_ms, message);
    return true;
}

bool dump_all(struct broker *broker, uint64_t now_ms) {
    struct dumping dumping = {.broker = broker, .now_ms = now_ms};
    uint64_t before = broker->last_number;

    if (!broker->journal.is_on) return true;
    journal_begin_anew(&broker->journal);
    dump_sessions(broker, now_ms, before);
    retained_each(broker->retained, dump_retained, &dumping);
    federation_dump(broker->federation, before);
    return journal_end_anew(&broker->journal);
}
