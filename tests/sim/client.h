/* An MQTT client on the virtual network, written on bytes: it does what a careful client library does (acknowledges,
 * keeps alive, repeats what was not acknowledged when the session is there again, subscribes again when it is not) and
 * writes all it sees into the journal. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "tests/sim/journal.h"
#include "tests/sim/network.h"
#include "tests/sim/trace.h"

#define CLIENT_MQTT_PORT 1883u

struct sim_client;

struct sim_client_options {
    const char *id;
    uint8_t version;       /* 4 for MQTT 3.1.1, 5 for MQTT 5.0 */
    bool persistent;       /* the session outlives the connection */
    uint16_t keep_alive_s; /* 0: none */
    bool reconnects;       /* after 500 ms, for ever */
};

enum sim_client_state { CLIENT_OFF, CLIENT_DIALLING, CLIENT_CONNECTING, CLIENT_CONNECTED };

/* heap, network, trace and journal are borrowed for its life, options->id is copied. number: its index in the journal.
 */
struct sim_client *sim_client_new(struct heap *heap, struct network *network, struct trace *trace,
                                  struct journal *journal, size_t number, const struct sim_client_options *options);
void sim_client_free(struct sim_client *client);

/* To the broker on this host. What is asked for before the CONNACK is done after it. */
void sim_client_connect(struct sim_client *client, size_t broker_host);
void sim_client_disconnect(struct sim_client *client); /* DISCONNECT, then the connection ends */
void sim_client_drop(struct sim_client *client);       /* the connection ends without a word */

/* Each returns the index of its journal entry. */
size_t sim_client_subscribe(struct sim_client *client, const char *filter, uint8_t qos);
void sim_client_unsubscribe(struct sim_client *client, const char *filter);
size_t sim_client_publish(struct sim_client *client, const char *topic, uint8_t qos, bool retain, size_t size);

enum sim_client_state sim_client_state(const struct sim_client *client);
size_t sim_client_number(const struct sim_client *client);
size_t sim_client_broker_host(const struct sim_client *client);
const char *sim_client_id(const struct sim_client *client);
bool sim_client_is_persistent(const struct sim_client *client);
/* Sessions that it had: the broker's word that it knew none begins a new one. */
uint64_t sim_client_sessions(const struct sim_client *client);
/* Nothing asked for is unanswered. */
bool sim_client_idle(const struct sim_client *client);
/* Times at which the broker answered something that the protocol does not allow. */
uint64_t sim_client_violations(const struct sim_client *client);

#endif
