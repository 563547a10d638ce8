/* The admin port: plain HTTP, GET and HEAD only, but for one POST.
 *
 *   /                     what there is, as text
 *   /healthz              200 while the loop turns
 *   /readyz               200 once listeners and store serve; 503 and why before, while leaving, and while the
 *                         store cannot write
 *   /metrics              metrics.h
 *   /api/v1/NAME          api.h
 *   /api/v1/why?...       asks two brokers (admin_why.c)
 *   POST /api/v1/ring     a signed gossip key ring (admin_ring.c)
 *
 * There is no token yet, so it is for loopback only: --check and start refuse other addresses under listen.admin.
 * Against web pages that aim at it through a name of theirs, a Host that is neither localhost nor a numeric address
 * gets 421. Reached through web_inside.h.
 */
#ifndef DAEMON_ADMIN_H
#define DAEMON_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/text.h"

struct server;

enum admin_status { ADMIN_OK = 200, ADMIN_NOT_FOUND = 404, ADMIN_UNAVAILABLE = 503, ADMIN_FAILED = 500 };

/* The response to a GET of this path: type is a constant; body belongs to the caller. */
enum admin_status admin_respond(const struct server *server, const char *path, size_t path_size, struct text *body,
                                const char **type);

/* True for "localhost", "127.0.0.1:9100", "[::1]:9100" and the like: names that no stranger can make point here. */
bool admin_host_is_ours(const char *host);

#endif
