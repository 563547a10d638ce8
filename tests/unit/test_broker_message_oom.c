/* Messages that are borrowed until somebody holds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "broker/message.h"
#include "oom.h"

static struct message borrowed(char *topic, const char *payload) {
    return (struct message){.topic = topic,
                            .topic_size = (uint32_t)strlen(topic),
                            .payload = (const uint8_t *)payload,
                            .payload_size = (uint32_t)strlen(payload),
                            .qos = 1,
                            .expires_at_ms = UINT64_MAX};
}

static void all_who_hold_a_borrowed_message_share_one_copy(void **state) {
    (void)state;
    char topic[] = "a/b";
    struct message message = borrowed(topic, "payload");
    struct message *one = message_ref(&message), *two = message_ref(&message);

    assert_non_null(one);
    assert_ptr_equal(one, two);
    assert_ptr_not_equal(one, &message);
    message_return(&message);
    topic[0] = 'x'; /* the caller's bytes are void */
    assert_memory_equal(one->topic, "a/b", 3);
    assert_memory_equal(one->payload, "payload", 7);
    message_unref(one);
    assert_int_equal(two->references, 1);
    message_unref(two);
}

static void a_borrowed_message_that_nobody_holds_costs_no_memory(void **state) {
    (void)state;
    char topic[] = "a/b";
    struct message message = borrowed(topic, "payload");
    unsigned long before = shortage.allocations;

    message_return(&message);
    assert_int_equal(shortage.allocations, before);
}

static void without_memory_there_is_no_reference(void **state) {
    (void)state;
    char topic[] = "a/b";
    struct message message = borrowed(topic, "payload");

    shortage_after(0);
    assert_null(message_ref(&message));
    assert_true(message_keep(&message));
    shortage_after(0);
    struct message *held = message_ref(&message);
    shortage_over();
    assert_non_null(held);
    message_return(&message);
    message_unref(held);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_who_hold_a_borrowed_message_share_one_copy),
        cmocka_unit_test(a_borrowed_message_that_nobody_holds_costs_no_memory),
        cmocka_unit_test(without_memory_there_is_no_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
