/* Where a broker is, under which name, and in which life: a new address while it runs (P4), two keys with one name, one
 * key at two brokers, a disk that was put back (P6). */
#include "gossip_forger.h"

static struct member_info seen(struct net *net, int by, int whom) {
    struct member_info info = {0};
    struct member_id id = net_id(net, whom);
    assert_true(gossip_member_find(net->nodes[by].gossip, net->now_ms, &id, &info));
    return info;
}

static bool new_address_is_known(struct net *net) {
    for (int i = 0; i < net->count; i++) {
        struct member_info info = seen(net, i, 2);
        if (!net_address_equal(&info.address, &net->nodes[2].address) || info.state != MEMBER_ALIVE) return false;
    }
    return true;
}

static void deaths_and_epochs_unchanged(struct net *net) {
    for (int i = 0; i < net->count; i++) {
        assert_int_equal(net->nodes[i].down_events, 0);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_EPOCH], 0);
    }
}

static uint64_t move(uint64_t seed, bool v6, uint32_t loss_percent) {
    struct net *net = net_new(4, seed);
    for (int i = 0; i < 4; i++) {
        net->nodes[i].announce_nothing = true;
        if (v6) net->nodes[i].address = (struct gossip_address){6, {0xfd, [15] = (uint8_t)(i + 1)}, 7100};
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 20000);
    net->loss_percent = loss_percent;
    net->nodes[2].address.ip[v6 ? 14 : 2] = 77;
    uint64_t start = net->now_ms;
    assert_true(net_until(net, new_address_is_known, 20000));
    uint64_t took_ms = net->now_ms - start;
    net_run(net, 10000);
    deaths_and_epochs_unchanged(net);
    assert_true(net_all_alive(net));
    net_free(net);
    return took_ms;
}

/* P4 */
static void a_new_address_while_it_runs_is_followed_and_nobody_takes_it_for_dead(void **state) {
    (void)state;
    uint64_t longest_ms = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        uint64_t took_ms = move(300 + seed, seed % 2 == 1, seed % 4 < 2 ? 0 : 10);
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    print_message("a new address is known to all after %llu ms at most\n", (unsigned long long)longest_ms);
    assert_true(longest_ms < 4000);
}

/* P4: a name that is another address now; nobody is asked, and those who see the old way still must not undo it. */
static void another_advertised_address_is_an_own_statement_and_no_new_life(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 325);
    net_row(net, 2, "kept/#", true);
    net_run(net, 5000);
    static const struct gossip_address useless[] = {
        {4, {0}, 7100}, {4, {239, 1, 1, 1}, 7100}, {4, {10, 0, 0, 9}, 0}, {0}};
    struct gossip *gossip = net->nodes[2].gossip;
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        assert_false(gossip_set_advertise(gossip, net->now_ms, &useless[i]));
    struct gossip_address next = net->nodes[2].address;
    next.ip[2] = 77;
    net->nodes[2].address = next; /* the host has moved, and its name too */
    assert_true(gossip_set_advertise(gossip, net->now_ms, &next));
    net_drain(net, 2);
    assert_true(net_until(net, new_address_is_known, 2000));
    assert_true(gossip_set_advertise(gossip, net->now_ms, &next)); /* again: nothing is said */
    struct gossip_datagram datagram;
    assert_false(gossip_next_datagram(gossip, &datagram));
    net_run(net, 20000);
    assert_true(new_address_is_known(net));
    deaths_and_epochs_unchanged(net);
    assert_true(net_has_row(net, 0, 2, "kept/#"));
    net_free(net);
}

