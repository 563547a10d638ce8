#include "broker/mqtt.h"
#include "broker/props.h"
#include "conversation.h"

static void lengths_are_read_as_written(void **state) {
    static const struct {
        const char *hex;
        enum mqtt_framing result;
        uint32_t packet_size;
    } rows[] = {
        {"", MQTT_FRAME_MORE, 0},
        {"30", MQTT_FRAME_MORE, 0},
        {"3000", MQTT_FRAME_OK, 2},
        {"307f", MQTT_FRAME_OK, 129},
        {"3080", MQTT_FRAME_MORE, 0},
        {"308001", MQTT_FRAME_OK, 131},
        {"30ff7f", MQTT_FRAME_OK, 3 + 16383},
        {"30808001", MQTT_FRAME_OK, 4 + 16384},
        {"30ffffff7f", MQTT_FRAME_OK, 5 + 268435455},
        {"30ffffff", MQTT_FRAME_MORE, 0},
        {"30ffffffff", MQTT_FRAME_MALFORMED, 0},
        {"30ffffff80", MQTT_FRAME_MALFORMED, 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct packet packet = {.size = 0};
        struct mqtt_frame frame = {0};
        put_hex(&packet, rows[i].hex);
        if (mqtt_read_frame(packet.bytes, packet.size, &frame) != rows[i].result ||
            frame.packet_size != rows[i].packet_size)
            fail_msg("%s", rows[i].hex);
    }
}

static void padded_length_is_malformed(void **state) {
    static const char *const rows[] = {"308000", "30ff00", "30808000", "3081808000"};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct packet packet = {.size = 0};
        struct mqtt_frame frame;
        put_hex(&packet, rows[i]);
        assert_int_equal(mqtt_read_frame(packet.bytes, packet.size, &frame), MQTT_FRAME_MALFORMED);
    }
}

/* Which packets each property may stand in, as table 2-4 of MQTT 5.0 has it: types by number, 0 is the will. */
static void each_property_stands_only_where_the_table_says(void **state) {
    static const struct {
        const char *hex;
        uint16_t packets;
    } rows[] = {
        {"0100", 1 << 3 | 1 << 0},
        {"0200000001", 1 << 3 | 1 << 0},
        {"03000161", 1 << 3 | 1 << 0},
        {"08000161", 1 << 3 | 1 << 0},
        {"09000161", 1 << 3 | 1 << 0},
        {"0b01", 1 << 3 | 1 << 8},
        {"1100000001", 1 << 1 | 1 << 2 | 1 << 14},
        {"12000161", 1 << 2},
        {"130001", 1 << 2},
        {"15000161", 1 << 1 | 1 << 2 | 1 << 15},
        {"16000161", 1 << 1 | 1 << 2 | 1 << 15},
        {"1701", 1 << 1},
        {"1800000001", 1 << 0},
        {"1901", 1 << 1},
        {"1a000161", 1 << 2},
        {"1c000161", 1 << 2 | 1 << 14},
        {"1f000161", 1 << 2 | 0xF << 4 | 1 << 9 | 1 << 11 | 1 << 14 | 1 << 15},
        {"210001", 1 << 1 | 1 << 2},
        {"220001", 1 << 1 | 1 << 2},
        {"230001", 1 << 3},
        {"2401", 1 << 2},
        {"2501", 1 << 2},
        {"26000161000162", 0xFFFF},
        {"2700000001", 1 << 1 | 1 << 2},
        {"2801", 1 << 2},
        {"2901", 1 << 2},
        {"2a01", 1 << 2},
        {"0001", 0},
        {"0401", 0},
        {"1401", 0},
        {"2b01", 0},
        {"7f01", 0},
        {"8101", 0},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct packet once = {.size = 0}, twice = {.size = 0};
        put_hex(&once, rows[i].hex);
        put_hex(&twice, rows[i].hex);
        put_hex(&twice, rows[i].hex);
        for (enum mqtt_type type = MQTT_WILL; type <= MQTT_AUTH; type++) {
            bool allowed = rows[i].packets >> type & 1;
            enum mqtt_reason again = strncmp(rows[i].hex, "26", 2) == 0 ? MQTT_SUCCESS : MQTT_PROTOCOL_ERROR;
            if (type == MQTT_PINGREQ || type == MQTT_PINGRESP) continue;
            if (props_check(type, (struct mqtt_view){once.bytes, (uint32_t)once.size}) !=
                (allowed ? MQTT_SUCCESS : MQTT_MALFORMED))
                fail_msg("%s in packet %d", rows[i].hex, (int)type);
            if (allowed && props_check(type, (struct mqtt_view){twice.bytes, (uint32_t)twice.size}) != again)
                fail_msg("%s twice in packet %d", rows[i].hex, (int)type);
            for (size_t cut = 1; allowed && cut < once.size; cut++)
                assert_int_equal(props_check(type, (struct mqtt_view){once.bytes, (uint32_t)cut}), MQTT_MALFORMED);
        }
    }
}

