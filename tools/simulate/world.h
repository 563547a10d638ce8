/* A simulated federation: brokers on a virtual network and a virtual clock, the load, what goes wrong, what is checked
 * and what is measured. One thread; a run is a pure function of its plan, whose seed is part of it.
 *
 * Files: world.c the loop, brokers.c the life of a broker, faults.c what goes wrong, invariants.c what must hold after
 * every event, measure.c what is counted, ahead.c why it is not slower, hostile.c and older.c brokers that are not like
 * ours.
 */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include <stdio.h>

#include "tools/simulate/agenda.h"
#include "tools/simulate/channels.h"
#include "tools/simulate/issuer.h"
#include "tools/simulate/links.h"
#include "tools/simulate/dice.h"
#include "tools/simulate/measure.h"
#include "tools/simulate/network.h"
#include "tools/simulate/plan.h"
#include "tools/simulate/standin.h"
#include "tools/simulate/strategy.h"
#include "tools/simulate/truth.h"

#define WORLD_STRANGERS_MAX 8u /* clones, hostile and foreign brokers at a time, beyond those of the plan */
#define WORLD_MANY 4000u       /* brokers: beyond, the small records that each keeps of all take most of the memory */
#define WORLD_WHY_MAX 400u
#define WORLD_FEDERATION "simulated"

/* A row that the broker's clients want. */
struct wanted_row {
    enum gossip_row_kind kind;
    uint32_t number;
};

enum broker_sort { SORT_HONEST, SORT_CLONE, SORT_FOREIGN, SORT_HOSTILE };

struct watch;   /* invariants.c: what a broker held when last looked at */
struct hostile; /* hostile.c */

struct broker {
    char name[GOSSIP_NAME_MAX + 1];
    uint32_t index, identity, site;
    enum broker_sort sort;
    const struct strategy *strategy;
    void *node;      /* NULL: it does not run */
    bool used, away; /* away: a fault keeps it from running, and will start it again */
    bool leaving, older;
    bool blocked; /* no datagram passes to or from it, streams do */
    struct standin crypto;
    struct author *author;
    uint64_t epoch;                /* on its disk; 0: it never ran, or lost it */
    uint32_t ring, ring_before[2]; /* of issuer.h, on its disk; what was there at its last two starts */
    uint32_t starts;
    int32_t drift_ppm;
    uint64_t tick_us; /* when the entry of the agenda that counts will come; UINT64_MAX: none */
    uint64_t due_us;  /* when its node wants a tick: no earlier, and UINT64_MAX when it wants none */
    uint64_t frozen_us, slow_us;
    size_t waiting_size; /* bytes that came while it did not run */
    uint64_t second;     /* of the datagrams counted in */
    uint32_t sent_in_second;
    struct wanted_row *rows;
    size_t row_count, row_room;
    uint32_t rows_made;
    uint64_t started_us;
    uint64_t joined_us; /* since this start it agrees with the others; UINT64_MAX: not yet */
    uint64_t bytes_at_start;
    struct watch *watch;
    struct hostile *hostile;
};

/* A fault that has begun. */
struct trouble {
    bool active;
    struct plan_fault fault;
    uint32_t broker; /* PLAN_ANY: none in particular */
    uint32_t cut;    /* NETWORK_CUTS_MAX: none */
    uint32_t number; /* never used twice */
    bool cut_on;
    uint32_t steps; /* of a change of the key: still to be done */
};

/* Faults made on purpose, to see that a check notices. */
enum sabotage {
    SABOTAGE_NONE,
    SABOTAGE_ROW,       /* a replica shows a row that its owner never had */
    SABOTAGE_SEQUENCE,  /* a replica goes back */
    SABOTAGE_DELETED,   /* a replica shows an older state under a newer sequence */
    SABOTAGE_SIGNATURE, /* brokers take every signature for good */
    SABOTAGE_HIDDEN,    /* rows are told of an owner that is down */
    SABOTAGE_QUEUE,     /* a queue is over its cap */
    SABOTAGE_SIZE,      /* a datagram is too large */
    SABOTAGE_AMPLIFY,   /* much is sent to an address that proved nothing */
    SABOTAGE_SELF,      /* a broker believes itself dead */
    SABOTAGE_EVIDENCE,  /* evidence is forgotten: a head, */
    SABOTAGE_ACCUSED,   /* an accusation that no head has refuted, */
    SABOTAGE_BURIED,    /* a death */
    SABOTAGE_ADDRESS,   /* two live brokers at one address */
    SABOTAGE_STORM,     /* a broker sends without end */
    SABOTAGE_SPIN,      /* a tick does not move the deadline */
    SABOTAGE_DISAGREE,  /* a broker's table differs for good */
    SABOTAGE_RING,      /* a broker uses a key ring that nobody signed */
    SABOTAGE_RING_BACK, /* or goes back to an earlier one */
    SABOTAGE_NAMED      /* an honest broker is named for what a hostile one did */
};

struct world {
    const struct plan *plan;
    const struct strategy *strategy;
    struct agenda agenda;
    struct network *network;
    struct dice dice, chaos_dice, load_dice;
    struct standin_world crypto;
    struct gossip_shared *shared; /* what the brokers hold alike is held once */
    struct channels *channels;
    struct links *links;
    struct issuer *issuer;
    void *common; /* what the strategy's brokers share */
    struct truth *truth;
    struct measure *measure;
    struct broker *brokers;
    uint32_t broker_max, broker_count; /* with and without strangers */
    uint32_t *ids;                     /* hash table: identity + 1 by id */
    uint32_t id_mask;
    struct member_id *id_of; /* by identity */
    struct trouble *troubles;
    size_t trouble_count, trouble_room;
    uint32_t troubles_made;
    bool quiet;       /* the faults are over */
    uint64_t load_us; /* when changes begin */
    uint64_t last_trouble_us;
    uint64_t trace_hash, events, polls;
    void *heap_end;       /* memory_in_large_pages() */
    FILE *trace;          /* NULL: none */
    bool trace_datagrams; /* each of them too */
    enum sabotage sabotage;
    char why[WORLD_WHY_MAX]; /* the first invariant that broke; empty: all hold */
};