/* P4: until the name is known the address that others see is taken; then the name's, for good. */
static void a_name_that_is_known_late_takes_the_place_of_what_others_see(void **state) {
    (void)state;
    struct net *net = net_new(3, 326);
    for (int i = 0; i < 3; i++) {
        net->nodes[i].announce_nothing = true;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    struct gossip_address named = {4, {192, 0, 2, 44}, 7100};
    assert_true(gossip_set_advertise(net->nodes[2].gossip, net->now_ms, &named));
    net_drain(net, 2);
    net_run(net, 60000); /* datagrams come from elsewhere all the time */
    for (int i = 0; i < 3; i++) {
        struct member_info info = seen(net, i, 2);
        assert_true(net_address_equal(&info.address, &named));
    }
    deaths_and_epochs_unchanged(net);
    net_free(net);
}

static void tell_seen(struct net *net, int to, int by, const struct gossip_address *address) {
    struct forger forger = forger_new(net, to, by, &net->nodes[by].address);
    struct message message = {.kind = MESSAGE_SEEN_AT, .address = *address};
    forger_say(&forger, &message);
}

/* P4: nobody else is reached there. */
static void unspecified_loopback_and_multicast_addresses_are_told_to_nobody(void **state) {
    (void)state;
    struct net *net = net_new(3, 330);
    for (int i = 0; i < 3; i++) {
        net->nodes[i].announce_nothing = true;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 20000);
    static const struct gossip_address useless[] = {
        {4, {0}, 7100}, {4, {127, 0, 0, 1}, 7100}, {4, {239, 1, 1, 1}, 7100}, {4, {10, 0, 0, 9}, 0},
        {6, {0}, 7100}, {6, {[15] = 1}, 7100},     {6, {0xff, 2}, 7100},
    };
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++)
        for (int again = 0; again < 3; again++) {
            tell_seen(net, 0, 1, &useless[i]);
            tell_seen(net, 0, 2, &useless[i]);
            net_run(net, 6000);
            struct gossip_address own = seen(net, 0, 0).address;
            assert_true(net_address_equal(&own, &net->nodes[0].address));
        }
    net_free(net);
}

/* P4: the two sides of a router see different addresses for good; each change costs everybody. */
static void peers_that_disagree_about_our_address_change_it_ever_more_rarely(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 331);
    net_kill(net, 0);
    net->nodes[0].announce_nothing = true;
    net->nodes[0].epoch++;
    net_start(net, 0);
    assert_true(net_until(net, net_all_alive, 10000));
    const struct gossip_address inside = {4, {192, 168, 0, 9}, 7100}, outside = net->nodes[0].address;
    unsigned changes = 0;
    struct gossip_address last = seen(net, 0, 0).address;
    for (int second = 0; second < 3600; second++) {
        tell_seen(net, 0, 1, &inside);
        tell_seen(net, 0, 1, &inside);
        tell_seen(net, 0, 2, &outside);
        tell_seen(net, 0, 2, &outside);
        net_run(net, 1000);
        struct gossip_address now = seen(net, 0, 0).address;
        changes += !net_address_equal(&now, &last);
        last = now;
    }
    print_message("%u changes in an hour\n", changes);
    assert_true(changes <= 16);
    net_free(net);
}

/* ---- one name ---- */

