/* Those who act in the random histories of crash_model.h: what each says, and what must hold of what it hears. They
 * keep their side of the protocol by the letter: they send again what was not acknowledged when a session goes on,
 * remember QoS 2 packet ids, and forget when told that there is no session.
 */
#ifndef TESTS_UNIT_CRASH_ACTORS_H
#define TESTS_UNIT_CRASH_ACTORS_H

#include "crash_wills.h"

/* What was published on this connection stays. */
HELPER void forget_session(struct actor *actor) {
    for (int id = 0; id < IDS; id++)
        if (actor->unacked[id].connection != actor->connection) actor->unacked[id] = (struct unacked){0};
    memset(actor->receiving, 0, sizeof actor->receiving);
    memset(actor->got, 0, sizeof actor->got);
    memset(actor->got_at_qos_2, 0, sizeof actor->got_at_qos_2);
    memset(actor->latest, 0, sizeof actor->latest);
    actor->confirmed = false;
}

/* What was not read when the connection ends is lost. */
HELPER void hang_up(struct history *history, int who) {
    struct actor *actor = &history->actors[who];

    if (!actor->open) return;
    will_on_cut(history, who);
    client_cut(&actor->client);
    actor->open = actor->welcome = false;
}

HELPER void dial(struct history *history, int who, bool clean) {
    struct actor *actor = &history->actors[who];
    char id[2] = {(char)('A' + who), '\0'}, properties[64] = "", payload[16];
    struct connect connect = {.id = id, .resume = actor->kind != ACTOR_CLEAN && !clean && !actor->wants_clean};

    if (!connect.resume) actor->wants_clean = true;
    if (actor->kind == ACTOR_LASTING) strcat(properties, " 11 ff ff ff ff");
    if (actor->kind == ACTOR_BRIEF) strcat(properties, " 11 00 00 00 05");
    if (history->may_limit && chance(history, 2) == 0) strcat(properties, " 21 00 02"); /* Receive Maximum */
    connect.properties = properties;
    actor->client = (struct client){.world = &history->world, .version = actor->version};
    actor->client.handle =
        broker_client_open(history->world.broker, history->world.now,
                           &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1:4711"});
    if (actor->client.handle == 0) return; /* memory is short */
    actor->open = true;
    trace(history, "%c dials%s%s\n", 'A' + who, clean ? " clean" : "", connect.resume ? " to resume" : "");
    actor->connection++;
    actor->unheard++;
    will_on_dial(history, who, connect.resume);
    will_choose(history, who, &connect, payload);
    actor->lasts = actor->kind == ACTOR_LASTING && (actor->version == 5 || connect.resume);
    actor->dialled_at = history->failures;
    /* A session without an interval ended with its connection. */
    if (!connect.resume || !actor->goes_on) {
        forget_session(actor);
        expect_no_more(history, who);
        for (int i = 0; i < FILTERS; i++)
            actor->holding[i] = UNSURE;
    }
    /* It may have ended meanwhile, and a connection that heard nothing may have begun another. */
    for (int i = 0; i < FILTERS && actor->kind == ACTOR_BRIEF; i++)
        actor->holding[i] = UNSURE;
    actor->goes_on = actor->kind != ACTOR_CLEAN && (actor->version == 5 || connect.resume);
    memset(actor->request, 0, sizeof actor->request);
    say_connect(&actor->client, &connect);
}

HELPER void send_publication(struct history *history, int who, unsigned id, bool again) {
    struct actor *actor = &history->actors[who];
    int index = actor->unacked[id].publication - 1;
    const struct publication *publication = &history->publications[index];
    char payload[16] = "";

    note_expected(history, index, again);
    history->publications[index].again = again;
    trace(history, "%c publishes p%d topic %d q%u id %u%s\n", 'A' + who, index, publication->topic, publication->qos,
          id, again ? " again" : "");
    if (!publication->empty) snprintf(payload, sizeof payload, "p%d", index);
    say_publish(&actor->client,
                &(struct publish){.topic = publication->topic == 3 ? RETAINED_TOPIC : model_topics[publication->topic],
                                  .payload = payload,
                                  .qos = publication->qos,
                                  .id = id,
                                  .retain = publication->topic == 3,
                                  .properties = publication->expires ? "02 00 00 00 02" : NULL,
                                  .dup = again});
}

HELPER void publish(struct history *history, int who, unsigned qos) {
    struct actor *actor = &history->actors[who];
    unsigned id = 0;

    if (history->publication_count == PUBLICATIONS_MAX) return;
    for (unsigned i = IDS; --i > 0;) {
        if (actor->unacked[i].publication == 0) id = i;
        /* Before CONNACK new ones would overtake those that are to be sent again. */
        else if (!actor->welcome && actor->unacked[i].connection != actor->connection)
            return;
    }
    if (id == 0) return;
    history->publications[history->publication_count] =
        (struct publication){.publisher = who,
                             .topic = (int)chance(history, who == 0 && history->may_retain ? 4 : 3),
                             .qos = qos,
                             .expires = history->may_will && actor->version == 5 && chance(history, 4) == 0};
    /* Mixed with QoS 2, what comes again at QoS 1 may rightly be the later. */
    if (history->publications[history->publication_count].topic == 3)
        history->publications[history->publication_count].qos = qos = 1;
    if (history->publications[history->publication_count].topic == 3)
        history->publications[history->publication_count].expires = false;
    history->publications[history->publication_count].empty =
        history->publications[history->publication_count].topic == 3 && chance(history, 3) == 0;
    actor->unacked[id] = (struct unacked){
        .publication = ++history->publication_count, .order = ++history->orders, .connection = actor->connection};
    send_publication(history, who, id, false);
    if (qos == 0) actor->unacked[id].publication = 0;
}

/* MQTT-4.4.0-1: in the order they were sent first. anew: the session may be another than that in which they were. */
HELPER void send_again(struct history *history, int who, bool anew) {
    struct actor *actor = &history->actors[who];
    unsigned after = 0;

    for (;;) {
        unsigned next = 0;
        for (unsigned id = 1; id < IDS; id++)
            if (actor->unacked[id].publication != 0 && actor->unacked[id].order > after &&
                (next == 0 || actor->unacked[id].order < actor->unacked[next].order))
                next = id;
        if (next == 0 || !actor->open) return;
        after = actor->unacked[next].order;
        if (actor->unacked[next].connection == actor->connection) continue;
        actor->unacked[next].connection = actor->connection;
        if (anew) history->publications[actor->unacked[next].publication - 1].in_two_sessions = true;
        if (actor->unacked[next].released)
            say_ack(&actor->client, 6, next);
        else
            send_publication(history, who, next, true);
    }
}

HELPER void on_connack(struct history *history, int who, bool present) {
    struct actor *actor = &history->actors[who];

    actor->welcome = true;
    if (!history->in_doubt && actor->dialled_at == history->failures) actor->wants_clean = false;
    if (!present) {
        must(history, !actor->confirmed, "a session that was confirmed is gone");
        forget_session(actor);
        expect_no_more(history, who);
        for (int i = 0; i < FILTERS; i++)
            actor->holding[i] = history->in_doubt || actor->request[i] != 0 ? UNSURE : ABSENT;
    }
    /* While the store fails a CONNACK confirms nothing new. */
    if (!actor->lasts)
        actor->confirmed = false;
    else if (!history->in_doubt && actor->dialled_at == history->failures)
        actor->confirmed = true;
    will_on_connack(history, who, !history->in_doubt && actor->dialled_at == history->failures);
    send_again(history, who, present && actor->unheard > 1 && (actor->kind == ACTOR_BRIEF || actor->left_briefly));
    actor->unheard = 0;
    actor->left_briefly = false;
}

HELPER void on_granted(struct history *history, int who, int id, unsigned code, bool subscribed) {
    struct actor *actor = &history->actors[who];

    for (int i = 0; i < FILTERS; i++) {
        if (actor->request[i] != id || actor->request_subscribes[i] != subscribed) continue;
        actor->request[i] = 0;
        actor->holding[i] = !subscribed ? ABSENT : code < 3 ? HELD : UNSURE;
        if (i == SHARED || history->in_doubt || actor->requested_at[i] != history->failures) actor->holding[i] = UNSURE;
        if (subscribed && code < 3) must(history, code == actor->request_qos[i], "another QoS than asked for");
        actor->granted[i] = code;
    }
}

HELPER void on_delivery(struct history *history, int who, unsigned qos, unsigned id, bool retain, int index) {
    struct actor *actor = &history->actors[who];
    const struct publication *publication;
    int *latest;

    must(history, index >= 0 && index < history->publication_count, "a publication that nobody made");
    publication = &history->publications[index];
    latest = &actor->latest[publication->publisher][publication->topic % 3][publication->qos][qos];
    must(history, !publication->refused, "what was refused is delivered");
    must(history, qos <= publication->qos, "QoS raised");
    if (qos == 2) {
        must(history, id < sizeof actor->receiving, "a packet id out of the model");
        if (actor->receiving[id]) return; /* the repetition of one that is under way */
        actor->receiving[id] = true;
    }
    if (retain) return;
    must(history, qos < 2 || !actor->got_at_qos_2[index] || history->may_share || publication->in_two_sessions,
         "QoS 2 twice");
    actor->got_at_qos_2[index] = actor->got_at_qos_2[index] || qos == 2;
    if (actor->got[index]) return;
    actor->got[index] = true;
    if (publication->is_will) return;                       /* it was made at CONNECT */
    if (publication->expires && publication->again) return; /* the first was late, so this is the repetition */
    must(history, *latest <= index || !publication->from_first[who], "order");
    if (*latest < index) *latest = index;
}

HELPER void on_publish_packet(struct history *history, int who, const char *text) {
    struct actor *actor = &history->actors[who];
    const char *id_at = strstr(text, " id="), *quote = strrchr(text, '\'');
    unsigned qos = (unsigned)(strstr(text, " q")[2] - '0'), id = 0;
    int index = -1;

    while (quote > text && quote[-1] != '\'')
        quote--;
    if (id_at != NULL) id = (unsigned)strtoul(id_at + 4, NULL, 10);
    if (sscanf(quote, "p%d", &index) == 1) on_delivery(history, who, qos, id, strstr(text, " retain") != NULL, index);
    if (qos == 1) say_ack(&actor->client, 4, id);
    if (qos == 2) say_ack(&actor->client, 5, id);
}

/* PUBACK and PUBREC. */
HELPER void on_acknowledged(struct history *history, int who, unsigned id, unsigned reason, bool pubrec) {
    struct actor *actor = &history->actors[who];
    struct unacked *unacked = &actor->unacked[id < IDS ? id : 0];
    struct publication *publication;

    must(history, id > 0 && id < IDS && unacked->publication != 0, "an acknowledgement of nothing");
    publication = &history->publications[unacked->publication - 1];
    must(history, publication->qos == (pubrec ? 2 : 1), "the wrong acknowledgement");
    if (reason >= 0x80) {
        must(history, history->may_fail || history->loses, "refused");
        /* Sent before it may have been taken, and not acknowledged in time. */
        publication->refused = !publication->again && !history->loses;
        unacked->publication = 0;
        return;
    }
    publication->acked = true;
    if (!pubrec) {
        unacked->publication = 0;
        return;
    }
    unacked->released = true;
    say_ack(&actor->client, 6, id);
}

/* Reads and answers one packet; false if there is none. */
HELPER bool hear(struct history *history, int who) {
    struct actor *actor = &history->actors[who];
    char text[512], word[16] = "";
    unsigned id = 0, reason = 0;

    next_packet(&actor->client, text, sizeof text);
    if (text[0] == '\0') return false;
    trace(history, "%c hears %s\n", 'A' + who, text);
    sscanf(text, "%15s %u %x", word, &id, &reason);
    must(history, actor->welcome || strcmp(word, "connack") == 0, "something before CONNACK");
    if (strcmp(word, "connack") == 0) {
        unsigned present = 0, code = 0;
        sscanf(text, "connack present=%u %x", &present, &code);
        if (code == 0) on_connack(history, who, present);
    } else if (strcmp(word, "publish") == 0)
        on_publish_packet(history, who, text);
    else if (strcmp(word, "puback") == 0 || strcmp(word, "pubrec") == 0)
        on_acknowledged(history, who, id, reason, word[3] == 'r');
    else if (strcmp(word, "pubcomp") == 0)
        actor->unacked[id < IDS ? id : 0].publication = 0;
    else if (strcmp(word, "pubrel") == 0) {
        actor->receiving[id] = false;
        say_ack(&actor->client, 7, id);
    } else if (strcmp(word, "suback") == 0)
        on_granted(history, who, (int)id, reason, true);
    else if (strcmp(word, "unsuback") == 0)
        on_granted(history, who, (int)id, reason, false);
    return true;
}

HELPER void check_end(struct history *history, int who) {
    struct actor *actor = &history->actors[who];

    if (!actor->open || !broker_client_ended(history->world.broker, actor->client.handle)) return;
    hang_up(history, who);
}

HELPER void listen_to(struct history *history, int who, unsigned packets) {
    while (packets-- > 0 && history->actors[who].open && hear(history, who)) {
    }
    check_end(history, who);
}

HELPER void subscribe(struct history *history, int who, bool on) {
    struct actor *actor = &history->actors[who];
    int filter = (int)chance(history, history->may_share ? FILTERS : SHARED), id = 100 + ++history->requests;

    actor->request[filter] = id;
    actor->request_subscribes[filter] = on;
    actor->request_qos[filter] = chance(history, 3);
    actor->requested_at[filter] = history->failures;
    /* Asked for again it stays, but which QoS holds is not known. */
    actor->holding[filter] = UNSURE;
    /* What is under way may end with it: nothing more is owed for this filter. A will may come anew after a crash. */
    for (int i = 0; i < history->publication_count; i++)
        if (history->publications[i].is_will || (!on && !history->publications[i].acked))
            history->publications[i].expected[who] = false;
    trace(history, "%c %s %s q%u id %d\n", 'A' + who, on ? "subscribes to" : "leaves", model_filters[filter],
          actor->request_qos[filter], id);
    if (on)
        say_subscribe(&actor->client, (unsigned)id, model_filters[filter], actor->request_qos[filter]);
    else
        say_unsubscribe(&actor->client, (unsigned)id, model_filters[filter]);
}

/* The session may be over before it is resumed, so nothing is owed to it any more. */
HELPER void change_expiry(struct history *history, int who) {
    static const char *const packets[] = {"e0 07 00 05 11 00 00 00 00", "e0 07 00 05 11 00 00 00 01",
                                          "e0 07 00 05 11 00 00 0e 10"};
    struct actor *actor = &history->actors[who];
    unsigned which = chance(history, 3);

    trace(history, "%c disconnects, and another expiry: %u\n", 'A' + who, which);
    say_hex(&actor->client, packets[which]);
    if (!actor->goes_on) return;
    actor->confirmed = false;
    expect_no_more(history, who);
    for (int i = 0; i < FILTERS; i++)
        actor->holding[i] = UNSURE;
    actor->left_briefly = which == 1;
    if (which > 0) return;
    actor->goes_on = false;
    actor->wants_clean = true; /* it forgets its state now, and a crash may keep the broker's */
}

HELPER void leave(struct history *history, int who) {
    struct actor *actor = &history->actors[who];

    if (history->may_will && chance(history, 4) == 0) { /* with will */
        will_on_cut(history, who);
        say_hex(&actor->client, actor->version == 5 ? "e0 01 04" : "c1 00");
    } else {
        will_on_disconnect(history, who);
        if (history->may_will && actor->version == 5 && actor->goes_on && chance(history, 4) == 0)
            change_expiry(history, who);
        else
            say_disconnect(&actor->client);
    }
    check_end(history, who);
}

HELPER void act(struct history *history) {
    int who = (int)chance(history, ACTORS);
    struct actor *actor = &history->actors[who];

    if (!actor->open) {
        dial(history, who, chance(history, 12) == 0);
        return;
    }
    switch (chance(history, 16)) {
    case 0: hang_up(history, who); break;
    case 1: leave(history, who); break;
    case 2: { /* a second connection takes over; the first hears no more */
        struct client old = actor->client;
        will_on_cut(history, who);
        actor->welcome = false;
        actor->open = false;
        dial(history, who, false);
        client_forget(&old);
        break;
    }
    case 3: subscribe(history, who, true); break;
    case 4: subscribe(history, who, chance(history, 3) > 0); break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: publish(history, who, chance(history, actor->kind == ACTOR_BRIEF ? 2 : 3)); break;
    default: listen_to(history, who, 1 + chance(history, 6)); break;
    }
    check_end(history, who);
}

HELPER void let_pass(struct history *history, uint64_t ms) {
    pass(&history->world, ms);
    wills_after_a_while(history);
}

#endif
