#include "broker/taken.h"

#include "broker/peers.h"
#include "broker/record.h"

#include <string.h>

void taken_begin(struct taken *taken, uint64_t epoch, uint64_t stream, uint64_t first) {
    taken->epoch = epoch;
    if (taken->stream == stream && taken->expected >= first) return;
    *taken = (struct taken){
        .epoch = epoch, .stream = stream, .expected = first, .safe = first, .is_recorded = taken->is_recorded};
}

static void record(struct federation *federation, struct peer *peer) {
    struct taken *taken = &peer->taken;
    taken->is_recorded = true;
    struct record told = {
        .type = RECORD_TAKEN, .peer_epoch = taken->epoch, .stream = taken->stream, .expected = taken->expected};
    memcpy(told.peer, peer->id.bytes, sizeof told.peer);
    broker_record(federation->broker, &told);
}

int taken_restore(struct federation *federation, const struct record *record) {
    if (record->stream == 0 || record->expected == 0 || record->expected > INT64_MAX) return 1;
    struct peer *peer = NULL;
    int result = peers_restore(federation, record->peer, &peer);
    if (result != 0) return result;
    if (peer->taken.is_recorded) return 1;
    taken_begin(&peer->taken, record->peer_epoch, record->stream, record->expected);
    peer->taken.is_recorded = true;
    return 0;
}

void taken_note(struct federation *federation, struct peer *peer, uint64_t before) {
    struct taken *taken = &peer->taken;
    if (broker_last_record(federation->broker) == before) return; /* whoever saw it does not outlive a crash */
    record(federation, peer);
    taken->last = (struct taken_mark){.record = broker_last_record(federation->broker), .expected = taken->expected};
    if (taken->first.record == 0) taken->first = taken->last;
}

uint64_t taken_safe(const struct federation *federation, struct peer *peer) {
    struct taken *taken = &peer->taken;
    if (broker_has_record(federation->broker, taken->last.record)) {
        taken->safe = taken->expected;
        taken->first = taken->last = (struct taken_mark){0};
    } else if (broker_has_record(federation->broker, taken->first.record)) {
        taken->safe = taken->first.expected;
        taken->first = taken->last;
    }
    return taken->safe;
}

void taken_stop(struct federation *federation) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && peer->taken.stream != 0 && broker_has_journal(federation->broker)) record(federation, peer);
    }
}

void taken_forget(struct federation *federation, struct peer *peer) {
    struct record told = {.type = RECORD_TAKEN_END};
    memcpy(told.peer, peer->id.bytes, sizeof told.peer);
    if (peer->taken.is_recorded) broker_record(federation->broker, &told);
}

void taken_dump(struct federation *federation) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && peer->taken.is_recorded) record(federation, peer);
    }
}
