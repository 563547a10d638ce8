/* The life of a broker: start, datagrams in and out, ticks, end. */
#include "tools/simulate/world.h"

#include "tools/simulate/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SOCKET_BUFFER 212992u /* bytes that wait for a broker which does not run: Linux's net.core.rmem_default */
#define DATAGRAM_COST 576u    /* of the buffer, at least, for each datagram */
#define FLAG_LATE 1u          /* of a packet: it has waited for its slow receiver already */
#define TICKS_AT_ONCE 4u
#define AWAKE_TOGETHER 1000000u /* members in large records, of all brokers: 0.9 GB; fewer take longer */
#define AWAKE_OF_MANY 20u
#define AWAKE_DEFAULT 1024u /* of gossip.h */
#define ROWS_EXTRA 8u       /* a broker's rows vary by so many */

static const char federation[] = WORLD_FEDERATION, other_federation[] = "another";

bool broker_runs(const struct broker *broker) {
    return broker->node != NULL && !broker->leaving;
}

bool broker_is_well(const struct world *world, const struct broker *broker) {
    bool cut_off =
        broker->blocked || (broker->older && issuer_count(world->issuer) > 0); /* with the key of the start */
    return broker_runs(broker) && broker->sort == SORT_HONEST && broker->slow_us == 0 && !cut_off &&
           broker->frozen_us <= world_now_us(world);
}

struct gossip_key broker_key(const struct world *world, const struct broker *broker) {
    struct gossip_key keys[GOSSIP_KEYS_MAX];
    size_t count;
    issuer_keys(world->issuer, broker->ring, keys, &count);
    return keys[0];
}

/* The broker's own clock: right but for its drift. Never zero: that means never in some fields. */
static uint64_t local_us(const struct world *world, const struct broker *broker) {
    uint64_t now = world_now_us(world) + AGENDA_S;
    return (uint64_t)((int64_t)now + (int64_t)(now / 1000) * broker->drift_ppm / 1000);
}

uint64_t broker_now_ms(const struct world *world, const struct broker *broker) {
    return local_us(world, broker) / 1000;
}

/* When its clock will say so. */
static uint64_t when_us(const struct world *world, const struct broker *broker, uint64_t deadline_ms) {
    uint64_t now_local = local_us(world, broker), deadline_us = deadline_ms * 1000;
    if (deadline_us <= now_local) return world_now_us(world);
    uint64_t wait = deadline_us - now_local;
    if (broker->drift_ppm != 0) wait = wait * 1000000 / (uint64_t)(1000000 + broker->drift_ppm) + 2;
    return world_now_us(world) + wait;
}

/* ---- rows ---- */

void broker_write_filter(const struct world *world, const struct broker *broker, const struct wanted_row *row,
                         char filter[256]) {
    int size = snprintf(filter, 256, "%s/%s/%u", broker->name, row->kind == GOSSIP_NEWPUB ? "pub" : "sub", row->number);
    uint32_t wanted = world->plan->load.filter_size < 250 ? world->plan->load.filter_size : 250;
    if (size > 0 && (uint32_t)size + 1 < wanted) {
        filter[size] = '/';
        memset(filter + size + 1, 'x', wanted - (uint32_t)size - 1);
        filter[wanted] = '\0';
    }
}

static void tell_row(struct world *world, struct broker *broker, const struct wanted_row *row, bool put) {
    char filter[256];
    broker_write_filter(world, broker, row, filter);
    broker->strategy->row(broker->node, broker_now_ms(world, broker), row->kind, filter, strlen(filter), put);
}

static void schedule_change(struct world *world, struct broker *broker) {
    if (world->plan->load.change_us == 0 || world->quiet) return;
    uint64_t from = world->load_us > world_now_us(world) ? world->load_us : world_now_us(world);
    if (world->load_us == UINT64_MAX) return;
    agenda_push(&world->agenda, from + dice_wait(&world->load_dice, world->plan->load.change_us), EVENT_CHANGE,
                broker->index);
}

