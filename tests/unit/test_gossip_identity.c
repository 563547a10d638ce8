/* Who may speak, and for whom: tokens, epochs, clones, forgers. */
#include "gossip_entry.h"
#include "gossip_forger.h"

#include "gossip/seal.h"

static void who_has_a_refused_token_gets_no_rows_and_both_sides_say_so(void **state) {
    (void)state;
    struct net *net = net_new(3, 61);
    strcpy(net->nodes[2].token, "bad/3");
    net->nodes[2].bootstrap[1] = 1; /* nobody passes on word of it */
    net->nodes[2].bootstrap_count = 2;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_row(net, 2, "stolen/#", true);
    net_row(net, 0, "secret/#", true);
    net_run(net, 30000);
    for (int i = 0; i < 2; i++) {
        struct member_info info;
        struct member_id id = net_id(net, 2);
        assert_int_equal(net->nodes[i].sees[2], MEMBER_UNVERIFIED);
        assert_true(gossip_member_find(net->nodes[i].gossip, net->now_ms, &id, &info));
        assert_string_equal(info.name, "bad?"); /* as its token says */
        assert_int_equal(info.trouble, MEMBER_TROUBLE_TOKEN);
        assert_false(net_has_row(net, i, 2, "stolen/#"));
        assert_int_equal(net->nodes[i].event_count[GOSSIP_REFUSED], 1);
        assert_non_null(strstr(net->nodes[i].last_text, "mint another"));
        assert_true(net->nodes[i].identity.questions < 10); /* each token once, not per packet */
    }
    assert_true(net->nodes[2].event_count[GOSSIP_REFUSED_US] >= 1);
    assert_true(net->nodes[2].event_count[GOSSIP_REFUSED_US] <= 2);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    /* A good token mends it. */
    assert_int_equal(gossip_set_token(net->nodes[2].gossip, net->now_ms, (const uint8_t *)"edge-3/3", 8), 0);
    assert_true(net_until(net, net_agreed, 5000));
    assert_true(net_has_row(net, 0, 2, "stolen/#"));
    net_free(net);
}

static void a_token_is_good_only_for_the_key_it_is_bound_to(void **state) {
    (void)state;
    struct net *net = net_new(2, 62);
    strcpy(net->nodes[1].token, "edge-1/1"); /* another's, copied */
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 5000);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_UNVERIFIED);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_REFUSED], 1);
    net_free(net);
}

static bool allow_none(const char *token) {
    (void)token;
    return false;
}

static bool edge_2_is_down(struct net *net) {
    return net->nodes[0].sees[1] == MEMBER_DOWN;
}

static void an_expired_token_takes_the_rights_away_and_a_new_one_gives_them_back(void **state) {
    (void)state;
    struct net *net = net_new(2, 63);
    net->nodes[0].identity.valid_for_ms = 20000;
    net_start(net, 0);
    net_start(net, 1);
    assert_true(net_until(net, net_all_alive, 2000));
    net_row(net, 1, "a/#", true);
    net_run(net, 500);
    net->nodes[0].identity.allow = NULL;
    uint64_t start = net->now_ms;
    assert_true(net_until(net, edge_2_is_down, 25000));
    assert_true(net->now_ms - start > 15000);
    assert_false(net_has_row(net, 0, 1, "a/#"));
    /* The old one is refused now, and the name stays. */
    struct member_info info;
    struct member_id id = net_id(net, 1);
    net->nodes[0].identity.allow = allow_none;
    net_run(net, 5000);
    assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    assert_string_equal(info.name, "edge-2");
    assert_int_equal(info.trouble, MEMBER_TROUBLE_TOKEN);
    net->nodes[0].identity.allow = NULL;
    assert_int_equal(gossip_set_token(net->nodes[1].gossip, net->now_ms, (const uint8_t *)"edge-2-new/2", 12), 0);
    net->nodes[0].identity.valid_for_ms = 0;
    assert_true(net_until(net, net_agreed, 10000));
    assert_true(net_has_row(net, 0, 1, "a/#"));
    net_free(net);
}

