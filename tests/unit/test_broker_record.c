/* Records as bytes: what is written is read back, and damaged bytes are refused or read as something whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/record.h"

#include <stdlib.h>
#include <string.h>

#define TEXT(literal) ((struct record_text){.bytes = literal, .size = sizeof literal - 1})

static struct record_publication a_publication(void) {
    struct record_publication publication = {.topic = TEXT("plant/7/temperature"),
                                             .payload = TEXT("21.5\0\xff"),
                                             .properties = TEXT("\x01\x01"),
                                             .qos = 2,
                                             .retain = true,
                                             .expires_wall_ms = 1ull << 41};
    return publication;
}

/* Every kind, with every field that belongs to it. */
static size_t some_records(struct record *out) {
    static const uint32_t identifiers[] = {7, 268435455};
    struct record_publication retained = a_publication();
    size_t count = 0;

    retained.stamp_wall_ms = 1700000000000;
    retained.stamp_count = 3;
    memcpy(retained.stamp_origin, "0123456789abcdef", 16);
    out[count++] = (struct record){.type = RECORD_RESET};
    out[count++] = (struct record){
        .type = RECORD_SESSION, .session = 9, .client_id = TEXT("a"), .expiry_s = UINT32_MAX, .ends_wall_ms = 0};
    out[count++] = (struct record){.type = RECORD_SESSION,
                                   .session = 1ull << 40,
                                   .client_id = TEXT("sensor-7"),
                                   .user_name = TEXT("plant"),
                                   .expiry_s = 3600,
                                   .ends_wall_ms = 1700000003600,
                                   .has_will = true,
                                   .will = a_publication(),
                                   .will_delay_s = 5,
                                   .will_expiry_s = UINT64_MAX,
                                   .will_due_wall_ms = 1700000000005};
    out[count++] = (struct record){.type = RECORD_SESSION_END, .session = 9};
    out[count++] = (struct record){.type = RECORD_SUBSCRIPTION,
                                   .session = 9,
                                   .filter = TEXT("$share/g/plant/+/#"),
                                   .options = 0x2E,
                                   .identifier = 12};
    out[count++] = (struct record){.type = RECORD_SUBSCRIPTION_END, .session = 9, .filter = TEXT("#")};
    out[count++] =
        (struct record){.type = RECORD_MESSAGE, .message = 77, .publication = a_publication(), .publisher = 9};
    out[count++] = (struct record){.type = RECORD_MESSAGE_END, .message = 77};
    out[count++] = (struct record){.type = RECORD_QUEUED, .session = 9, .position = 78, .message = 77, .qos = 1};
    out[count++] = (struct record){.type = RECORD_QUEUED,
                                   .session = 9,
                                   .position = 79,
                                   .message = 0,
                                   .qos = 2,
                                   .retain = true,
                                   .released = true,
                                   .packet_id = 65535,
                                   .identifiers = {.bytes = identifiers, .size = sizeof identifiers}};
    out[count++] = (struct record){.type = RECORD_SENT, .session = 9, .position = 78, .packet_id = 1};
    out[count++] = (struct record){.type = RECORD_RELEASED, .session = 9, .position = 78};
    out[count++] = (struct record){.type = RECORD_DONE, .session = 9, .position = 78};
    out[count++] = (struct record){.type = RECORD_RECEIVED, .session = 9, .packet_id = 4};
    out[count++] = (struct record){.type = RECORD_RECEIVED_END, .session = 9, .packet_id = 4};
    out[count++] = (struct record){.type = RECORD_RETAINED, .publication = retained, .publisher = 9};
    out[count++] = (struct record){.type = RECORD_RETAINED_END, .publication = {.topic = TEXT("a/b")}};
    out[count++] = (struct record){
        .type = RECORD_TAKEN, .peer = {1, 2, 3, [15] = 255}, .peer_epoch = 5, .stream = UINT64_MAX, .expected = 1000};
    out[count++] = (struct record){.type = RECORD_TAKEN_END, .peer = {[15] = 1}};
    out[count++] = (struct record){.type = RECORD_PEER,
                                   .peer = {[15] = 2},
                                   .peer_name = TEXT("edge-2"),
                                   .peer_epoch = 6,
                                   .stream = UINT64_MAX - 1,
                                   .reserved = INT64_MAX,
                                   .ends_wall_ms = 1700000003600};
    out[count++] = (struct record){.type = RECORD_PEER_END, .peer = {[0] = 2}};
    out[count++] = (struct record){.type = RECORD_JOIN, .peer = {[1] = 3}, .filter = TEXT("plant/+/#"), .level = 2};
    out[count++] = (struct record){.type = RECORD_JOIN_END, .peer = {[1] = 3}, .filter = TEXT("#")};
    out[count++] = (struct record){.type = RECORD_OUTBOX, .peer = {[7] = 4}, .sequence = 1ull << 50, .message = 77};
    out[count++] = (struct record){.type = RECORD_OUTBOX_END, .peer = {[7] = 4}, .sequence = 1, .below = 1ull << 51};
    return count;
}

