/* What must hold after every event (numbers as in the tests that show them):
 *
 *  I1  the rows that a replica holds of an owner are the owner's exact rows at some sequence
 *  I2  (epoch, sequence) of what is shown of an owner never goes back
 *  I3  nothing that was deleted at or before that sequence is shown
 *  I4  every signed byte that is held of an owner verifies under its key
 *  I5  rows of an owner that is not verified, down or gone are not shown
 *  I6  every queue, table and list keeps its cap
 *  I7  every datagram keeps its size
 *  I8  an address that has proved nothing is sent at most three times what it sent
 *  I9  a broker believes itself alive
 *  I10 the newest evidence about a member never goes back
 *  I11 no two live identities stay at one address
 *  P22 the key ring of a broker is one that the issuer signed, it is told to keep it, and it never goes back
 *  I13 nobody honest is named as one that breaks the rules
 *  P20 no storm: a broker sends a bounded number of datagrams a second
 *  (I12, no wall clock in the core, is checked by tests/layers.)
 *
 * In a small federation each event is followed by a look at everything its broker holds; in a large one at those that
 * its events name and, now and then, at itself and another in turn, so that the cost of an event does not grow with
 * the federation. */
#include "tools/simulate/world.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_AT_ALL 16u   /* brokers: in federations up to this size everything is looked at after each event */
#define WATCHED_ALL 1000u /* brokers: above, only one in fifty is watched closely, as it remembers what it saw of */
                          /* each other one; of very many one in 250 */
#define NAMED_MAX 64u
#define VICTIMS 16u
#define AT_ONE_ADDRESS_US (30 * AGENDA_S)
#define STORM 3000u        /* datagrams of a broker in a second, */
#define STORM_OF_EACH 100u /* and of each other broker that there is: a joiner is answered by all */
#define GRANT 3u           /* times what an unproven address sent */

/* As PROTOCOL.md and gossip.h say; written again here, so that a limit which grew by accident is noticed. */
#define MEMBERS_DEFAULT 4096u
#define UNVERIFIED_CAP 256u
#define QUEUED_DEFAULT 4096u
#define RELAYS_CAP 64u
#define STRANGERS_CAP 128u
#define ROWS_DEFAULT 512u
#define LOG_DEFAULT 64u
#define OWNER_BYTES_DEFAULT (1u << 20)
#define STAGED_CAP 2u /* checkpoints of one owner on their way */
#define ROWS_OF_ONE_ENTRY 256u

/* How often what no event names is looked at. In a large federation that is memory which nothing else needs just then,
 * and each look costs as much as what the core does for an event. */
struct care {
    uint32_t brokers_max;
    uint32_t turn_events;  /* of a broker, until it itself and another member have their turn */
    uint32_t sizes_events; /* of all, until queues are looked at */
    uint32_t turn_polls;   /* until one broker compares the addresses of all, */
    uint32_t viewers;      /* one in so many does */
};

static const struct care *care_for(const struct world *world) {
    static const struct care cares[] = {{LOOK_AT_ALL, 1, 1, 1, 1}, {250, 8, 16, 5, 1}, {UINT32_MAX, 32, 64, 20, 50}};
    const struct care *care = cares;
    while (world->broker_count > care->brokers_max)
        care++;
    return care;
}

/* What a broker held of another when last looked at. */
struct view {
    uint64_t epoch, sequence; /* the newest that was shown */
    uint64_t evidence_epoch, evidence_incarnation, accused_epoch, accused_incarnation, down_epoch, down_incarnation;
    uint64_t print;                 /* of the state when its rows were last compared */
    uint64_t rows_hash;             /* of the rows held then */
    uint64_t told_hash, told_epoch; /* what the events said */
    uint64_t shared_us;             /* since when it is seen alive at the address of another live one; 0: it is not */
    bool told_visible, was_visible;
    bool left; /* the newest evidence says so */
    uint8_t looks;
};

/* What victims of forged sources were sent, by broker. */
struct victim {
    uint64_t received, sent;
};

struct watch {
    uint32_t ring; /* the newest it used, of issuer.h */
    uint32_t turn; /* of the next member that is looked at without a reason */
    uint32_t events;
    uint32_t view_count; /* 0: not watched closely */
    uint32_t named_count, named[NAMED_MAX];
    struct victim victims[VICTIMS];
    struct view views[]; /* by identity */
};

static const char *name_of(const struct world *world, uint32_t identity) {
    return world_owner(world, identity)->name;
}

