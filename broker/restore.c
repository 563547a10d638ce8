/* The state of an earlier run, from the records of the store. */
#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/kept.h"
#include "broker/props.h"
#include "broker/share.h"
#include "broker/taken.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

/* What records refer to by number. */
struct known {
    uint64_t number;
    struct session *session;
    bool changed;            /* the session, from what the store says */
    struct message *message; /* with a reference of its own */
    UT_hash_handle hh;
};

struct restoring {
    struct known *sessions, *messages;
    struct share_recall recall;
    bool memory_short;
    uint32_t left_out;
};

enum outcome { TAKEN, LEFT_OUT, MEMORY_SHORT };

static struct known *find(struct known *among, uint64_t number) {
    struct known *known;

    HASH_FIND(hh, among, &number, sizeof number, known);
    return known;
}

/* NULL when memory is short. */
static struct known *add(struct known **among, uint64_t number) {
    struct known *known = calloc(1, sizeof *known);

    if (known == NULL) return NULL;
    known->number = number;
    HASH_ADD(hh, *among, number, sizeof known->number, known);
    if (known->hh.tbl == NULL) {
        free(known);
        return NULL;
    }
    return known;
}

static struct session *session_of(struct broker *broker, uint64_t number) {
    const struct known *known = find(broker->restoring->sessions, number);

    return known != NULL ? known->session : NULL;
}

static bool publication_sound(const struct record_publication *publication, enum mqtt_type type) {
    struct mqtt_view block = {publication->properties.bytes, (uint32_t)publication->properties.size};

    if (publication->qos > 2 || publication->topic.size == 0 || publication->payload.size > UINT32_MAX ||
        publication->properties.size > UINT32_MAX ||
        !topic_name_valid(publication->topic.bytes, publication->topic.size))
        return false;
    return block.size == 0 || props_check(type, block) == MQTT_SUCCESS;
}

