/* MQTT for clients: over TCP, TLS, WebSocket, WebSocket over TLS and unix sockets. Bytes go to the broker as they come;
 * what it wants written goes out once per client and turn of the loop.
 *
 * The sockets are watched by an epoll instance of their own, which is one descriptor on the loop: an idle client costs
 * its struct connection here and nothing else (clients_inside.h). */
#ifndef DAEMON_CLIENTS_H
#define DAEMON_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/broker.h"
#include "daemon/server.h"

struct clients;

/* Opens all listeners of kinds mqtt, mqtts, ws and wss. NULL on failure, and then error is one line with the remedy;
 * what was opened closes in the next turns of the loop. */
struct clients *clients_new(struct server *server, char error[SERVER_ERROR_MAX]);

/* This client has output, has ended, or may be read from again. False if the handle is not one of ours. Calls nothing
 * back. */
bool clients_ready(struct clients *clients, broker_handle client);
/* Writes for all that became ready since the last call. Pumps the node. */
void clients_flush(struct clients *clients);

void clients_stop_listening(struct clients *clients);
/* Connections that are open, those included that wait for a slow far end to take its last bytes. */
size_t clients_count(const struct clients *clients);

/* Closes everything; it is freed in the next turns of the loop. NULL is fine. */
void clients_close(struct clients *clients);

enum clients_kind { CLIENTS_MQTT, CLIENTS_MQTTS, CLIENTS_WS, CLIENTS_WSS };
#define CLIENTS_KINDS 4u
/* The port that the index-th listener of a kind got (of use when the configuration says 0); 0 past the end. */
uint16_t clients_port(const struct clients *clients, enum clients_kind kind, size_t index);

struct clients_counters {
    uint64_t accepted[CLIENTS_KINDS]; /* connections */
    uint64_t open;                    /* now */
    uint64_t arriving;                /* of these, with a PROXY header, TLS or WebSocket handshake under way */
    uint64_t refused;                 /* closed at once: a limit was reached, or memory or descriptors were short */
    uint64_t tls_failed, proxy_failed, websocket_failed; /* handshakes that the far end got wrong */
    uint64_t arrivals_timed_out; /* handshakes that took longer than limits.connect_timeout_ms */
    uint64_t arrivals_displaced; /* and those ended since limits.connecting_max newer ones came */
    uint64_t displaced;          /* before CONNECT or at their end, closed for others since descriptors were short */
};
void clients_read_counters(const struct clients *clients, struct clients_counters *out);

#endif
