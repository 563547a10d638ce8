/* What a link between two whole brokers lives through: dials, cuts, restarts, refusals, full queues; and that what
 * crosses it is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

/* Two brokers with business both ways that dial each other at the same moment; the wire that the first one dialled (its
 * id is the smaller) is held, the other one moves. */
static struct world *dialling_both_ways(struct client **a, struct client **b, struct wire **slow) {
    struct world *world = started(2);
    int used = 0;
    *a = client_connect(world, 0);
    *b = client_connect(world, 1);
    world->apart[0][1] = true;
    client_publish(world, *a, "a", "m", 0, false);
    client_publish(world, *b, "b", "m", 0, false);
    client_subscribe(world, *a, "b", 1);
    client_subscribe(world, *b, "a", 1);
    world_settle(world);
    world->apart[0][1] = false;
    world->hold_frames = true;
    world_run(world, 250);
    for (int i = 0; i < WIRES_MAX; i++) {
        if (!world->wires[i].used) continue;
        used++;
        if (world->wires[i].ends[0].site == 0) *slow = &world->wires[i];
    }
    assert_int_equal(used, 2);
    (*slow)->held = true;
    world->hold_frames = false;
    return world;
}

static void simultaneous_dial_leaves_one_link(void **state) {
    (void)state;
    struct client *a, *b;
    struct wire *slow;
    struct world *world = dialling_both_ways(&a, &b, &slow);
    client_publish(world, a, "a", "during", 1, false);
    world_run(world, 100);
    /* That of the larger id could be up by now; it is refused, so that nothing is sent on it and again on the other. */
    assert_int_equal(world_counters(world, 0).links_up, 0);
    slow->held = false;
    world_run(world, 200);
    int used = 0;
    for (int i = 0; i < WIRES_MAX; i++)
        used += world->wires[i].used && world->wires[i].ends[0].open;
    assert_int_equal(used, 1);
    assert_true(world_link(world, 0, 1).state == LINK_UP && world_link(world, 0, 1).dialled);
    assert_true(world_link(world, 1, 0).state == LINK_UP && !world_link(world, 1, 0).dialled);
    assert_int_equal(world_counters(world, 0).links_up, 1);
    assert_int_equal(client_got(b, "during"), 1);
    client_publish(world, b, "b", "after", 0, false);
    world_settle(world);
    assert_int_equal(client_got(a, "after"), 1);
    assert_int_equal(world_link(world, 0, 1).repeated + world_link(world, 1, 0).repeated, 0);
    assert_int_equal(world_link(world, 0, 1).publications_sent, 1);
    assert_int_equal(world_link(world, 0, 1).lost + world_link(world, 1, 0).lost, 0);
    end(world);
}

static void a_dial_that_hangs_keeps_the_peers_out_for_a_second_only(void **state) {
    (void)state;
    struct client *a, *b;
    struct wire *slow;
    struct world *world = dialling_both_ways(&a, &b, &slow);
    world_run(world, 2000);
    assert_true(world_link(world, 0, 1).state == LINK_UP && !world_link(world, 0, 1).dialled);
    client_publish(world, a, "a", "by the other way", 1, false);
    world_settle(world);
    assert_int_equal(client_got(b, "by the other way"), 1);
    end(world);
}

static void unacknowledged_is_resent_after_reconnect(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->hold_frames = true;
    for (int qos = 0; qos < 3; qos++)
        client_publish(world, says, "t", "lost on the way", qos, false);
    world_settle(world);
    assert_true(world_link(world, 0, 1).publications_sent == 4);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    client_publish(world, says, "t", "queued", 1, false);
    world->hold_frames = false;
    world_run(world, 2000);
    assert_int_equal(hears->received_count, 1);
    world->apart[0][1] = false;
    world_run(world, 10000);
    assert_int_equal(client_got(hears, "lost on the way"), 3);
    assert_int_equal(client_got(hears, "queued"), 1);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
    end(world);
}

