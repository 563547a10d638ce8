/* A packet after opening: the input is sealed rightly and given to a broker that has two real members. What it makes
 * the broker keep is bounded by its bytes, and an address that proves nothing is sent three times what it sent at most.
 */
#define GOSSIP_NET_WITHOUT_CMOCKA
#include "tests/unit/gossip_net.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#include <sanitizer/allocator_interface.h>

#define KEPT_MAX (256 * 1024) /* by one datagram: room for more members is made for many at once */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct net *start(void) {
    struct net *net = net_new_running(3, 1);
    for (int i = 0; i < 20; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "f/%d", i);
        net_row(net, 1, filter, true);
    }
    net_run(net, 500);
    return net;
}

static const struct gossip_address stranger = {.family = 4, .ip = {192, 0, 2, 9}, .port = 9};

/* What the broker says to the stranger. */
static uint64_t bytes_to_stranger(struct net *net) {
    struct gossip_datagram datagram;
    uint64_t bytes = 0;
    while (gossip_next_datagram(net->nodes[0].gossip, &datagram))
        if (memcmp(datagram.to.ip, stranger.ip, sizeof stranger.ip) == 0) bytes += datagram.size;
    net_drain(net, 0);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    /* The first byte says who speaks; a header with its id is put before the rest unless the byte is 0xff. Bit 4 says
     * that it comes from an address of nobody's. */
    static uint64_t sent, received;
    static struct net *net;
    static struct seal seal;
    static struct chance chance = {4};
    static unsigned runs;
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    if (runs++ % 2000 == 0) { /* fresh now and then, so that a find can be repeated */
        if (net) net_free(net);
        net = start();
        sent = received = 0;
        struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
        bool good = seal_init(&seal, &options, &chance);
        assert(good);
    }
    if (size < 1) return 0;
    uint8_t plain[SEAL_PLAIN_MAX], sealed[GOSSIP_DATAGRAM_MAX];
    struct wire_out out;
    wire_out_init(&out, plain, sizeof plain);
    if (data[0] != 0xff) {
        struct packet_header header = {.id = net_id(net, data[0] % 4), .epoch = 1, .incarnation = 1 + data[0] / 64};
        header_put(&out, &header);
    }
    if (size - 1 > sizeof plain - out.size) return 0;
    memcpy(plain + out.size, data + 1, size - 1);
    size_t sealed_size = seal_close(&seal, &crypto, plain, out.size + size - 1, sealed);
    bool strange = (data[0] & 0x10) != 0;
    size_t before = __sanitizer_get_current_allocated_bytes();
    gossip_receive(net->nodes[0].gossip, net->now_ms, strange ? &stranger : &net->nodes[data[0] % 4].address, sealed,
                   sealed_size);
    assert(__sanitizer_get_current_allocated_bytes() <= before + KEPT_MAX);
    sent += strange ? sealed_size : 0;
    received += bytes_to_stranger(net);
    net->now_ms += 7;
    gossip_tick(net->nodes[0].gossip, net->now_ms);
    received += bytes_to_stranger(net);
    assert(received <= 3 * sent);
    while (net->packets) {
        struct net_packet *packet = net->packets;
        net->packets = packet->next;
        free(packet);
    }
    return 0;
}
