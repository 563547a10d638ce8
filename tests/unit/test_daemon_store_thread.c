/* The storage thread: what it calls durable is in the file, on a disk that fails at any step. */
#include "tests/unit/store_fixture.h"

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/failing_disk.h"

#define WAIT_S 60

static sem_t news;

/* Whatever the test before left behind. */
static int make_good_disk(void **state) {
    failing_disk.before = NULL;
    failing_disk_set(0, 0, 0);
    return fixture_make(state);
}

#undef ON_DISK
#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, make_good_disk, fixture_remove)

static void wake(void *context) {
    (void)context;
    sem_post(&news);
}

typedef bool condition(const struct store_state *state, uint64_t number);

static bool is_durable(const struct store_state *state, uint64_t number) {
    return state->durable >= number;
}
static bool is_failing(const struct store_state *state, uint64_t number) {
    (void)number;
    return state->failing;
}
static bool is_well(const struct store_state *state, uint64_t number) {
    (void)number;
    return !state->failing;
}
static bool is_durable_or_failing(const struct store_state *state, uint64_t number) {
    return is_durable(state, number) || state->failing;
}
static bool has_lost(const struct store_state *state, uint64_t number) {
    return state->losses >= number;
}

/* The first state for which the condition holds. */
static struct store_state await(struct store *store, condition *holds, uint64_t number) {
    struct store_state state;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    for (;;) {
        store_read_state(store, &state);
        if (holds(&state, number)) return state;
        if (sem_timedwait(&news, &until) != 0 && errno != EINTR)
            fail_msg("not in %d s: durable %llu failing %d (%s) losses %llu", WAIT_S, (unsigned long long)state.durable,
                     state.failing, state.reason, (unsigned long long)state.losses);
    }
}

static struct store *start(enum store_sync sync) {
    struct store *store = fixture_open(sync, NULL);
    store->retry_ms = 5;
    assert_true(store_start(store, wake, NULL, error));
    return store;
}

/* A message and its place in a queue, as one journal; returns the number of its last record. */
static uint64_t give_message(struct store *store, struct fixture_journal *journal, uint64_t number, size_t size) {
    char *payload = calloc(1, size + 1);
    memset(payload, 'x', size);
    WRITE(journal, .type = RECORD_MESSAGE, .message = number,
          .publication = {.topic = {"t", 1}, .payload = {payload, size}});
    WRITE(journal, .type = RECORD_QUEUED, .session = 1, .position = number, .message = number);
    free(payload);
    const struct broker_journal taken = fixture_take(journal);
    store_give(store, &taken);
    return journal->last;
}

/* How many messages the next start would be told of, each with its place. */
static size_t count_messages(const char *dir) {
    struct fixture_dump dump = {0};
    size_t messages = 0, queued = 0;
    struct store *store = store_open(dir, STORE_SYNC_OFF, error);
    assert_string_equal(error, "");
    dump.stream = open_memstream(&dump.text, &dump.size);
    assert_true(store_load(store, fixture_print, &dump, &dump.first_number, error));
    fclose(dump.stream);
    for (const char *at = dump.text; *at != '\0'; at = strchr(at, '\n') + 1) {
        messages += atoi(at) == RECORD_MESSAGE;
        queued += atoi(at) == RECORD_QUEUED;
    }
    assert_int_equal(messages, queued);
    free(dump.text);
    store_close(store);
    return messages;
}

/* ---- a disk that works ---- */

static void what_is_durable_survives_a_crash(void **state) {
    (void)state;
    for (enum store_sync sync = STORE_SYNC_FULL; sync <= STORE_SYNC_NORMAL; sync++) {
        struct store *store = start(sync);
        struct fixture_journal journal = {0};
        char copy[160];
        await(store, is_durable, give_message(store, &journal, 1, 10));
        snprintf(copy, sizeof(copy), "%s/copy-%d", fixture_dir, sync);
        fixture_copy(copy);
        assert_int_equal(count_messages(copy), 1);
        store_close(store);
        fixture_remove(NULL);
        fixture_make(NULL);
    }
}

