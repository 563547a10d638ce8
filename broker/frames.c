#include "broker/frames.h"

#include "broker/digest.h"

#include <assert.h>
#include <msgpack/pack.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

enum { BUFFER_KEPT_MAX = 256 * 1024 };

void frame_out_deinit(struct frame_out *out) {
    free(out->bytes);
    memset(out, 0, sizeof *out);
}

void frame_out_clear(struct frame_out *out) {
    if (out->capacity > BUFFER_KEPT_MAX) frame_out_deinit(out);
    out->size = 0;
    out->failed = false;
}

static int append(void *data, const char *bytes, size_t size) {
    struct frame_out *out = data;
    if (out->failed) return -1;
    if (out->capacity - out->size < size) {
        size_t capacity = out->capacity ? out->capacity : 256;
        while (capacity - out->size < size)
            capacity *= 2;
        uint8_t *grown = realloc(out->bytes, capacity);
        if (!grown) {
            out->failed = true;
            return -1;
        }
        out->bytes = grown;
        out->capacity = capacity;
    }
    if (size > 0) memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return 0;
}

static msgpack_packer begin(struct frame_out *out, size_t fields, enum frame_type type) {
    msgpack_packer packer;
    frame_out_clear(out);
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_array(&packer, fields);
    msgpack_pack_uint8(&packer, (uint8_t)type);
    return packer;
}

static void pack_bin(msgpack_packer *packer, const void *bytes, size_t size) {
    msgpack_pack_bin(packer, size);
    msgpack_pack_bin_body(packer, bytes, size);
}

static void pack_str(msgpack_packer *packer, const char *text, size_t size) {
    msgpack_pack_str(packer, size);
    msgpack_pack_str_body(packer, text, size);
}

void frame_write_hello(struct frame_out *out, const struct hello *hello) {
    msgpack_packer packer = begin(out, 15, FRAME_HELLO);
    msgpack_pack_uint64(&packer, hello->protocol_min);
    msgpack_pack_uint64(&packer, hello->protocol_max);
    pack_bin(&packer, hello->id, sizeof hello->id);
    pack_str(&packer, hello->name, hello->name_size);
    msgpack_pack_uint64(&packer, hello->epoch);
    pack_bin(&packer, hello->token, hello->token_size);
    msgpack_pack_uint64(&packer, hello->stream);
    msgpack_pack_uint64(&packer, hello->first);
    msgpack_pack_uint64(&packer, hello->seen_epoch);
    msgpack_pack_uint64(&packer, hello->seen_stream);
    msgpack_pack_uint64(&packer, hello->expected);
    msgpack_pack_uint64(&packer, hello->credit);
    msgpack_pack_uint64(&packer, hello->frame_size_max);
    pack_str(&packer, hello->federation, hello->federation_size);
}

void frame_write_bye(struct frame_out *out, enum bye_code code, const char *reason) {
    msgpack_packer packer = begin(out, 3, FRAME_BYE);
    msgpack_pack_uint8(&packer, (uint8_t)code);
    pack_str(&packer, reason, strlen(reason));
}

void frame_write_ack(struct frame_out *out, uint64_t expected) {
    msgpack_packer packer = begin(out, 2, FRAME_ACK);
    msgpack_pack_uint64(&packer, expected);
}

void frame_write_plain(struct frame_out *out, enum frame_type type) {
    begin(out, 1, type);
}

void frame_write_why(struct frame_out *out, const struct inquiry *inquiry) {
    msgpack_packer packer = begin(out, 5, FRAME_WHY);
    msgpack_pack_uint64(&packer, inquiry->number);
    pack_str(&packer, inquiry->topic, inquiry->topic_size);
    pack_bin(&packer, inquiry->from, sizeof inquiry->from);
    pack_bin(&packer, inquiry->to, sizeof inquiry->to);
}

static void pack_part(msgpack_packer *packer, const struct frame_part *part) {
    pack_bin(packer, part->bytes, part->size);
}

