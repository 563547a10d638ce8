/* The topics that local clients publish to: each is a newpub row until it has been idle for long. */
#ifndef BROKER_ADVERT_H
#define BROKER_ADVERT_H

#include "broker/rows.h"

struct advert {
    struct row row;
    uint64_t published_ms;
    uint64_t moved_ms; /* when it went to the end of the list of adverts: not at each publication */
    uint64_t settled;  /* federation.generation at which nobody had to be invited; 0 never */
};

/* The topic is published to now: its advert, new or old; NULL when memory is short. */
struct advert *advert_of(struct federation *federation, const char *topic, size_t size);
/* The same for an advert that is known, and not withdrawn: federation.adverts_withdrawn says so. */
void advert_touch(struct federation *federation, struct advert *advert);
/* Tells, or withdraws, rows: another policy says what is exported. What is published to in the future is adverted then.
 */
void adverts_tell(struct federation *federation);
void adverts_tick(struct federation *federation);
void adverts_deinit(struct federation *federation);

#endif
