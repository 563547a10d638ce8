/* What the broker sends to a client, and how a careful client answers. MQTT 5.0 section 4. */
#include "tests/sim/client_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t now_us(const struct sim_client *client) {
    return heap_now_us(client->heap);
}

static void violation(struct sim_client *client, const char *what) {
    client->violations++;
    trace_line(client->trace, now_us(client), client->id, "VIOLATION: %s", what);
}

/* ---- the session, there again or lost ---- */

/* The broker knows nothing of what was under way (MQTT 5.0 section 3.2.2.1.1: the client discards its state too). */
static void session_lost(struct sim_client *client) {
    for (size_t i = 0; i < client->flight_count; i++)
        client->journal->publications[client->flights[i].publication].forgotten = true;
    client->flight_count = 0;
    memset(client->received, 0, sizeof client->received);
    client->sessions++;
    for (size_t i = 0; i < client->wish_count;) {
        struct wish *wish = &client->wishes[i];
        if (wish->state == WISH_ENDING) {
            sim_client_remove_wish(client, wish);
            continue;
        }
        if (wish->state == WISH_GRANTED)
            sim_client_renew_wish(client, wish);
        else
            sim_client_send_subscribe(client, wish);
        i++;
    }
}

static void session_present(struct sim_client *client) {
    for (size_t i = 0; i < client->flight_count; i++) {
        const struct flight *flight = &client->flights[i];
        if (flight->released)
            sim_client_send_ack(client, PACKET_PUBREL, flight->packet_id);
        else
            sim_client_send_publish(client, flight, true);
    }
    for (size_t i = 0; i < client->wish_count; i++) {
        struct wish *wish = &client->wishes[i];
        if (wish->state == WISH_ENDING)
            sim_client_send_unsubscribe(client, wish);
        else if (wish->state != WISH_GRANTED)
            sim_client_send_subscribe(client, wish);
    }
}

static void on_connack(struct sim_client *client, struct packet_view *view) {
    bool present = (view_u8(view) & 1) != 0;
    uint8_t reason = view_u8(view);
    if (client->state != CLIENT_CONNECTING) {
        violation(client, "a second CONNACK");
        return;
    }
    if (reason != 0) {
        trace_line(client->trace, now_us(client), client->id, "is refused, reason 0x%02x", reason);
        return; /* the broker closes */
    }
    if (present && !client->options.persistent) violation(client, "session present after a clean start");
    client->state = CLIENT_CONNECTED;
    trace_line(client->trace, now_us(client), client->id, "is connected, session %s", present ? "present" : "new");
    if (present)
        session_present(client);
    else
        session_lost(client);
    sim_client_send_queue(client);
}

/* ---- publications to us ---- */

static void on_publish(struct sim_client *client, struct packet_view *view) {
    uint8_t qos = (view->flags >> 1) & 3;
    uint16_t topic_size = view_u16(view), packet_id = 0;
    const char *topic = (const char *)view_bytes(view, topic_size);
    if (qos > 0) packet_id = view_u16(view);
    if (client->options.version == 5) view_skip_properties(view);
    if (view->bad || qos > 2 || (qos > 0 && packet_id == 0)) {
        violation(client, "a malformed PUBLISH");
        return;
    }
    uint8_t *byte = &client->received[packet_id / 8], bit = (uint8_t)(1u << packet_id % 8);
    if (qos != 2 || (*byte & bit) == 0) {
        struct journal_receipt receipt = {.client = client->number,
                                          .at_us = now_us(client),
                                          .session = client->sessions,
                                          .qos = qos,
                                          .retain = (view->flags & 1) != 0,
                                          .dup = (view->flags & 8) != 0};
        uint64_t number = 0;
        bool good = journal_receive(client->journal, topic, topic_size, view->at, (size_t)(view->end - view->at),
                                    &receipt, &number);
        trace_line(client->trace, now_us(client), client->id, "gets %llu qos %u%s%s%s", (unsigned long long)number, qos,
                   receipt.retain ? " retained" : "", receipt.dup ? " dup" : "", good ? "" : " DAMAGED");
    }
    if (qos == 2) *byte |= bit;
    if (qos > 0) sim_client_send_ack(client, qos == 1 ? PACKET_PUBACK : PACKET_PUBREC, packet_id);
}

/* ---- acknowledgements of ours ---- */

