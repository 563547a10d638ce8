#include "daemon/store_inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define RETRY_MS 1000u
#define HANGS_MS 30000u /* a slow card takes seconds */
#define STOP_MS 10000u  /* for store_close() to end the thread, where nobody did so before */

/* Often the system itself did so, after an error of the disk. */
bool store_is_read_only(const char *dir) {
    struct statvfs disk;
    return statvfs(dir, &disk) == 0 && (disk.f_flag & ST_RDONLY) != 0;
}

/* SQLite would write the log into the file when it closes it, and delete the log. */
static void leave_as_it_is(const struct store_connection *connection) {
    if (connection->database != NULL)
        sqlite3_db_config(connection->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* What SQLite has no words for: limits of the process, and a folder that is gone with its disk. */
static bool explain_cause(const char *dir, int result, int cause, char error[STORE_ERROR_MAX]) {
    struct rlimit size;
    if (result == SQLITE_IOERR_WRITE && getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY) {
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s cannot be written, as no file may become larger than %llu KiB here: raise that limit "
                 "(LimitFSIZE= in a systemd unit, ulimit -f in a shell)",
                 dir, (unsigned long long)size.rlim_cur / 1024);
        return true;
    }
    if ((result & 0xff) == SQLITE_CANTOPEN && access(dir, F_OK) != 0) {
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s is not there: %s: mount its disk, or make it again for the user that runs hobnobd", dir,
                 strerror(errno));
        return true;
    }
    if ((result & 0xff) != SQLITE_CANTOPEN || (cause != EMFILE && cause != ENFILE)) return false;
    snprintf(error, STORE_ERROR_MAX,
             "data_dir %s: out of file descriptors: raise the limit of open files (LimitNOFILE= in a systemd unit, "
             "ulimit -n in a shell)",
             dir);
    return true;
}

void store_explain(const struct store *store, const struct store_connection *connection, int result,
                   char error[STORE_ERROR_MAX]) {
    const char *dir = store->dir;
    const int cause = connection->database != NULL ? sqlite3_system_errno(connection->database) : 0;
    if (explain_cause(dir, result, cause, error)) return;
    switch ((result & 0xff) == SQLITE_IOERR && cause == EDQUOT ? SQLITE_FULL : result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s is in use by another hobnobd: stop that one, or write another data_dir", dir);
        break;
    case SQLITE_FULL:
        snprintf(error, STORE_ERROR_MAX, "data_dir %s is on a full disk: make room there, or write another data_dir",
                 dir);
        break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        leave_as_it_is(connection);
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s holds a damaged hobnob.db: move it and hobnob.db-wal away, then put back all from a "
                 "backup, or start empty; the federation remembers this broker's epoch",
                 dir);
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        snprintf(error, STORE_ERROR_MAX, "data_dir %s cannot be written: %s, or write another data_dir", dir,
                 store_is_read_only(dir) ? "its file system is mounted read-only, mount it for writing"
                                         : "let the user that runs hobnobd write there (chown)");
        break;
    case SQLITE_NOMEM:
        snprintf(error, STORE_ERROR_MAX, "data_dir %s: memory is short: give the machine more", dir);
        break;
    default:
        snprintf(error, STORE_ERROR_MAX, "data_dir %s: %s (%s, error %d): mend that, or write another data_dir", dir,
                 sqlite3_errstr(result), connection->database != NULL ? sqlite3_errmsg(connection->database) : "",
                 result);
        break;
    }
}

static bool run(const struct store *store, struct store_connection *connection, const char *sql,
                char error[STORE_ERROR_MAX]) {
    const int result = sqlite3_exec(connection->database, sql, NULL, NULL, NULL);
    if (result != SQLITE_OK) store_explain(store, connection, result, error);
    return result == SQLITE_OK;
}

