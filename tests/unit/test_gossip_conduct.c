/* Who breaks the rules is named to the admin: by all whom it wrongs, with what it did, once; and nobody else is. */
#include "gossip_court.h"

#include "gossip_forger.h"

#define OFFENDER HONEST /* the traitor's index */

static struct member_info seen(struct net *net, int at, int about) {
    struct member_info info = {0};
    struct member_id id = net_id(net, about);
    assert_true(gossip_member_find(net->nodes[at].gossip, net->now_ms, &id, &info));
    return info;
}

/* At all whom it spoke to: it is in this trouble, it was told once, and it alone is. */
static void assert_named(struct net *net, enum member_trouble trouble) {
    for (int i = 0; i < HONEST; i++) {
        assert_int_equal(seen(net, i, OFFENDER).trouble, trouble);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_CONDUCT], 1);
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        assert_true(counters.misdeeds > 0);
        assert_int_equal(counters.members_in_trouble, 1);
    }
}

static void assert_nobody_named(struct net *net) {
    for (int i = 0; i < HONEST; i++) {
        assert_int_equal(net->nodes[i].event_count[GOSSIP_CONDUCT], 0);
        for (int about = 0; about <= OFFENDER; about++)
            assert_int_equal(seen(net, i, about).trouble, MEMBER_TROUBLE_NONE);
    }
}

static void say_to_all(struct court *court, const struct message *message) {
    for (int to = 0; to < HONEST; to++)
        traitor_say_one(court->traitor, to, *message);
    net_run(court->net, 50);
}

static void forge_entry(struct court *court, int to, uint64_t number) {
    uint8_t bytes[MESSAGE_BLOB_MAX];
    int owner = (to + 1) % HONEST;
    struct member_info info = seen(court->net, to, owner);
    size_t size = traitor_entry(court->traitor, owner, info.epoch, info.sequence + 1 + number, "forged", false, bytes);
    traitor_say_one(court->traitor, to, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
}

static void forge_head(struct court *court, int to, uint64_t number) {
    uint8_t bytes[HEAD_SIZE_MAX];
    struct head head = {.id = net_id(court->net, (to + 1) % HONEST), .epoch = 2 + number, .incarnation = 7};
    size_t size = traitor_head(court->traitor, head, bytes);
    traitor_say_one(court->traitor, to, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
}

static void who_forges_what_others_say_is_named(void **state) {
    (void)state;
    for (int heads = 0; heads < 2; heads++) {
        struct court court = court_new(501);
        for (uint64_t number = 0; number < 20; number++) {
            for (int to = 0; to < HONEST; to++)
                if (heads)
                    forge_head(&court, to, number);
                else
                    forge_entry(&court, to, number);
            net_run(court.net, 50);
            if (number == 1) assert_nobody_named(court.net); /* a memory that flips a bit does it once */
        }
        assert_named(court.net, MEMBER_TROUBLE_RULES);
        court_free(&court);
    }
}

/* The owner itself is the one who sees it then. */
static void who_forges_what_we_say_is_named(void **state) {
    (void)state;
    struct court court = court_new(502);
    uint8_t bytes[MESSAGE_BLOB_MAX];
    for (uint64_t number = 0; number < 5; number++)
        for (int to = 0; to < HONEST; to++) {
            struct head head = {.id = net_id(court.net, to), .epoch = 5 + number, .incarnation = 7};
            size_t size = traitor_head(court.traitor, head, bytes);
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
            size = traitor_entry(court.traitor, to, 5 + number, 90, "forged", false, bytes);
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
            net_run(court.net, 20);
        }
    assert_named(court.net, MEMBER_TROUBLE_RULES);
    court_free(&court);
}

static void who_sends_nonsense_is_named(void **state) {
    (void)state;
    struct court court = court_new(503);
    uint8_t nonsense[40] = {0x93};
    for (int number = 0; number < 5; number++)
        say_to_all(&court, &(struct message){.kind = MESSAGE_HEAD, .bytes = nonsense, .size = sizeof nonsense});
    assert_named(court.net, MEMBER_TROUBLE_RULES);
    court_free(&court);
}

static void who_floods_is_named(void **state) {
    (void)state;
    struct court court = court_new(504);
    uint8_t buckets[MESSAGE_BUCKET_COUNT * 8] = {1};
    for (int number = 0; number < 4000; number++) {
        for (int to = 0; to < HONEST; to++)
            traitor_say_one(court.traitor, to,
                            (struct message){.kind = MESSAGE_BUCKETS, .bytes = buckets, .size = sizeof buckets});
        if (number % 40 == 0) net_run(court.net, 1); /* 40,000 a second */
    }
    net_run(court.net, 100);
    assert_named(court.net, MEMBER_TROUBLE_RULES);
    court_free(&court);
}

/* All have to be answered, and are answered with measure: our own questions do not wait behind the answers. */
static void who_pings_without_end_is_named_and_delays_nobody(void **state) {
    (void)state;
    struct court court = court_new(510);
    uint64_t suspicions = SUM(court.net, suspicions);
    for (uint64_t number = 0; number < 30000; number++) {
        for (int to = 0; to < HONEST; to++)
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_PING, .number = number * 2 + 2});
        if (number % 20 == 0) net_run(court.net, 1); /* 20,000 a second */
    }
    assert_named(court.net, MEMBER_TROUBLE_RULES);
    assert_int_equal(SUM(court.net, suspicions) - suspicions, 0);
    assert_int_equal(SUM(court.net, queue_dropped), 0);
    court_free(&court);
}

