/* The codec of link frames: what is written is read back, and nothing else is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/digest.h"
#include "broker/frames.h"

#include <stdlib.h>
#include <string.h>

static struct hello a_hello(void) {
    struct hello hello = {.protocol_min = 1,
                          .protocol_max = 3,
                          .name = "edge-1",
                          .name_size = 6,
                          .federation = "home",
                          .federation_size = 4,
                          .epoch = 1ull << 40,
                          .token = (const uint8_t *)"token",
                          .token_size = 5,
                          .stream = 2,
                          .first = 300,
                          .seen_epoch = 7,
                          .seen_stream = 1,
                          .expected = 70000,
                          .credit = 0,
                          .frame_size_max = 1u << 24};
    memset(hello.id, 0xab, sizeof hello.id);
    return hello;
}

static void hello_is_read_as_written(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct frame frame;
    struct hello hello = a_hello();
    frame_write_hello(&out, &hello);
    assert_false(out.failed);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
    assert_int_equal(frame.type, FRAME_HELLO);
    assert_int_equal(frame.hello.protocol_max, 3);
    assert_memory_equal(frame.hello.id, hello.id, 16);
    assert_int_equal(frame.hello.epoch, 1ull << 40);
    assert_memory_equal(frame.hello.token, "token", 5);
    assert_memory_equal(frame.hello.name, "edge-1", 6);
    assert_int_equal(frame.hello.federation_size, 4);
    assert_memory_equal(frame.hello.federation, "home", 4);
    assert_int_equal(frame.hello.stream, 2);
    assert_int_equal(frame.hello.first, 300);
    assert_int_equal(frame.hello.seen_epoch, 7);
    assert_int_equal(frame.hello.seen_stream, 1);
    assert_int_equal(frame.hello.expected, 70000);
    assert_int_equal(frame.hello.frame_size_max, 1u << 24);
    frame_out_deinit(&out);
}

static void write_names(struct frame_out *out, enum frame_type type, uint32_t count, size_t size) {
    char text[65536];
    memset(text, 'n', sizeof text);
    frame_begin_names(out, type, 42);
    for (uint32_t i = 0; i < count; i++)
        frame_add_name(out, text, size + i);
    frame_end_items(out);
}

static void names_are_read_as_written(void **state) {
    (void)state;
    static const enum frame_type types[] = {FRAME_JOIN,   FRAME_LEAVE,   FRAME_JOINED,
                                            FRAME_INVITE, FRAME_DECLINE, FRAME_KEEP};
    static const size_t sizes[] = {1, 30, 254, 65533};
    struct frame_out out = {0};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct frame frame;
            const char *text;
            size_t size;
            write_names(&out, types[t], 3, sizes[s]);
            assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
            assert_int_equal(frame.type, types[t]);
            assert_int_equal(frame.item_count, 3);
            for (size_t i = 0; i < 3; i++) {
                assert_true(frame_next_name(&frame, &text, &size));
                assert_int_equal(size, sizes[s] + i);
            }
            assert_false(frame_next_name(&frame, &text, &size));
            if (types[t] == FRAME_JOINED || types[t] == FRAME_KEEP) assert_int_equal(frame.code, 42);
            if (types[t] == FRAME_DECLINE) assert_int_equal(frame.ttl_ms, 42);
        }
    }
    frame_out_deinit(&out);
}

static void assert_written(struct frame_out *out, const uint8_t *example, size_t size) {
    frame_end_items(out);
    assert_int_equal(out->size, size);
    assert_memory_equal(out->bytes, example, size);
}

static void the_examples_of_the_protocol_page_are_true(void **state) {
    (void)state;
    static const uint8_t join[] = {0x92, 0x03, 0xdd, 0, 0, 0, 1, 0xa3, 'a', '/', '#'},
                         because[] = {0x93, 0x10, 7, 0xdd, 0, 0, 0, 1, 0x93, 0x1e, 1, 0xa2, 'n', 'o'};
    struct frame_out out = {0};
    frame_begin_names(&out, FRAME_JOIN, 0);
    frame_add_name(&out, "a/#", 3);
    assert_written(&out, join, sizeof join);
    frame_begin_names(&out, FRAME_BECAUSE, 7);
    frame_add_step(&out, &(struct inquiry_step){.stage = 30, .stops = true, .text = "no", .size = 2});
    assert_written(&out, because, sizeof because);
    frame_out_deinit(&out);
}

static void names_out_of_size_are_malformed(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct frame frame;
    frame_begin_names(&out, FRAME_JOIN, 0);
    frame_add_name(&out, "", 0);
    frame_end_items(&out);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_MALFORMED);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    frame_begin_names(&out, FRAME_JOIN, 0);
    frame_add_name(&out, text, 65536);
    frame_end_items(&out);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_MALFORMED);
    free(text);
    frame_out_deinit(&out);
}

static struct message a_message(unsigned variant) {
    static const uint8_t payload[] = "payload";
    struct message message = {.qos = (uint8_t)(variant % 3),
                              .retain = variant & 4,
                              .topic = "a/topic",
                              .topic_size = 7,
                              .payload = payload,
                              .payload_size = variant & 8 ? 7 : 0,
                              .properties = payload,
                              .properties_size = variant & 16 ? 3 : 0};
    message.stamp.wall_ms = 1ull << 41;
    message.stamp.count = 9;
    return message;
}

static uint64_t expiry_of(unsigned variant) {
    return variant & 32 ? (variant & 1 ? UINT32_MAX : variant) : MESSAGE_NO_EXPIRY;
}

/* As many groups as the last digit of the variant says: of 7 up none. */
static struct aims *aims_for(unsigned variant) {
    struct aims *aims = NULL;
    for (unsigned i = 0; variant % 10 < 7 && i < variant % 10; i++) {
        char group[] = "$share/a/b";
        group[7] = (char)('a' + i);
        assert_int_equal(aims_add(&aims, group, strlen(group)), 0);
    }
    if (aims) aims->what = (uint8_t)(variant % 3); /* others, returned, or neither */
    return aims;
}

