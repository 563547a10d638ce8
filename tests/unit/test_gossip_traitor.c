/* A broker with the gossip key and its own valid token: whatever it says, nothing changes but counters and its own
 * rows, and what it costs the others is bounded. */
#include "gossip_court.h"

#include <malloc.h>
#include <time.h>

static void it_cannot_write_or_withdraw_rows_of_others(void **state) {
    (void)state;
    struct court court = court_new(301);
    uint8_t bytes[MESSAGE_BLOB_MAX];
    for (int round = 0; round < 20; round++) {
        for (int owner = 0; owner < HONEST; owner++)
            for (int to = 0; to < HONEST; to++) {
                struct member_info owner_now;
                struct member_id id = net_id(court.net, owner);
                if (owner == to || !gossip_member_find(court.net->nodes[to].gossip, court.net->now_ms, &id, &owner_now))
                    continue;
                char filter[32];
                snprintf(filter, sizeof filter, "%s/%d", round % 2 ? "kept" : "gone", owner);
                size_t size = traitor_entry(court.traitor, owner, owner_now.epoch, owner_now.sequence + 1, filter,
                                            round % 2, bytes);
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
                struct head head = {.id = id,
                                    .epoch = owner_now.epoch + (uint64_t)round,
                                    .incarnation = 1000,
                                    .leaving = round % 3 == 0};
                size = traitor_head(court.traitor, head, bytes);
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
            }
        net_run(court.net, 100);
    }
    assert_true(SUM(court.net, bad_signature) > 100);
    court_free(&court);
}

static void what_others_signed_earlier_changes_nothing_again(void **state) {
    (void)state;
    struct court court = court_new(302);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < court.traitor->kept_count; i++)
            traitor_say_one(court.traitor, round % HONEST,
                            (struct message){.kind = court.traitor->kept[i].kind,
                                             .bytes = court.traitor->kept[i].bytes,
                                             .size = court.traitor->kept[i].size});
        net_run(court.net, 50);
    }
    court_free(&court);
}

/* P7, P9: what the dead signed in their life does not bring them back. */
static void it_cannot_revive_the_dead(void **state) {
    (void)state;
    struct court court = court_new(303);
    struct net *net = court.net;
    net_kill(net, 1);
    net_run(net, 10000);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_DOWN);
    for (int round = 0; round < 100; round++) {
        for (size_t i = 0; i < court.traitor->kept_count; i++)
            traitor_say_one(court.traitor, round % HONEST,
                            (struct message){.kind = court.traitor->kept[i].kind,
                                             .bytes = court.traitor->kept[i].bytes,
                                             .size = court.traitor->kept[i].size});
        traitor_say_one(court.traitor, round % HONEST,
                        (struct message){.kind = MESSAGE_INDIRECT, .number = 0, .flag = true});
        traitor_say_one(
            court.traitor, round % HONEST,
            (struct message){.kind = MESSAGE_HAVE,
                             .version = {.id = net_id(net, 1), .epoch = 9, .incarnation = 9, .sequence = 9}});
        net_run(net, 100);
        for (int i = 0; i < HONEST; i++)
            if (i != 1) assert_int_equal(net->nodes[i].sees[1], MEMBER_DOWN);
    }
    court_revive(&court, 1);
    court_free(&court);
}

/* The dearest: a signature costs a hundred times what a datagram does. */
struct bill {
    uint64_t cpu_us, bytes, datagrams, memory;
};

static uint64_t cpu_us(void) {
    return (uint64_t)clock() * 1000000 / CLOCKS_PER_SEC;
}

/* The sanitizer has an allocator of its own. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
static size_t allocated(void) {
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() : mallinfo2().uordblks;
}

static struct bill bill_begin(const struct court *court) {
    return (struct bill){cpu_us(), SUM(court->net, bytes_sent), SUM(court->net, datagrams_sent), allocated()};
}

/* What all honest ones spent since; the network's own memory is the same as before once nothing is on its way. */
static void bill_end(const struct court *court, struct bill *bill, const char *what) {
    net_run(court->net, 1500);
    bill->cpu_us = cpu_us() - bill->cpu_us;
    bill->bytes = SUM(court->net, bytes_sent) - bill->bytes;
    bill->datagrams = SUM(court->net, datagrams_sent) - bill->datagrams;
    size_t now = allocated();
    bill->memory = now > bill->memory ? now - bill->memory : 0;
    print_message("%s: %llu ms of processor, %llu kB in %llu datagrams sent, %llu kB of memory\n", what,
                  (unsigned long long)bill->cpu_us / 1000, (unsigned long long)bill->bytes / 1000,
                  (unsigned long long)bill->datagrams, (unsigned long long)bill->memory / 1000);
}