/* What arrived but whose acknowledgement was lost comes again, and is dropped. */
static void what_was_received_is_not_taken_twice(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    for (int qos = 0; qos < 3; qos++)
        client_publish(world, says, "t", "arrived", qos, false);
    world_settle(world); /* without time no acknowledgement */
    assert_int_equal(client_got(hears, "arrived"), 3);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 3);
    world_cut(world, 0, 1);
    client_publish(world, says, "t", "new", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "arrived"), 3);
    assert_int_equal(client_got(hears, "new"), 1);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
    end(world);
}

static void a_restarted_peer_gets_what_waits_and_joins_again(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_subscribe(world, hears, "of the earlier run", 1);
    world_run(world, 400);
    world_cut(world, 0, 1);
    broker_free(world->sites[1].broker);
    world->sites[1].broker = NULL;
    for (int i = world->row_count - 1; i >= 0; i--)
        if (world->rows[i].site == 1) world->rows[i] = world->rows[--world->row_count];
    world_run(world, 500);
    assert_true(site_start(world, 1));
    world_tell_alive(world, 0, 1);
    assert_int_equal(world_link(world, 0, 1).joined_here, 0); /* the earlier run's */
    world_tell_alive(world, 1, 0);
    struct client *again = client_connect(world, 1);
    client_subscribe(world, again, "t", 1);
    world_run(world, 400);
    assert_int_equal(again->subacks, 1);
    client_publish(world, says, "t", "after", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(again, "after"), 1);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    uint64_t invites = world_link(world, 0, 1).invites_sent;
    client_publish(world, says, "of the earlier run", "m", 1, false);
    world_run(world, 1000);
    assert_int_equal(world_link(world, 0, 1).invites_sent, invites);
    end(world);
}

/* The registry remembered a higher epoch of ours, as after a lost disk: links go on under the new one. */
static void a_raised_epoch_makes_links_anew(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->sites[1].epoch = 9;
    world_tell_alive(world, 0, 1);
    world_run(world, 3000);
    assert_int_equal(world_counters(world, 0).links_up, 0);
    broker_set_epoch(world->sites[1].broker, world->now_ms, 9);
    world_run(world, 11000);
    assert_int_equal(world_counters(world, 0).links_up, 1);
    client_publish(world, says, "t", "after", 1, false);
    world_run(world, 100);
    assert_int_equal(client_got(hears, "after"), 1);
    end(world);
}

/* P5: one issuer may serve two federations, and an address may have been another's before. */
static void a_link_into_another_federation_is_refused_and_both_are_told_why(void **state) {
    (void)state;
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world_init(world, 2);
    world->sites[0].federation = "plant";
    world->sites[1].federation = "office";
    assert_true(world_start(world));
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
    client_subscribe(world, hears, "t", 1);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 20000);
    assert_int_equal(client_got(hears, "m"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_counters(world, i).links_up, 0);
        assert_non_null(strstr(world->last_warning[i], "is of the federation \""));
        assert_non_null(strstr(world->last_warning[i], "\"plant\""));
        assert_non_null(strstr(world->last_warning[i], "\"office\""));
        assert_non_null(strstr(world->last_warning[i], "give both one federation.name, or take the other's address out "
                                                       "of federation.bootstrap"));
        assert_int_equal(world->warnings[i], 1);
    }
    assert_true(world->dials > 3 && world->dials < 40); /* it backs off */
    end(world);
}

