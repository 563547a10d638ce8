#include "gossip/wire.h"

#include <msgpack.h>
#include <string.h>

static int append(void *data, const char *bytes, size_t size) {
    struct wire_out *out = data;
    if (out->failed || size > out->max - out->size) {
        out->failed = true;
        return -1;
    }
    if (size > 0) /* an empty string may come without an address */
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return 0;
}

static msgpack_packer packer_of(struct wire_out *out) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    return packer;
}

void wire_out_init(struct wire_out *out, uint8_t *bytes, size_t max) {
    *out = (struct wire_out){.bytes = bytes, .max = max};
}

void wire_put_array(struct wire_out *out, uint32_t count) {
    msgpack_packer packer = packer_of(out);
    msgpack_pack_array(&packer, count);
}

void wire_put_uint(struct wire_out *out, uint64_t value) {
    msgpack_packer packer = packer_of(out);
    msgpack_pack_uint64(&packer, value);
}

void wire_put_bool(struct wire_out *out, bool value) {
    wire_put_uint(out, value ? 1 : 0);
}

void wire_put_bytes(struct wire_out *out, const void *bytes, size_t size) {
    msgpack_packer packer = packer_of(out);
    msgpack_pack_bin(&packer, size);
    msgpack_pack_bin_body(&packer, bytes, size);
}

void wire_put_raw(struct wire_out *out, const void *bytes, size_t size) {
    append(out, bytes, size);
}

void wire_put_id(struct wire_out *out, const struct member_id *id) {
    wire_put_bytes(out, id->bytes, sizeof id->bytes);
}

size_t address_store(const struct gossip_address *address, uint8_t out[19]) {
    if (address->family != 4 && address->family != 6) return 0;
    size_t ip = address->family == 4 ? 4 : 16;
    out[0] = address->family;
    memcpy(out + 1, address->ip, ip);
    out[1 + ip] = (uint8_t)(address->port >> 8);
    out[2 + ip] = (uint8_t)(address->port & 0xff);
    return ip + 3;
}

void wire_put_address(struct wire_out *out, const struct gossip_address *address) {
    uint8_t bytes[19];
    size_t size = address_store(address, bytes);
    wire_put_bytes(out, bytes, size);
}

void wire_rewind(struct wire_out *out, size_t size) {
    out->size = size;
    out->failed = false;
}

void wire_in_init(struct wire_in *in, const uint8_t *bytes, size_t size) {
    *in = (struct wire_in){.bytes = bytes, .size = size};
}

bool wire_end(const struct wire_in *in) {
    return in->failed || in->at == in->size;
}

static const uint8_t *take(struct wire_in *in, size_t size) {
    if (in->failed || size > in->size - in->at) {
        in->failed = true;
        return NULL;
    }
    const uint8_t *bytes = in->bytes + in->at;
    in->at += size;
    return bytes;
}

static uint64_t take_number(struct wire_in *in, size_t width) {
    const uint8_t *bytes = take(in, width);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++)
        value = value << 8 | bytes[i];
    return value;
}

static uint8_t take_tag(struct wire_in *in) {
    return (uint8_t)take_number(in, 1);
}

static void fail(struct wire_in *in) {
    in->failed = true;
}

uint32_t wire_get_array(struct wire_in *in) {
    uint8_t tag = take_tag(in);
    if (in->failed) return 0;
    uint64_t count = 0;
    if ((tag & 0xf0) == 0x90)
        count = tag & 0x0f;
    else if (tag == 0xdc)
        count = take_number(in, 2);
    else
        fail(in);                  /* nothing of ours has 65,536 members */
    if (count > in->size - in->at) /* each takes a byte at least */
        fail(in);
    return in->failed ? 0 : (uint32_t)count;
}

uint64_t wire_get_uint(struct wire_in *in) {
    uint8_t tag = take_tag(in);
    if (in->failed) return 0;
    if (tag < 0x80) return tag;
    if (tag >= 0xcc && tag <= 0xcf) return take_number(in, (size_t)1 << (tag - 0xcc));
    fail(in);
    return 0;
}

bool wire_get_bool(struct wire_in *in) {
    uint64_t value = wire_get_uint(in);
    if (value > 1) fail(in);
    return value == 1;
}