/* Who was put out of the federation still has everybody's earlier tokens, and brings them. */
static void an_earlier_token_that_others_bring_is_no_trouble(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 66);
    struct member_id id = net_id(net, 1);
    struct member_info info;
    struct gossip_counters counters;
    struct forger forger =
        forger_new(net, 0, 1, &(struct gossip_address){.family = 4, .ip = {192, 0, 2, 9}, .port = 9});
    struct message token = {
        .kind = MESSAGE_TOKEN, .key = net->nodes[1].identity.public_key, .bytes = (const uint8_t *)"bad/2", .size = 5};
    uint64_t questions = net->nodes[0].identity.questions;
    for (int i = 0; i < 20; i++) {
        forger_say(&forger, &token);
        net_run(net, 1000);
        assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
        assert_int_equal(info.state, MEMBER_ALIVE);
        assert_int_equal(info.trouble, MEMBER_TROUBLE_NONE);
    }
    assert_int_equal(net->nodes[0].identity.questions, questions + 1); /* once a minute */
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.refused_token, 1);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_REFUSED], 0);
    /* Its own word is another matter, and at once. */
    assert_int_equal(gossip_set_token(net->nodes[1].gossip, net->now_ms, (const uint8_t *)"bad/2", 5), 0);
    net_run(net, 5000);
    assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    assert_int_equal(info.trouble, MEMBER_TROUBLE_TOKEN);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_REFUSED], 1);
    assert_int_equal(gossip_set_token(net->nodes[1].gossip, net->now_ms, (const uint8_t *)"edge-2/2", 8), 0);
    net_run(net, 5000);
    assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    assert_int_equal(info.trouble, MEMBER_TROUBLE_NONE);
    net_free(net);
}

static void a_token_renewed_in_time_is_not_noticed_by_anybody(void **state) {
    (void)state;
    struct net *net = net_new(2, 64);
    net->nodes[0].identity.valid_for_ms = 20000;
    net_start(net, 0);
    net_start(net, 1);
    assert_true(net_until(net, net_all_alive, 2000));
    net_run(net, 5000);
    net->nodes[0].identity.valid_for_ms = 0;
    assert_int_equal(gossip_set_token(net->nodes[1].gossip, net->now_ms, (const uint8_t *)"edge-2-new/2", 12), 0);
    net->cut[1][0] = true; /* the announcement is lost, */
    net_drain(net, 1);
    net->cut[1][0] = false; /* so it is asked for before the end */
    net_run(net, 60000);
    assert_int_equal(net->nodes[0].down_events, 0);
    net_free(net);
}

static void a_broker_that_lost_its_epoch_is_told_and_goes_on_above_it(void **state) {
    (void)state;
    struct net *net = net_new(3, 65);
    for (int i = 0; i < 3; i++)
        net->nodes[i].epoch = 50;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 2000));
    net_row(net, 1, "before/#", true);
    net_run(net, 1000);
    net_kill(net, 1);
    net_run(net, 500);
    net->nodes[1].epoch = 3; /* its disk is gone */
    net_start(net, 1);
    net_row(net, 1, "after/#", true);
    assert_true(net_until(net, net_agreed, 3000));
    assert_int_equal(net->nodes[1].saved_epoch, 51);
    assert_int_equal(gossip_epoch(net->nodes[1].gossip), 51);
    net_run(net, 300);
    assert_true(net_has_row(net, 2, 1, "after/#"));
    assert_false(net_has_row(net, 2, 1, "before/#"));
    assert_int_equal(net->nodes[1].event_count[GOSSIP_CLONED], 0);
    net_free(net);
}

static void the_same_epoch_again_is_noticed_too(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 66);
    for (int i = 0; i < 5; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "old/%d", i);
        net_row(net, 1, filter, true);
        net_run(net, 50);
    }
    net_run(net, 1000);
    net_kill(net, 1);
    net->nodes[1].seed++; /* the epoch is that of a restored snapshot */
    net_start(net, 1);
    net_row(net, 1, "new/1", true);
    net_run(net, 5000);
    assert_true(net_agreed(net));
    assert_true(net_has_row(net, 0, 1, "new/1"));
    assert_false(net_has_row(net, 0, 1, "old/4"));
    net_free(net);
}

/* A broker dies, loses its disk and uses the same epoch again: its second life writes fewer entries than the first, as
 * many, or more, and the last of them may be the same. */
