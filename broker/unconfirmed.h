/* Inside broker/: the other brokers that a SUBACK did not wait for any longer. */
#ifndef BROKER_UNCONFIRMED_H
#define BROKER_UNCONFIRMED_H

#include <stddef.h>
#include <stdint.h>

enum { UNCONFIRMED_NAMED_MAX = 5, UNCONFIRMED_TEXT = 400 };

struct unconfirmed {
    uint32_t count;
    char names[UNCONFIRMED_NAMED_MAX][64]; /* of the first of them */
};

void unconfirmed_add(struct unconfirmed *unconfirmed, const char *name);
/* How many names there are. */
uint32_t unconfirmed_named(const struct unconfirmed *unconfirmed);
/* "edge-2, edge-3 and 4 more" */
void unconfirmed_text(const struct unconfirmed *unconfirmed, char text[UNCONFIRMED_TEXT]);

#endif
