/* What network.c (hosts, paths, datagrams) and streams.c share. Not a door. */
#ifndef SIM_NETWORK_INSIDE_H
#define SIM_NETWORK_INSIDE_H

#include "tests/sim/network.h"

struct stream;

struct host {
    struct network_ports ports;
    enum network_power power;
    uint32_t address; /* 10.x.y.z as a number */
    uint64_t paused_until_us;
};

struct path {
    bool cut, blocked; /* for everything, for datagrams */
    uint32_t extra_us;
};

struct network {
    struct heap *heap;
    struct dice datagram_dice, stream_dice;
    struct network_weather weather;
    struct host *hosts;
    size_t host_count, host_room;
    size_t *owners; /* host + 1 by the low 24 bits of the address, 0 for nobody; addresses are given in order */
    size_t owner_count, owner_room;
    struct path *paths;      /* host_room x host_room: [from * host_room + to] */
    struct stream **streams; /* by number - 1; NULL once over */
    size_t stream_count, stream_room;
    struct network_counters counters;
};

/* The host at this address; SIZE_MAX for nobody. */
size_t network_host_at(const struct network *network, const struct gossip_address *address);
bool network_is_cut(const struct network *network, size_t from, size_t to);
uint64_t network_delay_us(const struct network *network, struct dice *dice, size_t from, size_t to);

void streams_free(struct network *network);
void streams_host_down(struct network *network, size_t host, enum network_power power);

#endif
