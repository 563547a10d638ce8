/* MQTT over TCP: listeners and connections on the loop. Bytes go to the broker as they come; what it wants written goes
 * out once per client and turn. */
#ifndef DAEMON_CLIENTS_H
#define DAEMON_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/broker.h"
#include "daemon/server.h"

struct clients;

/* Opens all listeners of kind mqtt. NULL on failure, and then error is one line with the remedy; what was opened closes
 * in the next turns of the loop. */
struct clients *clients_new(struct server *server, char error[SERVER_ERROR_MAX]);

/* This client has output or has ended. False if the handle is not one of ours. Calls nothing back. */
bool clients_ready(struct clients *clients, broker_handle client);
/* Writes for all that became ready since the last call. Pumps the node. */
void clients_flush(struct clients *clients);

void clients_stop_listening(struct clients *clients);
/* Connections that are open, those included that wait for a slow far end to take its last bytes. */
size_t clients_count(const struct clients *clients);

/* Closes everything; it is freed in the next turns of the loop. NULL is fine. */
void clients_close(struct clients *clients);

#endif
