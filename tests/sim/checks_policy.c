/* Checks of what may cross: a model of the policy, apart from broker/policy.h. */
#include <string.h>

#include "tests/sim/checks.h"

/* Does a filter of this list match? No list of this peer: is_there says so. */
static bool is_listed(const struct world_policy *policy, const char *peer, enum policy_kind kind, const char *topic,
                      bool *is_there) {
    bool listed = false;
    *is_there = false;
    for (size_t i = 0; i < policy->rule_count; i++) {
        const struct world_rule *rule = &policy->rules[i];
        if (rule->kind != kind || strcmp(rule->peer, peer) != 0) continue;
        *is_there = true;
        listed |= rule->filter != NULL && checks_matches(rule->filter, topic);
    }
    return listed;
}

static bool lets(const struct world_policy *policy, const char *peer, enum policy_kind way, const char *topic) {
    bool is_there;
    if (is_listed(policy, "", POLICY_PRIVATE, topic, &is_there)) return false;
    bool listed = is_listed(policy, peer, way, topic, &is_there);
    if (!is_there) listed = is_listed(policy, "", way, topic, &is_there);
    return !is_there || listed;
}

/* One end: what it said at any time from then on. Before its first policy everything may cross. */
static struct checks_crossing end_lets(const struct world_node *node, const char *peer, enum policy_kind way,
                                       const char *topic, uint64_t since_us) {
    bool was_open = node->policy_count == 0 || node->policies[0].since_us > since_us;
    struct checks_crossing result = {.always = true, .ever = was_open};
    for (size_t i = 0; i < node->policy_count; i++) {
        if (i + 1 < node->policy_count && node->policies[i + 1].since_us < since_us) continue;
        bool good = lets(&node->policies[i], peer, way, topic);
        result.always &= good;
        result.ever |= good;
    }
    return result;
}

struct checks_crossing checks_crossing(const struct world *world, size_t from_host, size_t to_host, const char *topic,
                                       uint64_t since_us) {
    const struct world_node *from = world_node_on(world, from_host), *to = world_node_on(world, to_host);
    if (from == to) return (struct checks_crossing){.always = true, .ever = true};
    struct checks_crossing out = end_lets(from, to->name, POLICY_EXPORT, topic, since_us),
                           in = end_lets(to, from->name, POLICY_IMPORT, topic, since_us);
    return (struct checks_crossing){.always = out.always && in.always, .ever = out.ever && in.ever};
}
