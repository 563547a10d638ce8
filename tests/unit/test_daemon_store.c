#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store_fixture.h"

static void wake(void *context) {
    (void)context;
}

static uint64_t one_run(void) {
    uint64_t epoch = 0;
    store_close(fixture_open(STORE_SYNC_FULL, &epoch));
    return epoch;
}

static void each_run_has_a_higher_epoch(void **state) {
    (void)state;
    assert_int_equal(one_run(), 1);
    assert_int_equal(one_run(), 2);
    assert_int_equal(one_run(), 3);
}

static void epoch_is_on_the_disk_before_the_store_is_closed(void **state) {
    (void)state;
    for (enum store_sync sync = STORE_SYNC_FULL; sync <= STORE_SYNC_OFF; sync++) {
        uint64_t epoch = 0, next = 0;
        struct store *store = fixture_open(sync, &epoch);
        char copy[160];
        snprintf(copy, sizeof(copy), "%s/copy-%d", fixture_dir, sync);
        fixture_copy(copy);
        struct store *after_crash = store_open(copy, STORE_SYNC_FULL, error);
        assert_string_equal(error, "");
        assert_true(store_raise_epoch(after_crash, &next, error));
        assert_int_equal(next, epoch + 1);
        store_close(after_crash);
        store_close(store);
    }
}

static void saved_epoch_is_never_lowered(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    assert_true(store_start(store, wake, NULL, error));
    store_save_epoch(store, 40);
    store_save_epoch(store, 7);
    assert_int_equal(store_stop(store, 10000), STORE_STOPPED_ALL);
    store_close(store);
    assert_int_equal(one_run(), 41);
}

static void folder_is_closed_to_others(void **state) {
    (void)state;
    one_run();
    struct stat status;
    assert_int_equal(stat(fixture_data, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void second_daemon_on_one_folder_is_refused(void **state) {
    (void)state;
    struct store *store = store_open(fixture_data, STORE_SYNC_FULL, error);
    assert_non_null(store);
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "in use by another hobnobd: stop that one"));
    store_close(store);
    error[0] = '\0';
    one_run();
}

static void newer_schema_is_refused(void **state) {
    (void)state;
    one_run();
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA user_version = 6", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "was written by a newer hobnobd (schema 6, this one knows 5)"));
}

static void damaged_file_is_named_with_a_remedy(void **state) {
    (void)state;
    assert_int_equal(mkdir(fixture_data, 0700), 0);
    FILE *stream = fopen(fixture_file, "wb");
    assert_non_null(stream);
    for (int i = 0; i < 200; i++)
        fputs("this is no database, not even a small one\n", stream);
    fclose(stream);
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "holds a damaged hobnob.db: move it and hobnob.db-wal away, then put back"));
}

static void missing_folder_above_is_named_with_a_remedy(void **state) {
    (void)state;
    assert_null(store_open("/nowhere/at/all", STORE_SYNC_FULL, error));
    assert_non_null(
        strstr(error, "data_dir /nowhere/at/all cannot be made: No such file or directory: make the folder above it"));
}

static void file_in_place_of_the_folder_is_named_with_a_remedy(void **state) {
    (void)state;
    FILE *stream = fopen(fixture_data, "wb");
    assert_non_null(stream);
    fclose(stream);
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "is there and is no folder: write the path of a folder"));
}

/* What the first release with a file left behind (schema 1). */
static const char version_1[] = "PRAGMA journal_mode = WAL;"
                                "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
                                "INSERT INTO numbers VALUES ('epoch', 7);"
                                "PRAGMA user_version = 1;";

static void file_of_schema_1_is_migrated_and_keeps_its_epoch(void **state) {
    (void)state;
    assert_int_equal(mkdir(fixture_data, 0700), 0);
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, version_1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(one_run(), 8);
    char *text = fixture_reload(NULL);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(one_run(), 9);
}

