/* An MQTT client on the virtual network, written on bytes: it does what a careful client library does (acknowledges, keeps alive, repeats
 * what was not acknowledged when the session is there again, subscribes again when it is not) and writes all it sees into the journal. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "tests/sim/journal.h"
#include "tests/sim/network.h"
#include "tests/sim/trace.h"

#define CLIENT_MQTT_PORT 1883u

struct client;

struct client_options {
    const char *id;
    uint8_t version;        /* 4 for MQTT 3.1.1, 5 for MQTT 5.0 */
    bool persistent;        /* the session outlives the connection */
    uint16_t keep_alive_s;  /* 0: none */
    bool reconnects;        /* after 500 ms, for ever */
};

enum client_state { CLIENT_OFF, CLIENT_DIALLING, CLIENT_CONNECTING, CLIENT_CONNECTED };

/* heap, network, trace and journal are borrowed for its life, options->id is copied. number: its index in the journal. */
struct client *client_new(struct heap *heap, struct network *network, struct trace *trace, struct journal *journal, size_t number,
                          const struct client_options *options);
void client_free(struct client *client);

/* To the broker on this host. What is asked for before the CONNACK is done after it. */
void client_connect(struct client *client, size_t broker_host);
void client_disconnect(struct client *client); /* DISCONNECT, then the connection ends */
void client_drop(struct client *client);       /* the connection ends without a word */

/* Each returns the index of its journal entry. */
size_t client_subscribe(struct client *client, const char *filter, uint8_t qos);
void client_unsubscribe(struct client *client, const char *filter);
size_t client_publish(struct client *client, const char *topic, uint8_t qos, bool retain, size_t size);

enum client_state client_state(const struct client *client);
size_t client_number(const struct client *client);
size_t client_broker_host(const struct client *client);
const char *client_id(const struct client *client);
/* Nothing asked for is unanswered. */
bool client_idle(const struct client *client);
/* CONNACKs with success, and why the last connection was refused or ended by the broker (reason code), 0 if not. */
uint64_t client_connects(const struct client *client);
uint8_t client_last_reason(const struct client *client);
/* Times at which the broker answered something that the protocol does not allow. */
uint64_t client_violations(const struct client *client);

#endif
