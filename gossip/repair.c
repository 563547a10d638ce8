/* The fetching of entries and checkpoints, and what follows from the versions that another holds (digest.c). */
#include "gossip/verbs.h"

#include <string.h>

#define WANT_AGAIN_MS 30u
#define ASKED_MS 500u /* an answer to WANT may take so long */
#define WANT_OF_SAME_MS 300u
#define SERVE_AT_ONCE 4u /* owners answered with more than the version to one list of versions */
#define CHUNK_RETRY_MS 250u
#define CHUNK_RETRY_LINK_MS 2000u /* nothing is lost there, but by a link that ends or a queue that is full */
#define OWNER_BYTES 1500u         /* about, of one that is told in full */
#define HURRY_PART 5u
#define HIDDEN_RETRY_MS 5000u /* while its owner is away */

static void mix(uint8_t mark[8], const uint8_t part[8]) {
    for (size_t i = 0; i < 8; i++)
        mark[i] ^= part[i];
}

struct version repair_version_of(const struct member *member) {
    struct version version = {.id = member->id, .epoch = member->epoch, .incarnation = member->incarnation};
    if (member->said) mix(version.mark, member->said->mark);
    if (member->registry) {
        version.sequence = member->registry->at.sequence;
        mix(version.mark, member->registry->at.chain);
        mix(version.mark, member->registry->at.base_root);
    }
    return version;
}

/* ---- asking and serving ---- */

/* Whoever boasts of more than it gives must not be asked each time in place of those who have it. Of its own log a
 * member is believed. */
static bool brought_nothing(const struct gossip *gossip, const struct member *member, const struct member *from) {
    return from != member && id_equal(&member->wanted_of, &from->id) &&
           member->wanted_above == registry_sequence(member->registry) &&
           gossip->now_ms < member->want_ms + WANT_OF_SAME_MS;
}

static void note_asked(const struct gossip *gossip, struct member *member, const struct member *from) {
    member->want_ms = gossip->now_ms + WANT_AGAIN_MS;
    member->wanted_of = from->id;
    member->wanted_above = registry_sequence(member->registry);
}

void repair_ask(struct gossip *gossip, struct member *member, struct member *from) {
    note_asked(gossip, member, from);
    struct message want = {.kind = MESSAGE_WANT, .version = repair_version_of(member)};
    if (gossip->header && from == gossip->sender)
        reply_add(gossip, &want);
    else
        send_one(gossip, from, &want);
}

bool repair_want(struct gossip *gossip, struct member *member, struct member *from) {
    if (member->self || !from || from->self) return false;
    if (!member->known) {
        identity_ask(gossip, member);
        return false;
    }
    if (gossip->now_ms < member->want_ms || brought_nothing(gossip, member, from)) return false;
    if (roll_want(gossip, member))
        note_asked(gossip, member, from);
    else
        repair_ask(gossip, member, from);
    return true;
}

void repair_tell_base(struct gossip *gossip, const struct checkpoint *base) {
    if (!base || base->head_size == 0) return;
    struct message head = {.kind = MESSAGE_HEAD, .bytes = base->head, .size = base->head_size};
    reply_add(gossip, &head);
}

/* What is newer than this, in answer to the packet in hand. */
static void serve(struct gossip *gossip, const struct member *member, const struct version *held) {
    const struct registry *registry = member->registry;
    if ((!member->known && !member->self) || member->head_size == 0) return;
    if (member->epoch > held->epoch || (member->epoch == held->epoch && member->incarnation > held->incarnation)) {
        struct message head = evidence_head_of(member);
        reply_add(gossip, &head);
    }
    uint64_t sequence = held->epoch == member->epoch ? held->sequence : 0;
    if (sequence < registry_base_sequence(registry)) {
        repair_tell_base(gossip, registry->base);
        return;
    }
    for (uint64_t next = sequence + 1; next <= sequence + REPAIR_ENTRIES_PER_WANT; next++) {
        const struct log_entry *entry = registry_entry(registry, next);
        if (!entry) return;
        struct message message = {.kind = MESSAGE_ENTRY, .bytes = entry->bytes, .size = entry->size};
        reply_add(gossip, &message);
        gossip->counters.entries_sent++;
    }
}

