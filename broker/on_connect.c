#include "broker/admission.h"
#include "broker/connect.h"
#include "broker/engine.h"

/* Ours, so that sessions have a bounded size; MQTT-3.1.3-5 asks for 23. */
enum { CLIENT_ID_SIZE_MAX = 1024 };

static void refuse_malformed(struct broker *broker, uint64_t now_ms, struct client *client,
                             const struct mqtt_connect *connect, enum mqtt_reason reason) {
    uint8_t version = 0;

    if ((connect->version & ~MQTT_BRIDGE) >= MQTT_50)
        version = MQTT_50;
    else if (reason == MQTT_UNSUPPORTED_VERSION)
        version = MQTT_311; /* 3.1 and older know this answer too; for other faults 3.1.1 has none */
    if (reason != MQTT_UNSUPPORTED_VERSION) broker->counters.protocol_errors++;
    connect_refuse(broker, now_ms, client, NULL, version, reason);
}

/* What the packet says, whoever sent it. */
static enum mqtt_reason check(struct broker *broker, struct client *client, const struct mqtt_connect *connect) {
    if (connect->client_id.size > CLIENT_ID_SIZE_MAX) return MQTT_CLIENT_ID_INVALID;
    if (connect->version < MQTT_50 && connect->client_id.size == 0 && !connect->clean_start) {
        client->why = "a session that lasts needs a client id";
        return MQTT_CLIENT_ID_INVALID; /* MQTT 3.1.1: MQTT-3.1.3-8 */
    }
    if (connect->has_will && admission_topic_denied((const char *)connect->will_topic.bytes, connect->will_topic.size))
        return MQTT_NOT_AUTHORIZED;
    if (connect->has_will && admission_topic(broker, client, (const char *)connect->will_topic.bytes,
                                             connect->will_topic.size, MQTT_TOPIC_NAME_INVALID) != MQTT_SUCCESS)
        return MQTT_TOPIC_NAME_INVALID;
    return MQTT_SUCCESS;
}

struct broker_applicant connect_applicant(const struct client *client, const struct mqtt_connect *connect) {
    return (struct broker_applicant){
        .origin = &client->origin,
        .client_id = (const char *)connect->client_id.bytes,
        .client_id_size = connect->client_id.size,
        .user_name = connect->has_user_name ? (const char *)connect->user_name.bytes : NULL,
        .user_name_size = connect->user_name.size,
        .password = connect->has_password ? connect->password.bytes : NULL,
        .password_size = connect->password.size,
    };
}

static enum mqtt_reason may_connect(const struct broker *broker, struct client *client,
                                    const struct mqtt_connect *connect) {
    const struct broker_questions *questions = &broker->questions;
    struct broker_applicant applicant = connect_applicant(client, connect);

    if (questions->may_connect == NULL) return MQTT_SUCCESS;
    return questions->may_connect(questions->context, &applicant, &client->why);
}

void on_connect(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body) {
    struct mqtt_connect connect;
    enum mqtt_reason reason;

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
    reason = check(broker, client, &connect);
    if (reason == MQTT_SUCCESS && connect.auth_method.bytes != NULL) {
        exchange_begin(broker, now_ms, client, frame, body, &connect);
        return;
    }
    if (reason == MQTT_SUCCESS) reason = may_connect(broker, client, &connect);
    if (reason == MQTT_SUCCESS)
        connect_admit(broker, now_ms, client, &connect, (struct mqtt_view){0});
    else
        connect_refuse(broker, now_ms, client, &connect, connect.version, reason);
}
