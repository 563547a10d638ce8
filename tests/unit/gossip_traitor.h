/* A broker with the gossip key, a key and a valid token of its own, and no honesty: it is a member like any other, and
 * says what a test wants. It plays a node of the net that does not run: it answers WHO and PING and proves where it is,
 * so that the others hold it alive, and keeps the signed objects of others that it sees. */
#ifndef GOSSIP_TRAITOR_H
#define GOSSIP_TRAITOR_H

#include "gossip_entry.h"
#include "gossip_net.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#define TRAITOR_KEPT 64

struct traitor {
    struct net *net;
    int as;
    bool silent;        /* answers no ping */
    bool hides;         /* answers nobody, but */
    int talks_to;       /* this one */
    bool helps_falsely; /* says of whom it is to ping that it answers */
    void (*asked_chunk)(struct traitor *traitor, int by, const struct message *message, void *context);
    void *context;
    struct gossip_address says_at; /* what its head announces; family 0: where it is */
    struct packet_header header;
    uint8_t cookie_of[NET_NODES_MAX][8]; /* to be echoed */
    struct packet_header last[NET_NODES_MAX];
    struct {
        enum message_kind kind;
        size_t size;
        uint8_t bytes[MESSAGE_BLOB_MAX];
    } kept[TRAITOR_KEPT]; /* signed by others */
    size_t kept_count;
    uint64_t count[64]; /* messages received, by kind */
    uint64_t packets_in, bytes_in, packets_out, bytes_out;
    uint32_t nonce;
};

static inline struct seal traitor_seal(struct traitor *traitor, struct chance *chance) {
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &traitor->net->nodes[0].key, .key_count = 1};
    chance->state = 77;
    assert_true(seal_init(&seal, &options, chance));
    seal.counter = traitor->nonce++;
    return seal;
}

/* As many messages as fit one packet, which they must. */
static inline void traitor_say(struct traitor *traitor, int to, const struct message *messages, size_t count) {
    struct net *net = traitor->net;
    struct chance chance;
    struct seal seal = traitor_seal(traitor, &chance);
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    uint8_t plain[SEAL_PLAIN_MAX], datagram[GOSSIP_DATAGRAM_MAX];
    struct wire_out packet;
    wire_out_init(&packet, plain, sizeof plain);
    struct packet_header header = traitor->header;
    memcpy(header.echo, traitor->cookie_of[to], sizeof header.echo);
    memcpy(header.cookie, "biscuits", sizeof header.cookie);
    header.holds_epoch = traitor->last[to].epoch;
    header.holds_incarnation = traitor->last[to].incarnation;
    header.holds_sequence = traitor->last[to].sequence;
    header_put(&packet, &header);
    for (size_t i = 0; i < count; i++)
        message_put(&packet, &messages[i]);
    assert_false(packet.failed);
    size_t size = seal_close(&seal, &crypto, plain, packet.size, datagram);
    traitor->packets_out++;
    traitor->bytes_out += size;
    net_put(net, traitor->as, to, &net->nodes[traitor->as].address, datagram, size);
}

static inline void traitor_say_one(struct traitor *traitor, int to, struct message message) {
    traitor_say(traitor, to, &message, 1);
}

static inline void traitor_sign(const struct traitor *traitor, uint8_t *body, size_t size) {
    net_sign_as(traitor->net->nodes[traitor->as].identity.public_key, body, size, body + size);
}

/* A head of `about` (itself, or another whose key it has not), signed by the traitor. */
static inline size_t traitor_head(struct traitor *traitor, struct head head, uint8_t out[HEAD_SIZE_MAX]) {
    struct gossip_crypto crypto = {.context = &traitor->net->nodes[traitor->as].identity, .sign = net_sign};
    return head_sign(&head, &crypto, out);
}

static inline struct head traitor_own_head(const struct traitor *traitor) {
    struct head head = {.id = traitor->header.id,
                        .epoch = traitor->header.epoch,
                        .incarnation = traitor->header.incarnation,
                        .address = traitor->net->nodes[traitor->as].address};
    memcpy(head.name, "traitor", 7);
    if (traitor->says_at.family != 0) head.address = traitor->says_at;
    return head;
}

/* An entry in `owner`'s log, signed by the traitor: one filter put, or deleted. */
static inline size_t traitor_entry(struct traitor *traitor, int owner, uint64_t epoch, uint64_t sequence,
                                   const char *filter, bool deletes, uint8_t out[MESSAGE_BLOB_MAX]) {
    struct member_id id = net_id(traitor->net, owner);
    size_t size = entry_body(&id, epoch, sequence, filter, deletes, out);
    assert_true(size > 0);
    traitor_sign(traitor, out, size);
    return size + GOSSIP_SIGNATURE_SIZE;
}

/* "Of that one I hold as much as you, and something else." */
static inline void traitor_claim_other(struct traitor *traitor, int to, int about) {
    struct member_id id = net_id(traitor->net, about);
    struct version version = repair_version_of(members_find(traitor->net->nodes[to].gossip, &id));
    uint8_t record[MESSAGE_VERSION_SIZE];
    version.mark[0] ^= 1;
    version_store(record, &version);
    traitor_say_one(traitor, to,
                    (struct message){.kind = MESSAGE_VERSIONS,
                                     .number = digest_bucket_of(&id),
                                     .version.id = id,
                                     .other = id,
                                     .bytes = record,
                                     .size = sizeof record});
}

