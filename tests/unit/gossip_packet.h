/* What goes over the wire of a net, opened. */
#ifndef GOSSIP_PACKET_H
#define GOSSIP_PACKET_H

#include "gossip_net.h"

#include "gossip/message.h"
#include "gossip/seal.h"

/* Its header, and its messages, to be read from plain. */
static inline struct wire_in net_open_packet(const struct net *net, const struct gossip_datagram *datagram,
                                             uint8_t plain[SEAL_PLAIN_MAX], struct packet_header *header) {
    struct chance chance = {7};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    assert_true(seal_init(&seal, &options, &chance));
    bool own;
    long size = seal_open(&seal, &crypto, datagram->bytes, datagram->size, plain, &own);
    assert_true(size > 0);
    struct wire_in in;
    wire_in_init(&in, plain, (size_t)size);
    header_get(&in, header);
    return in;
}

#endif
