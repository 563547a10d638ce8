/* The router before one broker: what goes out comes back, what nobody asked for does not, and checksums stay right. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "tests/weather/nat.h"

#define UDP 17u
#define TCP 6u
#define HEADER 20u
#define SECOND 1000000u

static const struct ip_address INSIDE = {4, {10, 0, 0, 1}}, OUTSIDE = {4, {99, 0, 0, 7}}, REMOTE = {4, {10, 0, 0, 2}};

/* Of all 16-bit words, with the pseudo header of UDP and TCP before them if protocol is not 0. 0 if it is right. */
static uint16_t checksum(const uint8_t *ip, const uint8_t *bytes, size_t size, uint8_t protocol) {
    uint32_t sum = 0;
    if (protocol != 0) {
        for (size_t i = 12; i < 20; i += 2)
            sum += (uint32_t)ip[i] << 8 | ip[i + 1];
        sum += protocol + (uint32_t)size;
    }
    for (size_t i = 0; i < size; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

struct packet {
    uint8_t bytes[HEADER + 40];
};

static struct packet packet_of(uint8_t protocol, const struct ip_address *from, uint16_t from_port,
                               const struct ip_address *to, uint16_t to_port) {
    struct packet packet = {{0x45, 0, 0, HEADER + 40, 0, 0, 0x40, 0, 64, protocol}};
    uint8_t *ip = packet.bytes, *above = ip + HEADER;
    memcpy(ip + 12, from->bytes, 4);
    memcpy(ip + 16, to->bytes, 4);
    above[0] = (uint8_t)(from_port >> 8), above[1] = (uint8_t)from_port;
    above[2] = (uint8_t)(to_port >> 8), above[3] = (uint8_t)to_port;
    memset(above + 20, 0xa7, 20);
    uint16_t sum = checksum(ip, ip, HEADER, 0);
    ip[10] = (uint8_t)(sum >> 8), ip[11] = (uint8_t)sum;
    size_t at = protocol == TCP ? 16 : 6;
    sum = checksum(ip, above, 40, protocol);
    above[at] = (uint8_t)(sum >> 8), above[at + 1] = (uint8_t)sum;
    return packet;
}

static void assert_packet(const struct packet *packet, uint8_t protocol, const struct ip_address *from,
                          uint16_t from_port, const struct ip_address *to, uint16_t to_port) {
    struct packet wanted = packet_of(protocol, from, from_port, to, to_port);
    assert_memory_equal(packet->bytes, wanted.bytes, sizeof wanted.bytes);
    assert_int_equal(checksum(packet->bytes, packet->bytes, HEADER, 0), 0);
    assert_int_equal(checksum(packet->bytes, packet->bytes + HEADER, 40, protocol), 0);
}

static bool goes_out(struct nat *nat, uint8_t protocol, uint64_t now) {
    struct packet packet = packet_of(protocol, &INSIDE, 7100, &REMOTE, 7200);
    if (!nat_out(nat, packet.bytes, sizeof packet.bytes, now)) return false;
    assert_packet(&packet, protocol, &OUTSIDE, (uint16_t)(7100 + nat->shift), &REMOTE, 7200);
    return true;
}

/* From this port of the remote one to this one of the router's. */
static bool comes_in(struct nat *nat, uint8_t protocol, uint16_t from_port, uint16_t to_port, uint64_t now) {
    struct packet packet = packet_of(protocol, &REMOTE, from_port, &OUTSIDE, to_port);
    if (!nat_in(nat, packet.bytes, sizeof packet.bytes, now)) return false;
    assert_packet(&packet, protocol, &REMOTE, from_port, &INSIDE, 7100);
    return true;
}

static void answers_come_in_and_nothing_else(void **state) {
    (void)state;
    static const uint8_t protocols[] = {UDP, TCP};
    for (size_t i = 0; i < 2; i++) {
        static struct nat nat;
        nat_set(&nat, &INSIDE, &OUTSIDE, 60000);
        assert_false(comes_in(&nat, protocols[i], 7200, (uint16_t)(7100 + 60000), 0));
        assert_true(goes_out(&nat, protocols[i], 1));
        assert_true(comes_in(&nat, protocols[i], 7200, (uint16_t)(7100 + 60000), 2));
        assert_false(comes_in(&nat, protocols[i], 7201, (uint16_t)(7100 + 60000), 3));
        assert_false(comes_in(&nat, protocols[i], 7200, 7100, 4));
        assert_false(comes_in(&nat, protocols[1 - i], 7200, (uint16_t)(7100 + 60000), 5));
    }
}

static void a_quiet_flow_of_udp_ends_and_one_of_tcp_does_not(void **state) {
    (void)state;
    static struct nat nat;
    nat_set(&nat, &INSIDE, &OUTSIDE, 0);
    assert_true(goes_out(&nat, UDP, 0));
    assert_true(goes_out(&nat, TCP, 0));
    assert_true(comes_in(&nat, UDP, 7200, 7100, 30 * SECOND));
    assert_false(comes_in(&nat, UDP, 7200, 7100, 31 * SECOND)); /* what came in did not keep it */
    assert_true(comes_in(&nat, TCP, 7200, 7100, 3600ull * SECOND));
}

static void a_restart_forgets_and_gives_other_ports(void **state) {
    (void)state;
    static struct nat nat;
    nat_set(&nat, &INSIDE, &OUTSIDE, 100);
    assert_true(goes_out(&nat, UDP, 0));
    nat_set(&nat, &INSIDE, &OUTSIDE, 200);
    assert_false(comes_in(&nat, UDP, 7200, 7200, 1));
    assert_false(comes_in(&nat, UDP, 7200, 7300, 1));
    assert_true(goes_out(&nat, UDP, 2));
    assert_true(comes_in(&nat, UDP, 7200, 7300, 3));
}

static void as_many_flows_as_there_is_room_for_and_the_oldest_goes(void **state) {
    (void)state;
    static struct nat nat;
    nat_set(&nat, &INSIDE, &OUTSIDE, 0);
    assert_true(goes_out(&nat, TCP, 0));
    for (uint16_t port = 1; port <= NAT_FLOWS_MAX; port++) {
        struct packet packet = packet_of(TCP, &INSIDE, port, &REMOTE, 7200);
        assert_true(nat_out(&nat, packet.bytes, sizeof packet.bytes, port));
    }
    assert_false(comes_in(&nat, TCP, 7200, 7100, 1000));
}

static void what_is_neither_tcp_nor_udp_or_too_short_does_not_pass(void **state) {
    (void)state;
    static struct nat nat;
    nat_set(&nat, &INSIDE, &OUTSIDE, 0);
    struct packet packet = packet_of(1, &INSIDE, 7100, &REMOTE, 7200);
    assert_false(nat_out(&nat, packet.bytes, sizeof packet.bytes, 0));
    packet = packet_of(UDP, &INSIDE, 7100, &REMOTE, 7200);
    for (size_t size = 0; size < HEADER + 8; size++)
        assert_false(nat_out(&nat, packet.bytes, size, 0));
    packet.bytes[7] = 1; /* a later piece has no ports */
    assert_false(nat_out(&nat, packet.bytes, sizeof packet.bytes, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_and_nothing_else),
        cmocka_unit_test(a_quiet_flow_of_udp_ends_and_one_of_tcp_does_not),
        cmocka_unit_test(a_restart_forgets_and_gives_other_ports),
        cmocka_unit_test(as_many_flows_as_there_is_room_for_and_the_oldest_goes),
        cmocka_unit_test(what_is_neither_tcp_nor_udp_or_too_short_does_not_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
