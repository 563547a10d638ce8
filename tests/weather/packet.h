/* The little of IP that a router must know. */
#ifndef WEATHER_PACKET_H
#define WEATHER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ip_address {
    uint8_t family; /* 4, 6, or 0 for none */
    uint8_t bytes[16];
};

struct ip_packet {
    struct ip_address from, to;
    uint8_t protocol;
    size_t payload; /* where what is above IP begins */
};

/* False if it is no IP packet. Extension headers of IPv6 are taken for the protocol. */
bool ip_read(const uint8_t *bytes, size_t size, struct ip_packet *packet);
bool ip_equal(const struct ip_address *a, const struct ip_address *b);
/* To several at once: multicast, or IPv4's broadcast to all. */
bool ip_is_for_many(const struct ip_address *address);
/* ICMP "fragmentation needed" (RFC 1191) to who sent an IPv4 packet with "don't fragment". Returns its size, 0 if
 * there is nothing to be said. */
#define IP_TOO_BIG_MAX 56u
size_t ip_too_big(const uint8_t *bytes, size_t size, uint32_t mtu, uint8_t answer[IP_TOO_BIG_MAX]);

#endif