/* It may say that its key was stolen, and go on. */
static void what_it_says_of_itself_does_not_hide_what_it_does(void **state) {
    (void)state;
    struct court court = court_new(509);
    uint8_t bytes[HEAD_SIZE_MAX], nonsense[40] = {0x93};
    struct head head = traitor_own_head(court.traitor);
    head.cloned = true;
    head.incarnation = ++court.traitor->header.incarnation;
    size_t size = traitor_head(court.traitor, head, bytes);
    say_to_all(&court, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
    assert_int_equal(seen(court.net, 0, OFFENDER).trouble, MEMBER_TROUBLE_CLONED);
    for (int number = 0; number < 5; number++)
        say_to_all(&court, &(struct message){.kind = MESSAGE_HEAD, .bytes = nonsense, .size = sizeof nonsense});
    assert_named(court.net, MEMBER_TROUBLE_RULES);
    court_free(&court);
}

static void who_accuses_everybody_is_named(void **state) {
    (void)state;
    struct court court = court_new(505);
    struct net *net = court.net;
    for (int round = 0; round < 100; round++) {
        for (int to = 0; to < HONEST; to++)
            for (int about = 0; about < HONEST; about++) {
                struct member_id id = net_id(net, about);
                const struct member *member = members_find(net->nodes[to].gossip, &id);
                if (about == to || !member) continue;
                traitor_say_one(
                    court.traitor, to,
                    (struct message){.kind = MESSAGE_ACCUSE,
                                     .version = {.id = id, .epoch = member->epoch, .incarnation = member->incarnation},
                                     .other = court.traitor->header.id});
            }
        net_run(net, 100);
    }
    assert_named(net, MEMBER_TROUBLE_ACCUSES);
    court_free(&court);
}

/* So is one whose limits are higher than ours, which an admin can mend. */
static void who_publishes_too_much_is_named(void **state) {
    (void)state;
    struct court court = court_new(506);
    uint8_t bytes[MESSAGE_BLOB_MAX];
    for (uint64_t sequence = 1; sequence <= 60; sequence++) {
        struct wire_out body;
        wire_out_init(&body, bytes, ENTRY_BODY_MAX);
        wire_put_array(&body, 4 + 2 * 60);
        wire_put_uint(&body, 'E');
        wire_put_id(&body, &court.traitor->header.id);
        wire_put_uint(&body, 1);
        wire_put_uint(&body, sequence);
        for (uint64_t i = 0; i < 60; i++) {
            char filter[16];
            snprintf(filter, sizeof filter, "dev/%llu", (unsigned long long)(sequence * 60 + i));
            wire_put_uint(&body, GOSSIP_NEWSUB);
            wire_put_bytes(&body, filter, strlen(filter));
        }
        assert_false(body.failed);
        traitor_sign(court.traitor, bytes, body.size);
        court.traitor->header.sequence = sequence;
        say_to_all(&court,
                   &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = body.size + GOSSIP_SIGNATURE_SIZE});
    }
    assert_named(court.net, MEMBER_TROUBLE_LIMITS);
    court_free(&court);
}