/* ---- faults made on purpose ---- */

static bool sabotaged(const struct world *world, const struct broker *viewer, enum sabotage sabotage) {
    return world->sabotage == sabotage && viewer->index == 1 && world_now_us(world) > world->plan->duration_us / 2;
}

static void tamper(const struct world *world, const struct broker *viewer, uint32_t identity,
                   struct gossip_inspected *held) {
    if (world->sabotage == SABOTAGE_NONE) return;
    if (held->self && sabotaged(world, viewer, SABOTAGE_SELF)) held->state = MEMBER_DOWN;
    if (identity != 2) return;
    if (sabotaged(world, viewer, SABOTAGE_SEQUENCE) && held->sequence > 0) held->sequence--;
    if (sabotaged(world, viewer, SABOTAGE_EVIDENCE) && held->incarnation > 0) held->incarnation--;
    if (sabotaged(world, viewer, SABOTAGE_ACCUSED)) held->accused_epoch = held->accused_incarnation = 0;
    if (sabotaged(world, viewer, SABOTAGE_BURIED)) held->down_epoch = held->down_incarnation = 0;
    if (sabotaged(world, viewer, SABOTAGE_ADDRESS)) held->address = network_address(world->network, 3);
}

static void tamper_rows(const struct world *world, const struct broker *viewer, uint32_t identity,
                        const struct view *view, uint64_t *rows_hash) {
    if (world->sabotage == SABOTAGE_NONE || identity != 2) return;
    if (sabotaged(world, viewer, SABOTAGE_ROW)) *rows_hash += truth_row_hash(GOSSIP_NEWSUB, "never/put", 9);
    if (sabotaged(world, viewer, SABOTAGE_DELETED) && view->rows_hash != 0) *rows_hash = view->rows_hash;
}

/* ---- one member ---- */

static bool above(uint64_t epoch, uint64_t number, uint64_t than_epoch, uint64_t than_number) {
    return epoch > than_epoch || (epoch == than_epoch && number > than_number);
}

static void add_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size) {
    *(uint64_t *)context += truth_row_hash(kind, filter, size);
}

struct verifying {
    struct world *world;
    const struct broker *viewer;
    uint32_t identity;
};

static void verify(void *context, const uint8_t *public_key, const uint8_t *bytes, size_t size) {
    const struct verifying *verifying = context;
    struct world *world = verifying->world;
    struct member_id id = standin_id(public_key);
    size_t body = size - GOSSIP_SIGNATURE_SIZE;
    bool good = size > GOSSIP_SIGNATURE_SIZE && memcmp(&id, &world->id_of[verifying->identity], sizeof id) == 0 &&
                standin_verify(&world->crypto, public_key, bytes, body, bytes + body);
    if (!good)
        world_break(world, "I4: %s holds something of %s that its key did not sign", verifying->viewer->name,
                    name_of(world, verifying->identity));
}

/* An accusation or a death that a newer head of its own has refuted is of no more use, and may be forgotten. */
static bool is_lost(uint64_t epoch, uint64_t incarnation, uint64_t held_epoch, uint64_t held_incarnation,
                    const struct gossip_inspected *held) {
    return above(epoch, incarnation, held_epoch, held_incarnation) &&
           !above(held->epoch, held->incarnation, epoch, incarnation);
}

/* That it leaves is the last word of an epoch, whatever its number is. */
static bool head_is_older(const struct view *view, const struct gossip_inspected *held) {
    bool same_epoch = held->epoch == view->evidence_epoch, leaves = held->state == MEMBER_LEFT;
    if (same_epoch && leaves && !view->left) return false;
    if (same_epoch && view->left && (held->state == MEMBER_ALIVE || held->state == MEMBER_SUSPECT)) return true;
    return above(view->evidence_epoch, view->evidence_incarnation, held->epoch, held->incarnation);
}

static void check_evidence(struct world *world, const struct broker *viewer, uint32_t identity, struct view *view,
                           const struct gossip_inspected *held) {
    const char *older = NULL;
    if (held->epoch == 0) return; /* heard of again, and not yet what it was */
    if (head_is_older(view, held)) older = "head";
    if (is_lost(view->accused_epoch, view->accused_incarnation, held->accused_epoch, held->accused_incarnation, held))
        older = "accusation";
    if (is_lost(view->down_epoch, view->down_incarnation, held->down_epoch, held->down_incarnation, held))
        older = "death";
    if (older)
        world_break(world, "I10: %s has forgotten the newest %s of %s", viewer->name, older, name_of(world, identity));
    view->evidence_epoch = held->epoch;
    view->evidence_incarnation = held->incarnation;
    view->left = held->state == MEMBER_LEFT;
    view->accused_epoch = held->accused_epoch;
    view->accused_incarnation = held->accused_incarnation;
    view->down_epoch = held->down_epoch;
    view->down_incarnation = held->down_incarnation;
}

