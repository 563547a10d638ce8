/* GET /api/v1/why?topic=TOPIC&from=BROKER&to=BROKER: would a publication on the topic, made at one broker, reach
 * clients at the other?
 *
 * {"why": {topic, from, to, arrives (null: cannot be told, as somebody did not answer), stage, broker, reason (of what
 * stops it; null if nothing does), steps: [{stage, broker, stops, text}]}}
 *
 * Both brokers are asked over their links, so the answer comes in a later turn of the loop. */
#include <jansson.h>
#include <string.h>

#include "broker/topic.h"
#include "broker/why.h"
#include "daemon/web_inside.h"

#define JSON "application/json"
#define ARGUMENT_MAX 4096u /* more fits into no request (HEADERS_MAX in web.c) */
#define ANSWER_S 10        /* the broker itself gives up earlier */

/* NUL-terminated; false if it is not there, empty, or no UTF-8. */
static bool argument(struct web_connection *connection, const char *name, char out[ARGUMENT_MAX]) {
    const size_t name_size = strlen(name);
    int size;
    for (int n = 0;
         (size = lws_hdr_copy_fragment(connection->wsi, out, (int)ARGUMENT_MAX, WSI_TOKEN_HTTP_URI_ARGS, n)) >= 0;
         n++) {
        if ((size_t)size <= name_size || memcmp(out, name, name_size) != 0) continue;
        const size_t value_size = (size_t)size - name_size;
        memmove(out, out + name_size, value_size);
        out[value_size] = '\0';
        return strlen(out) == value_size && topic_utf8_valid(out, value_size);
    }
    return false;
}

static json_t *null_or(const char *text) {
    return text != NULL ? json_string(text) : json_null();
}

static json_t *steps_json(const struct why_step *steps, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "stage", why_stage_name(steps[i].stage), "broker",
                                              steps[i].broker, "stops", steps[i].stops, "text", steps[i].text));
    return list;
}

static json_t *answer_json(const struct web_connection *connection, const struct why_step *steps, size_t count) {
    const struct why_step *last = &steps[count - 1], *stop = last->stops ? last : NULL;
    json_t *json = json_copy(connection->asked);
    if (json == NULL) return NULL;
    json_object_set_new(json, "arrives",
                        stop == NULL                 ? json_true()
                        : stop->stage >= WHY_SILENCE ? json_null()
                                                     : json_false());
    json_object_set_new(json, "stage", null_or(stop != NULL ? why_stage_name(stop->stage) : NULL));
    json_object_set_new(json, "broker", null_or(stop != NULL ? stop->broker : NULL));
    json_object_set_new(json, "reason", null_or(stop != NULL ? stop->text : NULL));
    json_object_set_new(json, "steps", steps_json(steps, count));
    return json_pack("{s:o}", "why", json);
}

int admin_why_begin(struct web_connection *connection, bool head_only) {
    char topic[ARGUMENT_MAX], from[ARGUMENT_MAX], to[ARGUMENT_MAX];
    struct server *server = connection->web->server;
    if (!argument(connection, "topic=", topic) || !argument(connection, "from=", from) ||
        !argument(connection, "to=", to))
        return admin_fail(connection, 400, "ask for /api/v1/why?topic=TOPIC&from=BROKER&to=BROKER, each in UTF-8",
                          head_only);
    admin_why_end(connection);
    connection->asked = json_pack("{s:s, s:s, s:s}", "topic", topic, "from", from, "to", to);
    connection->question =
        connection->asked == NULL ? 0 : node_why(server->node, server_now_ms(server), topic, strlen(topic), from, to);
    if (connection->question == 0) {
        admin_why_end(connection);
        return admin_fail(connection, 503, "too many questions are open; ask again in two seconds", head_only);
    }
    connection->head_only = head_only;
    lws_set_timeout(connection->wsi, PENDING_TIMEOUT_HTTP_CONTENT, ANSWER_S);
    return 0;
}

void admin_why_turn(struct web *web) {
    struct broker *broker = node_broker(web->server->node);
    uint64_t question;
    while (broker_next_why(broker, &question)) {
        struct web_connection *connection = web->connections;
        while (connection != NULL && connection->question != question)
            connection = connection->next;
        if (connection != NULL && connection->wsi != NULL)
            lws_callback_on_writable(connection->wsi);
        else
            broker_why_end(broker, question);
    }
}

int admin_why_on_writable(struct web_connection *connection) {
    size_t count;
    const struct why_step *steps =
        connection->question == 0
            ? NULL
            : broker_why_steps(node_broker(connection->web->server->node), connection->question, &count);
    if (steps == NULL) return 0;
    json_t *json = answer_json(connection, steps, count);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(json);
    admin_why_end(connection);
    if (text == NULL) return admin_fail(connection, 500, "out of memory", connection->head_only);
    text_deinit(&connection->body);
    text_add(&connection->body, "%s\n", text);
    free(text);
    return connection->body.failed ? -1 : admin_answer(connection, 200, JSON, NULL, connection->head_only);
}

void admin_why_end(struct web_connection *connection) {
    if (connection->question != 0) broker_why_end(node_broker(connection->web->server->node), connection->question);
    connection->question = 0;
    json_decref(connection->asked);
    connection->asked = NULL;
}
