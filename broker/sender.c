#include "broker/carry.h"
#include "broker/ledger.h"
#include "broker/queues.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void link_wake(struct federation *federation, struct link *link) {
    if (!link || link->is_ready) return;
    link->is_ready = true;
    DL_APPEND2(federation->ready, link, ready_prev, ready_next);
}

void sender_drop_controls(struct link *link) {
    struct control *control, *next;
    DL_FOREACH_SAFE(link->controls, control, next) {
        free(control);
    }
    link->controls = NULL;
    link->control_bytes = 0;
}

/* The frame joins the queue. False when memory is short. */
static bool enqueue(struct federation *federation, struct link *link, const struct frame_out *frame, uint64_t after) {
    struct control *control = frame->failed ? NULL : malloc(sizeof *control + frame->size);
    if (!control) return false;
    control->after = after;
    control->size = frame->size;
    memcpy(control->bytes, frame->bytes, frame->size);
    DL_APPEND(link->controls, control);
    link->control_bytes += frame->size;
    link_wake(federation, link);
    return true;
}

void sender_frame(struct federation *federation, struct link *link, const struct frame_out *frame, uint64_t after) {
    if (link->state == LINK_CLOSING) return;
    if (!enqueue(federation, link, frame, after))
        link_end(federation, link, BYE_OVERLOAD, "short of memory");
    else if (link->control_bytes > LINK_CONTROL_MAX)
        link_end(federation, link, BYE_OVERLOAD, "too many frames wait for you");
}

struct frame_out *sender_begin(struct link *link, enum frame_type type, uint64_t number) {
    frame_begin_names(&link->scratch, type, number);
    return &link->scratch;
}

void sender_end(struct federation *federation, struct link *link, uint64_t after) {
    frame_end_items(&link->scratch);
    sender_frame(federation, link, &link->scratch, after);
}

void sender_name(struct federation *federation, struct link *link, enum frame_type type, uint64_t number,
                 const char *text, size_t size) {
    frame_add_name(sender_begin(link, type, number), text, size);
    sender_end(federation, link, 0);
}

void sender_plain(struct federation *federation, struct link *link, enum frame_type type) {
    frame_write_plain(&link->scratch, type);
    sender_frame(federation, link, &link->scratch, 0);
}

void sender_why(struct federation *federation, struct link *link, const struct inquiry *inquiry) {
    frame_write_why(&link->scratch, inquiry);
    sender_frame(federation, link, &link->scratch, 0);
}

void sender_bye(struct federation *federation, struct link *link, enum bye_code code, const char *reason) {
    frame_write_bye(&link->scratch, code, reason);
    enqueue(federation, link, &link->scratch, 0);
}

void sender_hello(struct federation *federation, struct link *link) {
    struct hello hello = {
        .protocol_min = LINK_PROTOCOL_MIN,
        .protocol_max = LINK_PROTOCOL_MAX,
        .name = federation->name,
        .name_size = strlen(federation->name),
        .federation = federation->federation,
        .federation_size = strlen(federation->federation),
        .epoch = federation->epoch,
        .token = federation->token,
        .token_size = federation->token_size,
        .frame_size_max = (uint64_t)federation->limits.packet_size_max + LINK_FRAME_SLACK,
    };
    memcpy(hello.id, federation->id.bytes, sizeof hello.id);
    const struct peer *peer = link->peer;
    if (peer) {
        hello.stream = peer->stream;
        hello.first = peer->outbox.base;
        hello.seen_epoch = peer->taken.epoch;
        hello.seen_stream = peer->taken.stream;
        hello.expected = taken_safe(federation, link->peer);
    }
    frame_write_hello(&link->scratch, &hello);
    sender_frame(federation, link, &link->scratch, 0);
}

bool sender_publish(struct federation *federation, struct peer *peer, struct message *message, struct aims *aims,
                    bool kept) {
    enum outbox_result result = queues_put(federation, peer, message);
    if (result == OUTBOX_NO_MEMORY) ledger_dropped(federation, peer, LINK_AT_MEMORY, 1);
    if (result != OUTBOX_OK) {
        peer->snapshot_lost |= message->retain;
        free(aims);
        return false;
    }
    if (aims) outbox_aim(&peer->outbox, aims);
    if (kept) kept_publication(federation, peer);
    if (peer->link)
        link_wake(federation, peer->link);
    else
        peer_want_link(federation, peer);
    return true;
}

/* Its expiry interval is over, and nobody needs it any more: of a delete others must learn however late it is. */
static bool is_late(const struct message *message, uint64_t expiry_s) {
    return expiry_s == 0 && !(message->retain && message->payload_size == 0);
}

