/* What --check finds around the configuration, and that it leaves everything as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/check.h"
#include "daemon/store.h"

static char dir[64];
static struct config_faults faults;

static int begin(void **state) {
    (void)state;
    strcpy(dir, "/tmp/hobnob-check-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static int end(void **state) {
    (void)state;
    unlink(path_of("data/hobnob.db"));
    unlink(path_of("data/hobnob.db-wal"));
    rmdir(path_of("data"));
    unlink(path_of("file"));
    return rmdir(dir);
}

/* The first fault for this text; "" if there is none. */
static const char *first_fault(const char *text) {
    faults = (struct config_faults){0};
    struct config *config = config_parse(text, strlen(text), dir, &faults);
    assert_non_null(config);
    assert_int_equal(faults.errors, 0);
    faults = (struct config_faults){0};
    check_surroundings(config, &faults);
    config_free(config);
    return faults.count > 0 ? faults.items[0].text : "";
}

#define QUIET "name: a\nlisten: {mqtt: \"unix:s\"}\n" /* no port that another program might have */

static void expect_error(const char *text, const char *what, const char *write) {
    const char *fault = first_fault(text);
    if (strstr(fault, what) == NULL || strstr(fault, write) == NULL) fail_msg("%s: \"%s\"", text, fault);
    assert_int_equal(faults.errors, 1);
}

static void what_is_good_has_no_fault_and_nothing_is_made(void **state) {
    struct stat status;
    (void)state;
    assert_string_equal(first_fault(QUIET), "");
    assert_int_not_equal(stat(path_of("data"), &status), 0);
    assert_int_not_equal(stat(path_of("s"), &status), 0);
}

static void a_data_dir_that_cannot_be_used(void **state) {
    (void)state;
    write_file("file", "x", 1);
    expect_error(QUIET "data_dir: file\n", "is there and is no folder", "write the path of a folder");
    expect_error(QUIET "data_dir: no/such\n", "cannot be made: No such file or directory", "make the folder above it");
    expect_error(QUIET "data_dir: file/data\n", "cannot be made: Not a directory", "write another data_dir");
    assert_int_equal(mkdir(path_of("data"), 0700), 0);
    assert_string_equal(first_fault(QUIET), "");
    write_file("data/hobnob.db", "", 0);
    assert_string_equal(first_fault(QUIET), "");
    write_file("data/hobnob.db-wal", "log", 3);
    expect_error(QUIET, "holds hobnob.db-wal, and hobnob.db is missing or empty", "put that one back");
    unlink(path_of("data/hobnob.db"));
    expect_error(QUIET, "holds hobnob.db-wal, and hobnob.db is missing or empty", "put that one back");
    unlink(path_of("data/hobnob.db-wal"));
    write_file("data/hobnob.db", "torn", 4);
    expect_error(QUIET, "holds a damaged hobnob.db", "start empty");
}

/* ---- the database ---- */

