/* What brokers let cross, as their operators wrote it, and when. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

static struct policy *make(const struct world_rule *rules, size_t count) {
    struct policy *policy = policy_new();
    assert(policy != NULL);
    for (size_t i = 0; i < count; i++) {
        struct policy_list *list = policy_list(policy, rules[i].peer, rules[i].kind);
        assert(list != NULL);
        if (rules[i].filter != NULL) policy_list_add(list, rules[i].filter, strlen(rules[i].filter));
    }
    return policy;
}

void world_set_policy(struct world *world, size_t index, const struct world_rule *rules, size_t count) {
    struct world_node *node = world->nodes[index];
    node->policies = realloc(node->policies, (node->policy_count + 1) * sizeof *node->policies);
    assert(node->policies != NULL && count <= WORLD_RULES_MAX);
    struct world_policy *policy = &node->policies[node->policy_count++];
    *policy =
        (struct world_policy){.policy = make(rules, count), .rule_count = count, .since_us = heap_now_us(world->heap)};
    memcpy(policy->rules, rules, count * sizeof *rules);
    trace_line(&world->trace, heap_now_us(world->heap), node->name, "has another policy, of %zu rules", count);
    if (node->node == NULL) return;
    node_set_policy(node->node, world_node_now_ms(node), policy->policy);
    world_flush(node);
}

const struct policy *world_policy_of(const struct world_node *node) {
    return node->policy_count > 0 ? node->policies[node->policy_count - 1].policy : NULL;
}

void world_policies_free(struct world_node *node) {
    for (size_t i = 0; i < node->policy_count; i++)
        policy_free(node->policies[i].policy);
    free(node->policies);
}