static void questions_without_end_are_answered_with_measure(void **state) {
    (void)state;
    struct court court = court_new(304);
    uint8_t buckets[MESSAGE_BUCKET_COUNT * 8] = {1};
    uint64_t sent_before = court.traitor->bytes_out;
    struct bill bill = bill_begin(&court);
    for (int i = 0; i < 20000; i++) {
        struct member_id about = net_id(court.net, (i / 7) % HONEST);
        struct message questions[] = {
            {.kind = MESSAGE_WHO, .version.id = about},
            {.kind = MESSAGE_WANT, .version.id = about},
            {.kind = MESSAGE_PING_REQ, .number = (uint64_t)i + 1, .version.id = about},
            {.kind = MESSAGE_DIGEST, .number = (uint64_t)i},
            {.kind = MESSAGE_BUCKETS, .bytes = buckets, .size = sizeof buckets},
            {.kind = MESSAGE_PING, .number = (uint64_t)i + 1},
            {.kind = MESSAGE_WANT_CHUNK, .version = {.id = about, .epoch = 1}, .number = (uint64_t)i},
        };
        traitor_say_one(court.traitor, 0, questions[i % 7]);
        if (i % 20 == 0) net_run(court.net, 1); /* 20,000 questions in a second */
    }
    bill_end(&court, &bill, "20,000 questions in a second");
    print_message("%llu kB of questions\n", (unsigned long long)(court.traitor->bytes_out - sent_before) / 1000);
    assert_true(bill.bytes < 1200000); /* its measure in two seconds, and 2,857 pings are answered all the same */
    assert_true(bill.memory < 1000000);
    court_free(&court);
}

static void claims_about_brokers_without_end_take_bounded_memory(void **state) {
    (void)state;
    struct court court = court_new(305);
    struct bill bill = bill_begin(&court);
    for (int i = 0; i < 4000; i++) {
        uint8_t records[MESSAGE_VERSIONS_MAX * MESSAGE_VERSION_SIZE];
        struct version version = {.epoch = 1, .incarnation = 1, .sequence = UINT64_MAX};
        for (size_t k = 0; k < MESSAGE_VERSIONS_MAX; k++) {
            for (size_t b = 0; b < 16; b++)
                version.id.bytes[b] = (uint8_t)net_random(court.net);
            version.id.bytes[0] = 7;
            version_store(records + k * MESSAGE_VERSION_SIZE, &version);
        }
        struct message claims[] = {
            {.kind = MESSAGE_VERSIONS, .number = 7, .other = {{255}}, .bytes = records, .size = sizeof records},
            {.kind = MESSAGE_HAVE, .version = version},
        };
        traitor_say_one(court.traitor, i % HONEST, claims[i % 2]);
        if (i % 4 == 0) net_run(court.net, 1);
    }
    bill_end(&court, &bill, "claims about 42,000 brokers");
    assert_true(bill.memory < 5u * 1000000);
    assert_true(bill.bytes < HONEST * 262144);
    court_free(&court);
}

