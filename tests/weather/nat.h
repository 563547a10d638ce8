/* A home router before one broker: it goes out under another address and with other ports, and who it has not spoken to
 * does not come in. As Linux does it: a flow is a pair of ends, UDP's is forgotten after NAT_UDP_US without a packet
 * from inside. TCP and UDP over IPv4; nothing else passes. */
#ifndef WEATHER_NAT_H
#define WEATHER_NAT_H

#include "tests/weather/packet.h"

#define NAT_FLOWS_MAX 512u
#define NAT_UDP_US (30u * 1000000u)

struct nat_flow {
    uint8_t protocol; /* 0: none */
    uint8_t remote[4];
    uint16_t port, remote_port; /* port: inside */
    uint64_t last_us;
};

struct nat {
    bool on;
    uint8_t inside[4], outside[4];
    uint16_t shift; /* from a port inside to that outside */
    struct nat_flow flows[NAT_FLOWS_MAX];
};

/* What is inside goes out as `outside` with ports higher by `shift`; all flows there were are forgotten, as when the
 * router was restarted. */
void nat_set(struct nat *nat, const struct ip_address *inside, const struct ip_address *outside, uint16_t shift);
/* True if packets to this address are for who is behind the router. */
bool nat_is_outside(const struct nat *nat, const struct ip_address *address);
/* Change the packet in place; false if it does not pass. */
bool nat_out(struct nat *nat, uint8_t *bytes, size_t size, uint64_t now_us);
bool nat_in(struct nat *nat, uint8_t *bytes, size_t size, uint64_t now_us);

#endif
