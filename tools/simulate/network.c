#include "tools/simulate/network.h"

#include "tools/simulate/delay.h"
#include "tools/simulate/memory.h"
#include "tools/simulate/nat.h"
#include "tools/simulate/packets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IP_OVERHEAD 28u /* bytes of IPv4 and UDP before the payload */
#define QUEUE_US 200000u
#define BURST_LOSS 0.9

struct path {
    struct weather weather;
    const struct delay *delay;
    uint64_t free_us;  /* when the wire has sent what waits for it */
    uint64_t flips_us; /* the end of this spell, good or bad */
    bool bad;
    double extra_loss;
    uint32_t extra_mtu;
};

struct host {
    uint32_t site, address; /* address: its number, 10.x.y.z */
    uint64_t sent, received;
    struct nat *nat; /* NULL: none */
};

struct cut {
    bool used, active, one_way;
    uint32_t ring_size; /* over 0: hosts below it reach their neighbours only */
    uint8_t *sides;
};

struct network {
    struct agenda *agenda;
    struct dice dice;
    uint32_t arrival_kind, host_max, site_count;
    struct host *hosts;
    struct path *paths; /* from * site_count + to */
    struct delay **delays;
    size_t delay_count, delay_room;
    uint32_t *owners; /* host + 1 by the number of the address, 0 for nobody; numbers are given in order, from 1 */
    size_t owner_count, owner_room;
    struct packets packets;
    struct cut cuts[NETWORK_CUTS_MAX];
    uint32_t cut_count; /* those below may be used */
    struct network_counters counters;
};

static const struct delay *delay_for(struct network *network, const struct weather *weather) {
    for (size_t i = 0; i < network->delay_count; i++)
        if (network->delays[i]->median_us == weather->delay_us && network->delays[i]->jitter_us == weather->jitter_us)
            return network->delays[i];
    network->delays =
        memory_room(network->delays, &network->delay_room, network->delay_count + 1, sizeof *network->delays);
    struct delay *delay = network->delays[network->delay_count++] = memory_new(1, sizeof *delay);
    delay_init(delay, weather->delay_us, weather->jitter_us);
    return delay;
}

static void set_path(struct network *network, uint32_t from, uint32_t to, const struct weather *weather) {
    struct path *path = &network->paths[from * network->site_count + to];
    path->weather = *weather;
    if (path->weather.queue_us == 0) path->weather.queue_us = QUEUE_US;
    if (path->weather.burst_loss <= 0) path->weather.burst_loss = BURST_LOSS;
    path->delay = delay_for(network, weather);
}

struct network *network_new(const struct plan *plan, struct agenda *agenda, uint64_t seed, uint32_t host_max,
                            uint32_t arrival_kind) {
    struct network *network = memory_new(1, sizeof *network);
    network->agenda = agenda;
    network->arrival_kind = arrival_kind;
    network->host_max = host_max;
    network->site_count = plan->site_count;
    network->hosts = memory_new(host_max, sizeof *network->hosts);
    network->paths = memory_new((size_t)plan->site_count * plan->site_count, sizeof *network->paths);
    dice_init(&network->dice, seed, "network");
    packets_init(&network->packets);
    for (uint32_t from = 0; from < plan->site_count; from++)
        for (uint32_t to = 0; to < plan->site_count; to++)
            set_path(network, from, to, &plan->weather);
    for (size_t i = 0; i < plan->path_count; i++)
        set_path(network, plan->paths[i].from, plan->paths[i].to, &plan->paths[i].weather);
    return network;
}

void network_free(struct network *network) {
    if (!network) return;
    for (uint32_t i = 0; i < network->host_max; i++)
        nat_free(network->hosts[i].nat);
    for (size_t i = 0; i < network->delay_count; i++)
        free(network->delays[i]);
    for (uint32_t i = 0; i < NETWORK_CUTS_MAX; i++)
        free(network->cuts[i].sides);
    packets_deinit(&network->packets);
    free(network->delays);
    free(network->owners);
    free(network->paths);
    free(network->hosts);
    free(network);
}

/* ---- addresses ---- */

static struct gossip_address address_of(uint32_t number, uint16_t port) {
    return (struct gossip_address){
        .family = 4, .ip = {10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number}, .port = port};
}