enum { RECORDS_MAX = 30 };

static void same_text(struct record_text a, struct record_text b) {
    assert_int_equal(a.size, b.size);
    if (a.size > 0) assert_memory_equal(a.bytes, b.bytes, a.size);
}

static void same_publication(const struct record_publication *a, const struct record_publication *b) {
    same_text(a->topic, b->topic);
    same_text(a->payload, b->payload);
    same_text(a->properties, b->properties);
    assert_int_equal(a->qos, b->qos);
    assert_int_equal(a->retain, b->retain);
    assert_int_equal(a->expires_wall_ms, b->expires_wall_ms);
    assert_int_equal(a->stamp_wall_ms, b->stamp_wall_ms);
    assert_int_equal(a->stamp_count, b->stamp_count);
    assert_memory_equal(a->stamp_origin, b->stamp_origin, sizeof a->stamp_origin);
}

static void same(const struct record *a, const struct record *b) {
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->session, b->session);
    assert_int_equal(a->message, b->message);
    assert_int_equal(a->position, b->position);
    same_text(a->client_id, b->client_id);
    same_text(a->user_name, b->user_name);
    assert_int_equal(a->expiry_s, b->expiry_s);
    assert_int_equal(a->ends_wall_ms, b->ends_wall_ms);
    assert_int_equal(a->has_will, b->has_will);
    same_publication(&a->will, &b->will);
    assert_int_equal(a->will_delay_s, b->will_delay_s);
    assert_true(a->will_expiry_s == b->will_expiry_s);
    assert_int_equal(a->will_due_wall_ms, b->will_due_wall_ms);
    same_text(a->filter, b->filter);
    assert_int_equal(a->options, b->options);
    assert_int_equal(a->identifier, b->identifier);
    same_publication(&a->publication, &b->publication);
    assert_int_equal(a->publisher, b->publisher);
    assert_int_equal(a->qos, b->qos);
    assert_int_equal(a->retain, b->retain);
    assert_int_equal(a->released, b->released);
    assert_int_equal(a->packet_id, b->packet_id);
    same_text(a->identifiers, b->identifiers);
    assert_memory_equal(a->peer, b->peer, sizeof a->peer);
    assert_int_equal(a->peer_epoch, b->peer_epoch);
    assert_true(a->stream == b->stream);
    assert_int_equal(a->expected, b->expected);
    same_text(a->peer_name, b->peer_name);
    assert_int_equal(a->reserved, b->reserved);
    assert_int_equal(a->level, b->level);
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->below, b->below);
}

static void every_kind_is_read_as_written(void **state) {
    struct record records[RECORDS_MAX], out;
    size_t count = some_records(records), at = 0;
    struct record_buffer buffer = {0};
    (void)state;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(record_write(&buffer, &records[i]), 0);
    for (size_t i = 0; i < count; i++) {
        size_t size = record_read(buffer.bytes + at, buffer.size - at, &out);
        enum record_type type;
        assert_int_not_equal(size, 0);
        same(&records[i], &out);
        assert_int_equal(record_peek(buffer.bytes + at, buffer.size - at, &type), size);
        assert_int_equal(type, out.type);
        at += size;
    }
    assert_int_equal(at, buffer.size);
    free(buffer.bytes);
}

