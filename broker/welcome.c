/* What follows a CONNECT that is welcome: the session, and CONNACK. */
#include "broker/acks.h"
#include "broker/connect.h"
#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/hash.h"
#include "broker/partial.h"
#include "broker/props.h"
#include "broker/topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* record: which it waits for, 0 if none. */
static void send_connack(struct broker *broker, struct client *client, const struct mqtt_connack *connack,
                         uint64_t record) {
    uint8_t packet[MQTT_LARGE_MAX];
    size_t size = mqtt_encode_connack(packet, client->version, connack);

    if (size > client->packet_size_max && connack->reason_string != NULL) { /* MQTT-3.2.2-19 */
        struct mqtt_connack shorter = *connack;
        shorter.reason_string = NULL;
        size = mqtt_encode_connack(packet, client->version, &shorter);
    }
    if (size > client->packet_size_max)
        client_doom(broker, client, MQTT_PACKET_TOO_LARGE);
    else
        acks_send_connack(broker, client, packet, size, record);
}

void connect_refuse(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_connect *connect,
                    uint8_t version, enum mqtt_reason reason) {
    struct mqtt_connack connack = {.reason = (uint8_t)reason};

    if (!client->no_problem_information)
        connack.reason_string = client->why != NULL ? client->why : mqtt_reason_text((uint8_t)reason);

    broker->counters.connects_refused++;
    note_refused(broker, client, connect, reason);
    client->told = true;
    client->version = version;
    if (version != 0) send_connack(broker, client, &connack, 0);
    client_end(broker, now_ms, client, MQTT_SUCCESS, WILL_DROPPED);
}

/* A client id that nobody has, of letters and digits (MQTT 5.0 section 3.1.3.1). */
static size_t assign_client_id(struct broker *broker, char *out, size_t out_size) {
    int size;

    do {
        uint64_t counter = ++broker->id_counter;
        size = snprintf(out, out_size, "auto%016llx",
                        (unsigned long long)hash_bytes(broker->seed, &counter, sizeof counter));
    } while (session_find(broker, out, (size_t)size) != NULL);
    return (size_t)size;
}

/* NULL when memory is short. */
static struct message *will_new(const struct mqtt_connect *connect) {
    struct message template = {.qos = connect->will_qos,
                               .retain = connect->will_retain,
                               .topic = (const char *)connect->will_topic.bytes,
                               .topic_size = connect->will_topic.size,
                               .payload = connect->will_payload.bytes,
                               .payload_size = connect->will_payload.size,
                               .properties = connect->will_properties.bytes,
                               .properties_size = connect->will_properties.size,
                               .expires_at_ms = UINT64_MAX};
    struct message *will = message_new(&template);
    uint8_t *properties, *place;

    if (will == NULL) return NULL;
    properties = (uint8_t *)(uintptr_t)will->properties;
    will->properties_size = props_strip(properties, will->properties_size);
    place = properties + connect->will_properties.size - will->properties_size; /* where the payload begins */
    if (will->properties_size > 0) memmove(place, properties, will->properties_size);
    will->properties = place;
    return will;
}

static const char *principal_of(const struct client *client) {
    return client->origin.certificate_name != NULL ? client->origin.certificate_name : "";
}

static bool has_principal(const struct session *session, const char *principal) {
    size_t size = strlen(principal);

    return session->principal_size == size && (size == 0 || memcmp(session->principal, principal, size) == 0);
}

/* -1 when memory is short. */
static int set_principal(struct session *session, const char *principal) {
    size_t size = strlen(principal);
    char *copy = NULL;

    if (has_principal(session, principal)) return 0;
    if (size > 0 && (copy = malloc(size)) == NULL) return -1;
    if (size > 0) memcpy(copy, principal, size);
    free(session->principal);
    session->principal = copy;
    session->principal_size = (uint32_t)size;
    return 0;
}

/* What an earlier connection or session of this client id leaves: the session to resume, or NULL. */
static struct session *session_to_resume(struct broker *broker, uint64_t now_ms, const struct client *client,
                                         const struct mqtt_connect *connect) {
    const void *id = connect->client_id.bytes;
    size_t size = connect->client_id.size;
    struct session *session = session_find(broker, id, size);
    /* Nobody gets the subscriptions of a stranger. */
    bool anew = connect->clean_start || (session != NULL && !has_principal(session, principal_of(client)));

    if (session != NULL && session->client != NULL) {
        broker->counters.takeovers++;
        client_end(broker, now_ms, session->client, MQTT_SESSION_TAKEN_OVER, WILL_DUE); /* MQTT-3.1.4-3 */
        session = session_find(broker, id, size); /* it may have ended with its connection */
    } else if (session != NULL) {
        session_timeout(broker, now_ms, session); /* what is due is not undone, though no tick has come yet */
        session = session_find(broker, id, size);
    }
    if (session != NULL && anew) {
        session_end(broker, now_ms, session); /* MQTT-3.1.2-4 */
        session = NULL;
    }
    return session;
}

