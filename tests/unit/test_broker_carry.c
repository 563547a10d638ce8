/* Gossip over links: its packets cross, it learns which links are up and who is at an address, the links it wants are
 * kept, and neither it nor the publications wait long for the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/carry.h"
#include "joined.h"

#define PACKET_SIZE 1000u

struct heard {
    int ups, downs, found;
    struct peer_id found_id;
    int packets, first, last; /* numbers of the first and the last packet */
    bool in_order;
};

static struct heard hear(struct world *world, int site) {
    struct heard heard = {.first = -1, .last = -1, .in_order = true};
    struct broker_carried carried;
    while (broker_next_carried(world->sites[site].broker, &carried)) {
        int number;
        switch (carried.kind) {
        case CARRIED_UP: heard.ups++; break;
        case CARRIED_DOWN: heard.downs++; break;
        case CARRIED_FOUND:
            heard.found++;
            heard.found_id = carried.peer;
            break;
        case CARRIED_PACKET:
            assert_int_equal(carried.size, PACKET_SIZE);
            memcpy(&number, carried.bytes, sizeof number);
            heard.in_order &= number > heard.last;
            if (heard.packets++ == 0) heard.first = number;
            heard.last = number;
        }
    }
    return heard;
}

static bool say(struct world *world, int from, int to, int number) {
    uint8_t packet[PACKET_SIZE] = {0};
    memcpy(packet, &number, sizeof number);
    return broker_carry(world->sites[from].broker, world->now_ms, &world->sites[to].id, packet, sizeof packet);
}

static void keep(struct world *world, int at, int to, uint32_t for_ms) {
    broker_peer_keep(world->sites[at].broker, world->now_ms, &world->sites[to].id, for_ms);
}

static struct world *kept(int sites) {
    struct world *world = started(sites);
    for (int to = 1; to < sites; to++)
        keep(world, 0, to, 1000);
    world_settle(world);
    return world;
}

static void link_that_gossip_wants_is_dialled_and_kept(void **state) {
    (void)state;
    struct world *world = started(2);
    world_run(world, 1000);
    assert_int_equal(world->dials, 0);
    for (int i = 0; i < 100; i++) {
        keep(world, 0, 1, 6000);
        world_run(world, 3000);
        assert_int_equal(world_link(world, 0, 1).state, LINK_UP);
        assert_true(world_link(world, 0, 1).kept);
        if (i > 0) say(world, 0, 1, i); /* or the other end would close it */
    }
    assert_int_equal(world->dials, 1);
    world_run(world, 75000);
    assert_int_equal(world_link(world, 0, 1).state, LINK_CLOSING);
    struct heard heard = hear(world, 0);
    assert_int_equal(heard.ups, 0); /* up and down again between two looks is nothing */
    end(world);
}

static void packets_cross_both_ways_in_their_order(void **state) {
    (void)state;
    struct world *world = kept(2);
    assert_int_equal(hear(world, 0).ups, 1);
    assert_int_equal(hear(world, 1).ups, 1);
    for (int i = 0; i < 100; i++)
        assert_true(say(world, 0, 1, i) && say(world, 1, 0, i));
    world_settle(world);
    for (int site = 0; site < 2; site++) {
        struct heard heard = hear(world, site);
        assert_int_equal(heard.packets, 100);
        assert_true(heard.in_order && heard.ups == 0);
        assert_int_equal(world_link(world, site, 1 - site).gossip_sent, 100);
        assert_int_equal(world_link(world, site, 1 - site).gossip_received, 100);
    }
    end(world);
}

static void packet_without_a_link_is_not_taken(void **state) {
    (void)state;
    struct world *world = started(2);
    assert_false(say(world, 0, 1, 0));
    keep(world, 0, 1, 1000);
    world->hold_frames = true;
    world_settle(world);
    assert_false(say(world, 0, 1, 0)); /* not up yet */
    world->hold_frames = false;
    world_settle(world);
    assert_true(say(world, 0, 1, 0));
    world_cut(world, 0, 1);
    assert_false(say(world, 0, 1, 0));
    struct heard heard = hear(world, 0);
    assert_int_equal(heard.ups + heard.downs, 0);
    end(world);
}