void frame_write_digests(struct frame_out *out, enum frame_type type, const struct frame_digests *digests) {
    msgpack_packer packer = begin(out, type == FRAME_HOLDS ? 5 : 4, type);
    msgpack_pack_uint32(&packer, digests->number);
    if (type == FRAME_HOLDS) msgpack_pack_uint64(&packer, digests->expected);
    pack_part(&packer, type == FRAME_COMPARE ? &digests->nodes : &digests->sums);
    pack_part(&packer, type == FRAME_COMPARED ? &digests->wanted : &digests->items);
}

/* The number of items is known last, so its array always has the long header (msgpack "array 32"). */
static void begin_items(struct frame_out *out) {
    static const char header[5] = {(char)0xdd, 0, 0, 0, 0};
    append(out, header, sizeof header);
    out->count_at = out->size - 4;
    out->item_count = 0;
}

void frame_end_items(struct frame_out *out) {
    if (out->failed) return;
    for (unsigned i = 0; i < 4; i++)
        out->bytes[out->count_at + i] = (uint8_t)(out->item_count >> (24 - 8 * i));
}

void frame_begin_names(struct frame_out *out, enum frame_type type, uint64_t number) {
    bool with_number = type == FRAME_JOINED || type == FRAME_DECLINE || type == FRAME_KEEP || type == FRAME_BECAUSE;
    msgpack_packer packer = begin(out, with_number ? 3 : 2, type);
    if (with_number) msgpack_pack_uint64(&packer, number);
    begin_items(out);
}

void frame_add_name(struct frame_out *out, const char *text, size_t size) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    pack_str(&packer, text, size);
    out->item_count++;
}

void frame_add_step(struct frame_out *out, const struct inquiry_step *step) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_array(&packer, 3);
    msgpack_pack_uint64(&packer, step->stage);
    msgpack_pack_uint8(&packer, step->stops);
    pack_str(&packer, step->text, step->size);
    out->item_count++;
}

void frame_begin_members(struct frame_out *out) {
    begin(out, 2, FRAME_MEMBERS);
    begin_items(out);
}

void frame_add_members(struct frame_out *out, const struct frame_members *members) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_array(&packer, 3);
    pack_str(&packer, members->group, members->size);
    msgpack_pack_uint32(&packer, members->connected);
    msgpack_pack_uint32(&packer, members->away);
    out->item_count++;
}

void frame_begin_publish(struct frame_out *out, uint64_t first) {
    msgpack_packer packer = begin(out, 3, FRAME_PUBLISH);
    msgpack_pack_uint64(&packer, first);
    begin_items(out);
}

void frame_begin_packets(struct frame_out *out) {
    begin(out, 2, FRAME_GOSSIP);
    begin_items(out);
}

void frame_add_packet(struct frame_out *out, const uint8_t *bytes, size_t size) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    pack_bin(&packer, bytes, size);
    out->item_count++;
}

enum {
    FLAG_QOS = 3,
    FLAG_RETAIN = 4,
    FLAG_SNAPSHOT = 8,
    FLAG_PROPERTIES = 16,
    FLAG_EXPIRY = 32,
    FLAG_GROUPS = 64,
    FLAG_GROUPS_ONLY = 128,
    FLAG_RETURNED = 256,
    FLAG_AGAIN = 512,
    FLAG_ALL = 1023
};

static size_t publication_fields(unsigned flags) {
    return 3u + (flags & FLAG_PROPERTIES ? 1u : 0u) + (flags & FLAG_EXPIRY ? 1u : 0u) +
           (flags & FLAG_RETAIN ? 2u : 0u) + (flags & FLAG_GROUPS ? 1u : 0u);
}

static unsigned flags_of_aims(const struct aims *aims) {
    if (!aims || aims->size == 0) return 0;
    return FLAG_GROUPS | (aims->what & AIMS_OTHERS ? 0u : FLAG_GROUPS_ONLY) |
           (aims->what & AIMS_RETURNED ? FLAG_RETURNED : 0u) | (aims->what & AIMS_AGAIN ? FLAG_AGAIN : 0u);
}

