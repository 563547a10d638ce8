/* An owner and a replica of its log, without a network. */
#ifndef TESTS_UNIT_GOSSIP_REGISTRY_FIXTURE_H
#define TESTS_UNIT_GOSSIP_REGISTRY_FIXTURE_H

#include "gossip_entry.h"
#include "gossip_net.h"

#include "gossip/transfer.h"

static const struct member_id fixture_id = {{1}};
static const struct registry_limits fixture_limits = {64, 1u << 16, 64};
static const struct registry_watch fixture_nobody;

struct fixture_owner {
    struct net_identity identity;
    struct registry_rules rules;
    struct registry *registry;
    uint64_t incarnation;
};

/* What another broker holds of it. */
struct fixture_replica {
    struct registry *registry;
    struct transfers transfers;
    struct registry_watch watch; /* told of its rows; zeros: nobody */
};

static inline void fixture_init(struct fixture_owner *owner) {
    memset(owner, 0, sizeof *owner);
    owner->identity.public_key[0] = 4;
    owner->rules = (struct registry_rules){.crypto = {.context = &owner->identity,
                                                      .sign = net_sign,
                                                      .verify = net_verify,
                                                      .sha256 = net_sha256,
                                                      .id_of = net_id_of},
                                           .limits = fixture_limits};
}

static inline void fixture_end(struct fixture_replica *replica) {
    transfers_free(&replica->transfers);
    registry_unref(replica->registry);
}

/* One entry of one operation: "+filter" or "-filter". */
static inline size_t fixture_entry(const struct fixture_owner *owner, uint64_t sequence, const char *op,
                                   uint8_t out[MESSAGE_BLOB_MAX]) {
    size_t size = entry_body(&fixture_id, 1, sequence, op + 1, op[0] == '-', out);
    net_sign_as(owner->identity.public_key, out, size, out + size);
    return size + GOSSIP_SIGNATURE_SIZE;
}

static inline void fixture_say(struct fixture_owner *owner, const char *op) {
    uint8_t bytes[MESSAGE_BLOB_MAX];
    uint64_t sequence = registry_sequence(owner->registry) + 1;
    size_t size = fixture_entry(owner, sequence, op, bytes);
    struct log_entry *entry = log_entry_new(sequence, bytes, size);
    assert_int_equal(registry_apply(&owner->registry, &owner->rules, entry, &fixture_nobody), REGISTRY_OK);
    log_entry_unref(entry);
}

/* So many rows that their checkpoint has many chunks. */
static inline void fixture_say_many(struct fixture_owner *owner, int rows) {
    for (int i = 0; i < rows; i++) {
        char op[80];
        snprintf(op, sizeof op, "+a/filter/that/takes/some/room/so/that/there/are/many/chunks/%d", i);
        fixture_say(owner, op);
    }
}

static inline size_t fixture_head(struct fixture_owner *owner, struct head *head, uint8_t out[HEAD_SIZE_MAX]) {
    *head = (struct head){.id = fixture_id,
                          .epoch = 1,
                          .incarnation = ++owner->incarnation,
                          .sequence = registry_sequence(owner->registry),
                          .name = "owner"};
    checkpoint_name(owner->registry ? owner->registry->base : NULL, &owner->rules.crypto, head);
    return head_sign(head, &owner->rules.crypto, out);
}

static inline void fixture_checkpoint(struct fixture_owner *owner) {
    assert_true(registry_checkpoint(&owner->registry, &owner->rules, 1));
}

static inline enum registry_result fixture_offer_bytes(struct fixture_replica *replica,
                                                       const struct registry_rules *rules, const uint8_t *bytes,
                                                       size_t size) {
    struct entry entry;
    assert_true(entry_read(bytes, size, &entry));
    return transfers_entry(&replica->transfers, &replica->registry, rules, &entry, bytes, size, &replica->watch);
}

static inline enum registry_result fixture_offer(struct fixture_replica *replica, const struct fixture_owner *owner,
                                                 uint64_t sequence) {
    const struct log_entry *entry = registry_entry(owner->registry, sequence);
    assert_non_null(entry);
    return fixture_offer_bytes(replica, &owner->rules, entry->bytes, entry->size);
}

static inline enum registry_result fixture_offer_head(struct fixture_replica *replica, struct fixture_owner *owner) {
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = fixture_head(owner, &head, bytes);
    return transfers_head(&replica->transfers, &replica->registry, &owner->rules, &head, bytes, size, &replica->watch);
}

static inline uint64_t fixture_chunks(const struct fixture_owner *owner) {
    return checkpoint_chunks(rowset_encoded_size(&owner->registry->base->rows));
}

static inline enum registry_result fixture_offer_chunk(struct fixture_replica *replica,
                                                       const struct fixture_owner *owner, uint64_t index) {
    const struct checkpoint *base = owner->registry->base;
    struct checkpoint_chunk chunk;
    checkpoint_read(base, index, &chunk);
    struct message message = {.kind = MESSAGE_CHUNK,
                              .version = {.id = fixture_id, .epoch = 1, .sequence = base->sequence},
                              .number = index,
                              .bytes = chunk.bytes,
                              .size = chunk.size,
                              .proof = chunk.proof,
                              .proof_size = chunk.proof_size};
    return transfers_chunk(&replica->transfers, &replica->registry, &owner->rules, &message, &replica->watch);
}

static inline bool fixture_same_rows(const struct rowset *a, const struct rowset *b) {
    struct rowset_walk in_a, in_b;
    struct rowset_row row, other;
    rowset_begin(a, &in_a);
    rowset_begin(b, &in_b);
    while (rowset_next(&in_a, &row))
        if (!rowset_next(&in_b, &other) || row.kind != other.kind || row.size != other.size ||
            memcmp(row.filter, other.filter, row.size) != 0)
            return false;
    return !rowset_next(&in_b, &other) && a->count == b->count && a->bytes == b->bytes;
}

static inline bool fixture_agrees(const struct fixture_replica *replica, const struct fixture_owner *owner) {
    return registry_sequence(replica->registry) == registry_sequence(owner->registry) &&
           (!replica->registry || memcmp(replica->registry->at.chain, owner->registry->at.chain, 8) == 0) &&
           fixture_same_rows(registry_rows(replica->registry), registry_rows(owner->registry));
}

static inline uint32_t fixture_roll(uint64_t *dice, uint32_t bound) {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (uint32_t)((*dice >> 20) % bound);
}

#endif
