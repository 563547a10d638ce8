/* Members in trouble, in the words that hobnob members, /api/v1/members and /metrics show. Of our own troubles gossip
 * knows one, a key in use by two; the others are told here. */
#ifndef DAEMON_TROUBLE_H
#define DAEMON_TROUBLE_H

#include "gossip/gossip.h"

struct server;

/* NULL for none. */
const char *trouble_name(enum member_trouble trouble);
/* Of a member as this broker shows it, itself too: NULL for none. */
const char *trouble_of(const struct server *server, const struct member_info *info);

struct troubled {
    struct member_info member;
    const char *trouble;
};
/* Those in trouble, at most max; how many. */
size_t trouble_list(const struct server *server, struct troubled *out, size_t max);
/* How many are, counted in all: gossip's count and we, for what it does not know. */
uint64_t trouble_count(const struct server *server, uint64_t of_gossip);

#endif
