/* A peer with a good token that does not keep to the protocol costs itself alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/digest.h"
#include "stage.h"

static void no_frame_is_heeded_before_the_hello(void **state) {
    (void)state;
    static const enum frame_type types[] = {FRAME_JOIN,    FRAME_LEAVE,  FRAME_INVITE,
                                            FRAME_DECLINE, FRAME_JOINED, FRAME_KEEP};
    struct stage *stage = stage_new();
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        broker_handle link = accepted(stage, 2);
        struct frame_out out = {0};
        frame_begin_names(&out, types[i], 0);
        frame_add_name(&out, "honest", 6);
        frame_end_items(&out);
        give(stage, link, &out);
        frame_out_deinit(&out);
        assert_bye(stage, link, BYE_MALFORMED);
    }
    assert_int_equal(world_counters(&stage->world, 0).frames_malformed, 6);
    stage_end(stage);
}

static void a_bad_hello_is_refused(void **state) {
    (void)state;
    static uint8_t other_token = 3;
    static const char others[3][300] = {"x", "longer\n than any\x1b name may be", {0}};
    struct stage *stage = stage_new();
    for (int fault = 0; fault < 8; fault++) {
        broker_handle link = accepted(stage, 2);
        struct frame_out out = {0};
        struct hello hello = hello_of(2);
        if (fault == 0) hello.protocol_min = hello.protocol_max = 2;
        if (fault == 1) hello.token = &other_token; /* a leaked one */
        if (fault == 2) hello.id[3] ^= 1;
        if (fault == 3) hello.token_size = 0;
        if (fault == 4) hello.protocol_min = 2, hello.protocol_max = 1;
        if (fault > 4) hello.federation = others[fault - 5], hello.federation_size = fault == 5 ? 1 : sizeof others[1];
        frame_write_hello(&out, &hello);
        give(stage, link, &out);
        frame_out_deinit(&out);
        assert_bye(stage, link, fault == 0 || fault == 4 ? BYE_PROTOCOL : fault > 4 ? BYE_FEDERATION : BYE_REFUSED);
    }
    assert_int_equal(world_counters(&stage->world, 0).links_refused, 8);
    stage_end(stage);
}

static void an_earlier_run_of_a_peer_is_refused(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct peer_id id;
    uint8_t key[32];
    site_key(2, key);
    memcpy(id.bytes, key, sizeof id.bytes);
    broker_peer_alive(broker_of(stage), stage->world.now_ms, &id, "played", 2);
    broker_handle link = accepted(stage, 2);
    struct frame_out out = {0};
    struct hello hello = hello_of(2);
    frame_write_hello(&out, &hello);
    give(stage, link, &out);
    frame_out_deinit(&out);
    assert_bye(stage, link, BYE_EPOCH);
    stage_end(stage);
}

static void a_second_hello_is_malformed(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    broker_handle link = greeted(stage, 2);
    struct frame_out out = {0};
    struct hello hello = hello_of(2);
    frame_write_hello(&out, &hello);
    give(stage, link, &out);
    frame_out_deinit(&out);
    assert_bye(stage, link, BYE_MALFORMED);
    stage_end(stage);
}

static void acknowledging_what_was_not_sent_is_malformed(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    broker_handle link = greeted(stage, 2);
    struct frame_out out = {0};
    frame_write_ack(&out, 2);
    give(stage, link, &out);
    frame_out_deinit(&out);
    assert_bye(stage, link, BYE_MALFORMED);
    stage_end(stage);
}

static void a_frame_beyond_the_bound_is_not_gathered(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    broker_handle link = accepted(stage, 2);
    uint8_t piece[4096] = {0};
    int pieces = 0;
    for (; !broker_link_ended(broker_of(stage), link); pieces++)
        broker_link_input(broker_of(stage), stage->world.now_ms, link, piece, sizeof piece, false);
    assert_int_equal(pieces, 65536 / 4096 + 1);
    assert_bye(stage, link, BYE_MALFORMED);
    stage_end(stage);
}

