#include "broker/durable.h"

#include "broker/engine.h"

#include <string.h>

static struct record_text text_of(const void *bytes, size_t size) {
    return (struct record_text){.bytes = size > 0 ? bytes : NULL, .size = size};
}

static struct record_publication publication_of(const struct broker *broker, uint64_t now_ms,
                                                const struct message *message) {
    struct record_publication publication = {
        .topic = text_of(message->topic, message->topic_size),
        .payload = text_of(message->payload, message->payload_size),
        .properties = text_of(message->properties, message->properties_size),
        .qos = message->qos,
        .retain = message->retain,
        .expires_wall_ms = clock_wall_of(broker, now_ms, message->expires_at_ms),
        .stamp_wall_ms = message->stamp.wall_ms,
        .stamp_count = message->stamp.count,
    };

    memcpy(publication.stamp_origin, message->stamp.origin, sizeof publication.stamp_origin);
    return publication;
}

struct record durable_publication_record(const struct broker *broker, uint64_t now_ms, enum record_type type,
                                         const struct message *message) {
    return (struct record){.type = type,
                           .message = type == RECORD_MESSAGE ? message->number : 0,
                           .publication = publication_of(broker, now_ms, message),
                           .publisher = message->publisher};
}

struct record durable_session_record(const struct broker *broker, uint64_t now_ms, const struct session *session) {
    struct record record = {.type = RECORD_SESSION,
                            .session = session->number,
                            .client_id = text_of(session->client_id, session->client_id_size),
                            .user_name = text_of(session->principal, session->principal_size),
                            .expiry_s = session->expiry_s,
                            .ends_wall_ms = clock_wall_of(broker, now_ms, session->expires_at_ms)};

    if (session->will == NULL) return record;
    record.has_will = true;
    record.will = publication_of(broker, now_ms, session->will);
    record.will_delay_s = session->will_delay_s;
    record.will_expiry_s = session->will_expiry_s;
    record.will_due_wall_ms = clock_wall_of(broker, now_ms, session->will_due_ms);
    return record;
}

struct record durable_queued_record(const struct session *session, const struct outgoing *outgoing) {
    return (struct record){
        .type = RECORD_QUEUED,
        .session = session->number,
        .position = outgoing->position,
        .message = outgoing->message != NULL ? outgoing->message->number : 0,
        .qos = outgoing->qos,
        .retain = outgoing->retain,
        .released = outgoing->released,
        .packet_id = outgoing->packet_id,
        .identifiers = text_of(outgoing->identifiers, outgoing->identifier_count * sizeof outgoing->identifiers[0])};
}

static void tell_message(struct broker *broker, uint64_t now_ms, struct message *message) {
    struct record record;

    message->number = ++broker->last_number;
    record = durable_publication_record(broker, now_ms, RECORD_MESSAGE, message);
    journal_add(&broker->journal, &record);
}

void broker_hold_message(struct broker *broker, uint64_t now_ms, struct message *message) {
    if (message != NULL && message->durable_count++ == 0) tell_message(broker, now_ms, message);
}

/* A message gets a new number, so that a look at it says whether it is in this dump. */
void broker_dump_message(struct broker *broker, uint64_t now_ms, struct message *message, uint64_t before) {
    if (message != NULL && message->number <= before) tell_message(broker, now_ms, message);
}

void broker_let_go_message(struct broker *broker, struct message *message) {
    if (message == NULL || --message->durable_count > 0) return;
    journal_add(&broker->journal, &(struct record){.type = RECORD_MESSAGE_END, .message = message->number});
    message->number = 0;
}

void durable_session(struct broker *broker, uint64_t now_ms, struct session *session) {
    bool lasts = broker->journal.is_on && session->expiry_s != 0;
    struct record record;

    if (session->durable && !lasts) durable_session_end(broker, session);
    if (!lasts) return;
    if (!session->durable) {
        session->durable = true;
        dump_session(broker, now_ms, session);
        return;
    }
    record = durable_session_record(broker, now_ms, session);
    journal_add(&broker->journal, &record);
}

static void forget_all(struct broker *broker, struct outgoing *outgoing) {
    for (; outgoing != NULL; outgoing = outgoing->next) {
        broker_let_go_message(broker, outgoing->message);
        outgoing->position = outgoing->record = 0;
    }
}