static void assert_groups(struct publication *publication, unsigned variant) {
    unsigned count = variant % 10 < 7 ? variant % 10 : 0;
    const char *group;
    size_t size;
    assert_int_equal(publication->group_count, count);
    assert_int_equal(publication->groups_only, count > 0 && variant % 3 != AIMS_OTHERS);
    assert_int_equal(publication->returned, count > 0 && variant % 3 == AIMS_RETURNED);
    for (unsigned i = 0; i < count; i++) {
        assert_true(publication_next_group(publication, &group, &size));
        assert_int_equal(size, 10);
        assert_int_equal(group[7], 'a' + i);
    }
    assert_false(publication_next_group(publication, &group, &size));
}

static void publications_are_read_as_written(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct frame frame;
    struct publication publication;
    frame_begin_publish(&out, 1000);
    for (unsigned variant = 0; variant < 64; variant++) {
        struct message message = a_message(variant);
        struct aims *aims = aims_for(variant);
        frame_add_publication(&out, &message, aims, message.retain && variant & 1, expiry_of(variant));
        free(aims);
        if (variant % 7 == 0) frame_add_skipped(&out);
    }
    frame_end_items(&out);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
    assert_int_equal(frame.sequence, 1000);
    for (unsigned variant = 0; variant < 64; variant++) {
        struct message message = a_message(variant);
        assert_true(frame_next_publication(&frame, &publication));
        assert_false(publication.skipped);
        assert_int_equal(publication.qos, message.qos);
        assert_int_equal(publication.retain, message.retain);
        assert_int_equal(publication.snapshot, message.retain && variant & 1);
        assert_memory_equal(publication.topic, "a/topic", 7);
        assert_int_equal(publication.payload_size, message.payload_size);
        assert_int_equal(publication.properties_size, message.properties_size);
        assert_true(publication.expiry_s == expiry_of(variant));
        assert_int_equal(publication.stamp_wall_ms, message.retain ? 1ull << 41 : 0);
        assert_int_equal(publication.stamp_count, message.retain ? 9 : 0);
        assert_groups(&publication, variant);
        if (variant % 7 == 0) {
            assert_true(frame_next_publication(&frame, &publication));
            assert_true(publication.skipped);
        }
    }
    assert_false(frame_next_publication(&frame, &publication));
    frame_out_deinit(&out);
}