static void two_lives_in_one_epoch_end_as_the_second_says(void **state) {
    (void)state;
    for (int written = 1; written <= 9; written++) {
        for (int same_end = 0; same_end < 2; same_end++) {
            struct net *net = net_new_running(3, (uint64_t)(80 + written));
            char filter[16];
            for (int i = 1; i <= 5; i++) {
                snprintf(filter, sizeof filter, i == 5 && same_end ? "same" : "old/%d", i);
                net_row(net, 1, filter, true);
                net_run(net, 50);
            }
            net_run(net, 500);
            net->cut[0][1] = net->cut[1][0] = net->cut[2][1] = net->cut[1][2] = true;
            net_kill(net, 1);
            net->nodes[1].seed++;
            net_start(net, 1);
            for (int i = 1; i <= written; i++) {
                snprintf(filter, sizeof filter, i == written && same_end ? "same" : "new/%d", i);
                net_row(net, 1, filter, true);
                net_run(net, 50);
            }
            memset(net->cut, 0, sizeof net->cut);
            if (!net_until(net, net_agreed, 10000))
                fail_msg("%d entries, same end %d: no agreement", written, same_end);
            for (int at = 0; at < 3; at++) {
                assert_false(net_has_row(net, at, 1, "old/1"));
                assert_int_equal(net_has_row(net, at, 1, "same"), same_end);
                assert_true(net_has_row(net, at, 1, written > 1 || !same_end ? "new/1" : "same"));
            }
            net_free(net);
        }
    }
}

static void two_holders_of_one_key_notice_and_say_so(void **state) {
    (void)state;
    struct net *net = net_new(4, 67);
    net_clone(net, 3, 1);
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    net_run(net, 20000);
    assert_true(net->nodes[1].event_count[GOSSIP_CLONED] + net->nodes[3].event_count[GOSSIP_CLONED] >= 1);
    assert_true(net->nodes[1].event_count[GOSSIP_EPOCH] < 10); /* and do not race for ever */
    assert_int_equal(net->nodes[0].sees[2], MEMBER_ALIVE);
    net_free(net);
}

/* P5 */
static void another_key_or_federation_is_counted_and_disturbs_nobody(void **state) {
    (void)state;
    struct net *net = net_new(4, 68);
    memset(net->nodes[2].key.key, 0x77, 32);
    net->nodes[3].federation = "elsewhere";
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    net_run(net, 10000);
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_true(counters.unsealed > 10);
    assert_int_equal(counters.malformed, 0);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    assert_int_equal(net->nodes[0].sees[2], MEMBER_UNVERIFIED);
    assert_int_equal(net->nodes[0].sees[3], MEMBER_UNVERIFIED);
    net_free(net);
}

static void the_dialled_own_address_is_recognised(void **state) {
    (void)state;
    struct net *net = net_new(2, 69);
    for (int i = 0; i < 2; i++) {
        net->nodes[i].bootstrap[0] = 0;
        net->nodes[i].bootstrap[1] = 1;
        net->nodes[i].bootstrap_count = 2;
        net->nodes[i].announce_nothing = true;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 2000));
    net_run(net, 3000);
    struct member_info info;
    assert_true(gossip_member_at(net->nodes[0].gossip, net->now_ms, 0, &info));
    assert_true(info.self);
    assert_int_equal(info.address.port, 7100); /* its peer said where it is seen */
    assert_int_equal(net->nodes[0].event_count[GOSSIP_CLONED] + net->nodes[0].event_count[GOSSIP_EPOCH], 0);
    net_free(net);
}

/* P4 */
static void a_new_address_is_followed(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 70);
    net_kill(net, 2);
    net->nodes[2].epoch = 2;
    net->nodes[2].address.port = 7999;
    net_start(net, 2);
    assert_true(net_until(net, net_all_alive, 3000));
    net_run(net, 500);
    struct member_info info;
    struct member_id id = net_id(net, 2);
    assert_true(gossip_member_find(net->nodes[1].gossip, net->now_ms, &id, &info));
    assert_int_equal(info.address.port, 7999);
    assert_int_equal(info.state, MEMBER_ALIVE);
    net_free(net);
}

/* ---- packets made by hand, by somebody who has the gossip key ---- */

static size_t forge(struct net *net, int as, uint64_t epoch, const struct message *message,
                    uint8_t out[GOSSIP_DATAGRAM_MAX]) {
    static uint64_t nonce = 1;
    struct chance chance = {nonce++};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    assert_true(seal_init(&seal, &options, &chance));
    struct packet_header header = {.id = net_id(net, as), .epoch = epoch, .incarnation = 1};
    uint8_t plain[SEAL_PLAIN_MAX];
    struct wire_out packet;
    wire_out_init(&packet, plain, sizeof plain);
    header_put(&packet, &header);
    message_put(&packet, message);
    assert_false(packet.failed);
    return seal_close(&seal, &crypto, plain, packet.size, out);
}

