/* What a member with the gossip key, a token and no honesty may say: the input is a list of messages of every kind,
 * well formed, each filled from what such a one has: ids, numbers near the true ones, its own signature under heads and
 * entries, what others signed earlier, true chunks, and bytes of the input. It is heard in full, by datagram and over a
 * link. Whatever it says, what it makes a broker keep is bounded by the bytes it sent, and the honest brokers' rows and
 * lives are untouched when it falls silent. */
#define GOSSIP_NET_WITHOUT_CMOCKA
#include <assert.h>
#define assert_false(condition) assert(!(condition))
#include "tests/unit/gossip_traitor.h"

#include <sanitizer/allocator_interface.h>

#define HONEST 3
#define MESSAGES_MAX 24
#define BATCH 400 /* inputs for one federation, so that a find can be repeated */
/* By one message: a record, its list, a transfer; and room is made for many at once. */
#define KEPT_MAX (256u * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t take(struct input *input) {
    if (input->size == 0) return 0;
    input->size--;
    return *input->data++;
}

struct stage {
    struct net *net;
    struct traitor *traitor;
    uint8_t blob[MESSAGE_BLOB_MAX + 64];
    struct checkpoint_chunk chunk;
    uint8_t key[GOSSIP_PUBLIC_KEY_SIZE];
};

static void fill(struct net *net) {
    for (int i = 0; i < HONEST; i++) {
        net_row(net, i, "kept", true);
        net_row(net, i, "gone", true);
        for (int k = 0; k < 40 * (i == 1); k++) {
            char filter[120];
            snprintf(filter, sizeof filter, "many/%d/%080d", k, k);
            net_row(net, i, filter, true);
        }
        net_run(net, 300);
        net_row(net, i, "gone", false);
    }
}

static struct stage *stage_new(void) {
    struct stage *stage = calloc(1, sizeof *stage);
    struct net *net = stage->net = net_new(HONEST + 1, 7);
    for (int i = 0; i < HONEST; i++) {
        net->nodes[i].limits.log_entries_max = 4;               /* so that there are checkpoints */
        if (i == 2) net->nodes[i].limits.eager_members_max = 1; /* to it these are many */
        net_start(net, i);
    }
    bool good = net_until(net, net_all_alive, 10000);
    assert(good);
    stage->traitor = traitor_new(net);
    fill(net);
    net_run(net, 2000);
    for (int i = 0; i < HONEST; i++)
        gossip_link_up(net->nodes[i].gossip, net->now_ms, &stage->traitor->header.id);
    return stage;
}

/* At once, as an owner would mend it soon: what is held of one is what it said. It may raise its epoch when it is told
 * of a higher one, and says all again then. */
static void look(struct net *net) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++) {
            struct member_id id = net_id(net, j);
            struct member copy;
            const struct member *own = net->nodes[j].gossip->self;
            const struct member *held = members_look_for(net->nodes[i].gossip, &id, &copy);
            assert(held && held->epoch <= own->epoch);
            if (held->epoch < own->epoch) continue;
            assert(registry_sequence(held->registry) <= registry_sequence(own->registry));
            bool whole = registry_sequence(held->registry) == registry_sequence(own->registry);
            if (!whole || (i != j && !member_is_visible(held))) continue;
            assert(net_has_row(net, i, j, "kept") && !net_has_row(net, i, j, "gone"));
        }
}

/* It falls silent, and may be held dead by then. */
static void stage_end(struct stage *stage) {
    struct net *net = stage->net;
    net_run(net, 10000);
    for (int i = 0; i < HONEST; i++) {
        assert(!members_fault(net->nodes[i].gossip) && !digest_fault(net->nodes[i].gossip));
        for (int j = 0; j < HONEST; j++)
            assert(i == j || (net->nodes[i].sees[j] == MEMBER_ALIVE && net_has_row(net, i, j, "kept")));
    }
    look(net);
    traitor_free(stage->traitor);
    net_free(net);
    free(stage);
}

/* ---- fields ---- */

static struct member_id some_id(struct stage *stage, struct input *input) {
    uint8_t which = take(input);
    struct member_id id = net_id(stage->net, which % (HONEST + 2)); /* the traitor, and nobody, too */
    if (which >= 0xf0) id.bytes[0] = which;
    return id;
}

static uint64_t some_number(uint64_t near, struct input *input) {
    uint8_t how = take(input);
    static const uint64_t far[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, 1ull << 32, 1ull << 53, 700};
    if (how < 0xa0) return near + how % 2;
    return how >= 0xe0 ? far[how % 8] : near + how % 16 - 8;
}

