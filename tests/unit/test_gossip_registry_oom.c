/* The nth allocation fails, for n = 0, 1, 2 ... until none does: nothing leaks, nothing is half done, and a second try
 * succeeds. */
#include "gossip_registry_fixture.h"
#include "oom.h"

static void an_entry_is_applied_wholly_or_not_at_all(void **unused) {
    (void)unused;
    for (long n = 0;; n++) {
        struct fixture_owner owner;
        struct fixture_replica replica = {0};
        fixture_init(&owner);
        for (int i = 0; i < 30; i++) {
            char op[16];
            snprintf(op, sizeof op, "%ck/%d", i < 20 ? '+' : '-', i % 20 * 7 % 20);
            fixture_say(&owner, op);
        }
        shortage_after(n);
        for (uint64_t i = 1; i <= 30; i++) {
            enum registry_result result = fixture_offer(&replica, &owner, i);
            uint64_t sequence = registry_sequence(replica.registry);
            assert_int_equal(registry_rows(replica.registry)->count, sequence <= 20 ? sequence : 40 - sequence);
            if (result == REGISTRY_NO_MEMORY) assert_int_equal(fixture_offer(&replica, &owner, i), REGISTRY_OK);
        }
        shortage_over();
        assert_true(fixture_agrees(&replica, &owner));
        fixture_end(&replica);
        registry_unref(owner.registry);
        if (!shortage.failed) break;
    }
}

static void an_entry_that_came_early_may_find_no_memory(void **unused) {
    (void)unused;
    for (long n = 0;; n++) {
        struct fixture_owner owner;
        struct fixture_replica replica = {0};
        fixture_init(&owner);
        for (int i = 0; i < 4; i++)
            fixture_say(&owner, i % 2 ? "-a" : "+a");
        shortage_after(n);
        for (uint64_t i = 4; i > 0; i--)
            fixture_offer(&replica, &owner, i);
        for (uint64_t i = 1; i <= 4; i++)
            fixture_offer(&replica, &owner, i);
        shortage_over();
        assert_true(fixture_agrees(&replica, &owner));
        fixture_end(&replica);
        registry_unref(owner.registry);
        if (!shortage.failed) break;
    }
}

static void a_checkpoint_survives_any_failed_allocation(void **unused) {
    (void)unused;
    for (long n = 0;; n++) {
        struct fixture_owner owner;
        struct fixture_replica replica = {0}, follower = {0};
        fixture_init(&owner);
        for (int i = 0; i < 40; i++) {
            char op[80];
            snprintf(op, sizeof op, "+a/filter/that/takes/some/room/so/that/there/are/chunks/%d", i);
            fixture_say(&owner, op);
            fixture_offer(&follower, &owner, (uint64_t)i + 1);
        }
        fixture_checkpoint(&owner);
        shortage_after(n);
        if (fixture_offer_head(&replica, &owner) == REGISTRY_NO_MEMORY)
            assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
        enum registry_result result = REGISTRY_GAP;
        for (int tries = 0; result != REGISTRY_OK; tries++) {
            assert_true(tries < 100);
            assert_null(replica.registry);
            for (uint64_t i = fixture_chunks(&owner); result != REGISTRY_OK && i-- > 0;)
                result = fixture_offer_chunk(&replica, &owner, i);
        }
        if (fixture_offer_head(&follower, &owner) == REGISTRY_NO_MEMORY)
            assert_int_equal(fixture_offer_head(&follower, &owner), REGISTRY_OK);
        shortage_over();
        assert_int_equal(follower.registry->log_count, 0);
        assert_true(fixture_agrees(&replica, &owner));
        assert_true(fixture_agrees(&follower, &owner));
        fixture_end(&replica);
        fixture_end(&follower);
        registry_unref(owner.registry);
        if (!shortage.failed) break;
    }
}

