#include "broker/client.h"

#include "broker/acks.h"
#include "broker/admission.h"
#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/hash.h"
#include "broker/props.h"
#include "broker/topic.h"

#include <stdio.h>

/* Ours, so that sessions have a bounded size; MQTT-3.1.3-5 asks for 23. */
enum { CLIENT_ID_SIZE_MAX = 1024 };

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

/* Refuses the connection. version is that in which the client understands the answer, 0 if there is none. */
static void refuse(struct broker *broker, uint64_t now_ms, struct client *client, uint8_t version,
                   enum mqtt_reason reason) {
    struct mqtt_connack connack = {.reason = (uint8_t)reason};

    if (!client->no_problem_information)
        connack.reason_string = client->why != NULL ? client->why : mqtt_reason_text((uint8_t)reason);

    broker->counters.connects_refused++;
    client->version = version;
    if (version != 0) send_connack(broker, client, &connack, 0);
    client_end(broker, now_ms, client, MQTT_SUCCESS, WILL_DROPPED);
}

static void refuse_malformed(struct broker *broker, uint64_t now_ms, struct client *client,
                             const struct mqtt_connect *connect, enum mqtt_reason reason) {
    uint8_t version = 0;

    /* Bridges of Mosquitto set the highest bit, and on the answer of the level below it they try again without. */
    if ((connect->version & 0x7F) >= MQTT_50)
        version = MQTT_50;
    else if (reason == MQTT_UNSUPPORTED_VERSION)
        version = MQTT_311; /* 3.1 and older know this answer too; for other faults 3.1.1 has none */
    if (reason != MQTT_UNSUPPORTED_VERSION) broker->counters.protocol_errors++;
    broker_note_add(broker, BROKER_NOTE_INFO, "CONNECT from %s refused (reason 0x%02X, protocol level %u)",
                    client->origin.address, reason, (unsigned)connect->version);
    refuse(broker, now_ms, client, version, reason);
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

static enum mqtt_reason check(struct broker *broker, const struct client *client, const struct mqtt_connect *connect) {
    const struct broker_questions *questions = &broker->questions;
    struct broker_applicant applicant;

    if (connect->auth_method.bytes != NULL) return MQTT_BAD_AUTH_METHOD;
    if (connect->client_id.size > CLIENT_ID_SIZE_MAX) return MQTT_CLIENT_ID_INVALID;
    if (connect->version < MQTT_50 && connect->client_id.size == 0 && !connect->clean_start)
        return MQTT_CLIENT_ID_INVALID; /* MQTT 3.1.1: MQTT-3.1.3-8 */
    if (connect->has_will && admission_topic_denied((const char *)connect->will_topic.bytes, connect->will_topic.size))
        return MQTT_NOT_AUTHORIZED;
    if (connect->has_will && admission_topic(broker, client, (const char *)connect->will_topic.bytes,
                                             connect->will_topic.size, MQTT_TOPIC_NAME_INVALID) != MQTT_SUCCESS)
        return MQTT_TOPIC_NAME_INVALID;
    if (questions->may_connect == NULL) return MQTT_SUCCESS;
    applicant = (struct broker_applicant){
        .origin = &client->origin,
        .client_id = (const char *)connect->client_id.bytes,
        .client_id_size = connect->client_id.size,
        .user_name = connect->has_user_name ? (const char *)connect->user_name.bytes : NULL,
        .user_name_size = connect->user_name.size,
        .password = connect->has_password ? connect->password.bytes : NULL,
        .password_size = connect->password.size,
    };
    return questions->may_connect(questions->context, &applicant);
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

    if (will != NULL)
        will->properties_size = props_strip((uint8_t *)(uintptr_t)will->properties, will->properties_size);
    return will;
}

/* What an earlier connection or session of this client id leaves: the session to resume, or NULL. */
static struct session *session_to_resume(struct broker *broker, uint64_t now_ms, const void *id, size_t size,
                                         bool clean_start) {
    struct session *session = session_find(broker, id, size);

    if (session != NULL && session->client != NULL) {
        broker->counters.takeovers++;
        client_end(broker, now_ms, session->client, MQTT_SESSION_TAKEN_OVER, WILL_DUE); /* MQTT-3.1.4-3 */
        session = session_find(broker, id, size); /* it may have ended with its connection */
    }
    if (session != NULL && clean_start) {
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

static void take_options(struct broker *broker, uint64_t now_ms, struct client *client,
                         const struct mqtt_connect *connect) {
    uint16_t keep_alive_max_s = (uint16_t)broker->limits.keep_alive_max_s;

    client->version = connect->version;
    client->packet_size_max = connect->packet_size_max;
    client->no_problem_information = connect->no_problem_information;
    client->window = connect->receive_max < broker->limits.inflight_max ? connect->receive_max
                                                                        : (uint16_t)broker->limits.inflight_max;
    client->keep_alive_s = connect->keep_alive_s;
    /* A 3.1.1 client cannot be told of another keep alive than its own. */
    if (connect->version >= MQTT_50 && keep_alive_max_s != UINT16_MAX &&
        (connect->keep_alive_s == 0 || connect->keep_alive_s > keep_alive_max_s))
        client->keep_alive_s = keep_alive_max_s;
    if (client->keep_alive_s == 0)
        timer_clear(&broker->client_timers, &client->timer);
    else
        timer_set(&broker->client_timers, &client->timer, now_ms + client->keep_alive_s * 1500u);
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
static void accept(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_connack *connack,
                   uint64_t record) {
    client_accepted(broker, client);
    send_connack(broker, client, connack, record);
    session_pump(broker, now_ms, client->session);
}

/* What a new session must find room for; one that is there goes on. */
static enum mqtt_reason check_room(struct broker *broker, struct client *client, const struct mqtt_connect *connect) {
    if (session_find(broker, connect->client_id.bytes, connect->client_id.size) != NULL) return MQTT_SUCCESS;
    if (broker->counters.sessions >= broker->limits.sessions_max) {
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

/* Whether this CONNECT is welcome; gives it a client id if it has none, in assigned. */
static enum mqtt_reason judge(struct broker *broker, struct client *client, struct mqtt_connect *connect,
                              char *assigned, size_t assigned_size) {
    enum mqtt_reason reason = check(broker, client, connect);

    if (reason != MQTT_SUCCESS) return reason;
    if (connect->client_id.size == 0) {
        connect->client_id.size = (uint32_t)assign_client_id(broker, assigned, assigned_size);
        connect->client_id.bytes = (const uint8_t *)assigned;
    }
    return check_room(broker, client, connect);
}

/* Gives the client its session, old or new. False when memory is short; the client is then as before. */
static bool open_session(struct broker *broker, uint64_t now_ms, struct client *client,
                         const struct mqtt_connect *connect, bool *resumed) {
    struct message *will = connect->has_will ? will_new(connect) : NULL;
    struct session *session;

    if (connect->has_will && will == NULL) return false;
    session =
        session_to_resume(broker, now_ms, connect->client_id.bytes, connect->client_id.size, connect->clean_start);
    *resumed = session != NULL;
    if (session == NULL) session = session_new(broker, connect->client_id.bytes, connect->client_id.size);
    if (session == NULL) {
        message_unref(will);
        return false;
    }
    session_attach(broker, session, client);
    session->expiry_s = granted_expiry_s(broker, connect);
    session->will = will;
    session->will_delay_s = connect->will_delay_s;
    session->will_expiry_s = connect->will_expiry_s;
    if (will != NULL) will->publisher = session->number;
    durable_session(broker, now_ms, session);
    return true;
}

void on_connect(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body) {
    struct mqtt_connect connect;
    enum mqtt_reason reason;
    char assigned[32] = "", response[MQTT_RESPONSE_INFORMATION_MAX];
    struct mqtt_connack connack;
    uint64_t before = broker->journal.last;

    if (client->state != CLIENT_NEW) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR); /* MQTT-3.1.0-2 */
        return;
    }
    reason = mqtt_decode_connect(frame, body, &connect);
    if (reason != MQTT_SUCCESS) {
        refuse_malformed(broker, now_ms, client, &connect, reason);
        return;
    }
    client->packet_size_max = connect.packet_size_max;
    client->no_problem_information = connect.no_problem_information;
    reason = judge(broker, client, &connect, assigned, sizeof assigned);
    if (reason != MQTT_SUCCESS) {
        refuse(broker, now_ms, client, connect.version, reason);
        return;
    }
    take_options(broker, now_ms, client, &connect);
    connack = welcome(broker, client, &connect, assigned[0] != '\0' ? assigned : NULL);
    connack.response_information = response_information(&connect, response);
    if (!takes(client, &connack)) {
        refuse(broker, now_ms, client, 0, MQTT_PACKET_TOO_LARGE);
        return;
    }
    if (!open_session(broker, now_ms, client, &connect, &connack.session_present)) {
        refuse(broker, now_ms, client, connect.version, MQTT_SERVER_UNAVAILABLE);
        return;
    }
    accept(broker, now_ms, client, &connack, journal_since(&broker->journal, before));
}
