/* What is kept of owners that are away: their rows for a while, then how far they came. */
#include "gossip_forger.h"

#include "gossip/graves.h"
#include "gossip/inspect.h"

static struct grave grave_of(uint32_t number, uint64_t made_ms) {
    struct grave grave = {.epoch = 3, .incarnation = 5, .sequence = 7, .made_ms = made_ms};
    uint32_t mixed = number * 2654435761u; /* not in order */
    memcpy(grave.id.bytes, &mixed, sizeof mixed);
    return grave;
}

static void the_higher_of_two_stays(void **state) {
    (void)state;
    static const struct {
        uint64_t epoch, incarnation, sequence;
        uint64_t then_epoch, then_incarnation, then_sequence;
    } rows[] = {
        {3, 6, 7, 3, 6, 7}, {3, 5, 9, 3, 5, 9}, {3, 4, 8, 3, 5, 8}, {4, 1, 2, 4, 1, 2}, {2, 9, 99, 3, 5, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct graves graves = {0};
        struct grave grave = grave_of(1, 10);
        assert_true(graves_put(&graves, &grave));
        grave.epoch = rows[i].epoch;
        grave.incarnation = rows[i].incarnation;
        grave.sequence = rows[i].sequence;
        assert_true(graves_put(&graves, &grave));
        const struct grave *found = graves_find(&graves, &grave.id);
        assert_int_equal(graves.count, 1);
        assert_int_equal(found->epoch, rows[i].then_epoch);
        assert_int_equal(found->incarnation, rows[i].then_incarnation);
        assert_int_equal(found->sequence, rows[i].then_sequence);
        graves_remove(&graves, &grave.id);
        assert_null(graves_find(&graves, &grave.id));
        graves_free(&graves);
    }
}

/* P12: there are never more than 65,536; and as long as there is room they are kept for a week. */
static void the_oldest_makes_room_and_the_week_old_go_first(void **state) {
    (void)state;
    struct graves graves = {0};
    for (uint32_t i = 0; i < GRAVES_MAX; i++) {
        struct grave grave = grave_of(i, 1000 + i);
        assert_true(graves_put(&graves, &grave));
    }
    struct grave first = grave_of(0, 0), second = grave_of(1, 0), next = grave_of(GRAVES_MAX, 1000 + GRAVES_MAX);
    assert_true(graves_put(&graves, &next));
    assert_int_equal(graves.count, GRAVES_MAX);
    assert_null(graves_find(&graves, &first.id));
    assert_non_null(graves_find(&graves, &second.id));
    next = grave_of(GRAVES_MAX + 1, 1000 + GRAVES_KEEP_MS + GRAVES_MAX / 2);
    assert_true(graves_put(&graves, &next));
    assert_int_equal(graves.count, GRAVES_MAX / 2 + 2);
    graves_free(&graves);
}

/* Against a list; many ids begin alike, so that they fall on one another. */
static void what_was_put_is_found_until_it_is_removed(void **state) {
    (void)state;
    struct graves graves = {0};
    bool there[256] = {false};
    uint32_t random = 12345;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        uint32_t number = random >> 24;
        struct grave grave = {.id = {{(uint8_t)(number % 5)}}, .epoch = 1, .sequence = number, .made_ms = 1};
        grave.id.bytes[8] = (uint8_t)number;
        if (random & 0x8000)
            assert_true(graves_put(&graves, &grave));
        else
            graves_remove(&graves, &grave.id);
        there[number] = (random & 0x8000) != 0;
        size_t count = 0;
        for (uint32_t i = 0; i < 256; i++) {
            struct member_id id = {{(uint8_t)(i % 5)}};
            id.bytes[8] = (uint8_t)i;
            const struct grave *found = graves_find(&graves, &id);
            assert_true((found != NULL) == there[i] && (!found || found->sequence == i));
            count += there[i];
        }
        assert_int_equal(graves.count, count);
    }
    graves_free(&graves);
}

struct kept_head {
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size;
};

static void keep_first(void *context, const uint8_t *public_key, const uint8_t *bytes, size_t size) {
    struct kept_head *head = context;
    (void)public_key;
    if (head->size > 0) return;
    memcpy(head->bytes, bytes, size);
    head->size = size;
}

static struct gossip_counters counters_of(struct net *net, int at) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[at].gossip, &counters);
    return counters;
}

static void put_rows(struct net *net, int at, int from, int to) {
    for (int i = from; i < to; i++) {
        char filter[48];
        snprintf(filter, sizeof filter, "site/%d/row/%d", at, i);
        net_row(net, at, filter, true);
        net_run(net, 25);
    }
}

