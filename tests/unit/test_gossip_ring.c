/* The key ring: which one is used, and how it changes under brokers that run. P22. */
#include "gossip_forger.h"

static enum gossip_ring_verdict give_saying(struct net *net, int node, uint8_t number, const char *keys,
                                            char reason[160]) {
    uint8_t ring[16];
    size_t size = net_ring(number, keys, ring);
    enum gossip_ring_verdict verdict = gossip_take_ring(net->nodes[node].gossip, net->now_ms, ring, size, reason);
    net_drain(net, node);
    return verdict;
}

static enum gossip_ring_verdict give(struct net *net, int node, uint8_t number, const char *keys) {
    return give_saying(net, node, number, keys, NULL);
}

static struct member_info seen(struct net *net, int by, int whom) {
    struct member_info info = {0};
    struct member_id id = net_id(net, whom);
    assert_true(gossip_member_find(net->nodes[by].gossip, net->now_ms, &id, &info));
    return info;
}

static uint64_t unsealed(struct net *net) {
    uint64_t sum = 0;
    for (int i = 0; i < net->count; i++) {
        struct gossip_counters counters;
        if (!net->nodes[i].gossip) continue;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        sum += counters.unsealed;
    }
    return sum;
}

static bool differs(struct net *net, int by, int whom) {
    return memcmp(seen(net, by, whom).ring_mark, seen(net, 0, 0).ring_mark, 8) != 0;
}

static bool all_use_the_same(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            if (seen(net, i, j).ring != seen(net, 0, 0).ring || differs(net, i, j)) return false;
    return true;
}

/* P22 */
static void three_steps_change_the_key_and_nobody_misses_a_datagram(void **state) {
    (void)state;
    static const char *const steps[] = {"Zn", "nZ", "n"}; /* Z is 0x5a, the key of the configuration */
    struct net *net = net_new_running(4, 201);
    for (uint8_t step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(give(net, i, (uint8_t)(step + 1), steps[step]), GOSSIP_RING_TAKEN);
            net_run(net, 1500); /* others are a step behind for a while */
        }
        assert_true(net_until(net, all_use_the_same, 5000));
        assert_int_equal(seen(net, 0, 3).ring, step + 1);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(net->nodes[i].down_events, 0);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_RING], 3);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 0);
    }
    assert_int_equal(unsealed(net), 0);
    /* And the old key opens nothing any more. */
    struct message ping = {.kind = MESSAGE_PING, .number = 1};
    struct forger forger = {.net = net, .at = 0, .address = {.family = 4, .ip = {10, 9, 9, 9}, .port = 1}};
    forger.header.id = net_id(net, 30);
    forger_say(&forger, &ping);
    assert_int_equal(unsealed(net), 1);
    net_free(net);
}

static void an_older_ring_and_a_forged_one_are_refused_with_a_reason(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 202);
    char reason[160] = "";
    assert_int_equal(give(net, 0, 5, "Zn"), GOSSIP_RING_TAKEN);
    assert_int_equal(give(net, 0, 5, "Zn"), GOSSIP_RING_HELD);
    assert_int_equal(give_saying(net, 0, 4, "Zo", reason), GOSSIP_RING_OLDER);
    assert_non_null(strstr(reason, "ring 4 is older than ring 5"));
    static const uint8_t forged[] = "ring\x09Zn!";
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, forged, 8, reason), GOSSIP_RING_REFUSED);
    assert_non_null(strstr(reason, "sign one"));
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, forged, 0, reason), GOSSIP_RING_REFUSED);
    uint8_t long_one[GOSSIP_RING_SIZE_MAX + 1] = {0};
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, long_one, sizeof long_one, reason),
                     GOSSIP_RING_REFUSED);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_RING], 1);
    assert_int_equal(seen(net, 0, 0).ring, 5);
    net_run(net, 2000);
    assert_int_equal(seen(net, 1, 0).ring, 5);
    assert_int_equal(seen(net, 0, 1).ring, 0);
    net_free(net);
}

