/* hostile_hobnobd: a hobnobd that does harm on order. It is the real daemon with its own key and valid token, a member
 * like any other; its gossip is wrapped at link time (CMakeLists.txt), so that between its own packets it says what the
 * orders want (attacks.h).
 *
 * HOSTILE_ORDERS names a file to which orders are appended, one a line: a word of attacks.c and how many rounds of it,
 * one round each HOSTILE_ROUND_MS. When all rounds are done a line "hostile: WORD done" goes to the log. Orders run
 * together.
 */
#include "tests/hostile/attacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDERS_MAX 16u
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
    struct hostile hostile;
    struct gossip_datagram *waiting;
    size_t waiting_count, waiting_taken;
} process;

/* ---- orders ---- */

static void take_order(const char *line) {
    char word[32];
    unsigned long long rounds;
    hostile_attack *attack = NULL;
    if (sscanf(line, "%31s %llu", word, &rounds) == 2) attack = hostile_attack_named(word);
    for (size_t i = 0; attack && i < ORDERS_MAX; i++) {
        struct order *order = &process.orders[i];
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
    if (!process.orders_file && path) process.orders_file = fopen(path, "r");
    if (!process.orders_file) return;
    clearerr(process.orders_file);
    while (fgets(line, sizeof line, process.orders_file))
        take_order(line);
}

/* They go out with the next pump. */
static void send_later(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    (void)context;
    if (!process.waiting) process.waiting = calloc(WAITING_MAX, sizeof *process.waiting);
    if (!process.waiting || process.waiting_count == WAITING_MAX || size > GOSSIP_DATAGRAM_MAX) return;
    struct gossip_datagram *datagram = &process.waiting[process.waiting_count++];
    datagram->to = *to;
    datagram->size = size;
    memcpy(datagram->bytes, bytes, size);
}

static void act(struct gossip *gossip) {
    process.hostile.gossip = gossip;
    process.hostile.send = send_later;
    for (size_t i = 0; i < ORDERS_MAX; i++) {
        struct order *order = &process.orders[i];
        if (!order->attack) continue;
        if (order->round < order->rounds) order->attack(&process.hostile, order->round++);
        if (order->round < order->rounds) continue;
        fprintf(stderr, "hostile: %s done\n", order->word);
        order->attack = NULL;
    }
}

/* ---- in the place of the core's door ---- */

void __real_gossip_tick(struct gossip *gossip, uint64_t now_ms);
void __wrap_gossip_tick(struct gossip *gossip, uint64_t now_ms);
void __wrap_gossip_tick(struct gossip *gossip, uint64_t now_ms) {
    __real_gossip_tick(gossip, now_ms);
    if (now_ms < process.next_ms) return;
    process.next_ms = now_ms + HOSTILE_ROUND_MS;
    read_orders();
    act(gossip);
}

uint64_t __real_gossip_deadline_ms(const struct gossip *gossip);
uint64_t __wrap_gossip_deadline_ms(const struct gossip *gossip);
uint64_t __wrap_gossip_deadline_ms(const struct gossip *gossip) {
    return earlier(__real_gossip_deadline_ms(gossip), process.next_ms);
}

void __real_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size);
void __wrap_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size);
void __wrap_gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from,
                           const uint8_t *bytes, size_t size) {
    hostile_hear(&process.hostile, from, bytes, size);
    __real_gossip_receive(gossip, now_ms, from, bytes, size);
}

bool __real_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram);
bool __wrap_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram);
bool __wrap_gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram) {
    if (__real_gossip_next_datagram(gossip, datagram)) return true;
    if (process.waiting_taken == process.waiting_count) {
        process.waiting_taken = process.waiting_count = 0;
        return false;
    }
    *datagram = process.waiting[process.waiting_taken++];
    return true;
}
