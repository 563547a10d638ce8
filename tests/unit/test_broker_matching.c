/* Random subscriptions, shared ones among them, and publications: who gets which copies is what a plain list of the
 * subscriptions says (MQTT 5.0 sections 3.3.4, 3.8.3, 4.7 and 4.8.2). */
#include "mqtt_client.h"
#include "tests/fuzz/naive_topics.h"

enum { CLIENTS = 5, HELD_MAX = 400, STEPS = 3000, COPIES_MAX = 64 };

struct held {
    unsigned client, identifier, options;
    char filter[48];
};

static struct world world;
static struct client clients[CLIENTS];
static struct held held[HELD_MAX];
static unsigned held_count, identifiers_given;
static uint32_t dice;

/* xorshift32 (Marsaglia 2003). */
static unsigned draw(unsigned count) {
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    return dice % count;
}

static void random_topic(char out[48], bool filter) {
    static const char *const pieces[] = {"", "a", "b", "$x", "c", "+", "+", "#"};
    unsigned levels = 1 + draw(4);

    out[0] = '\0';
    if (filter && draw(4) == 0) sprintf(out, "$share/%c/", "gh"[draw(2)]);
    for (unsigned i = 0; i < levels; i++) {
        const char *piece = pieces[draw(filter ? 8 : 5)];
        if (i > 0) strcat(out, "/");
        if (levels == 1 && piece[0] == '\0') piece = "a";
        strcat(out, piece);
        if (piece[0] == '#') return;
    }
}

static bool is_shared(const struct held *one) {
    return strncmp(one->filter, "$share/", 7) == 0;
}

static bool matches(const struct held *one, const char *topic) {
    const char *filter = is_shared(one) ? one->filter + strlen("$share/g/") : one->filter;
    struct naive f = {0}, n = {0};

    assert_true(naive_split(filter, strlen(filter), &f) && naive_split(topic, strlen(topic), &n));
    return naive_matches(&f, &n);
}

static struct held *find(unsigned client, const char *filter) {
    for (unsigned i = 0; i < held_count; i++)
        if (held[i].client == client && strcmp(held[i].filter, filter) == 0) return &held[i];
    return NULL;
}

static void subscribe(void) {
    struct held one = {.client = draw(CLIENTS)};
    char properties[16] = "", expected[32];
    struct held *old;

    random_topic(one.filter, true);
    /* Of its own in a group, so that it can be told through which membership a copy came. */
    if (is_shared(&one) || draw(3) > 0) one.identifier = ++identifiers_given;
    one.options = draw(3) | (draw(3) == 0 && !is_shared(&one) ? 4 : 0) | (draw(2) ? 8 : 0);
    if (one.identifier >= 128)
        snprintf(properties, sizeof properties, "0b %02x%02x", (one.identifier & 127) | 128, one.identifier >> 7);
    else if (one.identifier > 0)
        snprintf(properties, sizeof properties, "0b %02x", one.identifier);
    say_subscribe_with(&clients[one.client], 1, one.filter, one.options | 0x20, properties);
    snprintf(expected, sizeof expected, "suback 1 %02x", one.options & 3);
    expect(&clients[one.client], expected);
    old = find(one.client, one.filter);
    if (old != NULL)
        *old = one;
    else
        held[held_count++] = one;
}

static void unsubscribe(void) {
    unsigned at = draw(held_count);
    struct held one = held[at];

    say_unsubscribe(&clients[one.client], 2, one.filter);
    expect(&clients[one.client], "unsuback 2 00");
    held[at] = held[--held_count];
}

struct copy {
    unsigned qos;
    bool retain;
    char identifiers[200]; /* "" or " 0b=7 0b=9", ascending */
};

static int compare_texts(const void *a, const void *b) {
    return strcmp(a, b);
}

/* The identifiers of a packet's description in an order of their own. */
static void sort_identifiers(char out[200], const char *described) {
    char list[40][12];
    size_t count = 0;

    for (const char *at = strstr(described, " 0b="); at != NULL; at = strstr(at + 1, " 0b="))
        sscanf(at, " %11s", list[count++]);
    qsort(list, count, sizeof list[0], compare_texts);
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(out, " ");
        strcat(out, list[i]);
    }
}

static struct copy copy_of(const struct held *one, unsigned qos, bool retain) {
    struct copy copy = {.qos = (one->options & 3) < qos ? one->options & 3 : qos, .retain = retain && one->options & 8};

    if (one->identifier != 0) snprintf(copy.identifiers, sizeof copy.identifiers, " 0b=%u", one->identifier);
    return copy;
}

