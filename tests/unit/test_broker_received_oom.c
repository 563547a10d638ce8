/* QoS 2 packet ids that a client leaves open, few or all there are, and with or without memory for them. */
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
    bool open[IDS + 1]; /* by id */
    uint32_t count;
};

static struct fixture *begin(void) {
    struct fixture *fixture = __real_calloc(1, sizeof *fixture);

    fixture->session = __real_calloc(1, sizeof *fixture->session);
    return fixture;
}

static void remove_id(struct fixture *fixture, uint16_t id) {
    assert_int_equal(session_received_remove(fixture->session, id), fixture->open[id]);
    if (fixture->open[id]) fixture->count--;
    fixture->open[id] = false;
}

static void add(struct fixture *fixture, uint16_t id) {
    enum received_result result = session_received_add(fixture->session, id);

    if (fixture->open[id])
        assert_int_equal(result, RECEIVED_AGAIN);
    else if (result == RECEIVED_NO_MEMORY)
        assert_true(shortage.every > 0);
    else
        assert_int_equal(result, RECEIVED_NEW);
    if (result == RECEIVED_NEW) {
        fixture->open[id] = true;
        fixture->count++;
    }
}

/* All are there, in ascending order, and no other. */
static void check_all(const struct fixture *fixture) {
    uint16_t next = session_received_next(fixture->session, 0);

    assert_int_equal(fixture->session->received_count, fixture->count);
    for (uint32_t id = 1; id <= IDS; id++) {
        assert_int_equal(session_received_has(fixture->session, (uint16_t)id), fixture->open[id]);
        if (!fixture->open[id]) continue;
        assert_int_equal(next, id);
        next = session_received_next(fixture->session, (uint16_t)id);
    }
    assert_int_equal(next, 0);
}

static void end(struct fixture *fixture) {
    for (uint32_t id = 1; id <= IDS; id++)
        remove_id(fixture, (uint16_t)id);
    assert_null(fixture->session->received);
    assert_int_equal(session_received_next(fixture->session, 0), 0);
    free(fixture->session);
    free(fixture);
}

static void at_random(unsigned ids, unsigned every) {
    struct fixture *fixture = begin();
    uint64_t random = ids;

    shortage.every = every;
    for (unsigned step = 0; step < 20000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint16_t id = (uint16_t)(IDS - (random >> 40) % ids);
        if ((random >> 33) % 5 < 2 + (step / 4000) % 2)
            add(fixture, id);
        else
            remove_id(fixture, id);
        if (step % 1000 == 0) check_all(fixture);
    }
    check_all(fixture);
    shortage.every = 0;
    end(fixture);
}

static void they_are_known_few_or_many(void **state) {
    (void)state;
    at_random(10, 0);
    at_random(300, 0);
    at_random(5000, 0);
}

static void without_memory_for_more_the_others_stay(void **state) {
    (void)state;
    at_random(10, 2);
    at_random(300, 2);
    at_random(5000, 3);
    at_random(300, 1);
}

/* The worst order for a list. */
static void all_there_are_may_be_open(void **state) {
    (void)state;
    struct fixture *fixture = begin();
    unsigned long long before = shortage.bytes;

    for (uint32_t id = IDS; id > 0; id--)
        add(fixture, (uint16_t)id);
    check_all(fixture);
    assert_true(shortage.bytes - before < 10000); /* and take no more memory than this */
    end(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_known_few_or_many),
        cmocka_unit_test(without_memory_for_more_the_others_stay),
        cmocka_unit_test(all_there_are_may_be_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
