/* What the random histories of crash_model.h are made of: those who act, what they have published, and a store that
 * applies takes of the journal in order, some time later.
 */
#ifndef TESTS_UNIT_CRASH_HISTORY_H
#define TESTS_UNIT_CRASH_HISTORY_H

#include "model_store.h"

enum { ACTORS = 5, FILTERS = 6, IDS = 9, PUBLICATIONS_MAX = 400, TAKES_MAX = 64, WALL = 1700000000 };

static const char *const model_topics[] = {"a", "b", "c"};
#define RETAINED_TOPIC "kept/here"
static const char *const model_filters[FILTERS] = {"a", "b", "+", "c", "a/#", "$share/g/+"};
enum { SHARED = FILTERS - 1 }; /* who gets what of it nobody can say */

static bool model_matches(int filter, int topic) {
    static const bool matches[FILTERS][3] = {{true, false, false}, {false, true, false}, {true, true, true},
                                             {false, false, true}, {true, false, false}, {true, true, true}};
    return topic < 3 && matches[filter][topic];
}

/* How long its sessions last. */
enum actor_kind { ACTOR_CLEAN, ACTOR_BRIEF, ACTOR_LASTING };

enum holding { ABSENT, UNSURE, HELD };

struct publication {
    int publisher, topic; /* topic 3 is the retained one */
    unsigned qos;
    bool empty;
    bool is_will;
    bool expires;            /* it may come, or be late */
    bool again;              /* sent more than once */
    bool in_two_sessions;    /* perhaps, though its publisher knows of one */
    bool acked;              /* or a will that was due: somebody may be waiting for it */
    bool refused;            /* or a will that was taken back: it must never come */
    bool expected[ACTORS];   /* by a session that lasts, at QoS 1 or 2 */
    bool from_first[ACTORS]; /* it was subscribed when this was sent first */
};

/* A publication of the actor that is not acknowledged; by packet id. */
struct unacked {
    int publication; /* index + 1, 0 for a free id */
    bool released;   /* PUBREC has come */
    unsigned order, connection;
};

struct actor {
    struct client client;
    enum actor_kind kind;
    int version;
    bool open, welcome;  /* has a connection; CONNACK was seen on it */
    unsigned connection; /* number of the present one */
    bool lasts;          /* it asked for a session that does */
    bool goes_on;        /* its session outlives the connection */
    bool wants_clean;    /* it forgot its session, and so asks until it hears that the broker did too */
    unsigned dialled_at; /* history.failures then */
    unsigned unheard;    /* connections since the last CONNACK, the present one included */
    bool left_briefly;   /* and then its session may have ended */
    bool confirmed;      /* a CONNACK said that its session lasts, and it has not given it up */
    struct unacked unacked[IDS];
    bool receiving[4096]; /* QoS 2 packet ids between PUBLISH and PUBREL */
    enum holding holding[FILTERS];
    unsigned granted[FILTERS];
    int request[FILTERS]; /* packet id of the last SUBSCRIBE or UNSUBSCRIBE; 0 if none is under way */
    bool request_subscribes[FILTERS];
    unsigned request_qos[FILTERS];
    unsigned requested_at[FILTERS]; /* history.failures then */
    bool got[PUBLICATIONS_MAX];     /* in this session */
    bool got_at_qos_2[PUBLICATIONS_MAX];
    int latest[ACTORS][3][3][3]; /* publication by publisher, topic, its QoS and that of the delivery */

    /* Wills are publications: index + 1, 0 for none. See crash_wills.h. */
    int will; /* of the present connection */
    bool will_is_delayed;
    bool will_is_sure; /* CONNACK has said that it is on the disk */
    int absent_will;   /* of a connection that has ended, while its delay lasts; 0 also if its due time is not sure */
    bool absent_will_is_sure;
    uint64_t absent_will_due;
    int dropped_will;    /* taken back, but a crash may not know of it */
    unsigned dropped_by; /* the connection whose CONNECT took it back; 0: a DISCONNECT did */
};

