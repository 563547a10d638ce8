#include "broker/client.h"

#include "broker/acks.h"
#include "broker/aliases_out.h"
#include "broker/connect.h"
#include "broker/engine.h"
#include "broker/partial.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Properties and payload up to this are copied into the output; what is longer is cheaper to reference. */
enum { COPY_MAX = 1024 };

struct client *client_find(const struct broker *broker, broker_handle handle) {
    uint32_t position = broker_client_place(handle);

    if (position >= broker->slot_count || broker->slots[position].generation != (uint32_t)(handle >> 32)) return NULL;
    return broker->slots[position].client;
}

/* Position of a free slot, UINT32_MAX if there is none. */
static uint32_t slot_take(struct broker *broker) {
    uint32_t position, capacity;
    struct client_slot *slots;

    if (broker->slot_free != 0) {
        position = broker->slot_free - 1;
        broker->slot_free = broker->slots[position].next_free;
        return position;
    }
    if (broker->slot_count == broker->slot_capacity) {
        capacity = broker->slot_capacity ? broker->slot_capacity * 2 : 16;
        slots = capacity < UINT32_MAX / 2 ? realloc(broker->slots, capacity * sizeof *slots) : NULL;
        if (slots == NULL) return UINT32_MAX;
        broker->slots = slots;
        broker->slot_capacity = capacity;
    }
    broker->slots[broker->slot_count] = (struct client_slot){0};
    return broker->slot_count++;
}

static void slot_release(struct broker *broker, uint32_t position) {
    struct client_slot *slot = &broker->slots[position];

    slot->client = NULL;
    slot->generation++;
    if (slot->generation == 0) return; /* every handle of this slot was given out once: it is used up */
    slot->next_free = broker->slot_free;
    broker->slot_free = position + 1;
}

static void forget_connecting(struct broker *broker, struct client *client) {
    DL_DELETE2(broker->connecting, client, connecting_prev, connecting_next);
    client->connecting_prev = client->connecting_next = NULL;
    broker->connecting_count--;
}

void client_accepted(struct broker *broker, struct client *client) {
    forget_connecting(broker, client);
    client->state = CLIENT_CONNECTED;
    broker->counters.connects_accepted++;
    broker->counters.clients_connected++;
    if (broker->counters.clients_connected > broker->counters.clients_maximum)
        broker->counters.clients_maximum = broker->counters.clients_connected;
}

/* False if there is no room for one more. */
static bool make_room(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    if (broker->client_count >= broker->limits.clients_max) {
        limit_reached(broker, BROKER_AT_CLIENTS_MAX, "connection from %s refused", origin->address);
        return false;
    }
    while (broker->connecting_count >= broker->limits.connecting_max) {
        struct client *silent = broker->connecting;
        limit_reached(broker, BROKER_AT_CONNECTING_MAX,
                      "connection from %s closed, without CONNECT for the longest time", silent->origin.address);
        silent->why = "others come, and it has been silent for the longest time";
        client_end(broker, now_ms, silent, MQTT_SUCCESS, WILL_DROPPED);
    }
    return true;
}

static uint64_t connect_due_ms(const struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    uint32_t timeout_ms = broker->limits.connect_timeout_ms;

    return origin->waited_ms < timeout_ms ? now_ms + timeout_ms - origin->waited_ms : now_ms;
}

struct client *client_new(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    const char *name = origin->certificate_name;
    size_t address_size = strlen(origin->address) + 1, name_size = name != NULL ? strlen(name) + 1 : 0;
    uint32_t position;
    struct client *client;

    if (!make_room(broker, now_ms, origin)) return NULL;
    client = calloc(1, sizeof *client + address_size + name_size);
    position = client != NULL ? slot_take(broker) : UINT32_MAX;
    if (position == UINT32_MAX) {
        free(client);
        return NULL;
    }
    client->origin = (struct broker_origin){.from_loopback = origin->from_loopback, .address = client->texts};
    memcpy(client->texts, origin->address, address_size);
    if (name != NULL) client->origin.certificate_name = memcpy(client->texts + address_size, name, name_size);
    client->heard_ms = now_ms;
    client->packet_size_max = UINT32_MAX;
    client->handle = (uint64_t)broker->slots[position].generation << 32 | (position + 1);
    broker->slots[position].client = client;
    broker->client_count++;
    broker->counters.connections_opened++;
    broker->connecting_count++;
    DL_APPEND2(broker->connecting, client, connecting_prev, connecting_next);
    timer_set(&broker->client_timers, &client->timer, connect_due_ms(broker, now_ms, origin));
    return client;
}

static void drop_aliases(struct broker *broker, struct client *client) {
    for (uint32_t i = 0; client->aliases != NULL && i < broker->limits.topic_alias_max; i++)
        free((void *)(uintptr_t)client->aliases[i].bytes);
    free(client->aliases);
    client->aliases = NULL;
    aliases_out_free(client->aliases_out);
    client->aliases_out = NULL;
}

