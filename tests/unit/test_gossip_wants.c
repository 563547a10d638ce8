/* What was asked for and did not come is asked for again, and of whom, and how often. */
#include "gossip_packet.h"
#include "gossip_traitor.h"

#define VIEWER 0
#define OWNER 3
#define BROKERS 4
#define NOTED_MAX 64
#define LIES_EACH_MS 50

/* What goes over the wire: WANTs of the viewer for the owner's log are noted, and what the test says is lost. */
struct wire {
    int owner, lose_wants; /* the first so many are lost */
    bool told;             /* the newest entry came once, without the one before it */
    bool answers[BROKERS]; /* this one's entries pass, as it was asked */
    struct {
        int to;
        uint64_t at_ms;
    } wants[NOTED_MAX];
    int want_count;
    uint64_t tellings; /* of the owner by the first other */
};

static void note_want(struct wire *wire, uint64_t now_ms, int to) {
    assert_true(wire->want_count < NOTED_MAX);
    wire->wants[wire->want_count].to = to;
    wire->wants[wire->want_count++].at_ms = now_ms;
}

static bool is_owners(const struct net *net, const struct wire *wire, const struct member_id *id) {
    struct member_id owner = net_id(net, wire->owner);
    return id_equal(&owner, id);
}

/* Nothing is lost; the viewer's questions are noted, but for those to who told it of what there is. */
static bool only_notes(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    struct wire *wire = net->loses_context;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(net, datagram, plain, &header);
    struct message message;
    while (from == VIEWER && net->nodes[to].gossip && message_get(&in, &message))
        if (message.kind == MESSAGE_WANT && is_owners(net, wire, &message.version.id)) note_want(wire, net->now_ms, to);
    return false;
}

static bool entry_passes(struct wire *wire, int from, uint64_t sequence) {
    if (wire->answers[from]) return true;
    if (wire->told || sequence < 2 || from == wire->owner) return false;
    wire->told = true;
    return true;
}

/* The viewer hears of the second entry once, and lacks the first; what else could tell it is lost. */
static bool loses_what_is_asked(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    struct wire *wire = net->loses_context;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(net, datagram, plain, &header);
    struct message message;
    bool lost = to == VIEWER && from == wire->owner && !wire->answers[from];
    while (message_get(&in, &message)) {
        struct entry entry;
        switch (message.kind) {
        case MESSAGE_WANT:
            if (from != VIEWER || !is_owners(net, wire, &message.version.id)) break;
            note_want(wire, net->now_ms, to);
            lost = lost || wire->want_count <= wire->lose_wants;
            wire->answers[to] = wire->answers[to] || !lost;
            break;
        case MESSAGE_ENTRY:
            if (to != VIEWER) break;
            assert_true(entry_read(message.bytes, message.size, &entry));
            lost = lost || !entry_passes(wire, from, entry.sequence);
            break;
        case MESSAGE_DIGEST:
        case MESSAGE_BUCKETS:
        case MESSAGE_VERSIONS:
        case MESSAGE_HAVE: lost = lost || from == VIEWER || to == VIEWER; break;
        default: break;
        }
    }
    return lost;
}

static struct net *net_of_many(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    for (int i = 0; i < count; i++) {
        net->nodes[i].limits.eager_members_max = 1; /* as where there are many: few are told by the owner */
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 5000);
    return net;
}

static bool viewer_knows(struct net *net) {
    return net_has_row(net, VIEWER, OWNER, "first/#") && net_has_row(net, VIEWER, OWNER, "second/#");
}

static void what_is_lost_is_asked_for_again_of_another_until_it_comes(void **state) {
    (void)state;
    for (int lose = 0; lose <= 6; lose++) {
        struct net *net = net_of_many(BROKERS, 900 + (uint64_t)lose);
        struct wire wire = {.owner = OWNER, .lose_wants = lose};
        net->loses = loses_what_is_asked;
        net->loses_context = &wire;
        net_row(net, OWNER, "first/#", true);
        net_run(net, 30);
        net_row(net, OWNER, "second/#", true);
        assert_true(net_until(net, viewer_knows, 3000));
        uint64_t took_ms = net->now_ms - wire.wants[0].at_ms;
        print_message("%d lost: known %d ms after the first question\n", lose, (int)took_ms);
        assert_int_equal(wire.want_count, lose + 1);
        for (int i = 1; i < wire.want_count; i++) {
            assert_int_not_equal(wire.wants[i].to, wire.wants[i - 1].to);
            assert_true(wire.wants[i].at_ms >= wire.wants[i - 1].at_ms + 50);
        }
        if (lose > 0) assert_true(wire.wants[1].at_ms <= wire.wants[0].at_ms + 200);
        if (lose > 4)
            assert_true(wire.wants[5].at_ms - wire.wants[4].at_ms > wire.wants[1].at_ms - wire.wants[0].at_ms);
        net_run(net, 5000);
        assert_int_equal(wire.want_count, lose + 1); /* it has come */
        net_free(net);
    }
}

/* ---- what is not there ---- */

static void boast(struct traitor *traitor, int owner) {
    const struct net_node *node = &traitor->net->nodes[owner];
    struct message have = {.kind = MESSAGE_HAVE,
                           .version = {.id = net_id(traitor->net, owner), .epoch = node->epoch, .sequence = 1000}};
    traitor_say_one(traitor, VIEWER, have);
}

static void boast_for(struct traitor *traitor, int owner, uint64_t ms) {
    for (uint64_t end = traitor->net->now_ms + ms; traitor->net->now_ms < end;) {
        boast(traitor, owner);
        net_run(traitor->net, LIES_EACH_MS);
    }
}

