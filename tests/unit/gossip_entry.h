/* Log entries of one operation, as an owner writes them or somebody forges them. */
#ifndef TESTS_UNIT_GOSSIP_ENTRY_H
#define TESTS_UNIT_GOSSIP_ENTRY_H

#include "gossip/signed.h"

#include <string.h>

/* Its size without the signature, which belongs behind it. */
static inline size_t entry_body(const struct member_id *id, uint64_t epoch, uint64_t sequence, const char *filter,
                                bool deletes, uint8_t out[MESSAGE_BLOB_MAX]) {
    struct wire_out body;
    wire_out_init(&body, out, ENTRY_BODY_MAX);
    wire_put_array(&body, 6);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, id);
    wire_put_uint(&body, epoch);
    wire_put_uint(&body, sequence);
    wire_put_uint(&body, GOSSIP_NEWSUB | (deletes ? ENTRY_DELETE : 0));
    wire_put_bytes(&body, filter, strlen(filter));
    return body.failed ? 0 : body.size;
}

#endif
