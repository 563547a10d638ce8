#include "tests/hostile/hostile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDERS_MAX 16u
#define HEARD_MAX 256u
#define WAITING_MAX 16384u
#define LINE_MAX_BYTES 128u

struct order {
    char word[32];
    hostile_attack *attack; /* NULL: the place is free */
    uint64_t round, rounds;
};

/* There is one gossip in the process, and the linker's wraps carry no context. */
static struct {
    FILE *orders_file;
    struct order orders[ORDERS_MAX];
    uint64_t next_ms;
    struct gossip_datagram heard[HEARD_MAX];
    size_t heard_count;
    struct gossip_datagram *waiting;
    size_t waiting_count, waiting_taken;
} hostile;

/* ---- orders ---- */

static void take_order(const char *line) {
    char word[32];
    unsigned long long rounds;
    hostile_attack *attack = NULL;
    if (sscanf(line, "%31s %llu", word, &rounds) == 2) attack = hostile_attack_named(word);
    for (size_t i = 0; attack && i < ORDERS_MAX; i++) {
        struct order *order = &hostile.orders[i];
        if (order->attack) continue;
        *order = (struct order){.attack = attack, .rounds = rounds};
        snprintf(order->word, sizeof order->word, "%s", word);
        return;
    }
    fprintf(stderr, "hostile: this order is not understood: %s", line);
    exit(3);
}

static void read_orders(void) {
    const char *path = getenv("HOSTILE_ORDERS");
    char line[LINE_MAX_BYTES];
    if (!hostile.orders_file && path) hostile.orders_file = fopen(path, "r");
    if (!hostile.orders_file) return;
    clearerr(hostile.orders_file);
    while (fgets(line, sizeof line, hostile.orders_file))
        take_order(line);
}

static void act(struct gossip *gossip) {
    for (size_t i = 0; i < ORDERS_MAX; i++) {
        struct order *order = &hostile.orders[i];
        if (!order->attack) continue;
        if (order->round < order->rounds) order->attack(gossip, order->round++);
        if (order->round < order->rounds) continue;
        fprintf(stderr, "hostile: %s done\n", order->word);
        order->attack = NULL;
    }
}

/* ---- what attacks use ---- */

void hostile_send(const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    if (!hostile.waiting) hostile.waiting = calloc(WAITING_MAX, sizeof *hostile.waiting);
    if (!hostile.waiting || hostile.waiting_count == WAITING_MAX || size > GOSSIP_DATAGRAM_MAX) return;
    struct gossip_datagram *datagram = &hostile.waiting[hostile.waiting_count++];
    datagram->to = *to;
    datagram->size = size;
    memcpy(datagram->bytes, bytes, size);
}

const struct gossip_datagram *hostile_heard(size_t index) {
    return index < HEARD_MAX && index < hostile.heard_count ? &hostile.heard[index] : NULL;
}

/* ---- in the place of the core's door ---- */

void __real_gossip_tick(struct gossip *gossip, uint64_t now_ms);
void __wrap_gossip_tick(struct gossip *gossip, uint64_t now_ms);
void __wrap_gossip_tick(struct gossip *gossip, uint64_t now_ms) {
    __real_gossip_tick(gossip, now_ms);
    if (now_ms < hostile.next_ms) return;
    hostile.next_ms = now_ms + ROUND_MS;
    read_orders();
    act(gossip);
}

uint64_t __real_gossip_deadline_ms(const struct gossip *gossip);
uint64_t __wrap_gossip_deadline_ms(const struct gossip *gossip);
uint64_t __wrap_gossip_deadline_ms(const struct gossip *gossip) {
    return earlier(__real_gossip_deadline_ms(gossip), hostile.next_ms);
}

void __real_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size);
void __wrap_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size);
void __wrap_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size) {
    if (size <= GOSSIP_DATAGRAM_MAX) {
        struct gossip_datagram *heard = &hostile.heard[hostile.heard_count++ % HEARD_MAX];
        heard->to = *from;
        heard->size = size;
        memcpy(heard->bytes, bytes, size);
    }
    __real_gossip_receive(gossip, now_ms, from, bytes, size);
}

bool __real_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram);
bool __wrap_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram);
bool __wrap_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram) {
    if (__real_gossip_next_datagram(gossip, datagram)) return true;
    if (hostile.waiting_taken == hostile.waiting_count) {
        hostile.waiting_taken = hostile.waiting_count = 0;
        return false;
    }
    *datagram = hostile.waiting[hostile.waiting_taken++];
    return true;
}
