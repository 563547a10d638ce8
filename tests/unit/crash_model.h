/* Random histories of clients, a store and crashes, and what must hold in each.
 *
 * The store applies takes of the journal in order, some time later; a crash loses the rest. All that is random comes
 * from the seed.
 *
 * What must hold: what was acknowledged reaches every lasting session that was subscribed; QoS 2 comes once; the order
 * of a publisher's messages is kept; sessions and subscriptions that were confirmed are there; what was refused had no
 * effect; and the journal, applied, is the broker's state.
 */
#ifndef TESTS_UNIT_CRASH_MODEL_H
#define TESTS_UNIT_CRASH_MODEL_H

#include "crash_actors.h"

/* ---- crashes ---- */

HELPER void choose_limits(struct history *history, struct broker_limits *limits) {
    limits->queue_messages_max = 1 + chance(history, 12);
    limits->queues_bytes_max = 1000 + chance(history, 20000);
    limits->subscriptions_per_client = 1 + chance(history, FILTERS);
    limits->inflight_max = 1 + chance(history, 12);
    limits->retained_messages_max = 1 + chance(history, 2);
    limits->sessions_max = ACTORS + 1;
    limits->session_expiry_max_s = 6 * 24 * 3600 + chance(history, 3600);
}

HELPER void begin_broker(struct history *history) {
    struct world *world = &history->world;

    world->options = (struct broker_options){.name = "edge-1",
                                             .epoch = ++history->crashes,
                                             .seed = 42,
                                             .durable = true,
                                             .limits.journal_bytes_max = history->journal_bytes_max};
    if (history->may_limit) choose_limits(history, &world->options.limits);
    world->broker = broker_new(&world->options, world->now);
    assert_non_null(world->broker);
    broker_set_wall_offset(world->broker, history->wall_ms);
}

/* The journal, applied, is the state; and the state, told anew, changes nothing. */
HELPER void compare_state(struct history *history) {
    struct model_store fresh;

    if (history->failing || history->none_lasts) return;
    memory(history, true);
    broker_tick(history->world.broker, history->world.now);
    write_all(history);
    fresh = model_of(history->world.broker, history->world.now);
    must(history, model_same(&history->store, &fresh), "the journal is not the state");
    model_free(&history->store);
    fresh.applied += history->store.applied;
    history->store = fresh;
    memory(history, false);
}

/* Another broker begins with what the store holds. */
HELPER void begin_again(struct history *history) {
    broker_free(history->world.broker);
    for (int who = 0; who < ACTORS; who++) {
        client_forget(&history->actors[who].client);
        history->actors[who].open = history->actors[who].welcome = false;
    }
    history->failing = false;
    begin_broker(history);
    model_restore(&history->store, history->world.broker, history->world.now);
}

HELPER void crash(struct history *history) {
    /* Of what the store had in hand some may be on the disk, though nobody was told. */
    trace(history, "crash\n");
    memory(history, true);
    commit(history, chance(history, (unsigned)history->take_count + 1));
    for (size_t i = 0; i < history->take_count; i++)
        free(history->takes[i].bytes);
    history->take_count = 0;
    wills_on_crash(history);
    history->world.now += chance(history, 2000);
    begin_again(history);
    memory(history, false);
    /* Told anew, the state has other numbers of messages, and is told to the store too. */
    if (chance(history, 2) == 0) compare_state(history);
}

/* All is written, and the wills of sessions that last are for the next start. */
HELPER void end_in_order(struct history *history) {
    if (history->failing) return;
    trace(history, "the broker ends in order\n");
    memory(history, true);
    for (int who = 0; who < ACTORS; who++)
        will_on_end_in_order(history, who);
    broker_stop(history->world.broker, history->world.now);
    write_all(history);
    history->world.now += chance(history, 2000);
    begin_again(history);
    let_pass(history, 0);
    memory(history, false);
}

/* By more than what is kept in order by the clock alone. */
HELPER void set_clock(struct history *history) {
    int hours = (int)chance(history, 11) - 5;

    trace(history, "the clock is set by %d h\n", hours);
    history->wall_ms += hours * 3600000;
    broker_set_wall_offset(history->world.broker, history->wall_ms);
}

HELPER void store_step(struct history *history) {
    if (history->may_fail && chance(history, 40) == 0) {
        history->failing = !history->failing;
        if (history->failing) {
            history->in_doubt = true;
            history->failures++;
        }
        broker_set_store_failing(history->world.broker, history->world.now, history->failing);
        trace(history, "the store %s\n", history->failing ? "fails" : "works");
    }
    take_journal(history);
    if (!history->failing) write_some(history);
}

/* ---- the whole ---- */