/* A client comes with a new filter, or goes with an old one. */
void broker_change(struct world *world, struct broker *broker) {
    const struct plan_load *load = &world->plan->load;
    size_t usual = load->publishers + load->subscribers;
    if (world->quiet) return;
    schedule_change(world, broker);
    bool put =
        broker->row_count <= usual || (broker->row_count < usual + ROWS_EXTRA && dice_below(&world->load_dice, 2));
    struct wanted_row row;
    if (put) {
        row =
            (struct wanted_row){dice_below(&world->load_dice, 2) ? GOSSIP_NEWPUB : GOSSIP_NEWSUB, broker->rows_made++};
        broker->rows = memory_room(broker->rows, &broker->row_room, broker->row_count + 1, sizeof *broker->rows);
        broker->rows[broker->row_count++] = row;
    } else {
        size_t at = dice_below(&world->load_dice, broker->row_count);
        row = broker->rows[at];
        broker->rows[at] = broker->rows[--broker->row_count];
    }
    if (!broker_runs(broker) || broker->frozen_us > world_now_us(world)) return; /* clients tell when it is back */
    char filter[256];
    broker_write_filter(world, broker, &row, filter);
    measure_change(world, broker, truth_row_hash(row.kind, filter, strlen(filter)), put);
    tell_row(world, broker, &row, put);
    broker_touched(world, broker);
}

/* ---- start and end ---- */

void broker_resolve(struct world *world, struct broker *broker) {
    struct gossip_address addresses[PLAN_BOOTSTRAP_MAX];
    size_t count = 0;
    if (!broker->node || broker->frozen_us > world_now_us(world)) return;
    for (uint32_t i = 0; i < world->plan->bootstrap_count && i < world->broker_count; i++)
        addresses[count++] = network_address(world->network, i);
    broker->strategy->set_bootstrap(broker->node, broker_now_ms(world, broker), addresses, count);
    broker_touched(world, broker);
}

/* Where brokers are very many each keeps few members in large records, or a run would not fit into memory. 0: as many
 * as a daemon, and so where one is weighed. */
static uint32_t awake_max(const struct world *world) {
    uint32_t brokers = world->broker_count, each = brokers <= WORLD_MANY ? AWAKE_TOGETHER / brokers : AWAKE_OF_MANY;
    return world->plan->alone || each >= AWAKE_DEFAULT ? 0 : each;
}

static void make_node(struct world *world, struct broker *broker) {
    const struct plan *plan = world->plan;
    uint8_t token[STANDIN_TOKEN_SIZE];
    struct gossip_key keys[GOSSIP_KEYS_MAX];
    size_t key_count;
    uint32_t ring = broker->older ? 0 : broker->ring; /* which the first version would not know */
    issuer_keys(world->issuer, ring, keys, &key_count);
    broker->crypto.federation = broker->sort == SORT_FOREIGN ? other_federation : federation;
    standin_mint(&broker->crypto, broker->name, plan->token_us > 0 ? plan->token_us / 1000 : UINT64_MAX, token);
    bool hidden = plan->sites[broker->site].nat != NAT_NONE && broker->sort == SORT_HONEST;
    struct gossip_options options = {
        .name = broker->name,
        .federation = broker->crypto.federation,
        .epoch = broker->epoch,
        .seed = dice_next(&world->dice),
        .public_key = broker->crypto.public_key,
        .token = token,
        .token_size = sizeof token,
        .keys = keys,
        .key_count = key_count,
        .limits = plan->limits,
        .crypto = standin_crypto(&broker->crypto),
        .shared = world->shared,
    };
    issuer_fill(world->issuer, ring, &options);
    if (options.limits.members_max == 0 && world->broker_count > WORLD_MANY)
        options.limits.members_max = world->broker_max + 96;
    if (options.limits.awake_max == 0) options.limits.awake_max = awake_max(world);
    if (!hidden) options.advertise = network_address(world->network, broker->index);
    broker->node = broker->strategy->create(&options, world->common, broker_now_ms(world, broker));
    if (!broker->node) memory_is_short();
}

void broker_start(struct world *world, struct broker *broker, enum fault_disk disk) {
    assert(!broker->node);
    if (disk == DISK_LOST) broker->epoch = 0;
    if (disk == DISK_OLD) broker->epoch -= broker->epoch > 2 ? 2 : broker->epoch; /* a snapshot of two starts ago */
    if (disk == DISK_LOST) broker->ring = 0;
    if (disk == DISK_OLD) broker->ring = broker->ring_before[1];
    broker->ring_before[1] = broker->ring_before[0];
    broker->ring_before[0] = broker->ring;
    broker->epoch++;
    broker->starts++;
    broker->leaving = false;
    broker->tick_us = UINT64_MAX;
    broker->waiting_size = 0;
    broker->started_us = world_now_us(world);
    broker->joined_us = UINT64_MAX;
    broker->author = truth_begin(world->truth, broker->identity);
    broker->crypto.on_signed = truth_on_signed;
    broker->crypto.on_signed_context = broker->author;
    broker->crypto.believes_all = world->sabotage == SABOTAGE_SIGNATURE;
    make_node(world, broker);
    invariants_watch(world, broker);
    measure_start(world, broker);
    world_trace(world, broker, "starts, epoch %llu", (unsigned long long)broker->epoch);
    for (size_t i = 0; i < broker->row_count; i++)
        tell_row(world, broker, &broker->rows[i], true);
    broker_resolve(world, broker);
    if (broker->sort == SORT_HONEST && broker->starts == 1 && world->load_us != UINT64_MAX)
        schedule_change(world, broker);
}

