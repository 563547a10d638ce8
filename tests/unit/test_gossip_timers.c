/* The heap of timers and the directory of members, against slow ones that are plainly right. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gossip/chance.h"
#include "gossip/directory.h"
#include "gossip/timers.h"

enum { COUNT = 300 };

static void the_first_timer_is_the_first_whatever_is_set_and_stopped(void **unused) {
    (void)unused;
    struct timers timers = {0};
    struct timer all[COUNT] = {{0}};
    uint64_t deadlines[COUNT];
    struct chance chance = {3};
    memset(deadlines, 0xff, sizeof deadlines);
    assert_true(timers_reserve(&timers, COUNT));
    for (int step = 0; step < 20000; step++) {
        uint32_t at = chance_below(&chance, COUNT);
        deadlines[at] = chance_below(&chance, 4) == 0 ? UINT64_MAX : chance_below(&chance, 1000);
        timers_set(&timers, &all[at], deadlines[at]);
        uint64_t first = UINT64_MAX;
        for (int i = 0; i < COUNT; i++)
            first = deadlines[i] < first ? deadlines[i] : first;
        assert_int_equal(timers_first_ms(&timers), first);
        assert_int_equal(timers_deadline_ms(&timers, &all[at]), deadlines[at]);
        if (first == UINT64_MAX) continue;
        assert_null(first > 0 ? timers_due(&timers, first - 1) : NULL);
        assert_int_equal(deadlines[timers_due(&timers, first) - all], first);
    }
    timers_free(&timers);
}

static const struct member_id *id_at(const void *context, uint32_t number) {
    return (const struct member_id *)context + number;
}

static int by_id(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct member_id));
}

/* bits: how many of the first 32 an attacker has left to chance. */
static void check_directory(unsigned bits, uint64_t seed) {
    struct directory directory = {0};
    static struct member_id ids[COUNT];
    bool there[COUNT] = {false};
    struct directory_ids ports = {id_at, ids};
    struct chance chance = {seed};
    for (int i = 0; i < COUNT; i++) {
        uint64_t words[2] = {chance_next(&chance), chance_next(&chance)};
        memcpy(&ids[i], words, sizeof ids[i]);
        for (unsigned bit = bits; bit < 32; bit++)
            ids[i].bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
    }
    qsort(ids, COUNT, sizeof *ids, by_id);
    for (int step = 0; step < 4000; step++) {
        uint32_t at = chance_below(&chance, COUNT);
        if (there[at])
            directory_remove(&directory, ports, &ids[at]);
        else
            assert_true(directory_add(&directory, ports, &ids[at], at));
        there[at] = !there[at];
        uint32_t asked = chance_below(&chance, COUNT), after = asked + 1;
        assert_int_equal(directory_find(&directory, ports, &ids[asked]), there[asked] ? asked : DIRECTORY_NOBODY);
        while (after < COUNT && !there[after])
            after++;
        assert_int_equal(directory_after(&directory, ports, &ids[asked]), after < COUNT ? after : DIRECTORY_NOBODY);
        size_t place = directory_place_after(&directory, ports, &ids[asked]);
        uint32_t before = asked + 1;
        while (before > 0 && !there[before - 1])
            before--;
        assert_int_equal(directory_previous(&directory, &place), before > 0 ? before - 1 : DIRECTORY_NOBODY);
        if (before > 0) assert_int_equal(directory_next(&directory, &place), before - 1);
    }
    directory_free(&directory);
}

static void the_directory_finds_all_and_keeps_their_order(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 5; seed++)
        check_directory(32, seed);
}

static void ids_made_to_collide_are_found_too(void **unused) {
    (void)unused;
    check_directory(3, 6);
    check_directory(0, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_timer_is_the_first_whatever_is_set_and_stopped),
        cmocka_unit_test(the_directory_finds_all_and_keeps_their_order),
        cmocka_unit_test(ids_made_to_collide_are_found_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
