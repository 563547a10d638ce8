/* A broker of the first version: kinds of messages that came later do not exist for it, neither in nor out. It passes
 * over them, as PROTOCOL.md demands of every version. */
#include "tools/simulate/world.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#define KIND_OF_FIRST_VERSION_MAX 20u
#define ENVELOPE 17u /* bytes before what is sealed: version, key id, nonce */
#define TAG 16u

/* Copies what the first version understands. False: not a packet. */
static bool filter(const uint8_t *plain, size_t size, struct wire_out *out) {
    struct wire_in in;
    struct packet_header header;
    wire_in_init(&in, plain, size);
    header_get(&in, &header);
    wire_put_raw(out, plain, in.at);
    while (!in.failed && !wire_end(&in)) {
        size_t begins = in.at;
        uint32_t count = wire_get_array(&in);
        uint64_t kind = wire_get_uint(&in);
        if (!in.failed && count > 0) wire_skip(&in, count - 1);
        if (!in.failed && kind <= KIND_OF_FIRST_VERSION_MAX) wire_put_raw(out, plain + begins, in.at - begins);
    }
    return !in.failed && !out->failed;
}

size_t older_filter(uint8_t *bytes, size_t size, const struct gossip_key *key, const char *federation) {
    struct gossip_crypto crypto = standin_crypto(NULL);
    uint8_t aad[5 + SEAL_FEDERATION_MAX], plain[SEAL_PLAIN_MAX], kept[SEAL_PLAIN_MAX];
    size_t aad_size = 5 + strlen(federation);
    if (size < SEAL_OVERHEAD || size > GOSSIP_DATAGRAM_MAX) return size;
    memcpy(aad, bytes, 5);
    memcpy(aad + 5, federation, strlen(federation));
    if (!crypto.open(NULL, key->key, bytes + 5, aad, aad_size, bytes + ENVELOPE, size - ENVELOPE, plain)) return size;
    struct wire_out out;
    wire_out_init(&out, kept, sizeof kept);
    if (!filter(plain, size - ENVELOPE - TAG, &out)) return size;
    crypto.seal(NULL, key->key, bytes + 5, aad, aad_size, kept, out.size, bytes + ENVELOPE);
    return ENVELOPE + out.size + TAG;
}
