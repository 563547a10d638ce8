/* A question for which memory is short is refused, ends its link or says less; the brokers go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "whys.h"

static void any_allocation_may_fail(void **state) {
    (void)state;
    long nth = 0, refused = 0, silent = 0;
    for (bool failed = true; failed; nth++) {
        struct client *says, *hears;
        struct world *world = joined(&says, &hears);
        const struct why_end ends[2] = {why_site(world, 0), why_site(world, 1)};
        shortage_after(nth);
        uint64_t question = why_ask(world, 0, "t", &ends[0], &ends[1]);
        world_run(world, WHY_WAIT_MS);
        shortage_over();
        failed = shortage.failed;
        if (question == 0) {
            refused++;
        } else {
            struct answer answer = why_answer(world, 0, question);
            silent += answer.steps[answer.count - 1].stops;
            if (!failed) assert_arrives(&answer);
        }
        world_run(world, 12000);
        struct answer answer = why_of_sites(world, 0, "t", 0, 1);
        assert_arrives(&answer);
        client_publish(world, says, "t", "all is well", 1, false);
        world_run(world, 1000);
        assert_int_equal(client_got(hears, "all is well"), 1);
        world_free(world);
        free(world);
    }
    assert_int_equal(refused, 1);
    assert_true(silent > 0);
    assert_in_range(nth, 4, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
