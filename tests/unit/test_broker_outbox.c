/* The queue to one peer: numbers, acknowledgements, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/outbox.h"

#include <stdio.h>
#include <string.h>

static struct message *message_of(int number, uint8_t qos, bool retain) {
    char text[16];
    struct message template = {
        .qos = qos, .retain = retain, .topic = "t", .topic_size = 1, .payload = (const uint8_t *)text};
    template.payload_size = (uint32_t)snprintf(text, sizeof text, "%d", number);
    struct message *message = message_new(&template);
    assert_non_null(message);
    return message;
}

static enum outbox_result put(struct outbox *outbox, int number, uint8_t qos, bool retain, bool snapshot,
                              uint64_t bytes_max) {
    struct message *message = message_of(number, qos, retain);
    enum outbox_result result = outbox_put(outbox, message, snapshot, bytes_max);
    message_unref(message);
    return result;
}

static uint64_t sum;

static void on_done(void *context, uint64_t first, uint64_t below) {
    (void)context, (void)first, (void)below;
}

static int number_of(const struct outbox_entry *entry) {
    char text[16] = "";
    if (!entry) return -1;
    if (!entry->message) return -2;
    memcpy(text, entry->message->payload, entry->message->payload_size);
    int number = -3;
    sscanf(text, "%d", &number);
    return number;
}

static void send(struct outbox *outbox, int from, int to) {
    for (int i = from; i <= to; i++) {
        assert_int_equal(number_of(outbox_peek(outbox)), i);
        outbox_sent(outbox);
    }
}

static void order_holds_while_the_ring_grows_and_turns(void **state) {
    (void)state;
    struct outbox outbox;
    int in = 0, out = 0;
    outbox_init(&outbox, &sum, on_done, NULL);
    for (int round = 2; round < 60; round++) {
        for (int i = 0; i < round; i++)
            assert_int_equal(put(&outbox, ++in, 1, false, false, UINT32_MAX), OUTBOX_OK);
        int until = out + round * 3 / 4;
        send(&outbox, out + 1, until);
        out = until;
        assert_true(outbox_acknowledge(&outbox, (uint64_t)out)); /* all but the last */
        assert_int_equal(outbox_count(&outbox), in - out + 1);
    }
    send(&outbox, out + 1, in);
    assert_null(outbox_peek(&outbox));
    assert_true(outbox_acknowledge(&outbox, (uint64_t)in + 1));
    assert_int_equal(outbox.bytes, 0);
    outbox_deinit(&outbox);
}

static void a_rewind_sends_again_what_was_not_acknowledged(void **state) {
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox, &sum, on_done, NULL);
    for (int i = 1; i <= 9; i++)
        put(&outbox, i, i % 3 ? 1 : 0, false, false, UINT32_MAX);
    send(&outbox, 1, 7);
    assert_true(outbox_acknowledge(&outbox, 3));
    outbox_rewind(&outbox);
    send(&outbox, 3, 4);
    /* An acknowledgement of the first sending, come late, is as good. */
    assert_true(outbox_acknowledge(&outbox, 7));
    send(&outbox, 7, 9);
    outbox_deinit(&outbox);
}

static void what_was_never_sent_cannot_be_acknowledged(void **state) {
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox, &sum, on_done, NULL);
    for (int i = 1; i <= 5; i++)
        put(&outbox, i, 1, false, false, UINT32_MAX);
    send(&outbox, 1, 2);
    assert_false(outbox_acknowledge(&outbox, 4));
    assert_true(outbox_acknowledge(&outbox, 3));
    assert_true(outbox_acknowledge(&outbox, 1)); /* old news */
    assert_int_equal(outbox_count(&outbox), 3);
    outbox_deinit(&outbox);
}

static void limits_are_by_quality_of_service(void **state) {
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox, &sum, on_done, NULL);
    struct message *message = message_of(1, 0, false);
    uint64_t limit = 2 * message_cost(message);
    message_unref(message);
    assert_int_equal(put(&outbox, 1, 0, false, false, limit), OUTBOX_OK);
    assert_int_equal(put(&outbox, 2, 0, false, false, limit), OUTBOX_OK);
    assert_int_equal(put(&outbox, 3, 0, false, false, limit), OUTBOX_FULL);
    assert_int_equal(put(&outbox, 3, 0, true, false, limit), OUTBOX_OK);
    assert_int_equal(put(&outbox, 4, 1, false, false, limit), OUTBOX_OK);
    assert_int_equal(put(&outbox, 5, 2, false, false, limit), OUTBOX_FULL);
    assert_int_equal(put(&outbox, 5, 0, true, true, limit), OUTBOX_OK); /* a snapshot */
    assert_int_equal(outbox.bytes, 2 * limit);
    assert_true(outbox.snapshot_bytes > 0);
    send(&outbox, 1, 5);
    outbox_acknowledge(&outbox, 6);
    assert_int_equal(outbox.bytes + outbox.snapshot_bytes, 0);
    outbox_deinit(&outbox);
}

static void a_restart_gives_up_what_may_have_arrived_at_qos_0(void **state) {
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox, &sum, on_done, NULL);
    put(&outbox, 1, 0, false, false, UINT32_MAX);
    put(&outbox, 2, 1, false, false, UINT32_MAX);
    put(&outbox, 3, 0, true, false, UINT32_MAX);
    put(&outbox, 4, 0, false, false, UINT32_MAX);
    send(&outbox, 1, 3);
    outbox_forget_sent_qos0(&outbox);
    outbox_rewind(&outbox);
    assert_int_equal(number_of(outbox_peek(&outbox)), -2);
    outbox_sent(&outbox);
    send(&outbox, 2, 4);
    outbox_deinit(&outbox);
}

static void clearing_keeps_the_numbering(void **state) {
    (void)state;
    struct outbox outbox;
    outbox_init(&outbox, &sum, on_done, NULL);
    for (int i = 1; i <= 3; i++)
        put(&outbox, i, 1, false, false, UINT32_MAX);
    send(&outbox, 1, 1);
    assert_int_equal(outbox_clear(&outbox), 3);
    assert_int_equal(outbox.base, 4);
    put(&outbox, 4, 1, false, false, UINT32_MAX);
    send(&outbox, 4, 4);
    assert_int_equal(outbox.next, 5);
    outbox_deinit(&outbox);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_holds_while_the_ring_grows_and_turns),
        cmocka_unit_test(a_rewind_sends_again_what_was_not_acknowledged),
        cmocka_unit_test(what_was_never_sent_cannot_be_acknowledged),
        cmocka_unit_test(limits_are_by_quality_of_service),
        cmocka_unit_test(a_restart_gives_up_what_may_have_arrived_at_qos_0),
        cmocka_unit_test(clearing_keeps_the_numbering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