/* Those that later ones have changed, as they were. */
static const char version_2[] =
    "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO numbers VALUES ('epoch', 7), ('run', 7), ('applied', 5), ('highest', 22);"
    "CREATE TABLE sessions (session INTEGER PRIMARY KEY, client_id TEXT NOT NULL, user_name TEXT NOT NULL,"
    " expiry_s INTEGER NOT NULL, ends_wall_ms INTEGER NOT NULL, will_topic TEXT, will_payload BLOB,"
    " will_properties BLOB, will_qos INTEGER, will_retain INTEGER, will_delay_s INTEGER, will_expiry_s INTEGER,"
    " will_due_wall_ms INTEGER);"
    "CREATE TABLE subscriptions (session INTEGER, filter TEXT, options INTEGER NOT NULL, identifier INTEGER NOT NULL,"
    " PRIMARY KEY (session, filter)) WITHOUT ROWID;"
    "CREATE TABLE messages (message INTEGER PRIMARY KEY, topic TEXT NOT NULL, payload BLOB NOT NULL,"
    " properties BLOB NOT NULL, qos INTEGER NOT NULL, retain INTEGER NOT NULL, expires_wall_ms INTEGER NOT NULL,"
    " publisher INTEGER NOT NULL);"
    "INSERT INTO messages VALUES (11, 't', x'61', x'', 1, 0, 0, 0);"
    "CREATE TABLE queued (session INTEGER, position INTEGER, message INTEGER NOT NULL, qos INTEGER NOT NULL,"
    " retain INTEGER NOT NULL, sent INTEGER NOT NULL, released INTEGER NOT NULL, packet_id INTEGER NOT NULL,"
    " identifiers BLOB NOT NULL, PRIMARY KEY (session, position)) WITHOUT ROWID;"
    "INSERT INTO queued VALUES (7, 21, 0, 2, 1, 1, 1, 3, x'01020304'), (7, 22, 11, 1, 0, 0, 0, 0, x'');"
    "CREATE TABLE received (session INTEGER, packet_id INTEGER, PRIMARY KEY (session, packet_id)) WITHOUT ROWID;"
    "CREATE TABLE retained (topic TEXT PRIMARY KEY, payload BLOB NOT NULL, properties BLOB NOT NULL,"
    " qos INTEGER NOT NULL, expires_wall_ms INTEGER NOT NULL, stamp_wall_ms INTEGER NOT NULL,"
    " stamp_count INTEGER NOT NULL, stamp_origin BLOB NOT NULL, publisher INTEGER NOT NULL);"
    "PRAGMA user_version = 2;";

static void file_of_schema_2_keeps_what_it_holds(void **state) {
    (void)state;
    assert_int_equal(mkdir(fixture_data, 0700), 0);
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, version_2, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_int_equal(one_run(), 8);
    char *text = fixture_reload(NULL);
    assert_non_null(strstr(text, "qos=2 retain=1 released=1 pid=3"));
    assert_non_null(strstr(text, "qos=1 retain=0 released=0 pid=0"));
    free(text);
    assert_int_equal(one_run(), 9);
}

#define SCHEMA_5_BACK                                                                                                  \
    "DROP TABLE peers; DROP TABLE joins; DROP TABLE outbox; ALTER TABLE messages DROP COLUMN stamp_wall_ms;"           \
    "ALTER TABLE messages DROP COLUMN stamp_count;"                                                                    \
    "ALTER TABLE messages DROP COLUMN stamp_origin;"

/* The later ones only have more tables and columns. */
static void files_of_schema_3_and_4_keep_what_they_hold(void **state) {
    (void)state;
    static const char *const back[] = {SCHEMA_5_BACK "PRAGMA user_version = 4",
                                       SCHEMA_5_BACK "DROP TABLE taken; PRAGMA user_version = 3"};
    assert_int_equal(one_run(), 1);
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database,
                                  "INSERT INTO messages VALUES (11, 't', x'61', x'', 1, 0, 0, 0, 0, 0, x'');"
                                  "INSERT INTO queued VALUES (7, 22, 11, 1, 0, 0, 0, x'')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(database);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, back[i], NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
        assert_int_equal(one_run(), 2 + i);
        char *text = fixture_reload(NULL);
        assert_non_null(strstr(text, "s=7 m=11 p=22"));
        free(text);
    }
}

