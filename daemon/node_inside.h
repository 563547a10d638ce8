/* Inside daemon/node*.c: what a node holds. Not a door. */
#ifndef DAEMON_NODE_INSIDE_H
#define DAEMON_NODE_INSIDE_H

#include "daemon/node.h"

struct node {
    struct node_ports ports;
    struct auth_trust trust; /* key NULL for a broker alone */
    struct broker *broker;
    struct gossip *gossip; /* NULL for a broker alone */
    struct member_id id;
    bool leaving;
};

/* The functions that the cores ask for, answered by auth/ with this node as context (node_crypto.c). */
struct gossip_crypto node_gossip_crypto(struct node *node);
struct peer_questions node_peer_questions(struct node *node);

/* What a gossip event says, for the log (node_log.c). */
void node_log_gossip_event(const struct node *node, const struct gossip_event *event);
void node_log_broker_note(const struct node *node, const struct broker_note *note);

#endif
