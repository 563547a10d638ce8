#include "broker/link.h"

#include "broker/carry.h"
#include "broker/compare.h"
#include "broker/group.h"
#include "broker/stock.h"
#include "broker/interest.h"
#include "broker/ledger.h"
#include "broker/props.h"
#include "broker/replay.h"
#include "broker/topic.h"
#include "broker/unwanted.h"
#include "broker/why_inside.h"

#include <string.h>

void link_on_bye(struct federation *federation, struct link *link, const struct frame *frame) {
    char reason[256];
    size_t size = frame->reason_size < sizeof reason ? frame->reason_size : sizeof reason - 1;
    for (size_t i = 0; i < size; i++)
        reason[i] = frame->reason[i] >= ' ' && frame->reason[i] < 0x7f ? frame->reason[i] : '?';
    reason[size] = 0;
    if (frame->code == BYE_CLOSING || frame->code == BYE_DUPLICATE)
        link_note(federation, BROKER_NOTE_DEBUG, link, "closed by it", reason);
    else if (frame->code == BYE_GONE)
        link_note(federation, BROKER_NOTE_INFO, link, "closed by it", reason);
    else
        link_note(federation, link_refusal_level(federation, link_far_name(link), reason), link,
                  "refused or ended by it", reason);
    link_end(federation, link, 0, "");
}

void link_no_room(struct federation *federation, struct link *link) {
    link_note(federation, BROKER_NOTE_WARNING, link, "closed", "no room for the retained messages it joins");
    link_end(federation, link, BYE_OVERLOAD, "no room for the retained messages you join");
}

/* One joined frame for all that went well, behind their snapshots. */
static void confirm_joins(struct federation *federation, struct link *link, struct frame joins) {
    struct peer *peer = link->peer;
    const char *filter;
    size_t size;
    struct frame_out *out = sender_begin(link, FRAME_JOINED, JOINED_YES);
    for (struct frame frame = joins; frame_next_name(&frame, &filter, &size);) {
        if (group_status(peer, filter, size) == JOINED_YES) frame_add_name(out, filter, size);
    }
    if (out->item_count > 0) sender_end(federation, link, peer->outbox.end);
}

/* One for each that did not. */
static void refuse_joins(struct federation *federation, struct link *link, struct frame joins) {
    const char *filter;
    size_t size;
    while (link->state == LINK_UP && frame_next_name(&joins, &filter, &size)) {
        enum joined_status status = group_status(link->peer, filter, size);
        if (status != JOINED_YES) sender_name(federation, link, FRAME_JOINED, status, filter, size);
    }
}

static void on_keep(struct federation *federation, struct link *link, struct frame *frame) {
    enum keep_level level = frame->code < KEEP_LASTING ? (enum keep_level)frame->code : KEEP_LASTING;
    const char *filter;
    size_t size;
    while (frame_next_name(frame, &filter, &size))
        group_keep(federation, link->peer, filter, size, level);
}

static void on_join(struct federation *federation, struct link *link, struct frame *frame) {
    struct peer *peer = link->peer;
    struct frame copy = *frame;
    const char *filter;
    size_t size;
    for (struct frame check = *frame; frame_next_name(&check, &filter, &size);) {
        if (!topic_filter_valid(filter, size)) {
            link_malformed(federation, link, "joins what is no filter");
            return;
        }
    }
    uint32_t mark = compare_new(federation, link, frame);
    if (link->state != LINK_UP) return;
    while (frame_next_name(frame, &filter, &size)) {
        size_t inner = topic_share_split(filter, size);
        unwanted_note_join(federation, filter + inner, size - inner);
        if (group_join(federation, peer, filter, size, mark) != GROUP_OK) {
            link_no_room(federation, link);
            return;
        }
    }
    refuse_joins(federation, link, copy);
    if (link->state != LINK_UP) return;
    if (mark != 0)
        compare_begin(federation, link, mark);
    else
        confirm_joins(federation, link, copy);
}

