#include "daemon/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct store {
    sqlite3 *database;
    char *dir; /* NULL in memory */
};

static void explain(const struct store *store, int result, char error[STORE_ERROR_MAX]) {
    const char *dir = store->dir != NULL ? store->dir : "in memory";
    switch (result & 0xff) {
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
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s holds a damaged hobnob.db: move it away; the federation remembers this broker's epoch",
                 dir);
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s cannot be written: let the user that runs hobnobd write there (chown), or write another "
                 "data_dir",
                 dir);
        break;
    default:
        snprintf(error, STORE_ERROR_MAX, "data_dir %s: %s (%s): mend that, or write another data_dir", dir,
                 sqlite3_errstr(result), sqlite3_errmsg(store->database));
        break;
    }
}

static bool run(struct store *store, const char *sql, char error[STORE_ERROR_MAX]) {
    const int result = sqlite3_exec(store->database, sql, NULL, NULL, NULL);
    if (result != SQLITE_OK) explain(store, result, error);
    return result == SQLITE_OK;
}

/* One statement with at most one number in and one out. */
static bool run_number(struct store *store, const char *sql, int64_t in, int64_t *out, char error[STORE_ERROR_MAX]) {
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK && sqlite3_bind_parameter_count(statement) > 0)
        result = sqlite3_bind_int64(statement, 1, in);
    if (result == SQLITE_OK) result = sqlite3_step(statement);
    if (result == SQLITE_ROW && out != NULL) *out = sqlite3_column_int64(statement, 0);
    const bool good = result == SQLITE_ROW || result == SQLITE_DONE;
    if (!good) explain(store, result, error);
    sqlite3_finalize(statement);
    return good;
}

static bool make_dir(const struct store *store, char error[STORE_ERROR_MAX]) {
    struct stat status;
    if (store->dir == NULL || mkdir(store->dir, 0700) == 0) return true;
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

static bool open_database(struct store *store, char error[STORE_ERROR_MAX]) {
    char path[4096] = ":memory:";
    if (store->dir != NULL && snprintf(path, sizeof(path), "%s/hobnob.db", store->dir) >= (int)sizeof(path)) {
        snprintf(error, STORE_ERROR_MAX, "data_dir has a path longer than 4,000 bytes: write a shorter one");
        return false;
    }
    const int result = sqlite3_open_v2(path, &store->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (result != SQLITE_OK) explain(store, result, error);
    return result == SQLITE_OK;
}

/* Exclusive from the first write on: a second hobnobd on the same folder would be a clone of this broker. */
static bool prepare_schema(struct store *store, char error[STORE_ERROR_MAX]) {
    int64_t version = 0;
    if (!run(store,
             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; BEGIN IMMEDIATE; "
             "COMMIT",
             error) ||
        !run_number(store, "PRAGMA user_version", 0, &version, error))
        return false;
    if (version > STORE_SCHEMA_VERSION) {
        snprintf(error, STORE_ERROR_MAX,
                 "data_dir %s was written by a newer hobnobd (schema %d, this one knows %d): run that one, or write "
                 "another data_dir",
                 store->dir, (int)version, STORE_SCHEMA_VERSION);
        return false;
    }
    return version == STORE_SCHEMA_VERSION ||
           run(store,
               "BEGIN IMMEDIATE;"
               "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
               "INSERT INTO numbers VALUES ('epoch', 0);"
               "PRAGMA user_version = 1;"
               "COMMIT",
               error);
}

struct store *store_open(const char *data_dir, char error[STORE_ERROR_MAX]) {
    struct store *store = calloc(1, sizeof(*store));
    if (store != NULL && data_dir != NULL) store->dir = strdup(data_dir);
    if (store == NULL || (data_dir != NULL && store->dir == NULL)) {
        snprintf(error, STORE_ERROR_MAX, "memory is short: give the machine more");
        free(store);
        return NULL;
    }
    if (make_dir(store, error) && open_database(store, error) && prepare_schema(store, error)) return store;
    store_close(store);
    return NULL;
}

void store_close(struct store *store) {
    if (store == NULL) return;
    sqlite3_close(store->database);
    free(store->dir);
    free(store);
}

bool store_raise_epoch(struct store *store, uint64_t *epoch, char error[STORE_ERROR_MAX]) {
    int64_t value = 0;
    if (!run_number(store, "UPDATE numbers SET value = value + 1 WHERE name = 'epoch'", 0, NULL, error) ||
        !run_number(store, "SELECT value FROM numbers WHERE name = 'epoch'", 0, &value, error))
        return false;
    *epoch = (uint64_t)value;
    return true;
}

bool store_save_epoch(struct store *store, uint64_t epoch, char error[STORE_ERROR_MAX]) {
    return run_number(store, "UPDATE numbers SET value = max(value, ?1) WHERE name = 'epoch'", (int64_t)epoch, NULL,
                      error);
}
