/* A broker among peers.h whose other peers are played by hand. */
#ifndef TESTS_UNIT_STAGE_H
#define TESTS_UNIT_STAGE_H

#include "broker/frames.h"
#include "peers.h"

/* Site 0 is a whole broker, 1 an honest one, 2 and 3 are played by hand. */
struct stage {
    struct world world;
    struct client *says, *hears;
};

static inline struct stage *stage_new(void) {
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    world_init(&stage->world, 2);
    assert_true(world_start(&stage->world));
    stage->says = client_connect(&stage->world, 0);
    stage->hears = client_connect(&stage->world, 1);
    client_subscribe(&stage->world, stage->hears, "honest", 1);
    world_settle(&stage->world);
    return stage;
}

static inline void stage_end(struct stage *stage) {
    client_publish(&stage->world, stage->says, "honest", "still there", 1, false);
    world_run(&stage->world, 1000);
    assert_int_equal(client_got(stage->hears, "still there"), 1);
    world_free(&stage->world);
    free(stage);
}

static inline struct broker *broker_of(struct stage *stage) {
    return stage->world.sites[0].broker;
}

static inline broker_handle accepted(struct stage *stage, int site) {
    uint8_t key[32];
    site_key(site, key);
    broker_handle link = broker_link_open(broker_of(stage), stage->world.now_ms, false, NULL);
    assert_true(link != 0);
    broker_link_ready(broker_of(stage), stage->world.now_ms, link, key);
    return link;
}

static inline void give(struct stage *stage, broker_handle link, const struct frame_out *frame) {
    assert_false(frame->failed);
    broker_link_input(broker_of(stage), stage->world.now_ms, link, frame->bytes, frame->size, true);
}

static inline struct hello hello_of(int site) {
    static uint8_t tokens[SITES_MAX] = {0, 1, 2, 3};
    uint8_t key[32];
    struct hello hello = {.protocol_min = 1,
                          .protocol_max = 1,
                          .name = "played",
                          .name_size = 6,
                          .federation = "",
                          .epoch = 1,
                          .token = &tokens[site],
                          .token_size = 1,
                          .stream = 1,
                          .first = 1,
                          .frame_size_max = 1u << 20};
    site_key(site, key);
    memcpy(hello.id, key, sizeof hello.id);
    return hello;
}

static inline broker_handle greeted(struct stage *stage, int site) {
    broker_handle link = accepted(stage, site);
    struct frame_out out = {0};
    struct hello hello = hello_of(site);
    frame_write_hello(&out, &hello);
    give(stage, link, &out);
    frame_out_deinit(&out);
    assert_false(broker_link_ended(broker_of(stage), link));
    return link;
}

/* The last frame the broker sent on the link. */
static inline enum frame_type last_frame(struct stage *stage, broker_handle link, uint64_t *code) {
    struct broker_span span;
    struct frame frame = {.type = 0};
    while (broker_link_output(broker_of(stage), stage->world.now_ms, link, &span)) {
        assert_int_equal(frame_read(span.bytes, span.size, &frame), FRAME_OK);
        broker_link_written(broker_of(stage), stage->world.now_ms, link);
    }
    *code = frame.code;
    return frame.type;
}

static inline void assert_bye(struct stage *stage, broker_handle link, enum bye_code code) {
    uint64_t said;
    assert_true(broker_link_ended(broker_of(stage), link));
    assert_int_equal(last_frame(stage, link, &said), FRAME_BYE);
    assert_int_equal(said, code);
}

#endif
