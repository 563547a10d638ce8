/* Brokers that do not belong here: G11. Each disturbs nobody, gets nothing, and is told why. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_MS 5000u

/* edge-1 and edge-2 are good, the stranger knows both and has an eager client. */
static bool with_stranger(struct run *run, struct world *world, struct world_node **stranger) {
    static const size_t peers[] = {0, 1};
    world_add_nodes(world, 2);
    world_start_all(world);
    sim_client_subscribe(world_add_plain_client(world, "good-1", 0), "#", 1);
    sim_client_subscribe(world_add_plain_client(world, "good-2", 1), "#", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    *stranger = world_add_node(world, "stranger");
    world_know(world, (*stranger)->index, peers, 2);
    return true;
}

struct row_count {
    size_t own, foreign;
};

static bool count_row(void *context, const struct member_info *owner, enum gossip_row_kind kind, const char *filter,
                      size_t size) {
    struct row_count *count = context;
    (void)kind, (void)filter, (void)size;
    count->own += owner->self;
    count->foreign += !owner->self;
    return true;
}

static struct row_count count_rows(const struct world_node *node) {
    struct row_count count = {0};
    gossip_walk_rows(node_gossip(node->node), world_node_now_ms(node), count_row, &count);
    return count;
}

/* What holds for every stranger after it ran for a while. */
static bool stranger_got_nothing(struct run *run, struct world *world, const struct world_node *stranger,
                                 struct sim_client *eager) {
    uint64_t from_us = heap_now_us(world->heap);
    size_t theirs = sim_client_publish(eager, "false/alarm", 1, false, 16),
           ours = sim_client_publish(world->clients[0], "secret", 1, false, 16);
    world_run_ms(world, 6000);
    for (size_t i = 0; i < 2; i++) {
        CHECK(journal_copies(&world->journal, i, theirs, true) == 0, "a publication of the stranger reached %s",
              sim_client_id(world->clients[i]));
        CHECK(journal_copies(&world->journal, i, ours, true) == 1, "a publication between the good was disturbed");
        struct peering_counters counters;
        broker_read_peering_counters(node_broker(world->nodes[i]->node), &counters);
        CHECK(counters.links_up <= 1, "%s has a link with the stranger", world->nodes[i]->name);
        size_t rows = count_rows(world->nodes[i]).foreign, due = count_rows(world->nodes[1 - i]).own;
        CHECK(rows == due, "%s shows %zu rows of others instead of %zu", world->nodes[i]->name, rows, due);
    }
    CHECK(journal_copies(&world->journal, sim_client_number(eager), ours, true) == 0, "the stranger got a publication");
    CHECK(count_rows(stranger).foreign == 0, "the stranger sees %zu rows", count_rows(stranger).foreign);
    (void)from_us;
    return true;
}

/* Variants: every fault of a token. */
static bool refused_token_gets_no_rows_and_no_link(struct run *run, struct world *world) {
    static const enum credentials_fault faults[] = {CREDENTIALS_EXPIRED,      CREDENTIALS_OTHER_ISSUER,
                                                    CREDENTIALS_OTHER_KEY,    CREDENTIALS_HMAC,
                                                    CREDENTIALS_NO_SIGNATURE, CREDENTIALS_CLIENT_AUDIENCE};
    struct world_node *stranger = NULL;
    if (!with_stranger(run, world, &stranger)) return false;
    world_set_token(world, stranger->index, faults[run->variant]);
    world_start(world, stranger->index);
    struct sim_client *eager = world_add_plain_client(world, "eager", stranger->index);
    sim_client_subscribe(eager, "#", 1);
    world_run_ms(world, 20000);
    if (!stranger_got_nothing(run, world, stranger, eager)) return false;
    const struct world_log *theirs = world_log_of(stranger, "refused_us");
    CHECK(theirs != NULL, "the stranger does not log that it is refused");
    CHECK(theirs->count <= 4, "the stranger logs %llu times in 26 s that it is refused",
          (unsigned long long)theirs->count);
    for (size_t i = 0; i < 2; i++) {
        const struct world_log *refused = world_log_of(world->nodes[i], "refused");
        CHECK(refused != NULL && refused->count <= 2, "%s logs the refusal %llu times", world->nodes[i]->name,
              (unsigned long long)(refused == NULL ? 0 : refused->count));
    }
    return true;
}

/* By datagram it is a stranger; its token is good, so it comes in over a link, as a broker that slept through a change
 * of the key does (P22). */
static bool wrong_gossip_key_is_counted_and_comes_in_over_a_link(struct run *run, struct world *world) {
    struct world_node *stranger = NULL;
    if (!with_stranger(run, world, &stranger)) return false;
    if (run->variant == 0) {
        credentials_ring(&world->dice, &stranger->ring);
    } else { /* the right id, another key */
        stranger->ring.keys[0].key[7] ^= 1;
    }
    world_start(world, stranger->index);
    world_run_ms(world, 20000);
    for (size_t i = 0; i < 2; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        CHECK(counters.unsealed > 0, "%s counts no datagram that it could not open", world->nodes[i]->name);
        CHECK(counters.members_alive == 3, "%s does not know the third by link", world->nodes[i]->name);
    }
    return true;
}

/* P5: its token is good, and so is the gossip key. */
static bool other_federation_is_ignored_and_counted(struct run *run, struct world *world) {
    struct world_node *stranger = NULL;
    if (!with_stranger(run, world, &stranger)) return false;
    stranger->federation = "another";
    world_start(world, stranger->index);
    struct sim_client *eager = world_add_plain_client(world, "eager", stranger->index);
    sim_client_subscribe(eager, "#", 1);
    world_run_ms(world, 20000);
    for (size_t i = 0; i < 2; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        CHECK(counters.unsealed > 0, "%s counts no datagram that it could not open", world->nodes[i]->name);
        CHECK(counters.members_alive <= 2, "%s took the stranger for a member", world->nodes[i]->name);
    }
    for (size_t i = 0; i < world->node_count; i++) { /* before the good have a link of their own to tell of */
        const struct world_log *log = world_log_of(world->nodes[i], "link");
        CHECK(log != NULL && strstr(log->last, "is of the federation \"another\"") != NULL,
              "%s does not say that it met another federation", world->nodes[i]->name);
    }
    return stranger_got_nothing(run, world, stranger, eager);
}

/* Key and token of edge-2 are used a second time: both holders are told. */
static bool second_holder_of_a_key_is_noticed(struct run *run, struct world *world) {
    struct world_node *stranger = NULL;
    char *pem = NULL;
    if (!with_stranger(run, world, &stranger)) return false;
    const struct world_node *original = world->nodes[1];
    auth_key_free(stranger->key);
    stranger->key = NULL;
    CHECK(auth_key_private_pem(original->key, &pem) == AUTH_OK &&
              auth_key_parse(pem, strlen(pem), &stranger->key) == AUTH_OK,
          "the key cannot be copied");
    free(pem);
    free(stranger->token);
    stranger->token = strdup(original->token);
    world_start(world, stranger->index);
    world_run_ms(world, 30000);
    CHECK(world_log_of(original, "cloned") != NULL || world_log_of(stranger, "cloned") != NULL,
          "nobody noticed the second holder of the key");
    return true;
}

const struct scenario scenarios_trust[] = {
    {"refused_token_gets_no_rows_and_no_link", refused_token_gets_no_rows_and_no_link, 6, NULL},
    {"wrong_gossip_key_is_counted_and_comes_in_over_a_link", wrong_gossip_key_is_counted_and_comes_in_over_a_link, 2,
     NULL},
    {"other_federation_is_ignored_and_counted", other_federation_is_ignored_and_counted, 1, NULL},
    {"second_holder_of_a_key_is_noticed", second_holder_of_a_key_is_noticed, 1, NULL},
    {0},
};
