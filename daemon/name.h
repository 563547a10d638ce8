/* Names from certificates, which are user names here. */
#ifndef DAEMON_NAME_H
#define DAEMON_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for UTF-8 without control characters, U+0080 to U+009F included. */
bool name_is_plain(const uint8_t *bytes, size_t size);

#endif
