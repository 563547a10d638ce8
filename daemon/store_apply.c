/* Records become rows. */
#include "daemon/store_inside.h"

#include <assert.h>
#include <stdlib.h>

static const char *const sql[STORE_STATEMENTS] = {
    [STORE_RESET_SESSIONS] = "DELETE FROM sessions",
    [STORE_RESET_SUBSCRIPTIONS] = "DELETE FROM subscriptions",
    [STORE_RESET_MESSAGES] = "DELETE FROM messages",
    [STORE_RESET_QUEUED] = "DELETE FROM queued",
    [STORE_RESET_RECEIVED] = "DELETE FROM received",
    [STORE_RESET_RETAINED] = "DELETE FROM retained",
    [STORE_RESET_TAKEN] = "DELETE FROM taken",
    [STORE_RESET_PEERS] = "DELETE FROM peers",
    [STORE_RESET_JOINS] = "DELETE FROM joins",
    [STORE_RESET_OUTBOX] = "DELETE FROM outbox",
    [STORE_SESSION] = "REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    [STORE_SESSION_END] = "DELETE FROM sessions WHERE session = ?1",
    [STORE_SESSION_END_SUBSCRIPTIONS] = "DELETE FROM subscriptions WHERE session = ?1",
    [STORE_SESSION_END_QUEUED] = "DELETE FROM queued WHERE session = ?1",
    [STORE_SESSION_END_RECEIVED] = "DELETE FROM received WHERE session = ?1",
    [STORE_SUBSCRIPTION] = "REPLACE INTO subscriptions VALUES (?1, ?2, ?3, ?4)",
    [STORE_SUBSCRIPTION_END] = "DELETE FROM subscriptions WHERE session = ?1 AND filter = ?2",
    [STORE_MESSAGE] = "REPLACE INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    [STORE_MESSAGE_END] = "DELETE FROM messages WHERE message = ?1",
    [STORE_QUEUED] = "REPLACE INTO queued VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [STORE_SENT] = "UPDATE queued SET packet_id = ?3 WHERE session = ?1 AND position = ?2",
    [STORE_RELEASED] = "UPDATE queued SET released = 1, message = 0 WHERE session = ?1 AND position = ?2",
    [STORE_DONE] = "DELETE FROM queued WHERE session = ?1 AND position = ?2",
    [STORE_RECEIVED] = "REPLACE INTO received VALUES (?1, ?2)",
    [STORE_RECEIVED_END] = "DELETE FROM received WHERE session = ?1 AND packet_id = ?2",
    /* Not REPLACE, which would write the topic's index anew each time. */
    [STORE_RETAINED] =
        "INSERT INTO retained VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET"
        " payload = ?2, properties = ?3, qos = ?4, expires_wall_ms = ?5, stamp_wall_ms = ?6, stamp_count = ?7,"
        " stamp_origin = ?8, publisher = ?9",
    [STORE_RETAINED_END] = "DELETE FROM retained WHERE topic = ?1",
    [STORE_TAKEN] = "REPLACE INTO taken VALUES (?1, ?2, ?3, ?4)",
    [STORE_TAKEN_END] = "DELETE FROM taken WHERE peer = ?1",
    [STORE_PEER] = "REPLACE INTO peers VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [STORE_PEER_END] = "DELETE FROM peers WHERE peer = ?1",
    [STORE_PEER_END_JOINS] = "DELETE FROM joins WHERE peer = ?1",
    [STORE_PEER_END_OUTBOX] = "DELETE FROM outbox WHERE peer = ?1",
    [STORE_JOIN] = "REPLACE INTO joins VALUES (?1, ?2, ?3)",
    [STORE_JOIN_END] = "DELETE FROM joins WHERE peer = ?1 AND filter = ?2",
    [STORE_OUTBOX] = "REPLACE INTO outbox VALUES (?1, ?2, ?3, ?4)",
    [STORE_OUTBOX_END] = "DELETE FROM outbox WHERE peer = ?1 AND sequence >= ?2 AND sequence < ?3",
    [STORE_NUMBER] = "REPLACE INTO numbers VALUES (?1, ?2)",
    [STORE_NUMBER_RAISE] = "INSERT INTO numbers VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = max(value, ?2)",
    [STORE_BEGIN] = "BEGIN IMMEDIATE",
    [STORE_COMMIT] = "COMMIT",
};

