#include "broker/kept.h"

#include "broker/group.h"
#include "broker/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers reserved at a time: as many may be skipped after a crash, and about twice as many cross a link in the time
 * that a disk needs for the next. */
enum { RESERVED_AT_A_TIME = 16384 };

static struct record record_of(const struct peer *peer, enum record_type type) {
    struct record record = {.type = type};
    memcpy(record.peer, peer->id.bytes, sizeof record.peer);
    return record;
}

static void tell_peer(struct federation *federation, struct peer *peer) {
    struct record record = record_of(peer, RECORD_PEER);
    record.peer_name = (struct record_text){peer->name, strlen(peer->name)};
    record.peer_epoch = peer->epoch != 0 ? peer->epoch : peer->kept.run;
    record.stream = peer->stream;
    record.reserved = peer->kept.reserved;
    record.ends_wall_ms = clock_wall_of(federation->broker, federation->now_ms, peer->lapse_ms);
    broker_record(federation->broker, &record);
}

void kept_begin(struct federation *federation, struct peer *peer) {
    struct kept *kept = &peer->kept;
    if (kept->is_recorded || !broker_has_journal(federation->broker)) return;
    kept->is_recorded = true;
    kept->reserved = kept->safe = peer->outbox.end + RESERVED_AT_A_TIME;
    tell_peer(federation, peer);
}

void kept_peer(struct federation *federation, struct peer *peer) {
    if (peer->kept.is_recorded) tell_peer(federation, peer);
}

void kept_join(struct federation *federation, struct peer *peer, const char *filter, size_t size,
               enum keep_level level) {
    kept_begin(federation, peer);
    if (!peer->kept.is_recorded) return;
    struct record record = record_of(peer, RECORD_JOIN);
    record.filter = (struct record_text){filter, size};
    record.level = (uint8_t)level;
    broker_record(federation->broker, &record);
}

void kept_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    if (!peer->kept.is_recorded) return;
    struct record record = record_of(peer, RECORD_JOIN_END);
    record.filter = (struct record_text){filter, size};
    broker_record(federation->broker, &record);
}

static void tell_publication(struct federation *federation, struct peer *peer, uint64_t sequence) {
    struct record record = record_of(peer, RECORD_OUTBOX);
    record.sequence = sequence;
    const struct outbox_entry *entry = outbox_entry(&peer->outbox, sequence);
    record.message = entry->message->number;
    if (entry->aims) record.aims.bytes = aims_bytes(entry->aims, &record.aims.size);
    broker_record(federation->broker, &record);
}

void kept_publication(struct federation *federation, struct peer *peer) {
    uint64_t sequence = peer->outbox.end - 1;
    struct outbox_entry *entry = outbox_entry(&peer->outbox, sequence);
    if (!peer->kept.is_recorded || broker_store_fails(federation->broker)) return;
    broker_hold_message(federation->broker, federation->now_ms, entry->message);
    tell_publication(federation, peer, sequence);
    entry->stored = true;
    /* Its publisher sends one of QoS 2 again that a crash made us forget, and it would go out again. */
    if (entry->message->qos == 2) entry->record = broker_last_record(federation->broker);
}

void kept_changed(struct federation *federation, struct peer *peer, uint64_t sequence) {
    if (outbox_entry(&peer->outbox, sequence)->stored) tell_publication(federation, peer, sequence);
}

void kept_done(void *context, uint64_t first, uint64_t below) {
    struct peer *peer = context;
    struct broker *broker = peer->federation->broker;
    uint64_t last = 0;
    for (uint64_t sequence = first; sequence < below; sequence++) {
        struct outbox_entry *entry = outbox_entry(&peer->outbox, sequence);
        if (!entry->stored) continue;
        entry->stored = false;
        last = sequence;
        broker_let_go_message(broker, entry->message);
    }
    if (last == 0) return;
    struct record record = record_of(peer, RECORD_OUTBOX_END);
    record.sequence = first;
    record.below = last + 1;
    broker_record(broker, &record);
}

void kept_end(struct federation *federation, struct peer *peer) {
    struct record record = record_of(peer, RECORD_PEER_END);
    if (peer->kept.is_recorded) broker_record(federation->broker, &record);
    peer->kept.is_recorded = false;
}