void repair_on_want(struct gossip *gossip, const struct message *message) {
    const struct member *member = members_find(gossip, &message->version.id);
    if (member) serve(gossip, member, &message->version);
}

static bool has_newer_head(const struct version *a, const struct version *b) {
    return a->epoch > b->epoch || (a->epoch == b->epoch && a->incarnation > b->incarnation);
}

bool repair_is_newer(const struct version *a, const struct version *b) {
    return has_newer_head(a, b) || (a->epoch == b->epoch && a->sequence > b->sequence);
}

void repair_on_have(struct gossip *gossip, const struct message *message) {
    if (id_equal(&message->version.id, &gossip->self->id)) return;
    struct member *member = members_meet(gossip, &message->version.id);
    if (!member) return;
    struct version held = repair_version_of(member);
    if (repair_is_newer(&message->version, &held))
        wants_newer(gossip, member, gossip->sender, &message->version);
    else if (repair_is_newer(&held, &message->version) && member->known)
        rumors_say_had(gossip, member);
}

/* ---- entries ---- */

static void want_up_to(struct gossip *gossip, struct member *member, uint64_t epoch, uint64_t sequence) {
    const struct version there = {.id = member->id, .epoch = epoch, .sequence = sequence};
    wants_newer(gossip, member, gossip->sender, &there);
}

static void on_own_entry(struct gossip *gossip, const struct entry *entry, const struct message *message) {
    struct member *self = gossip->self;
    bool in_log = entry->epoch == self->epoch && registry_entry(self->registry, entry->sequence);
    if (in_log && gossip->authentic) own_say_again(gossip); /* there is another; they ask which counts (two_states.c) */
    if (entry->epoch < self->epoch ||
        (entry->epoch == self->epoch && entry->sequence <= registry_sequence(self->registry)))
        return;
    if (!proof_may_check(gossip)) return;
    if (signed_verify(message->bytes, message->size, &gossip->crypto, self->public_key))
        own_raise_epoch(gossip, entry->epoch, &(struct gossip_address){0});
    else
        receive_forged(gossip);
}

static void take_entry(struct gossip *gossip, struct member *member, const struct entry *entry,
                       const struct message *message) {
    bool from_owner = member == gossip->sender;
    struct event_rows rows = {gossip, member};
    struct registry_watch watch = {event_row, &rows};
    if (!proof_may_check(gossip)) return;
    if (!signed_verify(message->bytes, message->size, &gossip->crypto, member->public_key)) {
        receive_forged(gossip);
        return;
    }
    if (!holdings_have_room(gossip) || !holdings_are_fair(gossip, member)) return;
    holdings_begin(gossip, member);
    enum registry_result result = transfers_entry(&gossip->transfers, &member->registry, &gossip->rules, entry,
                                                  message->bytes, message->size, &watch);
    holdings_end(gossip, member);
    if (result == REGISTRY_OK) {
        gossip->counters.entries_received++;
        sweep_follow(gossip, member, entry->sequence);
        /* What a joiner asks for the others have had for long. */
        if (from_owner || !roll_is_called(gossip) || gossip->now_ms > member->want_ms + ASKED_MS)
            rumors_entry(gossip, member, from_owner && !members_are_many(gossip));
    } else if (result == REGISTRY_GAP) {
        want_up_to(gossip, member, entry->epoch, entry->sequence);
    } else if (result == REGISTRY_REFUSED) {
        conduct_note(gossip, member, MISDEED_TOO_MUCH);
    }
    if (from_owner) reply_acknowledge(gossip);
}

void repair_on_entry(struct gossip *gossip, const struct message *message) {
    struct entry entry;
    if (!entry_read(message->bytes, message->size, &entry)) {
        receive_malformed(gossip);
        return;
    }
    if (id_equal(&entry.id, &gossip->self->id)) {
        on_own_entry(gossip, &entry, message);
        return;
    }
    struct member *member = members_meet(gossip, &entry.id);
    if (!member) return;
    if (!member->known) {
        identity_ask(gossip, member);
        return;
    }
    if (entry.epoch != member->epoch) {
        if (entry.epoch > member->epoch) want_up_to(gossip, member, entry.epoch, entry.sequence);
        return;
    }
    if (registry_expects(member->registry, entry.sequence) != REGISTRY_REPEATED) {
        take_entry(gossip, member, &entry, message);
        return;
    }
    gossip->counters.entries_repeated++;
    two_states_on_entry(gossip, member, &entry, message);
    if (member == gossip->sender)
        reply_acknowledge(gossip);
    else
        rumors_say_had(gossip, member);
}