static void end_of_a_link_is_told(void **state) {
    (void)state;
    struct world *world = kept(2);
    hear(world, 0);
    hear(world, 1);
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    assert_int_equal(hear(world, 0).downs, 1);
    assert_int_equal(hear(world, 1).downs, 1);
    world->apart[0][1] = false;
    keep(world, 0, 1, 5000);
    world_run(world, 1000);
    assert_int_equal(hear(world, 0).ups, 1);
    end(world);
}

static void dial_to_an_address_tells_who_is_there(void **state) {
    (void)state;
    struct world *world = world_of(2);
    for (int i = 0; i < 2; i++)
        assert_true(site_start(world, i)); /* neither knows of the other */
    assert_true(world_seek(world, 0, 1) != 0);
    world_settle(world);
    struct heard heard = hear(world, 0);
    assert_int_equal(heard.found, 1);
    assert_memory_equal(&heard.found_id, &world->sites[1].id, sizeof heard.found_id);
    assert_int_equal(heard.ups, 1);
    assert_int_equal(hear(world, 1).ups, 1);
    assert_true(say(world, 0, 1, 7) && say(world, 1, 0, 8));
    world_settle(world);
    assert_int_equal(hear(world, 0).last, 8);
    assert_int_equal(hear(world, 1).last, 7);
    /* Once more: the link that is there goes on. */
    assert_true(world_seek(world, 0, 1) != 0);
    world_settle(world);
    heard = hear(world, 0);
    assert_int_equal(heard.found, 1);
    assert_int_equal(heard.ups + heard.downs, 0);
    assert_true(say(world, 0, 1, 9));
    end(world);
}

static void dial_to_our_own_address_is_noticed(void **state) {
    (void)state;
    struct world *world = started(2);
    assert_true(world_seek(world, 0, 0) != 0);
    world_settle(world);
    struct heard heard = hear(world, 0);
    assert_int_equal(heard.found, 1);
    assert_memory_equal(&heard.found_id, &world->sites[0].id, sizeof heard.found_id);
    assert_int_equal(heard.ups, 0);
    assert_int_equal(world->warnings[0], 0);
    end(world);
}

static void stranger_at_an_address_is_refused(void **state) {
    (void)state;
    struct world *world = world_of(2);
    for (int i = 0; i < 2; i++)
        assert_true(site_start(world, i));
    world->sites[0].refuses = true;
    world_seek(world, 0, 1);
    world_settle(world);
    assert_int_equal(hear(world, 0).ups, 0);
    assert_int_equal(world_counters(world, 0).links_refused, 1);
    end(world);
}

static void dials_to_addresses_are_bounded(void **state) {
    (void)state;
    struct world *world = started(2);
    for (int i = 0; i < CARRY_SEEK_MAX; i++)
        assert_true(broker_link_open(world->sites[0].broker, world->now_ms, true, NULL) != 0);
    assert_true(broker_link_open(world->sites[0].broker, world->now_ms, true, NULL) == 0);
    world_run(world, LINK_DIAL_MS + LINK_ENDED_MS);
    assert_true(broker_link_open(world->sites[0].broker, world->now_ms, true, NULL) != 0);
    end(world);
}

/* A dial to an address finds a peer with whom publications are under way: none is lost, none comes twice. */
static void numbering_goes_on_over_a_link_to_an_address(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_publish(world, says, "t", "arrived", 2, false);
    world_settle(world); /* without time no acknowledgement */
    world->apart[0][1] = true;
    world_cut(world, 0, 1);
    client_publish(world, says, "t", "queued", 2, false);
    world_settle(world);
    for (int way = 0; way < 2; way++) {
        assert_true(world_seek(world, way, 1 - way) != 0);
        world_run(world, 500);
        assert_int_equal(world_link(world, 0, 1).state, LINK_UP);
        assert_int_equal(client_got(hears, "arrived"), 1);
        assert_int_equal(client_got(hears, "queued"), 1);
        assert_int_equal(world_link(world, 1, 0).lost, 0);
        world_cut(world, 0, 1);
    }
    end(world);
}

/* A peer that does not read costs a bound, and reads what is newest. */
static void newest_packets_take_the_place_of_the_oldest(void **state) {
    (void)state;
    struct world *world = kept(2);
    hear(world, 1);
    for (int i = 0; i < 2000; i++)
        assert_true(say(world, 0, 1, i));
    world_settle(world);
    struct heard heard = hear(world, 1);
    assert_int_equal(heard.last, 1999);
    assert_int_equal(heard.packets, CARRY_QUEUE_MAX / PACKET_SIZE);
    assert_int_equal(heard.first, 2000 - heard.packets);
    assert_int_equal(world_link(world, 0, 1).gossip_dropped, 2000 - heard.packets);
    /* So does who does not fetch. */
    for (int i = 0; i < 2000; i++) {
        say(world, 0, 1, i);
        world_settle(world);
    }
    heard = hear(world, 1);
    assert_int_equal(heard.last, 1999);
    assert_int_equal(heard.packets, CARRY_ARRIVED_MAX / PACKET_SIZE);
    end(world);
}

