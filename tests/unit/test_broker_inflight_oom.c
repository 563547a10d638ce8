/* What is in flight is found by its packet id, whatever the order of acknowledgements, and with or without memory for
 * an index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "broker/session.h"
#include "oom.h"

enum { IDS = UINT16_MAX };

struct fixture {
    struct session *session;
    struct outgoing *outgoing[IDS + 1]; /* by id */
    bool inside[IDS + 1];
    uint32_t count;
};

static struct fixture *begin(void) {
    struct fixture *fixture = __real_calloc(1, sizeof *fixture);

    fixture->session = __real_calloc(1, sizeof *fixture->session);
    return fixture;
}

static void end(struct fixture *fixture) {
    for (unsigned id = 0; id <= IDS; id++)
        free(fixture->outgoing[id]);
    free(fixture->session);
    free(fixture);
}

static void add(struct fixture *fixture, unsigned id) {
    if (fixture->outgoing[id] == NULL) fixture->outgoing[id] = __real_malloc(sizeof(struct outgoing));
    *fixture->outgoing[id] = (struct outgoing){.packet_id = (uint16_t)id, .in_air = true};
    fixture->session->in_air++;
    session_inflight_add(fixture->session, fixture->outgoing[id]);
    fixture->inside[id] = true;
    fixture->count++;
}

static void remove_id(struct fixture *fixture, unsigned id) {
    session_inflight_remove(fixture->session, session_inflight(fixture->session, (uint16_t)id));
    fixture->inside[id] = false;
    fixture->count--;
}

static void check(const struct fixture *fixture, unsigned id) {
    const struct outgoing *found = session_inflight(fixture->session, (uint16_t)id);

    assert_ptr_equal(found, fixture->inside[id] ? fixture->outgoing[id] : NULL);
    assert_int_equal(fixture->session->inflight_count, fixture->count);
    assert_int_equal(fixture->session->in_air, fixture->count);
}

static void any_order(unsigned every) {
    struct fixture *fixture = begin();
    uint64_t random = 3;
    unsigned last = IDS - 500;

    shortage.every = every;
    for (unsigned step = 0; step < 20000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned id = last - (unsigned)(random >> 40) % 300;
        if (id == 0 || id > IDS) id = IDS;
        if ((random >> 33) % 5 < 2 + (step / 1000) % 2) {
            last = last == IDS ? 1 : last + 1;
            if (!fixture->inside[last]) add(fixture, last);
            check(fixture, last);
        } else if (fixture->inside[id]) {
            remove_id(fixture, id);
        }
        check(fixture, id);
    }
    shortage.every = 0;
    for (unsigned id = 1; id <= IDS; id++) {
        check(fixture, id);
        if (fixture->inside[id]) remove_id(fixture, id);
    }
    assert_null(fixture->session->inflight);
    assert_null(fixture->session->by_id);
    end(fixture);
}

static void packet_ids_are_found_in_any_order(void **state) {
    (void)state;
    any_order(0);
}

static void without_an_index_they_are_found_too(void **state) {
    (void)state;
    any_order(1);
    any_order(2);
}

/* With a walk for each this would take minutes. */
static void a_full_window_may_be_acknowledged_backwards(void **state) {
    (void)state;
    struct fixture *fixture = begin();

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned id = 1; id <= IDS; id++)
            add(fixture, id);
        for (unsigned id = IDS; id > 0; id--)
            remove_id(fixture, id);
    }
    assert_null(fixture->session->by_id);
    end(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packet_ids_are_found_in_any_order),
        cmocka_unit_test(without_an_index_they_are_found_too),
        cmocka_unit_test(a_full_window_may_be_acknowledged_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
