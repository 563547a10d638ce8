/* Rows become records again, for the start. */
#include "daemon/store_inside.h"

#include <string.h>

/* What a crash may have hidden: numbers that were given out and never came to the file. Far more than a journal within
 * limits.journal_bytes_max can hold. */
#define HIDDEN_NUMBERS (UINT64_C(1) << 24)

struct table {
    enum record_type type;
    const char *sql;
    void (*read)(sqlite3_stmt *row, struct record *record);
};

static uint64_t number(sqlite3_stmt *row, int column) {
    return (uint64_t)sqlite3_column_int64(row, column);
}

static uint8_t small(sqlite3_stmt *row, int column) {
    return (uint8_t)sqlite3_column_int64(row, column);
}

static bool flag(sqlite3_stmt *row, int column) {
    return sqlite3_column_int64(row, column) != 0;
}

/* Borrowed until the next row. */
static struct record_text bytes(sqlite3_stmt *row, int column) {
    const void *start = sqlite3_column_blob(row, column);
    const int size = sqlite3_column_bytes(row, column);
    return size > 0 ? (struct record_text){start, (size_t)size} : (struct record_text){0};
}

static void read_session(sqlite3_stmt *row, struct record *record) {
    record->session = number(row, 0);
    record->client_id = bytes(row, 1);
    record->user_name = bytes(row, 2);
    record->expiry_s = (uint32_t)number(row, 3);
    record->ends_wall_ms = number(row, 4);
    record->has_will = sqlite3_column_type(row, 5) != SQLITE_NULL;
    if (!record->has_will) return;
    record->will.topic = bytes(row, 5);
    record->will.payload = bytes(row, 6);
    record->will.properties = bytes(row, 7);
    record->will.qos = small(row, 8);
    record->will.retain = flag(row, 9);
    record->will_delay_s = (uint32_t)number(row, 10);
    record->will_expiry_s = number(row, 11);
    record->will_due_wall_ms = number(row, 12);
}

static void read_subscription(sqlite3_stmt *row, struct record *record) {
    record->session = number(row, 0);
    record->filter = bytes(row, 1);
    record->options = small(row, 2);
    record->identifier = (uint32_t)number(row, 3);
}

static void read_origin(sqlite3_stmt *row, int column, struct record *record) {
    const struct record_text origin = bytes(row, column);
    if (origin.size == sizeof(record->publication.stamp_origin))
        memcpy(record->publication.stamp_origin, origin.bytes, origin.size);
}

static void read_message(sqlite3_stmt *row, struct record *record) {
    record->message = number(row, 0);
    record->publication.topic = bytes(row, 1);
    record->publication.payload = bytes(row, 2);
    record->publication.properties = bytes(row, 3);
    record->publication.qos = small(row, 4);
    record->publication.retain = flag(row, 5);
    record->publication.expires_wall_ms = number(row, 6);
    record->publisher = number(row, 7);
    record->publication.stamp_wall_ms = number(row, 8);
    record->publication.stamp_count = (uint32_t)number(row, 9);
    read_origin(row, 10, record);
}

static void read_queued(sqlite3_stmt *row, struct record *record) {
    record->session = number(row, 0);
    record->position = number(row, 1);
    record->message = number(row, 2);
    record->qos = small(row, 3);
    record->retain = flag(row, 4);
    record->released = flag(row, 5);
    record->packet_id = (uint16_t)number(row, 6);
    record->identifiers = bytes(row, 7);
}

static void read_received(sqlite3_stmt *row, struct record *record) {
    record->session = number(row, 0);
    record->packet_id = (uint16_t)number(row, 1);
}

static void read_retained(sqlite3_stmt *row, struct record *record) {
    struct record_publication *publication = &record->publication;
    publication->topic = bytes(row, 0);
    publication->payload = bytes(row, 1);
    publication->properties = bytes(row, 2);
    publication->qos = small(row, 3);
    publication->retain = true;
    publication->expires_wall_ms = number(row, 4);
    publication->stamp_wall_ms = number(row, 5);
    publication->stamp_count = (uint32_t)number(row, 6);
    read_origin(row, 7, record);
    record->publisher = number(row, 8);
}

