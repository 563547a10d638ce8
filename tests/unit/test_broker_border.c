/* The policy between whole brokers: checked at a join, at sending, at receiving and at asking, and while they run. Site
 * 0 is mostly the one that publishes, site 1 the one that subscribes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"
#include "policies.h"

struct fixture {
    struct world *world;
    struct policy *policies[SITES_MAX]; /* of each site, freed at the end */
    struct client *says, *hears;
};

/* Policies are given before, and may be NULL. */
static struct fixture two_sites(struct policy *of_says, struct policy *of_hears) {
    struct fixture fixture = {.world = world_of(2), .policies = {of_says, of_hears}};
    for (int i = 0; i < 2; i++)
        fixture.world->sites[i].policy = fixture.policies[i];
    assert_true(world_start(fixture.world));
    fixture.says = client_connect(fixture.world, 0);
    fixture.hears = client_connect(fixture.world, 1);
    world_settle(fixture.world);
    return fixture;
}

static void done(struct fixture *fixture) {
    end(fixture->world);
    for (int i = 0; i < SITES_MAX; i++)
        policy_free(fixture->policies[i]);
}

static bool change_policy(struct fixture *fixture, int site, struct policy *policy) {
    struct world *world = fixture->world;
    bool changed = broker_set_policy(world->sites[site].broker, world->now_ms, policy);
    policy_free(fixture->policies[site]);
    fixture->policies[site] = policy;
    world->sites[site].policy = policy;
    world_run(world, 1000); /* the link is dialled anew */
    return changed;
}

/* The rows of a site are wider than what they stand for, as they may be: one for all. */
static void show_a_cover(struct fixture *fixture, int to, int of) {
    struct world *world = fixture->world;
    broker_peer_row(world->sites[to].broker, world->now_ms, &world->sites[of].id, ROW_NEWPUB, "#", 1, true);
}

static bool has_row(const struct world *world, int site, enum row_kind kind, const char *filter) {
    for (int i = 0; i < world->row_count; i++) {
        const struct world_row *row = &world->rows[i];
        if (row->site == site && row->kind == kind && strcmp(row->filter, filter) == 0) return true;
    }
    return false;
}

static void subscribe(struct fixture *fixture, const char *filter) {
    client_subscribe(fixture->world, fixture->hears, filter, 1);
    world_run(fixture->world, 400);
}

/* Twice, as the first one may be held for a join and the later ones go by what is joined. */
static void publish(struct fixture *fixture, const char *topic, const char *payload) {
    for (int i = 0; i < 2; i++) {
        client_publish(fixture->world, fixture->says, topic, payload, 1, false);
        world_run(fixture->world, 500);
    }
}

/* ---- at sending ---- */

static void only_what_is_exported_goes_to_a_peer(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    subscribe(&fixture, "#");
    publish(&fixture, "open/a", "public");
    publish(&fixture, "shut/a", "secret");
    publish(&fixture, "open/a", "public again");
    assert_int_equal(client_got(fixture.hears, "public"), 2);
    assert_int_equal(client_got(fixture.hears, "public again"), 2);
    assert_int_equal(client_got(fixture.hears, "secret"), 0);
    assert_int_equal(world_link(fixture.world, 0, 1).publications_sent, 4);
    assert_int_equal(world_link(fixture.world, 1, 0).refused, 0);
    done(&fixture);
}

static void one_peer_may_get_what_another_does_not(void **state) {
    (void)state;
    struct world *world = world_of(3);
    struct policy *policy = POLICY({"", POLICY_EXPORT, "status"}, {"site-2", POLICY_EXPORT, "#"});
    world->sites[0].policy = policy;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *guest = client_connect(world, 1), *hq = client_connect(world, 2);
    client_subscribe(world, guest, "#", 1);
    client_subscribe(world, hq, "#", 1);
    world_run(world, 400);
    client_publish(world, says, "plan", "old plan", 1, true);
    for (int i = 0; i < 3; i++) {
        client_publish(world, says, "status", "up", 1, false);
        client_publish(world, says, "plan", "plan", 1, false);
        world_run(world, 500);
    }
    assert_int_equal(client_got(guest, "up"), 3);
    assert_int_equal(client_got(guest, "plan") + client_got(guest, "old plan"), 0);
    assert_int_equal(client_got(hq, "up"), 3);
    assert_int_equal(client_got(hq, "plan"), 3);
    assert_int_equal(client_got(hq, "old plan"), 1);
    end(world);
    policy_free(policy);
}