static void the_bounds_given_for_a_publication_hold(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct message message = a_message(2 | 4 | 8 | 16);
    frame_begin_publish(&out, UINT64_MAX >> 1);
    assert_true(out.size <= FRAME_PUBLISH_OVERHEAD);
    message.stamp.wall_ms = UINT64_MAX;
    message.stamp.count = UINT32_MAX;
    size_t before = out.size;
    struct aims *aims = aims_for(10);
    char longest[300] = "$share/g/";
    memset(longest + 9, 'x', sizeof longest - 9);
    assert_int_equal(aims_add(&aims, longest, sizeof longest), 0);
    frame_add_publication(&out, &message, aims, true, UINT32_MAX);
    /* The long forms of the three lengths would add 4, 4 and 4 bytes. */
    assert_true(out.size - before + 12 <= message.topic_size + message.payload_size + message.properties_size +
                                              FRAME_PUBLICATION_OVERHEAD + FRAME_GROUP_OVERHEAD(aims->size));
    free(aims);
    frame_out_deinit(&out);
}

static struct inquiry an_inquiry(void) {
    struct inquiry inquiry = {.number = 1ull << 40, .topic = "a/b", .topic_size = 3};
    memset(inquiry.from, 0xcd, sizeof inquiry.from);
    memset(inquiry.to, 0xef, sizeof inquiry.to);
    return inquiry;
}

static void write_steps(struct frame_out *out) {
    frame_begin_names(out, FRAME_BECAUSE, 77);
    frame_add_step(out, &(struct inquiry_step){.stage = 30, .text = "it is", .size = 5});
    frame_add_step(out, &(struct inquiry_step){.stage = UINT64_MAX, .stops = true, .text = "", .size = 0});
    frame_end_items(out);
}

static void inquiries_are_read_as_written(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct frame frame;
    struct inquiry inquiry = an_inquiry();
    frame_write_why(&out, &inquiry);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
    assert_int_equal(frame.type, FRAME_WHY);
    assert_int_equal(frame.inquiry.number, 1ull << 40);
    assert_int_equal(frame.inquiry.topic_size, 3);
    assert_memory_equal(frame.inquiry.topic, "a/b", 3);
    assert_memory_equal(frame.inquiry.from, inquiry.from, 16);
    assert_memory_equal(frame.inquiry.to, inquiry.to, 16);
    struct inquiry_step step;
    write_steps(&out);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
    assert_int_equal(frame.type, FRAME_BECAUSE);
    assert_int_equal(frame.inquiry.number, 77);
    assert_true(frame_next_step(&frame, &step) && step.stage == 30 && !step.stops && step.size == 5);
    assert_memory_equal(step.text, "it is", 5);
    assert_true(frame_next_step(&frame, &step) && step.stage == UINT64_MAX && step.stops && step.size == 0);
    assert_false(frame_next_step(&frame, &step));
    frame_out_deinit(&out);
}

static void write_digests(struct frame_out *out, enum frame_type type, unsigned parts) {
    static const uint8_t bytes[2 * DIGEST_SUMS_SIZE] = {1, 2, 3};
    const struct frame_digests digests = {.number = UINT32_MAX,
                                          .expected = 1ull << 50,
                                          .sums = {bytes, parts * DIGEST_SUMS_SIZE},
                                          .items = {bytes, 3 * parts * DIGEST_ITEM_SIZE},
                                          .nodes = {bytes, 5 * parts * DIGEST_NODE_SIZE},
                                          .wanted = {bytes, 7 * parts}};
    frame_write_digests(out, type, &digests);
}