static inline void traitor_tell_head(struct traitor *traitor, int to) {
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = traitor_head(traitor, traitor_own_head(traitor), bytes);
    traitor_say_one(traitor, to, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
}

static inline void traitor_keep(struct traitor *traitor, const struct message *message) {
    if (traitor->kept_count == TRAITOR_KEPT || message->size > MESSAGE_BLOB_MAX) return;
    size_t slot = traitor->kept_count++;
    traitor->kept[slot].kind = message->kind;
    traitor->kept[slot].size = message->size;
    memcpy(traitor->kept[slot].bytes, message->bytes, message->size);
}

/* Who it is, and that it is where the packet comes from. */
static inline void traitor_introduce(struct traitor *traitor, int to) {
    const struct net_node *node = &traitor->net->nodes[traitor->as];
    uint8_t head[HEAD_SIZE_MAX], proof[64 + GOSSIP_SIGNATURE_SIZE];
    struct wire_out body;
    struct member_id receiver = net_id(traitor->net, to);
    wire_out_init(&body, proof, 64);
    wire_put_array(&body, 4);
    wire_put_uint(&body, 'P');
    wire_put_id(&body, &traitor->header.id);
    wire_put_id(&body, &receiver);
    wire_put_bytes(&body, traitor->cookie_of[to], 8);
    traitor_sign(traitor, proof, body.size);
    size_t size = traitor_head(traitor, traitor_own_head(traitor), head);
    struct message messages[] = {{.kind = MESSAGE_TOKEN,
                                  .key = node->identity.public_key,
                                  .bytes = (const uint8_t *)node->token,
                                  .size = strlen(node->token)},
                                 {.kind = MESSAGE_HEAD, .bytes = head, .size = size},
                                 {.kind = MESSAGE_PROOF, .bytes = proof + body.size, .size = GOSSIP_SIGNATURE_SIZE}};
    traitor_say(traitor, to, messages, 3);
}

/* "It answered", with nothing to show, and with a signature of its own. */
static inline void traitor_help(struct traitor *traitor, int to, const struct message *request) {
    uint8_t body[64 + GOSSIP_SIGNATURE_SIZE] = {0};
    if (!traitor->helps_falsely) return;
    traitor_sign(traitor, body, 64);
    struct message lie = {.kind = MESSAGE_INDIRECT, .number = request->number, .flag = true};
    traitor_say_one(traitor, to, lie);
    lie.bytes = body + 64;
    lie.size = GOSSIP_SIGNATURE_SIZE;
    traitor_say_one(traitor, to, lie);
}

static inline void traitor_hear(struct traitor *traitor, int from, const struct message *message) {
    bool hides = traitor->hides && from != traitor->talks_to;
    traitor->count[message->kind % 64]++;
    switch (message->kind) {
    case MESSAGE_PROVE:
    case MESSAGE_WHO:
        if (!hides) traitor_introduce(traitor, from);
        break;
    case MESSAGE_PING:
        if (!traitor->silent && !hides)
            traitor_say_one(traitor, from, (struct message){.kind = MESSAGE_PONG, .number = message->number});
        break;
    case MESSAGE_PING_REQ: traitor_help(traitor, from, message); break;
    case MESSAGE_WANT_CHUNK:
        if (traitor->asked_chunk) traitor->asked_chunk(traitor, from, message, traitor->context);
        break;
    case MESSAGE_HEAD:
    case MESSAGE_ENTRY: traitor_keep(traitor, message); break;
    default: break;
    }
}

static inline void traitor_on_packet(void *context, const struct net_packet *sealed) {
    struct traitor *traitor = context;
    struct chance chance;
    struct seal seal = traitor_seal(traitor, &chance);
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    uint8_t plain[SEAL_PLAIN_MAX];
    bool own;
    long size = seal_open(&seal, &crypto, sealed->bytes, sealed->size, plain, &own);
    traitor->packets_in++;
    traitor->bytes_in += sealed->size;
    if (size < 0) return;
    struct wire_in in;
    struct message message;
    wire_in_init(&in, plain, (size_t)size);
    header_get(&in, &traitor->last[sealed->from]);
    memcpy(traitor->cookie_of[sealed->from], traitor->last[sealed->from].cookie, 8);
    while (message_get(&in, &message))
        traitor_hear(traitor, sealed->from, &message);
}

/* A member of the running net within 10 s; it plays the last node, which must not run. The caller frees it, before the
 * net. */
static inline struct traitor *traitor_new(struct net *net) {
    struct traitor *traitor = calloc(1, sizeof *traitor);
    traitor->net = net;
    traitor->as = net->count - 1;
    traitor->header = (struct packet_header){.id = net_id(net, traitor->as), .epoch = 1, .incarnation = 1};
    struct net_node *node = &net->nodes[traitor->as];
    assert_true(node->gossip == NULL);
    node->puppet = traitor_on_packet;
    node->puppet_context = traitor;
    for (int tries = 0; tries < 100; tries++) {
        int alive = 0;
        for (int i = 0; i < traitor->as; i++) {
            alive += !net->nodes[i].gossip || net->nodes[i].sees[traitor->as] == MEMBER_ALIVE;
            traitor_say_one(traitor, i, (struct message){.kind = MESSAGE_PING, .number = 5});
        }
        if (alive == traitor->as) return traitor;
        net_run(net, 100);
    }
    fail_msg("the traitor is not let in");
    return traitor;
}

static inline struct net *traitor_net(int honest, uint64_t seed) {
    struct net *net = net_new(honest + 1, seed);
    for (int i = 0; i < honest; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    return net;
}

static inline void traitor_free(struct traitor *traitor) {
    traitor->net->nodes[traitor->as].puppet = NULL;
    free(traitor);
}

#endif