/* Not even its name crosses. */
static void what_is_exported_to_nobody_is_not_adverted(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "nine"}), NULL);
    publish(&fixture, "shut/a", "m");
    publish(&fixture, "open/a", "m");
    publish(&fixture, "nine", "m");
    assert_false(has_row(fixture.world, 0, ROW_NEWPUB, "shut/a"));
    assert_true(has_row(fixture.world, 0, ROW_NEWPUB, "open/a"));
    assert_true(has_row(fixture.world, 0, ROW_NEWPUB, "nine"));
    done(&fixture);
}

static void nobody_is_invited_to_what_is_not_exported_to_him(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "nine"}), NULL);
    subscribe(&fixture, "nine");
    subscribe(&fixture, "shut");
    world_settle(fixture.world);
    publish(&fixture, "nine", "m");
    publish(&fixture, "shut", "m");
    assert_int_equal(world_link(fixture.world, 0, 1).invites_sent, 0);
    assert_int_equal(fixture.hears->received_count, 0);
    done(&fixture);
}

static void a_snapshot_holds_what_is_exported_and_no_other_delete(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    client_publish(fixture.world, fixture.says, "open/a", "kept", 1, true);
    client_publish(fixture.world, fixture.says, "shut/a", "secret", 1, true);
    client_publish(fixture.world, fixture.says, "shut/b", "deleted", 1, true);
    client_publish(fixture.world, fixture.says, "shut/b", "", 1, true);
    client_publish(fixture.world, fixture.says, "open/b", "", 1, true);
    subscribe(&fixture, "#");
    world_run(fixture.world, 1000);
    assert_int_equal(client_got(fixture.hears, "kept"), 1);
    assert_int_equal(client_got(fixture.hears, "secret"), 0);
    assert_int_equal(world_link(fixture.world, 0, 1).publications_sent, 2); /* open/a and the delete of open/b */
    done(&fixture);
}

/* ---- at a join ---- */

static void a_join_of_what_is_not_exported_at_all_is_refused(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    publish(&fixture, "open/a", "m");
    show_a_cover(&fixture, 1, 0);
    client_subscribe(fixture.world, fixture.hears, "shut/#", 1);
    client_subscribe(fixture.world, fixture.hears, "+/a", 1);
    world_run(fixture.world, 100);
    assert_int_equal(world_link(fixture.world, 0, 1).joined_here, 1);
    assert_int_equal(world_link(fixture.world, 1, 0).joined_there, 1);
    assert_int_equal(fixture.hears->subacks, 2); /* neither waits for what was refused */
    assert_int_equal(world_counters(fixture.world, 1).barriers_timed_out, 0);
    done(&fixture);
}

/* ---- at receiving ---- */

static void what_is_not_imported_is_dropped_and_counted(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, POLICY({"", POLICY_IMPORT, "open/#"}));
    subscribe(&fixture, "#");
    publish(&fixture, "open/a", "public");
    client_publish(fixture.world, fixture.says, "shut/r", "retained", 1, true);
    publish(&fixture, "shut/a", "secret");
    publish(&fixture, "open/a", "public again");
    assert_int_equal(client_got(fixture.hears, "public"), 2);
    assert_int_equal(client_got(fixture.hears, "public again"), 2);
    assert_int_equal(client_got(fixture.hears, "secret") + client_got(fixture.hears, "retained"), 0);
    assert_int_equal(world_link(fixture.world, 1, 0).refused, 3);
    struct client *late = client_connect(fixture.world, 1);
    client_subscribe(fixture.world, late, "shut/r", 1);
    world_run(fixture.world, 1000);
    assert_int_equal(late->received_count, 0);
    done(&fixture);
}

/* ---- at asking ---- */