/* As the broker that is spoken to holds it. */
static struct version some_version(struct stage *stage, int to, struct input *input) {
    struct version version = {.id = some_id(stage, input)};
    struct member copy;
    const struct member *member = members_look_for(stage->net->nodes[to].gossip, &version.id, &copy);
    version.epoch = some_number(member ? member->epoch : 1, input);
    version.incarnation = some_number(member ? member->incarnation : 1, input);
    version.sequence = some_number(member ? registry_sequence(member->registry) : 1, input);
    for (size_t i = 0; i < sizeof version.mark; i++)
        version.mark[i] = i == 0 ? take(input) : 0;
    return version;
}

static size_t raw(struct stage *stage, size_t max, struct input *input) {
    size_t size = ((size_t)take(input) << 2) % (max + 1);
    for (size_t i = 0; i < size; i++)
        stage->blob[i] = take(input);
    return size;
}

static size_t head_of(struct stage *stage, int to, struct input *input) {
    struct version version = some_version(stage, to, input);
    struct head head = traitor_own_head(stage->traitor);
    uint8_t flags = take(input);
    if (flags & 1) head.id = version.id;
    head.epoch = version.epoch;
    head.incarnation = version.incarnation;
    head.sequence = version.sequence;
    head.checkpoint_sequence = some_number(version.sequence, input);
    head.checkpoint_size = some_number(700, input);
    head.checkpoint_root[0] = take(input);
    head.leaving = (flags & 0x0e) == 0x0e;
    head.cloned = (flags & 0x30) == 0x30;
    head.ring = flags >> 6;
    if (flags & 0x40) head.address.port = (uint16_t)(7000 + take(input));
    return traitor_head(stage->traitor, head, stage->blob);
}

static size_t entry_of(struct stage *stage, int to, struct input *input) {
    struct version version = some_version(stage, to, input);
    uint8_t flags = take(input);
    char filter[8] = {'t', (char)('a' + flags % 4), 0};
    int owner = stage->traitor->as;
    for (int i = 0; flags & 0x80 && i < HONEST; i++) {
        struct member_id id = net_id(stage->net, i);
        if (memcmp(&id, &version.id, sizeof id) == 0) owner = i;
    }
    return traitor_entry(stage->traitor, owner, version.epoch, version.sequence, flags & 8 ? "kept" : filter,
                         (flags & 4) != 0, stage->blob);
}

static size_t kept_of(struct stage *stage, enum message_kind kind, struct input *input) {
    const struct traitor *traitor = stage->traitor;
    for (size_t i = 0, at = take(input); i < traitor->kept_count; i++) {
        size_t slot = (at + i) % traitor->kept_count;
        if (traitor->kept[slot].kind != kind) continue;
        memcpy(stage->blob, traitor->kept[slot].bytes, traitor->kept[slot].size);
        return traitor->kept[slot].size;
    }
    return 0;
}

static size_t signed_of(struct stage *stage, int to, enum message_kind kind, struct input *input) {
    uint8_t how = take(input);
    if (how < 0x40) return raw(stage, kind == MESSAGE_HEAD ? HEAD_SIZE_MAX : MESSAGE_BLOB_MAX, input);
    if (how < 0x80) return kept_of(stage, kind, input);
    return kind == MESSAGE_HEAD ? head_of(stage, to, input) : entry_of(stage, to, input);
}

/* An accusation in its own name, or as if another had signed it. */
static size_t accuse_of(struct stage *stage, const struct message *message, struct input *input) {
    if (take(input) & 1) return 0;
    struct wire_out out;
    wire_out_init(&out, stage->blob, 128);
    wire_put_array(&out, 5);
    wire_put_uint(&out, 'S');
    wire_put_id(&out, &message->other);
    wire_put_id(&out, &message->version.id);
    wire_put_uint(&out, message->version.epoch);
    wire_put_uint(&out, message->version.incarnation);
    traitor_sign(stage->traitor, stage->blob, out.size);
    memmove(stage->blob, stage->blob + out.size, GOSSIP_SIGNATURE_SIZE);
    return GOSSIP_SIGNATURE_SIZE;
}

static void fill_token(struct stage *stage, struct message *message, struct input *input) {
    uint8_t which = take(input);
    const struct net_node *node = &stage->net->nodes[which % (HONEST + 6)]; /* some whom nobody has met */
    memcpy(stage->key, node->identity.public_key, sizeof stage->key);
    message->key = stage->key;
    message->size = strlen(node->token);
    memcpy(stage->blob, node->token, message->size);
    if (which >= 0xc0) stage->blob[take(input) % message->size] ^= take(input);
    if (which >= 0xe0) stage->key[1 + take(input) % 64] ^= 1;
}

