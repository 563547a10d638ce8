/* Packets: written here, sealed here, counted here. The one owner of the 1,200 bytes. */
#include "gossip/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void cookie_for(const struct gossip *gossip, const struct gossip_address *address, uint8_t cookie[8]) {
    uint8_t input[16 + 19], digest[32];
    memcpy(input, gossip->secret, 16);
    size_t size = address_store(address, input + 16);
    gossip->crypto.sha256(gossip->crypto.context, input, 16 + size, digest);
    memcpy(cookie, digest, 8);
}

static bool is_proven(const struct gossip *gossip, const struct packet *packet) {
    const struct member *member = packet->member;
    /* An answer: others may have sent what it answers, with that source. */
    if (gossip->header && address_equal(&gossip->source, &packet->to)) return gossip->source_proven || gossip->greeted;
    return member && member->path_proven && address_equal(&member->path, &packet->to);
}

/* Its address is not proven. */
static bool may_reach(struct gossip *gossip, const struct packet *packet, const uint8_t cookie[8], size_t size) {
    return packet->dial ? strangers_dial(gossip, cookie, true) : strangers_spend(gossip, cookie, size);
}

/* Written last, so that what it acknowledges is as new as can be. */
static void put_header(struct gossip *gossip, const struct packet *packet, struct packet_header *header,
                       struct wire_out *out) {
    const struct member *member = packet->member;
    *header = (struct packet_header){
        .id = gossip->self->id,
        .epoch = gossip->self->epoch,
        .incarnation = gossip->self->incarnation,
        .sequence = registry_sequence(gossip->self->registry),
    };
    if (member && member->known) {
        header->holds_epoch = member->epoch;
        header->holds_incarnation = member->incarnation;
        header->holds_sequence = registry_sequence(member->registry);
    }
    bool reply = gossip->header && address_equal(&gossip->source, &packet->to);
    if (packet->to.family != ADDRESS_LINK) {
        if (reply)
            memcpy(header->cookie, gossip->source_cookie, sizeof header->cookie);
        else
            cookie_for(gossip, &packet->to, header->cookie);
    }
    if (packet->to.family == ADDRESS_LINK) memcpy(header->cookie, gossip->federation_mark, sizeof header->cookie);
    if (packet->to.family == ADDRESS_LINK)
        memset(header->echo, 0, sizeof header->echo); /* TLS has proved who is there */
    else if (reply)
        memcpy(header->echo, gossip->header->cookie, sizeof header->echo);
    else if (member && address_equal(&member->path, &packet->to))
        memcpy(header->echo, member->echo, sizeof header->echo);
    header_put(out, header);
    assert(!out->failed && out->size <= MESSAGE_HEADER_MAX);
}

void packet_begin(struct packet *packet, struct member *member, const struct gossip_address *to) {
    packet->to = *to;
    packet->member = member;
    packet->dial = false;
    packet->filled = packet->introduces = false;
    packet->class = BUDGET_MEMBERS;
    wire_out_init(&packet->out, packet->body, sizeof packet->body);
}

static void drop(struct gossip *gossip, struct queued_datagram *queued) {
    free(queued);
    gossip->counters.queue_dropped++;
}

/* A thousand who want to be let in must not make us seem dead to those who are: nothing of theirs goes before the pings
 * of these, and the answers to them. */
static enum budget_class queue_of(const struct gossip *gossip, const struct packet *packet) {
    enum budget_class class = packet->filled ? packet->class : BUDGET_PROBES;
    bool for_newcomer = !packet->member || !member_is_visible(packet->member) || (gossip->header && packet->introduces);
    return for_newcomer && class <= BUDGET_OWN ? BUDGET_NEWCOMERS : class;
}

static void enqueue(struct gossip *gossip, const struct packet *packet, const uint8_t *sealed, size_t size) {
    struct queued_datagram *queued = malloc(sizeof *queued + size);
    if (!queued) {
        gossip->counters.queue_dropped++;
        return;
    }
    queued->to = packet->to;
    queued->size = size;
    memcpy(queued->bytes, sealed, size);
    if (gossip->budget.count >= gossip->limits.datagrams_queued_max) drop(gossip, budget_take_back(&gossip->budget));
    queued->queued_ms = gossip->now_ms;
    budget_add(&gossip->budget, queue_of(gossip, packet), queued);
}