int store_read_number(struct store_connection *connection, const char *name, uint64_t *value) {
    sqlite3_stmt *statement = NULL;
    int result =
        sqlite3_prepare_v2(connection->database, "SELECT value FROM numbers WHERE name = ?1", -1, &statement, NULL);
    if (result == SQLITE_OK) result = sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
    if (result == SQLITE_OK) result = sqlite3_step(statement);
    if (result == SQLITE_ROW) *value = (uint64_t)sqlite3_column_int64(statement, 0);
    if (result == SQLITE_DONE) *value = 0;
    sqlite3_finalize(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* ---- connections ---- */

static bool make_dir(const struct store *store, char error[STORE_ERROR_MAX]) {
    struct stat status;
    if (mkdir(store->dir, 0700) == 0) return true;
    if (errno == EEXIST && stat(store->dir, &status) == 0 && S_ISDIR(status.st_mode)) return true;
    if (errno == EEXIST) {
        snprintf(error, STORE_ERROR_MAX, "data_dir %s is there and is no folder: write the path of a folder",
                 store->dir);
        return false;
    }
    snprintf(error, STORE_ERROR_MAX,
             "data_dir %s cannot be made: %s: make the folder above it for the user that runs hobnobd, or write "
             "another data_dir",
             store->dir, strerror(errno));
    return false;
}

static bool has_bytes(const struct store *store, const char *name) {
    char path[4096];
    struct stat status;
    snprintf(path, sizeof(path), "%s/%s", store->dir, name);
    return stat(path, &status) == 0 && status.st_size > 0;
}

bool store_check_log(const struct store *store, char error[STORE_ERROR_MAX]) {
    if (has_bytes(store, "hobnob.db") || !has_bytes(store, "hobnob.db-wal")) return true;
    snprintf(error, STORE_ERROR_MAX,
             "data_dir %s holds hobnob.db-wal, and hobnob.db is missing or empty: put that one back, or both from a "
             "backup, or move hobnob.db-wal away and start empty; the federation remembers this broker's epoch",
             store->dir);
    return false;
}

static bool open_database(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/hobnob.db", store->dir) >= (int)sizeof(path) - 8) {
        snprintf(error, STORE_ERROR_MAX, "data_dir has a path longer than 4,000 bytes: write a shorter one");
        return false;
    }
    if (!store_check_log(store, error)) return false;
    int result = sqlite3_open_v2(path, &connection->database,
                                 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result == SQLITE_OK && sqlite3_db_readonly(connection->database, "main") == 1) result = SQLITE_READONLY;
    if (result != SQLITE_OK) {
        store_explain(store, connection, result, error);
        return false;
    }
    sqlite3_extended_result_codes(connection->database, 1);
    return true;
}

static int on_wal(void *context, sqlite3 *database, const char *name, int pages) {
    struct store_connection *connection = context;
    (void)database, (void)name;
    connection->wal_pages = pages;
    return SQLITE_OK;
}

static bool set_sync(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    static const char *const modes[] = {[STORE_SYNC_FULL] = "PRAGMA synchronous = FULL",
                                        [STORE_SYNC_NORMAL] = "PRAGMA synchronous = NORMAL",
                                        [STORE_SYNC_OFF] = "PRAGMA synchronous = OFF"};
    return run(store, connection, modes[store->sync], error);
}

/* Exclusive from the first write on: a second hobnobd on the same folder would be a clone of this broker. Checkpoints
 * are made by the thread after it has said that a commit is done; the log's file is cut after a large one. */
static bool configure(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    if (!run(store, connection, "PRAGMA locking_mode = EXCLUSIVE", error) ||
        !store_check_origin(store, connection, error) ||
        !run(store, connection,
             "PRAGMA journal_mode = WAL; PRAGMA cache_size = -8192;"
             "PRAGMA journal_size_limit = 67108864; PRAGMA temp_store = MEMORY; BEGIN IMMEDIATE; COMMIT",
             error) ||
        !set_sync(store, connection, error))
        return false;
    sqlite3_wal_hook(connection->database, on_wal, connection);
    return true;
}

bool store_connect(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]) {
    *connection = (struct store_connection){0};
    if (open_database(store, connection, error) && configure(store, connection, error) &&
        store_prepare_schema(store, connection, error))
        return true;
    leave_as_it_is(connection);
    store_disconnect(connection);
    return false;
}

