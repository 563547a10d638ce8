/* The first bytes of a WebSocket client, and its frames: read at once and in parts they come to the same, and no part
 * goes beyond its bounds. The first byte of the input says how it is cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text.h"
#include "daemon/websocket.h"

#define CHECK(condition)                                                                                               \
    if (!(condition)) abort()

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_request(const uint8_t *bytes, size_t size) {
    struct websocket_answer answer;
    const enum websocket_request_result result = websocket_request((const char *)bytes, size, &answer);
    CHECK(answer.size < sizeof(answer.bytes));
    CHECK((result == WEBSOCKET_MORE) == (answer.size == 0));
    CHECK(result != WEBSOCKET_MORE || size < WEBSOCKET_REQUEST_MAX);
    CHECK(answer.request_size <= size);
}

static void read_all(const uint8_t *bytes, size_t size, size_t part_max, struct text *out) {
    struct websocket_reader reader = {0};
    for (size_t at = 0; at < size;) {
        const size_t part = size - at < part_max ? size - at : part_max;
        struct websocket_piece piece;
        uint8_t *copy = malloc(part);
        if (copy == NULL) return;
        memcpy(copy, bytes + at, part);
        const enum websocket_event event = websocket_read(&reader, copy, part, 1000, &piece);
        CHECK(piece.used >= 1 && piece.used <= part);
        if (event == WEBSOCKET_BYTES) {
            CHECK(piece.size >= 1 && piece.size <= 1000 && piece.bytes >= copy &&
                  piece.bytes + piece.size <= copy + part);
            text_append(out, (const char *)piece.bytes, piece.size);
        }
        if (event == WEBSOCKET_PING) {
            CHECK(piece.size <= WEBSOCKET_CONTROL_MAX);
            text_append(out, "ping", 4);
            text_append(out, (const char *)piece.bytes, piece.size);
        }
        if (event == WEBSOCKET_CLOSE || event == WEBSOCKET_WRONG) {
            text_append(out, event == WEBSOCKET_CLOSE ? "close" : "wrong", 5);
            text_append(out, (const char *)&piece.close_code, sizeof(piece.close_code));
        }
        free(copy);
        if (event == WEBSOCKET_CLOSE || event == WEBSOCKET_WRONG) return;
        at += piece.used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct text whole = {0}, parts = {0};
    if (size == 0) return 0;
    check_request(bytes + 1, size - 1);
    read_all(bytes + 1, size - 1, SIZE_MAX, &whole);
    read_all(bytes + 1, size - 1, 1u + bytes[0] % 32, &parts);
    CHECK(whole.size == parts.size && (whole.size == 0 || memcmp(whole.bytes, parts.bytes, whole.size) == 0));
    text_deinit(&whole);
    text_deinit(&parts);
    return 0;
}
