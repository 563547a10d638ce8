/* A schedule drawn from the seed: a while of faults, then quiet, then everything must be well again. */
#include "tests/hostile/attacks.h"
#include "tests/sim/scenario.h"

#include <string.h>

#define NODES_MAX 5u /* of honest ones */
#define QUIET_SETTLE_MS 30000u
#define LONGEST_BACK_OFF_MS 11000u

static const char *const topics[] = {"r/a", "r/b", "r/b/c", "s/a", "r/x/y/z", "s"};
static const char *const filters[] = {"#", "r/#", "r/+", "r/b", "+/a", "r/b/#", "s", "r/x/+/z", "s/#"};

struct plan {
    struct world *world;
    struct dice dice;
    struct network_weather weather;
    bool hostile; /* the last broker is; it has no clients */
    bool policed; /* brokers have policies, and change them */
    struct dice policy_dice;
    size_t member_count; /* clients, the last ones, that are members of groups and nothing else */
    struct dice member_dice;
};

static size_t draw(struct plan *plan, size_t bound) {
    return (size_t)dice_below(&plan->dice, bound);
}

static void draw_weather(struct plan *plan) {
    plan->weather = (struct network_weather){.delay_us = 200 + (uint32_t)draw(plan, 30000),
                                             .jitter_us = (uint32_t)draw(plan, 30000)};
    if (draw(plan, 3) != 0) plan->weather.loss_ppm = (uint32_t)draw(plan, 150000);
    if (draw(plan, 2) != 0) plan->weather.duplicate_ppm = (uint32_t)draw(plan, 50000);
    if (draw(plan, 2) != 0) {
        plan->weather.late_ppm = (uint32_t)draw(plan, 50000);
        plan->weather.late_us = (uint32_t)draw(plan, 1000000);
    }
    if (draw(plan, 2) != 0) plan->weather.piece_bytes = 1 + (uint32_t)draw(plan, 300);
    network_set_weather(plan->world->network, &plan->weather);
}

static void subscribe(struct plan *plan, struct sim_client *client) {
    sim_client_subscribe(client, filters[draw(plan, sizeof filters / sizeof *filters)], (uint8_t)draw(plan, 3));
}

static size_t draw_policy(struct plan *plan, size_t bound) {
    return (size_t)dice_below(&plan->policy_dice, bound);
}

/* A list for all, or for one peer: of no filter, or of some. */
static void draw_list(struct plan *plan, const char *peer, enum policy_kind kind, struct world_rule *rules,
                      size_t *count) {
    rules[(*count)++] = (struct world_rule){.peer = peer, .kind = kind};
    for (size_t more = draw_policy(plan, 4); more > 0; more--)
        rules[(*count)++] = (struct world_rule){
            .peer = peer, .kind = kind, .filter = filters[draw_policy(plan, sizeof filters / sizeof *filters)]};
}

static void draw_rules(struct plan *plan, size_t node) {
    struct world *world = plan->world;
    struct world_rule rules[WORLD_RULES_MAX];
    size_t count = 0;
    for (int kind = POLICY_EXPORT; kind <= POLICY_IMPORT; kind++) {
        const char *peer = world->nodes[draw_policy(plan, world->node_count)]->name;
        if (draw_policy(plan, 3) == 0) draw_list(plan, "", (enum policy_kind)kind, rules, &count);
        if (draw_policy(plan, 3) == 0) draw_list(plan, peer, (enum policy_kind)kind, rules, &count);
    }
    if (count < WORLD_RULES_MAX && draw_policy(plan, 4) == 0)
        rules[count++] = (struct world_rule){.peer = "", .kind = POLICY_PRIVATE, .filter = "r/b"};
    world_set_policy(world, node, rules, count);
}

static size_t draw_member(struct plan *plan, size_t bound) {
    return (size_t)dice_below(&plan->member_dice, bound);
}

