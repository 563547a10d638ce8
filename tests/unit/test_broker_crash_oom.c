/* The random histories of crash_model.h, and memory that runs short now and then. What is dropped for want of memory is
 * lost for its session; but QoS 2 comes once, what was confirmed is there, and the journal, applied, is the state. */
#include "broker/broker.h"
#include "oom.h"

static long rate, present_rate; /* each so many allocations within the broker fails */

static void begin(void) {
    shortage.every = present_rate;
}

static void end(void) {
    shortage.every = 0;
}

static broker_handle short_open(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    broker_handle handle;
    begin();
    handle = broker_client_open(broker, now_ms, origin);
    end();
    return handle;
}

static void short_input(struct broker *broker, uint64_t now_ms, broker_handle client, const uint8_t *bytes,
                        size_t size) {
    begin();
    broker_client_input(broker, now_ms, client, bytes, size);
    end();
}

static void short_closed(struct broker *broker, uint64_t now_ms, broker_handle client) {
    begin();
    broker_client_closed(broker, now_ms, client);
    end();
}

static bool short_next(struct broker *broker, broker_handle *client) {
    bool any;
    begin();
    any = broker_next_client(broker, client);
    end();
    return any;
}

static void short_written(struct broker *broker, uint64_t now_ms, broker_handle client, size_t size) {
    begin();
    broker_client_written(broker, now_ms, client, size);
    end();
}

static void short_tick(struct broker *broker, uint64_t now_ms) {
    begin();
    broker_tick(broker, now_ms);
    end();
}

static bool short_take(struct broker *broker, struct broker_journal *journal) {
    bool any;
    begin();
    any = broker_take_journal(broker, journal);
    end();
    return any;
}

static void short_durable(struct broker *broker, uint64_t now_ms, uint64_t number) {
    begin();
    broker_durable(broker, now_ms, number);
    end();
}

#define broker_client_open short_open
#define broker_client_input short_input
#define broker_client_closed short_closed
#define broker_next_client short_next
#define broker_client_written short_written
#define broker_tick short_tick
#define broker_take_journal short_take
#define broker_durable short_durable
#include "crash_model.h"

static struct history history;

static void plenty(bool yes) {
    present_rate = yes ? 0 : rate;
}

static void run(uint64_t seed, unsigned steps) {
    memset(&history, 0, sizeof history);
    history.loses = history.may_fail = history.may_will = true;
    history.plenty = plenty;
    history.traced = getenv("HOBNOB_TRACE") != NULL;
    shortage.allocations = 0;
    rate = (long)(3 + seed % 61);
    plenty(true);
    history_begin(&history, seed);
    plenty(false);
    while (steps-- > 0)
        history_step(&history);
    settle(&history);
    check_owed(&history);
    check_subscriptions(&history);
    compare_state(&history);
    history_end(&history);
}

static void a_shortage_repeats_nothing_and_forgets_nothing(void **state) {
    const char *one = getenv("HOBNOB_SEED"), *many = getenv("HOBNOB_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : 400;
    (void)state;

    for (uint64_t seed = first; seed < first + count; seed++)
        run(seed, 300);
}

static bool has_all_kinds(const struct model_store *store) {
    bool has[RECORD_TYPE_MAX + 1] = {false};

    for (size_t i = 0; i < store->count; i++)
        has[store->rows[i].record.type] = true;
    return has[RECORD_SESSION] && has[RECORD_SUBSCRIPTION] && has[RECORD_MESSAGE] && has[RECORD_QUEUED] &&
           has[RECORD_RECEIVED] && has[RECORD_RETAINED];
}

static void what_the_store_holds_is_restored_wholly_or_refused(void **state) {
    (void)state;

    plenty(true);
    for (uint64_t seed = 1;; seed++) { /* one that leaves something of each kind */
        memset(&history, 0, sizeof history);
        history.may_retain = true;
        history_begin(&history, seed);
        for (unsigned steps = 0; steps < 200; steps++)
            history_step(&history);
        write_all(&history);
        if (has_all_kinds(&history.store)) break;
        history_end(&history);
    }
    for (long n = 1;; n++) { /* the first is the test's own */
        struct broker *broker = broker_new(&history.world.options, history.world.now);
        struct model_store store = {0};
        bool whole;
        assert_non_null(broker);
        broker_set_wall_offset(broker, (int64_t)WALL * 1000);
        shortage_after(n);
        whole = model_tell(&history.store, broker, history.world.now);
        shortage_over();
        if (whole && !shortage.failed) {
            store = model_of(broker, history.world.now);
            assert_int_equal(store.count, history.store.count);
            model_free(&store);
        }
        assert_true(whole || shortage.failed);
        broker_free(broker);
        if (!shortage.failed) break;
    }
    history_end(&history);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shortage_repeats_nothing_and_forgets_nothing),
        cmocka_unit_test(what_the_store_holds_is_restored_wholly_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
