/* P23: what bytes of strangers can make us allocate, and send. Allocations are counted, none fails. */
#include "gossip_net.h"
#include "oom.h"

#include "gossip/message.h"
#include "gossip/seal.h"
#include "gossip/signed.h"

static uint64_t state = 0x853c49e6748fea9bu;
static uint32_t roll(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

struct tally {
    uint64_t sent, received;
};

static size_t seal_up(const struct net *net, const uint8_t *plain, size_t size, uint8_t out[GOSSIP_DATAGRAM_MAX]) {
    static uint32_t nonce = 77;
    struct chance chance = {77};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    assert_true(seal_init(&seal, &options, &chance));
    seal.counter = nonce++;
    return seal_close(&seal, &crypto, plain, size, out);
}

/* What the first broker sends to this address is counted; the rest goes its way. */
static void collect(struct net *net, const struct gossip_address *from, struct tally *tally) {
    struct gossip_datagram datagram;
    while (gossip_next_datagram(net->nodes[0].gossip, &datagram)) {
        bool ours = memcmp(datagram.to.ip, from->ip, 16) == 0 && datagram.to.port == from->port;
        if (ours) tally->received += datagram.size;
        for (int to = 0; !ours && to < net->count; to++)
            if (memcmp(net->nodes[to].address.ip, datagram.to.ip, 16) == 0)
                net_put(net, 0, to, &net->nodes[0].address, datagram.bytes, datagram.size);
    }
}

static void say(struct net *net, const struct gossip_address *from, const uint8_t *plain, size_t size,
                struct tally *tally) {
    uint8_t sealed[GOSSIP_DATAGRAM_MAX];
    size_t sealed_size = seal_up(net, plain, size, sealed);
    gossip_receive(net->nodes[0].gossip, net->now_ms, from, sealed, sealed_size);
    tally->sent += sealed_size;
    collect(net, from, tally);
}

static struct wire_out begin(uint8_t plain[SEAL_PLAIN_MAX], const struct member_id *id) {
    struct wire_out out;
    struct packet_header header = {.id = *id, .epoch = 1, .incarnation = 1};
    wire_out_init(&out, plain, SEAL_PLAIN_MAX);
    header_put(&out, &header);
    return out;
}

static struct net *with_rows(uint64_t seed) {
    struct net *net = net_new_running(3, seed);
    for (int i = 0; i < 200; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "some/rows/that/fill/a/checkpoint/%d", i);
        net_row(net, i % 3, filter, true);
        net_run(net, 25);
    }
    net_run(net, 1000);
    return net;
}

/* Beginnings that promise much: 4 G elements, 4 GB of bytes, deep nesting. */
static void put_promise(struct wire_out *out) {
    static const uint8_t promises[][6] = {
        {0xdd, 0xff, 0xff, 0xff, 0xff, 1}, {0xc6, 0xff, 0xff, 0xff, 0xff, 1}, {0xdb, 0xff, 0xff, 0xff, 0xff, 1},
        {0xdf, 0xff, 0xff, 0xff, 0xff, 1}, {0xc9, 0xff, 0xff, 0xff, 0xff, 1}, {0x91, 0x91, 0x91, 0x91, 0x91, 0x91},
        {0xdc, 0xff, 0xff, 0x92, 0x12, 1}, {0xc5, 0xff, 0xff, 0xff, 0xff, 1},
    };
    wire_put_raw(out, promises[roll(8)], 6);
}

static void what_hostile_bytes_make_us_allocate_is_bounded_by_the_bytes(void **unused) {
    (void)unused;
    struct net *net = with_rows(81);
    struct gossip_address den = {.family = 4, .ip = {192, 0, 2, 66}, .port = 666};
    struct tally tally = {0, 0};
    unsigned long long before = shortage.bytes, own = 0;
    for (int i = 0; i < 4000; i++) {
        uint8_t plain[SEAL_PLAIN_MAX], noise[600];
        struct member_id id = net_id(net, (int)roll(6));
        if (roll(4) == 0) id.bytes[0] = (uint8_t)roll(256); /* somebody new each time */
        struct wire_out out = begin(plain, &id);
        while (out.size < 200 + roll(800) && !out.failed) {
            size_t good = out.size;
            for (size_t j = 0; j < sizeof noise; j++)
                noise[j] = (uint8_t)roll(256);
            wire_put_array(&out, 1 + roll(8));
            wire_put_uint(&out, 1 + roll(45));
            if (roll(2)) wire_put_id(&out, &id);
            for (uint32_t j = roll(5); j > 0; j--)
                wire_put_uint(&out, roll(2) ? roll(4) : UINT64_MAX - roll(4));
            if (roll(2)) wire_put_bytes(&out, noise, roll(sizeof noise));
            if (roll(3) == 0) put_promise(&out);
            if (out.failed) wire_rewind(&out, good);
            if (out.size == good) break;
        }
        den.port = (uint16_t)(1000 + roll(3));
        unsigned long long at = shortage.bytes;
        say(net, &den, plain, out.size, &tally);
        unsigned long long took = shortage.bytes - at;
        own = took > own ? took : own;
        if (i % 16 == 0) {
            net->now_ms += 5;
            gossip_tick(net->nodes[0].gossip, net->now_ms);
            collect(net, &den, &tally);
        }
    }
    unsigned long long all = shortage.bytes - before;
    print_message("%d bytes in, %d allocated, at most %d for one datagram\n", (int)tally.sent, (int)all, (int)own);
    assert_true(all <= 4 * tally.sent);
    assert_true(own <= 256 * 1024); /* room for more members is made for many at once */
    net_free(net);
}

