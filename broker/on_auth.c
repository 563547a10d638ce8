/* Enhanced authentication: at CONNECT, and again while the client is connected (MQTT 5.0 section 4.12). */
#include "broker/connect.h"
#include "broker/engine.h"
#include "broker/partial.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct mqtt_view method_of(const struct exchange *exchange) {
    return (struct mqtt_view){.bytes = exchange->method, .size = exchange->method_size};
}

bool exchange_is_open(const struct client *client) {
    return client->exchange != NULL && client->exchange->connect != NULL;
}

void exchange_free(struct broker *broker, struct client *client) {
    if (client->exchange == NULL) return;
    partial_free(broker, client->exchange->connect);
    free(client->exchange);
    client->exchange = NULL;
}

/* Asks the method what it makes of the client's data; its answer goes to step. */
static enum mqtt_reason ask(struct broker *broker, const struct client *client,
                            const struct broker_applicant *applicant, struct mqtt_view data, bool again,
                            struct broker_auth_step *step) {
    struct exchange *exchange = client->exchange;

    *step = (struct broker_auth_step){.method = (const char *)exchange->method,
                                      .method_size = exchange->method_size,
                                      .data = data.size > 0 ? data.bytes : NULL,
                                      .data_size = data.size,
                                      .again = again,
                                      .state = exchange->state};
    broker->questions.authenticate(broker->questions.context, applicant, step);
    assert(step->reason == MQTT_SUCCESS || step->reason == MQTT_CONTINUE_AUTHENTICATION || step->reason >= 0x80);
    assert(step->answer_size <= sizeof step->answer);
    exchange->state = step->state;
    return step->reason;
}

/* False if it is larger than the client takes. */
static bool send_auth(struct broker *broker, struct client *client, const struct broker_auth_step *step) {
    uint8_t packet[MQTT_LARGE_MAX];
    struct mqtt_view answer = {.bytes = step->answer, .size = (uint32_t)step->answer_size};
    size_t size = mqtt_encode_auth(packet, step->reason, method_of(client->exchange), answer);

    if (size > client->packet_size_max) return false; /* MQTT-3.1.2-24 */
    client_send(broker, client, packet, size);
    return true;
}

/* ---- at CONNECT ---- */

static void connect_step(struct broker *broker, uint64_t now_ms, struct client *client, struct mqtt_connect *connect,
                         struct mqtt_view data) {
    struct broker_applicant applicant = connect_applicant(client, connect);
    struct broker_auth_step step;
    enum mqtt_reason reason = ask(broker, client, &applicant, data, false, &step);

    if (reason == MQTT_SUCCESS) {
        struct mqtt_view answer = {.bytes = step.answer, .size = (uint32_t)step.answer_size};
        connect_admit(broker, now_ms, client, connect, answer);
        return;
    }
    if (reason == MQTT_CONTINUE_AUTHENTICATION) {
        if (send_auth(broker, client, &step)) return;
        reason = MQTT_PACKET_TOO_LARGE;
    }
    connect_refuse(broker, now_ms, client, connect, MQTT_50, reason);
}

/* NULL when memory is short. */
static struct exchange *exchange_new(struct mqtt_view method) {
    struct exchange *exchange = calloc(1, sizeof *exchange + method.size);

    if (exchange == NULL) return NULL;
    exchange->method_size = method.size;
    memcpy(exchange->method, method.bytes, method.size);
    return exchange;
}

void exchange_begin(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                    struct mqtt_view body, struct mqtt_connect *connect) {
    if (broker->questions.authenticate == NULL || connect->auth_method.size == 0 ||
        connect->auth_method.size > MQTT_AUTH_METHOD_MAX) {
        connect_refuse(broker, now_ms, client, connect, MQTT_50, MQTT_BAD_AUTH_METHOD); /* MQTT-4.12.0-1 */
        return;
    }
    client->version = MQTT_50;
    client->exchange = exchange_new(connect->auth_method);
    if (client->exchange != NULL) client->exchange->connect = partial_keep(broker, client, body.bytes, body.size);
    if (client->exchange == NULL || client->exchange->connect == NULL) {
        connect_refuse(broker, now_ms, client, connect, MQTT_50, MQTT_SERVER_UNAVAILABLE);
        return;
    }
    client->exchange->frame = *frame;
    partials_reduce(broker);
    if (client->doom == 0) connect_step(broker, now_ms, client, connect, connect->auth_data);
}

/* The client's answer, before it has got its CONNACK. */
static void go_on(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_auth *auth) {
    struct exchange *exchange = client->exchange;
    struct mqtt_view body = {.bytes = exchange->connect->bytes, .size = exchange->connect->size};
    struct mqtt_connect connect;

    if (auth->reason != MQTT_CONTINUE_AUTHENTICATION) {
        connect_refuse(broker, now_ms, client, NULL, MQTT_50, MQTT_PROTOCOL_ERROR); /* MQTT-4.12.0-3 */
        return;
    }
    mqtt_decode_connect(&exchange->frame, body, &connect); /* as good as the first time */
    connect_step(broker, now_ms, client, &connect, auth->data);
}

/* ---- while it is connected ---- */

static void fail(struct broker *broker, uint64_t now_ms, struct client *client, enum mqtt_reason reason) {
    broker->counters.reauthentications_refused++;
    client->why = "re-authentication has failed";
    client_end(broker, now_ms, client, reason, WILL_DUE);
}

static void again(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_auth *auth) {
    struct exchange *exchange = client->exchange;
    struct broker_applicant applicant = {.origin = &client->origin,
                                         .client_id = client->session->client_id,
                                         .client_id_size = client->session->client_id_size};
    struct broker_auth_step step;
    enum mqtt_reason reason;

    if ((auth->reason == MQTT_RE_AUTHENTICATE) != (exchange->deadline_ms == 0)) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR);
        return;
    }
    if (auth->reason == MQTT_RE_AUTHENTICATE) {
        exchange->state = 0;
        exchange->deadline_ms = now_ms + broker->limits.connect_timeout_ms;
    }
    reason = ask(broker, client, &applicant, auth->data, true, &step);
    if (reason == MQTT_SUCCESS) exchange->deadline_ms = 0;
    if (reason >= 0x80)
        fail(broker, now_ms, client, reason);
    else if (!send_auth(broker, client, &step))
        fail(broker, now_ms, client, MQTT_PACKET_TOO_LARGE);
    else
        client_set_timer(broker, client);
}

static bool is_of(const struct exchange *exchange, struct mqtt_view method) {
    return method.size == exchange->method_size && memcmp(method.bytes, exchange->method, method.size) == 0;
}

void on_auth(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
             struct mqtt_view body) {
    struct mqtt_auth auth;
    enum mqtt_reason reason = client->version < MQTT_50 ? MQTT_MALFORMED : mqtt_decode_auth(frame, body, &auth);

    /* No method was agreed on (MQTT-4.12.0-6), or it is another one (MQTT-4.12.0-5). */
    if (reason == MQTT_SUCCESS && client->exchange == NULL) reason = MQTT_PROTOCOL_ERROR;
    if (reason == MQTT_SUCCESS && !is_of(client->exchange, auth.method)) reason = MQTT_BAD_AUTH_METHOD;
    if (reason != MQTT_SUCCESS) {
        if (exchange_is_open(client))
            connect_refuse(broker, now_ms, client, NULL, MQTT_50, reason);
        else
            client_fault(broker, now_ms, client, reason);
        return;
    }
    if (exchange_is_open(client))
        go_on(broker, now_ms, client, &auth);
    else
        again(broker, now_ms, client, &auth);
}
