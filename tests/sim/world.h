/* A simulated world: brokers (struct node, the daemon's own joint of the three cores), clients, a network, and the time
 * in which it all happens.
 *
 * A broker here is what the daemon makes of a node: the same ports, in the same order of effects (input, pump, flush,
 * timer).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdio.h>

#include "broker/policy.h"
#include "daemon/node.h"
#include "tests/sim/client.h"
#include "tests/sim/credentials.h"
#include "tests/sim/disk.h"

#define WORLD_PEERS_PORT 7100u
#define WORLD_NAME_MAX 64u
#define WORLD_STARTS 32u
#define WORLD_LOGS_MAX 48u
#define WORLD_EVENTS_MAX 5000000u /* more means that something answers itself for ever; time stands still then */
#define WORLD_WALL_S 1800000000   /* the wall clock at the start, seconds since 1970 */

struct world;

/* Lines of one event name that a broker logged. */
struct world_log {
    char event[24];
    uint64_t count;
    char last[240];
};

/* A filter of a list of a policy (broker/policy.h). */
struct world_rule {
    const char *peer; /* "" for all */
    enum policy_kind kind;
    const char *filter; /* NULL: the list is there; it may be empty */
};
#define WORLD_RULES_MAX 16u

struct world_policy {
    struct policy *policy;
    struct world_rule rules[WORLD_RULES_MAX];
    size_t rule_count;
    uint64_t since_us;
};

struct world_connection {
    network_end end;
    broker_handle handle;
    bool link, accepted; /* link or client; accepted or dialled */
    bool connected;
};

struct world_node {
    struct world *world;
    char name[WORLD_NAME_MAX];
    size_t index, host;
    /* What it has on its disk. Change it while it is down. */
    struct auth_key *key;
    char *token;
    struct auth_ring ring;
    const char *federation;
    uint64_t saved_epoch;
    size_t *bootstrap, bootstrap_count; /* nodes, resolved at start and every 5 s */
    int64_t wall_skew_ms;

    struct node *node; /* NULL while it is down */
    bool leaving;
    uint64_t run; /* counts starts: timers of an earlier run do nothing */
    uint64_t clock_base_ms, armed_ms;
    struct world_connection *connections;
    size_t connection_count, connection_room;
    broker_handle *ready; /* handles with output */
    bool *ready_is_link;
    size_t ready_count, ready_room;

    struct disk *disk;
    struct record_buffer unsaved, saving; /* given and not begun; in the transaction that runs */
    uint64_t unsaved_last, saving_last;   /* numbers of their last records */
    uint64_t disk_losses;
    uint64_t crashed_us; /* the last time; 0: never */

    uint64_t started_us, ticks;
    uint64_t starts_us[WORLD_STARTS];      /* of all runs, one after the other */
    uint64_t spins;                        /* times at which the deadline after a tick was not in the future */
    struct world_log logs[WORLD_LOGS_MAX]; /* since the world began */
    size_t log_count;

    struct gossip_limits gossip_limits;
    struct world_policy *policies; /* one after the other; none: everything may cross. world_policy.c */
    size_t policy_count;
    struct world_hostility *hostility; /* NULL: it is honest. world_hostile.c */
};

struct world_options {
    uint64_t seed;
    FILE *trace; /* NULL: hash only */
    struct broker_limits broker_limits;
    struct gossip_limits gossip_limits;
    uint32_t commit_us_max; /* longest commit; 0: DEFAULT_COMMIT_US */
};
#define DEFAULT_COMMIT_US 3000u

struct world {
    struct world_options options;
    struct heap *heap;
    struct network *network;
    struct dice dice, disk_dice;
    struct trace trace;
    struct journal journal;
    struct auth_key *issuer;
    struct auth_ring ring;
    struct world_node **nodes;
    size_t node_count;
    struct sim_client **clients;
    size_t client_count;
};

struct world *world_new(const struct world_options *options);
void world_free(struct world *world);

