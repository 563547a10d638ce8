#include "gossip_net.h"

#include "gossip/seal.h"
#include "gossip/signed.h"

static uint64_t state = 0x123456789abcdefu;
static uint32_t roll(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

static void numbers_of_every_width_come_back(void **unused) {
    (void)unused;
    static const uint64_t numbers[] = {0, 1, 127, 128, 255, 256, 65535, 65536, UINT32_MAX, 1ull << 32, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint8_t bytes[16];
        struct wire_out out;
        struct wire_in in;
        wire_out_init(&out, bytes, sizeof bytes);
        wire_put_uint(&out, numbers[i]);
        wire_in_init(&in, bytes, out.size);
        assert_int_equal(wire_get_uint(&in), numbers[i]);
        assert_true(wire_end(&in) && !in.failed);
        for (size_t cut = 0; cut < out.size; cut++) {
            wire_in_init(&in, bytes, cut);
            wire_get_uint(&in);
            assert_true(in.failed);
        }
    }
}

static void what_does_not_fit_is_not_written(void **unused) {
    (void)unused;
    uint8_t bytes[8];
    struct wire_out out;
    wire_out_init(&out, bytes, sizeof bytes);
    wire_put_uint(&out, 5);
    wire_put_bytes(&out, "1234567", 7);
    assert_true(out.failed);
    wire_rewind(&out, 1);
    wire_put_bytes(&out, "12345", 5);
    assert_false(out.failed);
    assert_int_equal(out.size, 8);
}

static void a_length_is_believed_only_when_its_bytes_are_there(void **unused) {
    (void)unused;
    static const uint8_t huge_array[] = {0xdd, 0xff, 0xff, 0xff, 0xff}, large_array[] = {0xdc, 0xff, 0xff, 0},
                         huge_bin[] = {0xc6, 0x7f, 0xff, 0xff, 0xff, 1}, bin[] = {0xc5, 0xff, 0xff, 1};
    struct wire_in in;
    size_t size;
    wire_in_init(&in, huge_array, sizeof huge_array);
    assert_int_equal(wire_get_array(&in), 0);
    assert_true(in.failed);
    wire_in_init(&in, large_array, sizeof large_array);
    assert_int_equal(wire_get_array(&in), 0);
    assert_true(in.failed);
    wire_in_init(&in, huge_bin, sizeof huge_bin);
    assert_null(wire_get_bytes(&in, SIZE_MAX, &size));
    assert_true(in.failed);
    wire_in_init(&in, bin, sizeof bin);
    assert_null(wire_get_bytes(&in, SIZE_MAX, &size));
    assert_true(in.failed && size == 0);
}

static void unknown_messages_and_more_fields_are_passed_over(void **unused) {
    (void)unused;
    uint8_t bytes[200];
    struct wire_out out;
    struct wire_in in;
    struct message message;
    wire_out_init(&out, bytes, sizeof bytes);
    wire_put_array(&out, 3); /* a kind from the future, with nested content */
    wire_put_uint(&out, 99);
    wire_put_array(&out, 2);
    wire_put_uint(&out, 7);
    wire_put_bytes(&out, "abc", 3);
    wire_put_raw(&out, "\x81\xa1k\xc3", 4);
    wire_put_array(&out, 4); /* a ping with two fields more */
    wire_put_uint(&out, MESSAGE_PING);
    wire_put_uint(&out, 42);
    wire_put_raw(&out, "\xc0\xcb\x3f\xf0\0\0\0\0\0\0", 10);
    wire_in_init(&in, bytes, out.size);
    assert_true(message_get(&in, &message));
    assert_int_equal(message.kind, MESSAGE_PING);
    assert_int_equal(message.number, 42);
    assert_false(message_get(&in, &message));
    assert_false(in.failed);
}

static void every_kind_of_message_comes_back_at_its_largest_beside_the_largest_header(void **unused) {
    (void)unused;
    static uint8_t blob[2000], key[GOSSIP_PUBLIC_KEY_SIZE];
    static const size_t sizes[] = {[MESSAGE_HEAD] = MESSAGE_BLOB_MAX,
                                   [MESSAGE_ENTRY] = MESSAGE_BLOB_MAX,
                                   [MESSAGE_TOKEN] = MESSAGE_TOKEN_MAX,
                                   [MESSAGE_REFUSED] = MESSAGE_REASON_MAX,
                                   [MESSAGE_BUCKETS] = MESSAGE_BUCKET_COUNT * 8,
                                   [MESSAGE_VERSIONS] = MESSAGE_VERSIONS_MAX * MESSAGE_VERSION_SIZE,
                                   [MESSAGE_CHUNK] = MESSAGE_CHUNK_SIZE,
                                   [MESSAGE_SEEN_AT] = 0};
    for (int kind = MESSAGE_HEAD; kind <= MESSAGE_SEEN_AT; kind++) {
        uint8_t bytes[1167];
        struct wire_out out;
        struct wire_in in;
        struct packet_header header = {.epoch = UINT64_MAX,
                                       .incarnation = UINT64_MAX,
                                       .sequence = UINT64_MAX,
                                       .holds_epoch = UINT64_MAX,
                                       .holds_incarnation = UINT64_MAX,
                                       .holds_sequence = UINT64_MAX},
                             header_back;
        struct message message = {.kind = (enum message_kind)kind,
                                  .number = UINT64_MAX,
                                  .flag = true,
                                  .key = key,
                                  .bytes = blob,
                                  .size = sizes[kind],
                                  .version = {.epoch = UINT64_MAX, .incarnation = UINT64_MAX, .sequence = UINT64_MAX},
                                  .address = {.family = 6, .ip = {1, 2, 3}, .port = 65535}},
                       back;
        memset(message.other.bytes, 0xee, 16);
        wire_out_init(&out, bytes, sizeof bytes);
        header_put(&out, &header);
        assert_true(out.size <= MESSAGE_HEADER_MAX);
        message_put(&out, &message);
        assert_false(out.failed);
        wire_in_init(&in, bytes, out.size);
        header_get(&in, &header_back);
        assert_true(message_get(&in, &back));
        assert_int_equal(back.kind, kind);
        assert_int_equal(back.size, sizes[kind]);
        assert_true(wire_end(&in));
    }
}

/* Random changes of a good packet: nothing but a result may come of it (the sanitizers watch). */
static void mutate(uint8_t *bytes, size_t *size, size_t max) {
    for (uint32_t changes = 1 + roll(4); changes > 0; changes--) {
        size_t at = *size ? roll((uint32_t)*size) : 0;
        switch (roll(5)) {
        case 0: bytes[at] = (uint8_t)roll(256); break;
        case 1: bytes[at] ^= (uint8_t)(1u << roll(8)); break;
        case 2: *size = at; break;
        case 3:
            if (*size < max) bytes[(*size)++] = (uint8_t)roll(256);
            break;
        default: { /* tags are where the structure is */
            static const uint8_t tags[] = {0xc4, 0xc5, 0xc6, 0xd9, 0xdb, 0xdc, 0xdd,
                                           0xde, 0xcf, 0x9f, 0x90, 0x8f, 0xc1, 0xff};
            bytes[at] = tags[roll(sizeof tags)];
        }
        }
    }
}

static void mutated_packets_are_counted_and_harm_nothing(void **unused) {
    (void)unused;
    enum { SAMPLES_MAX = 300 };
    static struct net_packet samples[SAMPLES_MAX];
    size_t sample_count = 0;
    struct net *net = net_new(3, 81);
    net->delay_max_ms = 60; /* so that many are on their way at any time */
    net->loss_percent = 10;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    /* Real traffic to learn from: joining, rows, checkpoints, digests. */
    for (int i = 0; i < 300; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "m/%d", i);
        net_row(net, 1, filter, true);
        for (struct net_packet *packet = net->packets; packet && sample_count < SAMPLES_MAX; packet = packet->next)
            if (packet->to == 0) samples[sample_count++] = *packet;
        net_run(net, 30);
    }
    assert_true(net_until(net, net_agreed, 5000));
    assert_int_equal(sample_count, SAMPLES_MAX);
    struct gossip *target = net->nodes[0].gossip;
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct chance chance = {99};
    struct seal seal;
    assert_true(seal_init(&seal, &options, &chance));
    for (int i = 0; i < 200000; i++) {
        struct net_packet sample = samples[roll(SAMPLES_MAX)];
        uint8_t plain[SEAL_PLAIN_MAX];
        bool own;
        if (i % 10 == 0) { /* sealed: it must not open */
            mutate(sample.bytes, &sample.size, sizeof sample.bytes);
            gossip_receive(target, net->now_ms, &sample.source, sample.bytes, sample.size);
            continue;
        }
        long opened = seal_open(&seal, &crypto, sample.bytes, sample.size, plain, &own);
        assert_true(opened > 0);
        size_t size = (size_t)opened;
        mutate(plain, &size, sizeof plain);
        size = seal_close(&seal, &crypto, plain, size, sample.bytes);
        gossip_receive(target, net->now_ms, &sample.source, sample.bytes, size);
        struct gossip_datagram datagram;
        struct gossip_event event;
        while (gossip_next_datagram(target, &datagram))
            assert_true(datagram.size <= GOSSIP_DATAGRAM_MAX);
        while (gossip_next_event(target, &event))
            net_note_event(net, 0, &event);
        if (i % 100 == 0) gossip_tick(target, net->now_ms);
    }
    struct gossip_counters counters;
    gossip_read_counters(target, &counters);
    assert_true(counters.malformed > 10000);
    assert_true(counters.unsealed > 10000);
    net->loss_percent = 0;
    assert_true(net_until(net, net_agreed, 60000)); /* and it goes on as before */
    net_free(net);
}

static void signed_objects_do_not_pass_for_each_other(void **unused) {
    (void)unused;
    struct net_identity identity = {.public_key = {4, 1}};
    struct gossip_crypto crypto = {.context = &identity, .sign = net_sign, .sha256 = net_sha256};
    struct head head = {.epoch = 3, .incarnation = 4, .sequence = 5, .name = "edge-1"}, back;
    struct entry entry;
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = head_sign(&head, &crypto, bytes);
    assert_true(size > 0);
    assert_true(head_read(bytes, size, &back));
    assert_int_equal(back.incarnation, 4);
    assert_string_equal(back.name, "edge-1");
    assert_false(entry_read(bytes, size, &entry));
    assert_false(head_read(bytes, size - 1, &back));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_width_come_back),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(a_length_is_believed_only_when_its_bytes_are_there),
        cmocka_unit_test(unknown_messages_and_more_fields_are_passed_over),
        cmocka_unit_test(every_kind_of_message_comes_back_at_its_largest_beside_the_largest_header),
        cmocka_unit_test(mutated_packets_are_counted_and_harm_nothing),
        cmocka_unit_test(signed_objects_do_not_pass_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
