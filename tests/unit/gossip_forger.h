/* Packets made by hand, by somebody who has the gossip key and no more: any id in the header, any address as source. */
#ifndef GOSSIP_FORGER_H
#define GOSSIP_FORGER_H

#include "gossip_packet.h"

#include "gossip/signed.h"

struct forger {
    struct net *net;
    int at;                        /* the broker it speaks to */
    struct packet_header header;   /* as it will be sent */
    struct gossip_address address; /* of the forger */
    /* What came back to that address. */
    unsigned count[64]; /* messages by kind */
    unsigned told;      /* heads of the one whose id it uses */
    uint64_t ping;      /* the last number asked */
    uint64_t again_ms;  /* of the last ROLL: 0, or when to ask again */
    uint64_t bytes;
};

static inline void forger_read(struct forger *forger, const struct gossip_datagram *datagram) {
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(forger->net, datagram, plain, &header);
    struct message message;
    memcpy(forger->header.echo, header.cookie, sizeof header.cookie);
    forger->bytes += datagram->size;
    while (message_get(&in, &message)) {
        forger->count[message.kind % 64]++;
        if (message.kind == MESSAGE_PING) forger->ping = message.number;
        if (message.kind == MESSAGE_ROLL) forger->again_ms = message.number;
        struct head head;
        forger->told += message.kind == MESSAGE_HEAD && head_read(message.bytes, message.size, &head) &&
                        memcmp(&head.id, &forger->header.id, sizeof head.id) == 0;
    }
}

/* Takes what the broker sends to the forger; the rest goes its way. */
static inline void forger_collect(struct forger *forger) {
    struct net *net = forger->net;
    struct net_node *node = &net->nodes[forger->at];
    struct gossip_datagram datagram;
    while (gossip_next_datagram(node->gossip, &datagram)) {
        if (memcmp(datagram.to.ip, forger->address.ip, 16) == 0 && datagram.to.port == forger->address.port)
            forger_read(forger, &datagram);
        for (int to = 0; to < net->count; to++)
            if (memcmp(net->nodes[to].address.ip, datagram.to.ip, 16) == 0 &&
                net->nodes[to].address.port == datagram.to.port)
                net_put(net, forger->at, to, &node->address, datagram.bytes, datagram.size);
    }
    net_drain(net, forger->at);
}

static inline void forger_say(struct forger *forger, const struct message *message) {
    static uint32_t nonce = 1000;
    struct net *net = forger->net;
    struct chance chance = {8};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    assert_true(seal_init(&seal, &options, &chance));
    seal.counter = nonce++;
    uint8_t plain[SEAL_PLAIN_MAX], datagram[GOSSIP_DATAGRAM_MAX];
    struct wire_out packet;
    wire_out_init(&packet, plain, sizeof plain);
    header_put(&packet, &forger->header);
    message_put(&packet, message);
    assert_false(packet.failed);
    size_t size = seal_close(&seal, &crypto, plain, packet.size, datagram);
    gossip_receive(net->nodes[forger->at].gossip, net->now_ms, &forger->address, datagram, size);
    forger_collect(forger);
}

/* Speaks to `at` under the id of `as`, from an address of its own, whose cookie it has got by pings. */
static inline struct forger forger_new(struct net *net, int at, int as, const struct gossip_address *address) {
    struct forger forger = {.net = net, .at = at, .address = *address};
    forger.header = (struct packet_header){.id = net_id(net, as), .epoch = net->nodes[as].epoch, .incarnation = 1};
    struct message ping = {.kind = MESSAGE_PING, .number = 1};
    for (int i = 0; i < 10 && forger.bytes == 0; i++) /* an answer may be more than it is owed for one */
        forger_say(&forger, &ping);
    assert_true(forger.bytes > 0);
    return forger;
}

#endif