static void refused_token_makes_no_link(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
    world->sites[0].refuses = true;
    client_subscribe(world, hears, "t", 1);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 20000);
    assert_int_equal(client_got(hears, "m"), 0);
    assert_true(world_counters(world, 0).links_refused > 0);
    assert_int_equal(world_counters(world, 0).links_up, 0);
    assert_int_equal(world_counters(world, 1).links_up, 0);
    assert_non_null(strstr(world->last_warning[0], "site-1"));
    assert_non_null(strstr(world->last_warning[0], "the token has expired"));
    assert_non_null(strstr(world->last_warning[1], "site-0"));
    assert_non_null(strstr(world->last_warning[1], "the token has expired"));
    assert_true(world->dials > 3 && world->dials < 40); /* it backs off */
    assert_int_equal(world->warnings[0], 1);
    assert_int_equal(world->warnings[1], 1);
    world->sites[0].refuses = false;
    world_run(world, 11000);
    client_publish(world, says, "t", "good", 1, false);
    world_run(world, 11000);
    assert_int_equal(client_got(hears, "good"), 1);
    end(world);
}

static void a_large_publication_crosses_in_pieces(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "big", 1);
    world_settle(world);
    world->split = 1000;
    size_t size = 1024 * 1024;
    char *payload = malloc(size);
    assert_non_null(payload);
    memset(payload, 'x', size);
    client_publish_bytes(world, says, "big", payload, size, 1, false);
    client_publish_bytes(world, says, "big", payload, 0, 1, false);
    client_publish_bytes(world, says, "big", payload, 1, 1, false);
    world_run(world, 1000);
    assert_int_equal(hears->received_count, 3);
    assert_int_equal(hears->received[0].payload_size, size);
    assert_int_equal(hears->received[1].payload_size, 0);
    assert_int_equal(hears->received[2].payload_size, 1);
    free(payload);
    end(world);
}

static void many_publications_share_a_frame(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    uint64_t frames = world_link(world, 0, 1).frames_sent;
    for (int i = 0; i < 1000; i++)
        client_publish(world, says, "t", "m", 0, false);
    world_run(world, 40);
    assert_int_equal(client_got(hears, "m"), 1000);
    assert_int_equal(world_link(world, 0, 1).frames_sent - frames, 1);
    end(world);
}

static void full_outbox_drops_qos_0_and_counts(void **state) {
    (void)state;
    struct world *world = world_of(2);
    world->sites[0].limits.link_queue_bytes = 20000;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "t", 1);
    world_settle(world);
    client_publish(world, says, "t", "warm", 0, false);
    world_run(world, 200);
    world->hold_frames = true;
    for (int i = 0; i < 500; i++)
        client_publish(world, says, "t", "zero", 0, false);
    uint64_t dropped = world_link(world, 0, 1).dropped;
    assert_true(dropped > 0);
    assert_true(world_link(world, 0, 1).outbox_bytes <= 20000);
    client_publish(world, says, "t", "one", 1, false);
    assert_int_equal(world_link(world, 0, 1).dropped, dropped);
    for (int i = 0; i < 500; i++)
        client_publish(world, says, "t", "more", 1, false);
    assert_true(world_link(world, 0, 1).dropped > dropped);
    assert_true(world_link(world, 0, 1).outbox_bytes <= 40000);
    dropped = world_link(world, 0, 1).dropped;
    world->hold_frames = false;
    world_run(world, 1000);
    assert_int_equal((uint64_t)hears->received_count + dropped, 1002);
    assert_int_equal(client_got(hears, "one"), 1);
    assert_int_equal(world_link(world, 1, 0).lost, 0); /* dropped is not lost */
    client_publish(world, says, "t", "again", 0, false);
    world_run(world, 100);
    assert_int_equal(client_got(hears, "again"), 1);
    end(world);
}

static void a_silent_link_is_pinged_and_then_closed(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world_run(world, 20000);
    assert_true(world_link(world, 0, 1).state == LINK_UP);
    world->hold_frames = true;
    world->apart[0][1] = true;
    world_run(world, 10100);
    assert_true(world_link(world, 0, 1).state != LINK_UP);
    end(world);
}