/* A true one of the second broker, unless the input changes it. */
static void fill_chunk(struct stage *stage, struct message *message, struct input *input) {
    const struct checkpoint *base = stage->net->nodes[1].gossip->self->registry->base;
    uint8_t how = take(input);
    if (!base || base->sequence == 0) return;
    message->version.id = net_id(stage->net, 1);
    message->version.epoch = 1;
    message->version.sequence = base->sequence;
    uint64_t chunks = checkpoint_chunks(rowset_encoded_size(&base->rows));
    message->number = how % (chunks + 1);
    if (message->number < chunks) {
        checkpoint_read(base, message->number, &stage->chunk);
        memcpy(stage->blob, stage->chunk.bytes, stage->chunk.size);
        message->size = stage->chunk.size;
        message->proof = stage->chunk.proof;
        message->proof_size = stage->chunk.proof_size;
    }
    if (how >= 0x80) stage->blob[take(input)] ^= 1;
    if (how >= 0xc0) message->version = some_version(stage, 0, input);
}

static size_t records_of(struct stage *stage, int to, size_t max, struct input *input) {
    size_t count = take(input) % (max + 1);
    for (size_t i = 0; i < count; i++) {
        struct version version = some_version(stage, to, input);
        version_store(stage->blob + i * MESSAGE_VERSION_SIZE, &version);
    }
    return count * MESSAGE_VERSION_SIZE;
}

static struct message some_message(struct stage *stage, int to, struct input *input) {
    struct message message = {.kind = (enum message_kind)(1 + take(input) % 34), .bytes = stage->blob};
    if (message.kind >= 23 && message.kind <= 30 && message.kind != MESSAGE_RING) message.kind = MESSAGE_VERSIONS;
    if (message.kind == MESSAGE_SEEK) message.kind = MESSAGE_ACCUSE; /* stands alone: fuzz_gossip_wire */
    message.version = some_version(stage, to, input);
    message.other = some_id(stage, input);
    message.number = some_number(2, input);
    message.flag = take(input) & 1;
    message.address = stage->net->nodes[take(input) % NET_NODES_MAX].address;
    switch (message.kind) {
    case MESSAGE_HEAD:
    case MESSAGE_ENTRY: message.size = signed_of(stage, to, message.kind, input); break;
    case MESSAGE_TOKEN: fill_token(stage, &message, input); break;
    case MESSAGE_ACCUSE: message.size = accuse_of(stage, &message, input); break;
    case MESSAGE_CHUNK: fill_chunk(stage, &message, input); break;
    case MESSAGE_VERSIONS:
        message.number %= 2 * MESSAGE_BUCKET_COUNT;
        message.size = records_of(stage, to, MESSAGE_VERSIONS_MAX, input);
        break;
    case MESSAGE_BUCKETS: message.size = MESSAGE_BUCKET_COUNT * 8; break;
    case MESSAGE_PONG:
    case MESSAGE_PROOF:
    case MESSAGE_INDIRECT: message.size = take(input) & 1 ? GOSSIP_SIGNATURE_SIZE : 0; break;
    case MESSAGE_PING: message.size = take(input) & 1 ? MESSAGE_FOR_SIZE : 0; break;
    case MESSAGE_RING: message.size = raw(stage, 64, input); break;
    case MESSAGE_ROLL: message.size = raw(stage, MESSAGE_ROLL_MAX, input) / 4 * 4; break;
    case MESSAGE_REFUSED: message.size = raw(stage, MESSAGE_REASON_MAX, input); break;
    default: break;
    }
    return message;
}

static void say_over_link(struct stage *stage, int to, const struct message *message) {
    uint8_t plain[SEAL_PLAIN_MAX], digest[32];
    struct wire_out out;
    struct packet_header header = stage->traitor->header;
    net_sha256(NULL, (const uint8_t *)"home", 4, digest);
    memcpy(header.cookie, digest, sizeof header.cookie);
    wire_out_init(&out, plain, sizeof plain);
    header_put(&out, &header);
    message_put(&out, message);
    assert(!out.failed);
    gossip_link_receive(stage->net->nodes[to].gossip, stage->net->now_ms, &header.id, plain, out.size);
    net_drain(stage->net, to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct stage *stage;
    static unsigned runs;
    if (runs++ % BATCH == 0) {
        if (stage) stage_end(stage);
        stage = stage_new();
    }
    struct input input = {data, size};
    struct net *net = stage->net;
    for (int i = 0; input.size > 0 && i < MESSAGES_MAX; i++) {
        uint8_t how = take(&input);
        int to = how % HONEST;
        memset(stage->blob, 0, sizeof stage->blob);
        struct message message = some_message(stage, to, &input);
        size_t before = __sanitizer_get_current_allocated_bytes();
        if (how & 0x40)
            say_over_link(stage, to, &message);
        else
            traitor_say_one(stage->traitor, to, message);
        net_run(net, how & 0x80 ? 20 : 2);
        assert(__sanitizer_get_current_allocated_bytes() <= before + KEPT_MAX);
        look(net);
    }
    return 0;
}
