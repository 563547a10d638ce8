/* Policies as a test writes them. */
#ifndef TESTS_UNIT_POLICIES_H
#define TESTS_UNIT_POLICIES_H

#include "broker/policy.h"

#include <string.h>

struct policy_line {
    const char *peer; /* "" for all */
    enum policy_kind kind;
    const char *filter; /* NULL: the list is there, and nothing more */
};

static inline struct policy *policy_of(const struct policy_line *lines, size_t count) {
    struct policy *policy = policy_new();
    assert_non_null(policy);
    for (size_t i = 0; i < count; i++) {
        struct policy_list *list = policy_list(policy, lines[i].peer, lines[i].kind);
        assert_non_null(list);
        if (lines[i].filter) assert_int_equal(policy_list_add(list, lines[i].filter, strlen(lines[i].filter)), 0);
    }
    return policy;
}
#define POLICY(...)                                                                                                    \
    policy_of((const struct policy_line[]){__VA_ARGS__},                                                               \
              sizeof((const struct policy_line[]){__VA_ARGS__}) / sizeof(struct policy_line))

#endif