static void pack_groups(msgpack_packer *packer, const struct aims *aims) {
    const char *group;
    size_t count = 0;
    for (size_t at = 0, size; aims_at(aims, at, &size); at += size + 1)
        count++;
    msgpack_pack_array(packer, count);
    for (size_t at = 0, size; (group = aims_at(aims, at, &size)) != NULL; at += size + 1)
        pack_str(packer, group, size);
}

void frame_add_publication(struct frame_out *out, const struct message *message, const struct aims *aims, bool snapshot,
                           uint64_t expiry_s) {
    unsigned flags = message->qos | (message->retain ? FLAG_RETAIN : 0) | (snapshot ? FLAG_SNAPSHOT : 0) |
                     (message->properties_size ? FLAG_PROPERTIES : 0) |
                     (expiry_s != MESSAGE_NO_EXPIRY ? FLAG_EXPIRY : 0) | flags_of_aims(aims);
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_array(&packer, publication_fields(flags));
    msgpack_pack_uint16(&packer, (uint16_t)flags);
    pack_str(&packer, message->topic, message->topic_size);
    pack_bin(&packer, message->payload, message->payload_size);
    if (flags & FLAG_PROPERTIES) pack_bin(&packer, message->properties, message->properties_size);
    if (flags & FLAG_EXPIRY) msgpack_pack_uint32(&packer, (uint32_t)expiry_s);
    if (flags & FLAG_RETAIN) {
        msgpack_pack_uint64(&packer, message->stamp.wall_ms);
        msgpack_pack_uint32(&packer, message->stamp.count);
    }
    if (flags & FLAG_GROUPS) pack_groups(&packer, aims);
    out->item_count++;
}

void frame_add_skipped(struct frame_out *out) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    msgpack_pack_nil(&packer);
    out->item_count++;
}

/* ---- reading ---- */

