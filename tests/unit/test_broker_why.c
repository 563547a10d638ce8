/* Why a publication does not arrive: each reason is made, and named. Site 0 publishes, site 1 subscribes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies.h"
#include "whys.h"

static struct world *two_sites(struct client **says, struct client **hears) {
    struct world *world = started(2);
    *says = client_connect(world, 0);
    *hears = client_connect(world, 1);
    world_settle(world);
    return world;
}

/* ---- it arrives ---- */

static void what_arrives_is_said_with_qos_and_what_was_acknowledged(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    for (int at = 0; at < 2; at++) {
        struct answer answer = why_of_sites(world, at, "t", 0, 1);
        assert_arrives(&answer);
        assert_says(&answer, "1 subscription matches, at QoS 2; 0 of clients not connected: t");
        assert_says(&answer, "has joined t at site-0, confirmed");
        assert_says(&answer, "site-1 has joined t");
        assert_says(&answer, "site-1 last acknowledged something ");
        assert_says(&answer, "1 publications came from site-0");
    }
    end(world);
}

static void a_third_broker_asks_both_over_links_of_its_own(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *hears = client_connect(world, 1);
    client_subscribe(world, hears, "a/#", 1);
    world_settle(world);
    assert_int_equal(world_link(world, 2, 0).frames_sent, 0);
    struct answer answer = why_of_sites(world, 2, "a/b", 0, 1);
    assert_arrives(&answer);
    assert_says(&answer, "has no link with site-1, and makes one");
    assert_says(&answer, "site-1 has not joined yet: what is published waits for its join for");
    assert_says(&answer, "nobody has published to the topic lately");
    client_publish(world, client_connect(world, 0), "a/b", "m", 1, false);
    world_run(world, 500);
    answer = why_of_sites(world, 2, "a/b", 0, 1);
    assert_arrives(&answer);
    end(world);
}

static void of_one_broker_it_is_told_what_it_has_itself(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    client_subscribe(world, hears, "a/+", 1);
    client_subscribe(world, hears, "#", 0);
    world_settle(world);
    for (int at = 0; at < 2; at++) {
        struct answer answer = why_of_sites(world, at, "a/b", 1, 1);
        assert_arrives(&answer);
        assert_says(&answer, "2 subscriptions match, at QoS 1 at most");
        answer = why_of_sites(world, at, "a/b", 0, 0);
        assert_stops(&answer, WHY_SUBSCRIPTION, "site-0", "nobody subscribes to it");
    }
    end(world);
}

/* ---- the topic ---- */

static void what_never_leaves_its_broker_is_said_to(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    struct policy *private = POLICY({"", POLICY_PRIVATE, "local/#"});
    struct answer answer = why_of_sites(world, 0, "$SYS/a", 0, 1);
    assert_stops(&answer, WHY_TOPIC, "site-0", "start with $");
    for (int site = 0; site < 2; site++) {
        broker_set_policy(world->sites[site].broker, world->now_ms, private);
        answer = why_of_sites(world, 0, "local/a", 0, 1);
        assert_stops(&answer, WHY_TOPIC, site == 0 ? "site-0" : "site-1", "federation.private_topics");
        broker_set_policy(world->sites[site].broker, world->now_ms, NULL);
    }
    answer = why_of_sites(world, 0, "a/+", 0, 1);
    assert_stops(&answer, WHY_TOPIC, "site-0", "this is no topic");
    end(world);
    policy_free(private);
}

/* ---- who is there ---- */