/* A broker with a good token, knowing nobody, down. */
struct world_node *world_add_node(struct world *world, const char *name);
/* count brokers edge-1, edge-2 ... that all know each other, down. */
void world_add_nodes(struct world *world, size_t count);
void world_know(struct world *world, size_t node, const size_t *peers, size_t count);
void world_set_token(struct world *world, size_t node, enum credentials_fault fault);

void world_start(struct world *world, size_t node);
void world_start_all(struct world *world);
/* NETWORK_DOWN: the process dies (kill -9). NETWORK_DARK: power is cut. What was not committed is gone, and of the
 * transaction that runs all or nothing is there at the next start. */
void world_crash(struct world *world, size_t node, enum network_power how);
/* While it is down: its disk is replaced by an empty one. The epoch goes with it. */
void world_lose_disk(struct world *world, size_t node);
/* SIGSTOP, and SIGCONT after this time: everything it missed comes at once. */
void world_pause(struct world *world, size_t node, uint64_t ms);
/* SIGTERM: leaves in order, then is down. */
void world_leave(struct world *world, size_t node);

/* A client that connects to this broker at once. */
struct sim_client *world_add_client(struct world *world, const struct sim_client_options *options, size_t node);
/* MQTT 5.0, clean start, no keep alive. */
struct sim_client *world_add_plain_client(struct world *world, const char *id, size_t node);

/* Brokers on different sides do not reach each other, nor do their clients. */
void world_partition(struct world *world, const bool *side);
void world_cut(struct world *world, size_t from, size_t to, bool cut);

void world_run_ms(struct world *world, uint64_t ms);
/* Runs until the condition holds, looking every 10 ms; false when max_ms are over. */
bool world_run_until(struct world *world, uint64_t max_ms, bool (*holds)(struct world *world, void *context),
                     void *context);
uint64_t world_now_ms(const struct world *world);

const struct world_log *world_log_of(const struct world_node *node, const char *event); /* NULL if there is none */

/* world_disk.c: the storage thread of a broker. */
/* Gives the broker what its disk holds. */
void world_disk_restore(struct world_node *node);
/* After each turn: hands the journal over; a transaction begins if none runs. */
void world_disk_turn(struct world_node *node);
/* The port store. */
void world_disk_give(void *context, const struct broker_journal *journal);
/* An orderly end: all is written. */
void world_disk_flush(struct world_node *node);
/* An end that is none: all that was given is gone, but perhaps the transaction that runs. */
void world_disk_crash(struct world_node *node);
void world_disk_free(struct world_node *node);

/* world_policy.c */
/* From now on, also while it runs; the texts are borrowed. */
void world_set_policy(struct world *world, size_t node, const struct world_rule *rules, size_t count);
const struct policy *world_policy_of(const struct world_node *node);
void world_policies_free(struct world_node *node);

/* world_hostile.c: a broker with gossip key and token that does harm, beside a core that is as honest as any. */
/* Before it starts for the first time. */
void world_make_hostile(struct world *world, size_t node);
/* So many rounds of this attack (tests/hostile/attacks.c) from now on, beside those that run; none while it is down. */
void world_attack(struct world *world, size_t node, const char *word, uint64_t rounds);
/* Ends all its attacks. */
void world_desist(struct world *world, size_t node);
bool world_attacks(const struct world_node *node);
/* It has started. */
void world_hostile_start(struct world_node *node);
void world_hostile_hear(struct world_node *node, const struct gossip_address *from, const uint8_t *bytes, size_t size);
void world_hostile_free(struct world_node *node);

/* An event of this run of the broker; those of an earlier one do nothing. */
void world_push(struct world_node *node, uint64_t delay_us, void (*fire)(struct event *event));
/* NULL if the event is of an earlier run, or comes again because the broker is paused. */
struct world_node *world_take(struct event *event);

/* For world.c and world_ports.c. */
/* The broker on this host; NULL if it is a client's. */
struct world_node *world_node_on(const struct world *world, size_t host);
uint64_t world_node_now_ms(const struct world_node *node);
int64_t world_node_wall_ms(const struct world_node *node);
void world_flush(struct world_node *node);
struct network_ports world_network_ports(struct world_node *node);
struct node_ports world_node_ports(struct world_node *node);

#endif