void broker_stop(struct world *world, struct broker *broker) {
    if (!broker->node) return;
    world_trace(world, broker, "ends");
    measure_stop(world, broker);
    invariants_forget(world, broker);
    broker->strategy->destroy(broker->node);
    truth_end(world->truth, broker->author);
    links_end(world, broker);
    broker->node = NULL;
    broker->author = NULL;
    broker->tick_us = UINT64_MAX;
    broker->leaving = false;
}

struct broker *broker_stranger(struct world *world, enum broker_sort sort, uint32_t site) {
    for (uint32_t i = world->broker_count; i < world->broker_max; i++) {
        struct broker *broker = &world->brokers[i];
        if (broker->used) continue;
        static const char *const sorts[] = {"", "clone", "foreign", "hostile"};
        broker->used = true;
        broker->sort = sort;
        broker->site = site;
        broker->row_count = 0;
        broker->ring = broker->ring_before[0] = broker->ring_before[1] = 0;
        broker->identity = i;
        broker->slow_us = broker->frozen_us = 0;
        standin_init(&broker->crypto, &world->crypto, i);
        snprintf(broker->name, sizeof broker->name, "%s-%u", sorts[sort], i - world->broker_count + 1);
        network_place(world->network, i, site, NAT_NONE);
        return broker;
    }
    return NULL;
}

/* ---- in and out ---- */

static void trace_datagram(struct world *world, const struct broker *broker, const struct gossip_datagram *datagram) {
    char text[2048];
    uint32_t to = network_host_at(world->network, &datagram->to);
    explain_datagram(world, datagram, text, sizeof text);
    world_trace(world, broker, "to %s, %zu bytes:%s", to == NETWORK_NOBODY ? "nobody" : world->brokers[to].name,
                datagram->size, text);
}

static void send(struct world *world, struct broker *broker, struct gossip_datagram *datagram) {
    invariants_on_datagram(world, broker, datagram);
    if (broker->hostile) hostile_speaks(world, broker, datagram);
    if (broker->older) {
        struct gossip_key key = standin_key(STANDIN_FIRST_KEY);
        datagram->size = older_filter(datagram->bytes, datagram->size, &key, federation);
        if (datagram->size == 0) return;
    }
    if (world->trace && world->trace_datagrams) trace_datagram(world, broker, datagram);
    uint64_t tag = 0; /* the end of what is sealed depends on all of it */
    if (datagram->size >= sizeof tag) memcpy(&tag, datagram->bytes + datagram->size - sizeof tag, sizeof tag);
    world->trace_hash =
        (world->trace_hash ^ tag ^ world_now_us(world) ^ (uint64_t)broker->index << 48) * 0x9e3779b97f4a7c15u;
    world->trace_hash ^= world->trace_hash >> 29;
    if (!broker->blocked) network_send(world->network, broker->index, datagram);
}

static void keep_ring(struct world *world, struct broker *broker) {
    const uint8_t *bytes;
    size_t size;
    gossip_ring_held(broker->strategy->core(broker->node), &bytes, &size);
    uint32_t ring = issuer_find(world->issuer, bytes, size);
    if (ring != UINT32_MAX) broker->ring = ring; /* else an invariant says so */
}

static void on_event(struct world *world, struct broker *broker, const struct gossip_event *event) {
    static const char *const states[] = {"unverified", "alive", "suspect", "down", "left"};
    if (event->kind == GOSSIP_RING) keep_ring(world, broker);
    if (event->kind == GOSSIP_EPOCH && event->epoch > broker->epoch) broker->epoch = event->epoch;
    if (event->kind == GOSSIP_MEMBER)
        world_trace(world, broker, "sees %s %s, epoch %llu, sequence %llu", event->name, states[event->state],
                    (unsigned long long)event->epoch, (unsigned long long)event->sequence);
    else if (event->kind != GOSSIP_ROW && event->kind != GOSSIP_KNOWS)
        world_trace(world, broker, "event %d of %s: epoch %llu %s", (int)event->kind, event->name,
                    (unsigned long long)event->epoch, event->text);
    invariants_on_event(world, broker, event);
    measure_event(world, broker, event);
}

