#include "daemon/node_inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(ROW_NEWPUB == (int)GOSSIP_NEWPUB && ROW_NEWSUB == (int)GOSSIP_NEWSUB,
              "kinds of rows cross from core to core as they are");
static_assert(sizeof(struct peer_id) == sizeof(struct member_id), "ids too");

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

/* ---- life ---- */

/* A broker alone has no key; its id only breaks ties between its own stamps. */
static void choose_id(struct node *node, const struct node_options *options) {
    if (options->key == NULL) {
        memcpy(node->id.bytes, &options->seed, sizeof(options->seed));
        return;
    }
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    auth_key_thumbprint(options->key, thumbprint);
    memcpy(node->id.bytes, thumbprint, sizeof(node->id.bytes));
}

static bool make_broker(struct node *node, const struct node_options *options, uint64_t now_ms) {
    struct broker_options broker = {
        .name = options->name,
        .federation = options->federation,
        .epoch = options->epoch,
        .seed = options->seed,
        .policy = options->policy,
        .durable = options->durable,
        .debug_notes = options->debug_notes,
        .limits = options->broker_limits,
        .questions = options->questions,
        .version = HOBNOB_VERSION,
    };
    memcpy(broker.id, node->id.bytes, sizeof(broker.id));
    node->broker = broker_new(&broker, now_ms);
    if (node->broker == NULL) return false;
    if (options->key == NULL) return true;
    const struct peer_questions questions = node_peer_questions(node);
    return broker_set_identity(node->broker, (const uint8_t *)options->token, options->token_size, &questions) == 0;
}

static bool make_gossip(struct node *node, const struct node_options *options, uint64_t now_ms) {
    if (options->key == NULL) return true;
    uint8_t point[GOSSIP_PUBLIC_KEY_SIZE];
    auth_key_point(options->key, point);
    struct gossip_key keys[AUTH_RING_MAX];
    for (size_t i = 0; i < options->ring->count; i++) {
        memcpy(keys[i].id, options->ring->keys[i].id, sizeof(keys[i].id));
        memcpy(keys[i].key, options->ring->keys[i].key, sizeof(keys[i].key));
    }
    struct gossip_options gossip = {
        .name = options->name,
        .federation = options->federation,
        .advertise = options->advertise,
        .epoch = options->epoch,
        .seed = options->seed,
        .public_key = point,
        .token = (const uint8_t *)options->token,
        .token_size = options->token_size,
        .keys = keys,
        .key_count = options->ring->count,
        .limits = options->gossip_limits,
        .crypto = node_gossip_crypto(node),
    };
    if (options->ring_text != NULL) {
        gossip.ring = (const uint8_t *)options->ring_text;
        gossip.ring_size = options->ring_size;
        gossip.ring_number = options->ring_number;
        memcpy(gossip.ring_digest, options->ring_digest, sizeof(gossip.ring_digest));
    }
    node->gossip = gossip_new(&gossip, now_ms);
    return node->gossip != NULL;
}

struct node *node_new(const struct node_options *options, uint64_t now_ms, int64_t wall_ms) {
    struct node *node = calloc(1, sizeof(*node));
    if (node == NULL) return NULL;
    node->ports = options->ports;
    snprintf(node->name, sizeof(node->name), "%s", options->name);
    snprintf(node->federation, sizeof(node->federation), "%s", options->federation != NULL ? options->federation : "");
    node->trust = (struct auth_trust){.key = options->key,
                                      .issuers = options->issuers,
                                      .issuer_count = options->issuer_count,
                                      .wall_s = wall_ms / 1000};
    choose_id(node, options);
    if (!make_broker(node, options, now_ms) || !make_gossip(node, options, now_ms)) {
        node_free(node);
        return NULL;
    }
    node_set_wall(node, now_ms, wall_ms);
    return node;
}

void node_free(struct node *node) {
    if (node == NULL) return;
    gossip_free(node->gossip);
    broker_free(node->broker);
    free(node);
}

void node_set_wall(struct node *node, uint64_t now_ms, int64_t wall_ms) {
    node->trust.wall_s = wall_ms / 1000;
    broker_set_wall_offset(node->broker, wall_ms - (int64_t)now_ms);
}

struct broker *node_broker(struct node *node) {
    return node->broker;
}

struct gossip *node_gossip(struct node *node) {
    return node->gossip;
}

/* ---- from core to core ---- */

static struct node_refusing *find_refusing(struct node *node, const struct member_id *id) {
    for (size_t i = 0; i < NODE_REFUSING_MAX; i++)
        if (memcmp(&node->refusing[i].id, id, sizeof(*id)) == 0) return &node->refusing[i];
    return NULL;
}