static void a_publication_no_client_could_make_is_malformed(void **state) {
    (void)state;
    static const uint8_t identifier[] = {0x0b, 5}, unknown[] = {0x7f}, response[] = {0x08, 0, 3, 'a', '/', '#'};
    static const struct message bad[] = {
        {.topic = "with/#", .topic_size = 6},
        {.topic = "\xff", .topic_size = 1},
        {.topic = "t", .topic_size = 1, .properties = identifier, .properties_size = 2},
        {.topic = "t", .topic_size = 1, .properties = unknown, .properties_size = 1},
        {.topic = "t", .topic_size = 1, .properties = response, .properties_size = 6},
    };
    struct stage *stage = stage_new();
    struct client *all = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, all, "#", 1);
    world_run(&stage->world, 400);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        broker_handle link = greeted(stage, 2);
        struct frame_out out = {0};
        struct message good = {.topic = "t", .topic_size = 1};
        frame_begin_publish(&out, 1);
        frame_add_publication(&out, &good, NULL, false, MESSAGE_NO_EXPIRY);
        frame_add_publication(&out, &bad[i], NULL, false, MESSAGE_NO_EXPIRY);
        frame_end_items(&out);
        give(stage, link, &out);
        frame_out_deinit(&out);
        assert_bye(stage, link, BYE_MALFORMED);
    }
    world_settle(&stage->world);
    assert_int_equal(all->received_count, 0); /* nothing of such a frame is taken */
    stage_end(stage);
}

static void sys_topics_of_a_peer_are_not_shown(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct client *all = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, all, "$SYS/#", 1);
    world_settle(&stage->world);
    broker_handle link = greeted(stage, 2);
    struct frame_out out = {0};
    struct message lie = {.topic = "$SYS/broker", .topic_size = 11};
    frame_begin_publish(&out, 1);
    frame_add_publication(&out, &lie, NULL, false, MESSAGE_NO_EXPIRY);
    frame_end_items(&out);
    give(stage, link, &out);
    frame_out_deinit(&out);
    world_settle(&stage->world);
    assert_int_equal(all->received_count, 0);
    assert_false(broker_link_ended(broker_of(stage), link));
    stage_end(stage);
}

/* A retained message that no clock could ever come after would stay for ever, here and wherever it is passed on to. */
static void a_stamp_from_the_end_of_time_is_not_kept(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    struct client *all = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, all, "t", 0);
    world_run(&stage->world, 400);
    broker_handle link = greeted(stage, 2);
    for (uint64_t sequence = 1; sequence <= 2; sequence++) {
        struct frame_out out = {0};
        struct message poison = {.topic = "t",
                                 .topic_size = 1,
                                 .payload = (const uint8_t *)"poison",
                                 .payload_size = 6,
                                 .retain = true,
                                 .stamp = {.wall_ms = UINT64_MAX, .count = UINT32_MAX}};
        frame_begin_publish(&out, sequence);
        frame_add_publication(&out, &poison, NULL, sequence == 2, MESSAGE_NO_EXPIRY);
        frame_end_items(&out);
        give(stage, link, &out);
        frame_out_deinit(&out);
    }
    world_settle(&stage->world);
    assert_int_equal(client_got(all, "poison"), 1); /* live, and not the snapshot */
    struct client *late = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, late, "t", 0);
    world_run(&stage->world, 400);
    assert_int_equal(client_got(late, "poison"), 0);
    client_publish(&stage->world, stage->says, "t", "first", 1, true);
    client_publish(&stage->world, stage->says, "t", "second", 1, true);
    world_settle(&stage->world);
    struct client *later = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, later, "t", 0);
    world_run(&stage->world, 400);
    assert_int_equal(client_got(later, "second"), 1);
    assert_int_equal(later->received_count, 1);
    stage_end(stage);
}