/* An owner with a token of its own promises the largest checkpoint there may be, and sends one chunk of it. */
static void a_checkpoint_that_is_promised_takes_no_memory(void **unused) {
    (void)unused;
    struct net *net = with_rows(82);
    struct net_node *owner = &net->nodes[4];
    struct gossip_address den = {.family = 4, .ip = {192, 0, 2, 66}, .port = 666};
    struct member_id id = net_id(net, 4);
    struct tally tally = {0, 0};
    uint8_t plain[SEAL_PLAIN_MAX], bytes[HEAD_SIZE_MAX], junk[500] = {1};
    struct gossip_crypto crypto = {.context = &owner->identity, .sign = net_sign};
    struct head head = {.id = id,
                        .epoch = 1,
                        .incarnation = 1,
                        .sequence = 1u << 20,
                        .checkpoint_sequence = 1u << 20,
                        .checkpoint_size = 1u << 20,
                        .name = "edge-5"};
    struct message token = {.kind = MESSAGE_TOKEN,
                            .key = owner->identity.public_key,
                            .bytes = (const uint8_t *)owner->token,
                            .size = strlen(owner->token)};
    struct wire_out out = begin(plain, &id);
    message_put(&out, &token);
    say(net, &den, plain, out.size, &tally);
    unsigned long long before = shortage.bytes;
    for (uint64_t i = 0; i < 50; i++) {
        head.incarnation++;
        head.checkpoint_sequence = head.sequence = head.sequence + 1;
        struct message message = {.kind = MESSAGE_HEAD, .bytes = bytes, .size = head_sign(&head, &crypto, bytes)};
        out = begin(plain, &id);
        message_put(&out, &message);
        struct message chunk = {.kind = MESSAGE_CHUNK,
                                .version = {.id = id, .epoch = 1, .sequence = head.sequence},
                                .number = i,
                                .bytes = junk,
                                .size = 500,
                                .proof = junk,
                                .proof_size = 320};
        message_put(&out, &chunk);
        assert_false(out.failed);
        say(net, &den, plain, out.size, &tally);
        net->now_ms += 20;
        gossip_tick(net->nodes[0].gossip, net->now_ms);
        collect(net, &den, &tally);
    }
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    print_message("%d allocated\n", (int)(shortage.bytes - before));
    assert_int_equal(counters.bad_signature, 0);
    assert_true(counters.registry_bytes > 1000);   /* it was believed, and is being fetched */
    assert_true(shortage.bytes - before < 300000); /* 50 MiB were promised */
    net_free(net);
}

static void put_one(struct wire_out *out, const struct net *net, uint64_t kind, uint32_t variant) {
    static const uint8_t zeros[600];
    struct member_id id = net_id(net, (int)(variant % 4)), all;
    struct message message = {.kind = (enum message_kind)kind,
                              .number = variant,
                              .version = {.id = id, .epoch = variant / 4 % 3, .incarnation = variant % 5},
                              .other = net_id(net, 1),
                              .address = net->nodes[1].address,
                              .key = net->nodes[variant % 6].identity.public_key,
                              .bytes = (const uint8_t *)net->nodes[variant % 6].token,
                              .size = strlen(net->nodes[variant % 6].token),
                              .proof = zeros,
                              .proof_size = 16};
    memset(&all, 0xff, sizeof all);
    if (kind == MESSAGE_BUCKETS || kind == MESSAGE_VERSIONS) {
        message.bytes = zeros;
        message.size = kind == MESSAGE_BUCKETS ? 512 : 0;
        message.version.id = (struct member_id){{0}};
        message.other = all;
    }
    if (kind == MESSAGE_PROOF) message.size = GOSSIP_SIGNATURE_SIZE, message.bytes = zeros;
    if (kind <= MESSAGE_PROOF) {
        message_put(out, &message);
        return;
    }
    wire_put_array(out, 4); /* a kind from the future, or one that belongs on links */
    wire_put_uint(out, kind);
    wire_put_id(out, &id);
    wire_put_uint(out, variant);
    wire_put_bytes(out, message.bytes, message.size);
}

static void no_kind_of_message_gets_an_unproven_address_more_than_three_times_its_bytes(void **unused) {
    (void)unused;
    struct net *net = with_rows(83);
    uint64_t answered = 0;
    for (uint64_t kind = 1; kind <= 45; kind++) {
        for (uint32_t as = 0; as < 5; as++) { /* members, and some that are none */
            struct gossip_address from = {.family = 4, .ip = {192, 0, (uint8_t)kind, (uint8_t)(as + 1)}, .port = 9};
            struct tally tally = {0, 0};
            for (uint32_t variant = 0; variant < 12; variant++) {
                uint8_t plain[SEAL_PLAIN_MAX];
                struct member_id id = net_id(net, (int)as);
                struct wire_out out = begin(plain, &id);
                put_one(&out, net, kind, variant);
                assert_false(out.failed);
                say(net, &from, plain, out.size, &tally);
                assert_true(tally.received <= 3 * tally.sent);
            }
            for (int i = 0; i < 20; i++) { /* what comes later counts too */
                net->now_ms += 20;
                gossip_tick(net->nodes[0].gossip, net->now_ms);
                collect(net, &from, &tally);
            }
            if (tally.received > 3 * tally.sent)
                fail_msg("kind %d: %d bytes for %d", (int)kind, (int)tally.received, (int)tally.sent);
            answered += tally.received > 0;
        }
    }
    assert_true(answered > 45); /* or it would show nothing */
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hostile_bytes_make_us_allocate_is_bounded_by_the_bytes),
        cmocka_unit_test(a_checkpoint_that_is_promised_takes_no_memory),
        cmocka_unit_test(no_kind_of_message_gets_an_unproven_address_more_than_three_times_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
