/* The virtual disk holds what records make of it, and sees records that do not fit. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "tests/sim/disk.h"

static void commit(struct disk *disk, const struct record *records, size_t count) {
    struct record_buffer buffer = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(record_write(&buffer, &records[i]), 0);
    disk_commit(disk, buffer.bytes, buffer.size);
    free(buffer.bytes);
}

#define COMMIT(disk, ...)                                                                                              \
    do {                                                                                                               \
        const struct record records[] = {__VA_ARGS__};                                                                 \
        commit(disk, records, sizeof records / sizeof *records);                                                       \
    } while (0)

#define SESSION(number)                                                                                                \
    { .type = RECORD_SESSION, .session = (number), .client_id = {"c", 1}, .expiry_s = 1 }
#define MESSAGE(number)                                                                                                \
    {                                                                                                                  \
        .type = RECORD_MESSAGE, .message = (number), .publication = {.topic = {"t", 1} }                               \
    }
#define QUEUED(of, at, what)                                                                                           \
    { .type = RECORD_QUEUED, .session = (of), .position = (at), .message = (what), .qos = 1 }

struct seen {
    struct record records[16];
    size_t count;
};

static void see(void *context, const struct record *record) {
    struct seen *seen = context;
    seen->records[seen->count++] = *record;
}

static void assert_sound(struct disk *disk, bool sound) {
    char why[DISK_WHY];
    assert_int_equal(disk_is_sound(disk, why), sound);
    disk_free(disk);
}

static void records_are_read_in_the_order_of_restore(void **state) {
    (void)state;
    struct disk *disk = disk_new();
    struct seen seen = {0};
    COMMIT(disk, MESSAGE(9), SESSION(300), SESSION(2), QUEUED(300, 20, 9), QUEUED(300, 11, 9), QUEUED(2, 400, 9),
           {.type = RECORD_RETAINED, .publication = {.topic = {"r", 1}}},
           {.type = RECORD_SUBSCRIPTION, .session = 2, .filter = {"f", 1}},
           {.type = RECORD_RECEIVED, .session = 2, .packet_id = 7});
    assert_int_equal(disk_read(disk, see, &seen), 401);
    static const enum record_type order[] = {RECORD_SESSION, RECORD_SESSION,  RECORD_SUBSCRIPTION,
                                             RECORD_MESSAGE, RECORD_QUEUED,   RECORD_QUEUED,
                                             RECORD_QUEUED,  RECORD_RECEIVED, RECORD_RETAINED};
    assert_int_equal(seen.count, 9);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(seen.records[i].type, order[i]);
    assert_int_equal(seen.records[4].position, 400);
    assert_int_equal(seen.records[5].position, 11);
    assert_int_equal(seen.records[6].position, 20);
    assert_sound(disk, true);
}

static void changes_and_ends_are_applied(void **state) {
    (void)state;
    struct disk *disk = disk_new();
    struct seen seen = {0};
    COMMIT(disk, SESSION(1), MESSAGE(2), QUEUED(1, 3, 2));
    COMMIT(disk, {.type = RECORD_SENT, .session = 1, .position = 3, .packet_id = 5});
    COMMIT(disk, {.type = RECORD_RELEASED, .session = 1, .position = 3}, {.type = RECORD_MESSAGE_END, .message = 2});
    disk_read(disk, see, &seen);
    assert_int_equal(seen.count, 2);
    assert_true(seen.records[1].released);
    assert_int_equal(seen.records[1].packet_id, 5);
    assert_int_equal(seen.records[1].message, 0);
    COMMIT(disk, {.type = RECORD_SESSION_END, .session = 1});
    assert_int_equal(disk_count(disk, RECORD_QUEUED), 0);
    COMMIT(disk, {.type = RECORD_RESET}, SESSION(8));
    assert_int_equal(disk_count(disk, RECORD_SESSION), 1);
    assert_sound(disk, true);
}

static void records_that_do_not_fit_are_seen(void **state) {
    (void)state;
    struct disk *disk = disk_new();
    COMMIT(disk, SESSION(1), QUEUED(1, 3, 2)); /* no such message */
    assert_sound(disk, false);
    disk = disk_new();
    COMMIT(disk, MESSAGE(2)); /* nobody holds it */
    assert_sound(disk, false);
    disk = disk_new();
    COMMIT(disk, {.type = RECORD_RECEIVED, .session = 4, .packet_id = 1}); /* no such session */
    assert_sound(disk, false);
    disk = disk_new();
    COMMIT(disk, SESSION(1), {.type = RECORD_DONE, .session = 1, .position = 3});
    assert_sound(disk, false);
    disk = disk_new();
    COMMIT(disk, SESSION(1), {.type = RECORD_SENT, .session = 1, .position = 3, .packet_id = 1});
    assert_sound(disk, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_in_the_order_of_restore),
        cmocka_unit_test(changes_and_ends_are_applied),
        cmocka_unit_test(records_that_do_not_fit_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