static void joins_outlive_a_short_cut_and_no_longer(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_subscribe(world, hears, "t", 0);
    world_settle(world);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    world_run(world, 29000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    world_run(world, 2000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 0);
    world->apart[0][1] = false;
    world_run(world, 11000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    end(world);
}

/* What was unsubscribed while the link was down is not joined after it. */
static void a_new_link_says_all_joins_anew(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_subscribe(world, hears, "+", 1);
    world_run(world, 100);
    assert_int_equal(world_link(world, 0, 1).joined_here, 2);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    client_unsubscribe(world, hears, "t");
    world_run(world, 6000);
    world->apart[0][1] = false;
    world_run(world, 41000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    end(world);
}

static void a_peer_that_is_gone_and_had_nothing_kept_leaves_nothing(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_subscribe(world, hears, "t", 0);
    world_settle(world);
    broker_peer_gone(world->sites[0].broker, world->now_ms, &world->sites[1].id);
    client_publish(world, says, "t", "nobody", 1, false);
    world_settle(world);
    struct link_info info = world_link(world, 0, 1);
    assert_int_equal(info.joined_here + info.outbox_messages, 0);
    assert_true(info.state == LINK_CLOSING);
    assert_int_equal(client_got(hears, "nobody"), 0);
    end(world);
}

static void an_expired_token_cuts_the_link(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world_run(world, 3590 * 1000);
    uint64_t opened = world_counters(world, 0).links_opened;
    world->sites[0].refuses = true;
    world_run(world, 20 * 1000);
    assert_int_equal(world_counters(world, 0).links_up, 0);
    assert_true(world_counters(world, 0).links_opened > opened);
    end(world);
}

/* Everything of a publication crosses: properties as they were, the expiry interval less the time that passed. */
static void properties_and_expiry_cross(void **state) {
    (void)state;
    static const uint8_t connect[] = {0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 0, 0, 0, 2, 'v', '5'};
    static const uint8_t subscribe[] = {0x82, 7, 0, 1, 0, 0, 1, 't', 1};
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_send(world, says, (const uint8_t[]){0xe0, 0}, 2);
    client_send(world, hears, (const uint8_t[]){0xe0, 0}, 2);
    world_settle(world);
    says->handle = broker_client_open(world->sites[0].broker, world->now_ms,
                                      &(struct broker_origin){.from_loopback = true, .address = "v5"});
    hears->handle = broker_client_open(world->sites[1].broker, world->now_ms,
                                       &(struct broker_origin){.from_loopback = true, .address = "v5"});
    client_send(world, says, connect, sizeof connect);
    client_send(world, hears, connect, sizeof connect);
    client_send(world, hears, subscribe, sizeof subscribe);
    world_run(world, 400);
    assert_int_equal(hears->subacks, 1);
    static const uint8_t properties[] = {19, 2, 0, 0, 0, 10, 3, 0, 1, 'c', 0x26, 0, 1, 'k', 0, 2, 'v', 'w', 1, 1};
    uint8_t body[64] = {0, 1, 't'};
    memcpy(body + 3, properties, sizeof properties);
    body[3 + sizeof properties] = 'p';
    world->apart[0][1] = true; /* so that it has to wait a little */
    client_packet(world, says, 0x30, body, 3 + sizeof properties + 1);
    world_run(world, 3000);
    world->apart[0][1] = false;
    world_run(world, 1900);
    assert_int_equal(hears->received_count, 1);
    const uint8_t *got = (const uint8_t *)hears->received[0].payload;
    assert_int_equal(hears->received[0].payload_size, sizeof properties + 1);
    assert_int_equal(got[0], 19);
    unsigned seen = 0, expiry = 0;
    for (size_t at = 1; at < sizeof properties;) {
        static const uint8_t content_type[] = {3, 0, 1, 'c'}, user[] = {0x26, 0, 1, 'k', 0, 2, 'v', 'w'},
                             format[] = {1, 1};
        if (got[at] == 2) {
            expiry = got[at + 4];
            at += 5;
        } else if (memcmp(got + at, content_type, sizeof content_type) == 0) {
            at += sizeof content_type, seen |= 1;
        } else if (memcmp(got + at, user, sizeof user) == 0) {
            at += sizeof user, seen |= 2;
        } else {
            assert_memory_equal(got + at, format, sizeof format);
            at += sizeof format, seen |= 4;
        }
    }
    assert_int_equal(seen, 7);
    assert_true(expiry >= 5 && expiry <= 7);
    assert_int_equal(got[sizeof properties], 'p');
    end(world);
}

static void what_expired_on_the_way_is_not_sent_and_not_lost(void **state) {
    (void)state;
    static const uint8_t connect[] = {0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 0, 0, 0, 2, 'v', '5'};
    static const uint8_t publish[] = {0x30, 10, 0, 1, 't', 5, 2, 0, 0, 0, 1, 'x'};
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    says->handle = broker_client_open(world->sites[0].broker, world->now_ms,
                                      &(struct broker_origin){.from_loopback = true, .address = "v5"});
    client_send(world, says, connect, sizeof connect);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    client_send(world, says, publish, sizeof publish);
    world_run(world, 2000);
    world->apart[0][1] = false;
    world_run(world, 3000);
    assert_true(world_link(world, 0, 1).state == LINK_UP);
    assert_int_equal(client_got(hears, "x"), 0);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
    end(world);
}

static void a_delete_crosses_though_its_expiry_interval_is_over(void **state) {
    (void)state;
    static const uint8_t connect[] = {0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 0, 0, 0, 2, 'v', '5'};
    static const uint8_t delete[] = {0x31, 9, 0, 1, 't', 5, 2, 0, 0, 0, 1};
    struct client *says, *hears, *late;
    struct world *world = joined(&says, &hears);
    client_publish(world, says, "t", "kept", 1, true);
    world_settle(world);
    assert_int_equal(client_got(hears, "kept"), 1);
    says->handle = broker_client_open(world->sites[0].broker, world->now_ms,
                                      &(struct broker_origin){.from_loopback = true, .address = "v5"});
    client_send(world, says, connect, sizeof connect);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    client_send(world, says, delete, sizeof delete);
    world_run(world, 2000);
    world->apart[0][1] = false;
    world_run(world, 3000);
    late = client_connect(world, 1);
    client_subscribe(world, late, "t", 1);
    world_run(world, 1000);
    assert_int_equal(late->subacks, 1);
    assert_int_equal(late->received_count, 0);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simultaneous_dial_leaves_one_link),
        cmocka_unit_test(a_dial_that_hangs_keeps_the_peers_out_for_a_second_only),
        cmocka_unit_test(unacknowledged_is_resent_after_reconnect),
        cmocka_unit_test(what_was_received_is_not_taken_twice),
        cmocka_unit_test(a_restarted_peer_gets_what_waits_and_joins_again),
        cmocka_unit_test(a_raised_epoch_makes_links_anew),
        cmocka_unit_test(a_link_into_another_federation_is_refused_and_both_are_told_why),
        cmocka_unit_test(refused_token_makes_no_link),
        cmocka_unit_test(a_large_publication_crosses_in_pieces),
        cmocka_unit_test(many_publications_share_a_frame),
        cmocka_unit_test(full_outbox_drops_qos_0_and_counts),
        cmocka_unit_test(a_silent_link_is_pinged_and_then_closed),
        cmocka_unit_test(joins_outlive_a_short_cut_and_no_longer),
        cmocka_unit_test(a_new_link_says_all_joins_anew),
        cmocka_unit_test(a_peer_that_is_gone_and_had_nothing_kept_leaves_nothing),
        cmocka_unit_test(an_expired_token_cuts_the_link),
        cmocka_unit_test(properties_and_expiry_cross),
        cmocka_unit_test(what_expired_on_the_way_is_not_sent_and_not_lost),
        cmocka_unit_test(a_delete_crosses_though_its_expiry_interval_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
