/* A group whose members come, go, dawdle and vanish at random, one of which always has a session: at QoS 1 each message
 * is acknowledged by somebody in the end, at QoS 2 it is sent to exactly one session. */
#include "mqtt_client.h"

enum { MEMBERS = 5, MESSAGES = 1500, IDS = 256, ROUNDS = 12 };

struct member {
    struct client client;
    bool connected, durable, subscribed;
    unsigned session; /* counts them */
    struct {
        char state; /* 0; 'p' has PUBLISH of QoS 1, 'q' of QoS 2, 'r' PUBREL */
        unsigned id, number;
    } open[IDS]; /* by id modulo IDS: they are given out in turn, and there are few at a time */
};

static struct world world;
static struct client publisher;
static struct member members[MEMBERS];
static unsigned sent;
static uint8_t qos_of[MESSAGES];
static bool acknowledged[MESSAGES];
static unsigned owner[MESSAGES]; /* of QoS 2: member and session that got it; 0 if none */
static uint32_t dice;

/* xorshift32 (Marsaglia 2003). */
static unsigned draw(unsigned count) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % count;
}

static void open_id(struct member *member, unsigned id, char state, unsigned number) {
    assert_true(member->open[id % IDS].state == 0 || member->open[id % IDS].id == id);
    member->open[id % IDS].state = state;
    member->open[id % IDS].id = id;
    member->open[id % IDS].number = number;
}

static void on_publish(unsigned who, const char *packet) {
    struct member *member = &members[who];
    unsigned id, number, owned = (who << 16 | member->session) + 1;

    assert_int_equal(sscanf(strstr(packet, " id="), " id=%u t '%u'", &id, &number), 2);
    assert_true(number < sent);
    open_id(member, id, qos_of[number] == 1 ? 'p' : 'q', number);
    if (qos_of[number] == 1) return;
    if (owner[number] != 0 && owner[number] != owned) fail_msg("%u was sent to two sessions", number);
    owner[number] = owned;
}

static void read_all(unsigned who) {
    struct member *member = &members[who];
    char packet[256];
    unsigned id;

    while (member->connected && *next_packet(&member->client, packet, sizeof packet) != '\0') {
        if (strncmp(packet, "publish", 7) == 0)
            on_publish(who, packet);
        else if (sscanf(packet, "pubrel %u", &id) == 1)
            open_id(member, id, 'r', 0);
        else
            assert_true(strncmp(packet, "suback", 6) == 0 || strncmp(packet, "unsuback", 8) == 0);
    }
}

/* Answers what is open: each with this chance in percent. */
static void acknowledge(unsigned who, unsigned chance) {
    struct member *member = &members[who];

    for (unsigned i = 0; i < IDS && member->connected; i++) {
        char state = member->open[i].state;
        if (state == 0 || draw(100) >= chance) continue;
        if (state == 'p') acknowledged[member->open[i].number] = true;
        member->open[i].state = 0;
        say_ack(&member->client, state == 'p' ? 4 : state == 'q' ? 5 : 7, member->open[i].id);
        read_all(who);
    }
}

static void connect_member(unsigned who) {
    struct member *member = &members[who];
    char id[8], properties[40], got[128];

    snprintf(id, sizeof id, "m%u", who);
    member->durable = who == 0 || draw(2);
    snprintf(properties, sizeof properties, "21 %04x%s", 1 + draw(20), member->durable ? "11 00000064" : "");
    client_open(&world, &member->client, 5);
    say_connect(&member->client, &(struct connect){.id = id, .resume = true, .properties = properties});
    member->connected = true;
    memset(member->open, 0, sizeof member->open);
    next_packet(&member->client, got, sizeof got);
    if (strncmp(got, "connack present=0", 17) == 0) {
        member->session++;
        member->subscribed = false;
    }
    read_all(who);
}

static void lose_member(unsigned who) {
    struct member *member = &members[who];

    read_all(who);
    client_cut(&member->client);
    member->connected = false;
}

static void subscribe(unsigned who, bool in) {
    struct member *member = &members[who];

    if (in)
        say_subscribe(&member->client, 1, "$share/g/t", 2);
    else
        say_unsubscribe(&member->client, 1, "$share/g/t");
    member->subscribed = in;
    read_all(who);
}

static void publish(void) {
    char payload[8], packet[64];

    qos_of[sent] = (uint8_t)(1 + draw(2));
    snprintf(payload, sizeof payload, "%u", sent);
    say_publish(&publisher, &(struct publish){.topic = "t", .payload = payload, .qos = qos_of[sent++], .id = 1});
    if (qos_of[sent - 1] == 2) say_ack(&publisher, 6, 1);
    while (*next_packet(&publisher, packet, sizeof packet) != '\0') {
    }
}

static void step(void) {
    unsigned who = draw(MEMBERS);
    struct member *member = &members[who];

    for (unsigned i = draw(8); i > 0 && sent < MESSAGES; i--)
        publish();
    for (unsigned i = 0; i < MEMBERS; i++)
        read_all(i);
    switch (draw(8)) {
    case 0:
        if (member->connected)
            lose_member(who);
        else
            connect_member(who);
        break;
    case 1:
        if (member->connected && who != 0) subscribe(who, !member->subscribed);
        break;
    case 2: pass(&world, draw(30000)); break;
    default: acknowledge(who, 60);
    }
    /* The first always has its session. */
    if (!members[0].connected && draw(3) == 0) connect_member(0);
}

static void play(uint32_t seed) {
    dice = seed * 2654435761u;
    sent = 0;
    memset(acknowledged, 0, sizeof acknowledged);
    memset(owner, 0, sizeof owner);
    memset(members, 0, sizeof members);
    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    connect_member(0);
    subscribe(0, true);
    while (sent < MESSAGES)
        step();
    for (unsigned i = MEMBERS; i-- > 1;)
        if (members[i].connected) lose_member(i);
    if (!members[0].connected) connect_member(0);
    pass(&world, 101000); /* all other sessions end */
    for (unsigned i = 0; i < 3 * MESSAGES; i++) {
        read_all(0);
        acknowledge(0, 100);
    }
    for (unsigned number = 0; number < sent; number++) {
        if (qos_of[number] == 1 && !acknowledged[number]) fail_msg("seed %u: %u is lost", (unsigned)seed, number);
        if (qos_of[number] == 2 && owner[number] == 0)
            fail_msg("seed %u: %u was sent to nobody", (unsigned)seed, number);
    }
    assert_int_equal(counters(&world).dropped_queue_full, 0);
    client_cut(&members[0].client);
    client_cut(&publisher);
    world_end(&world);
}

static void nothing_is_lost_or_sent_to_two(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= ROUNDS; seed++)
        play(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_or_sent_to_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