/* The length of a bin or str value, or failure. */
static size_t take_length(struct wire_in *in, uint8_t tag) {
    if ((tag & 0xe0) == 0xa0) return tag & 0x1f;
    if (tag == 0xc4 || tag == 0xd9) return take_number(in, 1);
    if (tag == 0xc5 || tag == 0xda) return take_number(in, 2);
    fail(in);
    return 0;
}

const uint8_t *wire_get_bytes(struct wire_in *in, size_t max, size_t *size) {
    size_t length = take_length(in, take_tag(in));
    if (length > max) fail(in);
    const uint8_t *bytes = take(in, length);
    *size = bytes ? length : 0;
    return bytes;
}

const uint8_t *wire_get_bytes_if(struct wire_in *in, size_t max, size_t *size) {
    uint8_t tag = in->at < in->size ? in->bytes[in->at] : 0;
    *size = 0;
    if (tag == 0xc4 || tag == 0xc5) return wire_get_bytes(in, max, size);
    wire_skip(in, 1);
    return NULL;
}

void wire_get_fixed(struct wire_in *in, void *out, size_t size) {
    size_t got;
    const uint8_t *bytes = wire_get_bytes(in, size, &got);
    memset(out, 0, size);
    if (!bytes || got != size)
        fail(in);
    else
        memcpy(out, bytes, size);
}

void wire_get_id(struct wire_in *in, struct member_id *id) {
    wire_get_fixed(in, id->bytes, sizeof id->bytes);
}

void wire_get_address(struct wire_in *in, struct gossip_address *address) {
    size_t size;
    const uint8_t *bytes = wire_get_bytes(in, 19, &size);
    memset(address, 0, sizeof *address);
    if (!bytes || size == 0) return;
    size_t ip = bytes[0] == 4 ? 4 : bytes[0] == 6 ? 16 : 0;
    if (ip == 0 || size != ip + 3) {
        fail(in);
        return;
    }
    address->family = bytes[0];
    memcpy(address->ip, bytes + 1, ip);
    address->port = (uint16_t)(bytes[1 + ip] << 8 | bytes[2 + ip]);
}

/* The values inside a container with this tag, or 0 when it is a plain value, whose bytes are passed over. */
static uint64_t skip_one(struct wire_in *in) {
    uint8_t tag = take_tag(in);
    if (in->failed || tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return 0;
    if ((tag & 0xf0) == 0x80) return 2u * (tag & 0x0fu);
    if ((tag & 0xf0) == 0x90) return tag & 0x0f;
    if ((tag & 0xe0) == 0xa0) {
        take(in, tag & 0x1f);
        return 0;
    }
    switch (tag) {
    case 0xc4:
    case 0xd9: take(in, take_number(in, 1)); return 0;
    case 0xc5:
    case 0xda: take(in, take_number(in, 2)); return 0;
    case 0xc6:
    case 0xdb: take(in, take_number(in, 4)); return 0;
    case 0xcc:
    case 0xd0: take(in, 1); return 0;
    case 0xcd:
    case 0xd1: take(in, 2); return 0;
    case 0xca:
    case 0xce:
    case 0xd2: take(in, 4); return 0;
    case 0xcb:
    case 0xcf:
    case 0xd3: take(in, 8); return 0;
    case 0xdc: return take_number(in, 2);
    case 0xde: return 2 * take_number(in, 2);
    default: fail(in); return 0;
    }
}

void wire_skip(struct wire_in *in, uint32_t count) {
    /* Counting what is still owed needs no recursion; each step eats a byte, so it ends. */
    for (uint64_t owed = count; owed > 0 && !in->failed; owed--)
        owed += skip_one(in);
}

void wire_store_u64(uint8_t out[8], uint64_t value) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
}

uint64_t wire_load_u64(const uint8_t in[8]) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | in[i];
    return value;
}

bool address_equal(const struct gossip_address *a, const struct gossip_address *b) {
    if (a->family != b->family) return false;
    if (a->family == 4) return a->port == b->port && memcmp(a->ip, b->ip, 4) == 0;
    return (a->family != 6 || a->port == b->port) && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}