/* Two admins at once: whichever comes first where, all end with the same one, and all say so. */
static void of_two_rings_with_one_number_all_take_the_same(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct net *net = net_new_running(2, 203);
        assert_int_equal(give(net, 0, 1, swap ? "Za" : "Zb"), GOSSIP_RING_TAKEN);
        assert_int_equal(give(net, 1, 1, swap ? "Zb" : "Za"), GOSSIP_RING_TAKEN);
        net_run(net, 2000);
        assert_true(differs(net, 0, 1));
        for (int i = 0; i < 2; i++) { /* from the head of the other */
            assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 1);
            assert_non_null(strstr(net->nodes[i].last_text, "two key rings have the number 1"));
        }
        enum gossip_ring_verdict first = give(net, 0, 1, swap ? "Zb" : "Za");
        enum gossip_ring_verdict second = give(net, 1, 1, swap ? "Za" : "Zb");
        assert_true((first == GOSSIP_RING_TAKEN && second == GOSSIP_RING_OUTDONE) ||
                    (first == GOSSIP_RING_OUTDONE && second == GOSSIP_RING_TAKEN));
        assert_true(net_until(net, all_use_the_same, 5000));
        net_run(net, 10000);
        for (int i = 0; i < 2; i++)
            assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 1); /* not again and again */
        assert_int_equal(net->nodes[0].down_events + net->nodes[1].down_events, 0);
        net_free(net);
    }
}

static void a_ring_that_was_kept_is_used_after_a_restart(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 204);
    for (uint8_t step = 1; step <= 3; step++)
        for (int i = 0; i < 3; i++) {
            assert_int_equal(give(net, i, step, step == 1 ? "Zn" : step == 2 ? "nZ" : "n"), GOSSIP_RING_TAKEN);
            net_run(net, 200);
        }
    net_kill(net, 1);
    net_run(net, 1000);
    net->nodes[1].epoch++;
    net_start(net, 1); /* its configuration still has the old key */
    assert_true(net_until(net, net_agreed, 5000));
    assert_int_equal(seen(net, 0, 1).ring, 3);
    assert_int_equal(seen(net, 1, 1).ring, 3);
    char reason[160] = "";
    assert_int_equal(give_saying(net, 1, 2, "nZ", reason), GOSSIP_RING_OLDER);
    net_free(net);
}

/* Who stole the old key must neither read the new one nor put one of his own in. */
static void a_ring_in_a_datagram_is_not_looked_at(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 205);
    net_run(net, 1000);
    uint8_t ring[16];
    struct forger forger = forger_new(net, 0, 1, &net->nodes[1].address);
    struct message message = {.kind = MESSAGE_RING, .bytes = ring, .size = net_ring(7, "n", ring)};
    forger_say(&forger, &message);
    assert_int_equal(seen(net, 0, 0).ring, 0);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_RING], 0);
    /* Nor does anybody put one into a datagram, whoever has an older one. */
    assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
    unsigned before = forger.count[MESSAGE_RING];
    for (int i = 0; i < 100; i++) {
        struct message ping = {.kind = MESSAGE_PING, .number = 1};
        forger_say(&forger, &ping);
        net_run(net, 100);
    }
    assert_int_equal(forger.count[MESSAGE_RING], before);
    net_free(net);
}

/* ---- over links ---- */