void network_move(struct network *network, uint32_t host) {
    if (network->owner_count == 0) network->owner_count = 1;
    network->owners =
        memory_room(network->owners, &network->owner_room, network->owner_count + 1, sizeof *network->owners);
    if (network->hosts[host].address != 0) network->owners[network->hosts[host].address] = 0;
    network->hosts[host].address = (uint32_t)network->owner_count;
    network->owners[network->owner_count++] = host + 1;
    if (network->hosts[host].nat) nat_forget(network->hosts[host].nat);
}

void network_place(struct network *network, uint32_t host, uint32_t site, enum plan_nat nat) {
    network->hosts[host].site = site;
    if (nat != NAT_NONE && !network->hosts[host].nat)
        network->hosts[host].nat = nat_new(nat == NAT_SYMMETRIC, network->host_max);
    network_move(network, host);
}

struct gossip_address network_address(const struct network *network, uint32_t host) {
    return address_of(network->hosts[host].address, NAT_INSIDE_PORT);
}

uint32_t network_host_at(const struct network *network, const struct gossip_address *address) {
    if (address->family != 4 || address->ip[0] != 10) return NETWORK_NOBODY;
    uint32_t number = (uint32_t)address->ip[1] << 16 | (uint32_t)address->ip[2] << 8 | address->ip[3];
    return number < network->owner_count && network->owners[number] != 0 ? network->owners[number] - 1 : NETWORK_NOBODY;
}

struct gossip_address network_victim(uint32_t number) {
    return (struct gossip_address){.family = 4, .ip = {203, 0, 113, (uint8_t)number}, .port = 7100};
}

bool network_is_victim(const struct gossip_address *address, uint32_t *number) {
    *number = address->ip[3];
    return address->ip[0] == 203;
}

bool network_is_hidden(const struct network *network, uint32_t host) {
    return network->hosts[host].nat != NULL;
}

/* ---- cuts ---- */

uint32_t network_cut(struct network *network, const uint8_t *sides, bool one_way, uint32_t ring_size) {
    uint32_t cut = 0;
    while (cut < NETWORK_CUTS_MAX && network->cuts[cut].used)
        cut++;
    if (cut == NETWORK_CUTS_MAX) return cut;
    uint8_t *copy = memory_new(network->host_max, 1);
    memcpy(copy, sides, network->host_max);
    network->cuts[cut] =
        (struct cut){.used = true, .active = true, .one_way = one_way, .ring_size = ring_size, .sides = copy};
    if (cut >= network->cut_count) network->cut_count = cut + 1;
    return cut;
}

void network_cut_active(struct network *network, uint32_t cut, bool active) {
    network->cuts[cut].active = active;
}

void network_heal(struct network *network, uint32_t cut) {
    free(network->cuts[cut].sides);
    network->cuts[cut] = (struct cut){0};
    while (network->cut_count > 0 && !network->cuts[network->cut_count - 1].used)
        network->cut_count--;
}

static bool cuts(const struct cut *cut, uint32_t from, uint32_t to) {
    if (cut->ring_size > 0) {
        uint32_t apart = from > to ? from - to : to - from;
        return apart > 1 && apart + 1 < cut->ring_size;
    }
    return cut->sides[from] != cut->sides[to] && (!cut->one_way || cut->sides[from] == 0);
}

bool network_reaches(const struct network *network, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < network->cut_count; i++)
        if (network->cuts[i].active && cuts(&network->cuts[i], from, to)) return false;
    return true;
}

/* ---- weather ---- */

void network_set_loss(struct network *network, uint32_t from_site, uint32_t to_site, double loss) {
    network->paths[from_site * network->site_count + to_site].extra_loss = loss;
}

void network_set_mtu(struct network *network, uint32_t from_site, uint32_t to_site, uint32_t mtu) {
    network->paths[from_site * network->site_count + to_site].extra_mtu = mtu;
}

void network_calm(struct network *network) {
    static const struct weather calm = {.delay_us = 1000, .jitter_us = 300};
    for (uint32_t i = 0; i < network->site_count * network->site_count; i++) {
        network->paths[i] = (struct path){.weather = calm, .delay = delay_for(network, &calm)};
        network->paths[i].weather.queue_us = QUEUE_US;
    }
}