static void check_order(struct world *world, const struct broker *viewer, uint32_t identity, struct view *view,
                        const struct gossip_inspected *held) {
    bool back = above(view->epoch, view->sequence, held->log_epoch, held->sequence);
    bool begins = held->sequence == 0 && !view->was_visible; /* it is fetched again */
    if (back && !begins && !truth_is_ambiguous(world->truth, identity))
        world_break(world, "I2: %s shows %s at epoch %llu, sequence %llu, and showed it at epoch %llu, sequence %llu",
                    viewer->name, name_of(world, identity), (unsigned long long)held->log_epoch,
                    (unsigned long long)held->sequence, (unsigned long long)view->epoch,
                    (unsigned long long)view->sequence);
    if (back && begins) return;
    view->epoch = held->log_epoch;
    view->sequence = held->sequence;
}

static size_t owner_bytes_cap(const struct world *world) {
    uint32_t limit = world->plan->limits.owner_bytes_max;
    return (limit ? limit : OWNER_BYTES_DEFAULT) + GOSSIP_DATAGRAM_MAX;
}

static void check_rows(struct world *world, const struct broker *viewer, uint32_t identity, struct view *view,
                       const struct gossip_inspected *held) {
    struct gossip *core = viewer->strategy->core(viewer->node);
    uint64_t print[5] = {held->log_epoch, held->sequence, held->row_count, held->row_bytes};
    memcpy(&print[4], held->chain, sizeof held->chain);
    uint64_t hash = standin_hash(7, print, sizeof print);
    bool changed = hash != view->print;
    if (!changed && ++view->looks != 0 && world->sabotage == SABOTAGE_NONE) return;
    if (gossip_inspect_staged(core, &held->id) > STAGED_CAP * owner_bytes_cap(world))
        world_break(world, "I6: %s has more on the way of %s than its limits allow", viewer->name,
                    name_of(world, identity));
    struct verifying verifying = {world, viewer, identity};
    gossip_inspect_signed(core, &held->id, world->broker_max <= LOOK_AT_ALL ? 4 : 1, verify, &verifying);
    uint64_t rows_hash = 0, true_hash = 0;
    gossip_inspect_rows(core, &held->id, add_row, &rows_hash);
    tamper_rows(world, viewer, identity, view, &rows_hash);
    bool known = truth_find(world->truth, identity, held->log_epoch, held->sequence, held->chain, &true_hash);
    bool ambiguous = truth_is_ambiguous(world->truth, identity);
    if (!(known && rows_hash == true_hash) && !ambiguous) {
        bool earlier = truth_had(world->truth, identity, rows_hash);
        world_break(world, "%s %s holds rows of %s that %s (epoch %llu, sequence %llu)",
                    earlier ? "I3:" : "I1:", viewer->name, name_of(world, identity),
                    earlier ? "are of another sequence: what was deleted is shown" : "it never had",
                    (unsigned long long)held->log_epoch, (unsigned long long)held->sequence);
    }
    view->print = hash;
    view->rows_hash = rows_hash;
}

static void check_told(struct world *world, const struct broker *viewer, uint32_t identity, const struct view *view,
                       const struct gossip_inspected *held) {
    if (view->told_visible != held->visible)
        world_break(world, "I5: %s %s %s, and its events said the contrary", viewer->name,
                    held->visible ? "shows" : "hides", name_of(world, identity));
    else if (held->visible && view->told_hash != view->rows_hash)
        world_break(world, "I5: %s told other rows of %s than it holds", viewer->name, name_of(world, identity));
}

static void check_caps(struct world *world, const struct broker *viewer, uint32_t identity,
                       const struct gossip_inspected *held) {
    const struct gossip_limits *limits = &world->plan->limits;
    size_t rows = 4 * (size_t)(limits->rows_max ? limits->rows_max : ROWS_DEFAULT) + ROWS_OF_ONE_ENTRY;
    size_t bytes = owner_bytes_cap(world);
    size_t entries = 4 * (size_t)(limits->log_entries_max ? limits->log_entries_max : LOG_DEFAULT);
    if (held->row_count > rows || held->row_bytes > bytes || held->log_count > entries || held->log_bytes > bytes)
        world_break(world, "I6: %s holds more of %s than its limits allow: %zu rows, %zu bytes, %zu entries",
                    viewer->name, name_of(world, identity), held->row_count, held->row_bytes, held->log_count);
}