static uint32_t granted_expiry_s(const struct broker *broker, const struct mqtt_connect *connect) {
    uint32_t wanted = connect->session_expiry_s;

    if (connect->version < MQTT_50) wanted = connect->clean_start ? 0 : UINT32_MAX;
    return wanted < broker->limits.session_expiry_max_s ? wanted : broker->limits.session_expiry_max_s;
}

/* Topic aliases that the client may get from us. */
static uint16_t granted_aliases(const struct broker *broker, const struct mqtt_connect *connect) {
    uint32_t most = broker->limits.topic_alias_out_max;

    return most < connect->topic_alias_max ? (uint16_t)most : connect->topic_alias_max;
}

static void take_options(struct broker *broker, struct client *client, const struct mqtt_connect *connect) {
    uint16_t keep_alive_max_s = (uint16_t)broker->limits.keep_alive_max_s;

    client->version = connect->version;
    client->is_bridge = connect->is_bridge;
    client->packet_size_max = connect->packet_size_max;
    client->aliases_out_max = granted_aliases(broker, connect);
    client->no_problem_information = connect->no_problem_information;
    client->window = connect->receive_max < broker->limits.inflight_max ? connect->receive_max
                                                                        : (uint16_t)broker->limits.inflight_max;
    client->keep_alive_s = connect->keep_alive_s;
    /* A 3.1.1 client cannot be told of another keep alive than its own. */
    if (connect->version >= MQTT_50 && keep_alive_max_s != UINT16_MAX &&
        (connect->keep_alive_s == 0 || connect->keep_alive_s > keep_alive_max_s))
        client->keep_alive_s = keep_alive_max_s;
    client_set_timer(broker, client);
}

/* What the client may begin its response topics with (MQTT 5.0 section 3.2.2.3.15): a place of its own. There is none
 * for an id that cannot be part of a topic name. */
static const char *response_information(const struct mqtt_connect *connect, char out[MQTT_RESPONSE_INFORMATION_MAX]) {
    const char *id = (const char *)connect->client_id.bytes;

    if (!connect->wants_response_information || topic_has_wildcard(id, connect->client_id.size)) return NULL;
    snprintf(out, MQTT_RESPONSE_INFORMATION_MAX, "response/%.*s/", (int)connect->client_id.size, id);
    return out;
}

/* The CONNACK of success; take_options() was there before. */
static struct mqtt_connack welcome(const struct broker *broker, const struct client *client,
                                   const struct mqtt_connect *connect, const char *assigned_client_id) {
    uint32_t expiry_s = granted_expiry_s(broker, connect);

    return (struct mqtt_connack){.receive_max = (uint16_t)broker->limits.inflight_max,
                                 .topic_alias_max = (uint16_t)broker->limits.topic_alias_max,
                                 .packet_size_max = broker->limits.packet_size_max,
                                 .has_session_expiry = expiry_s != connect->session_expiry_s,
                                 .session_expiry_s = expiry_s,
                                 .has_server_keep_alive = client->keep_alive_s != connect->keep_alive_s,
                                 .server_keep_alive_s = client->keep_alive_s,
                                 .assigned_client_id = assigned_client_id};
}

/* Without a CONNACK no other packet may be sent (MQTT-3.2.0-1), so a client that cannot take it cannot be served. */
static bool takes(const struct client *client, const struct mqtt_connack *connack) {
    uint8_t packet[MQTT_LARGE_MAX];

    return mqtt_encode_connack(packet, client->version, connack) <= client->packet_size_max;
}

/* record: the last that tells of its session, and of the one before. */
static void accept(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_connect *connect,
                   const struct mqtt_connack *connack, uint64_t record) {
    client_accepted(broker, client);
    rates_resume(broker, now_ms, client);
    note_connected(broker, client, connect, connack->session_present);
    send_connack(broker, client, connack, record);
    session_pump(broker, now_ms, client->session);
}