static size_t make_entry(struct net *net, int owner, int signer, uint64_t epoch, uint64_t sequence, const char *filter,
                         uint8_t out[MESSAGE_BLOB_MAX]) {
    struct member_id id = net_id(net, owner);
    size_t size = entry_body(&id, epoch, sequence, filter, false, out);
    net_sign_as(net->nodes[signer].identity.public_key, out, size, out + size);
    return size + GOSSIP_SIGNATURE_SIZE;
}

static void an_entry_with_another_signature_is_refused(void **state) {
    (void)state;
    for (int signer = 1; signer <= 2; signer++) {
        struct net *net = net_new_running(3, 71);
        uint8_t entry[MESSAGE_BLOB_MAX], datagram[GOSSIP_DATAGRAM_MAX];
        struct message message = {.kind = MESSAGE_ENTRY, .bytes = entry};
        message.size = make_entry(net, 1, signer, 1, 1, "forged/#", entry);
        size_t size = forge(net, 2, 1, &message, datagram);
        gossip_receive(net->nodes[0].gossip, net->now_ms, &net->nodes[2].address, datagram, size);
        net_drain(net, 0);
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[0].gossip, &counters);
        /* Signed by its owner it is taken from anybody's hand; else it is not. */
        assert_int_equal(net_has_row(net, 0, 1, "forged/#"), signer == 1);
        assert_int_equal(counters.bad_signature, signer == 1 ? 0 : 1);
        net_free(net);
    }
}

static void filters_that_are_none_are_refused_even_when_signed(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 72);
    uint8_t entry[MESSAGE_BLOB_MAX], datagram[GOSSIP_DATAGRAM_MAX];
    struct message message = {.kind = MESSAGE_ENTRY, .bytes = entry};
    message.size = make_entry(net, 1, 1, 1, 1, "a/#/b", entry);
    size_t size = forge(net, 1, 1, &message, datagram);
    gossip_receive(net->nodes[0].gossip, net->now_ms, &net->nodes[1].address, datagram, size);
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.malformed, 1);
    assert_false(net_has_row(net, 0, 1, "a/#/b"));
    net_free(net);
}

/* P18 */
static void one_accuser_cannot_condemn_many(void **state) {
    (void)state;
    struct net *net = net_new_running(8, 73);
    net_run(net, 1000);
    struct forger forger = forger_new(net, 0, 1, &net->nodes[1].address); /* a broker that lies: there, and proven */
    for (int victim = 2; victim < 8; victim++) {
        struct message accusation = {.kind = MESSAGE_ACCUSE,
                                     .version = {.id = net_id(net, victim), .epoch = 1, .incarnation = 1},
                                     .other = net_id(net, 1)};
        forger_say(&forger, &accusation);
    }
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.suspicions, 2);
    net_run(net, 5000);
    assert_true(net_all_alive(net));
    net_free(net);
}

static void an_unproven_address_gets_at_most_three_times_what_it_sent(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 74);
    net_row(net, 0, "a/b/c", true);
    net_run(net, 1000);
    struct gossip_address victim = {.family = 4, .ip = {192, 0, 2, 1}, .port = 9};
    uint64_t sent = 0, received = 0;
    struct member_id ids[3] = {net_id(net, 0), net_id(net, 1), net_id(net, 2)};
    struct message questions[] = {
        {.kind = MESSAGE_PING, .number = 1},
        {.kind = MESSAGE_WHO, .version.id = ids[0]},
        {.kind = MESSAGE_WANT, .version.id = ids[0]},
        {.kind = MESSAGE_DIGEST, .number = 5},
        {.kind = MESSAGE_PING_REQ, .number = 9, .version.id = ids[1]},
        {.kind = MESSAGE_HAVE, .version = {.id = ids[1], .epoch = 9, .incarnation = 9, .sequence = 9}},
    };
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
            uint8_t datagram[GOSSIP_DATAGRAM_MAX];
            /* As a member whose packets it could replay, and as a stranger. */
            size_t size = forge(net, round % 2 == 0 ? 1 : 3 + round % 30, 1, &questions[i], datagram);
            received += size;
            gossip_receive(net->nodes[0].gossip, net->now_ms, &victim, datagram, size);
            struct gossip_datagram out;
            while (gossip_next_datagram(net->nodes[0].gossip, &out))
                if (out.to.ip[0] == 192) sent += out.size;
            assert_true(sent <= 3 * received);
        }
        net_run(net, 100);
        gossip_tick(net->nodes[0].gossip, net->now_ms);
    }
    assert_true(sent > 0);
    assert_true(net_all_alive(net)); /* and the member it spoke for is still reached where it is */
    net_free(net);
}