/* ---- checkpoints ---- */

static void ask_chunks(struct gossip *gossip, struct member *member, struct staging *staging, struct member *from) {
    struct gossip_address to;
    uint64_t next = staging_next(staging), end = next + catchup_way(gossip, staging, &from, &to);
    bool by_link = to.family == ADDRESS_LINK, replies = gossip->header && address_equal(&to, &gossip->source);
    struct packet packet;
    packet_begin(&packet, from, &to);
    if (end > staging_chunks(staging)) end = staging_chunks(staging);
    /* What was asked by datagram may be lost, and too much would come behind it. */
    if (by_link && !staging->asked_by_link) staging->asked_up_to = 0;
    staging->asked_by_link = by_link;
    for (uint64_t index = staging->asked_up_to > next ? staging->asked_up_to : next; index < end; index++) {
        struct message want = {
            .kind = MESSAGE_WANT_CHUNK,
            .version = {.id = member->id, .epoch = member->epoch, .sequence = staging->head.checkpoint_sequence},
            .number = index};
        if (replies)
            reply_add(gossip, &want);
        else
            packet_add(gossip, &packet, &want);
        staging->asked_up_to = index + 1;
        staging->asked_of = from->id;
        /* Not when nothing is asked: heads that keep coming would put it off for ever. */
        staging->retry_ms = gossip->now_ms + (by_link ? CHUNK_RETRY_LINK_MS : CHUNK_RETRY_MS);
    }
    packet_end(gossip, &packet, false);
    members_changed(gossip, member);
}

static void ask_all_chunks(struct gossip *gossip, struct member *member, struct member *from) {
    struct transfer *transfer = transfers_find(&gossip->transfers, &member->id);
    for (size_t i = 0; transfer && from && i < TRANSFER_STAGINGS; i++)
        if (transfer->staging[i].used) ask_chunks(gossip, member, &transfer->staging[i], from);
}

void repair_head(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                 size_t size) {
    struct event_rows rows = {gossip, member};
    struct registry_watch watch = {event_row, &rows};
    holdings_begin(gossip, member);
    enum registry_result result =
        transfers_head(&gossip->transfers, &member->registry, &gossip->rules, head, bytes, size, &watch);
    holdings_end(gossip, member);
    if (result == REGISTRY_GAP)
        ask_all_chunks(gossip, member, gossip->sender ? gossip->sender : member);
    else if (result == REGISTRY_REFUSED)
        conduct_note(gossip, member, MISDEED_TOO_MUCH);
    if (head->sequence > registry_sequence(member->registry) && result == REGISTRY_OK)
        want_up_to(gossip, member, head->epoch, head->sequence);
}

void repair_on_want_chunk(struct gossip *gossip, const struct message *message) {
    const struct member *member = members_find(gossip, &message->version.id);
    if (!member || (!member->known && !member->self)) return;
    const struct checkpoint *base = member->registry ? member->registry->base : NULL;
    if (!base) return;
    if (message->version.epoch != member->epoch || message->version.sequence != base->sequence) {
        repair_tell_base(gossip, base);
        return;
    }
    uint64_t chunks = checkpoint_chunks(rowset_encoded_size(&base->rows));
    if (message->number >= chunks || !catchup_serves_chunk(gossip, chunks)) return;
    struct checkpoint_chunk read;
    checkpoint_read(base, message->number, &read);
    struct message chunk = *message;
    chunk.kind = MESSAGE_CHUNK;
    chunk.bytes = read.bytes;
    chunk.size = read.size;
    chunk.proof = read.proof;
    chunk.proof_size = read.proof_size;
    reply_add(gossip, &chunk);
    gossip->counters.checkpoints_sent += message->number == 0;
}