static void a_broker_that_is_unknown_or_down_is_named(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    struct why_end from = why_site(world, 0), unknown = {.name = "edge-9", .standing = "is not known here"};
    struct answer answer = why_answer(world, 0, why_ask(world, 0, "t", &from, &unknown));
    assert_stops(&answer, WHY_MEMBER, "site-0", "edge-9 is not known here");
    answer = why_answer(world, 0, why_ask(world, 0, "t", &unknown, &from));
    assert_stops(&answer, WHY_MEMBER, "site-0", "edge-9 is not known here");
    struct why_end down = why_site(world, 1);
    down.is_there = false;
    snprintf(down.standing, sizeof down.standing, "is down");
    broker_peer_gone(world->sites[0].broker, world->now_ms, &down.id);
    answer = why_answer(world, 0, why_ask(world, 0, "t", &from, &down));
    assert_stops(&answer, WHY_MEMBER, "site-0", "site-1 is down");
    struct why_end suspect = why_site(world, 1);
    world_tell_alive(world, 0, 1);
    snprintf(suspect.standing, sizeof suspect.standing, "is suspect");
    answer = why_answer(world, 0, why_ask(world, 0, "t", &from, &suspect));
    assert_stops(&answer, WHY_SUBSCRIPTION, "site-1", "nobody subscribes");
    assert_says(&answer, "site-1 is suspect");
    end(world);
}

static void what_waits_for_a_broker_that_is_away_is_said(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect_as(world, 1, 'k', false);
    client_subscribe(world, hears, "t", 1);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 500);
    struct why_end from = why_site(world, 0), down = why_site(world, 1);
    broker_peer_gone(world->sites[0].broker, world->now_ms, &down.id);
    down.is_there = false;
    snprintf(down.standing, sizeof down.standing, "is down");
    for (int qos = 0; qos < 2; qos++)
        client_publish(world, says, "t", "n", qos, false);
    struct answer answer = why_answer(world, 0, why_ask(world, 0, "t", &from, &down));
    assert_stops(&answer, WHY_MEMBER, "site-0", "is down");
    assert_says(&answer, "waits for site-1");
    assert_says(&answer, "1 publications do");
    assert_says(&answer, "was given up: 1 away");
    world_free(world);
    free(world);
}

/* ---- subscriptions ---- */

static void a_filter_that_nearly_matches_is_named(void **state) {
    (void)state;
    static const struct {
        const char *filter, *topic, *says;
    } cases[] = {
        {"plant/+/temp", "plant/1/2/temp", "plant/+/temp matches no plant/1/2/temp: one level more at level 3"},
        {"plant/+/temp", "plant/temp", "one level less at level 3"},
        {"plant/+/temp", "plant/1", "one level less at level 3"},
        {"plant/+/temp", "Plant/1/temp", "another word at level 1"},
        {"plant/+/temp", "plant/1/press", "another word at level 3"},
        {"plant/+/temp", "plant/1/temp/", "one level more at level 4"},
        {"plant/+/temp", "/plant/1/temp", "one level more at level 1"},
        {"plant/#", "plants/1/temp", "another word at level 1"},
        {"plant/1/#", "plant/2/a/b", "another word at level 2"},
        {"plant/+/temp", "garden/1/press", "nobody subscribes to it"},
        {"plant/+/temp", "a", "nobody subscribes to it"},
    };
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client_subscribe(world, hears, cases[i].filter, 1);
        world_run(world, 500);
        struct answer answer = why_of_sites(world, 0, cases[i].topic, 0, 1);
        assert_stops(&answer, WHY_SUBSCRIPTION, "site-1", cases[i].says);
        client_unsubscribe(world, hears, cases[i].filter);
        world_run(world, 10000);
    }
    end(world);
}

static void clients_that_are_not_connected_get_no_qos_0(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    struct client *sleeper = client_connect_as(world, 1, 'z', false);
    client_subscribe(world, sleeper, "t", 0);
    world_settle(world);
    broker_client_closed(world->sites[1].broker, world->now_ms, sleeper->handle);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_SUBSCRIPTION, "site-1", "of clients that are not connected: for them nothing is kept");
    sleeper = client_connect_as(world, 1, 'z', false);
    client_subscribe(world, sleeper, "t", 1);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 500);
    broker_client_closed(world->sites[1].broker, world->now_ms, sleeper->handle);
    answer = why_of_sites(world, 0, "t", 0, 1);
    assert_arrives(&answer);
    assert_says(&answer, "1 of clients not connected, for which QoS 1 and 2 wait: t");
    end(world);
}

/* ---- the policy ---- */

