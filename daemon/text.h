/* A text that grows: bodies of admin responses and metrics. When memory is short it is marked as failed and stays so;
 * check once, at the end. */
#ifndef DAEMON_TEXT_H
#define DAEMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *bytes; /* no final zero; NULL while empty */
    size_t size, capacity;
    bool failed;
};

/* An empty text is all zero. deinit makes it so again. */
void text_deinit(struct text *text);
void text_append(struct text *text, const char *bytes, size_t size);
/* As printf does. */
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