void client_free(struct broker *broker, struct client *client) {
    if (client->state == CLIENT_NEW) forget_connecting(broker, client);
    if (client->ready) DL_DELETE(broker->ready, client);
    for (struct client **place = &broker->doomed; *place != NULL; place = &(*place)->doomed_next) {
        if (*place == client) {
            *place = client->doomed_next;
            break;
        }
    }
    timer_clear(&broker->client_timers, &client->timer);
    acks_drop(broker, client);
    drop_aliases(broker, client);
    partial_drop(broker, client);
    exchange_free(broker, client);
    output_deinit(&client->output, &broker->chunks);
    slot_release(broker, (uint32_t)client->handle - 1);
    broker->client_count--;
    free(client);
}

void client_mark_ready(struct broker *broker, struct client *client) {
    if (client->ready) return;
    client->ready = true;
    DL_APPEND(broker->ready, client);
}

void client_doom(struct broker *broker, struct client *client, enum mqtt_reason reason) {
    if (client->state == CLIENT_ENDED || client->doom != 0) return;
    client->doom = (uint8_t)reason;
    client->doomed_next = broker->doomed;
    broker->doomed = client;
}

/* While memory is short, so little that those who do not read cannot use up what is left. */
static uint64_t output_max(const struct broker *broker) {
    return broker->memory_short ? broker->limits.output_bytes_max / 16 : broker->limits.output_bytes_max;
}

bool client_output_full(const struct broker *broker, const struct client *client) {
    return client->output.bytes > output_max(broker);
}

