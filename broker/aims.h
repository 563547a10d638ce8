/* For whom at a peer a publication is: those who joined its topic there, members of groups of shared subscriptions
 * (MQTT 5.0 section 4.8.2), or both. No aims at all stand for those who joined, which is what most publications are
 * for. */
#ifndef BROKER_AIMS_H
#define BROKER_AIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AIMS_OTHERS = 1,   /* those who joined, too */
    AIMS_RETURNED = 2, /* a member here was to get it, and is gone: whom it is for now is the peer's to say */
    AIMS_AGAIN = 4     /* it came back from another peer */
};
enum { AIMS_GROUPS_MAX = 65535 }; /* bytes of the groups of a publication, with a final zero each */

struct aims {
    uint32_t size; /* of the groups, in bytes */
    uint8_t what;  /* of AIMS_* */
    char groups[]; /* "$share/NAME/FILTER", each with a final zero */
};

/* The aims, or those of none, with one group more; -1 when memory is short, or they are too many, and nothing changed.
 * free() ends them. */
int aims_add(struct aims **aims, const char *group, size_t size);
bool aims_have(const struct aims *aims, const char *group, size_t size); /* of NULL: no */
void aims_remove(struct aims *aims, const char *group, size_t size);
/* The group at this place, the first at 0, the next at + *size + 1; NULL at the end. */
const char *aims_at(const struct aims *aims, size_t at, size_t *size);

/* As bytes, and from them: 1 if they are none, -1 when memory is short. */
const void *aims_bytes(const struct aims *aims, size_t *size);
int aims_read(struct aims **aims, const void *bytes, size_t size);

#endif