static void each_kind_is_tried(void **state) {
    struct record records[RECORDS_MAX];
    size_t count = some_records(records);
    bool seen[RECORD_TYPE_MAX + 1] = {false};
    (void)state;

    for (size_t i = 0; i < count; i++)
        seen[records[i].type] = true;
    for (int type = RECORD_RESET; type <= RECORD_TYPE_MAX; type++)
        assert_true(seen[type]);
}

/* On the heap at its exact size, so that reading past the end is seen. */
static size_t read_copy(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    struct record out;
    enum record_type type;
    size_t result;

    if (size > 0) memcpy(copy, bytes, size);
    memset(&out, 0xa5, sizeof out); /* what a record does not have is zero, whatever was there */
    result = record_read(copy, size, &out);
    if (result > 0) {
        assert_int_equal(record_peek(copy, size, &type), result);
        /* What was read can be written again, into as many bytes: its views are within. */
        struct record_buffer again = {0};
        assert_in_range(result, 1, size);
        assert_int_equal(record_write(&again, &out), 0);
        assert_int_equal(again.size, result);
        assert_memory_equal(again.bytes, copy, result);
        free(again.bytes);
    }
    free(copy);
    return result;
}

static void a_record_cut_short_is_refused(void **state) {
    struct record records[RECORDS_MAX];
    size_t count = some_records(records);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        struct record_buffer buffer = {0};
        assert_int_equal(record_write(&buffer, &records[i]), 0);
        enum record_type type;
        for (size_t size = 0; size < buffer.size; size++)
            assert_int_equal(record_peek(buffer.bytes, size, &type), 0);
        for (size_t size = 0; size < buffer.size; size++) {
            uint32_t claimed = (uint32_t)size;
            assert_int_equal(read_copy(buffer.bytes, size), 0);
            if (size < sizeof claimed) continue;
            memcpy(buffer.bytes, &claimed, sizeof claimed);
            assert_int_equal(read_copy(buffer.bytes, size), 0);
            claimed = (uint32_t)buffer.size;
            memcpy(buffer.bytes, &claimed, sizeof claimed);
        }
        free(buffer.bytes);
    }
}

/* Every single bit, and bytes set to values that break sizes. */
static void a_damaged_record_is_refused_or_whole(void **state) {
    struct record records[RECORDS_MAX];
    size_t count = some_records(records);
    (void)state;

    for (size_t i = 0; i < count; i++) {
        struct record_buffer buffer = {0};
        assert_int_equal(record_write(&buffer, &records[i]), 0);
        for (size_t at = 0; at < buffer.size; at++) {
            uint8_t original = buffer.bytes[at];
            for (unsigned bit = 0; bit < 8; bit++) {
                buffer.bytes[at] = original ^ (uint8_t)(1u << bit);
                read_copy(buffer.bytes, buffer.size);
            }
            for (unsigned value = 0; value < 256; value += 51) {
                buffer.bytes[at] = (uint8_t)value;
                read_copy(buffer.bytes, buffer.size);
            }
            buffer.bytes[at] = original;
        }
        free(buffer.bytes);
    }
}

static void random_bytes_are_no_record_or_a_whole_one(void **state) {
    uint64_t random = 88172645463325252u;
    (void)state;

    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[96];
        uint32_t claimed;
        for (size_t i = 0; i < sizeof bytes; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            bytes[i] = random % 3 ? 0 : (uint8_t)(random >> 32);
        }
        claimed = (uint32_t)(random % (sizeof bytes + 1));
        memcpy(bytes, &claimed, sizeof claimed);
        bytes[4] %= RECORD_TYPE_MAX + 2;
        read_copy(bytes, sizeof bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read_as_written),
        cmocka_unit_test(each_kind_is_tried),
        cmocka_unit_test(a_record_cut_short_is_refused),
        cmocka_unit_test(a_damaged_record_is_refused_or_whole),
        cmocka_unit_test(random_bytes_are_no_record_or_a_whole_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
