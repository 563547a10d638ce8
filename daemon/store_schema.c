/* The tables, and how a file of an older schema becomes one of the present. */
#include "daemon/store_inside.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A whole check reads the whole file, about 1 GB in 3 s; larger ones are only read as far as store_load() goes, which
 * is all but the indexes and free pages. */
#define CHECK_SIZE_MAX (512ll * 1024 * 1024)

/* migrations[N] makes schema N + 1 of schema N. One that has been released is never changed.
 *
 * Numbers of the core are 64-bit words; SQLite keeps the same bits with a sign. Rows are found by the records' own
 * keys, and tables refer to each other only as the records do. Small rows lie in their key's tree (WITHOUT ROWID);
 * those with a payload do not, as a tree of large rows is deep. */
static const char *const migrations[STORE_SCHEMA_VERSION] = {
    "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO numbers VALUES ('epoch', 0);",

    /* numbers: epoch; run and applied: epoch of the run that wrote last, and the number of its last record here;
     * highest: of all sessions, messages and positions ever; wall_ms: of the last commit. */
    "CREATE TABLE sessions (session INTEGER PRIMARY KEY, client_id TEXT NOT NULL, user_name TEXT NOT NULL,"
    " expiry_s INTEGER NOT NULL, ends_wall_ms INTEGER NOT NULL, will_topic TEXT, will_payload BLOB,"
    " will_properties BLOB, will_qos INTEGER, will_retain INTEGER, will_delay_s INTEGER, will_expiry_s INTEGER,"
    " will_due_wall_ms INTEGER);"
    "CREATE TABLE subscriptions (session INTEGER, filter TEXT, options INTEGER NOT NULL, identifier INTEGER NOT NULL,"
    " PRIMARY KEY (session, filter)) WITHOUT ROWID;"
    "CREATE TABLE messages (message INTEGER PRIMARY KEY, topic TEXT NOT NULL, payload BLOB NOT NULL,"
    " properties BLOB NOT NULL, qos INTEGER NOT NULL, retain INTEGER NOT NULL, expires_wall_ms INTEGER NOT NULL,"
    " publisher INTEGER NOT NULL);"
    "CREATE TABLE queued (session INTEGER, position INTEGER, message INTEGER NOT NULL, qos INTEGER NOT NULL,"
    " retain INTEGER NOT NULL, sent INTEGER NOT NULL, released INTEGER NOT NULL, packet_id INTEGER NOT NULL,"
    " identifiers BLOB NOT NULL, PRIMARY KEY (session, position)) WITHOUT ROWID;"
    "CREATE TABLE received (session INTEGER, packet_id INTEGER, PRIMARY KEY (session, packet_id)) WITHOUT ROWID;"
    "CREATE TABLE retained (topic TEXT PRIMARY KEY, payload BLOB NOT NULL, properties BLOB NOT NULL,"
    " qos INTEGER NOT NULL, expires_wall_ms INTEGER NOT NULL, stamp_wall_ms INTEGER NOT NULL,"
    " stamp_count INTEGER NOT NULL, stamp_origin BLOB NOT NULL, publisher INTEGER NOT NULL);"
    "INSERT OR IGNORE INTO numbers VALUES ('run', 0), ('applied', 0), ('highest', 0);",

    /* What was sent has a packet id. */
    "ALTER TABLE queued DROP COLUMN sent;",

    /* How far the publications of each peer were taken. */
    "CREATE TABLE taken (peer BLOB PRIMARY KEY, epoch INTEGER NOT NULL, stream INTEGER NOT NULL,"
    " expected INTEGER NOT NULL) WITHOUT ROWID;",

    /* What waits for each peer. */
    "CREATE TABLE peers (peer BLOB PRIMARY KEY, name TEXT NOT NULL, epoch INTEGER NOT NULL, stream INTEGER NOT NULL,"
    " reserved INTEGER NOT NULL, ends_wall_ms INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE joins (peer BLOB, filter TEXT, level INTEGER NOT NULL, PRIMARY KEY (peer, filter)) WITHOUT ROWID;"
    "CREATE TABLE outbox (peer BLOB, sequence INTEGER, message INTEGER NOT NULL, aims BLOB NOT NULL,"
    " PRIMARY KEY (peer, sequence)) WITHOUT ROWID;"
    "ALTER TABLE messages ADD COLUMN stamp_wall_ms INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE messages ADD COLUMN stamp_count INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE messages ADD COLUMN stamp_origin BLOB NOT NULL DEFAULT '';",
};