static void cut(struct net *net, int which, bool off) {
    for (int i = 0; i < net->count; i++)
        if (i != which) net->cut[i][which] = net->cut[which][i] = off;
}

static struct net *with_short_keeping(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    for (int i = 0; i < count; i++) {
        net->nodes[i].limits.down_keep_ms = 10000;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    return net;
}

static bool all_of_the_second_is_at_the_first(struct net *net) {
    return net_has_row(net, 0, 1, "site/1/row/99");
}

/* P9: its rows go, the grave stays; when it is back they are shown again once they are as new as they were, and not one
 * by one from the beginning. */
static void an_owner_that_comes_back_late_is_shown_as_it_was_or_newer(void **state) {
    (void)state;
    struct net *net = with_short_keeping(3, 61);
    put_rows(net, 1, 0, 100);
    net_run(net, 1000);
    cut(net, 1, true);
    net_run(net, 6000);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_DOWN);
    assert_true(counters_of(net, 0).registry_bytes > 100);
    net_run(net, 12000);
    assert_int_equal(counters_of(net, 0).registry_bytes, 0);
    assert_int_equal(counters_of(net, 0).graves, 1);
    cut(net, 1, false);
    uint64_t end = net->now_ms + 20000;
    while (!all_of_the_second_is_at_the_first(net) && net->now_ms < end) {
        assert_false(net_has_row(net, 0, 1, "site/1/row/0"));
        net_step(net, end);
    }
    assert_true(net_until(net, net_agreed, 10000));
    assert_true(net_has_row(net, 0, 1, "site/1/row/0"));
    assert_int_equal(counters_of(net, 0).graves, 0);
    net_free(net);
}

/* P9: a broker that was away for long still holds an older state of an owner that has since died; it cannot bring it
 * back to those who have forgotten all but the grave. */
static void a_long_isolated_peer_brings_no_dead_owner_back(void **state) {
    (void)state;
    struct net *net = with_short_keeping(4, 62);
    put_rows(net, 1, 0, 3);
    net_run(net, 1000);
    cut(net, 3, true);
    net_run(net, 500);
    put_rows(net, 1, 3, 6);
    net_run(net, 1000);
    net_kill(net, 1);
    net_run(net, 20000);
    assert_int_equal(counters_of(net, 0).graves, 1);
    cut(net, 3, false);
    for (int i = 0; i < 300; i++) {
        net_run(net, 100);
        assert_false(net_has_row(net, 0, 1, "site/1/row/0"));
        assert_false(net_has_row(net, 2, 1, "site/1/row/0"));
        assert_int_not_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    }
    assert_int_equal(net->nodes[0].sees[3], MEMBER_ALIVE);
    assert_true(net_tables_equal(net));
    net->nodes[1].epoch = 2;
    net_start(net, 1);
    assert_true(net_until(net, net_agreed, 10000));
    assert_false(net_has_row(net, 0, 1, "site/1/row/0")); /* a new life begins with nothing */
    net_free(net);
}

/* P7: of two who hold a broker for dead, one has heard more of it; the other takes that, and it stays dead. */
static void the_highest_evidence_is_kept_of_the_dead_too(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 65);
    struct member_id id = net_id(net, 1);
    struct gossip_inspected at_0, at_2;
    net_run(net, 1000);
    net->cut[1][0] = net->cut[0][1] = net->cut[2][0] = net->cut[0][2] = true;
    net_run(net, 300);
    for (int i = 0; i < 70; i++) { /* a checkpoint, and so a new head, that only one of them hears */
        char filter[16];
        snprintf(filter, sizeof filter, "e/%d", i);
        net_row(net, 1, filter, true);
        net_run(net, 25);
    }
    net_kill(net, 1);
    net_run(net, 8000);
    assert_true(gossip_inspect_find(net->nodes[0].gossip, &id, &at_0));
    assert_true(gossip_inspect_find(net->nodes[2].gossip, &id, &at_2));
    assert_int_equal(at_0.state, MEMBER_DOWN);
    assert_int_equal(at_2.state, MEMBER_DOWN);
    assert_true(at_0.incarnation < at_2.incarnation);
    struct kept_head head = {{0}, 0};
    gossip_inspect_signed(net->nodes[2].gossip, &id, 0, keep_first, &head);
    memset(net->cut, 0, sizeof net->cut);
    net_run(net, 5000);
    struct forger forger =
        forger_new(net, 0, 2, &(struct gossip_address){.family = 4, .ip = {192, 0, 2, 1}, .port = 5});
    struct message message = {.kind = MESSAGE_HEAD, .bytes = head.bytes, .size = head.size};
    forger_say(&forger, &message);
    net_run(net, 5000);
    assert_true(gossip_inspect_find(net->nodes[0].gossip, &id, &at_0));
    assert_int_equal(at_0.incarnation, at_2.incarnation);
    assert_int_equal(at_0.state, MEMBER_DOWN);
    assert_int_not_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    net_free(net);
}

