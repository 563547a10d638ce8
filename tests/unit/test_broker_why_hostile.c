/* Peers that ask too much, or answer what they were not asked, or with what does not belong on a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/frames.h"
#include "whys.h"

/* Site 0 is a whole broker, 1 and 2 are played by hand. */
struct stage {
    struct world world;
    broker_handle links[SITES_MAX];
    struct frame_out out;
};

static struct broker *broker_of(struct stage *stage) {
    return stage->world.sites[0].broker;
}

static void give(struct stage *stage, int site) {
    assert_false(stage->out.failed);
    broker_link_input(broker_of(stage), stage->world.now_ms, stage->links[site], stage->out.bytes, stage->out.size,
                      true);
}

static void greet(struct stage *stage, int site) {
    uint8_t key[32], token = (uint8_t)site;
    struct hello hello = {.protocol_min = 1,
                          .protocol_max = 1,
                          .federation = "",
                          .epoch = 1,
                          .token = &token,
                          .token_size = 1,
                          .stream = 1,
                          .first = 1,
                          .frame_size_max = 1u << 20};
    site_key(site, key);
    memcpy(hello.id, key, sizeof hello.id);
    memcpy(stage->world.sites[site].id.bytes, key, sizeof hello.id);
    stage->links[site] = broker_link_open(broker_of(stage), stage->world.now_ms, false, NULL);
    broker_link_ready(broker_of(stage), stage->world.now_ms, stage->links[site], key);
    frame_write_hello(&stage->out, &hello);
    give(stage, site);
    assert_true(broker_link_has_peer(broker_of(stage), stage->links[site]));
}

static struct stage *stage_new(void) {
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    world_init(&stage->world, 1);
    assert_true(world_start(&stage->world));
    greet(stage, 1);
    greet(stage, 2);
    return stage;
}

static void stage_end(struct stage *stage) {
    assert_false(broker_link_ended(broker_of(stage), stage->links[1]));
    frame_out_deinit(&stage->out);
    world_free(&stage->world);
    free(stage);
}

/* How many frames of the type went to this site; the last of them goes into *last if that is not NULL. */
static int sent(struct stage *stage, int site, enum frame_type type, struct inquiry *last) {
    struct broker_span span;
    struct frame frame;
    int count = 0;
    while (broker_link_output(broker_of(stage), stage->world.now_ms, stage->links[site], &span)) {
        assert_int_equal(frame_read(span.bytes, span.size, &frame), FRAME_OK);
        if (frame.type == type) count++;
        if (frame.type == type && last) *last = frame.inquiry;
        broker_link_written(broker_of(stage), stage->world.now_ms, stage->links[site]);
    }
    return count;
}

static void inquire(struct stage *stage, int site, uint64_t number, const char *topic) {
    struct inquiry inquiry = {.number = number, .topic = topic, .topic_size = strlen(topic)};
    memcpy(inquiry.from, stage->world.sites[0].id.bytes, sizeof inquiry.from);
    memcpy(inquiry.to, stage->world.sites[site].id.bytes, sizeof inquiry.to);
    frame_write_why(&stage->out, &inquiry);
    give(stage, site);
}

static void answer(struct stage *stage, int site, uint64_t number, int steps, const struct inquiry_step *step) {
    frame_begin_names(&stage->out, FRAME_BECAUSE, number);
    for (int i = 0; i < steps; i++)
        frame_add_step(&stage->out, step);
    frame_end_items(&stage->out);
    give(stage, site);
}

#define STEP(at, does_stop, words)                                                                                     \
    (&(struct inquiry_step){.stage = (at), .stops = (does_stop), .text = (words), .size = sizeof(words) - 1})