static void who_comes_with_a_name_that_is_there_is_refused_until_it_is_gone(void **state) {
    (void)state;
    struct net *net = net_new(4, 340);
    strcpy(net->nodes[3].token, "edge-2/4");
    strcpy(net->nodes[3].name, "edge-2");
    net->nodes[3].bootstrap[1] = 2; /* nobody passes on word of it */
    net->nodes[3].bootstrap_count = 2;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 2000);
    net_start(net, 3);
    net_row(net, 3, "second/#", true);
    net_run(net, 20000);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(net->nodes[i].sees[3], MEMBER_UNVERIFIED);
        assert_false(net_has_row(net, i, 3, "second/#"));
        if (i == 1) continue;
        assert_int_equal(net->nodes[i].sees[1], MEMBER_ALIVE); /* the one that was there first stays */
        assert_int_equal(net->nodes[i].event_count[GOSSIP_REFUSED], 1);
        assert_non_null(strstr(net->nodes[i].last_text, "the name edge-2 is that of another key"));
        assert_non_null(strstr(net->nodes[i].last_text, "10.0.0.2:7100"));
        assert_int_equal(seen(net, i, 3).trouble, MEMBER_TROUBLE_NAME);
        assert_string_equal(seen(net, i, 3).name, "edge-2");
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        assert_int_equal(counters.members_in_trouble, 1);
        assert_true(counters.names_refused >= 1);
    }
    assert_true(net->nodes[3].event_count[GOSSIP_REFUSED_US] >= 1);
    struct member_id id = net_id(net, 3);
    char reason[160];
    assert_false(gossip_name_is_free(net->nodes[0].gossip, &id, "edge-2", reason)); /* nor does it get a link */
    /* The host of the first is gone for good, and the second was meant to take its place. */
    net_kill(net, 1);
    net_run(net, 90000);
    assert_int_equal(net->nodes[0].sees[3], MEMBER_ALIVE);
    assert_int_equal(net->nodes[2].sees[3], MEMBER_ALIVE);
    assert_true(net_has_row(net, 0, 3, "second/#"));
    assert_int_equal(seen(net, 0, 3).trouble, MEMBER_TROUBLE_NONE);
    net_free(net);
}

/* ---- one key ---- */

static void a_cloned_key_is_named_with_the_address_and_shown_everywhere(void **state) {
    (void)state;
    struct net *net = net_new(4, 341);
    net_clone(net, 3, 1);
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    net_run(net, 20000);
    int noticed = 0;
    for (int i = 1; i <= 3; i += 2) {
        if (net->nodes[i].event_count[GOSSIP_CLONED] == 0) continue;
        noticed++;
        const struct gossip_address *other = &net->nodes[i == 1 ? 3 : 1].address;
        assert_true(net_address_equal(&net->nodes[i].cloned_from, other));
        struct member_info own;
        assert_true(gossip_member_at(net->nodes[i].gossip, net->now_ms, 0, &own));
        assert_int_equal(own.trouble, MEMBER_TROUBLE_CLONED);
    }
    assert_true(noticed >= 1);
    for (int i = 0; i <= 2; i += 2) {
        assert_int_equal(seen(net, i, 1).trouble, MEMBER_TROUBLE_CLONED);
        assert_true(net->nodes[i].event_count[GOSSIP_WARNING] >= 1);
        assert_non_null(strstr(net->nodes[i].last_text, "another broker uses its key"));
    }
    /* One of the two is stopped: after a while nobody says so any more. */
    net_kill(net, 3);
    net_run(net, 700000);
    if (net->nodes[1].event_count[GOSSIP_CLONED] > 0) assert_int_equal(seen(net, 0, 1).trouble, MEMBER_TROUBLE_NONE);
    net_free(net);
}

/* An admin stops the copy: with its last word nobody holds the other one for gone too. */
static void a_clone_that_leaves_does_not_take_the_other_with_it(void **state) {
    (void)state;
    struct net *net = net_new(4, 346);
    net_clone(net, 3, 1);
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    net_row(net, 1, "ours/#", true);
    net_row(net, 3, "ours/#", true);
    net_run(net, 20000);
    assert_true(net->nodes[1].event_count[GOSSIP_CLONED] + net->nodes[3].event_count[GOSSIP_CLONED] >= 1);
    int leaves = gossip_epoch(net->nodes[1].gossip) > gossip_epoch(net->nodes[3].gossip) ? 1 : 3;
    gossip_leave(net->nodes[leaves].gossip, net->now_ms);
    net_drain(net, leaves);
    net_run(net, 1000);
    net_kill(net, leaves);
    net_run(net, 2000);
    for (int i = 0; i <= 2; i += 2) {
        assert_int_equal(seen(net, i, 1).state, MEMBER_ALIVE);
        assert_true(net_has_row(net, i, 1, "ours/#"));
    }
    net_free(net);
}