static void going_back_happens_wholly_or_not_at_all(void **unused) {
    (void)unused;
    bool failed = true;
    for (long n = 0; failed; n++) {
        failed = false;
        for (uint64_t base = 0; base <= 10; base += 10) {
            struct fixture_owner owner;
            struct fixture_replica replica = {0};
            fixture_init(&owner);
            for (uint64_t i = 1; i <= 16; i++) {
                char op[16];
                snprintf(op, sizeof op, "%ck/%d", i == 14 ? '-' : '+', (int)i % 13);
                fixture_say(&owner, op);
                fixture_offer(&replica, &owner, i);
                if (i != base) continue;
                fixture_checkpoint(&owner);
                assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_OK);
            }
            assert_int_equal(registry_base_sequence(replica.registry), base);
            const struct rowset *rows = registry_rows(replica.registry);
            size_t count = rows->count;
            shortage_after(n);
            if (registry_rewind(&replica.registry, &owner.rules, 13, &fixture_nobody) == REGISTRY_NO_MEMORY) {
                assert_int_equal(registry_sequence(replica.registry), 16);
                assert_int_equal(registry_rows(replica.registry)->count, count);
                assert_int_equal(registry_rewind(&replica.registry, &owner.rules, 13, &fixture_nobody), REGISTRY_OK);
            }
            shortage_over();
            failed = failed || shortage.failed;
            assert_int_equal(registry_sequence(replica.registry), 13);
            assert_int_equal(registry_base_sequence(replica.registry), base);
            assert_int_equal(registry_rows(replica.registry)->count, 13);
            assert_int_equal(registry_rewind(&replica.registry, &owner.rules, 13, &fixture_nobody), REGISTRY_REPEATED);
            for (uint64_t i = 14; i <= 16; i++)
                assert_int_equal(fixture_offer(&replica, &owner, i), REGISTRY_OK);
            assert_true(fixture_agrees(&replica, &owner));
            fixture_end(&replica);
            registry_unref(owner.registry);
        }
    }
}

static void starting_fails_cleanly(void **unused) {
    (void)unused;
    for (long n = 0;; n++) {
        struct net *net = net_new(1, 1);
        struct net_node *node = &net->nodes[0];
        struct gossip_options options = {.name = "a",
                                         .federation = "home",
                                         .public_key = node->identity.public_key,
                                         .token = (const uint8_t *)"t",
                                         .token_size = 1,
                                         .keys = &node->key,
                                         .key_count = 1,
                                         .epoch = 1,
                                         .crypto = {&node->identity, net_seal, net_open, net_sha256, net_sign,
                                                    net_verify, net_id_of, net_who_is, NULL}};
        shortage_after(n);
        struct gossip *gossip = gossip_new(&options, 1);
        shortage_over();
        assert_int_equal(gossip == NULL, shortage.failed);
        gossip_free(gossip);
        net_free(net);
        if (!shortage.failed) break;
    }
}

static void brokers_short_of_memory_agree_once_they_have_it(void **unused) {
    (void)unused;
    static const long rates[] = {2, 3, 7, 31};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct net *net = net_new_running(3, 5 + r);
        for (int i = 0; i < 200; i++) {
            char filter[32];
            snprintf(filter, sizeof filter, "m/%d", i % 70);
            struct gossip *gossip = net->nodes[i % 3].gossip;
            shortage.every = rates[r];
            uint64_t sequence = i % 5 ? gossip_row_put(gossip, net->now_ms, GOSSIP_NEWPUB, filter, strlen(filter))
                                      : gossip_row_delete(gossip, net->now_ms, GOSSIP_NEWPUB, filter, strlen(filter));
            /* The network's own packets are made with all memory; what comes out is put on it afterwards. */
            struct net_packet *packet = net->packets;
            if (packet && net->nodes[packet->to].gossip) {
                net->packets = packet->next;
                gossip_receive(net->nodes[packet->to].gossip, net->now_ms, &packet->source, packet->bytes,
                               packet->size);
                gossip_tick(net->nodes[packet->to].gossip, net->now_ms);
                free(packet);
            }
            shortage.every = 0;
            (void)sequence;
            for (int j = 0; j < 3; j++)
                net_drain(net, j);
            net_run(net, 20);
        }
        assert_true(net_until(net, net_agreed, 60000));
        net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_applied_wholly_or_not_at_all),
        cmocka_unit_test(an_entry_that_came_early_may_find_no_memory),
        cmocka_unit_test(a_checkpoint_survives_any_failed_allocation),
        cmocka_unit_test(going_back_happens_wholly_or_not_at_all),
        cmocka_unit_test(starting_fails_cleanly),
        cmocka_unit_test(brokers_short_of_memory_agree_once_they_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