static void strip_takes_out_what_concerns_one_hop(void **state) {
    struct packet block = {.size = 0}, rest = {.size = 0};
    (void)state;

    put_hex(&block, "23 0001 26 0001 61 0001 62 02 00000001 01 01 18 00000005 0b 01 03 0001 63");
    put_hex(&rest, "26 0001 61 0001 62 01 01 03 0001 63");
    assert_int_equal(props_strip(block.bytes, (uint32_t)block.size), rest.size);
    assert_memory_equal(block.bytes, rest.bytes, rest.size);
}

static uint64_t random_state;

static uint32_t random_below(uint32_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

static void inside(struct mqtt_view view, const uint8_t *bytes, size_t size) {
    if (view.size == 0) return;
    assert_true(view.bytes >= bytes && view.bytes + view.size <= bytes + size);
}

static void decode_any(uint8_t version, const uint8_t *bytes, size_t size) {
    struct mqtt_frame frame;
    struct mqtt_view body, filter;
    struct mqtt_connect connect;
    struct mqtt_publish publish;
    struct mqtt_ack ack;
    struct mqtt_subscribe subscribe;
    struct mqtt_disconnect disconnect;
    uint32_t count = 0;
    uint8_t options;

    if (mqtt_read_frame(bytes, size, &frame) != MQTT_FRAME_OK || frame.packet_size > size) return;
    body = (struct mqtt_view){bytes + frame.header_size, frame.packet_size - frame.header_size};
    switch (frame.type) {
    case MQTT_CONNECT:
        if (mqtt_decode_connect(&frame, body, &connect) == MQTT_SUCCESS) {
            inside(connect.client_id, bytes, size);
            inside(connect.will_payload, bytes, size);
            inside(connect.will_properties, bytes, size);
            inside(connect.password, bytes, size);
        }
        break;
    case MQTT_PUBLISH:
        if (mqtt_decode_publish(version, &frame, body, &publish) == MQTT_SUCCESS &&
            (publish.topic.size == 0 || mqtt_check_topic(publish.topic) == MQTT_SUCCESS)) {
            inside(publish.topic, bytes, size);
            inside(publish.properties, bytes, size);
            inside(publish.payload, bytes, size);
        }
        break;
    case MQTT_SUBSCRIBE:
    case MQTT_UNSUBSCRIBE:
        if (mqtt_decode_subscribe(version, &frame, body, &subscribe) == MQTT_SUCCESS) {
            while (mqtt_next_filter(frame.type, &subscribe, &filter, &options)) {
                inside(filter, bytes, size);
                count++;
            }
            assert_int_equal(count, subscribe.filter_count);
        }
        break;
    case MQTT_DISCONNECT: mqtt_decode_disconnect(version, &frame, body, &disconnect); break;
    default: mqtt_decode_ack(version, &frame, body, &ack);
    }
}

/* One to four small injuries. */
static void spoil(struct packet *packet) {
    for (uint32_t n = 1 + random_below(4); n > 0 && packet->size > 0; n--) {
        uint32_t at = random_below((uint32_t)packet->size);
        switch (random_below(5)) {
        case 0: packet->bytes[at] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: packet->bytes[at] = (uint8_t)random_below(256); break;
        case 2: packet->bytes[at] = random_below(2) ? 0xFF : 0x00; break;
        case 3:
            memmove(packet->bytes + at, packet->bytes + at + 1, packet->size - at - 1);
            packet->size--;
            break;
        default: memmove(packet->bytes + at + 1, packet->bytes + at, packet->size - at); packet->size++;
        }
    }
}

static void spoilt_packets_are_decoded_within_their_bounds(void **state) {
    (void)state;
    random_state = 0x9E3779B97F4A7C15u;
    for (uint8_t version = 4; version <= 5; version++) {
        struct packet all = conversation(version);
        size_t at = 0;
        while (at < all.size) {
            struct mqtt_frame frame;
            assert_int_equal(mqtt_read_frame(all.bytes + at, all.size - at, &frame), MQTT_FRAME_OK);
            for (int round = 0; round < 8000; round++) {
                struct packet packet = {.size = frame.packet_size};
                uint8_t *exact;
                memcpy(packet.bytes, all.bytes + at, frame.packet_size);
                spoil(&packet);
                /* Mostly with a length that fits, so that the injury gets past the framing. */
                if (random_below(4) != 0 && packet.size >= 2 && packet.size < 130)
                    packet.bytes[1] = (uint8_t)(packet.size - 2);
                exact = malloc(packet.size ? packet.size : 1);
                memcpy(exact, packet.bytes, packet.size);
                decode_any(version, exact, packet.size);
                free(exact);
            }
            at += frame.packet_size;
        }
    }
}

struct outcome {
    uint8_t *talker, *watcher;
    size_t talker_size, watcher_size;
};

/* Feeds the conversation in pieces of the size given, the first of another one; collects what the talker and a watcher
 * of # get. */
static struct outcome run(int version, const struct packet *all, size_t first, size_t step) {
    struct world world = {0};
    struct client talker, watcher;
    struct outcome outcome;

    world_begin(&world);
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "#", 1);
    client_open(&world, &talker, version);
    for (size_t at = 0; at < all->size;) {
        size_t size = at == 0 ? first : step;
        if (size > all->size - at) size = all->size - at;
        say_bytes(&talker, all->bytes + at, size);
        at += size;
    }
    client_read(&talker);
    pass(&world, 10000);
    client_read(&watcher);
    outcome = (struct outcome){talker.got, watcher.got, talker.got_size, watcher.got_size};
    talker.got = watcher.got = NULL;
    client_cut(&talker);
    client_cut(&watcher);
    world_end(&world);
    return outcome;
}

