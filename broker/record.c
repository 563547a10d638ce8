#include "broker/record.h"

#include <stdlib.h>
#include <string.h>

/* One walk over the fields of a record serves three purposes, so that writing and reading cannot disagree. */
enum purpose { MEASURE, WRITE, READ };
struct walk {
    enum purpose purpose;
    uint8_t *out;      /* WRITE: where the next field goes */
    const uint8_t *at; /* READ */
    size_t left;       /* READ: bytes from there on */
    size_t size;       /* MEASURE: so far */
    bool unsound;      /* READ */
};

static void pass(struct walk *walk, void *field, size_t size) {
    switch (walk->purpose) {
    case MEASURE: walk->size += size; return;
    case WRITE:
        memcpy(walk->out, field, size);
        walk->out += size;
        return;
    case READ:
        if (walk->left < size) {
            walk->unsound = true;
            walk->left = 0;
            return;
        }
        memcpy(field, walk->at, size);
        walk->at += size;
        walk->left -= size;
        return;
    }
}

static void pass_bool(struct walk *walk, bool *field) {
    uint8_t value = *field;

    pass(walk, &value, 1);
    if (walk->purpose != READ) return;
    if (value > 1) walk->unsound = true;
    *field = value == 1;
}

static void pass_text(struct walk *walk, struct record_text *text) {
    uint32_t size = (uint32_t)text->size;

    pass(walk, &size, sizeof size);
    if (walk->purpose != READ) {
        if (text->size > 0) pass(walk, (void *)(uintptr_t)text->bytes, text->size);
        return;
    }
    if (walk->left < size) {
        walk->unsound = true;
        walk->left = size = 0;
    }
    *text = (struct record_text){.bytes = size > 0 ? walk->at : NULL, .size = size};
    if (size > 0) walk->at += size;
    walk->left -= size;
}

static void pass_publication(struct walk *walk, struct record_publication *publication) {
    pass_text(walk, &publication->topic);
    pass_text(walk, &publication->payload);
    pass_text(walk, &publication->properties);
    pass(walk, &publication->qos, sizeof publication->qos);
    pass_bool(walk, &publication->retain);
    pass(walk, &publication->expires_wall_ms, sizeof publication->expires_wall_ms);
}

static void pass_session(struct walk *walk, struct record *record) {
    pass(walk, &record->session, sizeof record->session);
    pass_text(walk, &record->client_id);
    pass_text(walk, &record->user_name);
    pass(walk, &record->expiry_s, sizeof record->expiry_s);
    pass(walk, &record->ends_wall_ms, sizeof record->ends_wall_ms);
    pass_bool(walk, &record->has_will);
    if (!record->has_will) return;
    pass_publication(walk, &record->will);
    pass(walk, &record->will_delay_s, sizeof record->will_delay_s);
    pass(walk, &record->will_expiry_s, sizeof record->will_expiry_s);
    pass(walk, &record->will_due_wall_ms, sizeof record->will_due_wall_ms);
}

static void pass_subscription(struct walk *walk, struct record *record) {
    pass(walk, &record->session, sizeof record->session);
    pass_text(walk, &record->filter);
    if (record->type == RECORD_SUBSCRIPTION_END) return;
    pass(walk, &record->options, sizeof record->options);
    pass(walk, &record->identifier, sizeof record->identifier);
}

static void pass_outgoing(struct walk *walk, struct record *record) {
    pass(walk, &record->session, sizeof record->session);
    pass(walk, &record->position, sizeof record->position);
    if (record->type == RECORD_SENT || record->type == RECORD_QUEUED)
        pass(walk, &record->packet_id, sizeof record->packet_id);
    if (record->type != RECORD_QUEUED) return;
    pass(walk, &record->message, sizeof record->message);
    pass(walk, &record->qos, sizeof record->qos);
    pass_bool(walk, &record->retain);
    pass_bool(walk, &record->released);
    pass_text(walk, &record->identifiers);
    if (record->identifiers.size % sizeof(uint32_t) != 0) walk->unsound = true;
}

static void pass_stamp(struct walk *walk, struct record_publication *publication) {
    pass(walk, &publication->stamp_wall_ms, sizeof publication->stamp_wall_ms);
    pass(walk, &publication->stamp_count, sizeof publication->stamp_count);
    pass(walk, publication->stamp_origin, sizeof publication->stamp_origin);
}

static void pass_retained(struct walk *walk, struct record *record) {
    struct record_publication *publication = &record->publication;

    pass_publication(walk, publication);
    pass_stamp(walk, publication);
    pass(walk, &record->publisher, sizeof record->publisher);
}

static void pass_taken(struct walk *walk, struct record *record) {
    pass(walk, record->peer, sizeof record->peer);
    if (record->type == RECORD_TAKEN_END) return;
    pass(walk, &record->peer_epoch, sizeof record->peer_epoch);
    pass(walk, &record->stream, sizeof record->stream);
    pass(walk, &record->expected, sizeof record->expected);
}