static uint64_t frame_part(const struct outbox_entry *entry) {
    const struct message *message = entry->message;
    return (uint64_t)message->topic_size + message->payload_size + message->properties_size +
           FRAME_PUBLICATION_OVERHEAD + (entry->aims ? FRAME_GROUP_OVERHEAD(entry->aims->size) : 0);
}

/* Gives up what cannot be sent, or need not any more. */
static void review(struct federation *federation, struct link *link, struct outbox_entry *entry, uint64_t expiry_s) {
    struct peer *peer = link->peer;
    if (is_late(entry->message, expiry_s))
        ledger_given_up(peer, GIVEN_UP_EXPIRED, 1);
    else if (frame_part(entry) + FRAME_PUBLISH_OVERHEAD > link->frame_size_max)
        ledger_dropped(federation, peer, LINK_AT_FRAME_SIZE, 1);
    else
        return;
    outbox_give_up(&peer->outbox, peer->outbox.next);
}

/* Adds the entry to the frame; false if it has to wait for the next frame. */
static bool add_entry(struct federation *federation, struct link *link, struct outbox_entry *entry) {
    struct frame_out *out = &link->out;
    uint64_t expiry_s = entry->message ? message_expiry_left_s(entry->message, federation->now_ms) : 0;
    if (entry->message) review(federation, link, entry, expiry_s);
    if (entry->message && out->item_count > 0 && out->size + frame_part(entry) > link->frame_size_max) return false;
    if (entry->message)
        frame_add_publication(out, entry->message, entry->aims, entry->snapshot, expiry_s);
    else
        frame_add_skipped(out);
    ledger_sent(link->peer, entry);
    return true;
}

/* A batch of what is next, not beyond the number that a waiting frame must follow. */
static void next_publish(struct federation *federation, struct link *link) {
    struct outbox *outbox = &link->peer->outbox;
    uint64_t first = outbox->next, limit = link->controls ? link->controls->after : UINT64_MAX;
    frame_begin_publish(&link->out, first);
    if (first == outbox->base) link->peer->unacked_ms = federation->now_ms;
    while (!link->out.failed && link->out.size < federation->limits.link_frame_bytes && outbox->next < limit &&
           kept_may_send(federation, link->peer) && add_entry(federation, link, outbox_peek(outbox)))
        outbox_sent(outbox);
    frame_end_items(&link->out);
}

/* What was not said yet and may be. The rest waits for the store. */
static bool next_ack(const struct federation *federation, struct link *link) {
    uint64_t safe = taken_safe(federation, link->peer);
    bool is_new = safe > link->acked;
    link->ack_ms = UINT64_MAX;
    link->ack_bytes = 0;
    link->ack_waits = safe < link->peer->taken.expected;
    link->acked = safe;
    if (is_new) frame_write_ack(&link->out, safe);
    return is_new;
}

void senders_durable(struct federation *federation) {
    struct link *link;
    DL_FOREACH(federation->links, link) {
        if (link->state != LINK_UP) continue;
        bool acks = link->ack_waits && taken_safe(federation, link->peer) > link->acked;
        if (acks) link->ack_ms = federation->now_ms;
        if (acks || outbox_peek(&link->peer->outbox)) link_wake(federation, link);
    }
}

static void next_control(struct link *link) {
    struct control *control = link->controls;
    DL_DELETE(link->controls, control);
    link->control_bytes -= control->size;
    frame_out_deinit(&link->out);
    /* The frame moves into the output as it is: no allocation that could fail here. */
    size_t size = control->size;
    memmove(control, control->bytes, size);
    link->out = (struct frame_out){.bytes = (uint8_t *)control, .size = size, .capacity = size};
}

static bool sent_or_ended(struct federation *federation, struct link *link) {
    if (!link->out.failed) return true;
    link_end(federation, link, BYE_OVERLOAD, "short of memory");
    return false;
}

bool sender_next(struct federation *federation, struct link *link) {
    struct control *control = link->controls;
    bool up = link->state == LINK_UP;
    /* A frame of gossip and one of everything else in turn, so that neither waits long for the other. */
    bool carries = up && !link->carry_had_turn && carry_next(federation, link);
    link->carry_had_turn = carries;
    if (carries) return sent_or_ended(federation, link);
    if (up && link->ack_ms <= federation->now_ms && next_ack(federation, link)) return sent_or_ended(federation, link);
    if (control && (!up || control->after <= link->peer->outbox.next))
        next_control(link);
    else if (up && kept_may_send(federation, link->peer))
        next_publish(federation, link);
    else if (!up || !carry_next(federation, link))
        return false;
    return sent_or_ended(federation, link);
}