HELPER void history_begin(struct history *history, uint64_t seed) {
    history->seed = seed;
    history->random = seed * 0x9E3779B97F4A7C15ull + 1;
    history->world.now = 1000000000;
    history->wall_ms = (int64_t)WALL * 1000;
    begin_broker(history);
    for (int who = 0; who < ACTORS; who++) {
        struct actor *actor = &history->actors[who];
        actor->version = who % 2 == 0 ? 5 : 4;
        actor->kind = history->none_lasts ? ACTOR_CLEAN
                      : who < 3           ? ACTOR_LASTING
                      : who == 3          ? ACTOR_CLEAN
                                          : ACTOR_BRIEF;
    }
}

HELPER void wait_or_worse(struct history *history) {
    unsigned kind = history->may_will ? chance(history, 8) : 2;

    if (kind == 0)
        end_in_order(history);
    else if (kind == 1)
        set_clock(history);
    else
        let_pass(history, chance(history, 3000));
}

HELPER void history_step(struct history *history) {
    unsigned kind = chance(history, 100);

    if (kind < 75)
        act(history);
    else if (kind < 95)
        store_step(history);
    else if (kind < 98)
        wait_or_worse(history);
    else if (kind < 99 || chance(history, 2) == 0)
        crash(history);
    else
        compare_state(history);
}

/* Everybody comes back and finishes what is under way. */
HELPER void settle(struct history *history) {
    memory(history, true);
    history->failing = false;
    broker_set_store_failing(history->world.broker, history->world.now, false);
    for (int round = 0; round < 60; round++) {
        write_all(history);
        for (int who = 0; who < ACTORS; who++) {
            if (!history->actors[who].open) dial(history, who, false);
            write_all(history);
            listen_to(history, who, 10000);
        }
        let_pass(history, 10);
    }
}

HELPER void check_owed(struct history *history) {
    for (int i = 0; i < history->publication_count; i++)
        for (int who = 0; who < ACTORS && !history->loses; who++)
            if (history->publications[i].acked && history->publications[i].expected[who] &&
                !history->actors[who].got[i])
                fail_msg("seed %llu: publication %d of %d was acknowledged and did not reach %c",
                         (unsigned long long)history->seed, i, history->publications[i].publisher, 'A' + who);
}

/* Publications to each topic show what each is subscribed to. */
HELPER void check_subscriptions(struct history *history) {
    struct client probe;
    int first = history->publication_count;

    client_connect(&history->world, &probe, 5, "probe");
    for (int topic = 0; topic < 3 && history->publication_count < PUBLICATIONS_MAX; topic++) {
        char payload[16];
        history->publications[history->publication_count] = (struct publication){.publisher = 0, .topic = topic};
        snprintf(payload, sizeof payload, "p%d", history->publication_count++);
        say_publish(&probe, &(struct publish){.topic = model_topics[topic], .payload = payload});
    }
    client_cut(&probe);
    for (int who = 0; who < ACTORS; who++) {
        struct actor *actor = &history->actors[who];
        listen_to(history, who, 10000);
        for (int index = first; index < history->publication_count; index++) {
            bool held = false, unsure = false;
            for (int i = 0; i < FILTERS; i++) {
                bool matches = model_matches(i, history->publications[index].topic);
                held = held || (matches && actor->holding[i] == HELD);
                unsure = unsure || (matches && actor->holding[i] == UNSURE);
            }
            if (!actor->welcome) continue;
            must(history, !held || actor->got[index], "a subscription that was confirmed is gone");
            must(history, held || unsure || !actor->got[index], "a subscription that was ended is there");
        }
    }
}

/* The last that was acknowledged, or one that came later. */
HELPER void check_retained(struct history *history) {
    struct client probe;
    char text[512];
    const char *at;
    int acked = -1, shown = -1;
    bool fits;

    client_connect(&history->world, &probe, 5, "probe");
    say_subscribe(&probe, 1, RETAINED_TOPIC, 0);
    while (next_packet(&probe, text, sizeof text)[0] != '\0')
        if ((at = strstr(text, "'p")) != NULL) shown = (int)strtol(at + 2, NULL, 10);
    client_cut(&probe);
    for (int i = 0; i < history->publication_count; i++)
        if (history->publications[i].topic == 3 && history->publications[i].acked) acked = i;
    fits = shown >= acked;
    for (int i = acked < 0 ? 0 : acked; i < history->publication_count && shown < 0; i++)
        if (history->publications[i].topic == 3 && history->publications[i].empty) fits = true;
    must(history, fits, "the retained message is older than one that was acknowledged");
}

HELPER void history_end(struct history *history) {
    for (int who = 0; who < ACTORS; who++)
        hang_up(history, who);
    for (size_t i = 0; i < history->take_count; i++)
        free(history->takes[i].bytes);
    broker_free(history->world.broker);
    model_free(&history->store);
}

#endif
