/* Members in trouble, in the words that hobnob members, /api/v1/members and /metrics show. */
#ifndef DAEMON_TROUBLE_H
#define DAEMON_TROUBLE_H

#include "gossip/gossip.h"

/* NULL for none. */
const char *trouble_name(enum member_trouble trouble);
/* Those in trouble, at most max; how many. */
size_t trouble_list(const struct gossip *gossip, uint64_t now_ms, struct member_info *out, size_t max);

#endif
