/* The file as a start would find it, for --check: only read. */
#include "daemon/store_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define URI_SIZE (3 * PATH_SIZE + 32)

/* SQLite's locks on unix: bytes of the file from the pending byte on (https://www.sqlite.org/fileformat.html section
 * 1.5, "lock-byte page"). */
#define LOCKS_BEGIN 0x40000000
#define LOCKS_SIZE 512

static bool is_used(const char *path, int *holder) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS_BEGIN, .l_len = LOCKS_SIZE};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool used = file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    if (file >= 0) close(file);
    *holder = used && lock.l_pid > 0 ? (int)lock.l_pid : 0;
    return used;
}

/* "file:PATH?immutable=1": neither locks nor a log. */
static void make_uri(const char *path, char uri[URI_SIZE]) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    size_t size = (size_t)snprintf(uri, URI_SIZE, "file:");
    for (; *path != '\0' && size < URI_SIZE - 32; path++)
        size += (size_t)snprintf(uri + size, URI_SIZE - size, strchr(plain, *path) != NULL ? "%c" : "%%%02X",
                                 (unsigned char)*path);
    snprintf(uri + size, URI_SIZE - size, "?immutable=1");
}

/* What stands in a log counts, and to read it SQLite wants to be able to write; it does not, as the log is neither put
 * into the file nor deleted at the end. Without a log there would be one afterwards, so the file is opened as one that
 * cannot change. */
static int open_to_read(const char *path, bool with_log, struct store_connection *connection) {
    char uri[URI_SIZE];
    make_uri(path, uri);
    const int result =
        with_log ? sqlite3_open_v2(path, &connection->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL)
                 : sqlite3_open_v2(uri, &connection->database,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (result != SQLITE_OK) return result;
    sqlite3_extended_result_codes(connection->database, 1);
    sqlite3_db_config(connection->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return sqlite3_exec(connection->database, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
}

static void on_record(void *context, const struct record *record) {
    (void)context, (void)record;
}

static bool read_all(const struct store *store, const char *path, bool with_log, char error[STORE_ERROR_MAX]) {
    struct store_connection connection = {0};
    uint64_t highest = 0;
    bool present = false;
    int result = open_to_read(path, with_log, &connection);
    bool good = result == SQLITE_OK && store_check_origin(store, &connection, error) &&
                store_check_content(store, &connection, &present, error);
    if (good && present) {
        result = store_read_records(&connection, on_record, NULL, &highest);
        good = result == SQLITE_OK;
    }
    if (result != SQLITE_OK) store_explain(store, &connection, result, error);
    store_disconnect(&connection);
    return good;
}

enum store_inspected store_inspect(const char *data_dir, int *holder, char error[STORE_ERROR_MAX]) {
    const struct store store = {.dir = (char *)(uintptr_t)data_dir};
    char path[PATH_SIZE], log_path[PATH_SIZE + 8];
    struct stat status, log_status;
    snprintf(path, sizeof(path), "%s/hobnob.db", data_dir);
    snprintf(log_path, sizeof(log_path), "%s-wal", path);
    if (is_used(path, holder)) return STORE_USED;
    if (!store_check_log(&store, error)) return STORE_BAD;
    if (stat(path, &status) != 0 && errno == ENOENT) return STORE_SOUND;
    if (access(path, R_OK | W_OK) != 0) {
        store_explain(&store, &(struct store_connection){0}, SQLITE_CANTOPEN, error);
        return STORE_BAD;
    }
    const bool with_log = stat(log_path, &log_status) == 0 && log_status.st_size > 0;
    if (status.st_size == 0 || read_all(&store, path, with_log, error)) return STORE_SOUND;
    return is_used(path, holder) ? STORE_USED : STORE_BAD; /* a broker that starts now writes meanwhile */
}
