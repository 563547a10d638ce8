/* What was asked for with WANT and has not come yet (wants.c). Members are not kept awake for it, and of what others
 * boast of there is never more than fits in here. */
#ifndef GOSSIP_WANTS_H
#define GOSSIP_WANTS_H

#include "gossip/message.h"

#define WANTS_MAX 32u

struct wanted {
    struct version there;     /* is said to be, of version.id; */
    struct member_id said_by; /* by this one first, */
    struct member_id also_by; /* and by this one, who was not asked yet; zeros: by nobody */
    struct member_id asked;   /* who was asked last, */
    uint64_t held;            /* for what is above this */
    uint64_t due_ms;          /* it is asked for again then, or has rested; */
    uint32_t tries;           /* so often until now, since something came, */
    uint32_t all_tries;       /* and in all */
    bool used;
};

struct wants {
    uint64_t next_ms; /* the first of them that is due; NEVER */
    struct wanted all[WANTS_MAX];
};

#endif
