/* Wills in the random histories of crash_model.h.
 *
 * A will that is due is owed like a publication that was acknowledged: where the connection of a lasting session ended
 * without DISCONNECT, and its CONNACK had said that the will is on the disk. One that was taken back in time, by
 * DISCONNECT or by coming back within its delay, must never come, unless the broker died before that was on the disk.
 * Of all others nothing is known.
 */
#ifndef TESTS_UNIT_CRASH_WILLS_H
#define TESTS_UNIT_CRASH_WILLS_H

#include "crash_history.h"

#define WILL_DELAY_MS 2000u
#define WILL_DELAY "18 00 00 00 02"

/* Half of all CONNECTs have one. payload: room for it. */
HELPER void will_choose(struct history *history, int who, struct connect *connect, char payload[16]) {
    struct actor *actor = &history->actors[who];
    struct publication *will = &history->publications[history->publication_count];

    actor->will = 0;
    actor->will_is_sure = false;
    if (!history->may_will || history->publication_count == PUBLICATIONS_MAX || chance(history, 2) == 0) return;
    *will = (struct publication){
        .publisher = who, .is_will = true, .topic = (int)chance(history, 3), .qos = chance(history, 3)};
    snprintf(payload, 16, "p%d", history->publication_count);
    actor->will = ++history->publication_count;
    actor->will_is_delayed = actor->version == 5 && chance(history, 2) == 0;
    connect->will_topic = model_topics[will->topic];
    connect->will_payload = payload;
    connect->will_qos = will->qos;
    connect->will_properties = actor->will_is_delayed ? WILL_DELAY : NULL;
    trace(history, "%c has will %s topic %d q%u%s\n", 'A' + who, payload, will->topic, will->qos,
          actor->will_is_delayed ? " delayed" : "");
}

HELPER void will_is_owed(struct history *history, int will) {
    struct publication *publication = &history->publications[will - 1];

    if (publication->qos == 0) return;
    note_expected(history, will - 1, false);
    publication->acked = true;
    trace(history, "will p%d is due\n", will - 1);
}

/* The connection is about to end without DISCONNECT; if the broker has ended it before, nobody knows when. */
HELPER void will_on_cut(struct history *history, int who) {
    struct actor *actor = &history->actors[who];
    bool sure = actor->will_is_sure && !broker_client_ended(history->world.broker, actor->client.handle);

    if (actor->will != 0 && !actor->will_is_delayed && sure) will_is_owed(history, actor->will);
    if (actor->will != 0 && actor->will_is_delayed) {
        actor->absent_will = actor->will;
        actor->absent_will_is_sure = sure;
        actor->absent_will_due = history->world.now + WILL_DELAY_MS;
    }
    actor->will = 0;
}

/* About to say DISCONNECT. */
HELPER void will_on_disconnect(struct history *history, int who) {
    struct actor *actor = &history->actors[who];

    if (actor->will != 0 && !broker_client_ended(history->world.broker, actor->client.handle)) {
        actor->dropped_will = actor->will;
        actor->dropped_by = 0;
    }
    actor->will = 0;
}

/* About to say CONNECT, to resume or not, for the connection of this number. */
HELPER void will_on_dial(struct history *history, int who, bool resumes) {
    struct actor *actor = &history->actors[who];

    if (actor->dropped_by != 0) actor->dropped_will = 0; /* that CONNECT may have been refused */
    if (actor->absent_will != 0 && actor->absent_will_is_sure && resumes && actor->goes_on &&
        actor->kind != ACTOR_CLEAN) {
        actor->dropped_will = actor->absent_will;
        actor->dropped_by = actor->connection;
    }
    actor->absent_will = 0;
}

HELPER void will_on_connack(struct history *history, int who, bool on_disk) {
    struct actor *actor = &history->actors[who];

    actor->will_is_sure = on_disk && actor->kind == ACTOR_LASTING && actor->lasts;
    if (on_disk && actor->dropped_will != 0 && (actor->dropped_by == 0 || actor->dropped_by == actor->connection)) {
        history->publications[actor->dropped_will - 1].refused = true;
        trace(history, "will p%d was taken back\n", actor->dropped_will - 1);
    }
    actor->dropped_will = 0;
}

/* Time has passed, and all deadlines on the way were kept. */
HELPER void wills_after_a_while(struct history *history) {
    for (int who = 0; who < ACTORS; who++) {
        struct actor *actor = &history->actors[who];
        if (actor->absent_will == 0 || history->world.now < actor->absent_will_due) continue;
        if (actor->absent_will_is_sure) will_is_owed(history, actor->absent_will);
        actor->absent_will = 0;
    }
}

/* The broker is about to end in order: what is due then is so at the next start. */
HELPER void will_on_end_in_order(struct history *history, int who) {
    struct actor *actor = &history->actors[who];

    if (actor->will != 0) {
        actor->absent_will = actor->will;
        actor->absent_will_is_sure =
            actor->will_is_sure && !broker_client_ended(history->world.broker, actor->client.handle);
        actor->absent_will_due = history->world.now + (actor->will_is_delayed ? WILL_DELAY_MS : 0);
    }
    actor->will = 0;
}

/* The broker has died. */
HELPER void wills_on_crash(struct history *history) {
    for (int who = 0; who < ACTORS; who++) {
        struct actor *actor = &history->actors[who];
        actor->will = actor->absent_will = actor->dropped_will = 0;
    }
}

#endif