void kept_begin_stream(struct federation *federation, struct peer *peer) {
    peer->stream = federation_random(federation);
    kept_peer(federation, peer);
}

bool kept_may_send(struct federation *federation, struct peer *peer) {
    struct kept *kept = &peer->kept;
    const struct outbox_entry *entry = outbox_peek(&peer->outbox);
    if (!entry || !broker_has_record(federation->broker, entry->record)) return false;
    if (!kept->is_recorded) return true;
    if (kept->safe < kept->reserved && broker_has_record(federation->broker, kept->record)) kept->safe = kept->reserved;
    if (kept->safe == kept->reserved && peer->outbox.next + RESERVED_AT_A_TIME / 2 >= kept->safe) {
        kept->reserved = peer->outbox.next + RESERVED_AT_A_TIME;
        tell_peer(federation, peer);
        kept->record = broker_last_record(federation->broker);
    }
    return peer->outbox.next < kept->safe;
}

/* ---- after a crash ---- */

static struct peer *peer_of(const struct federation *federation, const struct record *record) {
    struct peer_id id;
    memcpy(id.bytes, record->peer, sizeof id.bytes);
    struct peer *peer = peers_find(federation, &id);
    return peer && peer->kept.is_recorded ? peer : NULL;
}

int kept_restore_peer(struct federation *federation, const struct record *record) {
    if (record->stream == 0 || record->reserved > INT64_MAX || record->peer_name.size >= sizeof((struct peer *)0)->name)
        return 1;
    struct peer *peer = NULL;
    int result = peers_restore(federation, record->peer, &peer);
    if (result != 0) return result;
    if (peer->kept.is_recorded) return 1;
    snprintf(peer->name, sizeof peer->name, "%.*s", (int)record->peer_name.size,
             record->peer_name.size > 0 ? (const char *)record->peer_name.bytes : "");
    peer->stream = record->stream;
    peer->kept = (struct kept){
        .is_recorded = true, .reserved = record->reserved, .safe = record->reserved, .run = record->peer_epoch};
    peer_keep_until(federation, peer, clock_time_of(federation->broker, federation->now_ms, record->ends_wall_ms));
    return 0;
}

int kept_restore_join(struct federation *federation, const struct record *record) {
    struct peer *peer = peer_of(federation, record);
    if (!peer || record->level == KEEP_NOT || record->level > KEEP_LASTING) return 1;
    return group_restore(federation, peer, record->filter.bytes, record->filter.size, (enum keep_level)record->level);
}

int kept_restore_publication(struct federation *federation, const struct record *record, struct message *message) {
    struct peer *peer = peer_of(federation, record);
    if (!peer || record->sequence == 0 || record->sequence > INT64_MAX) return 1;
    struct aims *aims = NULL;
    int read = record->aims.size > 0 ? aims_read(&aims, record->aims.bytes, record->aims.size) : 0;
    if (read != 0) return read;
    enum outbox_result result = outbox_put_back(&peer->outbox, message, record->sequence);
    if (result != OUTBOX_OK) {
        free(aims);
        return result == OUTBOX_NO_MEMORY ? -1 : 1;
    }
    if (aims) outbox_aim(&peer->outbox, aims);
    outbox_entry(&peer->outbox, record->sequence)->stored = true;
    message->durable_count++;
    return 0;
}

bool kept_restored(struct federation *federation) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && peer->kept.is_recorded && outbox_skip_to(&peer->outbox, peer->kept.reserved) < 0) return false;
    }
    return true;
}

/* ---- a journal that begins anew ---- */

void kept_dump(struct federation *federation, uint64_t before) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (!peer || !peer->kept.is_recorded) continue;
        tell_peer(federation, peer);
        group_dump(federation, peer);
        for (uint64_t sequence = peer->outbox.base; sequence < peer->outbox.end; sequence++) {
            const struct outbox_entry *entry = outbox_entry(&peer->outbox, sequence);
            if (!entry->stored) continue;
            broker_dump_message(federation->broker, federation->now_ms, entry->message, before);
            tell_publication(federation, peer, sequence);
        }
    }
}