static void who_boasts_makes_us_ask_others_a_few_times_only(void **state) {
    (void)state;
    struct net *net = traitor_net(3, 910);
    struct traitor *traitor = traitor_new(net);
    struct wire wire = {.owner = 1};
    net_run(net, 3000);
    net->loses = only_notes;
    net->loses_context = &wire;
    boast_for(traitor, 1, 10000);
    print_message("10 s of boasting: others were asked %d times\n", wire.want_count);
    assert_int_equal(wire.want_count, 10);
    boast_for(traitor, 1, 20000);
    print_message("30 s of it: %d times\n", wire.want_count);
    assert_in_range(wire.want_count, 11, 30);
    traitor_free(traitor);
    net_free(net);
}

static int asked_of_a_busy_one(bool boasts) {
    struct net *net = traitor_net(3, 913);
    struct traitor *traitor = traitor_new(net);
    struct wire wire = {.owner = 1};
    net_run(net, 3000);
    net->loses = only_notes;
    net->loses_context = &wire;
    for (int i = 0; i < 100; i++) {
        net_row(net, 1, "busy/#", i % 2 == 0);
        if (boasts)
            boast_for(traitor, 1, 100);
        else
            net_run(net, 100);
    }
    traitor_free(traitor);
    net_free(net);
    return wire.want_count;
}

/* What comes of it meanwhile does not begin it anew for ever. */
static void who_boasts_of_a_busy_one_does_not_either(void **state) {
    (void)state;
    int usual = asked_of_a_busy_one(false), more = asked_of_a_busy_one(true) - usual;
    print_message("of a busy one others are asked %d times, and for 10 s of boasting %d times more\n", usual, more);
    assert_in_range(more, 11, 32);
}

static void who_boasts_of_all_leaves_room_for_what_others_say(void **state) {
    (void)state;
    struct net *net = traitor_net(24, 911);
    struct traitor *traitor = traitor_new(net);
    struct member_id liar = net_id(net, traitor->as);
    uint32_t used = 0;
    net_run(net, 3000);
    for (int owner = 1; owner < traitor->as; owner++)
        boast(traitor, owner);
    net_run(net, 30);
    const struct wants *wants = &net->nodes[VIEWER].gossip->wants;
    for (size_t i = 0; i < WANTS_MAX; i++)
        used += wants->all[i].used && id_equal(&wants->all[i].said_by, &liar);
    assert_int_equal(used, WANTS_MAX / 2);
    traitor_free(traitor);
    net_free(net);
}

static void nothing_is_asked_for_of_who_is_gone(void **state) {
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        struct net *net = traitor_net(3, 912);
        struct traitor *traitor = traitor_new(net);
        struct wire wire = {.owner = 1};
        net_run(net, 3000);
        net->loses = only_notes;
        net->loses_context = &wire;
        if (in_order) { /* in the middle of the questions */
            boast_for(traitor, 1, 200);
            assert_in_range(wire.want_count, 1, 5);
            gossip_leave(net->nodes[1].gossip, net->now_ms);
            net_drain(net, 1);
            net_run(net, 20);
            assert_int_equal(net->nodes[VIEWER].sees[1], MEMBER_LEFT);
        } else {
            net_kill(net, 1);
            while (net->nodes[VIEWER].sees[1] != MEMBER_DOWN)
                net_run(net, 100);
        }
        wire.want_count = 0;
        boast_for(traitor, 1, 3000);
        assert_int_equal(wire.want_count, 0);
        traitor_free(traitor);
        net_free(net);
    }
}

/* ---- rumours ---- */

/* HAVE and ENTRY of the owner, by the first other that is not the viewer. */
static bool counts_tellings(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    struct wire *wire = net->loses_context;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(net, datagram, plain, &header);
    struct message message;
    (void)to;
    while (from == 1 && message_get(&in, &message)) {
        struct entry entry;
        bool is_entry = message.kind == MESSAGE_ENTRY && entry_read(message.bytes, message.size, &entry) &&
                        is_owners(net, wire, &entry.id);
        wire->tellings += is_entry || (message.kind == MESSAGE_HAVE && is_owners(net, wire, &message.version.id));
    }
    return false;
}

static uint64_t tellings_after(uint32_t loss_percent) {
    struct net *net = net_of_many(12, 920);
    struct wire wire = {.owner = OWNER};
    net->loss_percent = loss_percent;
    net_run(net, 30000); /* it is measured */
    net->loss_percent = 0;
    net->loses = counts_tellings;
    net->loses_context = &wire;
    net_row(net, OWNER, "first/#", true);
    net_run(net, 1500);
    net_free(net);
    return wire.tellings;
}

static void where_much_is_lost_a_rumour_is_told_more_often(void **state) {
    (void)state;
    uint64_t good = tellings_after(0), bad = tellings_after(40);
    print_message("told by one: %d times, where two fifths are lost %d\n", (int)good, (int)bad);
    assert_int_equal(good, 8);
    assert_in_range(bad, 11, 16);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lost_is_asked_for_again_of_another_until_it_comes),
        cmocka_unit_test(who_boasts_makes_us_ask_others_a_few_times_only),
        cmocka_unit_test(who_boasts_of_a_busy_one_does_not_either),
        cmocka_unit_test(who_boasts_of_all_leaves_room_for_what_others_say),
        cmocka_unit_test(nothing_is_asked_for_of_who_is_gone),
        cmocka_unit_test(where_much_is_lost_a_rumour_is_told_more_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