/* While memory is short, those who come back may bring a will up to this many bytes. */
enum { WILL_WHEN_SHORT = 1024 };

static uint64_t will_size(const struct mqtt_connect *connect) {
    if (!connect->has_will) return 0;
    return (uint64_t)connect->will_topic.size + connect->will_payload.size + connect->will_properties.size;
}

/* Whether the client may have the session of this id, and what a new one must find room for. */
static enum mqtt_reason check_session(struct broker *broker, struct client *client,
                                      const struct mqtt_connect *connect) {
    const struct session *session = session_find(broker, connect->client_id.bytes, connect->client_id.size);

    if (session != NULL && session->principal_size > 0 && !has_principal(session, principal_of(client))) {
        client->why = "this client id belongs to somebody else";
        return MQTT_NOT_AUTHORIZED;
    }
    if (session != NULL && !(broker->memory_short && will_size(connect) > WILL_WHEN_SHORT)) return MQTT_SUCCESS;
    if (session == NULL && broker->counters.sessions >= broker->limits.sessions_max) {
        limit_reached(broker, BROKER_AT_SESSIONS_MAX, "CONNECT from %s refused", client->origin.address);
        client->why = "no more sessions (limits.sessions_max)";
        return MQTT_QUOTA_EXCEEDED;
    }
    if (broker->memory_short) {
        limit_reached(broker, BROKER_AT_MEMORY_BYTES_MAX, "CONNECT from %s refused", client->origin.address);
        client->why = "the broker's memory is used up (limits.memory_bytes_max)";
        return MQTT_QUOTA_EXCEEDED;
    }
    return MQTT_SUCCESS;
}

/* Gives the client its session, old or new. False when memory is short; the client is then as before. */
static bool open_session(struct broker *broker, uint64_t now_ms, struct client *client,
                         const struct mqtt_connect *connect, bool *resumed) {
    struct message *will = connect->has_will ? will_new(connect) : NULL;
    struct session *session;

    if (connect->has_will && will == NULL) return false;
    session = session_to_resume(broker, now_ms, client, connect);
    *resumed = session != NULL;
    if (session == NULL) session = session_new(broker, connect->client_id.bytes, connect->client_id.size);
    if (session == NULL) {
        message_unref(will);
        return false;
    }
    if (set_principal(session, principal_of(client)) != 0) { /* so it is new */
        message_unref(will);
        session_end(broker, now_ms, session);
        return false;
    }
    session_attach(broker, session, client);
    session_set_expiry(broker, now_ms, session, granted_expiry_s(broker, connect));
    session->will = will;
    session->will_delay_s = connect->will_delay_s;
    session->will_expiry_s = connect->will_expiry_s;
    if (will != NULL) will->publisher = session->number;
    durable_session(broker, now_ms, session);
    return true;
}

void connect_admit(struct broker *broker, uint64_t now_ms, struct client *client, struct mqtt_connect *connect,
                   struct mqtt_view auth_data) {
    char assigned[32] = "", response[MQTT_RESPONSE_INFORMATION_MAX];
    uint64_t before = broker->journal.last;
    struct mqtt_connack connack;
    enum mqtt_reason reason;

    if (connect->client_id.size == 0) {
        connect->client_id.size = (uint32_t)assign_client_id(broker, assigned, sizeof assigned);
        connect->client_id.bytes = (const uint8_t *)assigned;
        client->has_assigned_id = true;
    }
    reason = check_session(broker, client, connect);
    if (reason != MQTT_SUCCESS) {
        connect_refuse(broker, now_ms, client, connect, connect->version, reason);
        return;
    }
    take_options(broker, client, connect);
    connack = welcome(broker, client, connect, assigned[0] != '\0' ? assigned : NULL);
    connack.response_information = response_information(connect, response);
    connack.auth_method = connect->auth_method;
    connack.auth_data = auth_data;
    if (!takes(client, &connack)) {
        connect_refuse(broker, now_ms, client, connect, 0, MQTT_PACKET_TOO_LARGE);
        return;
    }
    if (!open_session(broker, now_ms, client, connect, &connack.session_present)) {
        connect_refuse(broker, now_ms, client, connect, connect->version, MQTT_SERVER_UNAVAILABLE);
        return;
    }
    accept(broker, now_ms, client, connect, &connack, journal_since(&broker->journal, before));
    if (client->exchange == NULL) return;
    partial_free(broker, client->exchange->connect); /* all views of connect end here */
    client->exchange->connect = NULL;
}