static void on_refused_us(struct node *node, uint64_t now_ms, const struct member_id *id) {
    struct node_refusing *refusing = find_refusing(node, id);
    if (refusing == NULL) {
        refusing = &node->refusing[node->refusing_next];
        node->refusing_next = (node->refusing_next + 1) % NODE_REFUSING_MAX;
    }
    *refusing = (struct node_refusing){.id = *id, .until_ms = now_ms + NODE_REFUSING_MS};
}

/* Who holds our log has checked our token: a renewed one was good. */
static void on_believes_us(struct node *node, const struct member_id *id) {
    struct node_refusing *refusing = find_refusing(node, id);
    if (refusing != NULL) refusing->until_ms = 0;
}

bool node_is_refused(const struct node *node, uint64_t now_ms) {
    struct member_info info;
    for (size_t i = 0; node->gossip != NULL && i < NODE_REFUSING_MAX; i++)
        if (node->refusing[i].until_ms > now_ms &&
            gossip_member_find(node->gossip, now_ms, &node->refusing[i].id, &info) && info.state != MEMBER_UNVERIFIED &&
            info.trouble != MEMBER_TROUBLE_TOKEN)
            return true;
    return false;
}

static void on_ring(struct node *node) {
    const uint8_t *text;
    size_t size;
    if (node->ports.save_ring != NULL && gossip_ring_held(node->gossip, &text, &size) > 0)
        node->ports.save_ring(node->ports.context, (const char *)text, size);
}

static void on_gossip_event(struct node *node, uint64_t now_ms, const struct gossip_event *event) {
    const struct peer_id peer = peer_of(&event->id);
    node_log_gossip_event(node, event);
    switch (event->kind) {
    case GOSSIP_MEMBER:
        if (event->state == MEMBER_ALIVE) broker_peer_alive(node->broker, now_ms, &peer, event->name, event->epoch);
        if (event->state == MEMBER_DOWN || event->state == MEMBER_LEFT) broker_peer_gone(node->broker, now_ms, &peer);
        break;
    case GOSSIP_ROW:
        broker_peer_row(node->broker, now_ms, &peer, (enum row_kind)event->row_kind, event->filter, event->filter_size,
                        event->active);
        break;
    case GOSSIP_KNOWS:
        on_believes_us(node, &event->id);
        broker_peer_knows(node->broker, now_ms, &peer, event->sequence);
        break;
    case GOSSIP_EPOCH:
        node->ports.save_epoch(node->ports.context, event->epoch);
        broker_set_epoch(node->broker, now_ms, event->epoch);
        break;
    case GOSSIP_REFUSED_US: on_refused_us(node, now_ms, &event->id); break;
    case GOSSIP_RING: on_ring(node); break;
    case GOSSIP_REFUSED:
    case GOSSIP_CLONED:
    case GOSSIP_CONDUCT:
    case GOSSIP_WARNING: break; /* for the log only */
    }
}

static void on_row_change(struct node *node, uint64_t now_ms, const struct broker_row_change *change) {
    const uint64_t ticket = change->ticket;
    uint64_t sequence = 0;
    if (node->gossip != NULL) {
        const enum gossip_row_kind kind = (enum gossip_row_kind)change->kind;
        sequence = change->active ? gossip_row_put(node->gossip, now_ms, kind, change->filter, change->filter_size)
                                  : gossip_row_delete(node->gossip, now_ms, kind, change->filter, change->filter_size);
    }
    broker_row_sequenced(node->broker, now_ms, ticket, sequence);
}

static bool tell_rows(struct node *node, uint64_t now_ms) {
    struct broker_row_change change;
    bool any = false;
    for (; broker_next_row(node->broker, &change); any = true)
        on_row_change(node, now_ms, &change);
    return any;
}

void node_tell_rows(struct node *node, uint64_t now_ms) {
    tell_rows(node, now_ms);
}

/* What rows let through that are wider than what they stand for: so that the dearest are not merged. */
static void tell_unwanted(struct node *node, uint64_t now_ms) {
    struct broker_unwanted unwanted;
    while (broker_next_unwanted(node->broker, &unwanted))
        if (node->gossip != NULL)
            gossip_note_unwanted(node->gossip, now_ms, (enum gossip_row_kind)unwanted.kind, unwanted.name,
                                 unwanted.size);
    for (int kind = ROW_NEWPUB; kind <= ROW_NEWSUB; kind++) {
        const uint64_t wanted = broker_wanted(node->broker, (enum row_kind)kind);
        uint64_t *told = &node->wanted_told[kind == ROW_NEWPUB ? 0 : 1];
        if (node->gossip != NULL && wanted != *told)
            gossip_note_wanted(node->gossip, now_ms, (enum gossip_row_kind)kind, wanted - *told);
        *told = wanted;
    }
}