struct history {
    struct world world;
    struct model_store store;
    struct broker_journal takes[TAKES_MAX];
    size_t take_count;
    struct actor actors[ACTORS];
    struct publication publications[PUBLICATIONS_MAX];
    int publication_count;
    unsigned orders;
    int requests;
    uint64_t random, seed;
    bool may_fail; /* the store does, at times */
    uint64_t journal_bytes_max;
    bool failing;
    bool in_doubt;     /* it failed, and what was confirmed meanwhile may not be on the disk yet */
    unsigned failures; /* begun */
    bool may_will;     /* wills, orderly ends, and clocks that are set */
    bool may_limit;    /* limits are low, and others after each crash */
    int64_t wall_ms;   /* wall clock minus world.now */
    bool may_share;    /* $share, where one may get two copies, and what another did not take only later */
    bool may_retain;
    bool none_lasts;             /* all sessions end with their connections */
    bool loses;                  /* memory runs short: what is acknowledged may be dropped */
    void (*plenty)(bool plenty); /* memory runs short but when this says so; NULL: it never does */
    unsigned crashes;
    bool traced;
};

#define must(history, fact, what)                                                                                      \
    do {                                                                                                               \
        if (!(fact)) fail_msg("seed %llu: %s", (unsigned long long)(history)->seed, what);                             \
    } while (0)

/* What happens, for a look at one seed. */
HELPER __attribute__((format(printf, 2, 3))) void trace(const struct history *history, const char *format, ...) {
    va_list arguments;

    if (!history->traced) return;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

HELPER unsigned chance(struct history *history, unsigned below) {
    uint64_t x = history->random;

    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    history->random = x;
    return (unsigned)((x * 0x2545F4914F6CDD1Dull >> 33) % below);
}

HELPER void memory(const struct history *history, bool plenty) {
    if (history->plenty != NULL) history->plenty(plenty);
}

/* ---- the store ---- */

HELPER void take_journal(struct history *history) {
    if (history->take_count < TAKES_MAX &&
        broker_take_journal(history->world.broker, &history->takes[history->take_count]))
        history->take_count++;
}

/* One transaction of that many takes; returns the number of its last record. */
HELPER uint64_t commit(struct history *history, size_t count) {
    uint64_t last = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0, size; at < history->takes[i].size; at += size) {
            struct record record;
            size = record_read(history->takes[i].bytes + at, history->takes[i].size - at, &record);
            must(history, size > 0, "no record");
            model_apply(&history->store, &record);
        }
        model_check(&history->store);
        last = history->takes[i].last;
        trace(history, "on the disk: record %llu\n", (unsigned long long)last);
        free(history->takes[i].bytes);
    }
    history->take_count -= count;
    memmove(history->takes, history->takes + count, history->take_count * sizeof history->takes[0]);
    return last;
}

HELPER void write_some(struct history *history) {
    size_t count = chance(history, (unsigned)history->take_count + 1);
    uint64_t last;

    if (count > 0 && count == history->take_count) history->in_doubt = history->failing;
    last = commit(history, count);
    if (last > 0) broker_durable(history->world.broker, history->world.now, last);
}

HELPER void write_all(struct history *history) {
    for (;;) {
        uint64_t last;
        take_journal(history);
        if (!history->failing) history->in_doubt = false;
        if (history->take_count == 0) return;
        last = commit(history, history->take_count);
        broker_durable(history->world.broker, history->world.now, last);
    }
}

/* ---- what is owed ---- */

/* Who would have to get it now. Sent again, it counts for those only who were there each time. */
HELPER void note_expected(struct history *history, int index, bool again) {
    struct publication *publication = &history->publications[index];

    for (int who = 0; who < ACTORS; who++) {
        const struct actor *actor = &history->actors[who];
        bool expected = false;
        for (int i = 0; i < FILTERS; i++)
            if (actor->holding[i] == HELD && actor->granted[i] > 0 && model_matches(i, publication->topic))
                expected = true;
        if (!again) publication->from_first[who] = expected;
        /* The first time it may have been refused, and the refusal not heard. */
        if (history->may_share || (again && (history->may_fail || history->loses)))
            publication->from_first[who] = false;
        expected = expected && actor->kind == ACTOR_LASTING && actor->confirmed && !publication->expires;
        publication->expected[who] = expected && (!again || publication->expected[who]);
    }
}

HELPER void expect_no_more(struct history *history, int who) {
    for (int i = 0; i < history->publication_count; i++)
        history->publications[i].expected[who] = history->publications[i].from_first[who] = false;
}

#endif
