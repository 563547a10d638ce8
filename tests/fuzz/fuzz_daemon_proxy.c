/* A PROXY header from a proxy that is believed but not trusted to be right. Whatever it is: what is decided on a part
 * of it stays so, and what is read from it fits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/proxy.h"

#define CHECK(condition)                                                                                               \
    if (!(condition)) abort()

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct proxy_header whole = {.size = SIZE_MAX}, part;
    const char *wrong = NULL;
    const enum proxy_result result = proxy_decode(bytes, size, &whole, &wrong);
    CHECK((result == PROXY_BAD) == (wrong != NULL));
    CHECK((result == PROXY_DONE) == (whole.size != SIZE_MAX)); /* untouched unless done */
    if (result == PROXY_DONE) {
        CHECK(whole.size <= size && whole.size <= PROXY_HEADER_MAX);
        CHECK(memchr(whole.ip, '\0', sizeof(whole.ip)) != NULL && (whole.ip[0] != '\0') == whole.has_address);
        CHECK(memchr(whole.name, '\0', sizeof(whole.name)) != NULL);
    }
    if (result == PROXY_MORE) CHECK(size < PROXY_HEADER_MAX);
    const size_t step = size > 600 ? 37 : 1;
    for (size_t i = 0; i < size; i += step) {
        uint8_t *copy = malloc(i > 0 ? i : 1);
        if (copy == NULL) return 0;
        memcpy(copy, bytes, i);
        const enum proxy_result early = proxy_decode(copy, i, &part, &wrong);
        free(copy);
        if (early == PROXY_BAD) CHECK(result == PROXY_BAD);
        if (early == PROXY_DONE) CHECK(result == PROXY_DONE && part.size == whole.size);
    }
    return 0;
}