/* Gilbert-Elliott in time: spells of good and of bad, each exponentially long. */
static bool is_bad(struct network *network, struct path *path) {
    const struct weather *weather = &path->weather;
    if (weather->burst_share <= 0) return false;
    while (network->agenda->now_us >= path->flips_us) {
        double good_us = weather->burst_us * (1 - weather->burst_share) / weather->burst_share;
        path->bad = path->flips_us > 0 && !path->bad;
        uint64_t from = path->flips_us > 0 ? path->flips_us : network->agenda->now_us;
        path->flips_us = from + dice_wait(&network->dice, path->bad ? weather->burst_us : (uint64_t)good_us);
    }
    return path->bad;
}

static bool is_lost(struct network *network, struct path *path) {
    double loss = is_bad(network, path) ? path->weather.burst_loss : path->weather.loss;
    return dice_chance(&network->dice, loss) || dice_chance(&network->dice, path->extra_loss);
}

/* How long it waits for the wire; UINT64_MAX when too much waits already. */
static uint64_t queue_us(const struct network *network, struct path *path, size_t size) {
    uint64_t now = network->agenda->now_us;
    if (path->weather.bytes_per_s == 0) return 0;
    if (path->free_us < now) path->free_us = now;
    if (path->free_us - now > path->weather.queue_us) return UINT64_MAX;
    path->free_us += (uint64_t)(size + IP_OVERHEAD) * 1000000 / path->weather.bytes_per_s;
    return path->free_us - now;
}

/* ---- datagrams ---- */

static void deliver(struct network *network, struct path *path, uint32_t to, const struct gossip_address *source,
                    const struct gossip_datagram *datagram, uint64_t wait_us) {
    uint32_t number = packets_take(&network->packets, datagram->size);
    struct packet_slot *slot = packets_at(&network->packets, number);
    slot->from = *source;
    slot->to = to;
    slot->flags = 0;
    slot->size = (uint16_t)datagram->size;
    memcpy(slot->bytes, datagram->bytes, datagram->size);
    if (path->weather.corrupt > 0 && datagram->size > 0 && dice_chance(&network->dice, path->weather.corrupt)) {
        slot->bytes[dice_below(&network->dice, datagram->size)] ^= (uint8_t)(1u << dice_below(&network->dice, 8));
        network->counters.damaged++;
    }
    uint64_t late = path->weather.reorder > 0 && dice_chance(&network->dice, path->weather.reorder)
                        ? dice_below(&network->dice, (uint64_t)path->weather.reorder_us + 1)
                        : 0;
    uint64_t at = network->agenda->now_us + wait_us + late + delay_draw(path->delay, &network->dice);
    agenda_push(network->agenda, at, network->arrival_kind, number);
}

static void carry(struct network *network, uint32_t from, const struct gossip_address *source,
                  const struct gossip_datagram *datagram) {
    struct network_counters *counters = &network->counters;
    counters->datagrams++;
    counters->bytes += datagram->size;
    uint32_t to = network_host_at(network, &datagram->to);
    if (to == NETWORK_NOBODY) {
        counters->lost++;
        return;
    }
    if (network->cut_count > 0 && !network_reaches(network, from, to)) {
        counters->cut++;
        return;
    }
    struct host *host = &network->hosts[to];
    bool let_in = host->nat ? nat_lets_in(host->nat, network->agenda->now_us, from, datagram->to.port)
                            : datagram->to.port == NAT_INSIDE_PORT;
    if (!let_in) {
        counters->dropped_by_nat++;
        return;
    }
    struct path *path = &network->paths[network->hosts[from].site * network->site_count + host->site];
    uint32_t mtu = path->extra_mtu > 0 ? path->extra_mtu : path->weather.mtu;
    if (mtu > 0 && datagram->size + IP_OVERHEAD > mtu) {
        counters->dropped_by_size++;
        return;
    }
    uint64_t wait = queue_us(network, path, datagram->size);
    if (wait == UINT64_MAX) {
        counters->dropped_by_queue++;
        return;
    }
    if (is_lost(network, path)) {
        counters->lost++;
        return;
    }
    deliver(network, path, to, source, datagram, wait);
    if (!dice_chance(&network->dice, path->weather.duplicate)) return;
    counters->doubled++;
    deliver(network, path, to, source, datagram, wait);
}

void network_send(struct network *network, uint32_t from, const struct gossip_datagram *datagram) {
    struct host *host = &network->hosts[from];
    host->sent += datagram->size;
    uint16_t port = NAT_INSIDE_PORT;
    if (host->nat) {
        uint32_t to = network_host_at(network, &datagram->to);
        if (to != NETWORK_NOBODY) port = nat_let_out(host->nat, network->agenda->now_us, to);
    }
    struct gossip_address source = address_of(host->address, port);
    carry(network, from, &source, datagram);
}