/* A few, in one group or two. */
static void add_members(struct plan *plan, size_t nodes) {
    static const char *const groups[] = {"$share/g/r/#", "$share/g/r/#", "$share/h/+/a"};
    if (draw_member(plan, 2) == 0) return;
    plan->member_count = 1 + draw_member(plan, 4);
    for (size_t i = 0; i < plan->member_count; i++) {
        char id[64];
        snprintf(id, sizeof id, "member-%zu", i);
        struct sim_client_options options = {.id = id,
                                             .version = draw_member(plan, 2) != 0 ? 5 : 4,
                                             .persistent = draw_member(plan, 2) != 0,
                                             .keep_alive_s = 2,
                                             .reconnects = true};
        struct sim_client *member = world_add_client(plan->world, &options, draw_member(plan, nodes));
        sim_client_subscribe(member, groups[draw_member(plan, 3)], (uint8_t)draw_member(plan, 3));
    }
}

/* One that is no member. */
static struct sim_client *draw_client(struct plan *plan) {
    return plan->world->clients[draw(plan, plan->world->client_count - plan->member_count)];
}

static void populate(struct plan *plan) {
    struct world *world = plan->world;
    size_t nodes = 2 + draw(plan, NODES_MAX - 1);
    world_add_nodes(world, nodes + plan->hostile);
    if (plan->hostile) world_make_hostile(world, nodes);
    for (size_t i = 0; i < nodes; i++) {
        world->nodes[i]->wall_skew_ms = (int64_t)draw(plan, 40000) - 20000;
        if (plan->policed) draw_rules(plan, i);
        world_start(world, i);
        for (size_t clients = 1 + draw(plan, 2); clients > 0; clients--) {
            char id[64];
            snprintf(id, sizeof id, "client-%zu-%zu", i + 1, clients);
            struct sim_client_options options = {.id = id,
                                                 .version = draw(plan, 2) != 0 ? 5 : 4,
                                                 .persistent = draw(plan, 2) != 0,
                                                 .keep_alive_s = 2,
                                                 .reconnects = true};
            subscribe(plan, world_add_client(world, &options, i));
        }
        for (size_t j = 0; j < i; j++)
            network_lengthen(world->network, world->nodes[i]->host, world->nodes[j]->host, (uint32_t)draw(plan, 40000));
        world_run_ms(world, draw(plan, 1000));
    }
    add_members(plan, nodes);
    if (plan->hostile) world_start(world, nodes);
}

/* Seldom much of it: one round may be a hundred packets to each. */
static void attack(struct plan *plan) {
    size_t count = 0;
    while (hostile_word_at(count) != NULL)
        count++;
    world_attack(plan->world, plan->world->node_count - 1, hostile_word_at(draw(plan, count)), 1 + draw(plan, 12));
}

static void publish(struct plan *plan) {
    struct sim_client *client = draw_client(plan);
    sim_client_publish(client, topics[draw(plan, sizeof topics / sizeof *topics)], (uint8_t)draw(plan, 3),
                       draw(plan, 8) == 0, 16 + draw(plan, 500));
}

/* A filter that this client was granted and still has, or none. */
static void unsubscribe(struct plan *plan) {
    struct sim_client *client = draw_client(plan);
    const struct journal *journal = &plan->world->journal;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *entry = &journal->subscriptions[i];
        if (entry->client != sim_client_number(client) || entry->granted_us == JOURNAL_NEVER ||
            entry->ended_us != JOURNAL_NEVER)
            continue;
        sim_client_unsubscribe(client, entry->filter);
        return;
    }
}

/* Only a filter that it does not have: a second wish for the same one would be the same subscription. */
static void subscribe_more(struct plan *plan) {
    struct sim_client *client = draw_client(plan);
    const char *filter = filters[draw(plan, sizeof filters / sizeof *filters)];
    const struct journal *journal = &plan->world->journal;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *entry = &journal->subscriptions[i];
        if (entry->client == sim_client_number(client) && strcmp(entry->filter, filter) == 0) return;
    }
    sim_client_subscribe(client, filter, (uint8_t)draw(plan, 3));
}

static void partition(struct plan *plan) {
    bool sides[NODES_MAX + 1] = {false};
    for (size_t i = 0; i < plan->world->node_count; i++)
        sides[i] = draw(plan, 2) != 0;
    world_partition(plan->world, sides);
}

static void restart(struct plan *plan) {
    for (size_t i = 0; i < plan->world->node_count; i++) {
        struct world_node *node = plan->world->nodes[i];
        if (node->node != NULL) continue;
        if (draw(plan, 4) == 0) world_lose_disk(plan->world, i);
        if (draw(plan, 6) == 0) network_move_host(plan->world->network, node->host);
        world_start(plan->world, i);
        return;
    }
}