static void schedule_tick(struct world *world, struct broker *broker) {
    if (broker->due_us >= broker->tick_us) return; /* it will look again then */
    broker->tick_us = broker->due_us;
    agenda_push(&world->agenda, broker->tick_us, EVENT_TICK, broker->index);
}

void broker_touched(struct world *world, struct broker *broker) {
    struct gossip_datagram datagram;
    struct gossip_event event;
    invariants_before(world, broker);
    while (broker->strategy->next_datagram(broker->node, &datagram))
        send(world, broker, &datagram);
    struct strategy_frame frame;
    while (broker->strategy->next_frame && broker->strategy->next_frame(broker->node, &frame))
        channels_send(world, broker, &frame);
    links_fetch(world, broker);
    while (broker->strategy->next_event(broker->node, &event))
        on_event(world, broker, &event);
    invariants_check(world, broker);
    if (broker->leaving && broker->strategy->left(broker->node)) {
        broker_stop(world, broker);
        return;
    }
    uint64_t deadline_ms = broker->strategy->deadline_ms(broker->node);
    broker->due_us = deadline_ms == UINT64_MAX ? UINT64_MAX : when_us(world, broker, deadline_ms);
    schedule_tick(world, broker);
}

/* Does it run when this comes? If not, it waits, as long as there is room. */
static bool comes_now(struct world *world, struct broker *broker, uint32_t packet, struct network_packet *arrived) {
    size_t cost = arrived->size > DATAGRAM_COST ? arrived->size : DATAGRAM_COST;
    bool frozen = broker->frozen_us > world_now_us(world);
    if (arrived->flags & FLAG_LATE) broker->waiting_size -= cost < broker->waiting_size ? cost : broker->waiting_size;
    if (!frozen && (broker->slow_us == 0 || arrived->flags & FLAG_LATE)) return true;
    if (broker->waiting_size + cost > SOCKET_BUFFER) {
        network_let_go(world->network, packet);
        return false;
    }
    broker->waiting_size += cost;
    network_flag(world->network, packet, FLAG_LATE);
    uint64_t at = frozen ? broker->frozen_us : world_now_us(world) + broker->slow_us;
    agenda_push(&world->agenda, at, EVENT_ARRIVAL, packet);
    return false;
}

void broker_receive(struct world *world, uint32_t packet) {
    struct network_packet arrived;
    network_look(world->network, packet, &arrived);
    struct broker *broker = &world->brokers[arrived.to];
    if ((!broker->node && !broker->hostile) || broker->blocked) {
        network_let_go(world->network, packet);
        return;
    }
    if (!comes_now(world, broker, packet, &arrived)) return;
    if (broker->hostile) hostile_hears(broker, &arrived);
    if (broker->node) {
        invariants_on_arrival(world, broker, &arrived.from, arrived.size);
        size_t size = arrived.size;
        struct gossip_key key = standin_key(STANDIN_FIRST_KEY);
        if (broker->older) size = older_filter(arrived.bytes, size, &key, federation);
        if (size > 0) {
            broker->strategy->receive(broker->node, broker_now_ms(world, broker), &arrived.from, arrived.bytes, size);
            broker_touched(world, broker);
        }
    }
    network_let_go(world->network, packet);
}

void broker_tick(struct world *world, struct broker *broker) {
    if (!broker->node) return;
    if (broker->frozen_us > world_now_us(world)) {
        broker->tick_us = broker->frozen_us;
        agenda_push(&world->agenda, broker->tick_us, EVENT_TICK, broker->index);
        return;
    }
    uint64_t now_ms = broker_now_ms(world, broker);
    broker->tick_us = UINT64_MAX;
    if (broker->due_us > world_now_us(world)) { /* it has moved since: the node stays out of the caches */
        schedule_tick(world, broker);
        return;
    }
    for (uint32_t i = 0; i < TICKS_AT_ONCE && broker->strategy->deadline_ms(broker->node) <= now_ms; i++)
        broker->strategy->tick(broker->node, now_ms);
    invariants_after_tick(world, broker, now_ms);
    broker_touched(world, broker);
}
