/* The opening handshake (RFC 6455 section 4.2), of which nothing but the headers named there is looked at. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "broker/foreign.h"
#include "daemon/websocket.h"

#define KEY_SIZE 24u /* 16 bytes in base64 */
#define MAGIC "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

struct span {
    const char *bytes;
    size_t size;
};

struct request {
    struct span key, host, version;
    unsigned keys, hosts, versions;
    bool upgrade, connection; /* name what they must */
    bool mqtt, mqttv31;       /* subprotocols offered */
    bool from_page;           /* of another host */
    bool has_body;            /* which would be taken for frames */
};

static bool span_is(struct span span, const char *text) {
    return span.size == strlen(text) && strncasecmp(span.bytes, text, span.size) == 0;
}

static struct span trimmed(struct span span) {
    while (span.size > 0 && (*span.bytes == ' ' || *span.bytes == '\t'))
        span.bytes++, span.size--;
    while (span.size > 0 && (span.bytes[span.size - 1] == ' ' || span.bytes[span.size - 1] == '\t'))
        span.size--;
    return span;
}

/* True if the word is in the list, which has commas between its entries. */
static bool names(struct span list, const char *word) {
    while (list.size > 0) {
        const char *comma = memchr(list.bytes, ',', list.size);
        const size_t size = comma != NULL ? (size_t)(comma - list.bytes) : list.size;
        if (span_is(trimmed((struct span){list.bytes, size}), word)) return true;
        list.bytes += size + (comma != NULL);
        list.size -= size + (comma != NULL);
    }
    return false;
}

/* The host in SCHEME://HOST[:PORT] is this one. Any page may open a WebSocket to the host that shows it, also by a name
 * of its own that leads there, so that only these names prove anything. */
static bool origin_is_here(struct span origin) {
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *end = origin.bytes + origin.size, *slashes = memmem(origin.bytes, origin.size, "://", 3);
    if (slashes == NULL) return false;
    const struct span host = {slashes + 3, (size_t)(end - slashes) - 3};
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
        const size_t size = strlen(here[i]);
        if (host.size >= size && strncasecmp(host.bytes, here[i], size) == 0 &&
            (host.size == size || host.bytes[size] == ':'))
            return true;
    }
    return false;
}

static void read_header(struct request *request, struct span name, struct span value) {
    if (span_is(name, "Upgrade") && names(value, "websocket")) request->upgrade = true;
    if (span_is(name, "Connection") && names(value, "upgrade")) request->connection = true;
    if (span_is(name, "Sec-WebSocket-Protocol")) {
        request->mqtt = request->mqtt || names(value, "mqtt");
        request->mqttv31 = request->mqttv31 || names(value, "mqttv3.1");
    }
    if (span_is(name, "Origin") && !origin_is_here(value)) request->from_page = true;
    if (span_is(name, "Transfer-Encoding") || (span_is(name, "Content-Length") && !span_is(value, "0")))
        request->has_body = true;
    if (span_is(name, "Host")) request->host = value, request->hosts++;
    if (span_is(name, "Sec-WebSocket-Key")) request->key = value, request->keys++;
    if (span_is(name, "Sec-WebSocket-Version")) request->version = value, request->versions++;
}

/* Some take a line feed alone for the end of a line, and would read another request than we do. */
static bool has_controls(const char *bytes, const char *end) {
    for (; bytes < end; bytes++)
        if (((unsigned char)*bytes < 0x20 && *bytes != '\t') || *bytes == 0x7f) return true;
    return false;
}

/* The lines after the first; false if one is no "name: value" (RFC 9112 section 5). */
static bool read_headers(struct request *request, const char *bytes, const char *end) {
    while (bytes < end) {
        const char *line_end = memmem(bytes, (size_t)(end - bytes), "\r\n", 2);
        const char *colon = memchr(bytes, ':', (size_t)(line_end - bytes));
        if (colon == NULL || colon == bytes || colon[-1] == ' ' || *bytes == ' ' || *bytes == '\t') return false;
        if (has_controls(bytes, line_end)) return false;
        read_header(request, (struct span){bytes, (size_t)(colon - bytes)},
                    trimmed((struct span){colon + 1, (size_t)(line_end - colon - 1)}));
        bytes = line_end + 2;
    }
    return true;
}

/* 16 bytes in base64: 22 characters of the alphabet and "==". */
static bool key_is_good(struct span key) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (key.size != KEY_SIZE || memcmp(key.bytes + 22, "==", 2) != 0) return false;
    for (size_t i = 0; i < 22; i++)
        if (key.bytes[i] == '\0' || strchr(alphabet, key.bytes[i]) == NULL) return false;
    return true;
}