static void the_list_that_keeps_a_topic_is_named(void **state) {
    (void)state;
    static const struct {
        int site;
        struct policy_line line;
        const char *says;
    } cases[] = {
        {0, {"", POLICY_EXPORT, "open/#"}, "no filter of federation.export here"},
        {0, {"site-1", POLICY_EXPORT, "open/#"}, "no filter of federation.peers.site-1.export here"},
        {1, {"", POLICY_IMPORT, "open/#"}, "no filter of federation.import here"},
        {1, {"site-0", POLICY_IMPORT, NULL}, "no filter of federation.peers.site-0.import here"},
    };
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    client_subscribe(world, hears, "#", 1);
    world_run(world, 500);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy *policy = policy_of(&cases[i].line, 1);
        broker_set_policy(world->sites[cases[i].site].broker, world->now_ms, policy);
        world_run(world, 1000);
        struct answer answer = why_of_sites(world, 0, "shut/a", 0, 1);
        assert_stops(&answer, WHY_POLICY, cases[i].site == 0 ? "site-0" : "site-1", cases[i].says);
        broker_set_policy(world->sites[cases[i].site].broker, world->now_ms, NULL);
        policy_free(policy);
        world_run(world, 1000);
    }
    end(world);
}

/* ---- who knows, and joins ---- */

static void an_interest_that_has_not_spread_is_named(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    world->sites[1].mute = true;
    client_subscribe(world, hears, "t", 1);
    world_run(world, 500);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_ROW, "site-0", "knows no registry row of site-1");
    assert_says(&answer,
                "site-0 may not know of this interest yet: it is number 1 of the registry log, site-0 is at 0");
    end(world);
}

static void an_invitation_that_was_declined_is_named(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    world->sites[1].mute = world->sites[1].deaf = true;
    broker_peer_row(world->sites[0].broker, world->now_ms, &world->sites[1].id, ROW_NEWSUB, "#", 1, true);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 500);
    client_subscribe(world, hears, "t", 1);
    world_run(world, 500);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_JOIN, "site-0", "was invited and declined");
    assert_says(&answer, "joins at site-0 when it is invited");
    end(world);
}

static void a_join_that_is_refused_or_not_answered_is_named(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = two_sites(&says, &hears);
    struct policy *policy = POLICY({"", POLICY_EXPORT, "open/#"});
    broker_set_policy(world->sites[0].broker, world->now_ms, policy);
    broker_peer_row(world->sites[1].broker, world->now_ms, &world->sites[0].id, ROW_NEWPUB, "#", 1, true);
    client_subscribe(world, hears, "shut", 1);
    world_run(world, 500);
    struct answer answer = why_of_sites(world, 1, "shut", 0, 1);
    assert_stops(&answer, WHY_POLICY, "site-0", "export");
    world->hold_frames = true; /* with nothing from the other end, it is what this one knows */
    answer = why_of_sites(world, 1, "shut", 0, 1);
    assert_stops(&answer, WHY_JOIN, "site-1", "site-0 refused the join of shut: nothing under it leaves that broker");
    client_subscribe(world, hears, "open/a", 1);
    answer = why_of_sites(world, 1, "open/a", 0, 1);
    assert_stops(&answer, WHY_JOIN, "site-1", "has said join open/a to site-0, which has not answered yet");
    world->hold_frames = false;
    world_run(world, 500);
    broker_set_policy(world->sites[0].broker, world->now_ms, NULL);
    end(world);
    policy_free(policy);
}

/* ---- links ---- */

static void a_link_that_is_down_is_named_with_the_cause(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    world_run(world, 3000);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_LINK, "site-0", "the link with site-1 has been down for 5.");
    assert_says(&answer, "lost: its connection has ended");
    assert_says(&answer, "the last dial: not dialled");
    client_publish(world, says, "t", "m", 1, false);
    answer = why_of_sites(world, 0, "t", 0, 1);
    assert_says(&answer, "1 publications wait for site-1 meanwhile");
    answer = why_of_sites(world, 1, "t", 0, 1);
    assert_stops(&answer, WHY_LINK, "site-1", "the link with site-0 has been down for ");
    world_run(world, 40000);
    answer = why_of_sites(world, 1, "t", 0, 1);
    assert_stops(&answer, WHY_LINK, "site-1", "not dialled");
    assert_says(&answer, "joins t at site-0 as soon as there is a link");
    world->apart[0][1] = false;
    world_run(world, 20000);
    answer = why_of_sites(world, 0, "t", 0, 1);
    assert_arrives(&answer);
    end(world);
}