static void nothing_is_joined_that_is_not_imported(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, POLICY({"site-0", POLICY_IMPORT, "open/#"}));
    publish(&fixture, "shut/a", "m");
    subscribe(&fixture, "shut/#");
    subscribe(&fixture, "#"); /* of what is adverted it would import nothing */
    publish(&fixture, "shut/a", "m");
    assert_int_equal(world_link(fixture.world, 0, 1).joined_here, 0);
    show_a_cover(&fixture, 1, 0);
    publish(&fixture, "open/a", "m");
    assert_int_equal(world_link(fixture.world, 0, 1).joined_here, 1);
    assert_int_equal(world_link(fixture.world, 1, 0).refused, 0);
    assert_int_equal(client_got(fixture.hears, "m"), 2);
    done(&fixture);
}

static void an_interest_imported_from_nobody_is_no_row_and_waits_for_nobody(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, POLICY({"", POLICY_IMPORT, "open/#"}, {"site-9", POLICY_IMPORT, "nine"}));
    struct world *world = fixture.world;
    world->sites[0].deaf = true; /* it never says that it knows of a row */
    client_subscribe(world, fixture.hears, "shut/#", 1);
    world_settle(world);
    assert_int_equal(fixture.hears->subacks, 1);
    assert_false(has_row(world, 1, ROW_NEWSUB, "shut/#"));
    /* The row is there for another one. */
    client_subscribe(world, fixture.hears, "nine", 1);
    world_settle(world);
    assert_int_equal(fixture.hears->subacks, 2);
    assert_true(has_row(world, 1, ROW_NEWSUB, "nine"));
    client_subscribe(world, fixture.hears, "open/a", 1);
    world_settle(world);
    assert_int_equal(fixture.hears->subacks, 2);
    world_run(world, 1000);
    assert_int_equal(fixture.hears->subacks, 3);
    done(&fixture);
}

/* ---- while they run ---- */

static void what_is_no_longer_exported_ends_at_once(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, NULL);
    struct world *world = fixture.world;
    subscribe(&fixture, "open/#");
    subscribe(&fixture, "shut/#");
    subscribe(&fixture, "+/both");
    publish(&fixture, "shut/a", "before");
    publish(&fixture, "shut/both", "before");
    assert_int_equal(client_got(fixture.hears, "before"), 4);
    world->hold_frames = true;
    client_publish(world, fixture.says, "shut/a", "waits", 1, false);
    client_publish(world, fixture.says, "open/a", "goes", 1, false);
    world_settle(world);
    world->apart[0][1] = world->apart[1][0] = true;
    world_cut(world, 0, 1);
    world->hold_frames = false;
    client_publish(world, fixture.says, "shut/both", "waits", 1, false);
    assert_true(change_policy(&fixture, 0, POLICY({"", POLICY_EXPORT, "open/#"})));
    assert_int_equal(world_link(world, 0, 1).joined_here, 1); /* +/both */
    world->apart[0][1] = world->apart[1][0] = false;
    world_run(world, 12000);
    publish(&fixture, "shut/a", "after");
    publish(&fixture, "shut/both", "after");
    publish(&fixture, "open/both", "open");
    assert_int_equal(client_got(fixture.hears, "waits") + client_got(fixture.hears, "after"), 0);
    assert_int_equal(client_got(fixture.hears, "goes"), 1);
    assert_int_equal(client_got(fixture.hears, "open"), 2);
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_POLICY], 2);
    assert_int_equal(world_link(world, 0, 1).joined_here, 2);
    assert_false(has_row(world, 0, ROW_NEWPUB, "shut/a"));
    done(&fixture);
}

static void what_is_held_for_a_join_is_dropped_too(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, NULL);
    struct world *world = fixture.world;
    subscribe(&fixture, "#");
    world->apart[0][1] = world->apart[1][0] = true;
    client_publish(world, fixture.says, "shut/a", "held", 1, false);
    client_publish(world, fixture.says, "open/a", "goes", 1, false);
    world_run(world, 100);
    change_policy(&fixture, 0, POLICY({"", POLICY_EXPORT, "open/#"}));
    world->apart[0][1] = world->apart[1][0] = false;
    world_run(world, 3000);
    assert_int_equal(client_got(fixture.hears, "held"), 0);
    assert_int_equal(client_got(fixture.hears, "goes"), 1);
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_POLICY], 1);
    done(&fixture);
}

