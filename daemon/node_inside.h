/* Inside daemon/node*.c: what a node holds. Not a door. */
#ifndef DAEMON_NODE_INSIDE_H
#define DAEMON_NODE_INSIDE_H

#include "auth/signed_ring.h"
#include "daemon/node.h"

#define NODE_REFUSING_MAX 64u
#define NODE_REFUSING_MS 70000u /* gossip says it again each minute while it lasts */

/* A peer that refuses our token: to dial it would only fill its log and ours. */
struct node_refusing {
    struct member_id id;
    uint64_t until_ms;
};

#define NODE_SEEKS_MAX 8u /* dials to addresses of which nobody knows who is there */

struct node_seek {
    broker_handle link;
    struct gossip_address address;
};

struct node {
    struct node_ports ports;
    struct auth_trust trust; /* key NULL for a broker alone */
    struct broker *broker;
    struct gossip *gossip; /* NULL for a broker alone */
    struct member_id id;
    char name[GOSSIP_NAME_MAX + 1], federation[AUTH_FEDERATION_MAX + 1];
    bool leaving;
    uint64_t wanted_told[2]; /* newpub, newsub */
    size_t refusing_next;    /* the slot used next; the oldest is forgotten */
    struct node_refusing refusing[NODE_REFUSING_MAX];
    size_t seek_next;
    struct node_seek seeks[NODE_SEEKS_MAX];
};

/* Between gossip and the links that the broker has: packets, what is up, what is wanted (node_links.c). True if
 * anything was handed over. */
bool node_hand_over_links(struct node *node, uint64_t now_ms);

/* The functions that the cores ask for, answered by auth/ with this node as context (node_crypto.c). */
struct gossip_crypto node_gossip_crypto(struct node *node);
struct peer_questions node_peer_questions(struct node *node);

/* What a gossip event says, for the log (node_log.c). */
void node_log_gossip_event(const struct node *node, const struct gossip_event *event);
void node_log_broker_note(const struct node *node, const struct broker_note *note);

#endif
