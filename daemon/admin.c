#include "daemon/admin.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/metrics.h"
#include "daemon/storing.h"
#include "daemon/trouble.h"
#include "daemon/web_inside.h"

#define TEXT "text/plain; charset=utf-8"
#define JSON "application/json"
#define API "/api/v1/"
#define RESPONSE_S 20    /* for each piece of a response */
#define TROUBLED_MAX 64u /* members named in /metrics */

static const char front_page[] = "Hobnob, a federated MQTT broker\n"
                                 "\n"
                                 "/healthz          is it running\n"
                                 "/readyz           does it serve\n"
                                 "/metrics          counters for Prometheus\n"
                                 "/api/v1/status    this broker, in short\n"
                                 "/api/v1/members   the brokers of the federation\n"
                                 "/api/v1/registry  who publishes and subscribes to what\n"
                                 "/api/v1/links     links to other brokers\n"
                                 "/api/v1/why?topic=TOPIC&from=BROKER&to=BROKER\n"
                                 "                  what keeps a publication from getting from one to the other\n"
                                 "\n"
                                 "The same as tables: hobnob status, members, registry, links, why\n"
                                 "POST /api/v1/ring: a signed gossip key ring (hobnob key push)\n";

/* The links are listed into one array; NULL when memory is short. */
static struct link_info *list_links(const struct broker *broker, size_t *count) {
    struct link_info info;
    size_t links = 0;
    while (broker_link_at(broker, links, &info))
        links++;
    struct link_info *list = calloc(links + 1, sizeof *list);
    if (list == NULL) return NULL;
    for (*count = 0; *count < links && broker_link_at(broker, *count, &list[*count]);)
        (*count)++;
    return list;
}

static void write_metrics(const struct server *server, struct text *body) {
    const struct broker *broker = node_broker(server->node);
    struct gossip_counters gossip;
    struct store_state store;
    struct troubled troubled[TROUBLED_MAX];
    char reason[SERVER_REASON_MAX];
    struct metrics metrics = {.version = HOBNOB_VERSION,
                              .name = server->config->name,
                              .uptime_ms = server_now_ms(server) - server->started_ms,
                              .ready = server_serves(server, reason),
                              .log_suppressed = log_suppressed(server->log),
                              .turns = server->turns.counters,
                              .token_ends_s = server->identity->token_ends_s};
    int64_t from_s;
    if (server->certificates != NULL)
        tls_certificates_dates(server->certificates, &from_s, &metrics.certificate_ends_s);
    struct link_info *links = list_links(broker, &metrics.link_count);
    if (links == NULL) {
        body->failed = true;
        return;
    }
    metrics.links = links;
    if (server->memory != NULL) metrics.memory = memory_read(server->memory);
    broker_read_counters(broker, &metrics.broker);
    broker_read_peering_counters(broker, &metrics.peering);
    if (server->clients != NULL) clients_read_counters(server->clients, &metrics.clients);
    if (server->web != NULL) web_read_counters(server->web, &metrics.web);
    if (node_gossip(server->node) != NULL) {
        gossip_read_counters(node_gossip(server->node), &gossip);
        gossip.members_in_trouble = trouble_count(server, gossip.members_in_trouble);
        metrics.gossip = &gossip;
        metrics.troubled = troubled;
        metrics.troubled_count = trouble_list(server, troubled, TROUBLED_MAX);
    }
    if (storing_read_state(server->storing, &store)) metrics.store = &store;
    metrics_write(&metrics, body);
    free(links);
}

static bool is(const char *path, size_t size, const char *other) {
    return size == strlen(other) && memcmp(path, other, size) == 0;
}

static enum admin_status respond(const struct server *server, const char *path, size_t size, struct text *body,
                                 const char **type) {
    const size_t api_size = strlen(API);
    *type = TEXT;
    if (is(path, size, "/")) {
        text_add(body, "%s", front_page);
        return ADMIN_OK;
    }
    if (is(path, size, "/healthz")) {
        text_add(body, "ok\n");
        return ADMIN_OK;
    }
    if (is(path, size, "/readyz")) {
        char reason[SERVER_REASON_MAX] = "ready";
        const bool ready = server_serves(server, reason);
        text_add(body, "%s\n", reason);
        return ready ? ADMIN_OK : ADMIN_UNAVAILABLE;
    }
    if (is(path, size, "/metrics")) {
        *type = METRICS_CONTENT_TYPE;
        write_metrics(server, body);
        return ADMIN_OK;
    }
    if (size > api_size && memcmp(path, API, api_size) == 0) {
        *type = JSON;
        if (api_write(server, path + api_size, size - api_size, body)) return ADMIN_OK;
        text_add(body, "{\"error\": \"there is no such table; there are status, members, registry, links and why\"}\n");
        return ADMIN_NOT_FOUND;
    }
    text_add(body, "There is nothing here; / lists what there is.\n");
    return ADMIN_NOT_FOUND;
}