static void what_waits_goes_in_one_commit(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    uint64_t last = 0;
    for (uint64_t i = 1; i <= 500; i++)
        last = give_message(store, &journal, i, 10);
    const struct store_state after = await(store, is_durable, last);
    assert_int_equal(after.records, 1000);
    assert_true(after.commits < 100);
    assert_int_equal(after.pending_bytes, 0);
    uint64_t counted = 0;
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        counted += after.commit_buckets[i];
    assert_int_equal(counted, after.commits);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 500);
}

static void off_calls_all_durable_at_once_and_commits_within_a_second(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_OFF);
    struct fixture_journal journal = {0};
    struct store_state now;
    const uint64_t last = give_message(store, &journal, 1, 10);
    store_read_state(store, &now);
    assert_int_equal(now.durable, last);
    while (now.commits == 0) {
        assert_int_equal(sem_wait(&news), 0);
        store_read_state(store, &now);
    }
    char copy[160];
    snprintf(copy, sizeof(copy), "%s/copy", fixture_dir);
    fixture_copy(copy);
    assert_int_equal(count_messages(copy), 1);
    store_close(store);
}

static void stopping_writes_all_and_empties_the_log(void **state) {
    (void)state;
    for (enum store_sync sync = STORE_SYNC_FULL; sync <= STORE_SYNC_OFF; sync++) {
        struct store *store = start(sync);
        struct fixture_journal journal = {0};
        for (uint64_t i = 1; i <= 3000; i++)
            give_message(store, &journal, i, 10);
        assert_int_equal(store_stop(store, 20000), STORE_STOPPED_ALL);
        store_close(store);
        char path[160];
        snprintf(path, sizeof(path), "%s-wal", fixture_file);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(count_messages(fixture_data), 3000);
        fixture_remove(NULL);
        fixture_make(NULL);
    }
}

static void log_stays_bounded_in_operation(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_OFF);
    struct fixture_journal journal = {0};
    uint64_t wal_max = 0;
    for (uint64_t i = 1; i <= 60; i++) { /* 120 MB */
        const uint64_t last = give_message(store, &journal, i, 2000000);
        WRITE(&journal, .type = RECORD_DONE, .session = 1, .position = i);
        WRITE(&journal, .type = RECORD_MESSAGE_END, .message = i);
        const struct store_state now = await(store, is_durable, last);
        if (now.wal_bytes > wal_max) wal_max = now.wal_bytes;
    }
    give_message(store, &journal, 61, 10);
    store_close(store);
    assert_true(wal_max > 0);
    assert_true(wal_max < 48u * 1024 * 1024);
}

static void journal_of_many_pages_is_one_transaction(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    WRITE(&journal, .type = RECORD_RESET);
    for (uint64_t i = 1; i <= 20000; i++) {
        WRITE(&journal, .type = RECORD_MESSAGE, .message = i, .publication = {.payload = {error, STORE_ERROR_MAX}});
        WRITE(&journal, .type = RECORD_QUEUED, .session = 1, .position = i, .message = i);
    }
    const struct broker_journal taken = fixture_take(&journal);
    assert_true(taken.size > 8u * 1024 * 1024);
    store_give(store, &taken);
    const struct store_state now = await(store, is_durable, journal.last);
    assert_int_equal(now.commits, 1);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 20000);
}

/* ---- a disk that fails ---- */

static const int failures[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC,
                               SQLITE_BUSY, SQLITE_READONLY,    SQLITE_CORRUPT};

/* Each operation in turn fails once, or for ten operations: nothing is lost, nothing is called durable before it is,
 * and the store says that it fails and that it no longer does. */