/* A statement being filled: after the first error nothing more happens. */
struct call {
    struct store_connection *connection;
    sqlite3_stmt *statement;
    int next; /* parameter */
    int result;
};

static struct call begin(struct store_connection *connection, enum store_statement which) {
    struct call call = {.connection = connection, .next = 1, .result = SQLITE_OK};
    if (connection->statements[which] == NULL)
        call.result = sqlite3_prepare_v3(connection->database, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                         &connection->statements[which], NULL);
    call.statement = connection->statements[which];
    return call;
}

int store_check_tables(struct store_connection *connection) {
    int result = SQLITE_OK;
    for (int which = 0; result == SQLITE_OK && which < STORE_STATEMENTS; which++)
        result = begin(connection, (enum store_statement)which).result;
    return result == SQLITE_ERROR ? SQLITE_CORRUPT : result;
}

static void number(struct call *call, uint64_t value) {
    if (call->result == SQLITE_OK) call->result = sqlite3_bind_int64(call->statement, call->next++, (int64_t)value);
}

static void nothing(struct call *call) {
    if (call->result == SQLITE_OK) call->result = sqlite3_bind_null(call->statement, call->next++);
}

/* Borrowed until run(). */
static void text(struct call *call, const struct record_text *value) {
    const char *bytes = value->size > 0 ? value->bytes : "";
    if (call->result == SQLITE_OK)
        call->result =
            sqlite3_bind_text64(call->statement, call->next++, bytes, value->size, SQLITE_STATIC, SQLITE_UTF8);
}

static void blob(struct call *call, const struct record_text *value) {
    const void *bytes = value->size > 0 ? value->bytes : "";
    if (call->result == SQLITE_OK)
        call->result = sqlite3_bind_blob64(call->statement, call->next++, bytes, value->size, SQLITE_STATIC);
}

static int run(struct call *call) {
    if (call->result != SQLITE_OK) return call->result;
    const int stepped = sqlite3_step(call->statement);
    const int reset = sqlite3_reset(call->statement);
    return stepped == SQLITE_DONE ? SQLITE_OK : reset != SQLITE_OK ? reset : stepped;
}

static int run_plain(struct store_connection *connection, enum store_statement which) {
    struct call call = begin(connection, which);
    return run(&call);
}

/* A statement with the session as its only parameter, or with the position or packet id as its second. */
static int run_keys(struct store_connection *connection, enum store_statement which, uint64_t first,
                    const uint64_t *second) {
    struct call call = begin(connection, which);
    number(&call, first);
    if (second != NULL) number(&call, *second);
    return run(&call);
}

static int run_number(struct store_connection *connection, enum store_statement which, const char *name, size_t size,
                      uint64_t value) {
    struct call call = begin(connection, which);
    text(&call, &(struct record_text){name, size});
    number(&call, value);
    return run(&call);
}
#define RUN_NUMBER(connection, which, name, value) run_number(connection, which, name, sizeof(name) - 1, value)

/* ---- record by record ---- */

static int write_session(struct store_connection *connection, const struct record *record) {
    struct call call = begin(connection, STORE_SESSION);
    number(&call, record->session);
    text(&call, &record->client_id);
    text(&call, &record->user_name);
    number(&call, record->expiry_s);
    number(&call, record->ends_wall_ms);
    if (record->has_will) {
        text(&call, &record->will.topic);
        blob(&call, &record->will.payload);
        blob(&call, &record->will.properties);
        number(&call, record->will.qos);
        number(&call, record->will.retain);
        number(&call, record->will_delay_s);
        number(&call, record->will_expiry_s);
        number(&call, record->will_due_wall_ms);
    } else {
        for (int i = 0; i < 8; i++)
            nothing(&call);
    }
    return run(&call);
}

static int write_message(struct store_connection *connection, const struct record *record) {
    struct call call = begin(connection, STORE_MESSAGE);
    number(&call, record->message);
    text(&call, &record->publication.topic);
    blob(&call, &record->publication.payload);
    blob(&call, &record->publication.properties);
    number(&call, record->publication.qos);
    number(&call, record->publication.retain);
    number(&call, record->publication.expires_wall_ms);
    number(&call, record->publisher);
    number(&call, record->publication.stamp_wall_ms);
    number(&call, record->publication.stamp_count);
    blob(&call, &(struct record_text){record->publication.stamp_origin, sizeof(record->publication.stamp_origin)});
    return run(&call);
}

