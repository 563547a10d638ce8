/* What a sealed datagram says, kind by kind. */
#ifndef DATAGRAM_READER_H
#define DATAGRAM_READER_H

#include "gossip_net.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#define READER_KINDS 64

struct said {
    uint64_t count[READER_KINDS], bytes[READER_KINDS];
};

/* Adds to `said`. Returns the bytes before the first message, with what the seal adds. */
static inline size_t datagram_read(const struct gossip_key *key, const uint8_t *bytes, size_t size, struct said *said) {
    struct chance chance = {7};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    uint8_t plain[SEAL_PLAIN_MAX];
    bool own;
    struct wire_in in;
    struct packet_header header;
    struct message message;
    assert_true(seal_init(&seal, &options, &chance));
    long plain_size = seal_open(&seal, &crypto, bytes, size, plain, &own);
    assert_true(plain_size > 0);
    wire_in_init(&in, plain, (size_t)plain_size);
    header_get(&in, &header);
    size_t head = in.at + size - (size_t)plain_size;
    for (size_t before = in.at; message_get(&in, &message); before = in.at) {
        said->count[message.kind % READER_KINDS]++;
        said->bytes[message.kind % READER_KINDS] += in.at - before;
    }
    return head;
}

#endif
