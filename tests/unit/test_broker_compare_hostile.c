/* A peer that says what is not so of the retained messages it holds, or answers what it was not asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/digest.h"
#include "broker/stock.h"
#include "stage.h"

enum { RETAINED = 40 };

/* Frames as they are sent; their bytes are the stage's until the next call. */
static bool next_frame(struct stage *stage, broker_handle link, struct frame *frame) {
    static uint8_t bytes[1 << 16];
    struct broker_span span;
    if (!broker_link_output(broker_of(stage), stage->world.now_ms, link, &span)) return false;
    assert_true(span.size <= sizeof bytes);
    memcpy(bytes, span.bytes, span.size);
    assert_int_equal(frame_read(bytes, span.size, frame), FRAME_OK);
    broker_link_written(broker_of(stage), stage->world.now_ms, link);
    return true;
}

static bool next_of_type(struct stage *stage, broker_handle link, enum frame_type type, struct frame *frame) {
    while (next_frame(stage, link, frame))
        if (frame->type == type) return true;
    return false;
}

static void say_digests(struct stage *stage, broker_handle link, enum frame_type type,
                        const struct frame_digests *digests) {
    struct frame_out out = {0};
    frame_write_digests(&out, type, digests);
    give(stage, link, &out);
    frame_out_deinit(&out);
}

static void say_join(struct stage *stage, broker_handle link, const char *filter) {
    struct frame_out out = {0};
    frame_begin_names(&out, FRAME_JOIN, 0);
    frame_add_name(&out, filter, strlen(filter));
    frame_end_items(&out);
    give(stage, link, &out);
    frame_out_deinit(&out);
}

static struct stage *retaining(void) {
    struct stage *stage = stage_new();
    for (int i = 0; i < RETAINED; i++) {
        char topic[16];
        snprintf(topic, sizeof topic, "r/%d", i);
        client_publish(&stage->world, stage->says, topic, "x", 0, true);
    }
    world_settle(&stage->world);
    return stage;
}

static int snapshots_in(struct stage *stage, broker_handle link) {
    struct frame frame;
    struct publication publication;
    int count = 0;
    while (next_of_type(stage, link, FRAME_PUBLISH, &frame))
        while (frame_next_publication(&frame, &publication))
            count += publication.snapshot;
    return count;
}