static void a_token_that_is_refused_is_the_cause(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->sites[1].refuses = true;
    world_cut(world, 0, 1);
    world_run(world, 3000);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_LINK, "site-0", "refused or ended by it: the token has expired");
    answer = why_of_sites(world, 1, "t", 0, 1);
    assert_stops(&answer, WHY_LINK, "site-1", "refused: the token has expired");
    end(world);
}

static void a_peer_that_hangs_is_named(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world_run(world, 20000);
    world->hold_frames = true;
    client_publish(world, says, "t", "m", 1, false);
    client_publish(world, says, "t", "n", 1, false);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_SILENCE, "site-0", "site-1 has not answered in 2 s");
    world_run(world, 1500);
    answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_QUEUE, "site-0", "site-1 has acknowledged nothing for 5.");
    assert_says(&answer, "2 publications are on their way to it and 0 wait; the last done is number 1");
    world->hold_frames = false;
    world_run(world, 200);
    answer = why_of_sites(world, 0, "t", 0, 1);
    assert_arrives(&answer);
    end(world);
}

static void a_broker_that_cannot_be_asked_is_named(void **state) {
    (void)state;
    struct world *world = started(3);
    world->apart[2][0] = true;
    struct answer answer = why_of_sites(world, 2, "t", 0, 0);
    assert_stops(&answer, WHY_SILENCE, "site-2", "site-0 cannot be asked, as there is no link with it: not dialled");
    end(world);
}

/* ---- what waits ---- */

static void a_full_queue_is_named_with_its_limit_and_what_it_dropped(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes, all_bytes;
        int qos;
        const char *limit, *what, *dropped;
    } cases[] = {
        {2000, 0, 0, "limits.link_queue_bytes", "and QoS 0 is dropped", "link_queue_bytes"},
        {2000, 0, 1, "limits.link_queue_bytes", "and more is dropped", "link_queue_bytes"},
        {0, 2000, 1, "limits.link_queues_bytes", "and more is dropped", "link_queues_bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world *world = world_of(2);
        world->sites[0].limits.link_queue_bytes = cases[i].bytes;
        world->sites[0].limits.link_queues_bytes = cases[i].all_bytes;
        assert_true(world_start(world));
        struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
        client_subscribe(world, hears, "t", 1);
        client_publish(world, says, "t", "m", 1, false);
        world_run(world, 500);
        world->hold_frames = true;
        for (int n = 0; n < 60; n++)
            client_publish(world, says, "t", "m", cases[i].qos, false);
        struct answer answer = why_of_sites(world, 0, "t", 0, 1);
        assert_stops(&answer, WHY_QUEUE, "site-0", cases[i].limit);
        assert_says(&answer, cases[i].what);
        assert_says(&answer, "limits dropped: ");
        assert_says(&answer, cases[i].dropped);
        world->hold_frames = false;
        world_run(world, 500);
        answer = why_of_sites(world, 0, "t", 0, 1);
        assert_arrives(&answer);
        assert_says(&answer, "limits dropped: "); /* those did not arrive */
        end(world);
    }
}

