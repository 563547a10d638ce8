#include "tests/weather/packet.h"

#include <string.h>

#define V4_HEADER 20u
#define V6_HEADER 40u
#define ICMP 1u

bool ip_read(const uint8_t *bytes, size_t size, struct ip_packet *packet) {
    memset(packet, 0, sizeof *packet);
    if (size >= V4_HEADER && bytes[0] >> 4 == 4) {
        packet->from.family = packet->to.family = 4;
        packet->protocol = bytes[9];
        packet->payload = (size_t)(bytes[0] & 15) * 4;
        memcpy(packet->from.bytes, bytes + 12, 4);
        memcpy(packet->to.bytes, bytes + 16, 4);
        return packet->payload >= V4_HEADER && packet->payload <= size;
    }
    if (size >= V6_HEADER && bytes[0] >> 4 == 6) {
        packet->from.family = packet->to.family = 6;
        packet->protocol = bytes[6];
        packet->payload = V6_HEADER;
        memcpy(packet->from.bytes, bytes + 8, 16);
        memcpy(packet->to.bytes, bytes + 24, 16);
        return true;
    }
    return false;
}

bool ip_equal(const struct ip_address *a, const struct ip_address *b) {
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

bool ip_is_for_many(const struct ip_address *address) {
    if (address->family == 6) return address->bytes[0] == 0xff;
    return address->bytes[0] >= 224 && (address->bytes[0] < 240 || memcmp(address->bytes, "\xff\xff\xff\xff", 4) == 0);
}

static void put_checksum(uint8_t *bytes, size_t size, uint8_t *where) {
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < size; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    where[0] = (uint8_t)(~sum >> 8);
    where[1] = (uint8_t)~sum;
}

size_t ip_too_big(const uint8_t *bytes, size_t size, uint32_t mtu, uint8_t answer[IP_TOO_BIG_MAX]) {
    struct ip_packet packet;
    if (!ip_read(bytes, size, &packet) || packet.from.family != 4 || !(bytes[6] & 0x40) || size < packet.payload + 8 ||
        packet.payload > V4_HEADER)
        return 0;
    memset(answer, 0, IP_TOO_BIG_MAX);
    answer[0] = 0x45;
    answer[3] = IP_TOO_BIG_MAX;
    answer[8] = 64;
    answer[9] = ICMP;
    memcpy(answer + 12, bytes + 16, 4);
    memcpy(answer + 16, bytes + 12, 4);
    put_checksum(answer, V4_HEADER, answer + 10);
    uint8_t *icmp = answer + V4_HEADER;
    icmp[0] = 3; /* unreachable: */
    icmp[1] = 4; /* it would have to be cut */
    icmp[6] = (uint8_t)(mtu >> 8);
    icmp[7] = (uint8_t)mtu;
    memcpy(icmp + 8, bytes, V4_HEADER + 8);
    put_checksum(icmp, IP_TOO_BIG_MAX - V4_HEADER, icmp + 2);
    return IP_TOO_BIG_MAX;
}