/* The first column of the first row. */
static int read_value(struct store_connection *connection, const char *sql, int64_t *number, char *text, size_t size) {
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(connection->database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        const unsigned char *value = sqlite3_column_text(statement, 0);
        if (number != NULL) *number = sqlite3_column_int64(statement, 0);
        if (text != NULL) snprintf(text, size, "%s", value != NULL ? (const char *)value : "");
    }
    sqlite3_finalize(statement);
    return result == SQLITE_ROW ? SQLITE_OK : result == SQLITE_DONE ? SQLITE_CORRUPT : result;
}

/* One step, and the number of its version with it, in one transaction. */
static int migrate(struct store_connection *connection, int64_t from) {
    char version[64];
    sqlite3 *database = connection->database;
    snprintf(version, sizeof(version), "PRAGMA user_version = %d", (int)from + 1);
    int result = sqlite3_exec(database, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (result == SQLITE_OK) result = sqlite3_exec(database, migrations[from], NULL, NULL, NULL);
    if (result == SQLITE_OK) result = sqlite3_exec(database, version, NULL, NULL, NULL);
    if (result == SQLITE_OK) result = sqlite3_exec(database, "COMMIT", NULL, NULL, NULL);
    if (!sqlite3_get_autocommit(database)) sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    return result == SQLITE_ERROR ? SQLITE_CORRUPT : result; /* the tables are not those of that version */
}

static int check_whole(const struct store *store, struct store_connection *connection) {
    char path[4096], answer[64] = "";
    struct stat status;
    snprintf(path, sizeof(path), "%s/hobnob.db", store->dir);
    if (stat(path, &status) != 0 || status.st_size > CHECK_SIZE_MAX) return SQLITE_OK;
    const int result = read_value(connection, "PRAGMA quick_check(1)", NULL, answer, sizeof(answer));
    return result == SQLITE_OK && strcmp(answer, "ok") != 0 ? SQLITE_CORRUPT : result;
}

/* A file without a version that holds something is somebody else's. */
static int read_version(struct store_connection *connection, int64_t *version, bool *foreign) {
    int64_t tables = 0;
    int result = read_value(connection, "PRAGMA user_version", version, NULL, 0);
    if (result == SQLITE_OK) result = read_value(connection, "SELECT count(*) FROM sqlite_master", &tables, NULL, 0);
    *foreign = *version == 0 && tables > 0;
    return result == SQLITE_OK && *version < 0 ? SQLITE_CORRUPT : result;
}

bool store_check_origin(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    int64_t version = 0;
    bool foreign = false;
    const int result = read_version(connection, &version, &foreign);
    if (result != SQLITE_OK) {
        store_explain(store, connection, result, error);
        return false;
    }
    if (foreign)
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s holds a hobnob.db of another program: move it away, or write another data_dir",
                 store->dir);
    else if (version > STORE_SCHEMA_VERSION)
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s was written by a newer hobnobd (schema %d, this one knows %d): run that one, or write "
                 "another data_dir",
                 store->dir, (int)version, STORE_SCHEMA_VERSION);
    return !foreign && version <= STORE_SCHEMA_VERSION;
}

bool store_check_content(const struct store *store, struct store_connection *connection, bool *present,
                         char error[STORE_ERROR_MAX]) {
    int64_t version = 0;
    int result = read_value(connection, "PRAGMA user_version", &version, NULL, 0);
    if (result == SQLITE_OK && version > 0) result = check_whole(store, connection);
    *present = version == STORE_SCHEMA_VERSION;
    if (result == SQLITE_OK && *present) result = store_check_tables(connection);
    if (result != SQLITE_OK) store_explain(store, connection, result, error);
    return result == SQLITE_OK;
}

bool store_prepare_schema(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    int64_t version = 0;
    bool present = false;
    if (!store_check_content(store, connection, &present, error)) return false;
    int result = read_value(connection, "PRAGMA user_version", &version, NULL, 0);
    for (; result == SQLITE_OK && version < STORE_SCHEMA_VERSION; version++)
        result = migrate(connection, version);
    if (result == SQLITE_OK && !present) result = store_check_tables(connection);
    if (result != SQLITE_OK) store_explain(store, connection, result, error);
    return result == SQLITE_OK;
}