static void failure_at_any_step_loses_nothing(void **state) {
    (void)state;
    unsigned long told = 0;
    for (size_t code = 0; code < sizeof(failures) / sizeof(failures[0]); code++) {
        unsigned long at = 0, operations;
        for (const unsigned long length = code % 2 == 0 ? 1 : 10;; at++) {
            struct store *store = start(STORE_SYNC_FULL);
            struct fixture_journal journal = {0};
            await(store, is_durable, give_message(store, &journal, 1, 10));
            failing_disk_set(at, at + length, failures[code]);
            const uint64_t last = give_message(store, &journal, 2, 20000);
            struct store_state now = await(store, is_durable_or_failing, last);
            if (now.failing) {
                told++;
                assert_int_not_equal(now.reason[0], '\0');
            }
            await(store, is_durable, last);
            now = await(store, is_well, 0);
            assert_int_equal(now.losses, 0);
            operations = failing_disk_operations();
            failing_disk_set(0, 0, 0);
            store_close(store);
            assert_int_equal(count_messages(fixture_data), 2);
            fixture_remove(NULL);
            fixture_make(NULL);
            if (at >= operations) break;
        }
        assert_true(at > 3);
    }
    assert_true(told > 20);
}

static void reason_names_the_disk_and_the_way_out(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    failing_disk_set(0, ULONG_MAX, SQLITE_FULL);
    const uint64_t last = give_message(store, &journal, 1, 10);
    const struct store_state now = await(store, is_failing, 0);
    assert_non_null(strstr(now.reason, "is on a full disk: make room there"));
    assert_int_equal(now.durable, 0);
    assert_true(now.failures > 0);
    assert_true(now.pending_bytes > 0);
    failing_disk_set(0, 0, 0);
    await(store, is_durable, last);
    await(store, is_well, 0);
    store_close(store);
}

