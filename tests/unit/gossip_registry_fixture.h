/* An owner and a replica of its log, without a network. */
#ifndef TESTS_UNIT_GOSSIP_REGISTRY_FIXTURE_H
#define TESTS_UNIT_GOSSIP_REGISTRY_FIXTURE_H

#include "gossip_net.h"

#include "gossip/registry.h"

static const struct registry_limits fixture_limits = {64, 1u << 16, 64};
static const struct registry_watch fixture_nobody;

struct fixture_owner {
    struct net_identity identity;
    struct gossip_crypto crypto;
    struct registry registry;
    uint8_t base_chain[8];
    uint64_t incarnation;
};

static inline void fixture_init(struct fixture_owner *owner) {
    memset(owner, 0, sizeof *owner);
    owner->identity.public_key[0] = 4;
    owner->crypto = (struct gossip_crypto){
        .context = &owner->identity, .sign = net_sign, .verify = net_verify, .sha256 = net_sha256, .id_of = net_id_of};
    registry_reset(&owner->registry, 1);
}

/* One entry of one operation: "+filter" or "-filter". */
static inline size_t fixture_entry(const struct fixture_owner *owner, uint64_t sequence, const char *op,
                                   uint8_t out[MESSAGE_BLOB_MAX]) {
    struct wire_out body;
    struct member_id id = {{1}};
    wire_out_init(&body, out, ENTRY_BODY_MAX);
    wire_put_array(&body, 6);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, &id);
    wire_put_uint(&body, 1);
    wire_put_uint(&body, sequence);
    wire_put_uint(&body, GOSSIP_NEWSUB | (op[0] == '-' ? ENTRY_DELETE : 0));
    wire_put_bytes(&body, op + 1, strlen(op + 1));
    net_sign_as(owner->identity.public_key, out, body.size, out + body.size);
    return body.size + GOSSIP_SIGNATURE_SIZE;
}

static inline void fixture_say(struct fixture_owner *owner, const char *op) {
    uint8_t bytes[MESSAGE_BLOB_MAX];
    size_t size = fixture_entry(owner, owner->registry.sequence + 1, op, bytes);
    assert_int_equal(registry_apply(&owner->registry, &owner->crypto, &fixture_limits, bytes, size, &fixture_nobody),
                     REGISTRY_OK);
}

static inline size_t fixture_head(struct fixture_owner *owner, struct head *head, uint8_t out[HEAD_SIZE_MAX]) {
    const struct registry *log = &owner->registry;
    *head = (struct head){.epoch = 1,
                          .incarnation = ++owner->incarnation,
                          .sequence = log->sequence,
                          .checkpoint_sequence = log->base_sequence,
                          .checkpoint_size = log->base_size,
                          .name = "owner"};
    registry_root(log, &owner->crypto, head->checkpoint_root);
    memcpy(head->checkpoint_chain, owner->base_chain, 8);
    return head_sign(head, &owner->crypto, out);
}

static inline void fixture_checkpoint(struct fixture_owner *owner) {
    assert_true(registry_checkpoint(&owner->registry));
    memcpy(owner->base_chain, owner->registry.chain, 8);
}

static inline enum registry_result fixture_offer(struct registry *replica, const struct fixture_owner *owner,
                                                 uint64_t sequence) {
    const struct log_entry *entry = registry_entry(&owner->registry, sequence);
    assert_non_null(entry);
    return registry_apply(replica, &owner->crypto, &fixture_limits, entry->bytes, entry->size, &fixture_nobody);
}

static inline enum registry_result fixture_offer_chunk(struct registry *replica, const struct fixture_owner *owner,
                                                       uint64_t index) {
    const struct registry *log = &owner->registry;
    size_t from = (size_t)index * MESSAGE_CHUNK_SIZE, left = log->base_size - from;
    return registry_chunk(replica, &owner->crypto, &fixture_limits, log->base_sequence, index,
                          left > 0 ? log->base + from : NULL, left < MESSAGE_CHUNK_SIZE ? left : MESSAGE_CHUNK_SIZE,
                          &fixture_nobody);
}

static inline bool fixture_same_rows(const struct registry *a, const struct registry *b) {
    if (a->rows.count != b->rows.count) return false;
    for (size_t i = 0; i < a->rows.count; i++) {
        size_t index;
        const struct row *row = a->rows.items[i];
        if (!rows_find(&b->rows, (enum gossip_row_kind)row->kind, row->filter, row->size, &index) || index != i)
            return false;
    }
    return true;
}

#endif