static void digests_that_do_not_fit_are_malformed(void **state) {
    (void)state;
    static uint8_t bytes[(STOCK_NODES_MAX + 1) * DIGEST_NODE_SIZE];
    static const struct {
        enum frame_type type;
        struct frame_digests digests;
        uint64_t node;
    } cases[] = {
        {FRAME_HOLDS, {.sums = {bytes, 2 * DIGEST_SUMS_SIZE}}, 0},
        {FRAME_HOLDS, {.items = {bytes, (DIGEST_LIST_MAX + 1) * DIGEST_ITEM_SIZE}}, 0},
        {FRAME_COMPARE, {.nodes = {bytes, DIGEST_NODE_SIZE}}, 0},
        {FRAME_COMPARE, {.nodes = {bytes, DIGEST_NODE_SIZE}}, 2},
        {FRAME_COMPARE, {.nodes = {bytes, DIGEST_NODE_SIZE}}, 1ull << 60},
        {FRAME_COMPARE, {.nodes = {bytes, sizeof bytes}}, DIGEST_ROOT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage *stage = retaining();
        broker_handle link = greeted(stage, 2);
        for (size_t at = 0; at < sizeof bytes; at += DIGEST_NODE_SIZE)
            digest_put(bytes + at, cases[i].node);
        say_digests(stage, link, cases[i].type, &cases[i].digests);
        assert_bye(stage, link, BYE_MALFORMED);
        stage_end(stage);
    }
}

/* What is not known any more may still be on its way; what was not asked may not. */
static void answers_to_no_question_are_malformed(void **state) {
    (void)state;
    static const uint8_t bytes[2 * DIGEST_SUMS_SIZE];
    static const struct frame_digests answers[] = {
        {.number = 1, .sums = {bytes, 2 * DIGEST_SUMS_SIZE}},
        {.number = 1, .sums = {bytes, DIGEST_SUMS_SIZE}, .wanted = {bytes, 1}},
        {.number = 1, .wanted = {bytes, 1}},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct stage *stage = retaining();
        struct frame frame;
        broker_handle link = greeted(stage, 2);
        say_digests(stage, link, FRAME_COMPARED, &answers[i]);
        assert_false(broker_link_ended(broker_of(stage), link));
        say_digests(stage, link, FRAME_HOLDS, &(struct frame_digests){.number = 1, .expected = 1});
        say_join(stage, link, "r/#");
        assert_true(next_of_type(stage, link, FRAME_COMPARE, &frame));
        assert_int_equal(frame.digests.nodes.size, DIGEST_NODE_SIZE);
        assert_int_equal(digest_get(frame.digests.nodes.bytes), DIGEST_ROOT);
        say_digests(stage, link, FRAME_COMPARED, &answers[i]);
        assert_bye(stage, link, BYE_MALFORMED);
        stage_end(stage);
    }
}

/* It says now that it holds this, now that, and wants all of it and more: it gets each once. */
static void a_liar_gets_what_there_is(void **state) {
    (void)state;
    static uint8_t lies[DIGEST_SUMS_SIZE], all[512];
    memset(lies, 7, sizeof lies);
    memset(all, 255, sizeof all);
    struct stage *stage = retaining();
    broker_handle link = greeted(stage, 2);
    int offered = 0, got = 0;
    say_digests(stage, link, FRAME_HOLDS,
                &(struct frame_digests){.number = 9, .expected = 1, .sums = {lies, sizeof lies}});
    say_join(stage, link, "r/#");
    for (struct frame frame; next_frame(stage, link, &frame);) {
        struct publication publication;
        if (frame.type == FRAME_PUBLISH)
            while (frame_next_publication(&frame, &publication))
                got += publication.snapshot;
        if (frame.type != FRAME_COMPARE || frame.digests.items.size == 0) continue;
        size_t count = frame.digests.items.size / DIGEST_ITEM_SIZE;
        offered += (int)count;
        assert_int_equal(frame.digests.nodes.size, 0);
        say_digests(stage, link, FRAME_COMPARED,
                    &(struct frame_digests){.number = 9, .wanted = {all, (count + 7) / 8}});
    }
    assert_int_equal(offered, RETAINED);
    assert_int_equal(got, RETAINED);
    assert_false(broker_link_ended(broker_of(stage), link));
    stage_end(stage);
}

/* It holds by now what it has acknowledged since it said what it holds. */
static void what_was_told_too_early_is_asked_again(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        struct stage *stage = retaining();
        struct frame_out out = {0};
        struct frame frame;
        broker_handle link = greeted(stage, 2);
        say_join(stage, link, "r/1");
        assert_int_equal(snapshots_in(stage, link), 1);
        frame_write_ack(&out, 2);
        give(stage, link, &out);
        frame_out_deinit(&out);
        uint8_t item[DIGEST_ITEM_SIZE] = {0}; /* of some other topic */
        say_digests(stage, link, FRAME_HOLDS,
                    &(struct frame_digests){.number = 1, .expected = early ? 1 : 2, .items = {item, sizeof item}});
        say_join(stage, link, "r/+");
        if (early) {
            assert_true(next_of_type(stage, link, FRAME_COMPARE, &frame));
            assert_int_equal(frame.digests.nodes.size, DIGEST_NODE_SIZE);
        }
        assert_int_equal(snapshots_in(stage, link), early ? 0 : RETAINED);
        stage_end(stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_that_do_not_fit_are_malformed),
        cmocka_unit_test(answers_to_no_question_are_malformed),
        cmocka_unit_test(a_liar_gets_what_there_is),
        cmocka_unit_test(what_was_told_too_early_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
