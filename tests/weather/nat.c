#include "tests/weather/nat.h"

#include <string.h>

#define TCP 6u
#define UDP 17u
#define FROM 12u /* of the addresses in IPv4's header */
#define TO 16u

void nat_set(struct nat *nat, const struct ip_address *inside, const struct ip_address *outside, uint16_t shift) {
    memset(nat, 0, sizeof *nat);
    nat->on = true;
    memcpy(nat->inside, inside->bytes, 4);
    memcpy(nat->outside, outside->bytes, 4);
    nat->shift = shift;
}

bool nat_is_outside(const struct nat *nat, const struct ip_address *address) {
    return nat->on && address->family == 4 && memcmp(address->bytes, nat->outside, 4) == 0;
}

static uint16_t get16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* One 16-bit word becomes another, and the checksum that covers it follows (RFC 1624, equation 3). */
static void put16(uint8_t *at, uint16_t value, uint8_t *checksum) {
    uint32_t sum = (uint32_t)(uint16_t)~get16(checksum) + (uint16_t)~get16(at) + value;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    checksum[0] = (uint8_t)((uint16_t)~sum >> 8);
    checksum[1] = (uint8_t)~sum;
}

/* Where TCP or UDP begins; false for all else, and for all pieces but the first: nothing here sends those. */
static bool read_header(const uint8_t *bytes, size_t size, struct ip_packet *packet, size_t *checksum) {
    if (!ip_read(bytes, size, packet) || packet->from.family != 4 || (get16(bytes + 6) & 0x1fff) != 0) return false;
    if (packet->protocol != TCP && packet->protocol != UDP) return false;
    *checksum = packet->payload + (packet->protocol == TCP ? 16 : 6);
    return size >= *checksum + 2;
}

static void put_end(uint8_t *bytes, size_t address, size_t port, const uint8_t *new_address, uint16_t new_port,
                    uint8_t *checksum, bool has_checksum) {
    uint8_t none[2] = {0};
    for (size_t i = 0; i < 4; i += 2) {
        uint8_t word[2] = {bytes[address + i], bytes[address + i + 1]};
        put16(bytes + address + i, get16(new_address + i), bytes + 10);
        put16(word, get16(new_address + i), has_checksum ? checksum : none);
    }
    put16(bytes + port, new_port, has_checksum ? checksum : none);
}

static bool flow_is(const struct nat_flow *flow, uint8_t protocol, uint16_t port, const uint8_t *remote,
                    uint16_t remote_port) {
    return flow->protocol == protocol && flow->port == port && flow->remote_port == remote_port &&
           memcmp(flow->remote, remote, 4) == 0;
}

static bool flow_ended(const struct nat_flow *flow, uint64_t now_us) {
    return flow->protocol == 0 || (flow->protocol == UDP && now_us - flow->last_us > NAT_UDP_US);
}

/* The flow, or where it may be put: an ended one or the oldest. */
static struct nat_flow *flow_for(struct nat *nat, uint8_t protocol, uint16_t port, const uint8_t *remote,
                                 uint16_t remote_port, uint64_t now_us, bool *found) {
    struct nat_flow *room = &nat->flows[0];
    *found = true;
    for (size_t i = 0; i < NAT_FLOWS_MAX; i++) {
        struct nat_flow *flow = &nat->flows[i];
        bool ended = flow_ended(flow, now_us);
        if (!ended && flow_is(flow, protocol, port, remote, remote_port)) return flow;
        if (!flow_ended(room, now_us) && (ended || flow->last_us < room->last_us)) room = flow;
    }
    *found = false;
    return room;
}

bool nat_out(struct nat *nat, uint8_t *bytes, size_t size, uint64_t now_us) {
    struct ip_packet packet;
    size_t checksum;
    if (!read_header(bytes, size, &packet, &checksum) || memcmp(bytes + FROM, nat->inside, 4) != 0) return false;
    uint16_t port = get16(bytes + packet.payload), remote_port = get16(bytes + packet.payload + 2);
    bool found;
    struct nat_flow *flow = flow_for(nat, packet.protocol, port, bytes + TO, remote_port, now_us, &found);
    *flow = (struct nat_flow){.protocol = packet.protocol, .port = port, .remote_port = remote_port, .last_us = now_us};
    memcpy(flow->remote, bytes + TO, 4);
    bool has_checksum = packet.protocol == TCP || get16(bytes + checksum) != 0;
    put_end(bytes, FROM, packet.payload, nat->outside, (uint16_t)(port + nat->shift), bytes + checksum, has_checksum);
    return true;
}

bool nat_in(struct nat *nat, uint8_t *bytes, size_t size, uint64_t now_us) {
    struct ip_packet packet;
    size_t checksum;
    if (!read_header(bytes, size, &packet, &checksum) || !nat_is_outside(nat, &packet.to)) return false;
    uint16_t remote_port = get16(bytes + packet.payload);
    uint16_t port = (uint16_t)(get16(bytes + packet.payload + 2) - nat->shift);
    bool found;
    flow_for(nat, packet.protocol, port, bytes + FROM, remote_port, now_us, &found);
    if (!found) return false;
    bool has_checksum = packet.protocol == TCP || get16(bytes + checksum) != 0;
    put_end(bytes, TO, packet.payload + 2, nat->inside, port, bytes + checksum, has_checksum);
    return true;
}