static void who_asks_too_often_is_not_answered(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    sent(stage, 1, FRAME_BECAUSE, NULL);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 100; i++)
            inquire(stage, 1, i, "t");
        assert_int_equal(sent(stage, 1, FRAME_BECAUSE, NULL), 16);
        inquire(stage, 2, 77, "t"); /* others are */
        struct inquiry inquiry = {.number = 0};
        assert_int_equal(sent(stage, 2, FRAME_BECAUSE, &inquiry), 1);
        assert_int_equal(inquiry.number, 77);
        world_run(&stage->world, 1000);
    }
    stage_end(stage);
}

static void who_asks_about_others_learns_nothing(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct inquiry inquiry = {.number = 5, .topic = "t", .topic_size = 1};
    memset(inquiry.from, 0x77, sizeof inquiry.from);
    memset(inquiry.to, 0x78, sizeof inquiry.to);
    sent(stage, 1, FRAME_BECAUSE, NULL);
    frame_write_why(&stage->out, &inquiry);
    give(stage, 1);
    struct broker_span span;
    struct frame frame;
    assert_true(broker_link_output(broker_of(stage), stage->world.now_ms, stage->links[1], &span));
    assert_int_equal(frame_read(span.bytes, span.size, &frame), FRAME_OK);
    assert_int_equal(frame.type, FRAME_BECAUSE);
    assert_int_equal(frame.item_count, 0);
    broker_link_written(broker_of(stage), stage->world.now_ms, stage->links[1]);
    stage_end(stage);
}

static void who_asks_about_no_topic_breaks_the_rules(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    inquire(stage, 2, 1, "a/#");
    assert_true(broker_link_ended(broker_of(stage), stage->links[2]));
    assert_int_equal(world_counters(&stage->world, 0).frames_malformed, 1);
    stage_end(stage);
}

static uint64_t ask_of(struct stage *stage, int site, struct inquiry *inquiry) {
    const struct why_end here = why_site(&stage->world, 0), there = why_site(&stage->world, site);
    uint64_t question = why_ask(&stage->world, 0, "t", &here, &there);
    assert_int_equal(sent(stage, site, FRAME_WHY, inquiry), 1);
    return question;
}

static void only_who_was_asked_answers_and_once(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct inquiry inquiry;
    size_t count;
    snprintf(stage->world.sites[0].name, sizeof stage->world.sites[0].name, "site-0");
    uint64_t question = ask_of(stage, 1, &inquiry);
    assert_int_equal(inquiry.number, question);
    answer(stage, 2, question, 1, STEP(WHY_TOPIC, true, "a lie"));
    answer(stage, 1, question + 1, 1, STEP(WHY_TOPIC, true, "of what?"));
    answer(stage, 1, 0, 1, STEP(WHY_TOPIC, true, "of what?"));
    answer(stage, 1, UINT64_MAX, 1, STEP(WHY_TOPIC, true, "of what?"));
    assert_null(broker_why_steps(broker_of(stage), question, &count));
    answer(stage, 1, question, 1, STEP(WHY_TOPIC, true, "the truth"));
    answer(stage, 1, question, 1, STEP(WHY_TOPIC, true, "another"));
    struct answer told = why_answer(&stage->world, 0, question);
    assert_stops(&told, WHY_TOPIC, "site-1", "the truth");
    answer(stage, 1, question, 1, STEP(WHY_TOPIC, true, "too late"));
    stage_end(stage);
}

#define SAID(text) text, sizeof(text) - 1

static void who_answers_twice_is_heard_once(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    const struct why_end ends[2] = {why_site(&stage->world, 1), why_site(&stage->world, 2)};
    uint64_t question = why_ask(&stage->world, 0, "t", &ends[0], &ends[1]);
    for (int i = 0; i < 100; i++)
        answer(stage, 1, question, WHY_TOLD_MAX, STEP(WHY_TOPIC, false, "again"));
    answer(stage, 2, question, 1, STEP(WHY_ROW, false, "and the other"));
    struct answer told = why_answer(&stage->world, 0, question);
    assert_int_equal(told.count, WHY_TOLD_MAX + 1);
    assert_says(&told, "and the other");
    stage_end(stage);
}