static struct net *linked_running(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    net->links = true;
    for (int i = 0; i < count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    return net;
}

static bool all_use(struct net *net, uint64_t number) {
    for (int i = 0; i < net->count; i++)
        if (net->nodes[i].gossip && seen(net, i, i).ring != number) return false;
    return true;
}

static bool all_use_1(struct net *net) {
    return all_use(net, 1);
}
static bool all_use_2(struct net *net) {
    return all_use(net, 2);
}
static bool all_use_3(struct net *net) {
    return all_use(net, 3);
}

static bool agreed_on_3(struct net *net) {
    return all_use_3(net) && net_agreed(net);
}

static void rotate_at(struct net *net, int node, uint64_t pause_ms) {
    assert_int_equal(give(net, node, 1, "Zn"), GOSSIP_RING_TAKEN);
    net_run(net, pause_ms);
    assert_int_equal(give(net, node, 2, "nZ"), GOSSIP_RING_TAKEN);
    net_run(net, pause_ms);
    assert_int_equal(give(net, node, 3, "n"), GOSSIP_RING_TAKEN);
}

static void no_deaths(struct net *net) {
    for (int i = 0; i < net->count; i++)
        assert_int_equal(net->nodes[i].down_events, 0);
}

/* P22 */
static void a_ring_given_to_one_is_everywhere_soon_and_only_over_links(void **state) {
    (void)state;
    static const int sizes[] = {2, 5, 40};
    for (size_t i = 0; i < 3; i++) {
        struct net *net = linked_running(sizes[i], 210);
        static const char *const steps[] = {"Zn", "nZ", "n"};
        static bool (*const done[])(struct net *) = {all_use_1, all_use_2, all_use_3};
        for (uint8_t step = 0; step < 3; step++) {
            assert_int_equal(give(net, sizes[i] - 1, (uint8_t)(step + 1), steps[step]), GOSSIP_RING_TAKEN);
            if (!net_until(net, done[step], 10000)) fail_msg("%d brokers, step %u: not at all", sizes[i], step + 1u);
            assert_true(net_until(net, all_use_the_same, 10000)); /* and everybody knows it of everybody */
            net_run(net, 100);                                    /* what was sealed before has arrived */
        }
        no_deaths(net);
        assert_int_equal(unsealed(net), 0);
        /* Once all have it nobody says it again. */
        net_run(net, 5000);
        struct gossip_counters before, after;
        gossip_read_counters(net->nodes[0].gossip, &before);
        net_run(net, 60000);
        gossip_read_counters(net->nodes[0].gossip, &after);
        assert_int_equal(after.rings_sent, before.rings_sent);
        assert_int_equal(after.rings_behind, 0);
        net_free(net);
    }
}

/* P22: it knows nothing but the old key and one address. */
static uint64_t sleep_through(uint64_t seed) {
    struct net *net = linked_running(4, seed);
    net_kill(net, 3);
    net_run(net, 10000);
    rotate_at(net, 0, 5000);
    net_run(net, 600000);
    net->nodes[3].epoch++;
    net_start(net, 3);
    uint64_t start = net->now_ms;
    assert_true(net_until(net, agreed_on_3, 10000));
    assert_true(net->nodes[3].ring_size > 0); /* and keeps it */
    uint64_t took_ms = net->now_ms - start;
    net_free(net);
    return took_ms;
}

static void a_broker_that_slept_through_a_rotation_gets_the_ring_over_a_link(void **state) {
    (void)state;
    uint64_t longest_ms = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t took_ms = sleep_through(230 + seed);
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    print_message("back at most %llu ms after its start\n", (unsigned long long)longest_ms);
    assert_true(longest_ms < 5000);
}

/* P22: the sleeper did not restart: its process was stopped, and goes on with all it knew. */
static void a_broker_that_was_paused_through_a_rotation_comes_back_too(void **state) {
    (void)state;
    struct net *net = linked_running(4, 212);
    struct gossip *paused = net->nodes[3].gossip;
    net->nodes[3].gossip = NULL;
    for (int i = 0; i < 3; i++)
        net_link_set(net, i, 3, false);
    net_run(net, 10000);
    rotate_at(net, 0, 5000);
    net_run(net, 60000);
    net->nodes[3].gossip = paused;
    assert_true(net_until(net, agreed_on_3, 20000));
    net_free(net);
}

/* P22: each side of a cut is whole by itself; one side rotates, the other does not. */
static uint64_t partition_with_rotation(uint64_t seed) {
    struct net *net = linked_running(6, seed);
    for (int i = 0; i < 3; i++)
        for (int j = 3; j < 6; j++) {
            net->cut[i][j] = net->cut[j][i] = true;
            net_cut_link(net, i, j, true);
        }
    net_run(net, 20000);
    rotate_at(net, 1, 5000);
    net_run(net, 100000);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(seen(net, i, i).ring, i < 3 ? 3 : 0);
        assert_int_equal(net->nodes[i].sees[(i + 3) % 6], MEMBER_DOWN);
    }
    memset(net->cut, 0, sizeof net->cut);
    memset(net->link_cut, 0, sizeof net->link_cut);
    uint64_t start = net->now_ms;
    assert_true(net_until(net, agreed_on_3, 60000));
    uint64_t took_ms = net->now_ms - start;
    net_free(net);
    return took_ms;
}