static void look(struct world *world, struct broker *viewer, const struct gossip_inspected *found) {
    struct gossip_inspected held = *found;
    uint32_t identity = world_identity(world, &held.id);
    struct watch *watch = viewer->watch;
    if (identity == UINT32_MAX) return;
    tamper(world, viewer, identity, &held);
    if (held.self) {
        bool good = held.state == MEMBER_ALIVE || viewer->leaving;
        if (!good) world_break(world, "I9: %s does not believe itself alive", viewer->name);
        return;
    }
    if (held.visible && (!held.known || (held.state != MEMBER_ALIVE && held.state != MEMBER_SUSPECT)))
        world_break(world, "I5: %s shows %s, which is not verified or not there", viewer->name,
                    name_of(world, identity));
    check_caps(world, viewer, identity, &held);
    if (watch->view_count == 0) return;
    struct view *view = &watch->views[identity];
    check_evidence(world, viewer, identity, view, &held);
    /* What a hostile owner says of itself is its own affair: it may sign two things at one sequence. */
    if (held.visible && identity < world->broker_count) {
        check_order(world, viewer, identity, view, &held);
        check_rows(world, viewer, identity, view, &held);
    }
    if (identity < world->broker_count) check_told(world, viewer, identity, view, &held);
    view->was_visible = held.visible;
}

/* ---- after each event ---- */

void invariants_watch(struct world *world, struct broker *broker) {
    uint32_t brokers = world->broker_count, each = brokers <= WATCHED_ALL ? 1 : brokers <= WORLD_MANY ? 50 : 250;
    bool close = broker->index % each == 0;
    uint32_t views = close ? world->broker_max : 0;
    broker->watch = memory_new(1, sizeof *broker->watch + views * sizeof(struct view));
    broker->watch->view_count = views;
}

void invariants_expect(const struct broker *broker) {
    __builtin_prefetch(broker->watch, 1);
}

void invariants_forget(struct world *world, struct broker *broker) {
    (void)world;
    free(broker->watch);
    broker->watch = NULL;
}

static void check_ring(struct world *world, struct broker *broker, const struct gossip *core) {
    const uint8_t *bytes;
    size_t size;
    gossip_ring_held(core, &bytes, &size);
    uint32_t ring = issuer_find(world->issuer, bytes, size), *newest = &broker->watch->ring;
    if (sabotaged(world, broker, SABOTAGE_RING)) ring = UINT32_MAX;
    if (sabotaged(world, broker, SABOTAGE_RING_BACK) && ring > 0) ring--;
    if (ring == UINT32_MAX) {
        world_break(world, "P22: %s uses a key ring that its issuer did not sign", broker->name);
        return;
    }
    if (issuer_order(world->issuer, ring, *newest) < 0)
        world_break(world, "P22: %s goes back from key ring %llu to %llu", broker->name,
                    (unsigned long long)issuer_number(world->issuer, *newest),
                    (unsigned long long)issuer_number(world->issuer, ring));
    else if (ring != broker->ring && !broker->older)
        world_break(world, "P22: %s uses key ring %llu and was not told to keep it", broker->name,
                    (unsigned long long)issuer_number(world->issuer, ring));
    *newest = ring;
}

static void look_at_some(struct world *world, struct broker *broker, struct gossip *core) {
    struct watch *watch = broker->watch;
    struct gossip_inspected held;
    for (uint32_t i = 0; i < watch->named_count; i++)
        if (gossip_inspect_find(core, &world->id_of[watch->named[i]], &held)) look(world, broker, &held);
    if (++watch->events % care_for(world)->turn_events != 0) return;
    if (gossip_inspect_self(core, &held)) look(world, broker, &held);
    if (!gossip_inspect_at(core, watch->turn++, &held)) {
        watch->turn = 0;
        return;
    }
    look(world, broker, &held);
}