static int write_queued(struct store_connection *connection, const struct record *record) {
    struct call call = begin(connection, STORE_QUEUED);
    number(&call, record->session);
    number(&call, record->position);
    number(&call, record->message);
    number(&call, record->qos);
    number(&call, record->retain);
    number(&call, record->released);
    number(&call, record->packet_id);
    blob(&call, &record->identifiers);
    return run(&call);
}

static int write_retained(struct store_connection *connection, const struct record *record) {
    const struct record_publication *publication = &record->publication;
    struct call call = begin(connection, STORE_RETAINED);
    text(&call, &publication->topic);
    blob(&call, &publication->payload);
    blob(&call, &publication->properties);
    number(&call, publication->qos);
    number(&call, publication->expires_wall_ms);
    number(&call, publication->stamp_wall_ms);
    number(&call, publication->stamp_count);
    blob(&call, &(struct record_text){publication->stamp_origin, sizeof(publication->stamp_origin)});
    number(&call, record->publisher);
    return run(&call);
}

static int write_subscription(struct store_connection *connection, const struct record *record) {
    const bool ends = record->type == RECORD_SUBSCRIPTION_END;
    struct call call = begin(connection, ends ? STORE_SUBSCRIPTION_END : STORE_SUBSCRIPTION);
    number(&call, record->session);
    text(&call, &record->filter);
    if (!ends) number(&call, record->options);
    if (!ends) number(&call, record->identifier);
    return run(&call);
}

static int write_sent(struct store_connection *connection, const struct record *record) {
    struct call call = begin(connection, STORE_SENT);
    number(&call, record->session);
    number(&call, record->position);
    number(&call, record->packet_id);
    return run(&call);
}

static int write_retained_end(struct store_connection *connection, const struct record *record) {
    struct call call = begin(connection, STORE_RETAINED_END);
    text(&call, &record->publication.topic);
    return run(&call);
}

/* A statement whose first parameter is the peer. */
static struct call begin_peer(struct store_connection *connection, enum store_statement which,
                              const struct record *record) {
    struct call call = begin(connection, which);
    blob(&call, &(struct record_text){record->peer, sizeof(record->peer)});
    return call;
}

static int write_taken(struct store_connection *connection, const struct record *record) {
    const bool ends = record->type == RECORD_TAKEN_END;
    struct call call = begin_peer(connection, ends ? STORE_TAKEN_END : STORE_TAKEN, record);
    if (!ends) number(&call, record->peer_epoch);
    if (!ends) number(&call, record->stream);
    if (!ends) number(&call, record->expected);
    return run(&call);
}

static int write_peer(struct store_connection *connection, const struct record *record) {
    struct call call = begin_peer(connection, STORE_PEER, record);
    text(&call, &record->peer_name);
    number(&call, record->peer_epoch);
    number(&call, record->stream);
    number(&call, record->reserved);
    number(&call, record->ends_wall_ms);
    return run(&call);
}

static int end_peer(struct store_connection *connection, const struct record *record) {
    int result = SQLITE_OK;
    for (int which = STORE_PEER_END; result == SQLITE_OK && which <= STORE_PEER_END_OUTBOX; which++) {
        struct call call = begin_peer(connection, (enum store_statement)which, record);
        result = run(&call);
    }
    return result;
}

static int write_join(struct store_connection *connection, const struct record *record) {
    const bool ends = record->type == RECORD_JOIN_END;
    struct call call = begin_peer(connection, ends ? STORE_JOIN_END : STORE_JOIN, record);
    text(&call, &record->filter);
    if (!ends) number(&call, record->level);
    return run(&call);
}

static int write_outbox(struct store_connection *connection, const struct record *record) {
    const bool ends = record->type == RECORD_OUTBOX_END;
    struct call call = begin_peer(connection, ends ? STORE_OUTBOX_END : STORE_OUTBOX, record);
    number(&call, record->sequence);
    number(&call, ends ? record->below : record->message);
    if (!ends) blob(&call, &record->aims);
    return run(&call);
}

static int reset_all(struct store_connection *connection) {
    int result = SQLITE_OK;
    for (int which = STORE_RESET_SESSIONS; result == SQLITE_OK && which <= STORE_RESET_OUTBOX; which++)
        result = run_plain(connection, (enum store_statement)which);
    return result;
}

