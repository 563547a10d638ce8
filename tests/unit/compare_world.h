/* Two brokers of peers.h with retained messages of topics t/0, t/1 ... at A, which B joins, over a link that comes and
 * goes; every publication that crosses is counted, and what both hold is compared. */
#ifndef TESTS_UNIT_COMPARE_WORLD_H
#define TESTS_UNIT_COMPARE_WORLD_H

#include "broker/frames.h"
#include "broker/link.h"
#include "joined.h"

#ifndef COMPARE_TOPICS_MAX
#define COMPARE_TOPICS_MAX 25000
#endif
enum { TOPICS_MAX = COMPARE_TOPICS_MAX, OUTAGE_MS = 60000 /* beyond what joins outlive */ };

/* What crossed from A to B. */
struct crossing {
    uint64_t stream, sequence; /* of the last publication that was new */
    uint64_t publications, snapshots, bytes, frames;
    uint64_t digest_bytes; /* both ways: holds, compare, compared */
    unsigned digest_frames, compares;
    bool older; /* these frames are lost, as between brokers of which one does not know them */
    bool mute;  /* B answers nothing */
    struct {
        uint64_t wall_ms;
        uint32_t count;
        unsigned times; /* with this stamp */
    } topics[TOPICS_MAX];
    unsigned repeated; /* crossings of what had crossed, once B held it */
};
static struct crossing crossing;

static inline void count_publication(const struct publication *publication) {
    unsigned topic;
    char text[TOPIC_MAX] = {0};
    crossing.publications++;
    crossing.snapshots += publication->snapshot;
    if (!publication->retain) return;
    memcpy(text, publication->topic, publication->topic_size);
    if (sscanf(text, "t/%u", &topic) != 1 && sscanf(text, "t/%*[a-z]/%u", &topic) != 1) return;
    assert_true(topic < TOPICS_MAX);
    bool same = crossing.topics[topic].wall_ms == publication->stamp_wall_ms &&
                crossing.topics[topic].count == publication->stamp_count;
    if (same) crossing.repeated++;
    if (same && getenv("NOTES"))
        fprintf(stderr, "again: %s %s\n", text, publication->snapshot ? "in a snapshot" : "live");
    crossing.topics[topic].wall_ms = publication->stamp_wall_ms;
    crossing.topics[topic].count = publication->stamp_count;
}

static inline bool count_crossing(struct world *world, int from, int to, const uint8_t *bytes, size_t size) {
    struct frame frame;
    (void)world;
    if (from > B || to > B) return true;
    enum frame_result result = frame_read(bytes, size, &frame);
    assert_int_equal(result, FRAME_OK);
    if (frame.type >= FRAME_HOLDS && frame.type <= FRAME_COMPARED) {
        crossing.digest_bytes += size;
        crossing.digest_frames++;
        crossing.compares += frame.type == FRAME_COMPARE;
        return !crossing.older && !(crossing.mute && frame.type == FRAME_COMPARED);
    }
    if (from == B) return true;
    crossing.bytes += size;
    crossing.frames++;
    if (frame.type == FRAME_HELLO && frame.hello.stream != crossing.stream) {
        crossing.stream = frame.hello.stream;
        crossing.sequence = 0;
    }
    if (frame.type != FRAME_PUBLISH) return true;
    struct publication publication;
    for (uint64_t sequence = frame.sequence; frame_next_publication(&frame, &publication); sequence++) {
        if (sequence <= crossing.sequence) continue; /* cut off on its way, and sent again */
        crossing.sequence = sequence;
        if (!publication.skipped) count_publication(&publication);
    }
    return true;
}

static inline void nothing_crossed(void) {
    bool older = crossing.older;
    uint64_t stream = crossing.stream, sequence = crossing.sequence;
    crossing.publications = crossing.snapshots = crossing.bytes = crossing.frames = crossing.digest_bytes = 0;
    crossing.digest_frames = crossing.compares = crossing.repeated = 0;
    crossing.older = older;
    crossing.stream = stream;
    crossing.sequence = sequence;
}

struct flap {
    struct world *world;
    struct client *says, *hears;
};

static inline struct world *covered_world(int sites) {
    struct world *world = world_of(sites);
    memset(&crossing, 0, sizeof crossing);
    world->passes = count_crossing;
    for (int site = 0; site < sites; site++)
        world->sites[site].cover = "t/#";
    return world;
}

static inline void retain_at(struct flap *flap, unsigned topic, const char *payload) {
    char text[TOPIC_MAX];
    snprintf(text, sizeof text, "t/%u", topic);
    client_publish(flap->world, flap->says, text, payload, 0, true);
}

/* B subscribes to filter, and A has retained so many. */
static inline struct flap flap_with(unsigned topics, const char *filter) {
    struct flap flap = {.world = covered_world(2)};
    assert_true(world_start(flap.world));
    flap.says = client_connect(flap.world, A);
    flap.hears = client_connect(flap.world, B);
    for (unsigned i = 0; i < topics; i++)
        retain_at(&flap, i, "first");
    world_settle(flap.world);
    client_subscribe(flap.world, flap.hears, filter, 0);
    world_run(flap.world, 2000);
    return flap;
}

static inline void lose_link(struct world *world) {
    world->apart[A][B] = world->apart[B][A] = true;
    world_cut(world, A, B);
}

static inline void heal_link(struct world *world) {
    world->apart[A][B] = world->apart[B][A] = false;
    world_run(world, 15000); /* the back-off is 10 s at most */
}

static inline void outage(struct world *world) {
    lose_link(world);
    world_run(world, OUTAGE_MS);
    heal_link(world);
}

/* ---- what is held ---- */

static inline bool on_same_topic(void *context, struct message *message) {
    *(struct message **)context = message;
    return true;
}

/* At one broker, tombstones too; NULL if there is none. */
static inline struct message *held_at(struct world *world, int site, const char *topic, size_t size) {
    struct message *message = NULL;
    retained_match(broker_federation(world->sites[site].broker)->retained, world->now_ms, topic, size, true,
                   on_same_topic, &message);
    return message;
}

struct agreement {
    struct world *world;
    int other;
    const uint8_t *origin;
    size_t compared;
};

static inline bool on_held(void *context, struct message *message) {
    struct agreement *agreement = context;
    if (memcmp(message->stamp.origin, agreement->origin, sizeof message->stamp.origin) != 0) return true;
    const struct message *other = held_at(agreement->world, agreement->other, message->topic, message->topic_size);
    if (!other || stamp_compare(&other->stamp, &message->stamp) < 0)
        fail_msg("%s has nothing as new of '%.*s'", agreement->world->sites[agreement->other].name,
                 (int)message->topic_size, message->topic);
    agreement->compared++;
    return true;
}

/* B has what A's clients retained, and A as much of that as B. Returns how many that are. */
static inline size_t expect_agreement(struct world *world) {
    struct agreement agreement = {.world = world, .other = B, .origin = world->sites[A].id.bytes};
    retained_each(broker_federation(world->sites[A].broker)->retained, on_held, &agreement);
    size_t compared = agreement.compared;
    agreement.other = A;
    agreement.compared = 0;
    retained_each(broker_federation(world->sites[B].broker)->retained, on_held, &agreement);
    return compared;
}

static inline uint64_t next_random(void) {
    static uint64_t random = 0x2545f4914f6cdd1du;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
}

#endif