void packet_end(struct gossip *gossip, struct packet *packet, bool empty) {
    if ((!packet->filled && !empty) || packet->to.family == 0) return;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_out out;
    wire_out_init(&out, plain, sizeof plain);
    put_header(gossip, packet, &header, &out);
    memcpy(plain + out.size, packet->body, packet->out.size);
    size_t plain_size = out.size + packet->out.size;
    if (packet->to.family == ADDRESS_LINK) {
        carrier_enqueue(gossip, &packet->to, plain, plain_size);
        return;
    }
    if (!is_proven(gossip, packet) && !may_reach(gossip, packet, header.cookie, plain_size + SEAL_OVERHEAD)) return;
    uint8_t sealed[GOSSIP_DATAGRAM_MAX];
    size_t size = seal_close(&gossip->seal, &gossip->crypto, plain, plain_size, sealed);
    if (size == 0) return;
    if (gossip->header && packet->member && packet->member == gossip->sender)
        receive_may(gossip, ALLOW_ANSWERS, (uint32_t)size);
    enqueue(gossip, packet, sealed, size);
}

static bool is_own_entry(const struct gossip *gossip, const struct message *message) {
    struct wire_in in;
    struct member_id owner;
    wire_in_init(&in, message->bytes, message->size);
    wire_get_array(&in);
    wire_get_uint(&in);
    wire_get_id(&in, &owner);
    return id_equal(&owner, &gossip->self->id);
}

/* A packet is as urgent as the most urgent of its messages. */
static enum budget_class class_of(const struct gossip *gossip, const struct message *message) {
    switch (message->kind) {
    case MESSAGE_PING:
    case MESSAGE_PONG:
    case MESSAGE_PING_REQ:
    case MESSAGE_INDIRECT:
    case MESSAGE_PROVE: /* without a proof no answer counts */
    case MESSAGE_PROOF: return BUDGET_PROBES;
    case MESSAGE_HEAD:
        if (message->bytes != gossip->self->head) return BUDGET_MEMBERS;
        return gossip->header ? BUDGET_PROBES : BUDGET_OWN; /* an answer may be a refutation */
    case MESSAGE_TOKEN: return message->key == gossip->self->public_key ? BUDGET_OWN : BUDGET_MEMBERS;
    case MESSAGE_ENTRY: return is_own_entry(gossip, message) ? BUDGET_OWN : BUDGET_RUMORS;
    case MESSAGE_HAVE:
    case MESSAGE_HAD: return BUDGET_RUMORS;
    case MESSAGE_DIGEST:
    case MESSAGE_BUCKETS:
    case MESSAGE_VERSIONS:
    case MESSAGE_WANT:
    case MESSAGE_WANT_CHUNK:
    case MESSAGE_CHUNK: return BUDGET_REPAIR;
    case MESSAGE_ROLL: return message->flag && message->number == 0 ? BUDGET_MEMBERS : BUDGET_REPAIR;
    default: return BUDGET_MEMBERS;
    }
}

void packet_add(struct gossip *gossip, struct packet *packet, const struct message *message) {
    size_t before = packet->out.size;
    message_put(&packet->out, message);
    if (packet->out.failed) {
        wire_rewind(&packet->out, before);
        bool dial = packet->dial;
        struct gossip_address to = packet->to;
        packet_end(gossip, packet, false);
        packet_begin(packet, packet->member, &to);
        packet->dial = dial;
        message_put(&packet->out, message);
        assert(!packet->out.failed); /* every message fits a packet of its own */
    }
    enum budget_class class = class_of(gossip, message);
    packet->introduces = packet->introduces || (message->kind == MESSAGE_TOKEN && class == BUDGET_OWN);
    if (class < packet->class) packet->class = class;
    packet->filled = true;
}

void send_one(struct gossip *gossip, struct member *member, const struct message *message) {
    struct packet packet;
    struct gossip_address to = member_route(member);
    if (to.family == 0) return;
    packet_begin(&packet, member, &to);
    packet_add(gossip, &packet, message);
    packet_end(gossip, &packet, false);
}

static void open_reply(struct gossip *gossip) {
    if (!gossip->reply_open) packet_begin(&gossip->reply, gossip->sender, &gossip->source);
    gossip->reply_open = true;
}

void reply_add(struct gossip *gossip, const struct message *message) {
    assert(gossip->header);
    open_reply(gossip);
    packet_add(gossip, &gossip->reply, message);
}

void reply_acknowledge(struct gossip *gossip) {
    open_reply(gossip);
    gossip->reply.filled = true;
}

bool gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram) {
    struct queued_datagram *queued;
    while ((queued = budget_take_stale(&gossip->budget, gossip->now_ms)))
        drop(gossip, queued);
    queued = budget_take(&gossip->budget, gossip->now_ms);
    if (!queued) return false;
    datagram->to = queued->to;
    datagram->size = queued->size;
    memcpy(datagram->bytes, queued->bytes, queued->size);
    gossip->counters.datagrams_sent++;
    gossip->counters.bytes_sent += queued->size;
    free(queued);
    return true;
}

void outbox_free(struct gossip *gossip) {
    while (gossip->budget.count > 0)
        drop(gossip, budget_take_back(&gossip->budget));
}