/* P5: an address that was another federation's, whose issuer we believe too: nothing passes, by datagram or by link. */
static void two_federations_do_not_merge_over_links(void **state) {
    (void)state;
    struct net *net = net_new(3, 345);
    net->links = true;
    net->nodes[2].federation = "elsewhere";
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_row(net, 2, "theirs/#", true);
    net_run(net, 60000);
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_true(net->dials > 0 && counters.link_packets_received > 0 && counters.unsealed > 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(net->nodes[i].sees[2], MEMBER_UNVERIFIED);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    assert_false(net_has_row(net, 0, 2, "theirs/#"));
    net_free(net);
}

/* ---- an earlier life ---- */

/* P6: others hold entries 1 to 5 of this epoch. What it says now must not get these numbers, even for a moment. */
static void nothing_is_published_before_somebody_has_said_what_he_remembers_of_us(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct net *net = net_new_running(3, 350 + seed);
        for (int i = 0; i < 5; i++) {
            char filter[16];
            snprintf(filter, sizeof filter, "old/%d", i);
            net_row(net, 1, filter, true);
            net_run(net, 50);
        }
        net_run(net, 1000);
        net_kill(net, 1);
        net->nodes[1].seed++; /* a snapshot: the same epoch, and other content */
        net->delay_min_ms = net->delay_max_ms = 50;
        net_start(net, 1);
        net_row(net, 1, "new/1", true);
        net_run(net, 90); /* nobody can have answered yet */
        struct member_info own;
        assert_true(gossip_member_at(net->nodes[1].gossip, net->now_ms, 0, &own));
        assert_int_equal(own.sequence, 0);
        assert_true(net_until(net, net_agreed, 10000));
        net_run(net, 500);
        assert_true(gossip_epoch(net->nodes[1].gossip) >= 2);
        assert_int_equal(net->nodes[1].event_count[GOSSIP_CLONED], 0);
        for (int i = 0; i < 3; i++) {
            assert_true(net_has_row(net, i, 1, "new/1"));
            assert_false(net_has_row(net, i, 1, "old/4"));
        }
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[0].gossip, &counters);
        assert_int_equal(counters.bad_signature, 0);
        net_free(net);
    }
}

static void a_broker_alone_and_one_whose_peers_are_silent_publish_in_time(void **state) {
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        struct net *net = net_new(2, 360);
        net->nodes[1].bootstrap_count = alone ? 0 : 1; /* of one that never answers */
        net_start(net, 1);
        net_row(net, 1, "a/#", true);
        struct member_info own;
        net_run(net, 4900);
        assert_true(gossip_member_at(net->nodes[1].gossip, net->now_ms, 0, &own));
        assert_int_equal(own.sequence, alone ? 1 : 0);
        net_run(net, 200);
        assert_true(gossip_member_at(net->nodes[1].gossip, net->now_ms, 0, &own));
        assert_int_equal(own.sequence, 1);
        net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_advertised_address_is_an_own_statement_and_no_new_life),
        cmocka_unit_test(a_name_that_is_known_late_takes_the_place_of_what_others_see),
        cmocka_unit_test(a_new_address_while_it_runs_is_followed_and_nobody_takes_it_for_dead),
        cmocka_unit_test(unspecified_loopback_and_multicast_addresses_are_told_to_nobody),
        cmocka_unit_test(peers_that_disagree_about_our_address_change_it_ever_more_rarely),
        cmocka_unit_test(who_comes_with_a_name_that_is_there_is_refused_until_it_is_gone),
        cmocka_unit_test(a_cloned_key_is_named_with_the_address_and_shown_everywhere),
        cmocka_unit_test(a_clone_that_leaves_does_not_take_the_other_with_it),
        cmocka_unit_test(two_federations_do_not_merge_over_links),
        cmocka_unit_test(nothing_is_published_before_somebody_has_said_what_he_remembers_of_us),
        cmocka_unit_test(a_broker_alone_and_one_whose_peers_are_silent_publish_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
