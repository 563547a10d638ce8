/* Gossip key rings on the daemon's loop: the one that is used is kept in data_dir, and those that an admin leaves in
 * DATA_DIR/inbox or posts to the admin port are given to the node. */
#ifndef DAEMON_RINGS_H
#define DAEMON_RINGS_H

#include "daemon/server.h"

struct rings;

#define RINGS_LOOK_MS 1000u  /* between two looks into the inbox; a file is taken that did not change in between */
#define RINGS_RETRY_MS 5000u /* while the disk does not take the ring */

/* NULL when memory is short. The server has a data_dir and a node with peers. */
struct rings *rings_new(struct server *server);
/* Port of the node: keeps this text, soon. */
void rings_save(struct rings *rings, const char *text, size_t size);
/* From the admin port: what the node says to it. reason is 160 bytes. */
enum gossip_ring_verdict rings_post(struct server *server, const char *text, size_t size, char *reason);
/* The ring that is used is not on the disk yet, and the disk failed. */
bool rings_failing(const struct rings *rings);
/* Closes all; it is freed in the next turns of the loop. NULL is fine. */
void rings_close(struct rings *rings);

#endif