void store_disconnect(struct store_connection *connection) {
    for (size_t i = 0; i < STORE_STATEMENTS; i++)
        sqlite3_finalize(connection->statements[i]);
    sqlite3_close(connection->database);
    *connection = (struct store_connection){0};
}

/* ---- the door ---- */

struct store *store_open(const char *data_dir, enum store_sync sync, char error[STORE_ERROR_MAX]) {
    struct store *store = calloc(1, sizeof(*store));
    if (store != NULL) store->dir = strdup(data_dir);
    if (store == NULL || store->dir == NULL) {
        snprintf(error, STORE_ERROR_MAX, "memory is short: give the machine more");
        free(store);
        return NULL;
    }
    store->sync = sync;
    store->retry_ms = RETRY_MS;
    store->hangs_ms = HANGS_MS;
    if (make_dir(store, error) && store_connect(store, &store->connection, error)) return store;
    store_close(store);
    return NULL;
}

void store_close(struct store *store) {
    if (store == NULL) return;
    if (store->thread != NULL) store_stop(store, STOP_MS);
    if (store->abandoned) return;
    store_thread_free(store);
    store_disconnect(&store->connection);
    free(store->dir);
    free(store);
}

/* On the disk, whatever store_sync says of the rest. A broker that was killed on a full disk begins again with the room
 * that the log of that run takes. */
static bool write_run(struct store *store, char error[STORE_ERROR_MAX]) {
    static const char sql[] = "PRAGMA synchronous = FULL; BEGIN IMMEDIATE;"
                              "INSERT INTO numbers VALUES ('epoch', 1) ON CONFLICT DO UPDATE SET value = value + 1;"
                              "REPLACE INTO numbers SELECT 'run', value FROM numbers WHERE name = 'epoch';"
                              "REPLACE INTO numbers VALUES ('applied', 0); COMMIT";
    struct store_connection *connection = &store->connection;
    if (run(store, connection, sql, error)) return true;
    if (!sqlite3_get_autocommit(connection->database)) sqlite3_exec(connection->database, "ROLLBACK", NULL, NULL, NULL);
    return store_checkpoint(connection, SQLITE_CHECKPOINT_TRUNCATE) == SQLITE_OK && run(store, connection, sql, error);
}

bool store_raise_epoch(struct store *store, uint64_t *epoch, char error[STORE_ERROR_MAX]) {
    uint64_t value = 0;
    int result = store_read_number(&store->connection, "epoch", &value);
    if (result == SQLITE_OK && value >= STORE_NUMBER_MAX) result = SQLITE_CORRUPT;
    if (result != SQLITE_OK) {
        store_explain(store, &store->connection, result, error);
        return false;
    }
    if (!write_run(store, error) || !set_sync(store, &store->connection, error)) return false;
    result = store_read_number(&store->connection, "epoch", &value);
    if (result != SQLITE_OK) {
        store_explain(store, &store->connection, result, error);
        return false;
    }
    *epoch = store->run = value;
    return true;
}

bool store_read_wall(struct store *store, uint64_t *wall_ms, char error[STORE_ERROR_MAX]) {
    const int result = store_read_number(&store->connection, "wall_ms", wall_ms);
    if (result != SQLITE_OK) store_explain(store, &store->connection, result, error);
    return result == SQLITE_OK;
}

static const char *const sync_names[] = {
    [STORE_SYNC_FULL] = "full", [STORE_SYNC_NORMAL] = "normal", [STORE_SYNC_OFF] = "off"};

const char *store_sync_name(enum store_sync sync) {
    return sync_names[sync];
}

bool store_sync_parse(const char *name, enum store_sync *sync) {
    for (size_t i = 0; i < sizeof(sync_names) / sizeof(sync_names[0]); i++) {
        if (strcmp(name, sync_names[i]) != 0) continue;
        *sync = (enum store_sync)i;
        return true;
    }
    return false;
}
