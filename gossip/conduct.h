/* Who breaks the rules. What an honest broker does not do is counted against the member that did it, so that an admin
 * is told who it is. It defends nothing: what is false is not believed, and what is too much is passed over, whoever
 * brings it. */
#ifndef GOSSIP_CONDUCT_H
#define GOSSIP_CONDUCT_H

#include "gossip/gossip.h"

enum misdeed {
    MISDEED_FORGES,      /* brings what the one in whose name it is has not signed */
    MISDEED_CONTRADICTS, /* has signed two things of which one at most is true */
    MISDEED_NONSENSE,    /* says what cannot be read, well sealed */
    MISDEED_FLOODS,      /* sends twice what a broker may by datagrams, or pings, or has others ping, without end */
    MISDEED_TOO_MUCH,    /* publishes more than we take of one */
    MISDEED_ACCUSES      /* says of members that answer us that they do not, beyond its measure */
};
#define MISDEEDS 6u

#define OFFENDERS_MAX 16u /* known at a time; one more takes the place of the one that was good for longest */

struct offender {
    struct member_id id;
    uint64_t window_ms; /* when counting began anew */
    uint32_t counts[MISDEEDS];
    uint64_t until_ms[MISDEEDS]; /* it is shown for it until then; 0: it is not */
    uint64_t last_ms;            /* 0: the place is free */
};

struct conduct {
    struct offender offenders[OFFENDERS_MAX];
};

/* True when it has done so often enough to be told of, and was not lately. */
bool conduct_count(struct conduct *conduct, uint64_t now_ms, const struct member_id *id, enum misdeed misdeed);
/* It did what two with one key do not do either: that goes before what it says of itself. */
bool conduct_does_harm(const struct conduct *conduct, uint64_t now_ms, const struct member_id *id);
enum member_trouble conduct_trouble(const struct conduct *conduct, uint64_t now_ms, const struct member_id *id);

#endif