void repair_on_chunk(struct gossip *gossip, const struct message *message) {
    struct member *member = members_find(gossip, &message->version.id);
    if (!member || !member->known || message->version.epoch != member->epoch) return;
    struct event_rows rows = {gossip, member};
    struct registry_watch watch = {event_row, &rows};
    if (!holdings_have_room(gossip) || !holdings_are_fair(gossip, member)) return;
    holdings_begin(gossip, member);
    enum registry_result result =
        transfers_chunk(&gossip->transfers, &member->registry, &gossip->rules, message, &watch);
    holdings_end(gossip, member);
    if (result == REGISTRY_GAP) ask_all_chunks(gossip, member, gossip->sender);
    if (result != REGISTRY_OK) return;
    gossip->counters.checkpoints_received++;
    member->want_ms = 0;
    repair_want(gossip, member, gossip->sender); /* the log above it */
    rumors_entry(gossip, member, true);
    if (member == gossip->sender) reply_acknowledge(gossip);
}

static void retry_chunks(struct gossip *gossip, struct transfer *transfer) {
    struct member *member = members_find(gossip, &transfer->id);
    for (size_t i = 0; member && i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (!staging->used || gossip->now_ms < staging->retry_ms) continue;
        staging->retry_ms = gossip->now_ms + HIDDEN_RETRY_MS;
        if (!member_is_visible(member)) continue; /* what came is kept: it may return */
        struct member *other = NULL;
        bool ask_owner = chance_below(&gossip->chance, 2) == 0;
        if (ask_owner || members_pick(gossip, &other, 1, member) == 0) other = member;
        staging->asked_up_to = 0;
        staging->retry_ms = gossip->now_ms + CHUNK_RETRY_MS;
        ask_chunks(gossip, member, staging, other);
    }
}

void repair_put_off(struct gossip *gossip, const struct member *from, uint64_t until_ms) {
    for (struct transfer *transfer = gossip->transfers.all; transfer; transfer = transfers_next(transfer)) {
        for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
            struct staging *staging = &transfer->staging[i];
            if (!staging->used || staging_chunks(staging) <= CATCHUP_SMALL_CHUNKS ||
                !id_equal(&staging->asked_of, &from->id))
                continue;
            staging->asked_up_to = 0;
            staging->retry_ms = until_ms;
        }
    }
}

static bool is_mixed(const struct version *a, const struct version *b) {
    return a->epoch == b->epoch && a->incarnation == b->incarnation && a->sequence == b->sequence &&
           memcmp(a->mark, b->mark, sizeof a->mark) != 0;
}

/* Theirs is longer, and perhaps of another tale. */
static bool goes_on_beyond(const struct version *ours, const struct version *theirs, const struct member *member) {
    return ours->epoch == theirs->epoch && ours->incarnation == theirs->incarnation &&
           ours->sequence < theirs->sequence && two_states_are_known(member);
}

/* Tells an owner what we hold of it; of nobody else. */
static void show_owner(struct gossip *gossip, const struct version *held) {
    uint8_t record[MESSAGE_VERSION_SIZE];
    struct message message = {.kind = MESSAGE_VERSIONS,
                              .number = digest_bucket_of(&held->id),
                              .version.id = held->id,
                              .other = held->id,
                              .bytes = record,
                              .size = sizeof record};
    version_store(record, held);
    reply_add(gossip, &message);
}

/* What they hold of us. More than we wrote: an earlier life of ours (its disk is lost, or an older copy of it came
 * back) used this epoch too; the proof of it, signed with our key, makes us raise ours. As much and different: they
 * mixed the two; the head of a new checkpoint tells them what is true. */
static void compare_self(struct gossip *gossip, const struct version *theirs) {
    struct version own = repair_version_of(gossip->self);
    bool more = theirs->epoch > own.epoch || (theirs->epoch == own.epoch && theirs->sequence > own.sequence);
    if (more) {
        struct message want = {.kind = MESSAGE_WANT, .version = own};
        want.version.incarnation = 0;
        reply_add(gossip, &want);
        return;
    }
    if (is_mixed(theirs, &own)) own_say_again(gossip);
    if (repair_is_newer(&own, theirs)) serve(gossip, gossip->self, theirs);
}