static void on_members(struct federation *federation, struct link *link, struct frame *frame) {
    struct frame_members members;
    while (frame_next_members(frame, &members))
        group_members(federation, link->peer, &members);
}

static void on_leave(struct federation *federation, struct link *link, struct frame *frame) {
    const char *filter;
    size_t size;
    while (frame_next_name(frame, &filter, &size))
        group_leave(federation, link->peer, filter, size);
    compare_go_on(federation, link);
}

static void on_joined(struct federation *federation, struct link *link, struct frame *frame) {
    const char *filter;
    size_t size;
    link->peer->rejoins = false; /* they were left before */
    enum joined_status status = frame->code < JOINED_FULL ? (enum joined_status)frame->code : JOINED_FULL;
    while (frame_next_name(frame, &filter, &size))
        interest_joined(federation, link->peer, filter, size, status);
}

static void on_invite(struct federation *federation, struct link *link, struct frame *frame) {
    const char *topic;
    size_t size;
    while (link->state == LINK_UP && frame_next_name(frame, &topic, &size)) {
        if (!topic_name_valid(topic, size)) {
            link_malformed(federation, link, "invites to what is no topic");
            return;
        }
        link->peer->totals.invites_received++;
        bool imported = policy_lets(&link->peer->rules, POLICY_IMPORT, topic, size);
        size_t joined = imported ? interest_invited(federation, link->peer, topic, size) : 0;
        if (link->state != LINK_UP) break;
        if (imported && joined == 0) unwanted_note(federation, ROW_NEWSUB, topic, size);
        /* To who holds it for several joins, that these were all. */
        if (joined == 0 || federation->group_count > 0)
            sender_name(federation, link, FRAME_DECLINE, joined == 0 ? PEER_DECLINE_MAX_MS : 0, topic, size);
    }
}