static enum websocket_request_result refuse(struct websocket_answer *answer, const char *status, const char *header,
                                            const char *why) {
    const int size = snprintf(answer->bytes, sizeof(answer->bytes),
                              "HTTP/1.1 %s\r\n%sContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                              "Connection: close\r\n\r\n%s\n",
                              status, header, strlen(why) + 1, why);
    answer->size = (size_t)size;
    answer->wrong = why;
    return WEBSOCKET_REFUSED;
}

static enum websocket_request_result accept_request(const struct request *request, struct websocket_answer *answer) {
    char text[KEY_SIZE + sizeof(MAGIC)];
    unsigned char digest[EVP_MAX_MD_SIZE], accept[32];
    unsigned digest_size = 0;
    memcpy(text, request->key.bytes, KEY_SIZE);
    memcpy(text + KEY_SIZE, MAGIC, sizeof(MAGIC));
    if (EVP_Digest(text, KEY_SIZE + sizeof(MAGIC) - 1, digest, &digest_size, EVP_sha1(), NULL) != 1)
        return refuse(answer, "503 Service Unavailable", "", "memory is short: give the machine more");
    EVP_EncodeBlock(accept, digest, (int)digest_size);
    answer->from_page = request->from_page;
    /* MQTT-6.0.0-4: the subprotocol is "mqtt" whenever it was offered. */
    answer->size = (size_t)snprintf(answer->bytes, sizeof(answer->bytes),
                                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                    "Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
                                    (const char *)accept, request->mqtt ? "mqtt" : "mqttv3.1");
    return WEBSOCKET_ACCEPTED;
}

/* The path of "GET PATH HTTP/1.1", without what follows a question mark; NULL if the line is another. */
static const char *path_of(const char *line, const char *end, size_t *size) {
    static const char version[] = " HTTP/1.1";
    const size_t version_size = sizeof(version) - 1;
    const char *path = line + 4;
    if ((size_t)(end - path) < version_size || memcmp(end - version_size, version, version_size) != 0) return NULL;
    *size = (size_t)(end - version_size - path);
    if (memchr(path, ' ', *size) != NULL) return NULL;
    const char *query = memchr(path, '?', *size);
    if (query != NULL) *size = (size_t)(query - path);
    return path;
}

/* Other brokers ask for no path, so clients may be set up without one; a browser that looks is told the path. */
static bool path_is_ours(struct span path, bool upgrade) {
    const size_t size = strlen(WEBSOCKET_PATH);
    if (path.size == size && memcmp(path.bytes, WEBSOCKET_PATH, size) == 0) return true;
    return upgrade && path.size == 1 && path.bytes[0] == '/';
}

static const char *what_else(const char *bytes, size_t size) {
    static const char mqtt[] = "it speaks MQTT without WebSocket: switch that on there, or use a port of listen.mqtt";
    const char *what = foreign_protocol((const uint8_t *)bytes, size);
    if (what != NULL) return what;
    return bytes[0] == 0x10 ? mqtt : "this is no request for a WebSocket";
}

enum websocket_request_result websocket_request(const char *bytes, size_t size, struct websocket_answer *answer) {
    struct request request = {0};
    size_t path_size = 0;
    *answer = (struct websocket_answer){0};
    if (memcmp(bytes, "GET ", size < 4 ? size : 4) != 0)
        return refuse(answer, "400 Bad Request", "", what_else(bytes, size));
    const char *end = memmem(bytes, size, "\r\n\r\n", 4);
    if (end == NULL && size < WEBSOCKET_REQUEST_MAX) return WEBSOCKET_MORE;
    if (end == NULL || (size_t)(end - bytes) + 4 > WEBSOCKET_REQUEST_MAX)
        return refuse(answer, "431 Request Header Fields Too Large", "", "the request is longer than 8,192 bytes");
    const char *line_end = memmem(bytes, size, "\r\n", 2), *path = path_of(bytes, line_end, &path_size);
    answer->request_size = (size_t)(end - bytes) + 4;
    if (path == NULL || has_controls(bytes, line_end) || !read_headers(&request, line_end + 2, end + 2) ||
        request.has_body)
        return refuse(answer, "400 Bad Request", "", "the request is malformed");
    if (!path_is_ours((struct span){path, path_size}, request.upgrade))
        return refuse(answer, "404 Not Found", "", "MQTT over WebSocket is at " WEBSOCKET_PATH);
    if (!request.upgrade || !request.connection)
        return refuse(answer, "426 Upgrade Required", "Upgrade: websocket\r\n", "this is for MQTT over WebSocket");
    if (request.versions != 1 || !span_is(request.version, "13"))
        return refuse(answer, "426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n",
                      "WebSocket version 13 is spoken");
    if (request.hosts != 1 || request.keys != 1 || !key_is_good(request.key))
        return refuse(answer, "400 Bad Request", "", "a WebSocket needs one Host and one Sec-WebSocket-Key");
    if (!request.mqtt && !request.mqttv31)
        return refuse(answer, "400 Bad Request", "", "Sec-WebSocket-Protocol must offer mqtt");
    return accept_request(&request, answer);
}