static void on_ack(struct sim_client *client, struct packet_view *view) {
    uint16_t packet_id = view_u16(view);
    uint8_t reason = view->at < view->end ? view_u8(view) : 0;
    size_t at = 0;
    while (at < client->flight_count && client->flights[at].packet_id != packet_id)
        at++;
    if (at == client->flight_count) {
        violation(client, "an acknowledgement of nothing");
        return;
    }
    struct flight *flight = &client->flights[at];
    struct journal_publication *publication = &client->journal->publications[flight->publication];
    enum packet_type expected = publication->qos == 1 ? PACKET_PUBACK
                                : flight->released    ? PACKET_PUBCOMP
                                                      : PACKET_PUBREC;
    if (view->type != expected) {
        violation(client, "an acknowledgement out of turn");
        return;
    }
    if (view->type == PACKET_PUBREC && reason < 0x80) {
        flight->released = true;
        sim_client_send_ack(client, PACKET_PUBREL, packet_id);
        return;
    }
    if (reason < 0x80)
        publication->acked_us = now_us(client);
    else
        publication->forgotten = true;
    trace_line(client->trace, now_us(client), client->id, "has %zu acknowledged, reason 0x%02x", flight->publication,
               reason);
    client->flight_count--;
    memmove(flight, flight + 1, (client->flight_count - at) * sizeof *flight);
    sim_client_send_queue(client);
}

static void on_pubrel(struct sim_client *client, struct packet_view *view) {
    uint16_t packet_id = view_u16(view);
    client->received[packet_id / 8] &= (uint8_t) ~(1u << packet_id % 8);
    sim_client_send_ack(client, PACKET_PUBCOMP, packet_id);
}

/* ---- subscriptions ---- */

static struct wish *wish_of(struct sim_client *client, uint16_t packet_id, enum wish_state state) {
    for (size_t i = 0; i < client->wish_count; i++)
        if (client->wishes[i].packet_id == packet_id && client->wishes[i].state == state) return &client->wishes[i];
    return NULL;
}

static void on_suback(struct sim_client *client, struct packet_view *view) {
    uint16_t packet_id = view_u16(view);
    if (client->options.version == 5) view_skip_properties(view);
    uint8_t code = view_u8(view);
    struct wish *wish = wish_of(client, packet_id, WISH_ASKED);
    if (wish == NULL) { /* right if it was unsubscribed before it was granted */
        if (wish_of(client, packet_id, WISH_ENDING) == NULL && client->wish_count == 0)
            violation(client, "a SUBACK for nothing");
        return;
    }
    struct journal_subscription *entry = &client->journal->subscriptions[wish->entry];
    if (view->bad || view->at != view->end || code > entry->qos) violation(client, "a SUBACK that does not fit");
    entry->granted_us = now_us(client);
    wish->state = WISH_GRANTED;
    trace_line(client->trace, now_us(client), client->id, "is granted %s", entry->filter);
}

static void on_unsuback(struct sim_client *client, struct packet_view *view) {
    struct wish *wish = wish_of(client, view_u16(view), WISH_ENDING);
    if (wish != NULL)
        sim_client_remove_wish(client, wish);
    else
        violation(client, "an UNSUBACK for nothing");
}

static void on_packet(struct sim_client *client, struct packet_view *view) {
    switch (view->type) {
    case PACKET_CONNACK: on_connack(client, view); break;
    case PACKET_PUBLISH: on_publish(client, view); break;
    case PACKET_PUBACK:
    case PACKET_PUBREC:
    case PACKET_PUBCOMP: on_ack(client, view); break;
    case PACKET_PUBREL: on_pubrel(client, view); break;
    case PACKET_SUBACK: on_suback(client, view); break;
    case PACKET_UNSUBACK: on_unsuback(client, view); break;
    case PACKET_PINGRESP: client->ping_unanswered = false; break;
    case PACKET_DISCONNECT:
        trace_line(client->trace, now_us(client), client->id, "is sent away, reason 0x%02x",
                   view->at < view->end ? view_u8(view) : 0);
        break;
    default: violation(client, "a packet that only clients send"); break;
    }
}

void sim_client_receive(struct sim_client *client, const uint8_t *bytes, size_t size) {
    if (client->input_size + size > client->input_room) {
        client->input_room = (client->input_size + size) * 2;
        client->input = realloc(client->input, client->input_room);
        assert(client->input != NULL);
    }
    memcpy(client->input + client->input_size, bytes, size);
    client->input_size += size;
    size_t at = 0, taken = 0;
    struct packet_view view;
    uint64_t generation = client->generation;
    while ((taken = packet_next(client->input + at, client->input_size - at, &view)) != 0) {
        at += taken;
        on_packet(client, &view);
        if (client->generation != generation) return; /* it ended the connection */
    }
    client->input_size -= at;
    memmove(client->input, client->input + at, client->input_size);
}