static void a_rotation_during_a_partition_reaches_the_other_side_when_it_heals(void **state) {
    (void)state;
    uint64_t longest_ms = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        uint64_t took_ms = partition_with_rotation(213 + seed);
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    print_message("whole again at most %llu ms after the cut\n", (unsigned long long)longest_ms);
    assert_true(longest_ms < 20000);
}

/* P22: the admin went on too early, and twice: some are at step 2, some at 1, one at 0. */
static void an_interrupted_rotation_ends_at_the_highest_ring(void **state) {
    (void)state;
    struct net *net = linked_running(5, 214);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            if (i != j) net_cut_link(net, i, j, true); /* nothing is passed on */
    for (int i = 0; i < 3; i++)
        assert_int_equal(give(net, i, 1, "Zn"), GOSSIP_RING_TAKEN);
    for (int i = 0; i < 2; i++)
        assert_int_equal(give(net, i, 2, "nZ"), GOSSIP_RING_TAKEN);
    net_run(net, 3000);
    assert_int_equal(give(net, 0, 3, "n"), GOSSIP_RING_TAKEN);
    net_run(net, 30000); /* some cannot open what others seal: they hold each other for down */
    memset(net->link_cut, 0, sizeof net->link_cut);
    assert_true(net_until(net, agreed_on_3, 60000));
    net_free(net);
}

/* Stolen: one new key and no other, at once. */
static void a_key_replaced_at_once_reaches_all_though_nobody_opens_it_before(void **state) {
    (void)state;
    struct net *net = linked_running(8, 215);
    assert_int_equal(give(net, 4, 1, "n"), GOSSIP_RING_TAKEN);
    assert_true(net_until(net, all_use_1, 10000));
    assert_true(net_until(net, net_agreed, 10000));
    net_run(net, 10000);
    no_deaths(net); /* links say that all live */
    net_free(net);
}

static void two_rings_of_one_number_meet_over_links_and_one_stays(void **state) {
    (void)state;
    struct net *net = linked_running(6, 216);
    for (int i = 0; i < 3; i++)
        for (int j = 3; j < 6; j++) {
            net->cut[i][j] = net->cut[j][i] = true;
            net_cut_link(net, i, j, true);
        }
    assert_int_equal(give(net, 0, 1, "a"), GOSSIP_RING_TAKEN);
    assert_int_equal(give(net, 5, 1, "b"), GOSSIP_RING_TAKEN);
    net_run(net, 30000);
    memset(net->cut, 0, sizeof net->cut);
    memset(net->link_cut, 0, sizeof net->link_cut);
    assert_true(net_until(net, net_agreed, 60000));
    assert_true(net_until(net, all_use_the_same, 60000));
    uint64_t warned = 0;
    for (int i = 0; i < 6; i++) {
        /* Whoever had to give its ring up says so, and so does who gave it the other. */
        assert_true(net->nodes[i].event_count[GOSSIP_WARNING] >= (net->nodes[i].event_count[GOSSIP_RING] > 1));
        assert_true(net->nodes[i].event_count[GOSSIP_WARNING] <= 2);
        warned += net->nodes[i].event_count[GOSSIP_WARNING];
    }
    assert_true(warned >= 4);
    net_free(net);
}

/* A broker of ours whose admin gave it no issuer that signed the ring says so, and does not end the link. */
static void a_forged_ring_over_a_link_is_refused_and_told(void **state) {
    (void)state;
    struct net *net = linked_running(2, 217);
    struct member_id id = net_id(net, 1);
    struct packet_header header = {.id = id, .epoch = 1, .incarnation = 1};
    uint8_t digest[32];
    net_sha256(NULL, (const uint8_t *)"home", 4, digest);
    memcpy(header.cookie, digest, sizeof header.cookie);
    struct message message = {.kind = MESSAGE_RING, .bytes = (const uint8_t *)"ring\x09n!", .size = 7};
    uint8_t plain[SEAL_PLAIN_MAX];
    for (int i = 0; i < 5; i++) {
        struct wire_out packet;
        wire_out_init(&packet, plain, sizeof plain);
        header_put(&packet, &header);
        message_put(&packet, &message);
        gossip_link_receive(net->nodes[0].gossip, net->now_ms, &id, plain, packet.size);
        net_drain(net, 0);
    }
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.rings_refused, 5);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_WARNING], 1);
    assert_non_null(strstr(net->nodes[0].last_text, "sign one"));
    assert_int_equal(seen(net, 0, 0).ring, 0);
    net_run(net, 5000);
    no_deaths(net);
    net_free(net);
}

