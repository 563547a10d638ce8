/* What a broker knows, as JSON: {"members": [...]}, {"registry": [...]}, {"links": [...]} and {"status": {...}}.
 *
 * status    name, id, version, epoch, uptime_s, ready, clients, sessions, subscriptions, retained, store {sync (full
 * normal off memory), state (good failing), reason, commits, records, pending_bytes}, members {alive, suspect, down},
 * rows, links, table_hash members   name, id, state (alive suspect down left), address, epoch, rows, heard_ms_ago
 * (null: never), self registry  owner (name), kind (newpub newsub), filter, active links     peer (name), id, state
 * (dialling handshake up closing), direction (out in), up_ms, and the counters of struct link_info, dropped_by {LIMIT:
 * count}, given_up {REASON: count}
 *
 * ids are 32 hexadecimal digits, table_hash 16; addresses "ip:port" or null.
 */
#ifndef DAEMON_API_H
#define DAEMON_API_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/text.h"
#include "gossip/gossip.h"

struct server;

/* Appends the JSON of that name; false if there is none of that name. */
bool api_write(const struct server *server, const char *name, size_t name_size, struct text *out);

#endif