static void any_split_of_a_conversation_gives_the_same(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        struct packet all = conversation(version);
        struct outcome whole = run(version, &all, all.size, all.size);
        assert_true(whole.talker_size > 1500 && whole.watcher_size > 1500);
        for (size_t split = 1; split <= all.size; split++) {
            /* The last round is byte by byte. */
            struct outcome cut = run(version, &all, split == all.size ? 1 : split, split == all.size ? 1 : all.size);
            if (cut.talker_size != whole.talker_size || memcmp(cut.talker, whole.talker, whole.talker_size) != 0 ||
                cut.watcher_size != whole.watcher_size || memcmp(cut.watcher, whole.watcher, whole.watcher_size) != 0)
                fail_msg("version %d split at %zu", version, split);
            free(cut.talker);
            free(cut.watcher);
        }
        free(whole.talker);
        free(whole.watcher);
    }
}

static void spoilt_conversations_disturb_nobody_else(void **state) {
    struct world world = {0};
    struct client watcher, speaker;
    (void)state;

    random_state = 0xD6E8FEB86659FD93u;
    world_begin(&world);
    client_connect(&world, &watcher, 4, "watcher");
    client_subscribe(&watcher, "calm", 0);
    client_connect(&world, &speaker, 4, "speaker");
    for (int round = 0; round < 4000; round++) {
        int version = 4 + round % 2;
        struct packet all = conversation(version);
        struct client talker;
        spoil(&all);
        client_open(&world, &talker, version);
        say(&talker, &all);
        client_cut(&talker);
        pass(&world, 10);
        say_publish(&speaker, &(struct publish){.topic = "calm", .payload = "x"});
        expect(&watcher, "publish q0 calm 'x'");
    }
    client_cut(&watcher);
    client_cut(&speaker);
    world_end(&world);
}

/* What the broker would send is read back by the test's own reader: here only sizes and the limit. */
static void publish_head_has_the_size_announced(void **state) {
    static const uint32_t identifiers[] = {1, 127, 128, 16384, 2097152, 268435455};
    struct message message = {
        .topic = "topic", .topic_size = 5, .properties = (const uint8_t *)"\x01\x01", .properties_size = 2};
    uint8_t out[128];
    (void)state;

    for (size_t count = 0; count <= 6; count++) {
        for (int row = 0; row < 4; row++) { /* the last two with an alias, beside the topic and instead of it */
            struct mqtt_sending sending = {.version = row == 0 ? 4 : 5,
                                           .qos = 1,
                                           .packet_id = 1,
                                           .topic_alias = row >= 2 ? 258 : 0,
                                           .topic_is_known = row == 3,
                                           .expiry_left_s = 7,
                                           .identifiers = identifiers,
                                           .identifier_count = count,
                                           .message = &message};
            uint32_t packet_size;
            size_t size = mqtt_publish_head_size(&sending, &packet_size);
            struct cursor cursor = {out, out + packet_size};
            size_t remaining;
            assert_int_equal(size + (row == 0 ? 0 : message.properties_size), packet_size);
            mqtt_encode_publish_head(out, &sending);
            mqtt_encode_publish_tail(out + size, &sending);
            take8(&cursor);
            remaining = take_length(&cursor);
            assert_int_equal(remaining, cursor.end - cursor.at);
        }
    }
    message.payload_size = 268435455;
    {
        struct mqtt_sending sending = {.version = 4, .message = &message};
        uint32_t packet_size;
        assert_int_equal(mqtt_publish_head_size(&sending, &packet_size), 0);
        assert_int_equal(packet_size, UINT32_MAX);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_read_as_written),
        cmocka_unit_test(padded_length_is_malformed),
        cmocka_unit_test(each_property_stands_only_where_the_table_says),
        cmocka_unit_test(strip_takes_out_what_concerns_one_hop),
        cmocka_unit_test(publish_head_has_the_size_announced),
        cmocka_unit_test(spoilt_packets_are_decoded_within_their_bounds),
        cmocka_unit_test(any_split_of_a_conversation_gives_the_same),
        cmocka_unit_test(spoilt_conversations_disturb_nobody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