/* Its head claims a ring that it does not have: nobody waits for it, nor is anything sent for ever. */
static void a_member_that_claims_a_ring_costs_nobody_anything(void **state) {
    (void)state;
    struct net *net = linked_running(3, 218);
    assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
    assert_true(net_until(net, all_use_the_same, 10000));
    struct head head = {.id = net_id(net, 2), .epoch = 1, .incarnation = 50, .ring = UINT64_MAX};
    head.address = net->nodes[2].address;
    uint8_t bytes[HEAD_SIZE_MAX];
    struct gossip_crypto crypto = {.context = &net->nodes[2].identity, .sign = net_sign};
    struct forger forger = forger_new(net, 0, 2, &net->nodes[2].address);
    struct message message = {.kind = MESSAGE_HEAD, .bytes = bytes, .size = head_sign(&head, &crypto, bytes)};
    forger_say(&forger, &message);
    assert_true(seen(net, 0, 2).ring == UINT64_MAX);
    net_run(net, 30000);
    assert_int_equal(seen(net, 0, 0).ring, 1);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    net_free(net);
}

/* P22: who is ahead cannot dial who is behind a NAT, so who is behind dials. Datagrams pass, so no link is there for
 * another reason. */
static void who_is_behind_and_cannot_be_reached_fetches_the_ring(void **state) {
    (void)state;
    for (uint64_t seed = 240; seed < 245; seed++) {
        struct net *net = linked_running(4, seed);
        net->nodes[2].hidden = net->nodes[3].hidden = true;
        net_run(net, 120000);
        for (int i = 0; i < 4; i++)
            assert_false(net->link[i][3] || net->link[3][i]); /* none is left of the start */
        assert_int_equal(give(net, seed % 2 == 0 ? 0 : 2, 1, "Zn"), GOSSIP_RING_TAKEN);
        if (!net_until(net, all_use_1, 30000)) fail_msg("seed %d: not at all", (int)seed);
        assert_true(net_until(net, all_use_the_same, 5000));
        net_run(net, 300000);
        uint64_t dials = net->dials;
        net_run(net, 60000);
        assert_int_equal(net->dials, dials); /* and then nobody asks for anything any more */
        no_deaths(net);
        net_free(net);
    }
}

/* A broker of a version without rings says for ever that it has none; so may a liar. */
static void who_stays_behind_is_told_ever_more_seldom(void **state) {
    (void)state;
    struct net *net = linked_running(3, 246);
    net->nodes[2].identity.reads_no_ring = true;
    assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
    net_run(net, 60000);
    assert_int_equal(seen(net, 1, 1).ring, 1);
    assert_int_equal(seen(net, 2, 2).ring, 0);
    struct gossip_counters before, after;
    gossip_read_counters(net->nodes[0].gossip, &before);
    net_run(net, 600000);
    gossip_read_counters(net->nodes[0].gossip, &after);
    print_message("told %d times in ten minutes\n", (int)(after.rings_sent - before.rings_sent));
    assert_true(after.rings_sent - before.rings_sent < 80);
    assert_true(after.rings_sent > before.rings_sent);
    /* It is upgraded, and does not have to wait long. */
    net->nodes[2].identity.reads_no_ring = false;
    assert_true(net_until(net, all_use_1, 20000));
    net_free(net);
}