/* strategy, trace: NULL is Hobnob, and none. The plan must outlive the world. */
struct world *world_new(const struct plan *plan, const struct strategy *strategy, FILE *trace, enum sabotage sabotage);
void world_free(struct world *world);
/* Runs to the end, or until an invariant breaks. progress is called now and then; NULL: not. False: world->why. */
typedef void world_on_progress(void *context, const struct world *world);
bool world_run(struct world *world, world_on_progress *progress, void *context);

/* ---- for the files of the world ---- */

enum world_event {
    EVENT_ARRIVAL, /* which: packet */
    EVENT_FRAME,   /* frame of channels.h */
    EVENT_LINK,    /* parcel of links.c */
    EVENT_TICK,    /* broker */
    EVENT_START,   /* broker */
    EVENT_CHANGE,  /* broker: its clients' wishes */
    EVENT_RESOLVE, /* broker: names of the bootstrap again */
    EVENT_FAULT,   /* fault of the plan */
    EVENT_CHAOS,   /* kind of fault */
    EVENT_TROUBLE, /* end of a trouble */
    EVENT_FLAP,    /* trouble */
    EVENT_STALL,   /* trouble */
    EVENT_ROTATE,  /* trouble */
    EVENT_HOSTILE, /* broker */
    EVENT_POLL
};

static inline uint64_t world_now_us(const struct world *world) {
    return world->agenda.now_us;
}
void world_trace(struct world *world, const struct broker *broker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An invariant is broken; the first one counts. */
void world_break(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Identity by id; UINT32_MAX for none. */
uint32_t world_identity(const struct world *world, const struct member_id *id);
/* The broker of the plan that holds this identity. */
static inline struct broker *world_owner(const struct world *world, uint32_t identity) {
    return &world->brokers[identity];
}
/* The table is the same everywhere. */
bool world_agrees(const struct world *world);
/* And it is the truth. Says why not. */
bool world_is_true(struct world *world, char why[WORLD_WHY_MAX]);

/* brokers.c */
bool broker_runs(const struct broker *broker);
bool broker_is_well(const struct world *world, const struct broker *broker); /* runs, honest, in time */
/* With what it seals, as far as its disk says. */
struct gossip_key broker_key(const struct world *world, const struct broker *broker);
uint64_t broker_now_ms(const struct world *world, const struct broker *broker);
void broker_start(struct world *world, struct broker *broker, enum fault_disk disk);
void broker_stop(struct world *world, struct broker *broker);
void broker_receive(struct world *world, uint32_t packet);
void broker_tick(struct world *world, struct broker *broker);
void broker_resolve(struct world *world, struct broker *broker);
void broker_change(struct world *world, struct broker *broker);
/* After every call into its node: fetches what it wants sent and told, checks it, asks for its next deadline. */
void broker_touched(struct world *world, struct broker *broker);
/* A place for a clone, hostile or foreign broker at this site; NULL when all are taken. */
struct broker *broker_stranger(struct world *world, enum broker_sort sort, uint32_t site);
void broker_write_filter(const struct world *world, const struct broker *broker, const struct wanted_row *row,
                         char filter[256]);

/* ahead.c: before the next event. */
void ahead_fetch(const struct world *world);

/* faults.c */
void faults_begin(struct world *world);
void faults_on_event(struct world *world, const struct agenda_entry *entry);
void faults_end_all(struct world *world);

/* older.c: leaves out the kinds of messages that the first version did not know. Returns the new size. */
size_t older_filter(uint8_t *bytes, size_t size, const struct gossip_key *key, const char *federation);

/* explain.c: the messages of a datagram, for a trace. */
void explain_datagram(const struct world *world, const struct gossip_datagram *datagram, char *text, size_t room);

/* hostile.c */
void hostile_begin(struct world *world, struct broker *broker);
void hostile_end(struct broker *broker);
void hostile_act(struct world *world, struct broker *broker);
/* What its own core sends, and what comes to it. */
void hostile_speaks(struct world *world, struct broker *broker, struct gossip_datagram *datagram);
void hostile_hears(struct broker *broker, const struct network_packet *packet);

/* invariants.c */
void invariants_watch(struct world *world, struct broker *broker); /* it starts */
void invariants_forget(struct world *world, struct broker *broker);
void invariants_expect(const struct broker *broker); /* soon: a hint for the caches */
void invariants_on_datagram(struct world *world, struct broker *broker, const struct gossip_datagram *datagram);
void invariants_on_arrival(struct world *world, struct broker *broker, const struct gossip_address *from, size_t size);
void invariants_on_event(struct world *world, struct broker *broker, const struct gossip_event *event);
/* What it has queued, before it is taken. */
void invariants_before(struct world *world, struct broker *broker);
void invariants_after_tick(struct world *world, struct broker *broker, uint64_t now_ms);
void invariants_check(struct world *world, struct broker *broker);
void invariants_poll(struct world *world); /* what takes time to be wrong */

#endif
