/* Asking a world of peers.h why. */
#ifndef TESTS_UNIT_WHYS_H
#define TESTS_UNIT_WHYS_H

#include "broker/why.h"
#include "joined.h"

struct answer {
    size_t count;
    struct why_step steps[WHY_STEPS_MAX];
};

static inline struct why_end why_site(const struct world *world, int site) {
    struct why_end end = {.id = world->sites[site].id, .is_there = true};
    snprintf(end.name, sizeof end.name, "site-%d", site);
    return end;
}

static inline uint64_t why_ask(struct world *world, int at, const char *topic, const struct why_end *from,
                               const struct why_end *to) {
    return broker_why_ask(world->sites[at].broker, world->now_ms, topic, strlen(topic), from, to);
}

/* Lets time pass until it is answered. */
static inline struct answer why_answer(struct world *world, int at, uint64_t question) {
    struct broker *broker = world->sites[at].broker;
    uint64_t told = 0, asked_ms = world->now_ms;
    struct answer answer = {.count = 0};
    assert_true(question != 0);
    world_settle(world);
    while (!broker_why_steps(broker, question, &answer.count)) {
        world_run(world, 100);
        assert_in_range(world->now_ms - asked_ms, 0, WHY_WAIT_MS + 100);
    }
    assert_true(broker_next_why(broker, &told));
    assert_int_equal(told, question);
    assert_false(broker_next_why(broker, &told));
    assert_in_range(answer.count, 1, WHY_STEPS_MAX);
    memcpy(answer.steps, broker_why_steps(broker, question, &answer.count), answer.count * sizeof *answer.steps);
    broker_why_end(broker, question);
    assert_null(broker_why_steps(broker, question, &answer.count));
    for (size_t i = 0; i + 1 < answer.count; i++)
        assert_false(answer.steps[i].stops);
    return answer;
}

static inline struct answer why_of_sites(struct world *world, int at, const char *topic, int from, int to) {
    const struct why_end ends[2] = {why_site(world, from), why_site(world, to)};
    return why_answer(world, at, why_ask(world, at, topic, &ends[0], &ends[1]));
}

/* Some step holds the text. */
static inline bool why_says(const struct answer *answer, const char *text) {
    for (size_t i = 0; i < answer->count; i++)
        if (strstr(answer->steps[i].text, text)) return true;
    return false;
}

static inline void why_show(const struct answer *answer) {
    for (size_t i = 0; i < answer->count; i++)
        print_message("%s %s %s: %s\n", answer->steps[i].stops ? "STOP" : "ok", why_stage_name(answer->steps[i].stage),
                      answer->steps[i].broker, answer->steps[i].text);
}

static inline void assert_says(const struct answer *answer, const char *text) {
    if (why_says(answer, text)) return;
    why_show(answer);
    fail_msg("nobody says \"%s\"", text);
}

static inline void assert_stops(const struct answer *answer, enum why_stage stage, const char *broker,
                                const char *text) {
    const struct why_step *last = &answer->steps[answer->count - 1];
    if (last->stops && last->stage == stage && strcmp(last->broker, broker) == 0 && strstr(last->text, text)) return;
    why_show(answer);
    fail_msg("it does not stop at %s of %s for \"%s\"", why_stage_name((uint8_t)stage), broker, text);
}

static inline void assert_arrives(const struct answer *answer) {
    if (!answer->steps[answer->count - 1].stops) return;
    why_show(answer);
    fail_msg("it stops");
}

#endif