/* Whoever it is that may have it: he may not be here yet. */
static void what_was_for_nobody_is_adverted_when_somebody_may_have_it(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    client_publish(fixture.world, fixture.says, "shut/r", "retained", 1, true);
    publish(&fixture, "shut/a", "m");
    change_policy(&fixture, 0, POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "#"}));
    assert_true(has_row(fixture.world, 0, ROW_NEWPUB, "shut/r"));
    publish(&fixture, "shut/a", "m");
    assert_true(has_row(fixture.world, 0, ROW_NEWPUB, "shut/a"));
    done(&fixture);
}

static void what_is_exported_from_now_on_comes_with_what_is_retained(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    struct world *world = fixture.world;
    client_publish(world, fixture.says, "shut/r", "retained", 1, true);
    client_publish(world, fixture.says, "private/r", "never", 1, true);
    subscribe(&fixture, "#");
    subscribe(&fixture, "shut/#");
    publish(&fixture, "open/a", "m");
    publish(&fixture, "shut/a", "before");
    assert_int_equal(client_got(fixture.hears, "m"), 2);
    assert_int_equal(client_got(fixture.hears, "before") + client_got(fixture.hears, "retained"), 0);
    change_policy(&fixture, 0, POLICY({"", POLICY_PRIVATE, "private/#"}));
    publish(&fixture, "shut/a", "after");
    assert_int_equal(client_got(fixture.hears, "retained"), 1);
    assert_int_equal(client_got(fixture.hears, "after"), 2);
    assert_int_equal(client_got(fixture.hears, "never"), 0);
    done(&fixture);
}

/* A join that a peer was refused is asked for again. */
static void what_was_refused_is_joined_when_it_may_be(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}), NULL);
    struct world *world = fixture.world;
    publish(&fixture, "open/a", "m");
    show_a_cover(&fixture, 1, 0);
    subscribe(&fixture, "shut/#");
    world_run(world, 100);
    assert_int_equal(world_link(world, 0, 1).joined_here, 0);
    change_policy(&fixture, 0, NULL);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    publish(&fixture, "shut/a", "after");
    assert_int_equal(client_got(fixture.hears, "after"), 2);
    done(&fixture);
}

static void what_is_no_longer_imported_is_left_whatever_is_adverted(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, NULL);
    show_a_cover(&fixture, 1, 0);
    subscribe(&fixture, "shut/#");
    assert_int_equal(world_link(fixture.world, 0, 1).joined_here, 1);
    change_policy(&fixture, 1, POLICY({"", POLICY_IMPORT, "open/#"}));
    assert_int_equal(world_link(fixture.world, 0, 1).joined_here, 0);
    done(&fixture);
}

static void what_is_no_longer_imported_is_left_and_no_row(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, NULL);
    struct world *world = fixture.world;
    subscribe(&fixture, "shut/#");
    subscribe(&fixture, "open/#");
    publish(&fixture, "shut/a", "before");
    publish(&fixture, "open/a", "before");
    assert_int_equal(client_got(fixture.hears, "before"), 4);
    change_policy(&fixture, 1, POLICY({"", POLICY_IMPORT, "open/#"}));
    assert_false(has_row(world, 1, ROW_NEWSUB, "shut/#"));
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    publish(&fixture, "shut/a", "after");
    publish(&fixture, "open/a", "open");
    assert_int_equal(client_got(fixture.hears, "after"), 0);
    assert_int_equal(client_got(fixture.hears, "open"), 2);
    assert_int_equal(world_link(world, 1, 0).refused, 0);
    done(&fixture);
}

/* Also of a filter that stays joined: what it had dropped of the first snapshot is shown to it again. */
static void what_is_imported_from_now_on_comes_with_what_is_retained(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, POLICY({"", POLICY_IMPORT, "open/#"}));
    struct world *world = fixture.world;
    client_publish(world, fixture.says, "shut/r", "retained", 1, true);
    client_publish(world, fixture.says, "open/r", "open", 1, true);
    subscribe(&fixture, "#");
    subscribe(&fixture, "shut/r");
    world_run(world, 1000);
    assert_int_equal(client_got(fixture.hears, "open"), 1);
    assert_int_equal(client_got(fixture.hears, "retained"), 0);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    change_policy(&fixture, 1, NULL);
    assert_int_equal(world_link(world, 0, 1).joined_here, 2);
    assert_int_equal(client_got(fixture.hears, "retained"), 1);
    assert_int_equal(client_got(fixture.hears, "open"), 1);
    publish(&fixture, "shut/a", "after");
    assert_int_equal(client_got(fixture.hears, "after"), 2);
    /* That once: the next link needs no snapshot. */
    uint64_t sent = world_link(world, 0, 1).publications_sent;
    world_cut(world, 0, 1);
    world_run(world, 1000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 2);
    assert_int_equal(world_link(world, 0, 1).publications_sent, sent);
    done(&fixture);
}

