/* Subscribers that take topic aliases, or none, come, go, stop reading and take small packets only, among topics that
 * are more than there are aliases. Whatever comes has the topic it was published to. */
#include "alias_reader.h"

enum { READERS = 5, TOPICS = 60, STEPS = 4000, ROUNDS = 4, LIMIT = 12, PADDING = 1500 };

static struct world world;
static struct client publisher;
static struct alias_reader readers[READERS];
static bool connected[READERS];
static char topics[TOPICS][64];
static unsigned topic_of[STEPS], got[STEPS];
static unsigned set, set_anew, used;
static uint32_t dice;

/* xorshift32 (Marsaglia 2003). */
static unsigned draw(unsigned count) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % count;
}

static void name_topics(void) {
    for (unsigned i = 0; i < TOPICS; i++) {
        int size = snprintf(topics[i], sizeof topics[i], "%u", i);
        for (unsigned more = draw(50); more > 0; more--)
            topics[i][size++] = more % 9 == 0 ? '/' : 'x';
        topics[i][size] = '\0';
    }
}

static void come(unsigned who) {
    static const unsigned maxima[] = {0, 1, 3, 12, 13, 65535};
    struct alias_reader *reader = &readers[who];
    char id[8], properties[64];
    unsigned takes = maxima[draw(6)];
    int version = draw(6) == 0 ? 4 : 5;

    reader->alias_max = version == 4 ? 0 : takes < LIMIT ? takes : LIMIT;
    reader->packet_size_max = version == 5 && draw(2) == 0 ? 40 + draw(60) : 0;
    snprintf(id, sizeof id, "r%u", who);
    snprintf(properties, sizeof properties, "11 00000064 22 %04x 21 0008", takes);
    if (reader->packet_size_max > 0)
        snprintf(properties + strlen(properties), 24, " 27 %08zx", reader->packet_size_max);
    client_connect_with(&world, &reader->client, version,
                        &(struct connect){.id = id, .resume = true, .properties = properties});
    say_subscribe(&reader->client, 99, "#", draw(3));
    connected[who] = true;
}

static void go(unsigned who) {
    reader_cut(&readers[who]);
    connected[who] = false;
}

static void read_some(unsigned who, unsigned count) {
    struct publication publication;

    readers[who].client.unread = false;
    while (connected[who] && count-- > 0 && reader_next(&readers[who], &publication)) {
        unsigned number = 0;
        assert_true(publication.payload_size >= 4);
        assert_int_equal(sscanf((const char *)publication.payload, "%4u", &number), 1);
        assert_string_equal(publication.topic, topics[topic_of[number]]);
        got[number]++;
        if (draw(5) > 0) reader_answer(&readers[who], &publication);
    }
}

/* A few topics are many of the publications. */
static unsigned draw_topic(void) {
    return draw(3) > 0 ? draw(8) : draw(TOPICS);
}

static void publish(unsigned number) {
    static char payload[PADDING + 5];
    int size = snprintf(payload, sizeof payload, "%04u", number);
    unsigned padding = draw(3) > 0 ? draw(40) : draw(PADDING);

    memset(payload + size, 'p', padding);
    payload[(unsigned)size + padding] = '\0';
    topic_of[number] = draw_topic();
    say_publish(&publisher, &(struct publish){.topic = topics[topic_of[number]],
                                              .payload = payload,
                                              .qos = draw(3),
                                              .id = number % 60000 + 1,
                                              .retain = draw(20) == 0,
                                              .properties = draw(4) == 0 ? "02 0000ffff" : NULL});
    client_read(&publisher);
    if (draw(2) == 0) say_ack(&publisher, 6, number % 60000 + 1);
}

static void step(unsigned number) {
    unsigned who = draw(READERS);

    publish(number);
    if (!connected[who]) {
        come(who);
    } else if (draw(60) == 0) {
        go(who);
    } else if (draw(3) == 0) {
        readers[who].client.unread = true;
    } else {
        read_some(who, 1 + draw(20));
    }
    if (draw(100) == 0) pass(&world, 1000);
}

static void play(uint32_t seed) {
    dice = seed * 2654435761u;
    memset(got, 0, sizeof got);
    world.options.limits =
        (struct broker_limits){.topic_alias_out_max = LIMIT, .output_bytes_max = 3000, .inflight_max = 65535};
    world_begin(&world);
    name_topics();
    client_connect(&world, &publisher, 5, "publisher");
    for (unsigned number = 0; number < STEPS; number++)
        step(number);
    for (unsigned who = 0; who < READERS; who++) {
        read_some(who, UINT32_MAX);
        set += readers[who].set, set_anew += readers[who].set_anew, used += readers[who].used;
        if (connected[who]) go(who);
    }
    assert_true(counters(&world).dropped_qos0 > 0 && counters(&world).dropped_too_large > 0);
    client_cut(&publisher);
    world_end(&world);
}

static void every_publication_has_the_topic_it_was_published_to(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= ROUNDS; seed++)
        play(seed);
    assert_true(set > 100 && set_anew > 100 && used > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_publication_has_the_topic_it_was_published_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
