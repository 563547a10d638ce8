/* The two signed objects, head and log entry: a msgpack body and its signature behind it. They travel byte for byte. */
#ifndef GOSSIP_SIGNED_H
#define GOSSIP_SIGNED_H

#include "gossip/message.h"

#define HEAD_SIZE_MAX 360u
#define ENTRY_BODY_MAX (MESSAGE_BLOB_MAX - GOSSIP_SIGNATURE_SIZE)
/* The longest filter that is shown as it is; longer ones are covered. */
#define ENTRY_FILTER_MAX 700u

/* What an owner says of itself. Each new one has a higher incarnation, so (epoch, incarnation) orders them all. */
struct head {
    struct member_id id;
    uint64_t epoch, incarnation;
    uint64_t sequence;             /* of its log, when this was signed */
    uint64_t checkpoint_sequence;  /* T */
    uint64_t checkpoint_size;      /* bytes */
    uint8_t checkpoint_root[32];   /* SHA-256 of the checkpoint */
    uint8_t checkpoint_chain[8];   /* chain hash at T */
    struct gossip_address address; /* family 0: where its packets come from */
    char name[GOSSIP_NAME_MAX + 1];
    bool leaving;
    bool cloned;          /* it has found its key in use by another */
    uint64_t ring;        /* number of the key ring it uses */
    uint8_t ring_mark[8]; /* first bytes of that ring's digest; zeros without one */
};

/* Returns the size with signature, 0 when signing failed. */
size_t head_sign(const struct head *head, const struct gossip_crypto *crypto, uint8_t out[HEAD_SIZE_MAX]);
/* Reads without checking the signature. */
bool head_read(const uint8_t *bytes, size_t size, struct head *head);

/* Of what two say: below 0, 0, above 0. Without the signatures, which differ each time one is made. */
int signed_compare(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);
/* The first bytes of the SHA-256 of what it says. */
void signed_mark(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto, uint8_t mark[8]);

/* Checks the signature of either object. */
bool signed_verify(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto,
                   const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE]);

/* An entry: array of id, epoch, sequence, then for each operation its kind (| ENTRY_DELETE) and the filter. */
#define ENTRY_DELETE 0x10u
struct entry {
    struct member_id id;
    uint64_t epoch, sequence;
    struct wire_in ops; /* at the first operation */
    uint32_t op_count;
};
bool entry_read(const uint8_t *bytes, size_t size, struct entry *entry);
struct entry_op {
    enum gossip_row_kind kind;
    bool deletes;
    const char *filter;
    size_t size;
};
/* False at the end. entry_read has checked all of them. */
bool entry_next(struct entry *entry, struct entry_op *op);

/* chain' = SHA-256(chain, body), first 8 bytes. The signature is left out: ECDSA is not repeatable. */
void entry_chain(const uint8_t *bytes, size_t size, const struct gossip_crypto *crypto, uint8_t chain[8]);

#endif
