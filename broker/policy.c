#include "broker/policy.h"

#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

struct listed {
    struct listed *next;
    size_t size;
    char filter[];
};

struct policy_list {
    bool given;
    struct listed *first;
};

/* Of one peer, or of all others. */
struct section {
    struct section *next;
    struct policy_list lists[POLICY_KINDS];
    char peer[];
};

struct policy {
    struct section *first; /* of those that have no list of their own is the one named "" */
};

struct policy *policy_new(void) {
    return calloc(1, sizeof(struct policy));
}

static void clear(struct policy_list *list) {
    while (list->first) {
        struct listed *next = list->first->next;
        free(list->first);
        list->first = next;
    }
}

void policy_free(struct policy *policy) {
    if (!policy) return;
    while (policy->first) {
        struct section *next = policy->first->next;
        for (int kind = 0; kind < POLICY_KINDS; kind++)
            clear(&policy->first->lists[kind]);
        free(policy->first);
        policy->first = next;
    }
    free(policy);
}

static struct section *find(const struct policy *policy, const char *peer) {
    struct section *section = policy ? policy->first : NULL;
    while (section && strcmp(section->peer, peer) != 0)
        section = section->next;
    return section;
}

static struct section *make(struct policy *policy, const char *peer) {
    size_t size = strlen(peer) + 1;
    struct section *section = calloc(1, sizeof *section + size);
    if (!section) return NULL;
    memcpy(section->peer, peer, size);
    section->next = policy->first;
    policy->first = section;
    return section;
}

struct policy_list *policy_list(struct policy *policy, const char *peer, enum policy_kind kind) {
    struct section *section = find(policy, peer);
    if (!section) section = make(policy, peer);
    if (!section) return NULL;
    section->lists[kind].given = true;
    return &section->lists[kind];
}

int policy_list_add(struct policy_list *list, const char *filter, size_t size) {
    struct listed *listed = malloc(sizeof *listed + size);
    if (!listed) return -1;
    listed->size = size;
    memcpy(listed->filter, filter, size);
    listed->next = list->first;
    list->first = listed;
    return 0;
}

static const struct policy_list *given(const struct section *section, int kind) {
    return section && section->lists[kind].given ? &section->lists[kind] : NULL;
}

static struct policy_rules rules_of(const struct section *own, const struct section *all) {
    struct policy_rules rules;
    for (int kind = 0; kind < POLICY_KINDS; kind++) {
        const struct policy_list *list = given(own, kind);
        rules.lists[kind] = list ? list : given(all, kind);
    }
    return rules;
}

struct policy_rules policy_rules_of(const struct policy *policy, const char *peer) {
    if (!peer) return (struct policy_rules){.lists[POLICY_PRIVATE] = given(find(policy, ""), POLICY_PRIVATE)};
    return rules_of(find(policy, peer), find(policy, ""));
}

typedef bool relation(const char *listed, size_t listed_size, const char *filter, size_t size);

static bool any(const struct policy_list *list, relation *holds, const char *filter, size_t size) {
    for (const struct listed *listed = list ? list->first : NULL; listed; listed = listed->next) {
        if (holds(listed->filter, listed->size, filter, size)) return true;
    }
    return false;
}

bool policy_lets(const struct policy_rules *rules, enum policy_kind way, const char *filter, size_t size) {
    if (size == 0 || filter[0] == '$') return false;
    if (any(rules->lists[POLICY_PRIVATE], topic_filter_covers, filter, size)) return false;
    return !rules->lists[way] || any(rules->lists[way], topic_filters_intersect, filter, size);
}

enum policy_verdict policy_verdict(const struct policy *policy, const char *peer, enum policy_kind way,
                                   const char *topic, size_t size) {
    const struct policy_rules rules = policy_rules_of(policy, peer);
    if (policy_lets(&rules, way, topic, size)) return POLICY_LETS;
    if (size == 0 || topic[0] == '$') return POLICY_STAYS;
    if (any(rules.lists[POLICY_PRIVATE], topic_filter_covers, topic, size)) return POLICY_IS_PRIVATE;
    return rules.lists[way] == given(find(policy, ""), (int)way) ? POLICY_NOT_FOR_OTHERS : POLICY_NOT_FOR_PEER;
}

bool policy_lets_some_peer(const struct policy *policy, enum policy_kind way, const char *filter, size_t size) {
    const struct section *all = find(policy, "");
    struct policy_rules rules = rules_of(NULL, all);
    for (const struct section *own = policy ? policy->first : NULL; !policy_lets(&rules, way, filter, size);
         own = own->next) {
        if (!own) return false;
        rules = rules_of(own, all);
    }
    return true;
}

static bool lists_equal(const struct policy_list *a, const struct policy_list *b) {
    if (!a || !b) return a == b;
    const struct listed *in_a = a->first, *in_b = b->first;
    while (in_a && in_b && in_a->size == in_b->size && memcmp(in_a->filter, in_b->filter, in_a->size) == 0) {
        in_a = in_a->next;
        in_b = in_b->next;
    }
    return !in_a && !in_b;
}

bool policy_rules_equal(const struct policy_rules *a, const struct policy_rules *b, enum policy_kind way) {
    return lists_equal(a->lists[way], b->lists[way]) && lists_equal(a->lists[POLICY_PRIVATE], b->lists[POLICY_PRIVATE]);
}

/* For the peer of this name. */
static bool agree(const struct policy *a, const struct policy *b, const char *peer) {
    struct policy_rules of_a = policy_rules_of(a, peer), of_b = policy_rules_of(b, peer);
    return policy_rules_equal(&of_a, &of_b, POLICY_EXPORT) && policy_rules_equal(&of_a, &of_b, POLICY_IMPORT);
}

bool policy_equal(const struct policy *a, const struct policy *b) {
    const struct policy *both[] = {a, b};
    if (!agree(a, b, "")) return false;
    for (int i = 0; i < 2; i++) {
        for (const struct section *section = both[i] ? both[i]->first : NULL; section; section = section->next) {
            if (!agree(a, b, section->peer)) return false;
        }
    }
    return true;
}
