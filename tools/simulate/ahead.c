/* Looks ahead in the agenda and asks memory for what is needed next. A thousand brokers are a gigabyte that is visited
 * at random: without this most of a run's time is waiting. Nothing that is simulated depends on it. */
#include "tools/simulate/world.h"

#define FROM 200u /* brokers: fewer stay in the caches */
#define LINE 64u
#define STAGES (2 + GOSSIP_EXPECT_STEPS)

static void fetch(const void *from, size_t size) {
    for (size_t at = 0; at < size; at += LINE)
        __builtin_prefetch((const char *)from + at, 1);
}

static void fetch_arrival(const struct world *world, uint32_t number, unsigned stage) {
    struct network_packet packet;
    if (stage == 0) {
        network_expect(world->network, number);
        return;
    }
    network_look(world->network, number, &packet);
    const struct broker *broker = &world->brokers[packet.to];
    if (stage == 1) {
        fetch(broker, sizeof *broker);
        return;
    }
    if (stage == 2) invariants_expect(broker);
    uint32_t from = network_host_at(world->network, &packet.from);
    const struct member_id *id = from < world->broker_max ? &world->id_of[world->brokers[from].identity] : NULL;
    if (broker->node) gossip_inspect_expect(broker->strategy->core(broker->node), id, stage - 2);
}

static void fetch_tick(const struct broker *broker, uint64_t at_us, unsigned stage) {
    if (stage == 1)
        fetch(broker, sizeof *broker);
    else if (stage > 1 && broker->node && broker->tick_us == at_us && broker->due_us <= at_us)
        gossip_inspect_expect(broker->strategy->core(broker->node), NULL, stage - 2);
}

void ahead_fetch(const struct world *world) {
    static const uint32_t afters[STAGES] = {14, 11, 8, 6, 4, 2}; /* events; each takes some microseconds */
    if (world->broker_count < FROM || !world->strategy->core) return;
    for (unsigned stage = 0; stage < STAGES; stage++) {
        const struct agenda_entry *entry = agenda_soon(&world->agenda, afters[stage]);
        if (!entry) continue;
        if (entry->kind == EVENT_ARRIVAL) fetch_arrival(world, entry->which, stage);
        if (entry->kind == EVENT_TICK) fetch_tick(&world->brokers[entry->which], entry->at_us, stage);
    }
}
