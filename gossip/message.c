#include "gossip/message.h"

#include <string.h>

void header_put(struct wire_out *out, const struct packet_header *header) {
    wire_put_array(out, 10);
    wire_put_uint(out, MESSAGE_PROTOCOL);
    wire_put_id(out, &header->id);
    wire_put_uint(out, header->epoch);
    wire_put_uint(out, header->incarnation);
    wire_put_uint(out, header->sequence);
    wire_put_uint(out, header->holds_epoch);
    wire_put_uint(out, header->holds_incarnation);
    wire_put_uint(out, header->holds_sequence);
    wire_put_bytes(out, header->cookie, sizeof header->cookie);
    wire_put_bytes(out, header->echo, sizeof header->echo);
}

void header_get(struct wire_in *in, struct packet_header *header) {
    uint32_t count = wire_get_array(in);
    if (count < 10 || wire_get_uint(in) != MESSAGE_PROTOCOL) in->failed = true;
    wire_get_id(in, &header->id);
    header->epoch = wire_get_uint(in);
    header->incarnation = wire_get_uint(in);
    header->sequence = wire_get_uint(in);
    header->holds_epoch = wire_get_uint(in);
    header->holds_incarnation = wire_get_uint(in);
    header->holds_sequence = wire_get_uint(in);
    wire_get_fixed(in, header->cookie, sizeof header->cookie);
    wire_get_fixed(in, header->echo, sizeof header->echo);
    if (!in->failed) wire_skip(in, count - 10);
}

/* The fields of each kind, in order; both directions read this one table.
 * n number, f flag, i version.id, e epoch, c incarnation, s sequence, o other, k key, a address, b bytes, p proof;
 * B bytes that may be left out, last. */
static const struct {
    const char *fields;
    size_t bytes_max;
} shapes[] = {
    [MESSAGE_HEAD] = {"b", MESSAGE_BLOB_MAX},
    [MESSAGE_ENTRY] = {"b", MESSAGE_BLOB_MAX},
    [MESSAGE_PING] = {"nB", MESSAGE_FOR_SIZE},
    [MESSAGE_PONG] = {"nB", GOSSIP_SIGNATURE_SIZE},
    [MESSAGE_PING_REQ] = {"ni", 0},
    [MESSAGE_INDIRECT] = {"nfB", GOSSIP_SIGNATURE_SIZE},
    [MESSAGE_WHO] = {"i", 0},
    [MESSAGE_TOKEN] = {"kb", MESSAGE_TOKEN_MAX},
    [MESSAGE_REFUSED] = {"b", MESSAGE_REASON_MAX},
    [MESSAGE_ACCUSE] = {"iecoB", GOSSIP_SIGNATURE_SIZE},
    [MESSAGE_HAVE] = {"iecs", 0},
    [MESSAGE_HAD] = {"iecs", 0},
    [MESSAGE_DIGEST] = {"n", 0},
    [MESSAGE_BUCKETS] = {"bn", MESSAGE_BUCKET_COUNT * 8},
    [MESSAGE_VERSIONS] = {"niob", MESSAGE_VERSIONS_MAX *MESSAGE_VERSION_SIZE},
    [MESSAGE_WANT] = {"iecs", 0},
    [MESSAGE_WANT_CHUNK] = {"iesn", 0},
    [MESSAGE_CHUNK] = {"iesnbp", MESSAGE_CHUNK_SIZE},
    [MESSAGE_SEEN_AT] = {"a", 0},
    [MESSAGE_PROOF] = {"b", GOSSIP_SIGNATURE_SIZE},
    [MESSAGE_LATER] = {"ni", 0},
    [MESSAGE_PULL] = {"", 0},
    [MESSAGE_RING] = {"b", GOSSIP_RING_SIZE_MAX},
    [MESSAGE_PROVE] = {"", 0},
    [MESSAGE_VOUCH] = {"ie", 0},
    [MESSAGE_ROLL] = {"fniob", MESSAGE_ROLL_MAX},
    [MESSAGE_SEEK] = {"b", MESSAGE_BLOB_MAX},
};
#define SHAPE_COUNT (sizeof shapes / sizeof *shapes)