void client_send(struct broker *broker, struct client *client, const void *packet, size_t size) {
    bool full = client->output.bytes / 2 > output_max(broker);

    if (client->muted) {
        acks_send(broker, client, ACK_FREE, packet, size, 0);
        return;
    }
    if (full && client->doom == 0) {
        limit_reached(broker, BROKER_AT_OUTPUT_BYTES_MAX,
                      "client '%.*s' at %s closed, it asks and never reads the answers", CLIENT_WHO(client));
        client->why = "answers are not read";
    }
    if (full || output_append(&client->output, &broker->chunks, packet, size) != 0) {
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    broker->counters.packets_sent++;
    client_mark_ready(broker, client);
}

static enum client_sent publication_sent(struct broker *broker, struct client *client, const struct message *message) {
    broker->counters.packets_sent++;
    broker->counters.publications_sent++;
    broker->counters.publication_bytes_sent += message->payload_size;
    client_mark_ready(broker, client);
    return CLIENT_SENT;
}

static enum client_sent send_publish(struct broker *broker, struct client *client, struct mqtt_sending *sending,
                                     struct message *message, struct mqtt_view *encoded) {
    uint32_t packet_size;
    size_t head_size = mqtt_publish_head_size(sending, &packet_size);
    uint8_t *head;

    if (packet_size == UINT32_MAX || packet_size > client->packet_size_max) return CLIENT_TOO_LARGE;
    if (packet_size - head_size > COPY_MAX) {
        head = output_append_message(&client->output, &broker->chunks, head_size, message, packet_size - head_size);
        if (head == NULL) return CLIENT_NO_MEMORY;
        mqtt_encode_publish_head(head, sending);
    } else {
        head = output_reserve(&client->output, &broker->chunks, packet_size);
        if (head == NULL) return CLIENT_NO_MEMORY;
        mqtt_encode_publish_head(head, sending);
        mqtt_encode_publish_tail(head + head_size, sending);
        output_commit(&client->output, packet_size);
        *encoded = (struct mqtt_view){.bytes = head, .size = packet_size};
    }
    return publication_sent(broker, client, message);
}

/* To a client that takes topic aliases. */
static enum client_sent send_aliased(struct broker *broker, struct client *client, struct mqtt_sending *sending,
                                     struct message *message) {
    struct mqtt_view topic = {(const uint8_t *)message->topic, message->topic_size}, unshared;
    struct alias_use use =
        aliases_out_use(&client->aliases_out, client->aliases_out_max, broker->seed, !broker->memory_short, topic);
    enum client_sent sent;

    sending->topic_alias = use.alias;
    sending->topic_is_known = use.is_known;
    sent = send_publish(broker, client, sending, message, &unshared);
    if (use.alias == 0 || use.is_known) return sent;
    if (sent == CLIENT_SENT) aliases_out_sent(client->aliases_out, &use, topic);
    if (sent != CLIENT_TOO_LARGE) return sent;
    sending->topic_alias = 0; /* it may fit without the property */
    return send_publish(broker, client, sending, message, &unshared);
}

enum client_sent client_send_publish(struct broker *broker, struct client *client, struct mqtt_sending *sending,
                                     struct message *message, struct mqtt_view *encoded) {
    /* Not at QoS 2: there are clients (MQTT.js 4.3) that look the alias up at PUBLISH and need the topic at PUBREL. */
    if (client->aliases_out_max > 0 && sending->qos < 2) return send_aliased(broker, client, sending, message);
    return send_publish(broker, client, sending, message, encoded);
}

enum client_sent client_send_encoded(struct broker *broker, struct client *client, const struct message *message,
                                     struct mqtt_view packet) {
    uint8_t *room;

    if (packet.size > client->packet_size_max) return CLIENT_TOO_LARGE;
    room = output_reserve(&client->output, &broker->chunks, packet.size);
    if (room == NULL) return CLIENT_NO_MEMORY;
    memcpy(room, packet.bytes, packet.size);
    output_commit(&client->output, packet.size);
    return publication_sent(broker, client, message);
}

static const char *words(const struct client *client, enum mqtt_reason reason) {
    return client->why != NULL ? client->why : mqtt_reason_text((uint8_t)reason);
}

/* Without memory for it the connection is closed all the same. */
static void say_why(struct broker *broker, struct client *client, enum mqtt_reason reason) {
    uint8_t packet[MQTT_SMALL_MAX];
    const char *why = client->no_problem_information ? NULL : words(client, reason);
    size_t size = mqtt_encode_disconnect(packet, reason, why);

    if (size > client->packet_size_max) size = mqtt_encode_disconnect(packet, reason, NULL); /* MQTT-3.14.2-3 */
    if (size <= client->packet_size_max &&                                                   /* MQTT-3.1.2-24 */
        output_append(&client->output, &broker->chunks, packet, size) == 0)
        broker->counters.packets_sent++;
}

void client_end(struct broker *broker, uint64_t now_ms, struct client *client, enum mqtt_reason reason,
                enum will_fate fate) {
    struct session *session = client->session;

    if (client->state == CLIENT_ENDED) return;
    note_gone(broker, client, words(client, reason), fate);
    if (client->state == CLIENT_CONNECTED) {
        broker->counters.clients_connected--;
        if (reason != MQTT_SUCCESS && client->version >= MQTT_50 && !client->muted) say_why(broker, client, reason);
    } else {
        forget_connecting(broker, client);
    }
    if (session != NULL) rates_remember(broker, now_ms, client);
    client->state = CLIENT_ENDED;
    client->session = NULL;
    timer_clear(&broker->client_timers, &client->timer);
    acks_drop(broker, client);
    drop_aliases(broker, client);
    partial_drop(broker, client);
    exchange_free(broker, client);
    held_forget_client(broker, client);
    show_forget_client(broker, client);
    client_mark_ready(broker, client);
    if (session != NULL) session_detach(broker, now_ms, session, fate);
}

void client_fault(struct broker *broker, uint64_t now_ms, struct client *client, enum mqtt_reason reason) {
    const char *why = words(client, reason);

    if (client->state == CLIENT_ENDED) return;
    client->told = true;
    broker->counters.protocol_errors++;
    broker_note_add(broker, BROKER_NOTE_INFO, "client '%.*s' at %s: connection closed, reason 0x%02X, %s",
                    CLIENT_WHO(client), reason, why != NULL ? why : "which says it all");
    client_end(broker, now_ms, client, reason, WILL_DUE);
}

void client_limit(struct broker *broker, uint64_t now_ms, struct client *client, enum broker_at limit,
                  enum mqtt_reason reason, const char *why) {
    if (client->state == CLIENT_ENDED) return;
    limit_reached(broker, limit, "client '%.*s' at %s closed", CLIENT_WHO(client));
    client->why = why;
    client_end(broker, now_ms, client, reason, WILL_DUE);
}

static uint64_t keep_alive_due_ms(const struct client *client, uint64_t now_ms) {
    uint64_t heard_ms = client->paused ? now_ms : client->heard_ms; /* who is not read cannot be heard */

    return client->keep_alive_s > 0 ? heard_ms + client->keep_alive_s * 1500u : UINT64_MAX;
}

static uint64_t exchange_due_ms(const struct client *client) {
    return client->exchange != NULL && client->exchange->deadline_ms != 0 ? client->exchange->deadline_ms : UINT64_MAX;
}

void client_set_timer(struct broker *broker, struct client *client) {
    uint64_t due_ms = keep_alive_due_ms(client, broker->now_ms), exchange_ms = exchange_due_ms(client);

    timer_set(&broker->client_timers, &client->timer, exchange_ms < due_ms ? exchange_ms : due_ms);
}

void client_timeout(struct broker *broker, uint64_t now_ms, struct client *client) {
    if (client->state == CLIENT_NEW) {
        broker->counters.client_timeouts++;
        limit_reached(broker, BROKER_AT_CONNECT_TIMEOUT_MS, "connection from %s closed, no whole CONNECT in time",
                      client->origin.address);
        client->why = "no whole CONNECT in time";
        client_end(broker, now_ms, client, MQTT_SUCCESS, WILL_DROPPED);
    } else if (exchange_due_ms(client) <= now_ms) {
        client_limit(broker, now_ms, client, BROKER_AT_CONNECT_TIMEOUT_MS, MQTT_NOT_AUTHORIZED,
                     "re-authentication has taken too long");
    } else if (keep_alive_due_ms(client, now_ms) <= now_ms) {
        broker->counters.client_timeouts++;
        client_end(broker, now_ms, client, MQTT_KEEP_ALIVE_TIMEOUT, WILL_DUE);
    } else {
        client_set_timer(broker, client);
    }
}
