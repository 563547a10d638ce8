/* A policy is made whole, or whoever makes it is told that memory is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/policy.h"
#include "oom.h"

static bool make(struct policy **policy) {
    *policy = policy_new();
    struct policy_list *list = *policy ? policy_list(*policy, "", POLICY_EXPORT) : NULL;
    if (!list || policy_list_add(list, "a/#", 3) != 0) return false;
    list = policy_list(*policy, "hq", POLICY_EXPORT);
    return list && policy_list_add(list, "b", 1) == 0;
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct policy *policy;
        shortage_after(nth);
        bool made = make(&policy);
        shortage_over();
        failed = shortage.failed;
        assert_int_equal(made, !failed);
        policy_free(policy);
    }
    assert_int_equal(nth, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