void invariants_check(struct world *world, struct broker *broker) {
    struct watch *watch = broker->watch;
    if (!broker->strategy->core || broker->sort == SORT_HOSTILE || broker->sort == SORT_FOREIGN) return;
    struct gossip *core = broker->strategy->core(broker->node);
    struct gossip_inspected held;
    if (issuer_count(world->issuer) > 0) check_ring(world, broker, core);
    if (world->broker_count > LOOK_AT_ALL) {
        look_at_some(world, broker, core);
    } else {
        if (gossip_inspect_self(core, &held)) look(world, broker, &held);
        for (size_t i = 0; gossip_inspect_at(core, i, &held); i++)
            if (!held.self) look(world, broker, &held);
    }
    watch->named_count = 0;
}

void invariants_before(struct world *world, struct broker *broker) {
    if (!broker->strategy->core || world->events % care_for(world)->sizes_events != 0) return;
    const struct gossip_limits *limits = &world->plan->limits;
    struct gossip_sizes sizes;
    gossip_inspect_sizes(broker->strategy->core(broker->node), &sizes);
    if (sabotaged(world, broker, SABOTAGE_QUEUE)) sizes.datagrams = 100000;
    size_t members = limits->members_max ? limits->members_max : MEMBERS_DEFAULT;
    size_t queued = limits->datagrams_queued_max ? limits->datagrams_queued_max : QUEUED_DEFAULT;
    if (world->broker_max > members) members = world->broker_max + UNVERIFIED_CAP;
    if (sizes.members > members || sizes.members_unverified > UNVERIFIED_CAP || sizes.datagrams > queued ||
        sizes.relays > RELAYS_CAP || sizes.strangers > STRANGERS_CAP)
        world_break(
            world, "I6: %s is over a cap: %zu members (%zu not verified), %zu datagrams, %zu relays, %zu strangers",
            broker->name, sizes.members, sizes.members_unverified, sizes.datagrams, sizes.relays, sizes.strangers);
}

void invariants_after_tick(struct world *world, struct broker *broker, uint64_t now_ms) {
    if (broker->strategy->deadline_ms(broker->node) <= now_ms || sabotaged(world, broker, SABOTAGE_SPIN))
        world_break(world, "%s ticks and its deadline does not move: a daemon would spin", broker->name);
}

void invariants_on_datagram(struct world *world, struct broker *broker, const struct gossip_datagram *datagram) {
    size_t size = sabotaged(world, broker, SABOTAGE_SIZE) ? GOSSIP_DATAGRAM_MAX + 1 : datagram->size;
    struct gossip_address to = sabotaged(world, broker, SABOTAGE_AMPLIFY) ? network_victim(0) : datagram->to;
    uint32_t number;
    if (size > GOSSIP_DATAGRAM_MAX) world_break(world, "I7: %s sends a datagram of %zu bytes", broker->name, size);
    uint64_t second = world_now_us(world) / AGENDA_S;
    broker->sent_in_second = broker->second == second ? broker->sent_in_second + 1 : 1;
    broker->second = second;
    if (sabotaged(world, broker, SABOTAGE_STORM)) broker->sent_in_second += STORM;
    if (broker->sent_in_second > STORM + STORM_OF_EACH * world->broker_count)
        world_break(world, "P20: %s sent %u datagrams in a second", broker->name, broker->sent_in_second);
    if (!network_is_victim(&to, &number) || number >= VICTIMS) return;
    struct victim *victim = &broker->watch->victims[number];
    victim->sent += size;
    if (victim->sent > GRANT * victim->received)
        world_break(world, "I8: %s sent %llu bytes to an address that sent %llu and proved nothing", broker->name,
                    (unsigned long long)victim->sent, (unsigned long long)victim->received);
}

void invariants_on_arrival(struct world *world, struct broker *broker, const struct gossip_address *from, size_t size) {
    uint32_t number;
    (void)world;
    if (network_is_victim(from, &number) && number < VICTIMS) broker->watch->victims[number].received += size;
}

static void name(struct watch *watch, uint32_t identity) {
    if (watch->named_count > 0 && watch->named[watch->named_count - 1] == identity) return;
    if (watch->named_count < NAMED_MAX) watch->named[watch->named_count++] = identity;
}

static void on_row(struct world *world, struct broker *broker, uint32_t identity, const struct gossip_event *event) {
    struct view *view = &broker->watch->views[identity];
    uint64_t hash = truth_row_hash(event->row_kind, event->filter, event->filter_size);
    if (!view->told_visible)
        world_break(world, "I5: %s tells of a row of %s, which is not shown", broker->name, name_of(world, identity));
    view->told_hash += event->active ? hash : -hash;
}