static void what_a_peer_says_is_cleaned(void **state) {
    (void)state;
    static const struct {
        const char *said;
        size_t size;
        const char *shown;
    } cases[] = {
        {SAID("a\nb\x1b[31m\x7f\0c"), "a?b?[31m??c"},
        {SAID("\xc2\x9b 1m"), "?? 1m"},
        {SAID("\xff\xfe \xed\xa0\x80 \xc3"), "?? ??? ?"},
        {SAID("\xe2\x80\xae x \xe2\x81\xa7 \xef\xbb\xbf"), "??? x ??? ???"},
        {SAID("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9d"), "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x9d"},
    };
    struct stage *stage = stage_new();
    struct inquiry inquiry;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t question = ask_of(stage, 1, &inquiry);
        answer(stage, 1, question, 1, &(struct inquiry_step){1, true, cases[i].said, cases[i].size});
        struct answer told = why_answer(&stage->world, 0, question);
        assert_string_equal(told.steps[0].text, cases[i].shown);
    }
    stage_end(stage);
}

static void a_long_text_is_cut_at_a_character(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct inquiry inquiry;
    char text[3 * WHY_TEXT_MAX];
    for (size_t i = 0; i < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    uint64_t question = ask_of(stage, 1, &inquiry);
    answer(stage, 1, question, 1, &(struct inquiry_step){1, true, text, sizeof text});
    struct answer told = why_answer(&stage->world, 0, question);
    assert_int_equal(strlen(told.steps[0].text), (WHY_TEXT_MAX - 1) / 3 * 3);
    stage_end(stage);
}

static void of_many_steps_the_first_few_are_taken(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct inquiry inquiry;
    uint64_t question = ask_of(stage, 1, &inquiry);
    answer(stage, 1, question, 5000, STEP(UINT64_MAX, false, "and so on"));
    struct answer told = why_answer(&stage->world, 0, question);
    int so_on = 0;
    for (size_t i = 0; i < told.count; i++)
        so_on += strcmp(told.steps[i].text, "and so on") == 0;
    assert_in_range(so_on, 0, WHY_TOLD_MAX);
    question = ask_of(stage, 1, &inquiry);
    answer(stage, 1, question, 5000, STEP(WHY_TOPIC, false, "and so on"));
    told = why_answer(&stage->world, 0, question);
    so_on = 0;
    for (size_t i = 0; i < told.count; i++)
        so_on += strcmp(told.steps[i].text, "and so on") == 0;
    assert_int_equal(so_on, WHY_TOLD_MAX);
    question = ask_of(stage, 1, &inquiry);
    answer(stage, 1, question, 0, NULL);
    told = why_answer(&stage->world, 0, question);
    assert_stops(&told, WHY_MEMBER, "site-0", "sees site-1 as down or left"); /* as nobody says that it is there */
    stage_end(stage);
}

static void a_link_that_ends_leaves_the_question_to_its_deadline(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct inquiry inquiry;
    uint64_t question = ask_of(stage, 2, &inquiry);
    broker_link_closed(broker_of(stage), stage->world.now_ms, stage->links[2]);
    struct answer told = why_answer(&stage->world, 0, question);
    assert_true(told.steps[told.count - 1].stops);
    stage_end(stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_too_often_is_not_answered),
        cmocka_unit_test(who_asks_about_others_learns_nothing),
        cmocka_unit_test(who_asks_about_no_topic_breaks_the_rules),
        cmocka_unit_test(only_who_was_asked_answers_and_once),
        cmocka_unit_test(who_answers_twice_is_heard_once),
        cmocka_unit_test(what_a_peer_says_is_cleaned),
        cmocka_unit_test(a_long_text_is_cut_at_a_character),
        cmocka_unit_test(of_many_steps_the_first_few_are_taken),
        cmocka_unit_test(a_link_that_ends_leaves_the_question_to_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