static void what_waits_for_a_broker_that_is_away_fills_nobodys_queue(void **state) {
    (void)state;
    struct world *world = world_of(3);
    world->sites[0].limits.link_queues_bytes = 3000;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1),
                  *away = client_connect_as(world, 2, 'k', false);
    client_subscribe(world, hears, "t", 1);
    client_subscribe(world, away, "u", 1);
    client_publish(world, says, "t", "m", 1, false);
    client_publish(world, says, "u", "m", 1, false);
    world_run(world, 500);
    broker_peer_gone(world->sites[0].broker, world->now_ms, &world->sites[2].id);
    for (int n = 0; n < 60; n++)
        client_publish(world, says, "u", "m", 1, false);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_arrives(&answer);
    client_publish(world, says, "t", "n", 1, false);
    world_run(world, 500);
    assert_int_equal(client_got(hears, "n"), 1);
    world_free(world);
    free(world);
}

static void a_broker_that_takes_nothing_for_now_says_so(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    broker_set_memory_short(world->sites[1].broker, world->now_ms, true);
    client_publish(world, says, "t", "m", 1, false);
    world_settle(world);
    struct answer answer = why_of_sites(world, 0, "t", 0, 1);
    assert_stops(&answer, WHY_QUEUE, "site-1", "takes nothing that lasts for now");
    broker_set_memory_short(world->sites[1].broker, world->now_ms, false);
    world_run(world, 5000);
    end(world);
}

/* ---- the table ---- */

static void so_many_questions_are_open_and_no_more(void **state) {
    (void)state;
    struct world *world = started(2);
    struct broker *broker = world->sites[0].broker;
    const struct why_end ends[2] = {why_site(world, 0), why_site(world, 1)};
    uint64_t questions[WHY_OPEN_MAX];
    size_t count;
    world->hold_frames = true;
    for (int i = 0; i < WHY_OPEN_MAX; i++)
        questions[i] = why_ask(world, 0, "t", &ends[0], &ends[1]);
    assert_int_equal(why_ask(world, 0, "t", &ends[0], &ends[1]), 0);
    assert_null(broker_why_steps(broker, questions[3], &count));
    broker_why_end(broker, questions[3]);
    broker_why_end(broker, questions[3]);
    broker_why_end(broker, 0);
    assert_true(why_ask(world, 0, "t", &ends[0], &ends[1]) > questions[WHY_OPEN_MAX - 1]);
    world_run(world, WHY_WAIT_MS);
    uint64_t told;
    for (int i = 0; i < WHY_OPEN_MAX; i++)
        assert_true(broker_next_why(broker, &told) && told != questions[3]);
    assert_false(broker_next_why(broker, &told));
    assert_int_equal(why_ask(world, 0, "t", &ends[0], &ends[1]), 0); /* until they are fetched, and ended */
    world->hold_frames = false;
    world_run(world, 1000);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_arrives_is_said_with_qos_and_what_was_acknowledged),
        cmocka_unit_test(a_third_broker_asks_both_over_links_of_its_own),
        cmocka_unit_test(of_one_broker_it_is_told_what_it_has_itself),
        cmocka_unit_test(what_never_leaves_its_broker_is_said_to),
        cmocka_unit_test(a_broker_that_is_unknown_or_down_is_named),
        cmocka_unit_test(what_waits_for_a_broker_that_is_away_is_said),
        cmocka_unit_test(a_filter_that_nearly_matches_is_named),
        cmocka_unit_test(clients_that_are_not_connected_get_no_qos_0),
        cmocka_unit_test(the_list_that_keeps_a_topic_is_named),
        cmocka_unit_test(an_interest_that_has_not_spread_is_named),
        cmocka_unit_test(an_invitation_that_was_declined_is_named),
        cmocka_unit_test(a_join_that_is_refused_or_not_answered_is_named),
        cmocka_unit_test(a_link_that_is_down_is_named_with_the_cause),
        cmocka_unit_test(a_token_that_is_refused_is_the_cause),
        cmocka_unit_test(a_peer_that_hangs_is_named),
        cmocka_unit_test(a_broker_that_cannot_be_asked_is_named),
        cmocka_unit_test(a_full_queue_is_named_with_its_limit_and_what_it_dropped),
        cmocka_unit_test(what_waits_for_a_broker_that_is_away_fills_nobodys_queue),
        cmocka_unit_test(a_broker_that_takes_nothing_for_now_says_so),
        cmocka_unit_test(so_many_questions_are_open_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
