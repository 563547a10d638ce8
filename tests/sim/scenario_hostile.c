/* A broker with the gossip key, a key of its own and a valid token that does harm: G11, G12, P7, P9. At the others
 * nothing changes but counters and its own rows, and they name it. */
#include <string.h>

#include "tests/hostile/attacks.h"
#include "tests/sim/scenario.h"

#define SETTLE_MS 15000u
#define HONEST 3u
#define HOSTILE HONEST        /* its number */
#define GONE 2u               /* who goes away, where one does */
#define MEMORY_MAX (8u << 20) /* that all together may grow by, whatever is said to them */

/* Everybody has rows, and one of them has withdrawn some. */
static bool with_hostile_broker(struct run *run, struct world *world) {
    world_add_nodes(world, HONEST + 1);
    world_make_hostile(world, HOSTILE);
    world_start_all(world);
    for (size_t i = 0; i < HONEST; i++) {
        char id[64];
        snprintf(id, sizeof id, "watch-%zu", i + 1);
        sim_client_subscribe(world_add_plain_client(world, id, i), "wanted/#", 2);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    sim_client_subscribe(world->clients[1], "gone/#", 1);
    world_run_ms(world, 500);
    sim_client_unsubscribe(world->clients[1], "gone/#");
    for (size_t i = 0; i < HONEST; i++)
        sim_client_publish(world->clients[i], "wanted/here", 1, false, 16);
    world_run_ms(world, 6000); /* a row that nobody wants lingers */
    return run_settle(run, world, SETTLE_MS);
}

/* The others hold one another alive, or at worst for as long as a question takes not, and show what they have. */
static bool unharmed(struct run *run, struct world *world) {
    char why[CHECKS_WHY] = "";
    CHECK(checks_conduct(world, why) && checks_bounded(world, why), "%s", why);
    for (size_t i = 0; i < HONEST; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        CHECK(counters.deaths == 0, "%s has declared %llu others dead", world->nodes[i]->name,
              (unsigned long long)counters.deaths);
    }
    return true;
}

static enum member_trouble trouble_of(const struct world *world, size_t viewer, size_t node) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    struct member_id id;
    struct member_info info = {0};
    auth_key_thumbprint(world->nodes[node]->key, thumbprint);
    memcpy(id.bytes, thumbprint, sizeof id.bytes);
    gossip_member_find(node_gossip(world->nodes[viewer]->node), world_node_now_ms(world->nodes[viewer]), &id, &info);
    return info.trouble;
}

/* Of what comes with a name that it has no right to, or names nobody, it is not known who said it. */
static const struct {
    const char *word; /* NULL: all at once */
    uint64_t rounds;
    enum member_trouble trouble; /* NONE: any */
} attacks[] = {
    {"ping", 25, MEMBER_TROUBLE_RULES},      {"forge", 50, MEMBER_TROUBLE_RULES},
    {"behead", 50, MEMBER_TROUBLE_RULES},    {"pretend", 50, MEMBER_TROUBLE_NONE},
    {"replay", 50, MEMBER_TROUBLE_RULES},    {"accuse", 50, MEMBER_TROUBLE_ACCUSES},
    {"claim", 25, MEMBER_TROUBLE_NONE},      {"advertise", 50, MEMBER_TROUBLE_LIMITS},
    {"equivocate", 50, MEMBER_TROUBLE_NONE}, {"flood", 75, MEMBER_TROUBLE_RULES},
    {"garbage", 50, MEMBER_TROUBLE_RULES},   {NULL, 15, MEMBER_TROUBLE_RULES},
};

static bool named(struct run *run, struct world *world, const char *word, enum member_trouble trouble) {
    for (size_t i = 0; i < HONEST && trouble != MEMBER_TROUBLE_NONE; i++)
        CHECK(trouble_of(world, i, HOSTILE) == trouble, "%s, to which edge-4 does %s, sees trouble %d in it, not %d",
              world->nodes[i]->name, word, (int)trouble_of(world, i, HOSTILE), (int)trouble);
    return true;
}

static bool tables_agree(struct world *world, void *why) {
    return checks_registry_agrees(world, why) && checks_tables_agree(world, why);
}

/* Variants: each attack, and all together. */
static bool hostile_broker_changes_nothing_of_others(struct run *run, struct world *world) {
    if (!with_hostile_broker(run, world)) return false;
    const char *word = attacks[run->variant].word;
    size_t before = checks_memory();
    uint64_t from_us = heap_now_us(world->heap);
    for (size_t i = 0; word == NULL && hostile_word_at(i) != NULL; i++)
        world_attack(world, HOSTILE, hostile_word_at(i), attacks[run->variant].rounds);
    if (word != NULL) world_attack(world, HOSTILE, word, attacks[run->variant].rounds);
    for (unsigned i = 0; world_attacks(world->nodes[HOSTILE]); i++) {
        sim_client_publish(world->clients[i % HONEST], "wanted/here", (uint8_t)(i % 3), false, 32);
        world_run_ms(world, 50);
        if (!unharmed(run, world)) return false;
        CHECK(checks_memory() < before + MEMORY_MAX, "%zu bytes more are in use", checks_memory() - before);
    }
    char why[CHECKS_WHY] = "";
    CHECK(world_run_until(world, SETTLE_MS, tables_agree, why), "%s", why);
    world_run_ms(world, 10000);
    return run_settle(run, world, SETTLE_MS) && unharmed(run, world) &&
           named(run, world, word != NULL ? word : "everything", attacks[run->variant].trouble) &&
           run_verify(run, world, from_us, CHECKS_ONCE);
}

static bool registry_agrees(struct world *world, void *why) {
    return checks_registry_agrees(world, why);
}

/* Variants: held for dead, and gone in order. */
static bool hostile_broker_cannot_revive_another(struct run *run, struct world *world) {
    char why[CHECKS_WHY] = "";
    if (!with_hostile_broker(run, world)) return false;
    sim_client_drop(world->clients[GONE]);
    if (run->variant == 0)
        world_crash(world, GONE, NETWORK_DARK);
    else
        world_leave(world, GONE);
    CHECK(world_run_until(world, SETTLE_MS, registry_agrees, why), "%s", why);
    static const char *const words[] = {"forge", "behead", "pretend", "replay"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        world_attack(world, HOSTILE, words[i], 100);
    while (world_attacks(world->nodes[HOSTILE])) {
        world_run_ms(world, 20);
        CHECK(checks_registry_agrees(world, why) && checks_conduct(world, why), "%s", why);
    }
    world_start(world, GONE);
    sim_client_connect(world->clients[GONE], world->nodes[GONE]->host);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 11000); /* the longest back-off of a dial */
    uint64_t from_us = heap_now_us(world->heap);
    sim_client_publish(world->clients[0], "wanted/here", 1, false, 16);
    world_run_ms(world, 2000);
    return run_verify(run, world, from_us, CHECKS_ONCE);
}

const struct scenario scenarios_hostile[] = {
    {"hostile_broker_changes_nothing_of_others", hostile_broker_changes_nothing_of_others,
     sizeof attacks / sizeof *attacks, NULL},
    {"hostile_broker_cannot_revive_another", hostile_broker_cannot_revive_another, 2, NULL},
    {0},
};