static void stopping_with_a_full_disk_ends_in_time_and_says_so(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    await(store, is_durable, give_message(store, &journal, 1, 10));
    failing_disk_set(0, ULONG_MAX, SQLITE_FULL);
    give_message(store, &journal, 2, 10);
    await(store, is_failing, 0);
    assert_int_equal(store_stop(store, 300), STORE_STOPPED_SHORT);
    failing_disk_set(0, 0, 0);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

static void failed_checkpoint_is_a_failure_that_passes(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    uint64_t last = 0;
    struct store_state now = {0};
    for (uint64_t i = 1; now.wal_bytes < 14u * 1024 * 1024; i++)
        now = await(store, is_durable, last = give_message(store, &journal, i, 500000));
    failing_disk_set(2000, ULONG_MAX, SQLITE_IOERR_WRITE); /* the commit has fewer pages, the checkpoint more */
    last = give_message(store, &journal, 1000, 3000000);
    now = await(store, is_failing, 0);
    assert_int_equal(now.durable, last);
    failing_disk_set(0, 0, 0);
    await(store, is_well, 0);
    store_close(store);
}

/* ---- a crash at any step ---- */

static unsigned long crash_at;
static bool crash_copied;

static void copy_if_due(unsigned long operation) {
    char command[256];
    if (operation != crash_at) return;
    snprintf(command, sizeof(command), "rm -rf %s/crash; cp -r %s %s/crash", fixture_dir, fixture_data, fixture_dir);
    crash_copied = system(command) == 0;
}

static void crash_at_any_step_leaves_all_or_nothing_of_a_journal(void **state) {
    (void)state;
    size_t before = 0, after = 0;
    for (crash_at = 0;; crash_at++) {
        struct store *store = start(STORE_SYNC_FULL);
        struct fixture_journal journal = {0};
        char crash[128];
        await(store, is_durable, give_message(store, &journal, 1, 10));
        crash_copied = false;
        failing_disk_set(0, 0, 0);
        failing_disk.before = copy_if_due;
        WRITE(&journal, .type = RECORD_MESSAGE, .message = 2, .publication = {.payload = {error, STORE_ERROR_MAX}});
        WRITE(&journal, .type = RECORD_QUEUED, .session = 1, .position = 2, .message = 2);
        give_message(store, &journal, 3, 9000);
        assert_int_equal(store_stop(store, 20000), STORE_STOPPED_ALL); /* with its checkpoint */
        failing_disk.before = NULL;
        store_close(store);
        snprintf(crash, sizeof(crash), "%s/crash", fixture_dir);
        if (!crash_copied) break;
        const size_t messages = count_messages(crash);
        assert_true(messages == 1 || messages == 3);
        before += messages == 1;
        after += messages == 3;
        fixture_remove(NULL);
        fixture_make(NULL);
    }
    assert_true(before > 2);
    assert_true(after > 2);
}

static sem_t answers;

static void hang(unsigned long operation) {
    if (operation == 0) sem_wait(&answers);
}

static void disk_that_does_not_answer_is_failing_until_it_does(void **state) {
    (void)state;
    struct store_state now;
    struct fixture_journal journal = {0};
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    store->hangs_ms = 20;
    assert_true(store_start(store, wake, NULL, error));
    sem_init(&answers, 0, 0);
    failing_disk_set(0, 0, 0);
    failing_disk.before = hang;
    const uint64_t last = give_message(store, &journal, 1, 10);
    do { /* nobody wakes us */
        usleep(1000);
        store_read_state(store, &now);
    } while (!now.failing);
    assert_non_null(strstr(now.reason, "the disk has not answered for 0 s: if that lasts, replace it"));
    assert_true(now.durable < last);
    failing_disk.before = NULL;
    sem_post(&answers);
    await(store, is_durable, last);
    await(store, is_well, 0);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

/* ---- another file than the one that was written ---- */

static bool replaced;

/* In the storage thread, so that no attempt is under way meanwhile. */
static void replace_folder(unsigned long operation) {
    char aside[128];
    (void)operation;
    if (replaced) return;
    snprintf(aside, sizeof(aside), "%s/aside", fixture_dir);
    replaced = rename(fixture_data, aside) == 0 && mkdir(fixture_data, 0700) == 0;
}

static void file_that_was_replaced_is_filled_anew(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    await(store, is_durable, give_message(store, &journal, 1, 10));
    replaced = false;
    failing_disk.before = replace_folder;
    failing_disk_set(0, ULONG_MAX, SQLITE_IOERR_WRITE);
    give_message(store, &journal, 2, 10);
    await(store, is_failing, 0);
    assert_true(replaced);
    failing_disk_set(0, 0, 0);
    failing_disk.before = NULL;
    struct store_state now = await(store, has_lost, 1);
    now = await(store, is_well, 0);
    const uint64_t void_number = give_message(store, &journal, 3, 10); /* was under way when the loss was told */
    WRITE(&journal, .type = RECORD_RESET);
    give_message(store, &journal, 4, 10);
    now = await(store, is_durable, journal.last);
    assert_true(now.durable > void_number);
    assert_int_equal(now.losses, 1);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

/* With a disk that works: nothing fails, and all would go into a file that nobody finds any more. */
static void file_that_was_taken_away_is_filled_anew(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    char command[256];
    await(store, is_durable, give_message(store, &journal, 1, 10));
    snprintf(command, sizeof(command), "mv %s/* %s/", fixture_data, fixture_dir);
    assert_int_equal(system(command), 0);
    const uint64_t void_number = give_message(store, &journal, 2, 10);
    assert_true(await(store, has_lost, 1).durable < void_number);
    WRITE(&journal, .type = RECORD_RESET);
    await(store, is_durable, give_message(store, &journal, 3, 10));
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

static void what_follows_a_loss_is_void_until_all_is_given_anew(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct broker_journal broken = {.bytes = calloc(1, 7), .size = 7, .last = 1};
    store_give(store, &broken);
    await(store, has_lost, 1);
    await(store, is_well, 0);
    struct fixture_journal journal = {.last = 1};
    give_message(store, &journal, 1, 10);
    assert_int_equal(store_stop(store, 10000), STORE_STOPPED_SHORT);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 0);
}

static void records_that_contradict_the_file_ask_for_all(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct broker_journal broken = {.bytes = calloc(1, 7), .size = 7, .last = 1};
    store_give(store, &broken);
    await(store, has_lost, 1);
    struct fixture_journal journal = {.last = 1};
    WRITE(&journal, .type = RECORD_RESET);
    await(store, is_durable, give_message(store, &journal, 1, 10));
    await(store, is_well, 0);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

static void all_that_is_given_anew_takes_the_place_of_what_waits(void **state) {
    (void)state;
    struct store *store = start(STORE_SYNC_FULL);
    struct fixture_journal journal = {0};
    struct store_state now;
    failing_disk_set(0, ULONG_MAX, SQLITE_FULL);
    give_message(store, &journal, 1, 10);
    await(store, is_failing, 0);
    for (uint64_t number = 2; number < 50; number++)
        give_message(store, &journal, number, 10000);
    WRITE(&journal, .type = RECORD_RESET);
    const uint64_t last = give_message(store, &journal, 50, 10);
    store_read_state(store, &now);
    assert_true(now.pending_bytes < 1000);
    failing_disk_set(0, 0, 0);
    await(store, is_durable, last);
    store_close(store);
    assert_int_equal(count_messages(fixture_data), 1);
}

static void epoch_is_kept_without_records_and_on_a_new_file(void **state) {
    (void)state;
    uint64_t epoch = 0;
    struct store *store = start(STORE_SYNC_FULL);
    failing_disk_set(0, ULONG_MAX, SQLITE_FULL);
    store_save_epoch(store, 77);
    await(store, is_failing, 0);
    failing_disk_set(0, 0, 0);
    await(store, is_well, 0);
    assert_int_equal(store_stop(store, 10000), STORE_STOPPED_ALL);
    store_close(store);
    store_close(fixture_open(STORE_SYNC_FULL, &epoch));
    assert_int_equal(epoch, 78);
}

/* Lower ones too: it is the time of those records, by a clock that may have been set. */
static void time_is_kept_with_records_and_alone(void **state) {
    (void)state;
    const uint64_t times[] = {5000, 9000, 3000};
    for (size_t i = 0; i < 6; i++) {
        struct fixture_journal journal = {.last = 1, .wall_ms = times[i / 2]};
        uint64_t wall_ms = 1;
        struct store *store = start(i % 2 == 0 ? STORE_SYNC_FULL : STORE_SYNC_OFF);
        give_message(store, &journal, 10, 100);
        assert_int_equal(store_stop(store, 10000), STORE_STOPPED_ALL);
        store_close(store);
        store = fixture_open(STORE_SYNC_FULL, NULL);
        assert_true(store_read_wall(store, &wall_ms, error));
        assert_int_equal(wall_ms, times[i / 2]);
        assert_true(store_start(store, wake, NULL, error));
        store_save_wall(store, wall_ms + 1);
        store_close(store);
        store = fixture_open(STORE_SYNC_FULL, NULL);
        assert_true(store_read_wall(store, &wall_ms, error));
        assert_int_equal(wall_ms, times[i / 2] + 1);
        store_close(store);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(what_is_durable_survives_a_crash),
        ON_DISK(what_waits_goes_in_one_commit),
        ON_DISK(off_calls_all_durable_at_once_and_commits_within_a_second),
        ON_DISK(stopping_writes_all_and_empties_the_log),
        ON_DISK(log_stays_bounded_in_operation),
        ON_DISK(journal_of_many_pages_is_one_transaction),
        ON_DISK(failure_at_any_step_loses_nothing),
        ON_DISK(reason_names_the_disk_and_the_way_out),
        ON_DISK(stopping_with_a_full_disk_ends_in_time_and_says_so),
        ON_DISK(failed_checkpoint_is_a_failure_that_passes),
        ON_DISK(crash_at_any_step_leaves_all_or_nothing_of_a_journal),
        ON_DISK(disk_that_does_not_answer_is_failing_until_it_does),
        ON_DISK(file_that_was_replaced_is_filled_anew),
        ON_DISK(file_that_was_taken_away_is_filled_anew),
        ON_DISK(what_follows_a_loss_is_void_until_all_is_given_anew),
        ON_DISK(records_that_contradict_the_file_ask_for_all),
        ON_DISK(all_that_is_given_anew_takes_the_place_of_what_waits),
        ON_DISK(epoch_is_kept_without_records_and_on_a_new_file),
        ON_DISK(time_is_kept_with_records_and_alone),
    };
    failing_disk_install();
    sem_init(&news, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