static void make_database(const char *sql) {
    sqlite3 *database;
    unlink(path_of("data/hobnob.db"));
    assert_int_equal(sqlite3_open(path_of("data/hobnob.db"), &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

static void one_that_is_not_ours_or_newer_is_named(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_of("data"), 0700), 0);
    make_database("CREATE TABLE letters (letter TEXT)");
    expect_error(QUIET, "a hobnob.db of another program", "move it away");
    make_database("CREATE TABLE letters (letter TEXT); PRAGMA user_version = 99");
    expect_error(QUIET, "written by a newer hobnobd (schema 99,", "run that one");
    make_database("CREATE TABLE letters (letter TEXT); PRAGMA user_version = 5");
    expect_error(QUIET, "holds a damaged hobnob.db", "start empty");
    make_database("CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
                  "PRAGMA user_version = 1");
    assert_string_equal(first_fault(QUIET), ""); /* the start would migrate it */
}

static struct store *store_begin(void) {
    char data[128], error[STORE_ERROR_MAX];
    uint64_t epoch;
    strcpy(data, path_of("data"));
    struct store *store = store_open(data, STORE_SYNC_FULL, error);
    assert_non_null(store);
    assert_true(store_raise_epoch(store, &epoch, error));
    return store;
}

static size_t read_file(const char *name, uint8_t *out, size_t size) {
    FILE *file = fopen(path_of(name), "rb");
    if (file == NULL) return 0;
    const size_t got = fread(out, 1, size, file);
    fclose(file);
    return got;
}

static void a_damaged_page_is_found_and_left(void **state) {
    static uint8_t bytes[1 << 18], after[1 << 18];
    (void)state;
    store_close(store_begin());
    assert_string_equal(first_fault(QUIET), "");
    const size_t size = read_file("data/hobnob.db", bytes, sizeof(bytes));
    assert_in_range(size, 5 * 4096, sizeof(bytes) - 1);
    memset(bytes + 4 * 4096, 0xA5, 4096);
    write_file("data/hobnob.db", bytes, size);
    expect_error(QUIET, "holds a damaged hobnob.db", "put back all from a backup");
    assert_int_equal(read_file("data/hobnob.db", after, sizeof(after)), size);
    assert_memory_equal(after, bytes, size);
    assert_int_equal(access(path_of("data/hobnob.db-wal"), F_OK), -1);
}

/* What a kill leaves: tables that are in the log alone. */
static void a_log_counts_and_stays(void **state) {
    static uint8_t file[1 << 18], log[1 << 20], after[1 << 20];
    (void)state;
    struct store *store = store_begin();
    const size_t size = read_file("data/hobnob.db", file, sizeof(file));
    const size_t log_size = read_file("data/hobnob.db-wal", log, sizeof(log));
    store_close(store);
    assert_true(log_size > 4096);
    write_file("data/hobnob.db", file, size);
    write_file("data/hobnob.db-wal", log, log_size);
    assert_string_equal(first_fault(QUIET), "");
    assert_int_equal(read_file("data/hobnob.db", after, sizeof(after)), size);
    assert_memory_equal(after, file, size);
    assert_int_equal(read_file("data/hobnob.db-wal", after, sizeof(after)), log_size);
    assert_memory_equal(after, log, log_size);
    assert_int_equal(access(path_of("data/hobnob.db-shm"), F_OK), -1);
    store_close(store_begin());
}

/* In a process of its own, as locks are those of a process. */
static void a_broker_that_runs_is_one_line(void **state) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(where);
    int ready[2], over[2];
    char text[160], byte = 0, who[32];
    (void)state;
    const int file = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&where, sizeof(where)), 0);
    assert_int_equal(listen(file, 1), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&where, &size), 0);
    const int port = ntohs(where.sin_port);
    where.sin_port = 0;
    assert_int_equal(bind(other, (struct sockaddr *)&where, sizeof(where)), 0);
    assert_int_equal(listen(other, 1), 0);
    assert_int_equal(getsockname(other, (struct sockaddr *)&where, &size), 0);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(over), 0);
    const pid_t broker = fork();
    if (broker == 0) {
        struct store *store = store_begin();
        _exit(write(ready[1], &byte, 1) == 1 && read(over[0], &byte, 1) == 1 && store != NULL ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(text, sizeof(text), "name: a\nlisten: {mqtt: 127.0.0.1:%d, admin: 127.0.0.1:%d}\n", port,
             ntohs(where.sin_port));
    const char *fault = first_fault(text);
    snprintf(who, sizeof(who), "process %d (", (int)broker);
    assert_int_equal(faults.errors, 0);
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(fault, "a broker with this data_dir runs here now"));
    assert_non_null(strstr(fault, who));
    snprintf(who, sizeof(who), "listen.mqtt 127.0.0.1:%d, ", port);
    assert_non_null(strstr(fault, who));
    assert_non_null(strstr(fault, "listen.admin 127.0.0.1:"));
    assert_int_equal(write(over[1], &byte, 1), 1);
    int status = -1;
    assert_int_equal(waitpid(broker, &status, 0), broker);
    assert_int_equal(status, 0);
    first_fault(text);
    assert_int_equal(faults.count, 2); /* now somebody else has these ports */
    close(file);
    close(other);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(over[i]);
    }
}

static void a_listener_that_cannot_be_had(void **state) {
    (void)state;
    write_file("file", "x", 1);
    expect_error("name: a\nlisten: {mqtt: \"unix:file\"}\n", "is a file and no socket", "write another path");
    expect_error("name: a\nlisten: {ws: \"unix:no/such\"}\n", "listen.ws: unix:", "in a folder that exists");
    expect_error("name: a\nlisten: {mqtt: 192.0.2.1:1883}\n", "is no address of this host", "or 0.0.0.0:1883");
}

static void a_port_in_use_is_a_warning(void **state) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(where);
    char text[64];
    (void)state;
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&where, sizeof(where)), 0);
    assert_int_equal(listen(file, 1), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&where, &size), 0);
    snprintf(text, sizeof(text), "name: a\nlisten: {mqtt: 127.0.0.1:%d}\n", ntohs(where.sin_port));
    assert_non_null(strstr(first_fault(text), "is in use now, and no hobnobd runs with this data_dir"));
    assert_int_equal(faults.errors, 0);
    close(file);
    assert_string_equal(first_fault(text), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_good_has_no_fault_and_nothing_is_made),
        TEST(a_data_dir_that_cannot_be_used),
        TEST(one_that_is_not_ours_or_newer_is_named),
        TEST(a_damaged_page_is_found_and_left),
        TEST(a_log_counts_and_stays),
        TEST(a_broker_that_runs_is_one_line),
        TEST(a_listener_that_cannot_be_had),
        TEST(a_port_in_use_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