static void on_decline(struct federation *federation, struct link *link, struct frame *frame) {
    const char *topic;
    size_t size;
    while (frame_next_name(frame, &topic, &size))
        replay_declined(federation, link->peer, topic, size, frame->ttl_ms);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Borrowed, from the frame. */
static struct message message_of(const struct federation *federation, const struct peer *peer,
                                 const struct publication *publication) {
    struct message message = {
        .qos = publication->qos,
        .retain = publication->retain,
        .topic_size = (uint32_t)publication->topic_size,
        .payload_size = (uint32_t)publication->payload_size,
        .properties_size = (uint32_t)publication->properties_size,
        .topic = publication->topic,
        .payload = publication->payload,
        .properties = publication->properties,
        .expires_at_ms = message_expires_at_ms(federation->now_ms, publication->expiry_s),
    };
    if (publication->retain) {
        message.stamp.wall_ms = publication->stamp_wall_ms;
        message.stamp.count = publication->stamp_count;
    }
    /* What comes for a group may have to go back. */
    if (publication->retain || (publication->group_count > 0 && !publication->returned))
        memcpy(message.stamp.origin, peer->id.bytes, sizeof message.stamp.origin);
    return message;
}

/* From the far future: it is delivered, and not retained. */
static bool is_stamped_badly(struct federation *federation, const struct peer *peer,
                             const struct publication *publication) {
    static const char reason[] = "its retained messages are stamped in the far future; set the clock of its host";
    if (!publication->retain ||
        broker_clock_believes(federation->broker, federation->now_ms, publication->stamp_wall_ms))
        return false;
    broker_note_add(federation->broker, link_refusal_level(federation, peer->name, reason), "%s: %s", peer->name,
                    reason);
    return true;
}

/* It may well be what we have joined, as a filter is joined as a whole. */
static void refuse(struct federation *federation, struct peer *peer, const struct publication *publication) {
    static const char reason[] = "sends what federation.import or private_topics here do not take from it; it is "
                                 "dropped, and not sent at all with a federation.export there";
    peer->totals.refused++;
    enum broker_note_level level = link_refusal_level(federation, peer->name, reason);
    broker_note_add(federation->broker, level == BROKER_NOTE_WARNING ? BROKER_NOTE_INFO : level, "%s %s: topic '%.*s'",
                    peer->name, reason, publication->topic_size < 100 ? (int)publication->topic_size : 100,
                    publication->topic);
}

/* Members elsewhere may get it. Once, as they may be refused it too. */
static void give_back(struct federation *federation, const struct peer *peer, struct publication publication) {
    if (publication.group_count == 0 || publication.returned || publication.again) return;
    struct message message = message_of(federation, peer, &publication);
    const char *group;
    size_t size;
    while (message_keep(&message) && publication_next_group(&publication, &group, &size))
        federation_return(federation, federation->now_ms, &message, group, size);
    message_return(&message);
}

static enum peer_taken hand_on(struct federation *federation, struct peer *peer, struct message *message,
                               const struct publication *publication) {
    if (publication->snapshot) return broker_merge_retained(federation->broker, federation->now_ms, message);
    if (publication->returned) {
        memcpy(message->stamp.origin, federation->id.bytes, sizeof message->stamp.origin);
        return broker_deliver_again(federation->broker, federation->now_ms, message, &peer->subscriber, publication);
    }
    return broker_deliver_from_peer(federation->broker, federation->now_ms, message, publication);
}

/* What is not taken is as if it had not come. */
static enum peer_taken take_publication(struct federation *federation, struct peer *peer,
                                        const struct publication *given) {
    struct publication plain = *given;
    const struct publication *publication = &plain;
    if (publication->skipped) {
        peer->totals.received_as_nil++;
        return PEER_TAKEN;
    }
    if (!policy_lets(&peer->rules, POLICY_IMPORT, publication->topic, publication->topic_size)) {
        refuse(federation, peer, publication);
        give_back(federation, peer, *publication);
        return PEER_TAKEN;
    }
    if (is_stamped_badly(federation, peer, publication)) {
        if (publication->snapshot) {
            peer->totals.refused++;
            return PEER_TAKEN;
        }
        plain.retain = false;
    }
    struct message message = message_of(federation, peer, publication);
    if (publication->retain) broker_clock_seen(federation->broker, federation->now_ms, &message.stamp);
    enum peer_taken taken = hand_on(federation, peer, &message, publication);
    message_return(&message);
    if (taken == PEER_TAKEN) {
        peer->totals.publications_received++;
        wanted_note(federation, ROW_NEWSUB);
    }
    return taken;
}

/* What is passed on to clients as it stands has to be what a publisher may send. */
static bool properties_valid(const struct publication *publication) {
    struct mqtt_view block = {publication->properties, (uint32_t)publication->properties_size};
    struct reader reader = props_reader(block);
    struct prop prop;
    if (publication->properties_size == 0) return true;
    if (props_check(MQTT_PUBLISH, block) != MQTT_SUCCESS) return false;
    while (props_next(&reader, &prop)) {
        if (prop_is_for_this_hop(prop.id)) return false;
    }
    return true;
}

static bool groups_valid(struct publication publication) {
    const char *group;
    size_t size;
    while (publication_next_group(&publication, &group, &size)) {
        size_t inner = topic_share_split(group, size);
        if (inner == 0 || !topic_matches(group + inner, size - inner, publication.topic, publication.topic_size))
            return false;
    }
    return true;
}

/* Takes them in their order up to the first that has to wait: from then on none of this link is taken. False if the
 * link has ended. */
static bool take_all(struct federation *federation, struct link *link, struct frame *frame) {
    struct peer *peer = link->peer;
    struct publication publication;
    for (uint64_t sequence = frame->sequence; frame_next_publication(frame, &publication); sequence++) {
        if (sequence < peer->taken.expected) {
            ledger_late(federation, peer, sequence);
            continue;
        }
        switch (take_publication(federation, peer, &publication)) {
        case PEER_TAKEN: break;
        case PEER_TAKEN_NO_MEMORY: link_end(federation, link, BYE_OVERLOAD, "short of memory"); return false;
        case PEER_TAKEN_LATER:
            link->is_behind = true;
            link->behind_ms = federation->now_ms + LINK_BEHIND_MS;
            link_set_timer(federation, link);
            return true;
        }
        ledger_reached(federation, peer, sequence);
        peer->taken.expected = sequence + 1;
    }
    return true;
}

static void on_publish(struct federation *federation, struct link *link, struct frame *frame, size_t frame_size) {
    struct publication publication;
    for (struct frame check = *frame; frame_next_publication(&check, &publication);) {
        if (!publication.skipped && !(topic_name_valid(publication.topic, publication.topic_size) &&
                                      properties_valid(&publication) && groups_valid(publication))) {
            link_malformed(federation, link, "a publication that no client could have made");
            return;
        }
    }
    if (link->is_behind) return;
    struct peer *peer = link->peer; /* which the link has no more when it ends */
    uint64_t before = broker_last_record(federation->broker);
    bool goes_on = take_all(federation, link, frame);
    taken_note(federation, peer, before);
    if (!goes_on) return;
    link->ack_bytes += frame_size;
    uint64_t due =
        link->ack_bytes >= LINK_ACK_BYTES ? federation->now_ms : least(link->ack_ms, federation->now_ms + LINK_ACK_MS);
    if (due < link->ack_ms) {
        link->ack_ms = due;
        link_set_timer(federation, link);
        if (due <= federation->now_ms) link_wake(federation, link);
    }
}

static void on_ack(struct federation *federation, struct link *link, uint64_t expected) {
    struct peer *peer = link->peer;
    uint64_t base = peer->outbox.base;
    if (!outbox_acknowledge(&peer->outbox, expected))
        link_malformed(federation, link, "acknowledges publications that were not sent");
    else if (peer->outbox.base > base)
        peer->acked_ms = peer->unacked_ms = federation->now_ms;
}

void link_on_frame(struct federation *federation, struct link *link, struct frame *frame, size_t size) {
    switch (frame->type) {
    case FRAME_HELLO: link_malformed(federation, link, "a second hello"); break;
    case FRAME_BYE: link_on_bye(federation, link, frame); break;
    case FRAME_JOIN: on_join(federation, link, frame); break;
    case FRAME_LEAVE: on_leave(federation, link, frame); break;
    case FRAME_JOINED: on_joined(federation, link, frame); break;
    case FRAME_SYNCED:
        peer_synced(federation, link->peer);
        link->peer->backoff_ms = BACKOFF_MIN_MS;
        break;
    case FRAME_PUBLISH: on_publish(federation, link, frame, size); break;
    case FRAME_ACK: on_ack(federation, link, frame->sequence); break;
    case FRAME_INVITE: on_invite(federation, link, frame); break;
    case FRAME_DECLINE: on_decline(federation, link, frame); break;
    case FRAME_PING: sender_plain(federation, link, FRAME_PONG); break;
    case FRAME_PONG: break;
    case FRAME_GOSSIP: carry_on_frame(federation, link, frame); break;
    case FRAME_KEEP: on_keep(federation, link, frame); break;
    case FRAME_WHY: why_on_inquiry(federation, link, &frame->inquiry); break;
    case FRAME_BECAUSE: why_on_answer(federation, link->peer, frame); break;
    case FRAME_HOLDS: compare_holds(federation, link, &frame->digests); break;
    case FRAME_COMPARE: stock_compare(federation, link, &frame->digests); break;
    case FRAME_COMPARED: compare_answered(federation, link, &frame->digests); break;
    case FRAME_MEMBERS: on_members(federation, link, frame); break;
    }
}
