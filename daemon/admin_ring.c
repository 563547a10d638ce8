/* POST /api/v1/ring: a signed gossip key ring, from hobnob key push. It proves itself by its signature, so that who
 * may reach the port may bring it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rings.h"
#include "daemon/web_inside.h"

#define UPLOAD_S 10 /* for the whole body */
#define JSON "application/json"

static int fail(struct web_connection *connection, unsigned status, const char *error) {
    return admin_fail(connection, status, error, false);
}

int admin_ring_begin(struct web_connection *connection) {
    char length[16] = "";
    struct lws *wsi = connection->wsi;
    /* A browser says where a page came from that sends something; nobody administers brokers from one. */
    if (lws_hdr_total_length(wsi, WSI_TOKEN_ORIGIN) > 0)
        return fail(connection, 403, "web pages may not send key rings; use hobnob key push");
    lws_hdr_copy(wsi, length, sizeof length, WSI_TOKEN_HTTP_CONTENT_LENGTH);
    const unsigned long size = strspn(length, "0123456789") == strlen(length) ? strtoul(length, NULL, 10) : 0;
    if (size == 0) return fail(connection, 411, "the ring is missing; use hobnob key push");
    if (size > ADMIN_UPLOAD_MAX) return fail(connection, 413, "this is too large for a key ring");
    text_deinit(&connection->upload);
    connection->uploading = true;
    lws_set_timeout(wsi, PENDING_TIMEOUT_HTTP_CONTENT, UPLOAD_S);
    return 0;
}

int admin_on_upload(struct web_connection *connection, const char *bytes, size_t size) {
    if (!connection->uploading) return 0; /* the body of a request that was answered without it */
    if (size > ADMIN_UPLOAD_MAX - connection->upload.size) return -1;
    text_append(&connection->upload, bytes, size);
    return connection->upload.failed ? -1 : 0;
}

static const char *verdict_name(enum gossip_ring_verdict verdict) {
    static const char *const names[] = {[GOSSIP_RING_TAKEN] = "taken",
                                        [GOSSIP_RING_HELD] = "held",
                                        [GOSSIP_RING_OLDER] = "older",
                                        [GOSSIP_RING_OUTDONE] = "outdone",
                                        [GOSSIP_RING_REFUSED] = "refused"};
    return names[verdict];
}

int admin_on_uploaded(struct web_connection *connection) {
    struct server *server = connection->web->server;
    struct text upload = connection->upload;
    char reason[160] = "";
    if (!connection->uploading) return 0;
    connection->uploading = false;
    connection->upload = (struct text){0};
    const enum gossip_ring_verdict verdict =
        rings_post(server, upload.bytes != NULL ? upload.bytes : "", upload.size, reason);
    if (upload.bytes != NULL) explicit_bzero(upload.bytes, upload.size);
    text_deinit(&upload);
    if (verdict == GOSSIP_RING_REFUSED) return fail(connection, 400, reason);
    if (verdict == GOSSIP_RING_OLDER || verdict == GOSSIP_RING_OUTDONE) return fail(connection, 409, reason);
    const uint8_t *text;
    size_t size;
    const uint64_t number = gossip_ring_held(node_gossip(server->node), &text, &size);
    text_deinit(&connection->body);
    text_add(&connection->body, "{\"ring\": {\"number\": %llu, \"verdict\": \"%s\"}}\n", (unsigned long long)number,
             verdict_name(verdict));
    return connection->body.failed ? -1 : admin_answer(connection, 200, JSON, NULL, false);
}
