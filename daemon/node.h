/* A node: the three cores joined, and nothing else. Pure as they are: the daemon runs one on real sockets, the
 * simulator many on virtual ones.
 *
 * node_pump() is the one place where a core's output becomes another's input. Call it after every call into the node or
 * its broker or gossip; it returns when nothing is left to hand over, having called the ports for what must leave.
 */
#ifndef DAEMON_NODE_H
#define DAEMON_NODE_H

#include "auth/trust.h"
#include "broker/broker.h"
#include "broker/peering.h"
#include "broker/why.h"
#include "gossip/gossip.h"

struct node;

enum node_log_level { NODE_LOG_DEBUG, NODE_LOG_INFO, NODE_LOG_WARNING, NODE_LOG_ERROR };

/* What the world does for the node. None may call back into it. */
struct node_ports {
    void *context;
    void (*send_datagram)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size);
    /* This client (link) has output or has ended: fetch with broker_client_output (broker_link_output) soon; naming it
     * twice is harmless. */
    void (*client_ready)(void *context, broker_handle client);
    void (*link_ready)(void *context, broker_handle link);
    /* Start to dial this address for this link. Later: broker_link_ready() or broker_link_closed(). */
    void (*dial)(void *context, broker_handle link, const struct gossip_address *to, const char *peer_name);
    /* One line: event is a short constant name ("member", "link", "refused" ...). */
    void (*log)(void *context, enum node_log_level level, const char *event, const char *text);
    /* The epoch was raised past what others remember: keep it. */
    void (*save_epoch)(void *context, uint64_t epoch);
    /* A newer gossip key ring is used: keep its text, for it takes the place of options.ring at the next start. NULL:
     * nothing is kept. */
    void (*save_ring)(void *context, const char *text, size_t size);
    /* Records for the store (options.durable); the bytes are handed over. node_durable() says later how far it is. */
    void (*store)(void *context, const struct broker_journal *journal);
};

struct node_options {
    const char *name, *federation;
    const struct auth_key
        *key; /* borrowed while the node lives; NULL for a broker alone (no peers listener), then no gossip */
    const struct auth_key *const *issuers;
    size_t issuer_count;
    const char *token;
    size_t token_size;
    const struct auth_ring *ring;
    /* The signed ring whose keys those are; NULL for keys of the configuration. Borrowed for the call, as the ring is.
     */
    const char *ring_text;
    size_t ring_size;
    uint64_t ring_number;
    uint8_t ring_digest[32];
    struct gossip_address advertise;
    uint64_t epoch, seed;
    bool durable, debug_notes;   /* broker.h */
    const struct policy *policy; /* broker.h */
    struct broker_limits broker_limits;
    struct gossip_limits gossip_limits;
    struct broker_questions questions;
    struct node_ports ports;
};

struct node *node_new(const struct node_options *options, uint64_t now_ms, int64_t wall_ms);
void node_free(struct node *node);

/* An admin's key ring: gossip_take_ring(), and pumps. A broker alone refuses it. */
enum gossip_ring_verdict node_take_ring(struct node *node, uint64_t now_ms, const char *text, size_t size,
                                        char reason[160]);

/* The wall clock's reading, whenever convenient (each turn of the loop): for token expiry and the hybrid clock only. */
void node_set_wall(struct node *node, uint64_t now_ms, int64_t wall_ms);

/* broker_set_policy(), and pumps. */
bool node_set_policy(struct node *node, uint64_t now_ms, const struct policy *policy);

/* broker_why_ask() of two brokers by their names, and pumps: the answer comes with broker_next_why(). */
uint64_t node_why(struct node *node, uint64_t now_ms, const char *topic, size_t size, const char *from, const char *to);

struct broker *node_broker(struct node *node);
struct gossip *node_gossip(struct node *node); /* NULL for a broker alone */

void node_datagram(struct node *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                   size_t size);
uint64_t node_deadline_ms(const struct node *node);
void node_tick(struct node *node, uint64_t now_ms); /* ticks the cores and pumps */
/* The machine was suspended for so long, and monotonic time stood still: gossip_note_lag(). node_pump() is still due.
 */
void node_note_lag(struct node *node, uint64_t now_ms, uint64_t lag_ms);
void node_pump(struct node *node, uint64_t now_ms);
/* The part of node_pump() that a client's input can make long: what it changed in our registry rows goes to gossip. For
 * who shares out time, so that this counts for the client too; node_pump() is still due. */
void node_tell_rows(struct node *node, uint64_t now_ms);

/* Hands what the store has to keep to the port store; false if there was nothing. Each turn, after the last call into
 * the broker: what is not handed over does not become durable, and who waits for that waits. */
bool node_store(struct node *node);
/* The records up to this number are on the disk. Pumps. */
void node_durable(struct node *node, uint64_t now_ms, uint64_t number);

/* A broker that we believe has said of late that it refuses our token. */
bool node_is_refused(const struct node *node, uint64_t now_ms);

/* Leaves in order: tells the federation, ends clients and links. node_left() is true once done. */
void node_leave(struct node *node, uint64_t now_ms);
bool node_left(const struct node *node);

#endif
