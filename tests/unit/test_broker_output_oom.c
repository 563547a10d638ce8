/* What waits to be written to a client: in order, where it was, and at a cost that the limit on its bytes bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "broker/output.h"
#include "mqtt_client.h"
#include "oom.h"

enum { HEAD_SIZE = 20 };

static struct message *message_of(size_t payload_size) {
    uint8_t *payload = __real_malloc(payload_size);
    memset(payload, 'p', payload_size);
    struct message *message = message_new(
        &(struct message){.topic = "t", .topic_size = 1, .payload = payload, .payload_size = (uint32_t)payload_size});
    free(payload);
    assert_non_null(message);
    return message;
}

static bool append(struct output *output, struct chunk_pool *pool, struct message *message) {
    uint8_t *head = output_append_message(output, pool, HEAD_SIZE, message, message->payload_size);
    if (head != NULL) memset(head, 'h', HEAD_SIZE);
    return head != NULL;
}

static void a_payload_by_reference_costs_little_beside_its_bytes(void **state) {
    (void)state;
    static const size_t sizes[] = {1025, 1500, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct output output = {0};
        struct chunk_pool pool = {0};
        struct message *message = message_of(sizes[i]);
        unsigned long long before = shortage.bytes;
        for (int n = 0; n < 1000; n++)
            assert_true(append(&output, &pool, message));
        assert_true(output.bytes == 1000 * (HEAD_SIZE + sizes[i]));
        assert_true(shortage.bytes - before < output.bytes / 4);
        output_deinit(&output, &pool);
        chunk_pool_deinit(&pool);
        message_unref(message);
    }
}

/* Takes everything in writes of an odd size. */
static void written_out(struct output *output, struct chunk_pool *pool, char *text) {
    struct broker_span spans[4];
    size_t size = 0, count;
    while ((count = output_spans(output, spans, 4)) > 0) {
        size_t take = 0;
        for (size_t i = 0; i < count && take < 77; i++) {
            size_t part = spans[i].size < 77 - take ? spans[i].size : 77 - take;
            memcpy(text + size + take, spans[i].bytes, part);
            take += part;
        }
        size += take;
        output_written(output, pool, take);
    }
    text[size] = '\0';
}

static void any_append_may_fail_and_leaves_what_was_there(void **state) {
    (void)state;
    static char got[40000], expected[40000];
    struct message *message = message_of(2000);
    for (long nth = 0;; nth++) {
        struct output output = {0};
        struct chunk_pool pool = {0};
        char *end = expected;
        shortage_after(nth);
        for (int n = 0; n < 8; n++) {
            if (output_append(&output, &pool, "packet", 6) == 0) memcpy(end, "packet", 6), end += 6;
            if (!append(&output, &pool, message)) continue;
            memset(end, 'h', HEAD_SIZE);
            memset(end + HEAD_SIZE, 'p', 2000);
            end += HEAD_SIZE + 2000;
        }
        shortage_over();
        *end = '\0';
        assert_true(output.bytes == (uint64_t)(end - expected));
        written_out(&output, &pool, got);
        assert_string_equal(got, expected);
        assert_true(output.bytes == 0);
        assert_null(output.first);
        chunk_pool_deinit(&pool);
        if (!shortage.failed) break;
    }
    assert_int_equal(message->references, 1);
    message_unref(message);
}

/* A publication whose user properties take a megabyte costs that once, whoever it goes to. */
static void properties_are_not_copied_for_each_subscriber(void **state) {
    enum { SUBSCRIBERS = 8, SIZE = 1000000 };
    static uint8_t bytes[SIZE + 13];
    static struct world world;
    struct client clients[SUBSCRIBERS], publisher;
    unsigned long long before;
    (void)state;

    world_begin(&world);
    for (unsigned i = 0; i < SUBSCRIBERS; i++) {
        client_connect(&world, &clients[i], i % 2 == 0 ? 5 : 4, (char[]){(char)('a' + i), 0});
        client_subscribe(&clients[i], "t", i / 2 % 2);
        clients[i].got_at = clients[i].got_size = 0;
        clients[i].unread = true;
    }
    client_connect(&world, &publisher, 5, "publisher");
    /* topic "t", packet id 1, 1,000,000 bytes of empty user properties, payload "x" */
    memcpy(bytes, (uint8_t[]){0x32, 0xc9, 0x84, 0x3d, 0, 1, 't', 0, 1, 0xc0, 0x84, 0x3d}, 12);
    for (int i = 12; i + 5 <= SIZE + 12; i += 5)
        bytes[i] = 0x26;
    before = shortage.bytes;
    say_bytes(&publisher, bytes, sizeof bytes);
    assert_in_range(shortage.bytes - before, SIZE, 3 * SIZE);
    for (unsigned i = 0; i < SUBSCRIBERS; i++) {
        clients[i].unread = false;
        client_read(&clients[i]);
        assert_in_range(clients[i].got_size, i % 2 == 0 ? SIZE : 6, i % 2 == 0 ? SIZE + 20 : 8);
        if (i % 2 == 0) assert_memory_equal(clients[i].got + clients[i].got_size - SIZE - 1, bytes + 12, SIZE);
        client_cut(&clients[i]);
    }
    client_cut(&publisher);
    world_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_payload_by_reference_costs_little_beside_its_bytes),
        cmocka_unit_test(any_append_may_fail_and_leaves_what_was_there),
        cmocka_unit_test(properties_are_not_copied_for_each_subscriber),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