void network_forge(struct network *network, uint32_t from, const struct gossip_address *source,
                   const struct gossip_datagram *datagram) {
    carry(network, from, source, datagram);
}

void network_look(const struct network *network, uint32_t packet, struct network_packet *out) {
    struct packet_slot *slot = packets_at(&network->packets, packet);
    *out = (struct network_packet){slot->to, slot->flags, slot->from, slot->size, slot->bytes};
}

void network_expect(const struct network *network, uint32_t packet) {
    const char *slot = (const char *)packets_at(&network->packets, packet);
    for (size_t at = 0; at < sizeof(struct packet_slot) + PACKET_SMALL; at += 64)
        __builtin_prefetch(slot + at);
}

void network_flag(struct network *network, uint32_t packet, uint32_t flags) {
    packets_at(&network->packets, packet)->flags = flags;
}

void network_let_go(struct network *network, uint32_t packet) {
    const struct packet_slot *slot = packets_at(&network->packets, packet);
    network->hosts[slot->to].received += slot->size;
    packets_give(&network->packets, packet);
}

void network_read_counters(const struct network *network, struct network_counters *out) {
    *out = network->counters;
}

uint64_t network_bytes_sent(const struct network *network, uint32_t host) {
    return network->hosts[host].sent;
}

uint64_t network_bytes_received(const struct network *network, uint32_t host) {
    return network->hosts[host].received;
}

/* ---- streams ---- */

#define SEGMENT 1400u      /* bytes */
#define WINDOW_BEGINS 10u  /* segments (RFC 6928), doubled each round trip */
#define TIMEOUT_US 200000u /* Linux's least retransmission timeout; doubled each time */

static double with_extra(const struct path *path, double loss) {
    return 1 - (1 - loss) * (1 - path->extra_loss);
}

static double loss_of(struct network *network, struct path *path) {
    return with_extra(path, is_bad(network, path) ? path->weather.burst_loss : path->weather.loss);
}

/* How often the last segment is sent, at most 10 times, with the waits between; a burst ends meanwhile. */
static uint64_t tail_us(struct network *network, struct path *path) {
    uint64_t waits = 0, timeout = TIMEOUT_US;
    double loss = loss_of(network, path), later = with_extra(path, path->weather.loss);
    for (int i = 0; i < 9 && dice_chance(&network->dice, waits <= path->weather.burst_us ? loss : later); i++) {
        waits += timeout;
        timeout *= 2;
    }
    return waits;
}

bool network_stream(struct network *network, uint32_t from, uint32_t to, size_t size, bool opens, uint64_t *took_us) {
    struct host *host = &network->hosts[from], *other = &network->hosts[to];
    struct path *path = &network->paths[host->site * network->site_count + other->site];
    struct path *back = &network->paths[other->site * network->site_count + host->site];
    if (!network_reaches(network, from, to) || !network_reaches(network, to, from)) return false;
    uint64_t there = delay_draw(path->delay, &network->dice), round = there + delay_draw(back->delay, &network->dice);
    double loss = loss_of(network, path);
    uint64_t segments = size / SEGMENT + 1, lost = 0, rounds = 0;
    for (uint64_t sent = WINDOW_BEGINS; sent < segments; sent = 2 * sent + WINDOW_BEGINS)
        rounds++;
    for (uint64_t i = 0; loss > 0 && i < segments; i++)
        while (lost < 10 * segments && dice_chance(&network->dice, loss))
            lost++;
    uint64_t took = there + rounds * round + tail_us(network, path);
    if (opens) took += round + tail_us(network, path) + tail_us(network, back);
    /* What losses leave of the window: Mathis, Semke, Mahdavi, Ott 1997. */
    double slow = loss > 0 ? (double)(segments + lost) * (double)round * sqrt(loss) / 1.22 : 0;
    if (slow > (double)took) took = (uint64_t)slow;
    if (path->weather.bytes_per_s > 0) took += size * 1000000 / path->weather.bytes_per_s;
    host->sent += size + lost * SEGMENT;
    network->counters.bytes += size + lost * SEGMENT;
    network->counters.datagrams += segments + lost;
    other->received += size;
    *took_us = took;
    return true;
}