static int end_session(struct store_connection *connection, uint64_t session) {
    int result = SQLITE_OK;
    for (int which = STORE_SESSION_END; result == SQLITE_OK && which <= STORE_SESSION_END_RECEIVED; which++)
        result = run_keys(connection, (enum store_statement)which, session, NULL);
    return result;
}

static int write_record(struct store_connection *connection, const struct record *record) {
    const uint64_t packet_id = record->packet_id;
    switch (record->type) {
    case RECORD_RESET: return reset_all(connection);
    case RECORD_SESSION: return write_session(connection, record);
    case RECORD_SESSION_END: return end_session(connection, record->session);
    case RECORD_SUBSCRIPTION:
    case RECORD_SUBSCRIPTION_END: return write_subscription(connection, record);
    case RECORD_MESSAGE: return write_message(connection, record);
    case RECORD_MESSAGE_END: return run_keys(connection, STORE_MESSAGE_END, record->message, NULL);
    case RECORD_QUEUED: return write_queued(connection, record);
    case RECORD_SENT: return write_sent(connection, record);
    case RECORD_RELEASED: return run_keys(connection, STORE_RELEASED, record->session, &record->position);
    case RECORD_DONE: return run_keys(connection, STORE_DONE, record->session, &record->position);
    case RECORD_RECEIVED: return run_keys(connection, STORE_RECEIVED, record->session, &packet_id);
    case RECORD_RECEIVED_END: return run_keys(connection, STORE_RECEIVED_END, record->session, &packet_id);
    case RECORD_RETAINED: return write_retained(connection, record);
    case RECORD_RETAINED_END: return write_retained_end(connection, record);
    case RECORD_TAKEN:
    case RECORD_TAKEN_END: return write_taken(connection, record);
    case RECORD_PEER: return write_peer(connection, record);
    case RECORD_PEER_END: return end_peer(connection, record);
    case RECORD_JOIN:
    case RECORD_JOIN_END: return write_join(connection, record);
    case RECORD_OUTBOX:
    case RECORD_OUTBOX_END: return write_outbox(connection, record);
    }
    return STORE_UNSOUND;
}

/* ---- a transaction ---- */

static int write_records(struct store_connection *connection, struct store_plan *plan, const struct broker_span *batch,
                         size_t count, struct store_applied *applied) {
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < batch[i].size;) {
            struct record record;
            at += record_read(batch[i].bytes + at, batch[i].size - at, &record);
            if (store_plan_saves(plan, &record)) {
                applied->saved++;
                continue;
            }
            const int result = write_record(connection, &record);
            if (result != SQLITE_OK) return result;
        }
    }
    return SQLITE_OK;
}

static int write_numbers(struct store_connection *connection, const struct store_numbers *numbers, uint64_t highest) {
    int result = RUN_NUMBER(connection, STORE_NUMBER, "run", numbers->run);
    if (result == SQLITE_OK) result = RUN_NUMBER(connection, STORE_NUMBER, "applied", numbers->last);
    if (result == SQLITE_OK) result = RUN_NUMBER(connection, STORE_NUMBER, "wall_ms", numbers->wall_ms);
    if (result == SQLITE_OK) result = RUN_NUMBER(connection, STORE_NUMBER_RAISE, "highest", highest);
    if (result == SQLITE_OK) result = RUN_NUMBER(connection, STORE_NUMBER_RAISE, "epoch", numbers->epoch);
    return result;
}

int store_apply(struct store_connection *connection, const struct broker_span *batch, size_t count,
                const struct store_numbers *numbers, struct store_applied *applied) {
    struct store_plan plan;
    *applied = (struct store_applied){0};
    int result = store_plan_make(&plan, batch, count) ? SQLITE_OK : STORE_UNSOUND;
    applied->records = plan.records;
    if (result == SQLITE_OK) result = run_plain(connection, STORE_BEGIN);
    if (result == SQLITE_OK) result = write_records(connection, &plan, batch, count, applied);
    if (result == SQLITE_OK) result = write_numbers(connection, numbers, plan.highest);
    if (result == SQLITE_OK) result = run_plain(connection, STORE_COMMIT);
    if (result != SQLITE_OK && !sqlite3_get_autocommit(connection->database))
        sqlite3_exec(connection->database, "ROLLBACK", NULL, NULL, NULL);
    store_plan_deinit(&plan);
    return result;
}

int store_checkpoint(struct store_connection *connection, int mode) {
    return sqlite3_wal_checkpoint_v2(connection->database, NULL, mode, NULL, NULL);
}