static void digests_are_read_as_written(void **state) {
    (void)state;
    static const enum frame_type types[] = {FRAME_HOLDS, FRAME_COMPARE, FRAME_COMPARED};
    struct frame_out out = {0};
    struct frame frame;
    for (unsigned t = 0; t < 3; t++) {
        for (unsigned parts = 0; parts < 3; parts++) {
            write_digests(&out, types[t], parts);
            assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
            assert_int_equal(frame.type, types[t]);
            assert_int_equal(frame.digests.number, UINT32_MAX);
            assert_true(frame.digests.expected == (types[t] == FRAME_HOLDS ? 1ull << 50 : 0));
            assert_int_equal(frame.digests.sums.size, types[t] == FRAME_COMPARE ? 0 : parts * DIGEST_SUMS_SIZE);
            assert_int_equal(frame.digests.items.size, types[t] == FRAME_COMPARED ? 0 : 3 * parts * DIGEST_ITEM_SIZE);
            assert_int_equal(frame.digests.nodes.size, types[t] == FRAME_COMPARE ? 5 * parts * DIGEST_NODE_SIZE : 0);
            assert_int_equal(frame.digests.wanted.size, types[t] == FRAME_COMPARED ? 7 * parts : 0);
            if (parts > 0 && types[t] != FRAME_COMPARE) assert_int_equal(frame.digests.sums.bytes[2], 3);
            if (parts > 0 && types[t] == FRAME_COMPARE) assert_int_equal(frame.digests.nodes.bytes[2], 3);
        }
    }
    frame_out_deinit(&out);
}

/* One frame of each type, to be cut and bent. */
enum { SAMPLES = 18 };
static size_t sample(unsigned index, uint8_t *bytes, size_t capacity) {
    struct frame_out out = {0};
    struct hello hello = a_hello();
    struct inquiry inquiry = an_inquiry();
    switch (index % SAMPLES) {
    case 0: frame_write_hello(&out, &hello); break;
    case 1: frame_write_bye(&out, BYE_REFUSED, "the token has expired"); break;
    case 2: write_names(&out, FRAME_JOIN, 3, 10); break;
    case 3: write_names(&out, FRAME_LEAVE, 1, 40); break;
    case 4: write_names(&out, FRAME_JOINED, 2, 5); break;
    case 5: frame_write_plain(&out, FRAME_SYNCED); break;
    case 6:
        frame_begin_publish(&out, 5);
        for (unsigned variant = 0; variant < 32; variant += 5) {
            struct message message = a_message(variant);
            struct aims *aims = aims_for(variant);
            frame_add_publication(&out, &message, aims, false, 60);
            free(aims);
        }
        frame_add_skipped(&out);
        frame_end_items(&out);
        break;
    case 7: frame_write_ack(&out, 77); break;
    case 8: write_names(&out, FRAME_INVITE, 2, 8); break;
    case 9: write_names(&out, FRAME_DECLINE, 1, 8); break;
    case 10: frame_write_plain(&out, FRAME_PING); break;
    case 11: frame_write_plain(&out, FRAME_PONG); break;
    case 12: frame_write_why(&out, &inquiry); break;
    case 13: write_steps(&out); break;
    case 14: write_digests(&out, FRAME_HOLDS, 1); break;
    case 15: write_digests(&out, FRAME_COMPARE, 2); break;
    case 16: write_digests(&out, FRAME_COMPARED, 0); break;
    case 17:
        frame_begin_members(&out);
        frame_add_members(&out,
                          &(struct frame_members){.group = "$share/g/a", .size = 10, .connected = 2, .away = 300});
        frame_add_members(&out, &(struct frame_members){.group = "$share/h/b", .size = 10, .connected = UINT32_MAX});
        frame_end_items(&out);
        break;
    }
    assert_false(out.failed);
    assert_true(out.size <= capacity);
    memcpy(bytes, out.bytes, out.size);
    size_t size = out.size;
    frame_out_deinit(&out);
    return size;
}