static void pass_peer(struct walk *walk, struct record *record) {
    pass(walk, record->peer, sizeof record->peer);
    if (record->type == RECORD_PEER_END) return;
    pass_text(walk, &record->peer_name);
    pass(walk, &record->peer_epoch, sizeof record->peer_epoch);
    pass(walk, &record->stream, sizeof record->stream);
    pass(walk, &record->reserved, sizeof record->reserved);
    pass(walk, &record->ends_wall_ms, sizeof record->ends_wall_ms);
}

static void pass_join(struct walk *walk, struct record *record) {
    pass(walk, record->peer, sizeof record->peer);
    pass_text(walk, &record->filter);
    if (record->type == RECORD_JOIN) pass(walk, &record->level, sizeof record->level);
}

static void pass_outbox(struct walk *walk, struct record *record) {
    pass(walk, record->peer, sizeof record->peer);
    pass(walk, &record->sequence, sizeof record->sequence);
    if (record->type == RECORD_OUTBOX_END) {
        pass(walk, &record->below, sizeof record->below);
        return;
    }
    pass(walk, &record->message, sizeof record->message);
    pass_text(walk, &record->aims);
}

static void pass_fields(struct walk *walk, struct record *record) {
    switch (record->type) {
    case RECORD_RESET: break;
    case RECORD_SESSION: pass_session(walk, record); break;
    case RECORD_SESSION_END: pass(walk, &record->session, sizeof record->session); break;
    case RECORD_SUBSCRIPTION:
    case RECORD_SUBSCRIPTION_END: pass_subscription(walk, record); break;
    case RECORD_MESSAGE:
        pass(walk, &record->message, sizeof record->message);
        pass_publication(walk, &record->publication);
        pass_stamp(walk, &record->publication);
        pass(walk, &record->publisher, sizeof record->publisher);
        break;
    case RECORD_MESSAGE_END: pass(walk, &record->message, sizeof record->message); break;
    case RECORD_QUEUED:
    case RECORD_SENT:
    case RECORD_RELEASED:
    case RECORD_DONE: pass_outgoing(walk, record); break;
    case RECORD_RECEIVED:
    case RECORD_RECEIVED_END:
        pass(walk, &record->session, sizeof record->session);
        pass(walk, &record->packet_id, sizeof record->packet_id);
        break;
    case RECORD_RETAINED: pass_retained(walk, record); break;
    case RECORD_RETAINED_END: pass_text(walk, &record->publication.topic); break;
    case RECORD_TAKEN:
    case RECORD_TAKEN_END: pass_taken(walk, record); break;
    case RECORD_PEER:
    case RECORD_PEER_END: pass_peer(walk, record); break;
    case RECORD_JOIN:
    case RECORD_JOIN_END: pass_join(walk, record); break;
    case RECORD_OUTBOX:
    case RECORD_OUTBOX_END: pass_outbox(walk, record); break;
    }
}

/* Before the fields: size of the whole, and type. */
enum { SIZE_AT = 0, TYPE_AT = sizeof(uint32_t), HEAD_SIZE = TYPE_AT + 1 };

static int reserve(struct record_buffer *buffer, size_t size) {
    size_t needed = buffer->size + size, capacity = buffer->capacity;
    uint8_t *grown;

    if (needed <= capacity) return 0;
    capacity = needed > capacity * 2 ? needed : capacity * 2;
    grown = realloc(buffer->bytes, capacity);
    if (grown == NULL) return -1;
    buffer->bytes = grown;
    buffer->capacity = capacity;
    return 0;
}

int record_write(struct record_buffer *buffer, const struct record *record) {
    struct record *fields = (struct record *)(uintptr_t)record; /* written to by READ only */
    struct walk walk = {.purpose = MEASURE, .size = HEAD_SIZE};
    uint32_t size;

    pass_fields(&walk, fields);
    if (walk.size > UINT32_MAX || reserve(buffer, walk.size) != 0) return -1;
    size = (uint32_t)walk.size;
    walk = (struct walk){.purpose = WRITE, .out = buffer->bytes + buffer->size + HEAD_SIZE};
    memcpy(buffer->bytes + buffer->size + SIZE_AT, &size, sizeof size);
    buffer->bytes[buffer->size + TYPE_AT] = (uint8_t)record->type;
    pass_fields(&walk, fields);
    buffer->size += size;
    return 0;
}

size_t record_peek(const uint8_t *bytes, size_t size, enum record_type *type) {
    uint32_t own_size;

    if (size < HEAD_SIZE) return 0;
    memcpy(&own_size, bytes + SIZE_AT, sizeof own_size);
    if (own_size < HEAD_SIZE || own_size > size) return 0;
    if (bytes[TYPE_AT] < RECORD_RESET || bytes[TYPE_AT] > RECORD_TYPE_MAX) return 0;
    *type = bytes[TYPE_AT];
    return own_size;
}

/* Many are read for each publication, so the large struct is filled in its place and not copied. */
size_t record_read(const uint8_t *bytes, size_t size, struct record *out) {
    struct walk walk = {.purpose = READ};
    enum record_type type;
    const size_t own_size = record_peek(bytes, size, &type);

    if (own_size == 0) return 0;
    memset(out, 0, sizeof *out);
    out->type = type;
    walk.at = bytes + HEAD_SIZE;
    walk.left = own_size - HEAD_SIZE;
    pass_fields(&walk, out);
    return walk.unsound || walk.left > 0 ? 0 : own_size;
}