void durable_session_end(struct broker *broker, struct session *session) {
    if (!session->durable) return;
    forget_all(broker, session->inflight);
    forget_all(broker, session->queue);
    journal_add(&broker->journal, &(struct record){.type = RECORD_SESSION_END, .session = session->number});
    session->durable = false;
}

void durable_subscribed(struct broker *broker, const struct session *session, const struct filter *filter) {
    if (!session->durable) return;
    journal_add(&broker->journal, &(struct record){.type = RECORD_SUBSCRIPTION,
                                                   .session = session->number,
                                                   .filter = text_of(filter->text, filter->size),
                                                   .options = filter->options,
                                                   .identifier = filter->identifier});
}

void durable_unsubscribed(struct broker *broker, const struct session *session, const struct filter *filter) {
    if (!session->durable) return;
    journal_add(&broker->journal, &(struct record){.type = RECORD_SUBSCRIPTION_END,
                                                   .session = session->number,
                                                   .filter = text_of(filter->text, filter->size)});
}

void durable_queued(struct broker *broker, uint64_t now_ms, const struct session *session, struct outgoing *outgoing) {
    struct record record;

    if (!session->durable) return;
    broker_hold_message(broker, now_ms, outgoing->message);
    outgoing->position = ++broker->last_number;
    record = durable_queued_record(session, outgoing);
    journal_add(&broker->journal, &record);
    outgoing->record = broker->journal.last;
}

void durable_sent(struct broker *broker, const struct session *session, struct outgoing *outgoing) {
    if (!session->durable) return;
    journal_add(&broker->journal, &(struct record){.type = RECORD_SENT,
                                                   .session = session->number,
                                                   .position = outgoing->position,
                                                   .packet_id = outgoing->packet_id});
    outgoing->record = broker->journal.last;
}

void durable_released(struct broker *broker, const struct session *session, struct outgoing *outgoing) {
    if (!session->durable) return;
    journal_add(&broker->journal,
                &(struct record){.type = RECORD_RELEASED, .session = session->number, .position = outgoing->position});
    outgoing->record = broker->journal.last;
    broker_let_go_message(broker, outgoing->message);
}

void durable_done(struct broker *broker, const struct session *session, struct outgoing *outgoing) {
    if (!session->durable) return;
    journal_add(&broker->journal,
                &(struct record){.type = RECORD_DONE, .session = session->number, .position = outgoing->position});
    broker_let_go_message(broker, outgoing->message);
}

void durable_received(struct broker *broker, const struct session *session, uint16_t packet_id) {
    if (!session->durable) return;
    journal_add(&broker->journal,
                &(struct record){.type = RECORD_RECEIVED, .session = session->number, .packet_id = packet_id});
}

void durable_received_end(struct broker *broker, const struct session *session, uint16_t packet_id) {
    if (!session->durable) return;
    journal_add(&broker->journal,
                &(struct record){.type = RECORD_RECEIVED_END, .session = session->number, .packet_id = packet_id});
}

/* Written anew by every start. */
static bool is_sys(const struct message *message) {
    return message->topic_size >= 4 && memcmp(message->topic, "$SYS", 4) == 0 &&
           (message->topic_size == 4 || message->topic[4] == '/');
}

void durable_retained(struct broker *broker, uint64_t now_ms, const struct message *message) {
    struct record record;

    if (!broker->journal.is_on || is_sys(message)) return;
    record = durable_publication_record(broker, now_ms, RECORD_RETAINED, message);
    journal_add(&broker->journal, &record);
}

void durable_retained_end(struct broker *broker, const struct message *message) {
    if (!broker->journal.is_on || is_sys(message)) return;
    journal_add(&broker->journal,
                &(struct record){.type = RECORD_RETAINED_END,
                                 .publication = {.topic = text_of(message->topic, message->topic_size)}});
}

uint64_t broker_last_record(const struct broker *broker) {
    return broker->journal.last;
}

bool broker_has_record(const struct broker *broker, uint64_t record) {
    return journal_has(&broker->journal, record) || broker->journal.failing;
}

bool broker_has_journal(const struct broker *broker) {
    return broker->journal.is_on;
}

bool broker_store_fails(const struct broker *broker) {
    return broker->journal.failing;
}

void broker_record(struct broker *broker, const struct record *record) {
    journal_add(&broker->journal, record);
}