/* One with a bad cable may well accuse others. */
static void on_conduct(struct world *world, const struct broker *broker, const struct gossip_event *event) {
    uint32_t identity = sabotaged(world, broker, SABOTAGE_NAMED) ? 2 : world_identity(world, &event->id);
    if (identity < world->broker_count && event->trouble != MEMBER_TROUBLE_ACCUSES)
        world_break(world, "I13: %s says of %s: %s", broker->name, name_of(world, identity), event->text);
}

void invariants_on_event(struct world *world, struct broker *broker, const struct gossip_event *event) {
    if (event->kind == GOSSIP_CONDUCT) on_conduct(world, broker, event);
    struct watch *watch = broker->watch;
    bool is_row = event->kind == GOSSIP_ROW, is_member = event->kind == GOSSIP_MEMBER;
    uint32_t identity = is_row || is_member ? world_identity(world, &event->id) : UINT32_MAX;
    if (identity == UINT32_MAX || !broker->strategy->core) return;
    name(watch, identity);
    if (watch->view_count == 0) return;
    if (is_row) {
        on_row(world, broker, identity, event);
        return;
    }
    struct view *view = &watch->views[identity];
    bool visible = event->state == MEMBER_ALIVE || event->state == MEMBER_SUSPECT;
    if (!visible || !view->told_visible || event->epoch != view->told_epoch) view->told_hash = 0;
    view->told_visible = visible;
    view->told_epoch = event->epoch;
    if (visible || !sabotaged(world, broker, SABOTAGE_HIDDEN)) return;
    struct gossip_event untimely = *event;
    untimely.kind = GOSSIP_ROW;
    untimely.filter = "of/the/dead";
    untimely.filter_size = 11;
    on_row(world, broker, identity, &untimely);
}

/* ---- what takes time to be wrong ---- */

/* How many were seen alive at an address, in the broker in hand. */
struct at_address {
    struct gossip_address address;
    uint32_t count;
};

static struct at_address *find_address(const struct world *world, struct at_address *seen,
                                       const struct gossip_address *address) {
    uint64_t hash = standin_hash(address->port, address->ip, sizeof address->ip);
    uint32_t slot = (uint32_t)hash & world->id_mask;
    while (seen[slot].address.family != 0 && (memcmp(seen[slot].address.ip, address->ip, sizeof address->ip) != 0 ||
                                              seen[slot].address.port != address->port))
        slot = (slot + 1) & world->id_mask;
    return &seen[slot];
}

static void check_sharing(struct world *world, const struct broker *viewer, uint32_t identity, bool shares) {
    struct view *view = &viewer->watch->views[identity];
    uint64_t now = world_now_us(world);
    if (!shares)
        view->shared_us = 0;
    else if (view->shared_us == 0)
        view->shared_us = now;
    else if (now - view->shared_us > AT_ONE_ADDRESS_US)
        world_break(world, "I11: %s sees %s alive at the address of another live broker for %.0f s", viewer->name,
                    name_of(world, identity), (double)(now - view->shared_us) / 1e6);
}

static bool is_alive_somewhere(const struct gossip_inspected *held) {
    return held->state == MEMBER_ALIVE && held->address.family != 0;
}

/* All are counted first: the order in which members come is not always the same. */
static void check_addresses(struct world *world, struct broker *viewer) {
    struct gossip *core = viewer->strategy->core(viewer->node);
    struct at_address *seen = memory_new((size_t)world->id_mask + 1, sizeof *seen);
    struct gossip_inspected held;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; gossip_inspect_at(core, i, &held); i++) {
            uint32_t identity = world_identity(world, &held.id);
            if (identity == UINT32_MAX || held.self) continue;
            tamper(world, viewer, identity, &held);
            struct at_address *at = is_alive_somewhere(&held) ? find_address(world, seen, &held.address) : NULL;
            if (at && pass == 0) *at = (struct at_address){held.address, at->count + 1};
            if (pass == 1) check_sharing(world, viewer, identity, at && at->count > 1);
        }
    }
    free(seen);
}

/* One broker at a time: all that it holds is looked through. */
void invariants_poll(struct world *world) {
    const struct care *care = care_for(world);
    uint64_t turn = world->polls++;
    if (!world->strategy->core || turn % care->turn_polls != 0) return;
    uint32_t viewers = (world->broker_max + care->viewers - 1) / care->viewers;
    struct broker *broker = &world->brokers[turn / care->turn_polls % viewers * care->viewers];
    bool ours = broker->sort == SORT_HONEST && broker->node && broker->watch->view_count > 0 &&
                broker->frozen_us <= world_now_us(world);
    if (ours) check_addresses(world, broker);
}