/* P22: most of those who are ahead are as hard to reach as those who are behind. */
static void of_many_behind_routers_the_one_that_was_configured_is_asked(void **state) {
    (void)state;
    for (uint64_t seed = 250; seed < 253; seed++) {
        struct net *net = linked_running(16, seed);
        for (int i = 1; i < 16; i++)
            net->nodes[i].hidden = true;
        net_run(net, 120000);
        assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
        if (!net_until(net, all_use_1, 10000)) fail_msg("seed %d: not at all", (int)seed);
        no_deaths(net);
        net_free(net);
    }
}

static void who_starts_with_a_ring_tells_who_is_behind_at_a_pace(void **state) {
    (void)state;
    struct net *net = linked_running(2, 254);
    net->nodes[1].identity.reads_no_ring = true;
    assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
    net_kill(net, 0);
    net->nodes[0].epoch++;
    net_start(net, 0);
    net_run(net, 30000); /* which fails when a deadline does not move */
    assert_int_equal(seen(net, 0, 0).ring, 1);
    struct gossip_counters after;
    gossip_read_counters(net->nodes[0].gossip, &after);
    assert_in_range(after.rings_sent, 1, 20);
    net_free(net);
}

static void a_ring_that_was_kept_and_does_not_fit_is_refused_at_the_start(void **state) {
    (void)state;
    struct net *net = net_new(1, 206);
    struct net_node *node = &net->nodes[0];
    uint8_t ring[GOSSIP_RING_SIZE_MAX + 1] = {0};
    struct gossip_options options = {
        .name = node->name,
        .federation = "home",
        .epoch = 1,
        .public_key = node->identity.public_key,
        .token = (const uint8_t *)node->token,
        .token_size = strlen(node->token),
        .keys = &node->key,
        .key_count = 1,
        .ring = ring,
        .ring_size = sizeof ring,
        .ring_number = 1,
        .crypto = {&node->identity, net_seal, net_open, net_sha256, net_sign, net_verify, net_id_of, net_who_is, NULL},
    };
    assert_null(gossip_new(&options, 0));
    options.ring_size = 8;
    options.ring_number = 0;
    assert_null(gossip_new(&options, 0));
    options.ring_number = 1;
    struct gossip *gossip = gossip_new(&options, 0);
    assert_non_null(gossip);
    /* Without a judge none is good. */
    assert_int_equal(gossip_take_ring(gossip, 0, (const uint8_t *)"ring\x02n.", 7, NULL), GOSSIP_RING_REFUSED);
    gossip_free(gossip);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_change_the_key_and_nobody_misses_a_datagram),
        cmocka_unit_test(an_older_ring_and_a_forged_one_are_refused_with_a_reason),
        cmocka_unit_test(of_two_rings_with_one_number_all_take_the_same),
        cmocka_unit_test(a_ring_that_was_kept_is_used_after_a_restart),
        cmocka_unit_test(a_ring_in_a_datagram_is_not_looked_at),
        cmocka_unit_test(a_ring_given_to_one_is_everywhere_soon_and_only_over_links),
        cmocka_unit_test(a_broker_that_slept_through_a_rotation_gets_the_ring_over_a_link),
        cmocka_unit_test(a_broker_that_was_paused_through_a_rotation_comes_back_too),
        cmocka_unit_test(a_rotation_during_a_partition_reaches_the_other_side_when_it_heals),
        cmocka_unit_test(an_interrupted_rotation_ends_at_the_highest_ring),
        cmocka_unit_test(a_key_replaced_at_once_reaches_all_though_nobody_opens_it_before),
        cmocka_unit_test(two_rings_of_one_number_meet_over_links_and_one_stays),
        cmocka_unit_test(a_forged_ring_over_a_link_is_refused_and_told),
        cmocka_unit_test(a_member_that_claims_a_ring_costs_nobody_anything),
        cmocka_unit_test(who_is_behind_and_cannot_be_reached_fetches_the_ring),
        cmocka_unit_test(who_stays_behind_is_told_ever_more_seldom),
        cmocka_unit_test(of_many_behind_routers_the_one_that_was_configured_is_asked),
        cmocka_unit_test(who_starts_with_a_ring_tells_who_is_behind_at_a_pace),
        cmocka_unit_test(a_ring_that_was_kept_and_does_not_fit_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