/* They are beyond where our checkpoint of as new a head is still to come: perhaps theirs is another head. */
static bool is_held_up(const struct gossip *gossip, const struct member *member, const struct version *theirs) {
    return theirs->epoch == member->epoch && theirs->incarnation == member->incarnation &&
           theirs->sequence > registry_sequence(member->registry) && transfers_find(&gossip->transfers, &member->id);
}

bool repair_compare(struct gossip *gossip, const struct version *theirs, size_t *served) {
    if (id_equal(&theirs->id, &gossip->self->id)) {
        compare_self(gossip, theirs);
        return true;
    }
    struct member *member = members_meet(gossip, &theirs->id);
    if (!member) return false;
    if (!member->has_key) repair_hurry(gossip); /* comparing is how it was found; it may not be the only one */
    struct version ours = repair_version_of(member);
    bool contradicts = is_mixed(&ours, theirs) || goes_on_beyond(&ours, theirs, member);
    if ((repair_is_newer(theirs, &ours) && !contradicts) || !member->known)
        wants_newer(gossip, member, gossip->sender, theirs);
    if (!member->known) return member->has_key;
    if (is_held_up(gossip, member, theirs) && (*served)++ < SERVE_AT_ONCE) {
        struct message head = evidence_head_of(member);
        reply_add(gossip, &head);
    }
    if (contradicts) {
        if (member == gossip->sender)
            show_owner(gossip, &ours);
        else
            two_states_compare(gossip, member, theirs->sequence);
    }
    /* However far its log has come since: what is dead is its head, and while it is, its rows are not asked for. */
    bool is_back = member->state == MEMBER_DOWN &&
                   evidence_is_above(member->epoch, member->incarnation, member->down_epoch, member->down_incarnation);
    bool buried = member->state == MEMBER_DOWN && !is_back && !has_newer_head(theirs, &ours);
    if (is_back) evidence_consider(gossip, member); /* the others see it: it is asked again, ever more rarely */
    if (buried) {
        struct message accusation = accusation_of(member);
        reply_add(gossip, &accusation);
    } else if (repair_is_newer(&ours, theirs) &&
               (catchup_serves_owner(gossip, OWNER_BYTES) || (*served)++ < SERVE_AT_ONCE)) {
        serve(gossip, member, theirs);
    } else if (repair_is_newer(&ours, theirs)) {
        struct message have = {.kind = MESSAGE_HAVE, .version = ours};
        reply_add(gossip, &have);
    }
    return true;
}

void repair_tick(struct gossip *gossip) {
    for (struct transfer *transfer = gossip->transfers.all; transfer; transfer = transfers_next(transfer))
        retry_chunks(gossip, transfer);
    sweep_tick(gossip);
    if (gossip->now_ms < gossip->next_sync_ms) return;
    uint32_t interval = gossip->limits.anti_entropy_ms;
    if (gossip->now_ms < gossip->comparison.hurry_until_ms) interval /= HURRY_PART;
    uint64_t wait = (uint64_t)interval * 3 / 4 + chance_below(&gossip->chance, interval / 2 + 1);
    gossip->next_sync_ms = gossip->now_ms + (wait > 0 ? wait : 1);
    struct message digest = digest_of_all(gossip);
    struct member *other;
    if (members_are_many(gossip) && probe_next(gossip, &digest)) return;
    if (members_pick(gossip, &other, 1, NULL) == 1) digest_send(gossip, other);
}

void repair_hurry(struct gossip *gossip) {
    gossip->comparison.hurry_until_ms = gossip->now_ms + 2 * (uint64_t)gossip->limits.anti_entropy_ms;
    gossip->next_sync_ms = earlier(gossip->next_sync_ms, gossip->now_ms);
}

uint64_t repair_deadline_ms(const struct gossip *gossip) {
    uint64_t deadline = earlier(gossip->next_sync_ms, gossip->sweep_ms);
    for (struct transfer *transfer = gossip->transfers.all; transfer; transfer = transfers_next(transfer))
        for (size_t i = 0; i < TRANSFER_STAGINGS; i++)
            if (transfer->staging[i].used) deadline = earlier(deadline, transfer->staging[i].retry_ms);
    return deadline;
}