/* What the client must get through its ordinary subscriptions: one copy or none. */
static bool ordinary_copy(unsigned client, unsigned publisher, const char *topic, unsigned qos, bool retain,
                          struct copy *out) {
    char identifiers[512] = "";
    bool any = false;

    *out = (struct copy){0};
    for (unsigned i = 0; i < held_count; i++) {
        const struct held *one = &held[i];
        struct copy copy = copy_of(one, qos, retain);
        if (one->client != client || is_shared(one) || !matches(one, topic)) continue;
        if (one->options & 4 && client == publisher) continue;
        any = true;
        if (copy.qos > out->qos) out->qos = copy.qos;
        out->retain = out->retain || copy.retain;
        strcat(identifiers, copy.identifiers);
    }
    sort_identifiers(out->identifiers, identifiers);
    return any;
}

static bool same(const struct copy *a, const struct copy *b) {
    return a->qos == b->qos && a->retain == b->retain && strcmp(a->identifiers, b->identifiers) == 0;
}

/* Reads all that the client has got and acknowledges it. */
static unsigned read_copies(struct client *client, struct copy *out) {
    char packet[1024];
    unsigned count = 0, id;

    while (*next_packet(client, packet, sizeof packet) != '\0') {
        const char *at = strstr(packet, " q");
        if (strncmp(packet, "publish", 7) != 0) continue; /* of the handshakes */
        assert_non_null(at);
        assert_true(count < COPIES_MAX);
        out[count] =
            (struct copy){.qos = (unsigned)(at[2] - '0'), .retain = strncmp(packet, "publish retain", 14) == 0};
        sort_identifiers(out[count].identifiers, packet);
        if (out[count].qos > 0) {
            assert_int_equal(sscanf(strstr(packet, " id="), " id=%u", &id), 1);
            say_ack(client, out[count].qos == 1 ? 4 : 5, id);
            if (out[count].qos == 2) say_ack(client, 7, id);
        }
        count++;
    }
    return count;
}

/* Takes a copy like this one out; false if there is none. */
static bool take(struct copy *copies, unsigned *count, const struct copy *wanted) {
    for (unsigned i = 0; i < *count; i++) {
        if (!same(&copies[i], wanted)) continue;
        copies[i] = copies[--*count];
        return true;
    }
    return false;
}

static bool is_first_of_group(unsigned at) {
    for (unsigned i = 0; i < at; i++)
        if (strcmp(held[i].filter, held[at].filter) == 0) return false;
    return true;
}

static void publish_and_compare(void) {
    static struct copy got[CLIENTS][COPIES_MAX];
    unsigned count[CLIENTS], publisher = draw(CLIENTS), qos = draw(3);
    bool retain = draw(2);
    char topic[48];

    random_topic(topic, false);
    say_publish(&clients[publisher],
                &(struct publish){.topic = topic, .payload = "x", .qos = qos, .id = 1, .retain = retain});
    if (qos == 2) say_ack(&clients[publisher], 6, 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct copy wanted;
        count[i] = read_copies(&clients[i], got[i]);
        if (ordinary_copy(i, publisher, topic, qos, retain, &wanted) && !take(got[i], &count[i], &wanted))
            fail_msg("%s: client %u lacks q%u%s%s", topic, i, wanted.qos, wanted.retain ? " retain" : "",
                     wanted.identifiers);
    }
    /* What is left came through groups: one member of each. */
    for (unsigned g = 0; g < held_count; g++) {
        bool taken = false;
        if (!is_shared(&held[g]) || !is_first_of_group(g) || !matches(&held[g], topic)) continue;
        for (unsigned i = g; i < held_count && !taken; i++) {
            struct copy wanted = copy_of(&held[i], qos, retain);
            if (strcmp(held[i].filter, held[g].filter) != 0) continue;
            taken = take(got[held[i].client], &count[held[i].client], &wanted);
        }
        if (!taken) fail_msg("%s: nobody of %s got it", topic, held[g].filter);
    }
    for (unsigned i = 0; i < CLIENTS; i++)
        if (count[i] != 0)
            fail_msg("%s: client %u got q%u%s one too many", topic, i, got[i][0].qos, got[i][0].identifiers);
}

static void copies_are_those_that_a_list_of_subscriptions_says(void **state) {
    static const char *const ids[CLIENTS] = {"a", "b", "c", "d", "e"};
    (void)state;

    for (uint32_t seed = 1; seed <= 5; seed++) {
        dice = seed * 2654435761u;
        held_count = identifiers_given = 0;
        world_begin(&world);
        for (unsigned i = 0; i < CLIENTS; i++)
            client_connect(&world, &clients[i], 5, ids[i]);
        for (unsigned step = 0; step < STEPS; step++) {
            unsigned what = draw(10);
            if (what < 2 && held_count < 60)
                subscribe();
            else if (what == 2 && held_count > 0)
                unsubscribe();
            else
                publish_and_compare();
        }
        assert_int_equal(counters(&world).subscriptions, held_count);
        for (unsigned i = 0; i < CLIENTS; i++)
            client_cut(&clients[i]);
        assert_int_equal(counters(&world).subscriptions, 0);
        world_end(&world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_those_that_a_list_of_subscriptions_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