void message_put(struct wire_out *out, const struct message *message) {
    const char *fields = shapes[message->kind].fields;
    bool ends_early = message->size == 0 && strchr(fields, 'B');
    wire_put_array(out, (uint32_t)strlen(fields) + 1 - ends_early);
    wire_put_uint(out, message->kind);
    for (; *fields && !(ends_early && *fields == 'B'); fields++) {
        switch (*fields) {
        case 'n': wire_put_uint(out, message->number); break;
        case 'f': wire_put_bool(out, message->flag); break;
        case 'i': wire_put_id(out, &message->version.id); break;
        case 'e': wire_put_uint(out, message->version.epoch); break;
        case 'c': wire_put_uint(out, message->version.incarnation); break;
        case 's': wire_put_uint(out, message->version.sequence); break;
        case 'o': wire_put_id(out, &message->other); break;
        case 'k': wire_put_bytes(out, message->key, GOSSIP_PUBLIC_KEY_SIZE); break;
        case 'a': wire_put_address(out, &message->address); break;
        case 'b':
        case 'B': wire_put_bytes(out, message->bytes, message->size); break;
        case 'p': wire_put_bytes(out, message->proof, message->proof_size); break;
        }
    }
}

static void get_field(struct wire_in *in, char field, size_t bytes_max, struct message *message) {
    size_t size;
    switch (field) {
    case 'n': message->number = wire_get_uint(in); break;
    case 'f': message->flag = wire_get_bool(in); break;
    case 'i': wire_get_id(in, &message->version.id); break;
    case 'e': message->version.epoch = wire_get_uint(in); break;
    case 'c': message->version.incarnation = wire_get_uint(in); break;
    case 's': message->version.sequence = wire_get_uint(in); break;
    case 'o': wire_get_id(in, &message->other); break;
    case 'k':
        message->key = wire_get_bytes(in, GOSSIP_PUBLIC_KEY_SIZE, &size);
        if (size != GOSSIP_PUBLIC_KEY_SIZE) in->failed = true;
        break;
    case 'a': wire_get_address(in, &message->address); break;
    case 'b': message->bytes = wire_get_bytes(in, bytes_max, &message->size); break;
    case 'B': message->bytes = wire_get_bytes_if(in, bytes_max, &message->size); break;
    case 'p': message->proof = wire_get_bytes(in, MESSAGE_PROOF_MAX, &message->proof_size); break;
    }
}

bool message_get(struct wire_in *in, struct message *message) {
    while (!wire_end(in)) {
        memset(message, 0, sizeof *message);
        uint32_t count = wire_get_array(in);
        uint64_t kind = count > 0 ? wire_get_uint(in) : 0;
        if (in->failed || count == 0 || kind == 0) {
            in->failed = true;
            return false;
        }
        if (kind >= SHAPE_COUNT || !shapes[kind].fields) {
            wire_skip(in, count - 1);
            continue;
        }
        const char *fields = shapes[kind].fields;
        size_t field_count = strlen(fields);
        if (count == field_count && fields[field_count - 1] == 'B') field_count--;
        if (count - 1 < field_count) in->failed = true;
        message->kind = (enum message_kind)kind;
        for (size_t i = 0; i < field_count && !in->failed; i++)
            get_field(in, fields[i], shapes[kind].bytes_max, message);
        if (!in->failed) wire_skip(in, count - 1 - (uint32_t)field_count);
        return !in->failed;
    }
    return false;
}

void version_store(uint8_t out[MESSAGE_VERSION_SIZE], const struct version *version) {
    memcpy(out, version->id.bytes, 16);
    wire_store_u64(out + 16, version->epoch);
    wire_store_u64(out + 24, version->incarnation);
    wire_store_u64(out + 32, version->sequence);
    memcpy(out + 40, version->mark, 8);
}

void version_load(const uint8_t in[MESSAGE_VERSION_SIZE], struct version *version) {
    memcpy(version->id.bytes, in, 16);
    version->epoch = wire_load_u64(in + 16);
    version->incarnation = wire_load_u64(in + 24);
    version->sequence = wire_load_u64(in + 32);
    memcpy(version->mark, in + 40, 8);
}