static void strangers_do_not_evict_members(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 75);
    net_run(net, 1000);
    for (unsigned i = 0; i < 20000; i++) {
        struct message have = {.kind = MESSAGE_HAVE, .version = {.epoch = 1, .incarnation = 1}};
        memcpy(have.version.id.bytes, &i, sizeof i);
        uint8_t datagram[GOSSIP_DATAGRAM_MAX];
        size_t size = forge(net, 1, 1, &have, datagram);
        gossip_receive(net->nodes[0].gossip, net->now_ms, &net->nodes[1].address, datagram, size);
        struct gossip_datagram out;
        while (gossip_next_datagram(net->nodes[0].gossip, &out))
            continue;
    }
    struct member_info info;
    size_t members = 0;
    while (gossip_member_at(net->nodes[0].gossip, net->now_ms, members, &info))
        members++;
    assert_true(members <= 300);
    net_run(net, 5000);
    assert_true(net_all_alive(net));
    net_free(net);
}

static bool nobody_is_allowed(const char *token) {
    (void)token;
    return false;
}

/* A clock that was years ahead at the start refuses all; once it is right, the same tokens are good. */
static void what_a_wrong_clock_refused_is_judged_again_once_a_minute(void **state) {
    (void)state;
    struct net *net = net_new(3, 5);
    net->nodes[0].identity.allow = nobody_is_allowed;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 300000);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_UNVERIFIED);
    uint64_t questions = net->nodes[0].identity.questions;
    assert_true(questions >= 2 && questions <= 2 * 6);
    net->nodes[0].identity.allow = NULL;
    assert_true(net_until(net, net_agreed, 70000));
    net_free(net);
}

/* Ten thousand datagrams at once would be more than the queue holds. */
static void many_hear_of_a_new_token_by_and_by(void **state) {
    (void)state;
    struct net *net = net_new_running(40, 65);
    net_run(net, 3000);
    struct member_id id = net_id(net, 0);
    const char *token = "edge-1-new/1";
    uint64_t before = net->sent;
    assert_int_equal(gossip_set_token(net->nodes[0].gossip, net->now_ms, (const uint8_t *)token, strlen(token)), 0);
    net_drain(net, 0);
    assert_int_equal(net->sent - before, 32);
    net_run(net, 300);
    for (int i = 1; i < net->count; i++) {
        const struct member *member = members_find(net->nodes[i].gossip, &id);
        assert_int_equal(member->token_size, strlen(token));
        assert_memory_equal(member->token, token, strlen(token));
    }
    assert_int_equal(net->nodes[0].gossip->own.token_ms, 0);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_a_refused_token_gets_no_rows_and_both_sides_say_so),
        cmocka_unit_test(a_token_is_good_only_for_the_key_it_is_bound_to),
        cmocka_unit_test(an_expired_token_takes_the_rights_away_and_a_new_one_gives_them_back),
        cmocka_unit_test(an_earlier_token_that_others_bring_is_no_trouble),
        cmocka_unit_test(a_token_renewed_in_time_is_not_noticed_by_anybody),
        cmocka_unit_test(a_broker_that_lost_its_epoch_is_told_and_goes_on_above_it),
        cmocka_unit_test(the_same_epoch_again_is_noticed_too),
        cmocka_unit_test(two_lives_in_one_epoch_end_as_the_second_says),
        cmocka_unit_test(two_holders_of_one_key_notice_and_say_so),
        cmocka_unit_test(another_key_or_federation_is_counted_and_disturbs_nobody),
        cmocka_unit_test(the_dialled_own_address_is_recognised),
        cmocka_unit_test(a_new_address_is_followed),
        cmocka_unit_test(an_entry_with_another_signature_is_refused),
        cmocka_unit_test(filters_that_are_none_are_refused_even_when_signed),
        cmocka_unit_test(one_accuser_cannot_condemn_many),
        cmocka_unit_test(an_unproven_address_gets_at_most_three_times_what_it_sent),
        cmocka_unit_test(what_a_wrong_clock_refused_is_judged_again_once_a_minute),
        cmocka_unit_test(strangers_do_not_evict_members),
        cmocka_unit_test(many_hear_of_a_new_token_by_and_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
