/* The last good peers, on disk: a broker whose bootstrap names are all gone comes back by them.
 *
 * A small text file in data_dir, written anew beside the old one and renamed over it: a head line, one HOST:PORT a line
 * with a numeric host, and an end line. It holds no secret: who can change it can make a broker send pings.
 */
#ifndef DAEMON_PEER_CACHE_H
#define DAEMON_PEER_CACHE_H

#include "daemon/server.h"

#define PEER_CACHE_MAX 64u
#define PEER_CACHE_FILE "peers" /* in data_dir */

struct peer_cache;

/* Tells gossip the peers of the last run, and keeps those of this one. A damaged file is one warning, and nothing is
 * taken from it. Without data_dir it does nothing; NULL only when memory is short. */
struct peer_cache *peer_cache_new(struct server *server);
/* How many peers the last run left. */
size_t peer_cache_count(const struct peer_cache *cache);
/* Writes what is new once more, and stops; it is freed in the next turns of the loop. NULL is fine. */
void peer_cache_close(struct peer_cache *cache);

/* ---- the file ---- */

enum peer_cache_result {
    PEER_CACHE_OK = 0,
    PEER_CACHE_DAMAGED = -1,
    PEER_CACHE_NO_FILE = 1, /* none yet */
    PEER_CACHE_ERROR = -2   /* errno says why */
};
/* At most PEER_CACHE_MAX addresses; *count is 0 unless all is good. */
enum peer_cache_result peer_cache_load(const char *path, struct gossip_address addresses[PEER_CACHE_MAX],
                                       size_t *count);
enum peer_cache_result peer_cache_save(const char *path, const struct gossip_address *addresses, size_t count);

/* What to keep: those that are good now, then those of before, as many as there is room for. True if that changed the
 * list. */
bool peer_cache_merge(struct gossip_address list[PEER_CACHE_MAX], size_t *count, const struct gossip_address *good,
                      size_t good_count);

#endif
