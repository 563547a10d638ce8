/* The tables that grow with the members, when memory is short: what could not be kept is said, the rest stays. */
#include "gossip_net.h"

#include "gossip/directory.h"
#include "gossip/graves.h"

#include "oom.h"

#define COUNT 200u

static struct member_id id_of(uint32_t number) {
    struct member_id id = {{0}};
    uint64_t hash = (number + 1) * 0x9e3779b97f4a7c15u;
    memcpy(id.bytes, &hash, sizeof hash);
    memcpy(id.bytes + 8, &number, sizeof number);
    return id;
}

static void a_grave_for_which_there_is_no_memory_is_not_there_and_the_others_are(void **state) {
    (void)state;
    static const long rates[] = {1, 2, 3};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct graves graves = {0};
        bool kept[COUNT];
        size_t refused = 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            const struct grave grave = {.id = id_of(i), .epoch = i + 1, .made_ms = i};
            shortage.every = rates[r];
            kept[i] = graves_put(&graves, &grave);
            shortage.every = 0;
            refused += !kept[i];
        }
        assert_true(refused > 0 && (r == 0 || refused < COUNT));
        for (uint32_t i = 0; i < COUNT; i++) {
            struct member_id id = id_of(i);
            const struct grave *found = graves_find(&graves, &id);
            assert_int_equal(found != NULL, kept[i]);
            if (found) assert_int_equal(found->epoch, i + 1);
        }
        assert_int_equal(graves.count, COUNT - refused);
        graves_free(&graves);
    }
}

static struct member_id ids[2 * COUNT];

static const struct member_id *id_at(const void *context, uint32_t number) {
    (void)context;
    return &ids[number];
}

/* Half of the ids are hashes, half are chosen so that all of them want the last place, and the table grows behind. */
static void a_member_that_finds_no_place_is_not_found_and_the_others_are(void **state) {
    (void)state;
    static const long rates[] = {1, 2, 3};
    const struct directory_ids look = {id_at, NULL};
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        ids[i] = id_of(i);
        if (i % 2) memset(ids[i].bytes, 0xff, 8);
    }
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct directory directory = {0};
        bool kept[2 * COUNT];
        size_t refused = 0;
        for (uint32_t i = 0; i < 2 * COUNT; i++) {
            shortage.every = rates[r];
            kept[i] = directory_add(&directory, look, &ids[i], i);
            shortage.every = 0;
            refused += !kept[i];
        }
        assert_true(refused > 0 && (r == 0 || refused < 2 * COUNT));
        for (uint32_t i = 0; i < 2 * COUNT; i++)
            assert_int_equal(directory_find(&directory, look, &ids[i]), kept[i] ? i : DIRECTORY_NOBODY);
        size_t walked = 0;
        struct member_id last = {{0}};
        for (uint32_t number; (number = directory_after(&directory, look, &last)) != DIRECTORY_NOBODY; walked++)
            last = ids[number];
        assert_int_equal(walked, 2 * COUNT - refused);
        directory_free(&directory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grave_for_which_there_is_no_memory_is_not_there_and_the_others_are),
        cmocka_unit_test(a_member_that_finds_no_place_is_not_found_and_the_others_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
