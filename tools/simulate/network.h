/* The virtual network: datagrams that get lost, late, doubled, damaged and out of order.
 *
 * Sites have brokers; each direction between two sites has its weather. A broker has an IPv4 address, or sits behind a
 * router that gives it one (NAT). Nothing is delivered from within a call: arrivals come out of the agenda, and
 * network_arrive() tells to whom.
 */
#ifndef SIMULATE_NETWORK_H
#define SIMULATE_NETWORK_H

#include "tools/simulate/agenda.h"
#include "tools/simulate/dice.h"
#include "tools/simulate/plan.h"

struct network;

#define NETWORK_NOBODY UINT32_MAX
#define NETWORK_CUTS_MAX 16u

struct network_counters {
    uint64_t datagrams, bytes, lost, cut, dropped_by_queue, dropped_by_size, dropped_by_nat, doubled, damaged;
};

/* host_max: brokers and strangers. The arrivals it puts on the agenda have this kind; which is the packet. */
struct network *network_new(const struct plan *plan, struct agenda *agenda, uint64_t seed, uint32_t host_max,
                            uint32_t arrival_kind);
void network_free(struct network *network);

void network_place(struct network *network, uint32_t host, uint32_t site, enum plan_nat nat);
/* Gives the host an address that nobody had before. */
void network_move(struct network *network, uint32_t host);
/* Where the host believes to be; behind a router that is not where others see it. */
struct gossip_address network_address(const struct network *network, uint32_t host);
/* Who has this address now, NETWORK_NOBODY for none. */
uint32_t network_host_at(const struct network *network, const struct gossip_address *address);
/* An address that belongs to nobody: for forged sources. */
struct gossip_address network_victim(uint32_t number);
bool network_is_victim(const struct gossip_address *address, uint32_t *number);

void network_send(struct network *network, uint32_t from, const struct gossip_datagram *datagram);
/* The same with a forged source. */
void network_forge(struct network *network, uint32_t from, const struct gossip_address *source,
                   const struct gossip_datagram *datagram);

/* So many bytes from one host to another over TCP, on a connection that is open or not: how long they take, segments
 * that are lost included. False: the path is cut, either way. */
bool network_stream(struct network *network, uint32_t from, uint32_t to, size_t size, bool opens, uint64_t *took_us);

struct network_packet {
    uint32_t to;
    uint32_t flags; /* the world's */
    struct gossip_address from;
    size_t size;
    uint8_t *bytes;
};
/* The packet that an arrival is about: a view, until it is let go. */
void network_look(const struct network *network, uint32_t packet, struct network_packet *out);
/* Asks memory for it: it will be looked at soon. */
void network_expect(const struct network *network, uint32_t packet);
void network_flag(struct network *network, uint32_t packet, uint32_t flags);
void network_let_go(struct network *network, uint32_t packet);

/* A cut: what goes from a host of one side to a host of another is lost. sides[host]; with one_way only what comes from
 * side 0. ring_size over 0: instead, hosts below it reach their neighbours only. Returns its number, or
 * NETWORK_CUTS_MAX when there are too many. */
uint32_t network_cut(struct network *network, const uint8_t *sides, bool one_way, uint32_t ring_size);
void network_cut_active(struct network *network, uint32_t cut, bool active); /* flapping */
void network_heal(struct network *network, uint32_t cut);
bool network_reaches(const struct network *network, uint32_t from, uint32_t to); /* no active cut between */

/* Behind a router: nobody can open a stream to it. */
bool network_is_hidden(const struct network *network, uint32_t host);

/* Weather on top of what the plan says. */
void network_set_loss(struct network *network, uint32_t from_site, uint32_t to_site, double loss);
void network_set_mtu(struct network *network, uint32_t from_site, uint32_t to_site, uint32_t mtu);

/* Good weather everywhere from now on. */
void network_calm(struct network *network);

void network_read_counters(const struct network *network, struct network_counters *out);
uint64_t network_bytes_sent(const struct network *network, uint32_t host);
uint64_t network_bytes_received(const struct network *network, uint32_t host);

#endif