static bool may_dial(struct node *node, uint64_t now_ms, const struct member_id *id, struct member_info *member) {
    const struct node_refusing *refusing = find_refusing(node, id);
    if (node->gossip == NULL || node->leaving || (refusing != NULL && now_ms < refusing->until_ms)) return false;
    return gossip_member_find(node->gossip, now_ms, id, member) && member->address.family != 0;
}

static void on_dial(struct node *node, uint64_t now_ms, const struct peer_id *peer) {
    const struct member_id id = member_of(peer);
    struct member_info member;
    const broker_handle link =
        may_dial(node, now_ms, &id, &member) ? broker_link_open(node->broker, now_ms, true, peer) : 0;
    if (link == 0)
        broker_dial_failed(node->broker, now_ms, peer);
    else
        node->ports.dial(node->ports.context, link, &member.address, member.name);
}

/* One round: what gossip learnt goes to the broker, what the broker wants in its rows goes to gossip, and dials go out.
 * True if anything was handed over, for that may have made more. It ends: each round uses up finite queues, and a dial
 * that failed waits for its back-off. */
static bool hand_over(struct node *node, uint64_t now_ms) {
    bool any = false;
    struct gossip_event event;
    struct peer_id peer;
    for (; node->gossip != NULL && gossip_next_event(node->gossip, &event); any = true)
        on_gossip_event(node, now_ms, &event);
    any = tell_rows(node, now_ms) || any;
    any = node_hand_over_links(node, now_ms) || any;
    for (; broker_next_dial(node->broker, now_ms, &peer); any = true)
        on_dial(node, now_ms, &peer);
    return any;
}

void node_pump(struct node *node, uint64_t now_ms) {
    const struct node_ports *ports = &node->ports;
    struct gossip_datagram datagram;
    struct broker_note note;
    broker_handle handle;
    while (hand_over(node, now_ms))
        continue;
    tell_unwanted(node, now_ms);
    while (node->gossip != NULL && gossip_next_datagram(node->gossip, &datagram))
        ports->send_datagram(ports->context, &datagram.to, datagram.bytes, datagram.size);
    while (broker_next_client(node->broker, &handle))
        ports->client_ready(ports->context, handle);
    while (broker_next_link(node->broker, &handle))
        ports->link_ready(ports->context, handle);
    while (broker_next_note(node->broker, &note))
        node_log_broker_note(node, &note);
}

/* ---- the store ---- */

bool node_store(struct node *node) {
    struct broker_journal journal;
    if (!broker_take_journal(node->broker, &journal)) return false;
    node->ports.store(node->ports.context, &journal);
    return true;
}

void node_durable(struct node *node, uint64_t now_ms, uint64_t number) {
    broker_durable(node->broker, now_ms, number);
    node_pump(node, now_ms);
}

/* ---- from outside ---- */

bool node_set_policy(struct node *node, uint64_t now_ms, const struct policy *policy) {
    const bool changed = broker_set_policy(node->broker, now_ms, policy);
    node_pump(node, now_ms);
    return changed;
}

void node_datagram(struct node *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                   size_t size) {
    if (node->gossip != NULL) gossip_receive(node->gossip, now_ms, from, bytes, size);
}

enum gossip_ring_verdict node_take_ring(struct node *node, uint64_t now_ms, const char *text, size_t size,
                                        char reason[160]) {
    if (node->gossip == NULL) {
        snprintf(reason, 160, "this broker is alone and needs no key ring: it has no listen.peers");
        return GOSSIP_RING_REFUSED;
    }
    const enum gossip_ring_verdict verdict =
        gossip_take_ring(node->gossip, now_ms, (const uint8_t *)text, size, reason);
    node_pump(node, now_ms);
    return verdict;
}

uint64_t node_deadline_ms(const struct node *node) {
    const uint64_t broker = broker_deadline_ms(node->broker);
    const uint64_t gossip = node->gossip != NULL ? gossip_deadline_ms(node->gossip) : UINT64_MAX;
    return broker < gossip ? broker : gossip;
}

void node_note_lag(struct node *node, uint64_t now_ms, uint64_t lag_ms) {
    if (node->gossip != NULL) gossip_note_lag(node->gossip, now_ms, lag_ms);
}

void node_tick(struct node *node, uint64_t now_ms) {
    broker_tick(node->broker, now_ms);
    if (node->gossip != NULL) gossip_tick(node->gossip, now_ms);
    node_pump(node, now_ms);
}

/* Clients go first: what they still publish is refused, so that the last word to the federation is true when it is
 * said. */
void node_leave(struct node *node, uint64_t now_ms) {
    if (node->leaving) return;
    node->leaving = true;
    broker_stop(node->broker, now_ms);
    if (node->gossip != NULL) gossip_leave(node->gossip, now_ms);
    node_pump(node, now_ms);
}

bool node_left(const struct node *node) {
    return node->leaving && (node->gossip == NULL || gossip_left(node->gossip));
}
