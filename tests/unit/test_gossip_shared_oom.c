/* Short of memory an object stays private: it is not found, and nothing else happens. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "gossip/shared.h"
#include "oom.h"

static bool any(const struct shared *shared, const void *wanted) {
    return shared == wanted;
}

static void an_object_that_finds_no_place_stays_private(void **unused) {
    (void)unused;
    for (long n = 0;; n++) {
        struct gossip_shared *pool = gossip_shared_new();
        struct shared objects[200];
        size_t found = 0;
        shortage_after(n);
        for (size_t i = 0; i < 200; i++) {
            shared_init(&objects[i], SHARED_HEAD, i);
            shared_offer(pool, &objects[i]);
        }
        shortage_over();
        for (size_t i = 0; i < 200; i++) {
            bool here = shared_find(pool, SHARED_HEAD, i, any, &objects[i]) != NULL;
            found += here;
            if (here) assert_false(shared_unref(&objects[i]));
            assert_true(shared_unref(&objects[i]));
        }
        assert_true(found >= 199);
        gossip_shared_free(pool);
        if (!shortage.failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_object_that_finds_no_place_stays_private)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