/* Who has the gossip key alone puts any id into a header: nobody is blamed for what comes from a strange address. */
static void nobody_is_blamed_for_packets_from_elsewhere(void **state) {
    (void)state;
    struct court court = court_new(507);
    struct net *net = court.net;
    struct gossip_address elsewhere = {.family = 4, .ip = {10, 99, 0, 1}, .port = 7100};
    struct forger forger = forger_new(net, 0, 1, &elsewhere);
    uint8_t bytes[MESSAGE_BLOB_MAX], nonsense[40] = {0x93};
    for (uint64_t number = 0; number < 50; number++) {
        struct member_info info = seen(net, 0, 2);
        size_t size = traitor_entry(court.traitor, 2, info.epoch, info.sequence + 1 + number, "forged", false, bytes);
        forger_say(&forger, &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        forger_say(&forger, &(struct message){.kind = MESSAGE_HEAD, .bytes = nonsense, .size = sizeof nonsense});
        net_run(net, 20);
    }
    assert_true(SUM(net, bad_signature) > 0);
    assert_true(SUM(net, malformed) > 0);
    assert_nobody_named(net);
    court_free(&court);
}

/* A head waits for the key of its owner, and another brings that. */
static void who_brings_a_key_is_not_blamed_for_what_waited_for_it(void **state) {
    (void)state;
    enum { OTHER, ONE, NEWCOMER };
    struct net *net = net_new(4, 508);
    net_start(net, ONE);
    net_start(net, OTHER);
    assert_true(net_until(net, net_all_alive, 10000));
    struct traitor *traitor = traitor_new(net);
    net->cut[ONE][NEWCOMER] = net->cut[NEWCOMER][ONE] = true;
    uint8_t bytes[HEAD_SIZE_MAX];
    struct head head = {.id = net_id(net, NEWCOMER), .epoch = 9, .incarnation = 9};
    size_t size = traitor_head(traitor, head, bytes);
    traitor_say_one(traitor, ONE, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
    net_start(net, NEWCOMER);
    net_run(net, 10000);
    assert_int_not_equal(seen(net, ONE, NEWCOMER).name[0], '\0');
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[ONE].gossip, &counters);
    assert_int_equal(counters.bad_signature, 1);
    assert_int_equal(counters.misdeeds, 0);
    traitor_free(traitor);
    net_free(net);
}

static void it_is_forgotten_after_ten_minutes(void **state) {
    (void)state;
    struct conduct conduct = {0};
    struct member_id id = {{1}};
    assert_false(conduct_count(&conduct, 0, &id, MISDEED_FORGES));
    assert_false(conduct_count(&conduct, 100, &id, MISDEED_FORGES));
    assert_int_equal(conduct_trouble(&conduct, 100, &id), MEMBER_TROUBLE_NONE);
    assert_true(conduct_count(&conduct, 200, &id, MISDEED_FORGES));
    assert_false(conduct_count(&conduct, 300, &id, MISDEED_FORGES)); /* told already */
    assert_int_equal(conduct_trouble(&conduct, 600299, &id), MEMBER_TROUBLE_RULES);
    assert_int_equal(conduct_trouble(&conduct, 600300, &id), MEMBER_TROUBLE_NONE);
    /* Seldom is not often. */
    for (uint64_t now = 700000; now < 1700000; now += 40000)
        assert_false(conduct_count(&conduct, now, &id, MISDEED_FORGES));
}

/* The worse is shown. */
static void who_breaks_the_rules_and_accuses_breaks_the_rules(void **state) {
    (void)state;
    struct conduct conduct = {0};
    struct member_id id = {{1}};
    for (int i = 0; i < 100; i++)
        conduct_count(&conduct, 1000, &id, MISDEED_ACCUSES);
    assert_int_equal(conduct_trouble(&conduct, 1000, &id), MEMBER_TROUBLE_ACCUSES);
    for (int i = 0; i < 3; i++)
        conduct_count(&conduct, 1000, &id, MISDEED_FORGES);
    assert_int_equal(conduct_trouble(&conduct, 1000, &id), MEMBER_TROUBLE_RULES);
}

/* Many take turns: those of the last are known. */
static void more_offenders_than_there_is_room_for_push_out_the_oldest(void **state) {
    (void)state;
    struct conduct conduct = {0};
    for (uint8_t i = 0; i < 2 * OFFENDERS_MAX; i++) {
        struct member_id id = {{i}};
        assert_true(conduct_count(&conduct, 1000u + i, &id, MISDEED_TOO_MUCH));
    }
    for (uint8_t i = 0; i < 2 * OFFENDERS_MAX; i++) {
        struct member_id id = {{i}};
        assert_int_equal(conduct_trouble(&conduct, 2000, &id),
                         i < OFFENDERS_MAX ? MEMBER_TROUBLE_NONE : MEMBER_TROUBLE_LIMITS);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_forges_what_others_say_is_named),
        cmocka_unit_test(who_forges_what_we_say_is_named),
        cmocka_unit_test(who_sends_nonsense_is_named),
        cmocka_unit_test(who_floods_is_named),
        cmocka_unit_test(who_pings_without_end_is_named_and_delays_nobody),
        cmocka_unit_test(what_it_says_of_itself_does_not_hide_what_it_does),
        cmocka_unit_test(who_accuses_everybody_is_named),
        cmocka_unit_test(who_publishes_too_much_is_named),
        cmocka_unit_test(nobody_is_blamed_for_packets_from_elsewhere),
        cmocka_unit_test(who_brings_a_key_is_not_blamed_for_what_waited_for_it),
        cmocka_unit_test(it_is_forgotten_after_ten_minutes),
        cmocka_unit_test(who_breaks_the_rules_and_accuses_breaks_the_rules),
        cmocka_unit_test(more_offenders_than_there_is_room_for_push_out_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
