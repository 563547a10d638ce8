/* Gossip over links: the broker has the links, gossip uses them. */
#include "daemon/node_inside.h"

#include <string.h>

static struct peer_id peer_of(const struct member_id *id) {
    struct peer_id peer;
    memcpy(peer.bytes, id->bytes, sizeof(peer.bytes));
    return peer;
}

static struct member_id member_of(const struct peer_id *peer) {
    struct member_id id;
    memcpy(id.bytes, peer->bytes, sizeof(id.bytes));
    return id;
}

static void on_found(struct node *node, uint64_t now_ms, broker_handle link, const struct member_id *id) {
    for (size_t i = 0; i < NODE_SEEKS_MAX; i++)
        if (node->seeks[i].link == link) gossip_link_found(node->gossip, now_ms, &node->seeks[i].address, id);
}

static void on_carried(struct node *node, uint64_t now_ms, const struct broker_carried *carried) {
    const struct member_id id = member_of(&carried->peer);
    switch (carried->kind) {
    case CARRIED_UP: gossip_link_up(node->gossip, now_ms, &id); break;
    case CARRIED_DOWN: gossip_link_down(node->gossip, now_ms, &id); break;
    case CARRIED_FOUND: on_found(node, now_ms, carried->link, &id); break;
    case CARRIED_PACKET: gossip_link_receive(node->gossip, now_ms, &id, carried->bytes, carried->size); break;
    }
}

static void seek(struct node *node, uint64_t now_ms, const struct gossip_address *address) {
    const broker_handle link = node->leaving ? 0 : broker_link_open(node->broker, now_ms, true, NULL);
    if (link == 0) return; /* gossip asks again */
    node->seeks[node->seek_next] = (struct node_seek){.link = link, .address = *address};
    node->seek_next = (node->seek_next + 1) % NODE_SEEKS_MAX;
    node->ports.dial(node->ports.context, link, address, "whoever answers");
}

static void on_wish(struct node *node, uint64_t now_ms, const struct gossip_link_wish *wish) {
    const struct peer_id peer = peer_of(&wish->id);
    if (wish->kind == GOSSIP_LINK_DIAL)
        seek(node, now_ms, &wish->address);
    else
        broker_peer_keep(node->broker, now_ms, &peer, wish->for_ms);
}

static void on_packet(struct node *node, uint64_t now_ms, const struct gossip_link_packet *packet) {
    const struct peer_id peer = peer_of(&packet->to);
    if (!broker_carry(node->broker, now_ms, &peer, packet->bytes, packet->size))
        gossip_link_down(node->gossip, now_ms, &packet->to);
}

bool node_hand_over_links(struct node *node, uint64_t now_ms) {
    bool any = false;
    struct broker_carried carried;
    struct gossip_link_packet packet;
    struct gossip_link_wish wish;
    if (node->gossip == NULL) return false;
    for (; broker_next_carried(node->broker, &carried); any = true)
        on_carried(node, now_ms, &carried);
    for (; gossip_next_link_packet(node->gossip, &packet); any = true)
        on_packet(node, now_ms, &packet);
    for (; gossip_next_link_wish(node->gossip, &wish); any = true)
        on_wish(node, now_ms, &wish);
    return any;
}
