/* Hobnob's gossip core behind the seam: nothing is added and nothing left out. */
#include "tools/simulate/strategy.h"

static void *create(const struct gossip_options *options, void *common, uint64_t now_ms) {
    (void)common;
    return gossip_new(options, now_ms);
}

static void destroy(void *node) {
    gossip_free(node);
}

static void set_bootstrap(void *node, uint64_t now_ms, const struct gossip_address *addresses, size_t count) {
    gossip_set_bootstrap(node, now_ms, addresses, count);
}

static void receive(void *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes, size_t size) {
    gossip_receive(node, now_ms, from, bytes, size);
}

static uint64_t deadline_ms(const void *node) {
    return gossip_deadline_ms(node);
}

static void tick(void *node, uint64_t now_ms) {
    gossip_tick(node, now_ms);
}

static bool next_datagram(void *node, struct gossip_datagram *datagram) {
    return gossip_next_datagram(node, datagram);
}

static bool next_event(void *node, struct gossip_event *event) {
    return gossip_next_event(node, event);
}

static void row(void *node, uint64_t now_ms, enum gossip_row_kind kind, const char *filter, size_t size, bool put) {
    if (put)
        gossip_row_put(node, now_ms, kind, filter, size);
    else
        gossip_row_delete(node, now_ms, kind, filter, size);
}

static void leave(void *node, uint64_t now_ms) {
    gossip_leave(node, now_ms);
}

static bool left(const void *node) {
    return gossip_left(node);
}

static uint64_t table_hash(const void *node) {
    return gossip_table_hash(node);
}

static void read_counters(const void *node, struct gossip_counters *out) {
    gossip_read_counters(node, out);
}

static struct gossip *core(void *node) {
    return node;
}

const struct strategy strategy_hobnob = {
    .name = "hobnob",
    .about = "Hobnob's own gossip core",
    .create = create,
    .destroy = destroy,
    .set_bootstrap = set_bootstrap,
    .receive = receive,
    .deadline_ms = deadline_ms,
    .tick = tick,
    .next_datagram = next_datagram,
    .next_event = next_event,
    .row = row,
    .leave = leave,
    .left = left,
    .table_hash = table_hash,
    .read_counters = read_counters,
    .core = core,
};
