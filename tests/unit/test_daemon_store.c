#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "daemon/store.h"

static char dir[64], data[96], file[128];
static char error[STORE_ERROR_MAX];

static int make_dir(void **state) {
    (void)state;
    error[0] = '\0';
    strcpy(dir, "/tmp/hobnob-store-XXXXXX");
    if (mkdtemp(dir) == NULL) return -1;
    snprintf(data, sizeof(data), "%s/data", dir);
    snprintf(file, sizeof(file), "%s/hobnob.db", data);
    return 0;
}

static int remove_dir(void **state) {
    (void)state;
    char path[160];
    const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", file, suffixes[i]);
        unlink(path);
    }
    rmdir(data);
    return rmdir(dir);
}

static uint64_t one_run(void) {
    uint64_t epoch = 0;
    struct store *store = store_open(data, error);
    assert_string_equal(error, "");
    assert_non_null(store);
    assert_true(store_raise_epoch(store, &epoch, error));
    store_close(store);
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
    uint64_t epoch = 0;
    struct store *store = store_open(data, error);
    assert_non_null(store);
    assert_true(store_raise_epoch(store, &epoch, error));
    char copy[160], command[512];
    snprintf(copy, sizeof(copy), "%s/copy", dir); /* what a crash at this moment leaves behind */
    snprintf(command, sizeof(command), "cp -r %s %s", data, copy);
    assert_int_equal(system(command), 0);
    struct store *after_crash = store_open(copy, error);
    assert_string_equal(error, "");
    uint64_t next = 0;
    assert_true(store_raise_epoch(after_crash, &next, error));
    assert_int_equal(next, epoch + 1);
    store_close(after_crash);
    store_close(store);
    snprintf(command, sizeof(command), "rm -r %s", copy);
    assert_int_equal(system(command), 0);
}

static void saved_epoch_is_never_lowered(void **state) {
    (void)state;
    struct store *store = store_open(data, error);
    assert_non_null(store);
    assert_true(store_save_epoch(store, 40, error));
    assert_true(store_save_epoch(store, 7, error));
    store_close(store);
    assert_int_equal(one_run(), 41);
}

static void folder_is_closed_to_others(void **state) {
    (void)state;
    one_run();
    struct stat status;
    assert_int_equal(stat(data, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void second_daemon_on_one_folder_is_refused(void **state) {
    (void)state;
    struct store *store = store_open(data, error);
    assert_non_null(store);
    assert_null(store_open(data, error));
    assert_non_null(strstr(error, "in use by another hobnobd: stop that one"));
    store_close(store);
    error[0] = '\0';
    one_run();
}

static void newer_schema_is_refused(void **state) {
    (void)state;
    one_run();
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(file, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA user_version = 2", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
    assert_null(store_open(data, error));
    assert_non_null(strstr(error, "was written by a newer hobnobd (schema 2, this one knows 1)"));
}

static void damaged_file_is_named_with_a_remedy(void **state) {
    (void)state;
    assert_int_equal(mkdir(data, 0700), 0);
    FILE *stream = fopen(file, "wb");
    assert_non_null(stream);
    for (int i = 0; i < 200; i++)
        fputs("this is no database, not even a small one\n", stream);
    fclose(stream);
    assert_null(store_open(data, error));
    assert_non_null(strstr(error, "holds a damaged hobnob.db: move it away"));
}

static void missing_folder_above_is_named_with_a_remedy(void **state) {
    (void)state;
    assert_null(store_open("/nowhere/at/all", error));
    assert_non_null(
        strstr(error, "data_dir /nowhere/at/all cannot be made: No such file or directory: make the folder above it"));
}

static void file_in_place_of_the_folder_is_named_with_a_remedy(void **state) {
    (void)state;
    FILE *stream = fopen(data, "wb");
    assert_non_null(stream);
    fclose(stream);
    assert_null(store_open(data, error));
    assert_non_null(strstr(error, "is there and is no folder: write the path of a folder"));
    remove(data);
}

static void in_memory_starts_at_one(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t epoch = 0;
        struct store *store = store_open(NULL, error);
        assert_non_null(store);
        assert_true(store_raise_epoch(store, &epoch, error));
        assert_int_equal(epoch, 1);
        store_close(store);
    }
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

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
        cmocka_unit_test(in_memory_starts_at_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