static enum frame_type next_type(struct world *world, broker_handle link) {
    struct broker_span span;
    struct frame frame;
    if (!broker_link_output(world->sites[0].broker, world->now_ms, link, &span)) return 0;
    assert_int_equal(frame_read(span.bytes, span.size, &frame), FRAME_OK);
    broker_link_written(world->sites[0].broker, world->now_ms, link);
    return frame.type;
}

static void gossip_and_publications_take_turns(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    static uint8_t payload[60000];
    for (int i = 0; i < 40; i++)
        client_publish_bytes(world, says, "t", payload, sizeof payload, 0, false);
    for (int i = 0; i < 200; i++)
        assert_true(say(world, 0, 1, i));
    broker_handle link = 0;
    for (int i = 0; i < WIRES_MAX; i++)
        for (int e = 0; e < 2; e++)
            if (world->wires[i].used && world->wires[i].ends[e].open && world->wires[i].ends[e].site == 0)
                link = world->wires[i].ends[e].handle;
    int gossip = 0, others = 0;
    enum frame_type before = 0, type;
    while ((type = next_type(world, link)) != 0) {
        gossip += type == FRAME_GOSSIP;
        others += type != FRAME_GOSSIP;
        if (gossip < 12 && others < 12) assert_true((type == FRAME_GOSSIP) != (before == FRAME_GOSSIP) || before == 0);
        before = type;
    }
    assert_true(gossip >= 12 && others >= 12);
    end(world);
}

/* Three peers want a link with us for gossip; there is room for two such. */
static void links_for_gossip_alone_are_bounded(void **state) {
    (void)state;
    struct world *world = world_of(4);
    world->sites[0].limits.idle_links_max = 2;
    assert_true(world_start(world));
    world_settle(world);
    for (int from = 1; from < 4; from++) {
        keep(world, from, 0, 10);
        world_run(world, 100);
    }
    assert_int_equal(world_counters(world, 0).links_up, 2);
    assert_int_equal(world_link(world, 0, 1).state, LINK_CLOSING); /* used longest ago */
    /* Those we want ourselves do not count. */
    for (int to = 1; to < 4; to++)
        keep(world, 0, to, 30000);
    world_run(world, 12000);
    assert_int_equal(world_counters(world, 0).links_up, 3);
    end(world);
}

static void frame_of_a_later_version_does_no_harm(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    for (int i = 0; i < WIRES_MAX; i++)
        for (int e = 0; e < 2; e++)
            if (world->wires[i].used && world->wires[i].ends[e].open)
                broker_link_input(world->sites[world->wires[i].ends[e].site].broker, world->now_ms,
                                  world->wires[i].ends[e].handle, (const uint8_t[]){0x92, 99, 0xa1}, 3, true);
    world_settle(world);
    assert_int_equal(world_counters(world, 0).frames_malformed, 0);
    client_publish(world, says, "t", "after", 0, false);
    world_settle(world);
    assert_int_equal(client_got(hears, "after"), 1);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_that_gossip_wants_is_dialled_and_kept),
        cmocka_unit_test(packets_cross_both_ways_in_their_order),
        cmocka_unit_test(packet_without_a_link_is_not_taken),
        cmocka_unit_test(end_of_a_link_is_told),
        cmocka_unit_test(dial_to_an_address_tells_who_is_there),
        cmocka_unit_test(dial_to_our_own_address_is_noticed),
        cmocka_unit_test(stranger_at_an_address_is_refused),
        cmocka_unit_test(dials_to_addresses_are_bounded),
        cmocka_unit_test(numbering_goes_on_over_a_link_to_an_address),
        cmocka_unit_test(newest_packets_take_the_place_of_the_oldest),
        cmocka_unit_test(gossip_and_publications_take_turns),
        cmocka_unit_test(links_for_gossip_alone_are_bounded),
        cmocka_unit_test(frame_of_a_later_version_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