/* Once bad, it stays bad and everything read from it is empty. */
struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t big_endian(struct cursor *cursor, size_t size) {
    if (cursor->bad || (size_t)(cursor->end - cursor->at) < size) {
        cursor->bad = true;
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | *cursor->at++;
    return value;
}

static uint64_t read_uint(struct cursor *cursor, uint64_t max) {
    uint64_t tag = big_endian(cursor, 1), value = tag;
    if (tag >= 0xcc && tag <= 0xcf)
        value = big_endian(cursor, (size_t)1 << (tag - 0xcc));
    else if (tag > 0x7f)
        cursor->bad = true;
    if (value > max) cursor->bad = true;
    return cursor->bad ? 0 : value;
}

/* Each element takes a byte at least, so a count beyond the bytes that are there is a lie. */
static uint32_t read_array(struct cursor *cursor) {
    uint64_t tag = big_endian(cursor, 1), count = 0;
    if (tag >= 0x90 && tag <= 0x9f)
        count = tag & 15;
    else if (tag == 0xdc || tag == 0xdd)
        count = big_endian(cursor, tag == 0xdc ? 2 : 4);
    else
        cursor->bad = true;
    if (count > (size_t)(cursor->end - cursor->at)) cursor->bad = true;
    return cursor->bad ? 0 : (uint32_t)count;
}

static const uint8_t *take(struct cursor *cursor, uint64_t size, size_t *taken) {
    if (cursor->bad || (size_t)(cursor->end - cursor->at) < size) {
        cursor->bad = true;
        *taken = 0;
        return NULL;
    }
    const uint8_t *bytes = cursor->at;
    cursor->at += size;
    *taken = (size_t)size;
    return bytes;
}

static const uint8_t *read_bin(struct cursor *cursor, size_t *size) {
    uint64_t tag = big_endian(cursor, 1);
    if (tag < 0xc4 || tag > 0xc6) cursor->bad = true;
    return take(cursor, big_endian(cursor, cursor->bad ? 0 : (size_t)1 << (tag - 0xc4)), size);
}

static const char *read_str(struct cursor *cursor, size_t *size) {
    uint64_t tag = big_endian(cursor, 1), length = tag & 31;
    if (tag >= 0xd9 && tag <= 0xdb)
        length = big_endian(cursor, (size_t)1 << (tag - 0xd9));
    else if (tag < 0xa0 || tag > 0xbf)
        cursor->bad = true;
    return (const char *)take(cursor, length, size);
}

static const char *read_name(struct cursor *cursor, size_t *size) {
    const char *text = read_str(cursor, size);
    if (*size == 0 || *size > 65535) cursor->bad = true;
    return text;
}

static void read_groups(struct cursor *cursor, struct publication *publication) {
    size_t size;
    publication->group_count = read_array(cursor);
    publication->groups = cursor->at;
    for (uint32_t i = 0; i < publication->group_count && !cursor->bad; i++)
        read_name(cursor, &size);
    publication->groups_size = (size_t)(cursor->at - publication->groups);
}

static void read_publication(struct cursor *cursor, struct publication *publication) {
    memset(publication, 0, sizeof *publication);
    publication->expiry_s = MESSAGE_NO_EXPIRY;
    if (cursor->at < cursor->end && *cursor->at == 0xc0) {
        cursor->at++;
        publication->skipped = true;
        return;
    }
    uint32_t fields = read_array(cursor);
    unsigned flags = (unsigned)read_uint(cursor, FLAG_ALL);
    if (fields != publication_fields(flags) || (flags & FLAG_QOS) == 3 ||
        ((flags & FLAG_SNAPSHOT) && !(flags & FLAG_RETAIN)) ||
        ((flags & (FLAG_GROUPS_ONLY | FLAG_RETURNED | FLAG_AGAIN)) && !(flags & FLAG_GROUPS)) ||
        ((flags & FLAG_RETURNED) && !(flags & FLAG_GROUPS_ONLY)))
        cursor->bad = true;
    publication->qos = flags & FLAG_QOS;
    publication->retain = flags & FLAG_RETAIN;
    publication->snapshot = flags & FLAG_SNAPSHOT;
    publication->topic = read_name(cursor, &publication->topic_size);
    publication->payload = read_bin(cursor, &publication->payload_size);
    if (flags & FLAG_PROPERTIES) publication->properties = read_bin(cursor, &publication->properties_size);
    if (flags & FLAG_EXPIRY) publication->expiry_s = read_uint(cursor, UINT32_MAX);
    if (flags & FLAG_RETAIN) {
        publication->stamp_wall_ms = read_uint(cursor, UINT64_MAX);
        publication->stamp_count = (uint32_t)read_uint(cursor, UINT32_MAX);
    }
    publication->groups_only = flags & FLAG_GROUPS_ONLY;
    publication->returned = flags & FLAG_RETURNED;
    publication->again = flags & FLAG_AGAIN;
    if (flags & FLAG_GROUPS) read_groups(cursor, publication);
}

static void read_members(struct cursor *cursor, struct frame_members *members) {
    if (read_array(cursor) != 3) cursor->bad = true;
    members->group = read_name(cursor, &members->size);
    members->connected = (uint32_t)read_uint(cursor, UINT32_MAX);
    members->away = (uint32_t)read_uint(cursor, UINT32_MAX);
}

static void read_id(struct cursor *cursor, uint8_t id[16]) {
    size_t size;
    const uint8_t *bytes = read_bin(cursor, &size);
    if (size == 16)
        memcpy(id, bytes, 16);
    else
        cursor->bad = true;
}

static void read_inquiry(struct cursor *cursor, struct inquiry *inquiry) {
    inquiry->number = read_uint(cursor, UINT64_MAX);
    inquiry->topic = read_name(cursor, &inquiry->topic_size);
    read_id(cursor, inquiry->from);
    read_id(cursor, inquiry->to);
}

static void read_step(struct cursor *cursor, struct inquiry_step *step) {
    if (read_array(cursor) != 3) cursor->bad = true;
    step->stage = read_uint(cursor, UINT64_MAX);
    step->stops = read_uint(cursor, 1);
    step->text = read_str(cursor, &step->size);
}

static void read_hello(struct cursor *cursor, struct hello *hello) {
    hello->protocol_min = read_uint(cursor, UINT64_MAX);
    hello->protocol_max = read_uint(cursor, UINT64_MAX);
    read_id(cursor, hello->id);
    hello->name = read_str(cursor, &hello->name_size);
    hello->epoch = read_uint(cursor, UINT64_MAX);
    hello->token = read_bin(cursor, &hello->token_size);
    hello->stream = read_uint(cursor, UINT64_MAX);
    hello->first = read_uint(cursor, UINT64_MAX >> 1);
    hello->seen_epoch = read_uint(cursor, UINT64_MAX);
    hello->seen_stream = read_uint(cursor, UINT64_MAX);
    hello->expected = read_uint(cursor, UINT64_MAX >> 1);
    hello->credit = read_uint(cursor, UINT64_MAX);
    hello->frame_size_max = read_uint(cursor, UINT64_MAX);
    hello->federation = read_str(cursor, &hello->federation_size);
}

/* A whole number of elements of this size. */
static void read_part(struct cursor *cursor, size_t element, struct frame_part *part) {
    part->bytes = read_bin(cursor, &part->size);
    if (part->size % element != 0) cursor->bad = true;
}

static void read_digests(struct cursor *cursor, enum frame_type type, struct frame_digests *digests) {
    digests->number = (uint32_t)read_uint(cursor, UINT32_MAX);
    if (type == FRAME_HOLDS) digests->expected = read_uint(cursor, UINT64_MAX >> 1);
    if (type == FRAME_COMPARE)
        read_part(cursor, DIGEST_NODE_SIZE, &digests->nodes);
    else
        read_part(cursor, DIGEST_SUMS_SIZE, &digests->sums);
    if (type == FRAME_COMPARED)
        read_part(cursor, 1, &digests->wanted);
    else
        read_part(cursor, DIGEST_ITEM_SIZE, &digests->items);
}

static void read_items(struct cursor *cursor, struct frame *frame) {
    frame->item_count = read_array(cursor);
    frame->items = cursor->at;
    struct publication publication;
    struct inquiry_step step;
    size_t size;
    for (uint32_t i = 0; i < frame->item_count && !cursor->bad; i++) {
        if (frame->type == FRAME_PUBLISH)
            read_publication(cursor, &publication);
        else if (frame->type == FRAME_GOSSIP)
            read_bin(cursor, &size);
        else if (frame->type == FRAME_BECAUSE)
            read_step(cursor, &step);
        else if (frame->type == FRAME_MEMBERS)
            read_members(cursor, &(struct frame_members){0});
        else
            read_name(cursor, &size);
    }
    frame->items_size = (size_t)(cursor->at - frame->items);
}

/* Fields of each type, the type itself included; 0: of another version. There is no type 0. */
static const uint8_t frame_fields[] = {
    [FRAME_HELLO] = 15,  [FRAME_BYE] = 3,     [FRAME_JOIN] = 2,    [FRAME_LEAVE] = 2,    [FRAME_JOINED] = 3,
    [FRAME_SYNCED] = 1,  [FRAME_PUBLISH] = 3, [FRAME_ACK] = 2,     [FRAME_INVITE] = 2,   [FRAME_DECLINE] = 3,
    [FRAME_PING] = 1,    [FRAME_PONG] = 1,    [FRAME_GOSSIP] = 2,  [FRAME_KEEP] = 3,     [FRAME_WHY] = 5,
    [FRAME_BECAUSE] = 3, [FRAME_HOLDS] = 5,   [FRAME_COMPARE] = 4, [FRAME_COMPARED] = 4, [FRAME_MEMBERS] = 2,
};

enum frame_result frame_read(const uint8_t *bytes, size_t size, struct frame *frame) {
    struct cursor cursor = {.at = bytes, .end = bytes + size};
    memset(frame, 0, sizeof *frame);
    uint32_t fields = read_array(&cursor);
    uint64_t type = read_uint(&cursor, UINT64_MAX);
    if (cursor.bad || fields == 0 || type == 0) return FRAME_MALFORMED;
    if (type >= sizeof frame_fields || frame_fields[type] == 0) return FRAME_UNKNOWN;
    if (frame_fields[type] != fields) return FRAME_MALFORMED;
    frame->type = (enum frame_type)type;
    switch (frame->type) {
    case FRAME_HELLO: read_hello(&cursor, &frame->hello); break;
    case FRAME_BYE:
        frame->code = read_uint(&cursor, UINT64_MAX);
        frame->reason = read_str(&cursor, &frame->reason_size);
        break;
    case FRAME_JOINED:
    case FRAME_KEEP:
        frame->code = read_uint(&cursor, UINT64_MAX);
        read_items(&cursor, frame);
        break;
    case FRAME_DECLINE:
        frame->ttl_ms = read_uint(&cursor, UINT64_MAX);
        read_items(&cursor, frame);
        break;
    case FRAME_PUBLISH:
        /* Half the range is out of reach of any run, and sums with it cannot wrap. */
        frame->sequence = read_uint(&cursor, UINT64_MAX >> 1);
        read_items(&cursor, frame);
        break;
    case FRAME_ACK: frame->sequence = read_uint(&cursor, UINT64_MAX >> 1); break;
    case FRAME_WHY: read_inquiry(&cursor, &frame->inquiry); break;
    case FRAME_BECAUSE:
        frame->inquiry.number = read_uint(&cursor, UINT64_MAX);
        read_items(&cursor, frame);
        break;
    case FRAME_JOIN:
    case FRAME_LEAVE:
    case FRAME_INVITE:
    case FRAME_GOSSIP:
    case FRAME_MEMBERS: read_items(&cursor, frame); break;
    case FRAME_HOLDS:
    case FRAME_COMPARE:
    case FRAME_COMPARED: read_digests(&cursor, frame->type, &frame->digests); break;
    case FRAME_SYNCED:
    case FRAME_PING:
    case FRAME_PONG: break;
    }
    return cursor.bad || cursor.at != cursor.end ? FRAME_MALFORMED : FRAME_OK;
}

static bool next_item(struct frame *frame, struct cursor *cursor) {
    if (frame->item_count == 0) return false;
    frame->item_count--;
    *cursor = (struct cursor){.at = frame->items, .end = frame->items + frame->items_size};
    return true;
}

static void item_taken(struct frame *frame, const struct cursor *cursor) {
    assert(!cursor->bad); /* frame_read() has seen it */
    frame->items = cursor->at;
    frame->items_size = (size_t)(cursor->end - cursor->at);
}

bool frame_next_name(struct frame *frame, const char **text, size_t *size) {
    struct cursor cursor;
    if (!next_item(frame, &cursor)) return false;
    *text = read_name(&cursor, size);
    item_taken(frame, &cursor);
    return true;
}

bool frame_next_members(struct frame *frame, struct frame_members *members) {
    struct cursor cursor;
    if (!next_item(frame, &cursor)) return false;
    read_members(&cursor, members);
    item_taken(frame, &cursor);
    return true;
}

bool publication_next_group(struct publication *publication, const char **text, size_t *size) {
    if (publication->group_count == 0) return false;
    struct cursor cursor = {.at = publication->groups, .end = publication->groups + publication->groups_size};
    publication->group_count--;
    *text = read_name(&cursor, size);
    publication->groups = cursor.at;
    publication->groups_size = (size_t)(cursor.end - cursor.at);
    return true;
}

bool frame_next_packet(struct frame *frame, const uint8_t **bytes, size_t *size) {
    struct cursor cursor;
    if (!next_item(frame, &cursor)) return false;
    *bytes = read_bin(&cursor, size);
    item_taken(frame, &cursor);
    return true;
}

bool frame_next_step(struct frame *frame, struct inquiry_step *step) {
    struct cursor cursor;
    if (!next_item(frame, &cursor)) return false;
    read_step(&cursor, step);
    item_taken(frame, &cursor);
    return true;
}

bool frame_next_publication(struct frame *frame, struct publication *publication) {
    struct cursor cursor;
    if (!next_item(frame, &cursor)) return false;
    read_publication(&cursor, publication);
    item_taken(frame, &cursor);
    return true;
}
