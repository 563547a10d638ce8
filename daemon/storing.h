/* The store on the daemon's loop: what was kept comes back at the start, the broker's journal goes to the storage
 * thread each turn, and what the thread says comes to the broker.
 *
 * There is none without data_dir: then everything is in memory, nothing waits, and all functions accept NULL.
 */
#ifndef DAEMON_STORING_H
#define DAEMON_STORING_H

#include "daemon/server.h"
#include "daemon/store.h"

struct storing;

/* Opens the file and raises server->epoch. NULL and one line with the remedy on failure. */
struct storing *storing_new(struct server *server, char error[SERVER_ERROR_MAX]);
/* Gives server->node what the file holds, and starts the thread. Before any listener opens. */
bool storing_start(struct storing *storing, char error[SERVER_ERROR_MAX]);

/* Ports of the node. */
void storing_give(struct storing *storing, const struct broker_journal *journal);
void storing_save_epoch(struct storing *storing, uint64_t epoch);

/* Each turn, before and after output is flushed: hands the journal over. True if the broker was told of records that
 * became durable, so that there may be more output. */
bool storing_turn(struct storing *storing);

/* False and why if the store cannot write. */
bool storing_serves(struct storing *storing, char reason[STORE_ERROR_MAX]);
/* False without a store. */
bool storing_read_state(struct storing *storing, struct store_state *out);

/* After the loop has ended: hands the last journal over, and waits for its commit, for some seconds at most. */
void storing_stop(struct storing *storing);
void storing_free(struct storing *storing);

#endif