enum admin_status admin_respond(const struct server *server, const char *path, size_t path_size, struct text *body,
                                const char **type) {
    enum admin_status status = respond(server, path, path_size, body, type);
    if (!body->failed) return status;
    text_deinit(body);
    *type = TEXT;
    text_add(body, "out of memory\n");
    return ADMIN_FAILED;
}

bool admin_host_is_ours(const char *host) {
    char name[64];
    size_t size = host[0] == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL) : strcspn(host, ":");
    const char *rest = host + size;
    if (size >= sizeof name ||
        (rest[0] != '\0' && (rest[0] != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1))))
        return false;
    memcpy(name, host, size);
    name[size] = '\0';
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    if (name[0] != '[') return strcasecmp(name, "localhost") == 0 || uv_ip4_addr(name, 0, &ip4) == 0;
    if (name[size - 1] != ']') return false;
    name[size - 1] = '\0';
    return uv_ip6_addr(name + 1, 0, &ip6) == 0;
}

/* ---- HTTP ---- */

/* Writes the headers; allow (may be NULL) names the methods of a 405. */
static int send_headers(struct web_connection *connection, unsigned status, const char *type, const char *allow) {
    uint8_t *start = connection->web->scratch + LWS_PRE, *at = start, *end = start + 2048;
    struct lws *wsi = connection->wsi;
    if (lws_add_http_common_headers(wsi, status, type, connection->body.size, &at, end) != 0) return -1;
    if (lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CACHE_CONTROL, (const unsigned char *)"no-store", 8, &at,
                                     end) != 0)
        return -1;
    if (allow != NULL && lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_ALLOW, (const unsigned char *)allow,
                                                      (int)strlen(allow), &at, end) != 0)
        return -1;
    return lws_finalize_write_http_header(wsi, start, &at, end) != 0 ? -1 : 0;
}

static int complete(struct web_connection *connection) {
    text_deinit(&connection->body);
    connection->body_open = false;
    connection->body_sent = 0;
    return lws_http_transaction_completed(connection->wsi) != 0 ? -1 : 0;
}

int admin_answer(struct web_connection *connection, unsigned status, const char *type, const char *allow,
                 bool head_only) {
    if (send_headers(connection, status, type, allow) != 0) return -1;
    if (head_only || connection->body.size == 0) return complete(connection);
    connection->body_open = true;
    connection->body_sent = 0;
    lws_set_timeout(connection->wsi, PENDING_TIMEOUT_HTTP_CONTENT, RESPONSE_S);
    lws_callback_on_writable(connection->wsi);
    return 0;
}

int admin_fail(struct web_connection *connection, unsigned status, const char *error, bool head_only) {
    json_t *json = json_pack("{s:s}", "error", error);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    text_deinit(&connection->body);
    text_add(&connection->body, "%s\n", text != NULL ? text : "{\"error\": \"out of memory\"}");
    free(text);
    json_decref(json);
    return admin_answer(connection, status, JSON, NULL, head_only);
}

int admin_on_request(struct web_connection *connection, const char *path, size_t path_size) {
    const char *type = TEXT;
    char host[128] = "";
    bool head_only = lws_hdr_total_length(connection->wsi, WSI_TOKEN_HEAD_URI) > 0;
    text_deinit(&connection->body);
    if (lws_hdr_copy(connection->wsi, host, sizeof host, WSI_TOKEN_HOST) < 0 || !admin_host_is_ours(host)) {
        text_add(&connection->body, "Ask for this port by its numeric address or as localhost.\n");
        return admin_answer(connection, 421, type, NULL, head_only);
    }
    if (lws_hdr_total_length(connection->wsi, WSI_TOKEN_POST_URI) > 0 && is(path, path_size, API "ring"))
        return admin_ring_begin(connection);
    if (!head_only && lws_hdr_total_length(connection->wsi, WSI_TOKEN_GET_URI) == 0) {
        text_add(&connection->body, "Only GET and HEAD are answered here.\n");
        return admin_answer(connection, 405, type, "GET, HEAD", false);
    }
    if (is(path, path_size, API "why")) return admin_why_begin(connection, head_only);
    enum admin_status status = admin_respond(connection->web->server, path, path_size, &connection->body, &type);
    if (connection->body.failed) return -1;
    return admin_answer(connection, status, type, NULL, head_only);
}

int admin_on_writable(struct web_connection *connection) {
    if (!connection->body_open) return admin_why_on_writable(connection);
    size_t left = connection->body.size - connection->body_sent;
    size_t size = left < WEB_PIECE ? left : WEB_PIECE;
    uint8_t *piece = connection->web->scratch + LWS_PRE;
    memcpy(piece, connection->body.bytes + connection->body_sent, size);
    if (lws_write(connection->wsi, piece, size, size == left ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP) < (int)size)
        return -1;
    connection->body_sent += size;
    if (size == left) return complete(connection);
    lws_set_timeout(connection->wsi, PENDING_TIMEOUT_HTTP_CONTENT, RESPONSE_S);
    lws_callback_on_writable(connection->wsi);
    return 0;
}