static void absurd_sizes_are_not_believed(void **state) {
    (void)state;
    struct court court = court_new(306);
    static const uint64_t absurd[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, 1ull << 40,
                                      1ull << 32, 1u << 31,       1u << 20};
    uint8_t bytes[HEAD_SIZE_MAX], chunk[MESSAGE_CHUNK_SIZE] = {0};
    struct bill bill = bill_begin(&court);
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++)
        for (size_t k = 0; k < 4; k++) {
            court.traitor->header.incarnation++;
            struct head head = traitor_own_head(court.traitor);
            head.checkpoint_sequence = k & 1 ? absurd[i] : 5;
            head.sequence = k & 2 ? absurd[i] : head.checkpoint_sequence;
            head.checkpoint_size = absurd[i];
            size_t size = traitor_head(court.traitor, head, bytes);
            for (int to = 0; to < HONEST; to++) {
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
                for (size_t n = 0; n < sizeof absurd / sizeof *absurd; n++)
                    traitor_say_one(
                        court.traitor, to,
                        (struct message){.kind = MESSAGE_CHUNK,
                                         .version = {.id = head.id, .epoch = 1, .sequence = head.checkpoint_sequence},
                                         .number = absurd[n],
                                         .bytes = chunk,
                                         .size = sizeof chunk});
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_WANT,
                                                 .version = {.id = net_id(court.net, 0),
                                                             .epoch = absurd[i],
                                                             .incarnation = absurd[i],
                                                             .sequence = absurd[i]}});
                traitor_say_one(
                    court.traitor, to,
                    (struct message){.kind = MESSAGE_WANT_CHUNK,
                                     .version = {.id = net_id(court.net, 1), .epoch = 1, .sequence = absurd[i]},
                                     .number = absurd[i]});
                traitor_say_one(
                    court.traitor, to,
                    (struct message){.kind = MESSAGE_ACCUSE,
                                     .version = {.id = net_id(court.net, to), .epoch = 1, .incarnation = absurd[i]},
                                     .other = head.id});
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_HAD,
                                                 .version = {.id = net_id(court.net, to),
                                                             .epoch = 1,
                                                             .incarnation = absurd[i],
                                                             .sequence = absurd[i]}});
            }
            net_run(court.net, 50);
        }
    bill_end(&court, &bill, "absurd sizes");
    assert_true(bill.memory < 12u * 1000000); /* what a checkpoint of the largest size takes at each */
    court_free(&court);
}

static void rows_of_its_own_without_end_stay_within_its_budget(void **state) {
    (void)state;
    struct court court = court_new(307);
    struct bill bill = bill_begin(&court);
    uint8_t bytes[MESSAGE_BLOB_MAX];
    for (uint64_t sequence = 1; sequence <= 8000; sequence++) {
        char filter[600];
        snprintf(filter, sizeof filter, "steal/%0500llu", (unsigned long long)sequence);
        size_t size = traitor_entry(court.traitor, court.traitor->as, 1, sequence, filter, false, bytes);
        court.traitor->header.sequence = sequence;
        for (int to = 0; to < HONEST; to++)
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        if (sequence % 2 == 0) net_run(court.net, 2);
    }
    bill_end(&court, &bill, "8,000 entries of its own");
    assert_true(SUM(court.net, rows_others) <= HONEST * (HONEST + 4096ull * 2));
    assert_true(bill.memory < HONEST * 10ull * 1000000);
    court_free(&court);
}

static void who_accuses_everybody_is_not_believed(void **state) {
    (void)state;
    struct court court = court_new(308);
    struct net *net = court.net;
    struct suspense suspense = {0};
    for (int round = 0; round < 600; round++) {
        for (int about = 0; about < HONEST; about++)
            for (int to = 0; to < HONEST; to++)
                for (int by = 0; by <= HONEST; by++) { /* in its own name and in that of each other */
                    if (about == to) continue;
                    struct member_id id = net_id(net, about);
                    struct member_info now;
                    assert_true(gossip_member_find(net->nodes[to].gossip, net->now_ms, &id, &now));
                    traitor_say_one(
                        court.traitor, to,
                        (struct message){
                            .kind = MESSAGE_ACCUSE,
                            .version = {.id = id, .epoch = now.epoch, .incarnation = 1 + (uint64_t)round / 10},
                            .other = by == HONEST ? court.traitor->header.id : net_id(net, by)});
                }
        net_run(net, 100);
        suspense_look(&suspense, net);
    }
    print_message("a minute of accusations: %llu suspicions, %llu refutations, none longer than %llu ms\n",
                  (unsigned long long)SUM(net, suspicions), (unsigned long long)SUM(net, refutations),
                  (unsigned long long)suspense.longest_ms);
    assert_true(suspense.longest_ms <= 1000);
    court_free(&court);
}

