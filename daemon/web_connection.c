/* Connections of web: made, found by handle, ended. */
#define HASH_NONFATAL_OOM 1

#include <stdlib.h>
#include <utlist.h>

#include "daemon/descriptors.h"
#include "daemon/web_inside.h"

static bool is_stranger(const struct web_connection *connection) {
    if (connection->dialled) return false;
    if (connection->kind == WEB_ADMIN) return !connection->body_open;
    return !broker_link_has_peer(node_broker(connection->web->server->node), connection->handle);
}

/* How many strangers there are, and the oldest that is not being closed yet; NULL if there is none. */
static size_t count_strangers(const struct web *web, enum web_kind kind, struct web_connection **oldest) {
    struct web_connection *connection;
    size_t count = 0;
    *oldest = NULL;
    DL_FOREACH2(web->connections, connection, next) {
        if (connection->kind != kind || !is_stranger(connection)) continue;
        if (*oldest == NULL && !connection->ending) *oldest = connection;
        count++;
    }
    return count;
}

/* Who opens connections and is silent keeps nobody out, nor does he use up descriptors that others need. */
bool web_has_room(struct web *web, enum web_kind kind, int fd) {
    static const unsigned left[WEB_KINDS] = {
        [WEB_PEERS] = DESCRIPTORS_LEFT_BY_PEERS, [WEB_ADMIN] = DESCRIPTORS_LEFT_BY_ADMIN};
    const bool full = web->counters.open[kind] >= web->open_max[kind] || (uint64_t)fd + left[kind] >= web->files_max;
    struct web_connection *oldest;
    if (!full && web->counters.open[kind] < web->strangers_max[kind]) return true;
    if (count_strangers(web, kind, &oldest) < web->strangers_max[kind] && !full) return true;
    web->counters.refused_full++;
    if (oldest != NULL) web_connection_kill(oldest);
    return false;
}

struct web_connection *web_connection_new(struct web *web, enum web_kind kind, bool dialled) {
    struct web_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) return NULL;
    connection->web = web;
    connection->kind = kind;
    connection->dialled = dialled;
    connection->counted = true;
    web->counters.open[kind]++;
    DL_APPEND2(web->connections, connection, previous, next);
    return connection;
}

static void count_no_more(struct web_connection *connection) {
    if (!connection->counted) return;
    connection->counted = false;
    connection->web->counters.open[connection->kind]--;
    if (!connection->established) connection->web->counters.handshakes_failed++;
}

void web_connection_abandon(struct web_connection *connection) {
    count_no_more(connection);
    connection->wsi = NULL;
}

void web_connection_free(struct web_connection *connection) {
    count_no_more(connection);
    admin_why_end(connection);
    web_connection_unbind(connection);
    DL_DELETE2(connection->web->connections, connection, previous, next);
    text_deinit(&connection->body);
    text_deinit(&connection->upload);
    free(connection);
}

struct web_connection *web_connection_of(struct lws *wsi) {
    return lws_get_opaque_user_data(wsi);
}

bool web_connection_bind(struct web_connection *connection, broker_handle handle) {
    connection->handle = handle;
    HASH_ADD(by_handle, connection->web->links, handle, sizeof handle, connection);
    if (connection->by_handle.tbl != NULL) return true;
    connection->handle = 0;
    return false;
}

void web_connection_unbind(struct web_connection *connection) {
    if (connection->handle == 0) return;
    HASH_DELETE(by_handle, connection->web->links, connection);
    connection->handle = 0;
}

/* libwebsockets programs its timer at the end of each of its own events only: make it have one. */
static void limit_time_left(struct web_connection *connection, int seconds) {
    lws_set_timeout(connection->wsi, PENDING_TIMEOUT_USER_OK, seconds);
    lws_cancel_service(connection->web->context);
}

void web_connection_kill(struct web_connection *connection) {
    if (connection->wsi == NULL) return; /* a dial that waits for its turn: it is looked at then */
    connection->ending = true;
    limit_time_left(connection, LWS_TO_KILL_ASYNC);
}

void web_connection_ready(struct web_connection *connection, bool ended) {
    if (ended && !connection->established) {
        web_connection_kill(connection);
        return;
    }
    if (connection->wsi == NULL || !connection->established) return;
    if (ended && !connection->ending) {
        connection->ending = true;
        limit_time_left(connection, WEB_CLOSE_S);
    }
    lws_callback_on_writable(connection->wsi);
}

bool web_link_ready(struct web *web, broker_handle link) {
    struct web_connection *connection = NULL;
    if (web != NULL) HASH_FIND(by_handle, web->links, &link, sizeof link, connection);
    if (connection == NULL) return false;
    web_connection_ready(connection, broker_link_ended(node_broker(web->server->node), link));
    return true;
}
