#include "broker/unconfirmed.h"

#include <stdio.h>
#include <string.h>

void unconfirmed_add(struct unconfirmed *unconfirmed, const char *name) {
    uint32_t index = unconfirmed->count++;
    if (index < UNCONFIRMED_NAMED_MAX)
        snprintf(unconfirmed->names[index], sizeof unconfirmed->names[index], "%s", name);
}

uint32_t unconfirmed_named(const struct unconfirmed *unconfirmed) {
    return unconfirmed->count < UNCONFIRMED_NAMED_MAX ? unconfirmed->count : UNCONFIRMED_NAMED_MAX;
}

void unconfirmed_text(const struct unconfirmed *unconfirmed, char text[UNCONFIRMED_TEXT]) {
    uint32_t named = unconfirmed_named(unconfirmed);
    text[0] = '\0';
    for (uint32_t i = 0; i < named; i++) {
        size_t size = strlen(text);
        snprintf(text + size, UNCONFIRMED_TEXT - size, "%s%s", i > 0 ? ", " : "", unconfirmed->names[i]);
    }
    size_t size = strlen(text);
    if (unconfirmed->count > named)
        snprintf(text + size, UNCONFIRMED_TEXT - size, " and %u more", (unsigned)(unconfirmed->count - named));
}