/* Few joins can be large: what they take up is bounded too, and given back. */
static void joins_are_bounded_in_bytes(void **state) {
    (void)state;
    enum { SIZE = 60000, EACH = 700 };
    struct stage *stage = stage_new();
    char *filter = malloc(SIZE);
    assert_non_null(filter);
    for (int turn = 0; turn < 2; turn++) {
        broker_handle link = greeted(stage, 2);
        for (int i = 0; i < EACH; i++) {
            struct frame_out out = {0};
            memset(filter, 'a', SIZE);
            snprintf(filter, SIZE, "%d", i);
            filter[strlen(filter)] = 'b';
            frame_begin_names(&out, FRAME_JOIN, 0);
            frame_add_name(&out, filter, SIZE);
            frame_end_items(&out);
            give(stage, link, &out);
            frame_out_deinit(&out);
            uint64_t code;
            assert_int_equal(last_frame(stage, link, &code), FRAME_JOINED);
            assert_int_equal(code, i < 400 ? JOINED_YES : i < 600 ? code : JOINED_FULL);
        }
        struct link_info info = {.joined_here = 0};
        for (size_t at = 0; broker_link_at(broker_of(stage), at, &info) && strcmp(info.name, "site-2") != 0;)
            at++;
        assert_true(info.joined_here > 400 && info.joined_here < 600);
        broker_link_closed(broker_of(stage), stage->world.now_ms, link);
        world_run(&stage->world, 60000); /* the joins are void after this */
    }
    free(filter);
    stage_end(stage);
}

/* Who opens links and says no hello keeps nobody out, and does not keep us from dialling. */
static void the_silent_make_room(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    uint8_t key[32];
    broker_handle silent[5000] = {0};
    size_t opened = 0;
    site_key(2, key);
    for (int i = 0; i < 5000; i++) {
        broker_handle link = broker_link_open(broker_of(stage), stage->world.now_ms, false, NULL);
        if (link == 0) continue;
        silent[opened++] = link;
        broker_link_ready(broker_of(stage), stage->world.now_ms, link, key);
    }
    assert_true(opened < 5000);
    struct peer_id other;
    site_key(3, key);
    memcpy(other.bytes, key, sizeof other.bytes);
    broker_peer_alive(broker_of(stage), stage->world.now_ms, &other, "site-3", 1);
    assert_true(broker_link_open(broker_of(stage), stage->world.now_ms, true, &other) != 0);
    size_t gone = 0;
    for (size_t i = 0; i < opened; i++) {
        if (!broker_link_ended(broker_of(stage), silent[i])) continue;
        broker_link_closed(broker_of(stage), stage->world.now_ms, silent[i]);
        gone++;
    }
    assert_true(gone > 0);
    broker_handle link = greeted(stage, 2);
    assert_true(link != 0);
    world_run(&stage->world, 20000); /* the silent are given up */
    stage_end(stage);
}

/* Numbers: a gap is counted as lost; what is late is dropped and counted, by whether it was lost or comes again. */
static void gaps_repetitions_and_late_numbers_are_counted(void **state) {
    (void)state;
    static const struct {
        uint64_t first;
        int count;
        uint64_t lost, repeated, reordered;
        int received;
    } steps[] = {{1, 3, 0, 0, 0, 3}, {4, 1, 0, 0, 0, 4},   {2, 3, 0, 3, 0, 4},  {4, 2, 0, 4, 0, 5},
                 {9, 1, 3, 4, 0, 6}, {1, 10, 3, 10, 3, 7}, {6, 3, 3, 13, 3, 7}, {12, 1, 4, 13, 3, 8}};
    struct stage *stage = stage_new();
    struct client *all = client_connect(&stage->world, 0);
    client_subscribe(&stage->world, all, "t", 0);
    world_run(&stage->world, 400);
    broker_handle link = greeted(stage, 2);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct frame_out out = {0};
        struct message message = {.topic = "t", .topic_size = 1};
        frame_begin_publish(&out, steps[i].first);
        for (int n = 0; n < steps[i].count; n++)
            frame_add_publication(&out, &message, NULL, false, MESSAGE_NO_EXPIRY);
        frame_end_items(&out);
        give(stage, link, &out);
        frame_out_deinit(&out);
        world_settle(&stage->world);
        struct link_info info = {.lost = 0};
        for (size_t at = 0; broker_link_at(broker_of(stage), at, &info) && strcmp(info.name, "site-2") != 0;)
            at++;
        assert_string_equal(info.name, "site-2");
        assert_int_equal(info.lost, steps[i].lost);
        assert_int_equal(info.repeated, steps[i].repeated);
        assert_int_equal(info.reordered, steps[i].reordered);
        assert_int_equal(info.publications_received, steps[i].received);
        assert_int_equal(all->received_count, steps[i].received);
    }
    stage_end(stage);
}