static void hurt(struct plan *plan) {
    struct world *world = plan->world;
    size_t node = draw(plan, world->node_count), other = draw(plan, world->node_count);
    switch (draw(plan, 11)) {
    case 0: partition(plan); break;
    case 1:
    case 2: network_heal(world->network); break;
    case 3: world_cut(world, node, other, node != other); break;
    case 4: world_crash(world, node, NETWORK_DOWN); break;
    case 5: world_crash(world, node, NETWORK_DARK); break;
    case 6: world_leave(world, node); break;
    case 7: network_reset(world->network, world->nodes[node]->host, world->nodes[other]->host); break;
    case 8: world_pause(world, node, draw(plan, 6000)); break;
    case 9: world->nodes[node]->wall_skew_ms += (int64_t)draw(plan, 7200000) - 3600000; break;
    default: draw_weather(plan); break;
    }
}

static void step(struct plan *plan) {
    if (plan->policed && draw_policy(plan, 20) == 0)
        draw_rules(plan, draw_policy(plan, plan->world->node_count - plan->hostile));
    size_t what = draw(plan, 100);
    if (what < 60)
        publish(plan);
    else if (what < 68)
        subscribe_more(plan);
    else if (what < 72)
        unsubscribe(plan);
    else if (what < 82)
        restart(plan);
    else
        hurt(plan);
}

static void calm_down(struct plan *plan) {
    struct world *world = plan->world;
    network_heal(world->network);
    plan->weather.loss_ppm /= 10;
    plan->weather.late_ppm = 0;
    network_set_weather(world->network, &plan->weather);
    for (size_t i = 0; i < world->node_count; i++) {
        while (world->nodes[i]->leaving)
            world_run_ms(world, 100);
        if (world->nodes[i]->node == NULL) world_start(world, i);
    }
}

static bool tables_agree(struct world *world, void *why) {
    return checks_tables_agree(world, why);
}

static bool faults_then_quiet(struct run *run, struct world *world, bool hostile) {
    struct plan plan = {.world = world, .hostile = hostile};
    char why[CHECKS_WHY] = "";
    dice_init(&plan.dice, run->seed, "plan");
    dice_init(&plan.policy_dice, run->seed, "policies");
    dice_init(&plan.member_dice, run->seed, "members");
    plan.policed = draw_policy(&plan, 2) == 0;
    draw_weather(&plan);
    populate(&plan);
    for (size_t steps = 20 + draw(&plan, 120); steps > 0; steps--) {
        step(&plan);
        if (hostile && draw(&plan, 5) == 0) attack(&plan);
        world_run_ms(world, draw(&plan, 400));
        CHECK(checks_conduct(world, why) && checks_bounded(world, why), "%s", why);
    }
    calm_down(&plan);
    if (!run_settle(run, world, QUIET_SETTLE_MS)) return false;
    if (!world_run_until(world, QUIET_SETTLE_MS, tables_agree, why)) {
        checks_trace_members(world);
        return run_fail(run, "they do not agree: %s", why);
    }
    world_run_ms(world, LONGEST_BACK_OFF_MS);
    uint64_t quiet_us = heap_now_us(world->heap);
    for (size_t i = 0; i < 3 * (world->client_count - plan.member_count); i++)
        publish(&plan);
    world_run_ms(world, 8000);
    return run_settle(run, world, QUIET_SETTLE_MS) && run_verify(run, world, quiet_us, CHECKS_ONCE) &&
           ((checks_conduct(world, why) && checks_groups(world, quiet_us, CHECKS_ONCE, why)) ||
            run_fail(run, "%s", why));
}

static bool all_are_honest(struct run *run, struct world *world) {
    return faults_then_quiet(run, world, false);
}

static bool one_is_hostile(struct run *run, struct world *world) {
    return faults_then_quiet(run, world, true);
}

/* From a disk that is hardly felt to one with half a second for a commit. */
static void draw_disk(struct world_options *options) {
    struct dice dice;
    dice_init(&dice, options->seed, "commits");
    options->commit_us_max = 500u << dice_below(&dice, 11);
}

const struct scenario scenario_random = {"random", all_are_honest, 1, draw_disk},
                      scenario_random_hostile = {"random_hostile", one_is_hostile, 1, draw_disk};