static void a_suback_no_longer_waits_for_what_is_not_imported(void **state) {
    (void)state;
    struct fixture fixture = two_sites(NULL, NULL);
    struct world *world = fixture.world;
    world->sites[0].deaf = true;
    client_subscribe(world, fixture.hears, "shut", 1);
    world_settle(world);
    assert_int_equal(fixture.hears->subacks, 0);
    fixture.policies[1] = POLICY({"", POLICY_IMPORT, "open/#"});
    broker_set_policy(world->sites[1].broker, world->now_ms, fixture.policies[1]);
    world_settle(world);
    assert_int_equal(fixture.hears->subacks, 1);
    done(&fixture);
}

static void a_policy_that_says_the_same_disturbs_no_link(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "a"}), NULL);
    subscribe(&fixture, "open/#");
    publish(&fixture, "open/a", "m");
    uint64_t opened = world_counters(fixture.world, 0).links_opened;
    assert_false(change_policy(&fixture, 0, POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "a"})));
    /* Nor does what concerns another peer. */
    assert_true(change_policy(&fixture, 0, POLICY({"", POLICY_EXPORT, "open/#"}, {"site-9", POLICY_EXPORT, "b"})));
    assert_int_equal(world_counters(fixture.world, 0).links_opened, opened);
    publish(&fixture, "open/a", "m");
    assert_int_equal(client_got(fixture.hears, "m"), 4);
    done(&fixture);
}

/* A token with another subject: other rules count. */
static void rules_follow_the_name_of_a_peer(void **state) {
    (void)state;
    struct fixture fixture = two_sites(POLICY({"", POLICY_EXPORT, "open/#"}, {"site-1", POLICY_EXPORT, "#"}), NULL);
    struct world *world = fixture.world;
    subscribe(&fixture, "#");
    publish(&fixture, "shut/a", "before");
    assert_int_equal(client_got(fixture.hears, "before"), 2);
    broker_peer_alive(world->sites[0].broker, world->now_ms, &world->sites[1].id, "renamed", world->sites[1].epoch);
    client_publish(world, fixture.says, "shut/a", "after", 1, false);
    client_publish(world, fixture.says, "open/a", "open", 1, false);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 1);
    end(world);
    policy_free(fixture.policies[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_exported_goes_to_a_peer),
        cmocka_unit_test(one_peer_may_get_what_another_does_not),
        cmocka_unit_test(what_is_exported_to_nobody_is_not_adverted),
        cmocka_unit_test(nobody_is_invited_to_what_is_not_exported_to_him),
        cmocka_unit_test(a_snapshot_holds_what_is_exported_and_no_other_delete),
        cmocka_unit_test(a_join_of_what_is_not_exported_at_all_is_refused),
        cmocka_unit_test(what_is_not_imported_is_dropped_and_counted),
        cmocka_unit_test(nothing_is_joined_that_is_not_imported),
        cmocka_unit_test(an_interest_imported_from_nobody_is_no_row_and_waits_for_nobody),
        cmocka_unit_test(what_is_no_longer_exported_ends_at_once),
        cmocka_unit_test(what_is_held_for_a_join_is_dropped_too),
        cmocka_unit_test(what_was_for_nobody_is_adverted_when_somebody_may_have_it),
        cmocka_unit_test(what_is_exported_from_now_on_comes_with_what_is_retained),
        cmocka_unit_test(what_was_refused_is_joined_when_it_may_be),
        cmocka_unit_test(what_is_no_longer_imported_is_left_whatever_is_adverted),
        cmocka_unit_test(what_is_no_longer_imported_is_left_and_no_row),
        cmocka_unit_test(what_is_imported_from_now_on_comes_with_what_is_retained),
        cmocka_unit_test(a_suback_no_longer_waits_for_what_is_not_imported),
        cmocka_unit_test(a_policy_that_says_the_same_disturbs_no_link),
        cmocka_unit_test(rules_follow_the_name_of_a_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