/* NULL when memory is short. */
static struct message *message_of(struct broker *broker, uint64_t now_ms, const struct record_publication *publication,
                                  uint64_t publisher) {
    struct message template = {.qos = publication->qos,
                               .retain = publication->retain,
                               .topic = publication->topic.bytes,
                               .topic_size = (uint32_t)publication->topic.size,
                               .payload = publication->payload.bytes,
                               .payload_size = (uint32_t)publication->payload.size,
                               .properties = publication->properties.bytes,
                               .properties_size = (uint32_t)publication->properties.size,
                               .expires_at_ms = clock_time_of(broker, now_ms, publication->expires_wall_ms),
                               .publisher = session_of(broker, publisher) != NULL ? publisher : 0,
                               .stamp = {.wall_ms = publication->stamp_wall_ms, .count = publication->stamp_count}};

    memcpy(template.stamp.origin, publication->stamp_origin, sizeof template.stamp.origin);
    return message_new(&template);
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Its absence began when the record says, or begins now. A clock that went back prolongs nothing beyond its interval.
 */
static void set_absence(struct broker *broker, uint64_t now_ms, struct session *session, const struct record *record) {
    session_begin_absence(broker, now_ms, session);
    if (record->ends_wall_ms != 0)
        session->expires_at_ms = earlier(session->expires_at_ms, clock_time_of(broker, now_ms, record->ends_wall_ms));
    if (record->will_due_wall_ms != 0)
        session->will_due_ms = earlier(session->will_due_ms, clock_time_of(broker, now_ms, record->will_due_wall_ms));
    session_set_timer(broker, session);
}

/* Its absence begins now, or is shorter than it was to be. */
static bool is_changed(const struct broker *broker, uint64_t now_ms, const struct session *session,
                       const struct record *record) {
    struct record present = durable_session_record(broker, now_ms, session);

    return present.expiry_s != record->expiry_s || present.ends_wall_ms != record->ends_wall_ms ||
           present.will_due_wall_ms != record->will_due_wall_ms;
}

static int set_principal(struct session *session, const struct record_text *name) {
    if (name->size == 0) return 0;
    session->principal = malloc(name->size);
    if (session->principal == NULL) return -1;
    memcpy(session->principal, name->bytes, name->size);
    session->principal_size = (uint32_t)name->size;
    return 0;
}

static enum outcome restore_session(struct broker *broker, uint64_t now_ms, const struct record *record) {
    struct restoring *restoring = broker->restoring;
    struct known *known;

    if (record->session == 0 || record->expiry_s == 0 || record->client_id.size == 0 ||
        record->client_id.size > UINT16_MAX || record->user_name.size > UINT16_MAX ||
        find(restoring->sessions, record->session) != NULL ||
        session_find(broker, record->client_id.bytes, record->client_id.size) != NULL)
        return LEFT_OUT;
    if (record->has_will && !publication_sound(&record->will, MQTT_WILL)) return LEFT_OUT;
    known = add(&restoring->sessions, record->session);
    if (known == NULL) return MEMORY_SHORT;
    known->session = session_new(broker, record->client_id.bytes, record->client_id.size);
    if (known->session == NULL) return MEMORY_SHORT;
    if (set_principal(known->session, &record->user_name) != 0) return MEMORY_SHORT;
    known->session->number = record->session;
    known->session->durable = true;
    known->session->expiry_s =
        record->expiry_s < broker->limits.session_expiry_max_s ? record->expiry_s : broker->limits.session_expiry_max_s;
    if (record->has_will) {
        known->session->will = message_of(broker, now_ms, &record->will, record->session);
        if (known->session->will == NULL) return MEMORY_SHORT;
        known->session->will_delay_s = record->will_delay_s;
        known->session->will_expiry_s = record->will_expiry_s;
    }
    set_absence(broker, now_ms, known->session, record);
    known->changed = is_changed(broker, now_ms, known->session, record);
    return TAKEN;
}

static enum outcome restore_subscription(struct broker *broker, uint64_t now_ms, const struct record *record) {
    struct session *session = session_of(broker, record->session);
    struct subscription subscription = {.qos = record->options & 3,
                                        .no_local = record->options & 4,
                                        .retain_as_published = record->options & 8,
                                        .retain_handling = (record->options >> 4) & 3,
                                        .identifier = record->identifier};
    const char *filter = record->filter.bytes;
    size_t size = record->filter.size;

    if (session == NULL || record->options > 0x2F || subscription.qos == 3 || size == 0 ||
        !topic_filter_valid(filter, size) || (topic_is_shared(filter, size) && topic_share_split(filter, size) == 0) ||
        session_holds(broker, session, filter, size))
        return LEFT_OUT;
    return session_subscribe(broker, now_ms, session, filter, size, &subscription) == SUBS_OK ? TAKEN : MEMORY_SHORT;
}

static enum outcome restore_message(struct broker *broker, uint64_t now_ms, const struct record *record) {
    struct restoring *restoring = broker->restoring;
    struct known *known;

    if (record->message == 0 || find(restoring->messages, record->message) != NULL ||
        !publication_sound(&record->publication, MQTT_PUBLISH))
        return LEFT_OUT;
    known = add(&restoring->messages, record->message);
    if (known == NULL) return MEMORY_SHORT;
    known->message = message_of(broker, now_ms, &record->publication, record->publisher);
    if (known->message == NULL) return MEMORY_SHORT;
    known->message->number = record->message;
    return TAKEN;
}

static enum outcome restore_queued(struct broker *broker, const struct record *record) {
    struct session *session = session_of(broker, record->session);
    const struct known *known = record->released ? NULL : find(broker->restoring->messages, record->message);
    struct message *message = known != NULL ? known->message : NULL;
    struct share_member *member = NULL;

    if (session == NULL || record->position == 0 || record->qos < 1 || record->qos > 2 ||
        record->identifiers.size / sizeof(uint32_t) > UINT16_MAX)
        return LEFT_OUT;
    if (record->released ? record->qos != 2 || record->packet_id == 0 : message == NULL) return LEFT_OUT;
    if (record->packet_id != 0 && session_inflight(session, record->packet_id) != NULL) return LEFT_OUT;
    if (message != NULL &&
        share_recall(broker, &broker->restoring->recall, session, message->topic, message->topic_size, &member) != 0)
        return MEMORY_SHORT;
    return session_put_back(broker, session, message, member, record) == 0 ? TAKEN : MEMORY_SHORT;
}

static enum outcome restore_received(struct broker *broker, const struct record *record) {
    struct session *session = session_of(broker, record->session);

    if (session == NULL || record->packet_id == 0) return LEFT_OUT;
    return session_received_add(session, record->packet_id) == RECEIVED_NO_MEMORY ? MEMORY_SHORT : TAKEN;
}

/* A tombstone's time began when it was stamped; otherwise who is started anew often would keep it for ever. */
static uint64_t tombstone_end_ms(const struct broker *broker, uint64_t now_ms, uint64_t stamp_wall_ms) {
    uint64_t end_wall_ms =
        stamp_wall_ms < UINT64_MAX - RETAINED_TOMBSTONE_MS ? stamp_wall_ms + RETAINED_TOMBSTONE_MS : UINT64_MAX;

    return clock_time_of(broker, now_ms, end_wall_ms);
}

static enum outcome restore_retained(struct broker *broker, uint64_t now_ms, const struct record *record) {
    struct message *message;
    enum retained_result result;

    if (!publication_sound(&record->publication, MQTT_PUBLISH)) return LEFT_OUT;
    message = message_of(broker, now_ms, &record->publication, record->publisher);
    if (message == NULL) return MEMORY_SHORT;
    broker_clock_seen(broker, now_ms, &message->stamp);
    result =
        retained_put_back(broker->retained, now_ms, message, tombstone_end_ms(broker, now_ms, message->stamp.wall_ms));
    if (result == RETAINED_STORED && memcmp(message->stamp.origin, broker->id, sizeof broker->id) == 0 &&
        federation_retains(broker->federation, now_ms, message) != 0)
        result = RETAINED_NO_MEMORY;
    message_unref(message);
    if (result == RETAINED_NO_MEMORY) return MEMORY_SHORT;
    return result == RETAINED_STORED ? TAKEN : LEFT_OUT;
}

/* As struct federation says it. */
static enum outcome outcome_of(int result) {
    return result == 0 ? TAKEN : result > 0 ? LEFT_OUT : MEMORY_SHORT;
}

static enum outcome restore_join(struct broker *broker, const struct record *record) {
    if (!topic_filter_valid(record->filter.bytes, record->filter.size)) return LEFT_OUT;
    return outcome_of(kept_restore_join(broker->federation, record));
}

static enum outcome restore_outbox(struct broker *broker, const struct record *record) {
    const struct known *known = find(broker->restoring->messages, record->message);

    if (known == NULL || known->message == NULL) return LEFT_OUT;
    return outcome_of(kept_restore_publication(broker->federation, record, known->message));
}

static enum outcome restore(struct broker *broker, uint64_t now_ms, const struct record *record) {
    switch (record->type) {
    case RECORD_SESSION: return restore_session(broker, now_ms, record);
    case RECORD_SUBSCRIPTION: return restore_subscription(broker, now_ms, record);
    case RECORD_MESSAGE: return restore_message(broker, now_ms, record);
    case RECORD_QUEUED: return restore_queued(broker, record);
    case RECORD_RECEIVED: return restore_received(broker, record);
    case RECORD_RETAINED: return restore_retained(broker, now_ms, record);
    case RECORD_TAKEN: return outcome_of(taken_restore(broker->federation, record));
    case RECORD_PEER: return outcome_of(kept_restore_peer(broker->federation, record));
    case RECORD_JOIN: return restore_join(broker, record);
    case RECORD_OUTBOX: return restore_outbox(broker, record);
    default: return LEFT_OUT;
    }
}

static bool begin(struct broker *broker) {
    if (broker->restoring == NULL) broker->restoring = calloc(1, sizeof *broker->restoring);
    return broker->restoring != NULL;
}

void broker_restore(struct broker *broker, uint64_t now_ms, const struct record *record) {
    bool is_on = broker->journal.is_on;
    enum outcome outcome;

    broker->now_ms = now_ms;
    if (!begin(broker)) {
        broker->restore_failed = true;
        return;
    }
    broker->journal.is_on = false; /* the store knows all this */
    outcome = restore(broker, now_ms, record);
    broker->journal.is_on = is_on;
    if (outcome == MEMORY_SHORT) broker->restore_failed = true;
    if (outcome == LEFT_OUT) broker->restoring->left_out++;
}

static void end_sessions(struct broker *broker, uint64_t now_ms) {
    struct known *known, *next;

    HASH_ITER(hh, broker->restoring->sessions, known, next) {
        struct session *session = known->session;
        if (session != NULL && known->changed) durable_session(broker, now_ms, session);
        HASH_DEL(broker->restoring->sessions, known);
        free(known);
    }
}

/* Messages that nobody refers to are of no use any more. */
static void end_messages(struct broker *broker) {
    struct known *known, *next;

    HASH_ITER(hh, broker->restoring->messages, known, next) {
        if (known->message != NULL && known->message->durable_count == 0)
            journal_add(&broker->journal, &(struct record){.type = RECORD_MESSAGE_END, .message = known->number});
        message_unref(known->message);
        HASH_DEL(broker->restoring->messages, known);
        free(known);
    }
}

bool broker_restored(struct broker *broker, uint64_t now_ms, uint64_t first_number) {
    broker->now_ms = now_ms;
    if (first_number > broker->last_number + 1) broker->last_number = first_number - 1;
    if (!kept_restored(broker->federation)) broker->restore_failed = true;
    if (broker->restoring == NULL) return !broker->restore_failed;
    end_sessions(broker, now_ms);
    end_messages(broker);
    if (broker->restoring->left_out > 0)
        broker_note_add(broker, BROKER_NOTE_WARNING,
                        "%u records of the store were left out: unsound, or without what "
                        "they refer to, or over a limit",
                        broker->restoring->left_out);
    share_recall_end(&broker->restoring->recall);
    free(broker->restoring);
    broker->restoring = NULL;
    return !broker->restore_failed;
}

void restore_drop(struct broker *broker) {
    if (broker->restoring == NULL) return;
    broker->journal.is_on = false;
    broker_restored(broker, broker->now_ms, 0);
}