static void damaged_page_is_found_at_the_start_and_the_file_left_as_it_is(void **state) {
    (void)state;
    one_run();
    FILE *stream = fopen(fixture_file, "r+b");
    assert_non_null(stream);
    struct stat before, after;
    assert_int_equal(fseek(stream, 2 * 4096, SEEK_SET), 0);
    for (int i = 0; i < 4096; i++)
        fputc(0x5a, stream);
    fclose(stream);
    assert_int_equal(stat(fixture_file, &before), 0);
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "holds a damaged hobnob.db: move it"));
    assert_int_equal(stat(fixture_file, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_size, before.st_size);
}

/* The bytes of both files, on the heap. */
static char *read_both(size_t *size) {
    char path[160], *bytes = calloc(1, 1u << 20);
    assert_non_null(bytes);
    *size = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s%s", fixture_file, i == 0 ? "" : "-wal");
        FILE *stream = fopen(path, "rb");
        if (stream == NULL) fail_msg("%s is gone", path);
        *size += fread(bytes + *size, 1, (1u << 20) - *size, stream);
        fclose(stream);
    }
    return bytes;
}

/* SQLite writes the log into its file when the last connection closes, unless it is told not to. */
static void log_of_a_file_that_is_refused_is_left_as_it_is(void **state) {
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        sqlite3 *database = NULL;
        char command[256];
        size_t before_size, after_size;
        one_run();
        assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
        sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        assert_int_equal(sqlite3_exec(database,
                                      newer ? "PRAGMA user_version = 6" : "INSERT INTO numbers VALUES ('other', 1)",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        sqlite3_close(database);
        if (!newer) {
            FILE *stream = fopen(fixture_file, "r+b");
            assert_non_null(stream);
            assert_int_equal(fseek(stream, 2 * 4096, SEEK_SET), 0);
            for (int i = 0; i < 4096; i++)
                fputc(0x5a, stream);
            fclose(stream);
        }
        char *before = read_both(&before_size);
        assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
        char *after = read_both(&after_size);
        assert_int_equal(after_size, before_size);
        assert_memory_equal(after, before, before_size);
        free(before);
        free(after);
        snprintf(command, sizeof(command), "rm -r %s", fixture_data);
        assert_int_equal(system(command), 0);
        error[0] = '\0';
    }
}

static void run_sql(const char *sql) {
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture_file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* With what no start may take for its own, or go on with. */
static void file_that_is_not_as_it_was_left_is_refused_as_damaged(void **state) {
    static const char *const changes[] = {
        "DROP TABLE queued",
        "DROP TABLE numbers",
        "ALTER TABLE sessions DROP COLUMN will_due_wall_ms",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = -1",
        "UPDATE numbers SET value = -1 WHERE name = 'epoch'",
        "UPDATE numbers SET value = 9223372036854775807 WHERE name = 'epoch'",
        "UPDATE numbers SET value = -5 WHERE name = 'highest'",
        "INSERT INTO received VALUES (-1, 1)",
    };
    char command[256];
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        one_run();
        run_sql(changes[i]);
        uint64_t number;
        struct store *store = store_open(fixture_data, STORE_SYNC_FULL, error);
        struct fixture_dump dump = {.stream = fopen("/dev/null", "w")};
        if (store != NULL && store_raise_epoch(store, &number, error) &&
            store_load(store, fixture_print, &dump, &number, error))
            fail_msg("goes on after %s", changes[i]);
        if (strstr(error, "holds a damaged hobnob.db: move it") == NULL) fail_msg("%s: %s", changes[i], error);
        store_close(store);
        fclose(dump.stream);
        snprintf(command, sizeof(command), "rm -r %s", fixture_data);
        assert_int_equal(system(command), 0);
        error[0] = '\0';
    }
    (void)state;
}

static void file_of_another_program_is_refused_and_left_as_it_is(void **state) {
    (void)state;
    assert_int_equal(mkdir(fixture_data, 0700), 0);
    run_sql("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
    assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
    assert_non_null(strstr(error, "holds a hobnob.db of another program: move it away"));
    char header[20] = "";
    FILE *stream = fopen(fixture_file, "rb");
    assert_int_equal(fread(header, 1, sizeof(header), stream), sizeof(header));
    fclose(stream);
    assert_int_equal(header[18], 1); /* no write-ahead log was made of its journal */
    run_sql("INSERT INTO theirs VALUES (2)");
}

/* A log without its file is all there is: SQLite would delete it. */
static void log_without_its_file_is_refused_and_left_as_it_is(void **state) {
    (void)state;
    static const char *const losses[] = {"rm %s", "truncate -s 0 %s"};
    char log[160], command[512];
    snprintf(log, sizeof(log), "%s-wal", fixture_file);
    for (size_t i = 0; i < 2; i++) {
        struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
        snprintf(command, sizeof(command), "cp %s %s/log", log, fixture_dir);
        assert_int_equal(system(command), 0);
        store_close(store);
        snprintf(command, sizeof(command), "mv %s/log %s", fixture_dir, log);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof(command), losses[i], fixture_file);
        assert_int_equal(system(command), 0);
        assert_null(store_open(fixture_data, STORE_SYNC_FULL, error));
        assert_non_null(strstr(error, "holds hobnob.db-wal, and hobnob.db is missing or empty: put that one back"));
        struct stat status;
        assert_int_equal(stat(log, &status), 0);
        assert_true(status.st_size > 0);
        assert_int_equal(unlink(log), 0);
        unlink(fixture_file);
        error[0] = '\0';
    }
}

static void file_that_may_not_be_written_is_named_with_a_remedy(void **state) {
    (void)state;
    one_run();
    assert_int_equal(chmod(fixture_dir, 0755) | chmod(fixture_data, 0755) | chmod(fixture_file, 0444), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0) _exit(2); /* the administrator may write anything */
        const struct store *store = store_open(fixture_data, STORE_SYNC_FULL, error);
        _exit(store == NULL && strstr(error, "cannot be written: let the user that runs hobnobd write there") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(chmod(fixture_file, 0600), 0);
}

static void names_of_sync_are_read_and_written(void **state) {
    (void)state;
    enum store_sync sync = STORE_SYNC_OFF;
    assert_true(store_sync_parse("full", &sync));
    assert_int_equal(sync, STORE_SYNC_FULL);
    assert_true(store_sync_parse("normal", &sync));
    assert_string_equal(store_sync_name(sync), "normal");
    assert_false(store_sync_parse("fast", &sync));
    assert_int_equal(sync, STORE_SYNC_NORMAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(each_run_has_a_higher_epoch),
        ON_DISK(epoch_is_on_the_disk_before_the_store_is_closed),
        ON_DISK(saved_epoch_is_never_lowered),
        ON_DISK(folder_is_closed_to_others),
        ON_DISK(second_daemon_on_one_folder_is_refused),
        ON_DISK(newer_schema_is_refused),
        ON_DISK(damaged_file_is_named_with_a_remedy),
        ON_DISK(file_in_place_of_the_folder_is_named_with_a_remedy),
        cmocka_unit_test(missing_folder_above_is_named_with_a_remedy),
        ON_DISK(file_of_schema_1_is_migrated_and_keeps_its_epoch),
        ON_DISK(file_of_schema_2_keeps_what_it_holds),
        ON_DISK(files_of_schema_3_and_4_keep_what_they_hold),
        ON_DISK(damaged_page_is_found_at_the_start_and_the_file_left_as_it_is),
        ON_DISK(log_of_a_file_that_is_refused_is_left_as_it_is),
        ON_DISK(file_that_is_not_as_it_was_left_is_refused_as_damaged),
        ON_DISK(file_of_another_program_is_refused_and_left_as_it_is),
        ON_DISK(log_without_its_file_is_refused_and_left_as_it_is),
        ON_DISK(file_that_may_not_be_written_is_named_with_a_remedy),
        cmocka_unit_test(names_of_sync_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