static void a_frame_cut_anywhere_or_with_a_tail_is_malformed(void **state) {
    (void)state;
    uint8_t bytes[2048];
    struct frame frame;
    for (unsigned index = 0; index < SAMPLES; index++) {
        size_t size = sample(index, bytes, sizeof bytes - 1);
        assert_int_equal(frame_read(bytes, size, &frame), FRAME_OK);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *exact = malloc(cut + 1); /* so that the sanitizer sees a read beyond */
            assert_non_null(exact);
            memcpy(exact, bytes, cut);
            exact = realloc(exact, cut ? cut : 1);
            assert_int_equal(frame_read(exact, cut, &frame), FRAME_MALFORMED);
            free(exact);
        }
        bytes[size] = 0;
        assert_int_equal(frame_read(bytes, size + 1, &frame), FRAME_MALFORMED);
    }
}

static void counts_are_believed_only_when_the_bytes_are_there(void **state) {
    (void)state;
    struct frame frame;
    static const struct {
        size_t size;
        uint8_t bytes[12];
    } lies[] = {
        {5, {0xdd, 0xff, 0xff, 0xff, 0xff}},                /* an array of 4 billion */
        {7, {0x92, 3, 0xdd, 0x7f, 0xff, 0xff, 0xff}},       /* as many filters */
        {8, {0x92, 3, 0x91, 0xdb, 0xff, 0xff, 0xff, 0xff}}, /* a text of 4 GiB */
        {8, {0x93, 7, 1, 0xdd, 0xff, 0xff, 0xff, 0xff}},    /* publications */
        {9, {0x93, 2, 1, 0xc6, 0xff, 0xff, 0xff, 0xff, 0}}, /* bin where text belongs */
        {2, {0x91, 0}},
        {2, {0x91, 13}},
        {2, {0x92, 11}},
        {6, {0x94, 18, 1, 0xc4, 1, 7}},                 /* a part of a node, */
        {10, {0x95, 17, 1, 1, 0xc4, 0, 0xc4, 2, 1, 1}}, /* of an item */
        {8, {0x94, 19, 1, 0xc4, 1, 1, 0xc4, 0}},        /* and of sums */
        {6, {0x94, 19, 1, 0xc4, 0, 0xa0}},              /* text where bin belongs */
        {1, {0x90}},
        {1, {0xc0}},                                                           /* too many fields, none, no array */
        {5, {0x93, 7, 1, 0x91, 0x90}},                                         /* a publication without fields */
        {8, {0x93, 7, 1, 0x91, 0x93, 3, 0xa1, 't'}},                           /* QoS 3 */
        {9, {0x93, 7, 1, 0x91, 0x93, 8, 0xa1, 't', 0xc4}},                     /* snapshot of what is not retained */
        {10, {0x92, 8, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},       /* cut */
        {11, {0x92, 8, 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}, /* a sequence out of reach */
        {9, {0x95, 15, 1, 0xa1, 't', 0xc4, 0, 0xc4, 0}},                       /* no ids of brokers */
        {8, {0x93, 16, 1, 0x91, 0x93, 1, 2, 0xa0}},                            /* stops neither nor */
        {7, {0x93, 16, 1, 0x91, 0x92, 1, 0xa0}},                               /* a step without its text */
        {8, {0x93, 16, 1, 0xdd, 0xff, 0xff, 0xff, 0xff}},                      /* steps */
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        assert_int_equal(frame_read(lies[i].bytes, lies[i].size, &frame), FRAME_MALFORMED);
}

static void packets_are_read_as_written(void **state) {
    (void)state;
    struct frame_out out = {0};
    struct frame frame;
    const uint8_t *bytes;
    size_t size;
    frame_begin_packets(&out);
    frame_add_packet(&out, (const uint8_t *)"one", 3);
    frame_add_packet(&out, NULL, 0);
    frame_add_packet(&out, (const uint8_t *)"three", 5);
    frame_end_items(&out);
    assert_int_equal(frame_read(out.bytes, out.size, &frame), FRAME_OK);
    assert_int_equal(frame.type, FRAME_GOSSIP);
    assert_true(frame_next_packet(&frame, &bytes, &size) && size == 3 && memcmp(bytes, "one", 3) == 0);
    assert_true(frame_next_packet(&frame, &bytes, &size) && size == 0);
    assert_true(frame_next_packet(&frame, &bytes, &size) && size == 5 && memcmp(bytes, "three", 5) == 0);
    assert_false(frame_next_packet(&frame, &bytes, &size));
    for (size_t cut = 0; cut < out.size; cut++)
        assert_int_equal(frame_read(out.bytes, cut, &frame), FRAME_MALFORMED);
    assert_int_equal(frame_read((const uint8_t[]){0x92, 13, 0x91, 0xa1, 'x'}, 5, &frame), FRAME_MALFORMED);
    frame_out_deinit(&out);
}

static void frame_of_a_later_version_is_passed_over(void **state) {
    (void)state;
    struct frame frame;
    assert_int_equal(frame_read((const uint8_t[]){0x91, 21}, 2, &frame), FRAME_UNKNOWN);
    assert_int_equal(frame_read((const uint8_t[]){0x93, 127, 0xc1, 0}, 4, &frame), FRAME_UNKNOWN);
    assert_int_equal(frame_read((const uint8_t[]){0x92, 0xcf, 1, 0, 0, 0, 0, 0, 0, 0, 1}, 11, &frame), FRAME_UNKNOWN);
    assert_int_equal(frame_read((const uint8_t[]){0x90, 14}, 2, &frame), FRAME_MALFORMED);
    assert_int_equal(frame_read((const uint8_t[]){0x91, 0}, 2, &frame), FRAME_MALFORMED);
}

static uint64_t next_random(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Whatever is read as good can be walked to its end within its bytes. */
static void mutated_frames_do_no_harm(void **state) {
    (void)state;
    uint64_t random = 0x243f6a8885a308d3u;
    uint8_t bytes[4096];
    unsigned good = 0;
    for (unsigned round = 0; round < 200000; round++) {
        size_t size = sample((unsigned)next_random(&random), bytes, 2048);
        for (uint64_t edits = next_random(&random) % 4; edits > 0; edits--) {
            size_t at = next_random(&random) % size;
            uint64_t kind = next_random(&random) % 4;
            if (kind == 0)
                bytes[at] = (uint8_t)next_random(&random);
            else if (kind == 1)
                bytes[at] ^= (uint8_t)(1u << next_random(&random) % 8);
            else if (kind == 2 && size > 1)
                memmove(bytes + at, bytes + at + 1, --size - at);
            else
                memmove(bytes + at + 1, bytes + at, size++ - at);
        }
        uint8_t *exact = malloc(size);
        assert_non_null(exact);
        memcpy(exact, bytes, size);
        struct frame frame;
        if (frame_read(exact, size, &frame) == FRAME_OK) {
            struct publication publication;
            struct inquiry_step step;
            struct frame_members members;
            const char *text;
            size_t length, sum = 0;
            good++;
            if (frame.type == FRAME_PUBLISH)
                while (frame_next_publication(&frame, &publication))
                    sum += publication.topic_size + publication.payload_size + publication.properties_size +
                           publication.groups_size;
            else if (frame.type == FRAME_BECAUSE)
                while (frame_next_step(&frame, &step))
                    sum += step.size;
            else if (frame.type == FRAME_MEMBERS)
                while (frame_next_members(&frame, &members))
                    sum += members.size;
            else
                while (frame_next_name(&frame, &text, &length))
                    sum += length;
            assert_true(sum <= size);
        }
        free(exact);
    }
    assert_true(good > 50000 && good < 190000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_read_as_written),
        cmocka_unit_test(names_are_read_as_written),
        cmocka_unit_test(the_examples_of_the_protocol_page_are_true),
        cmocka_unit_test(names_out_of_size_are_malformed),
        cmocka_unit_test(publications_are_read_as_written),
        cmocka_unit_test(digests_are_read_as_written),
        cmocka_unit_test(the_bounds_given_for_a_publication_hold),
        cmocka_unit_test(a_frame_cut_anywhere_or_with_a_tail_is_malformed),
        cmocka_unit_test(counts_are_believed_only_when_the_bytes_are_there),
        cmocka_unit_test(packets_are_read_as_written),
        cmocka_unit_test(inquiries_are_read_as_written),
        cmocka_unit_test(frame_of_a_later_version_is_passed_over),
        cmocka_unit_test(mutated_frames_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
