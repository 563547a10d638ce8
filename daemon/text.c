#include "daemon/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_deinit(struct text *text) {
    free(text->bytes);
    *text = (struct text){0};
}

static bool text_reserve(struct text *text, size_t more) {
    if (text->failed) return false;
    if (more <= text->capacity - text->size) return true;
    size_t capacity = text->capacity == 0 ? 1024 : text->capacity;
    while (capacity - text->size < more && capacity < SIZE_MAX / 2)
        capacity *= 2;
    char *bytes = capacity - text->size < more ? NULL : realloc(text->bytes, capacity);
    if (bytes == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void text_append(struct text *text, const char *bytes, size_t size) {
    if (size == 0 || !text_reserve(text, size)) return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    /* vsnprintf writes a final zero, so there must be room for it. */
    if (size < 0 || !text_reserve(text, (size_t)size + 1)) return;
    va_start(arguments, format);
    vsnprintf(text->bytes + text->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}
