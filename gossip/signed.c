#include "gossip/signed.h"

#include "broker/topic.h"

#include <string.h>

/* Signed objects of different kinds must not pass for each other, so each body begins with its own word. */
#define HEAD_WORD 'H'
#define ENTRY_WORD 'E'

size_t head_sign(const struct head *head, const struct gossip_crypto *crypto, uint8_t out[HEAD_SIZE_MAX]) {
    struct wire_out body;
    wire_out_init(&body, out, HEAD_SIZE_MAX - GOSSIP_SIGNATURE_SIZE);
    wire_put_array(&body, 15);
    wire_put_uint(&body, HEAD_WORD);
    wire_put_id(&body, &head->id);
    wire_put_uint(&body, head->epoch);
    wire_put_uint(&body, head->incarnation);
    wire_put_uint(&body, head->sequence);
    wire_put_uint(&body, head->checkpoint_sequence);
    wire_put_uint(&body, head->checkpoint_size);
    wire_put_bytes(&body, head->checkpoint_root, sizeof head->checkpoint_root);
    wire_put_bytes(&body, head->checkpoint_chain, sizeof head->checkpoint_chain);
    wire_put_address(&body, &head->address);
    wire_put_bytes(&body, head->name, strlen(head->name));
    wire_put_bool(&body, head->leaving);
    wire_put_uint(&body, head->ring);
    wire_put_bytes(&body, head->ring_mark, sizeof head->ring_mark);
    wire_put_bool(&body, head->cloned);
    if (body.failed || !crypto->sign(crypto->context, out, body.size, out + body.size)) return 0;
    return body.size + GOSSIP_SIGNATURE_SIZE;
}

bool head_read(const uint8_t *bytes, size_t size, struct head *head) {
    if (size <= GOSSIP_SIGNATURE_SIZE || size > HEAD_SIZE_MAX) return false;
    struct wire_in body;
    wire_in_init(&body, bytes, size - GOSSIP_SIGNATURE_SIZE);
    memset(head, 0, sizeof *head);
    uint32_t count = wire_get_array(&body);
    if (count < 15 || wire_get_uint(&body) != HEAD_WORD) return false;
    wire_get_id(&body, &head->id);
    head->epoch = wire_get_uint(&body);
    head->incarnation = wire_get_uint(&body);
    head->sequence = wire_get_uint(&body);
    head->checkpoint_sequence = wire_get_uint(&body);
    head->checkpoint_size = wire_get_uint(&body);
    wire_get_fixed(&body, head->checkpoint_root, sizeof head->checkpoint_root);
    wire_get_fixed(&body, head->checkpoint_chain, sizeof head->checkpoint_chain);
    wire_get_address(&body, &head->address);
    size_t name_size;
    const uint8_t *name = wire_get_bytes(&body, GOSSIP_NAME_MAX, &name_size);
    if (name) memcpy(head->name, name, name_size);
    head->leaving = wire_get_bool(&body);
    head->ring = wire_get_uint(&body);
    wire_get_fixed(&body, head->ring_mark, sizeof head->ring_mark);
    head->cloned = wire_get_bool(&body);
    if (!body.failed) wire_skip(&body, count - 15);
    return !body.failed && wire_end(&body) && head->checkpoint_sequence <= head->sequence;
}

bool signed_verify(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto,
                   const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE]) {
    if (size <= GOSSIP_SIGNATURE_SIZE) return false;
    size_t body = size - GOSSIP_SIGNATURE_SIZE;
    return crypto->verify(crypto->context, public_key, bytes, body, bytes + body);
}

static bool op_read(struct wire_in *in, struct entry_op *op) {
    uint64_t code = wire_get_uint(in);
    op->deletes = (code & ENTRY_DELETE) != 0;
    uint64_t kind = code & ~(uint64_t)ENTRY_DELETE;
    if (kind != GOSSIP_NEWPUB && kind != GOSSIP_NEWSUB) return false;
    op->kind = (enum gossip_row_kind)kind;
    op->filter = (const char *)wire_get_bytes(in, ENTRY_FILTER_MAX, &op->size);
    return !in->failed && topic_filter_valid(op->filter, op->size);
}

bool entry_read(const uint8_t *bytes, size_t size, struct entry *entry) {
    if (size <= GOSSIP_SIGNATURE_SIZE || size > MESSAGE_BLOB_MAX) return false;
    struct wire_in body;
    wire_in_init(&body, bytes, size - GOSSIP_SIGNATURE_SIZE);
    uint32_t count = wire_get_array(&body);
    if (count < 4 || count % 2 != 0 || wire_get_uint(&body) != ENTRY_WORD) return false;
    memset(entry, 0, sizeof *entry);
    wire_get_id(&body, &entry->id);
    entry->epoch = wire_get_uint(&body);
    entry->sequence = wire_get_uint(&body);
    if (body.failed || entry->sequence == 0) return false;
    entry->ops = body;
    entry->op_count = (count - 4) / 2;
    struct entry_op op;
    for (uint32_t i = 0; i < entry->op_count; i++)
        if (!op_read(&body, &op)) return false;
    return wire_end(&body);
}

bool entry_next(struct entry *entry, struct entry_op *op) {
    if (entry->op_count == 0) return false;
    entry->op_count--;
    return op_read(&entry->ops, op);
}

int signed_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) {
    size_t least = (a_size < b_size ? a_size : b_size) - GOSSIP_SIGNATURE_SIZE;
    int order = memcmp(a, b, least);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

void signed_mark(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto, uint8_t mark[8]) {
    uint8_t digest[32];
    crypto->sha256(crypto->context, bytes, size - GOSSIP_SIGNATURE_SIZE, digest);
    memcpy(mark, digest, 8);
}

void entry_chain(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto, uint8_t chain[8]) {
    uint8_t joined[8 + ENTRY_BODY_MAX], digest[32];
    size_t body = size - GOSSIP_SIGNATURE_SIZE;
    memcpy(joined, chain, 8);
    memcpy(joined + 8, bytes, body);
    crypto->sha256(crypto->context, joined, 8 + body, digest);
    memcpy(chain, digest, 8);
}