static uint64_t next_random(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* What is not asked, nor said of joins, with sizes that may fit. */
static void any_digests(struct frame_out *out, uint64_t *random) {
    static const enum frame_type types[] = {FRAME_HOLDS, FRAME_COMPARE, FRAME_COMPARED};
    uint8_t bytes[4 * DIGEST_SUMS_SIZE] = {0};
    for (size_t i = 0; i < sizeof bytes; i += 1 + next_random(random) % 64)
        bytes[i] = (uint8_t)next_random(random);
    if (next_random(random) % 2) digest_put(bytes, DIGEST_ROOT);
    struct frame_digests digests = {.number = (uint32_t)(next_random(random) % 4),
                                    .expected = next_random(random) % 3,
                                    .sums = {bytes, next_random(random) % 3 * DIGEST_SUMS_SIZE},
                                    .items = {bytes, next_random(random) % 40 * DIGEST_ITEM_SIZE},
                                    .nodes = {bytes, next_random(random) % 200 * DIGEST_NODE_SIZE},
                                    .wanted = {bytes, next_random(random) % 8}};
    frame_write_digests(out, types[next_random(random) % 3], &digests);
}

static const struct aims *any_aims(struct aims *aims, uint64_t *random) {
    static const char groups[] = "$share/g/a/#\0$share/h/a/b";
    static const uint32_t sizes[] = {0, 13, 26};
    aims->what = (uint8_t)(next_random(random) % 3);
    aims->size = sizes[next_random(random) % 3];
    memcpy(aims->groups, groups, aims->size);
    return aims;
}

static void any_frame(struct frame_out *out, uint64_t *random) {
    static const char *const names[] = {"honest", "a/b",          "#", "+/b",          "$SYS/x",
                                        "a/#",    "bad/#/filter", "b", "$share/g/a/#", "$share/h/a/b"};
    uint64_t kind = next_random(random) % 15;
    struct message message = {
        .qos = (uint8_t)(next_random(random) % 3), .retain = next_random(random) % 2, .topic = "a/b", .topic_size = 3};
    union {
        struct aims aims;
        char room[sizeof(struct aims) + 32];
    } aims;
    switch (kind) {
    case 0: frame_write_plain(out, next_random(random) % 2 ? FRAME_PING : FRAME_SYNCED); break;
    case 1: frame_write_ack(out, next_random(random) % 4); break;
    case 10: {
        const char *topic = names[next_random(random) % 8];
        frame_write_why(out, &(struct inquiry){.number = next_random(random) % 4,
                                               .topic = topic,
                                               .topic_size = strlen(topic),
                                               .from = {1, 2, 3}});
        break;
    }
    case 11:
        frame_begin_names(out, FRAME_BECAUSE, next_random(random) % 4);
        frame_add_step(out, &(struct inquiry_step){next_random(random) % 200, next_random(random) % 2, "a\nb", 3});
        frame_end_items(out);
        break;
    case 12:
    case 13: any_digests(out, random); break;
    case 2:
    case 3:
        frame_begin_publish(out, next_random(random) % 50);
        for (uint64_t n = next_random(random) % 5; n > 0; n--)
            frame_add_publication(out, &message, any_aims(&aims.aims, random),
                                  message.retain && next_random(random) % 2, next_random(random) % 2 ? UINT32_MAX : 9);
        frame_end_items(out);
        break;
    case 14:
        frame_begin_members(out);
        for (uint64_t n = next_random(random) % 4; n > 0; n--) {
            const char *name = names[next_random(random) % 10];
            frame_add_members(out, &(struct frame_members){.group = name,
                                                           .size = strlen(name),
                                                           .connected = (uint32_t)next_random(random),
                                                           .away = next_random(random) % 2});
        }
        frame_end_items(out);
        break;
    default: {
        static const enum frame_type types[] = {FRAME_JOIN,   FRAME_LEAVE,   FRAME_JOINED,
                                                FRAME_INVITE, FRAME_DECLINE, FRAME_KEEP};
        frame_begin_names(out, types[kind - 4], next_random(random) % 2000);
        for (uint64_t n = next_random(random) % 4; n > 0; n--) {
            const char *name = names[next_random(random) % 10];
            frame_add_name(out, name, strlen(name));
        }
        frame_end_items(out);
    }
    }
}

/* Two peers that say anything at any time, half of it damaged, with links opened and lost in between. */
static void mutated_conversations_do_no_harm(void **state) {
    (void)state;
    struct stage *stage = stage_new();
    uint64_t random = 0x9e3779b97f4a7c15u;
    broker_handle links[2] = {0};
    client_subscribe(&stage->world, stage->says, "a/#", 1);
    client_subscribe(&stage->world, stage->says, "$share/g/a/#", 1);
    struct frame_out out = {0};
    for (int round = 0; round < 30000; round++) {
        int played = (int)(next_random(&random) % 2);
        broker_handle *link = &links[played];
        if (!*link || broker_link_ended(broker_of(stage), *link)) {
            if (*link && next_random(&random) % 2) broker_link_closed(broker_of(stage), stage->world.now_ms, *link);
            *link = accepted(stage, played + 2);
            struct hello hello = hello_of(played + 2);
            hello.first = 1 + next_random(&random) % 5;
            hello.seen_epoch = hello.seen_stream = next_random(&random) % 3;
            hello.expected = next_random(&random) % 3;
            frame_write_hello(&out, &hello);
            give(stage, *link, &out);
            continue;
        }
        any_frame(&out, &random);
        if (next_random(&random) % 3 == 0) out.bytes[next_random(&random) % out.size] = (uint8_t)next_random(&random);
        size_t cut = next_random(&random) % out.size;
        broker_link_input(broker_of(stage), stage->world.now_ms, *link, out.bytes, cut, false);
        broker_link_input(broker_of(stage), stage->world.now_ms, *link, out.bytes + cut, out.size - cut, true);
        if (next_random(&random) % 4 == 0) {
            uint64_t code;
            last_frame(stage, *link, &code);
        }
        if (next_random(&random) % 8 == 0)
            client_publish(&stage->world, stage->says, next_random(&random) % 2 ? "a/b" : "b", "m",
                           (int)(next_random(&random) % 3), next_random(&random) % 2);
        if (next_random(&random) % 50 == 0) world_run(&stage->world, next_random(&random) % 400);
        if (stage->says->received_count > RECEIVED_MAX / 2) stage->says->received_count = 0;
    }
    frame_out_deinit(&out);
    stage_end(stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_frame_is_heeded_before_the_hello),
        cmocka_unit_test(a_bad_hello_is_refused),
        cmocka_unit_test(an_earlier_run_of_a_peer_is_refused),
        cmocka_unit_test(a_second_hello_is_malformed),
        cmocka_unit_test(acknowledging_what_was_not_sent_is_malformed),
        cmocka_unit_test(a_frame_beyond_the_bound_is_not_gathered),
        cmocka_unit_test(a_publication_no_client_could_make_is_malformed),
        cmocka_unit_test(sys_topics_of_a_peer_are_not_shown),
        cmocka_unit_test(a_stamp_from_the_end_of_time_is_not_kept),
        cmocka_unit_test(joins_are_bounded_in_bytes),
        cmocka_unit_test(the_silent_make_room),
        cmocka_unit_test(gaps_repetitions_and_late_numbers_are_counted),
        cmocka_unit_test(mutated_conversations_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