static void read_peer_id(sqlite3_stmt *row, struct record *record) {
    const struct record_text peer = bytes(row, 0);
    if (peer.size == sizeof(record->peer)) memcpy(record->peer, peer.bytes, peer.size);
}

static void read_taken(sqlite3_stmt *row, struct record *record) {
    read_peer_id(row, record);
    record->peer_epoch = number(row, 1);
    record->stream = number(row, 2);
    record->expected = number(row, 3);
}

static void read_peer(sqlite3_stmt *row, struct record *record) {
    read_peer_id(row, record);
    record->peer_name = bytes(row, 1);
    record->peer_epoch = number(row, 2);
    record->stream = number(row, 3);
    record->reserved = number(row, 4);
    record->ends_wall_ms = number(row, 5);
}

static void read_join(sqlite3_stmt *row, struct record *record) {
    read_peer_id(row, record);
    record->filter = bytes(row, 1);
    record->level = small(row, 2);
}

static void read_outbox(sqlite3_stmt *row, struct record *record) {
    read_peer_id(row, record);
    record->sequence = number(row, 1);
    record->message = number(row, 2);
    record->aims = bytes(row, 3);
}

static const struct table tables[] = {
    {RECORD_SESSION, "SELECT * FROM sessions", read_session},
    {RECORD_SUBSCRIPTION, "SELECT * FROM subscriptions", read_subscription},
    {RECORD_MESSAGE, "SELECT * FROM messages", read_message},
    {RECORD_QUEUED, "SELECT * FROM queued ORDER BY session, position", read_queued},
    {RECORD_RECEIVED, "SELECT * FROM received", read_received},
    {RECORD_RETAINED, "SELECT * FROM retained", read_retained},
    {RECORD_TAKEN, "SELECT * FROM taken", read_taken},
    {RECORD_PEER, "SELECT * FROM peers", read_peer},
    {RECORD_JOIN, "SELECT * FROM joins", read_join},
    {RECORD_OUTBOX, "SELECT * FROM outbox ORDER BY peer, sequence", read_outbox},
};

static int load_table(struct store_connection *connection, const struct table *table, store_on_record *on_record,
                      void *context, uint64_t *highest) {
    sqlite3_stmt *row = NULL;
    int result = sqlite3_prepare_v2(connection->database, table->sql, -1, &row, NULL);
    while (result == SQLITE_OK && (result = sqlite3_step(row)) == SQLITE_ROW) {
        struct record record = {.type = table->type};
        table->read(row, &record);
        if (record.session > *highest) *highest = record.session;
        if (record.message > *highest) *highest = record.message;
        if (record.position > *highest) *highest = record.position;
        on_record(context, &record);
        result = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int store_read_records(struct store_connection *connection, store_on_record *on_record, void *context,
                       uint64_t *highest) {
    int result = store_read_number(connection, "highest", highest);
    for (size_t i = 0; result == SQLITE_OK && i < sizeof(tables) / sizeof(tables[0]); i++)
        result = load_table(connection, &tables[i], on_record, context, highest);
    return result == SQLITE_OK && *highest >= STORE_NUMBER_MAX ? SQLITE_CORRUPT : result;
}

bool store_load(struct store *store, store_on_record *on_record, void *context, uint64_t *first_number,
                char error[STORE_ERROR_MAX]) {
    uint64_t highest = 0;
    /* Messages that nobody refers to any more, left behind where the last holder's end was all that was told. */
    int result = sqlite3_exec(store->connection.database,
                              "DELETE FROM messages WHERE message NOT IN (SELECT message FROM queued)"
                              " AND message NOT IN (SELECT message FROM outbox)",
                              NULL, NULL, NULL);
    if ((result & 0xff) == SQLITE_FULL) result = SQLITE_OK; /* they take room, and no more than that */
    if (result == SQLITE_OK) result = store_read_records(&store->connection, on_record, context, &highest);
    if (result != SQLITE_OK) {
        store_explain(store, &store->connection, result, error);
        return false;
    }
    *first_number = highest + 1 + HIDDEN_NUMBERS;
    return true;
}
