/* msgpack in both directions, bounded: the one place that knows the encoding.
 *
 * Writing goes into the caller's buffer, reading is a cursor over borrowed bytes. Both remember the first failure,
 * after which writing does nothing and reading gives zeros, so that a caller checks once at the end. Nothing is
 * allocated, and a length read from the wire is believed only when its bytes are there.
 */
#ifndef GOSSIP_WIRE_H
#define GOSSIP_WIRE_H

#include "gossip/gossip.h"

struct wire_out {
    uint8_t *bytes;
    size_t size, max;
    bool failed; /* something did not fit; size is then meaningless until wire_rewind */
};

void wire_out_init(struct wire_out *out, uint8_t *bytes, size_t max);
void wire_put_array(struct wire_out *out, uint32_t count);
void wire_put_uint(struct wire_out *out, uint64_t value);
void wire_put_bool(struct wire_out *out, bool value);
void wire_put_bytes(struct wire_out *out, const void *bytes, size_t size);
/* Values that were written elsewhere. */
void wire_put_raw(struct wire_out *out, const void *bytes, size_t size);
void wire_put_id(struct wire_out *out, const struct member_id *id);
/* Bytes: family, address, port; empty for family 0. */
void wire_put_address(struct wire_out *out, const struct gossip_address *address);
/* Back to a size that was good. */
void wire_rewind(struct wire_out *out, size_t size);

struct wire_in {
    const uint8_t *bytes;
    size_t size, at;
    bool failed;
};

void wire_in_init(struct wire_in *in, const uint8_t *bytes, size_t size);
bool wire_end(const struct wire_in *in); /* all read, or failed */
uint32_t wire_get_array(struct wire_in *in);
uint64_t wire_get_uint(struct wire_in *in);
bool wire_get_bool(struct wire_in *in);
/* A view into the cursor's bytes; size at most max. */
const uint8_t *wire_get_bytes(struct wire_in *in, size_t max, size_t *size);
/* An optional view: NULL, and the value is passed over, if it is something else. */
const uint8_t *wire_get_bytes_if(struct wire_in *in, size_t max, size_t *size);
/* Exactly size bytes, copied. */
void wire_get_fixed(struct wire_in *in, void *out, size_t size);
void wire_get_id(struct wire_in *in, struct member_id *id);
void wire_get_address(struct wire_in *in, struct gossip_address *address);
/* Passes over count values of any kind, however nested. */
void wire_skip(struct wire_in *in, uint32_t count);

/* Fixed-width numbers inside byte strings, big-endian. */
void wire_store_u64(uint8_t out[8], uint64_t value);
uint64_t wire_load_u64(const uint8_t in[8]);

bool address_equal(const struct gossip_address *a, const struct gossip_address *b);
/* As it is on the wire: 0, 7 or 19 bytes. */
size_t address_store(const struct gossip_address *address, uint8_t out[19]);

#endif