static bool second_is_alive_at_the_first(struct net *net) {
    return net->nodes[0].sees[1] == MEMBER_ALIVE;
}

/* P6, P9: of a broker that died at epoch 5 nothing is left but graves. Its disk comes back from an older copy, and it
 * starts with epoch 3: it is told, goes on above 5, and its earlier life is shown to nobody. */
static void an_older_life_does_not_pass_the_grave(void **state) {
    (void)state;
    struct net *net = net_new(4, 64);
    net->nodes[0].limits.members_max = net->nodes[2].limits.members_max = 3;
    net->nodes[1].epoch = 5;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    put_rows(net, 1, 0, 3);
    net_kill(net, 1);
    net_run(net, 6000);
    net_start(net, 3); /* takes the place of the dead */
    assert_true(net_until(net, net_all_alive, 10000));
    assert_int_equal(counters_of(net, 0).graves, 1);
    net_kill(net, 3);
    net_run(net, 6000);
    net->nodes[1].epoch = 3;
    net_start(net, 1);
    net_row(net, 1, "again", true);
    assert_true(net_until(net, second_is_alive_at_the_first, 20000));
    struct member_id id = net_id(net, 1);
    struct member_info info;
    assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    assert_true(info.epoch >= 6);
    assert_true(net->nodes[1].saved_epoch >= 6);
    assert_true(net_until(net, net_agreed, 10000));
    assert_true(net_has_row(net, 0, 1, "again"));
    assert_false(net_has_row(net, 0, 1, "site/1/row/0"));
    assert_int_equal(net->nodes[1].event_count[GOSSIP_CLONED], 0);
    net_free(net);
}

static void over_the_limit_of_memory_those_that_are_away_the_longest_go_first(void **state) {
    (void)state;
    struct net *net = net_new(5, 63);
    net->nodes[0].limits.registry_bytes_max = 52000;
    for (int i = 0; i < 5; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    for (int i = 1; i < 4; i++)
        put_rows(net, i, 0, 100);
    net_run(net, 1000);
    uint64_t full = counters_of(net, 0).registry_bytes;
    for (int i = 1; i < 4; i++) {
        cut(net, i, true);
        net_run(net, 6000);
        assert_int_equal(net->nodes[0].sees[i], MEMBER_DOWN);
    }
    assert_int_equal(counters_of(net, 0).registry_bytes, full);
    put_rows(net, 4, 0, 400);
    net_run(net, 1000);
    assert_true(counters_of(net, 0).registry_bytes <= 52000);
    assert_true(counters_of(net, 0).graves >= 1 && counters_of(net, 0).graves < 3);
    assert_true(net_has_row(net, 0, 4, "site/4/row/399"));
    assert_int_equal(net->nodes[0].event_count[GOSSIP_WARNING], 0);
    /* All are back: now there is no room, and it says so instead of taking what it cannot hold. */
    for (int i = 1; i < 4; i++)
        cut(net, i, false);
    net_run(net, 20000);
    for (int i = 1; i < 5; i++)
        put_rows(net, i, 400, 500);
    net_run(net, 3000);
    assert_true(counters_of(net, 0).registry_bytes <= 52000 + full / 3); /* by one checkpoint at most */
    assert_int_equal(net->nodes[0].event_count[GOSSIP_WARNING], 1);
    assert_non_null(strstr(net->nodes[0].last_text, "registry_bytes_max"));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_higher_of_two_stays),
        cmocka_unit_test(what_was_put_is_found_until_it_is_removed),
        cmocka_unit_test(the_oldest_makes_room_and_the_week_old_go_first),
        cmocka_unit_test(an_owner_that_comes_back_late_is_shown_as_it_was_or_newer),
        cmocka_unit_test(a_long_isolated_peer_brings_no_dead_owner_back),
        cmocka_unit_test(the_highest_evidence_is_kept_of_the_dead_too),
        cmocka_unit_test(an_older_life_does_not_pass_the_grave),
        cmocka_unit_test(over_the_limit_of_memory_those_that_are_away_the_longest_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
