#include "tests/sim/network_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct network_weather calm = {.delay_us = 300, .jitter_us = 200, .window_bytes = 256 * 1024};

struct network *network_new(struct heap *heap, uint64_t seed) {
    struct network *network = calloc(1, sizeof *network);
    assert(network != NULL);
    network->heap = heap;
    network->weather = calm;
    dice_init(&network->datagram_dice, seed, "datagrams");
    dice_init(&network->stream_dice, seed, "streams");
    return network;
}

void network_free(struct network *network) {
    if (network == NULL) return;
    streams_free(network);
    free(network->hosts);
    free(network->owners);
    free(network->paths);
    free(network);
}

void network_set_weather(struct network *network, const struct network_weather *weather) {
    network->weather = *weather;
    if (network->weather.window_bytes == 0) network->weather.window_bytes = calm.window_bytes;
}

static void widen(struct network *network) {
    size_t before = network->host_room, room = before == 0 ? 16 : before * 2;
    struct host *hosts = realloc(network->hosts, room * sizeof *hosts);
    struct path *paths = calloc(room * room, sizeof *paths);
    assert(hosts != NULL && paths != NULL);
    for (size_t from = 0; from < before; from++)
        memcpy(&paths[from * room], &network->paths[from * before], before * sizeof *paths);
    free(network->paths);
    network->hosts = hosts;
    network->paths = paths;
    network->host_room = room;
}

size_t network_add_host(struct network *network, const struct network_ports *ports) {
    if (network->host_count == network->host_room) widen(network);
    size_t host = network->host_count++;
    network->hosts[host] = (struct host){.ports = *ports, .power = NETWORK_UP};
    network_move_host(network, host);
    return host;
}

void network_move_host(struct network *network, size_t host) {
    if (network->owner_count == network->owner_room) {
        network->owner_room = network->owner_room == 0 ? 16 : network->owner_room * 2;
        network->owners = realloc(network->owners, network->owner_room * sizeof *network->owners);
        assert(network->owners != NULL);
    }
    if (network->hosts[host].address != 0) network->owners[network->hosts[host].address - 1] = 0;
    network->owners[network->owner_count++] = host + 1;
    network->hosts[host].address = (uint32_t)network->owner_count;
}

struct gossip_address network_address(const struct network *network, size_t host, uint16_t port) {
    uint32_t address = network->hosts[host].address;
    return (struct gossip_address){
        .family = 4, .ip = {10, (uint8_t)(address >> 16), (uint8_t)(address >> 8), (uint8_t)address}, .port = port};
}

size_t network_host_at(const struct network *network, const struct gossip_address *address) {
    if (address->family != 4 || address->ip[0] != 10) return SIZE_MAX;
    size_t number = (size_t)address->ip[1] << 16 | (size_t)address->ip[2] << 8 | address->ip[3];
    if (number == 0 || number > network->owner_count || network->owners[number - 1] == 0) return SIZE_MAX;
    return network->owners[number - 1] - 1;
}

void network_set_power(struct network *network, size_t host, enum network_power power) {
    network->hosts[host].power = power;
    network->hosts[host].paused_until_us = 0;
    if (power != NETWORK_UP) streams_host_down(network, host, power);
}

void network_pause(struct network *network, size_t host, uint64_t for_us) {
    network->hosts[host].paused_until_us = heap_now_us(network->heap) + for_us;
}

uint64_t network_paused_us(const struct network *network, size_t host) {
    uint64_t now = heap_now_us(network->heap), until = network->hosts[host].paused_until_us;
    return until > now ? until - now : 0;
}

void network_cut(struct network *network, size_t from, size_t to, bool cut) {
    network->paths[from * network->host_room + to].cut = cut;
}

void network_block(struct network *network, size_t from, size_t to, bool blocked) {
    network->paths[from * network->host_room + to].blocked = blocked;
}

void network_heal(struct network *network) {
    for (size_t i = 0; i < network->host_room * network->host_room; i++)
        network->paths[i].cut = false;
}

bool network_is_cut(const struct network *network, size_t from, size_t to) {
    return network->paths[from * network->host_room + to].cut;
}

void network_lengthen(struct network *network, size_t a, size_t b, uint32_t extra_us) {
    network->paths[a * network->host_room + b].extra_us = network->paths[b * network->host_room + a].extra_us =
        extra_us;
}

uint64_t network_delay_us(const struct network *network, struct dice *dice, size_t from, size_t to) {
    return (uint64_t)network->paths[from * network->host_room + to].extra_us + network->weather.delay_us +
           dice_below(dice, (uint64_t)network->weather.jitter_us + 1);
}

struct datagram {
    struct event event;
    struct network *network;
    size_t from;
    struct gossip_address from_address, to;
    size_t size;
    uint8_t bytes[];
};

static void arrive(struct event *event) {
    struct datagram *datagram = (struct datagram *)event;
    struct network *network = datagram->network;
    size_t host = network_host_at(network, &datagram->to);
    uint64_t paused_us = host == SIZE_MAX ? 0 : network_paused_us(network, host);
    if (paused_us != 0) {
        heap_push(network->heap, event, paused_us);
        return;
    }
    if (host != SIZE_MAX && network->hosts[host].power == NETWORK_UP &&
        !network_is_cut(network, datagram->from, host) &&
        !network->paths[datagram->from * network->host_room + host].blocked) {
        const struct network_ports *ports = &network->hosts[host].ports;
        ports->on_datagram(ports->context, datagram->to.port, &datagram->from_address, datagram->bytes, datagram->size);
    } else {
        network->counters.lost++;
    }
    free(datagram);
}

static void launch(struct network *network, size_t from, uint16_t from_port, const struct gossip_address *to,
                   const uint8_t *bytes, size_t size) {
    struct dice *dice = &network->datagram_dice;
    struct datagram *datagram = calloc(1, sizeof *datagram + size);
    assert(datagram != NULL);
    datagram->event.fire = arrive;
    datagram->network = network;
    datagram->from = from;
    datagram->from_address = network_address(network, from, from_port);
    datagram->to = *to;
    datagram->size = size;
    memcpy(datagram->bytes, bytes, size);
    size_t host = network_host_at(network, to);
    uint64_t delay = network_delay_us(network, dice, from, host == SIZE_MAX ? from : host);
    if (dice_ppm(dice, network->weather.late_ppm)) delay += network->weather.late_us;
    heap_push(network->heap, &datagram->event, delay);
}

void network_datagram(struct network *network, size_t from, uint16_t from_port, const struct gossip_address *to,
                      const uint8_t *bytes, size_t size) {
    network->counters.datagrams++;
    network->counters.datagram_bytes += size;
    if (dice_ppm(&network->datagram_dice, network->weather.loss_ppm)) {
        network->counters.lost++;
        return;
    }
    launch(network, from, from_port, to, bytes, size);
    if (dice_ppm(&network->datagram_dice, network->weather.duplicate_ppm)) {
        network->counters.doubled++;
        launch(network, from, from_port, to, bytes, size);
    }
}

void network_read_counters(const struct network *network, struct network_counters *out) {
    *out = network->counters;
}