static void all_are_told_that_it_contradicts_itself(const struct court *court) {
    struct member_id id = net_id(court->net, court->traitor->as);
    for (int i = 0; i < HONEST; i++) {
        struct member_info info;
        assert_true(gossip_member_find(court->net->nodes[i].gossip, court->net->now_ms, &id, &info));
        assert_int_equal(info.trouble, MEMBER_TROUBLE_RULES);
        assert_non_null(strstr(court->net->nodes[i].last_text, "one thing for some brokers"));
    }
}

/* P13: two entries with one sequence, and others behind them that are the same: each has to be asked for the one where
 * they part. All are told, and all believe the same in the end, so that they do not compare it for ever. */
static void who_says_two_things_is_found_out(void **state) {
    (void)state;
    for (uint64_t seed = 309; seed < 314; seed++) {
        struct court court = court_new(seed);
        struct net *net = court.net;
        uint8_t bytes[MESSAGE_BLOB_MAX];
        for (uint64_t sequence = 1; sequence <= 12; sequence++) {
            court.traitor->header.sequence = sequence;
            for (int to = 0; to < HONEST; to++) {
                const char *filter = sequence != 4 ? "a/tale" : to % 2 ? "one/tale" : "another/tale";
                size_t size = traitor_entry(court.traitor, court.traitor->as, 1, sequence, filter, false, bytes);
                traitor_say_one(court.traitor, to,
                                (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
            }
            net_run(net, 50);
        }
        net_run(net, 30000);
        all_are_told_that_it_contradicts_itself(&court);
        for (int i = 0; i < HONEST; i++) {
            assert_true(net_has_row(net, i, court.traitor->as, "another/tale")); /* whose bytes are higher */
            assert_false(net_has_row(net, i, court.traitor->as, "one/tale"));
        }
        for (int i = 1; i < HONEST; i++)
            assert_true(gossip_table_hash(net->nodes[i].gossip) == gossip_table_hash(net->nodes[0].gossip));
        struct bill bill = bill_begin(&court); /* and they do not talk of it for ever */
        net_run(net, 30000);
        bill_end(&court, &bill, "30 s after two tales");
        assert_true(bill.bytes / HONEST / 30 < 1024);
        court_free(&court);
    }
}

static void two_heads_with_one_incarnation_too(void **state) {
    (void)state;
    struct court court = court_new(314);
    struct net *net = court.net;
    uint8_t bytes[2][HEAD_SIZE_MAX];
    size_t size[2];
    struct head head = traitor_own_head(court.traitor);
    head.incarnation = ++court.traitor->header.incarnation;
    for (unsigned i = 0; i < 2; i++) {
        memcpy(head.name, i ? "traitos" : "traitor", 7);
        size[i] = traitor_head(court.traitor, head, bytes[i]);
    }
    for (int round = 0; round < 2; round++)
        for (int to = 0; to < HONEST; to++) {
            int which = (to + round) % 2;
            traitor_say_one(court.traitor, to,
                            (struct message){.kind = MESSAGE_HEAD, .bytes = bytes[which], .size = size[which]});
            net_run(net, 50);
        }
    net_run(net, 15000);
    all_are_told_that_it_contradicts_itself(&court);
    struct member_id id = court.traitor->header.id;
    for (int i = 0; i < HONEST; i++) {
        struct member *member = members_find(net->nodes[i].gossip, &id);
        assert_int_equal(member->head_size, size[1]);
        assert_memory_equal(member->head, bytes[1], size[1] - GOSSIP_SIGNATURE_SIZE);
    }
    court_free(&court);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_cannot_write_or_withdraw_rows_of_others),
        cmocka_unit_test(what_others_signed_earlier_changes_nothing_again),
        cmocka_unit_test(it_cannot_revive_the_dead),
        cmocka_unit_test(questions_without_end_are_answered_with_measure),
        cmocka_unit_test(claims_about_brokers_without_end_take_bounded_memory),
        cmocka_unit_test(absurd_sizes_are_not_believed),
        cmocka_unit_test(rows_of_its_own_without_end_stay_within_its_budget),
        cmocka_unit_test(who_accuses_everybody_is_not_believed),
        cmocka_unit_test(who_says_two_things_is_found_out),
        cmocka_unit_test(two_heads_with_one_incarnation_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
