/* Our own log: what we say, and who has heard it. */
#include "gossip/conduct.h"
#include "gossip/verbs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT_MS 20u /* so at most 50 cuts a second */
#define CUT_ENTRIES_MAX 8u
#define OPS_SIZE_MAX (ENTRY_BODY_MAX - 40u) /* beside the longest beginning of an entry */
#define RESEND_MS 100u
#define RESENDS_MAX 8u
#define SEND_AT_ONCE_MAX 8u /* entries to one member */
#define LEAVE_MS 5000u
#define LEAVE_ACKNOWLEDGED 3u
/* A new head because of what others say: gaps from the first to the longest while they go on. One of ours refutes all
 * that was said before it, so what others truly believe waits no longer than for the longest gap of all. */
#define UNMIX_MS 1000u
#define UNMIX_ALL_MAX_MS 5000u
#define REFUTE_ALL_MS 100u
#define REFUTE_ALL_MAX_MS 2000u
#define REFUTE_MS 2000u
#define REFUTE_STRANGERS_MS 1000u
#define REFUTE_STRANGERS_MAX_MS 30000u
#define BLAME_MS 2500u
#define HINT_AGAIN_MS 10000u

bool own_sign_head(struct gossip *gossip) {
    struct member *self = gossip->self;
    struct checkpoint *base = self->registry ? self->registry->base : NULL;
    struct head head = {
        .id = self->id,
        .epoch = self->epoch,
        .incarnation = self->incarnation + 1,
        .sequence = registry_sequence(self->registry),
        .address = self->address,
        .leaving = self->leaving,
    };
    checkpoint_name(base, &gossip->crypto, &head);
    memcpy(head.name, self->name, sizeof head.name);
    head.ring = self->ring;
    head.cloned = own_is_cloned(gossip);
    memcpy(head.ring_mark, self->ring_mark, sizeof head.ring_mark);
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = head_sign(&head, &gossip->crypto, bytes);
    if (size == 0) return false;
    struct statement *said = statement_new(gossip->shared, &gossip->crypto, &head, bytes, size);
    if (!said) return false;
    self->incarnation++;
    member_set_said(self, said);
    if (base) checkpoint_set_head(base, bytes, size);
    members_changed(gossip, self);
    return true;
}

static bool is_eager(const struct gossip *gossip) {
    return !members_are_many(gossip);
}

/* Entries from `from` on; below the checkpoint the head, so that it is fetched. */
static void write_entries(struct gossip *gossip, struct member *member, struct packet *packet, uint64_t from) {
    const struct registry *log = gossip->self->registry;
    if (member->known_incarnation < gossip->self->incarnation || from <= registry_base_sequence(log)) {
        struct message head = evidence_head_of(gossip->self);
        packet_add(gossip, packet, &head);
    }
    for (uint64_t sequence = from; sequence < from + SEND_AT_ONCE_MAX; sequence++) {
        const struct log_entry *entry = registry_entry(log, sequence);
        if (!entry) break;
        struct message message = {.kind = MESSAGE_ENTRY, .bytes = entry->bytes, .size = entry->size};
        packet_add(gossip, packet, &message);
        gossip->counters.entries_sent++;
        if (sequence > member->sent_sequence) member->sent_sequence = sequence;
    }
}

static void send_entries(struct gossip *gossip, struct member *member, uint64_t from) {
    struct packet packet;
    struct gossip_address to = member_route(member);
    packet_begin(&packet, member, &to);
    write_entries(gossip, member, &packet, from);
    packet_end(gossip, &packet, false);
}

static void resend_after(struct gossip *gossip, struct member *member, uint32_t ms) {
    member->resends = 0;
    member->resend_ms = gossip->now_ms + ms;
    members_changed(gossip, member);
}

void own_resend_soon(struct gossip *gossip, struct member *member) {
    resend_after(gossip, member, 0);
}

static void send_new(struct gossip *gossip, struct member *member) {
    uint64_t sent = member->sent_sequence > member->known_sequence ? member->sent_sequence : member->known_sequence;
    send_entries(gossip, member, sent + 1);
    resend_after(gossip, member, RESEND_MS);
}

static void tell_entries(struct gossip *gossip) {
    if (is_eager(gossip)) {
        struct member *member;
        for (size_t i = 0; (member = members_visible(gossip, i)); i++)
            send_new(gossip, member);
    } else {
        struct member *some[3];
        size_t count = members_pick(gossip, some, 3, NULL);
        for (size_t i = 0; i < count; i++)
            send_new(gossip, some[i]);
    }
    rumors_entry(gossip, gossip->self, is_eager(gossip));
}

void own_tell_head(struct gossip *gossip) {
    struct member *member;
    for (size_t i = 0; is_eager(gossip) && (member = members_visible(gossip, i)); i++) {
        struct message head = evidence_head_of(gossip->self);
        send_one(gossip, member, &head);
        resend_after(gossip, member, RESEND_MS);
    }
    rumors_head(gossip, gossip->self);
}

static bool checkpoint_due(const struct gossip *gossip) {
    const struct registry *log = gossip->self->registry;
    if (!log) return false;
    size_t base_size = log->base ? rowset_encoded_size(&log->base->rows) : 0;
    size_t bytes_max = base_size > 4096 ? base_size : 4096;
    return log->log_bytes > bytes_max || log->log_count >= gossip->limits.log_entries_max;
}

bool own_checkpoint(struct gossip *gossip) {
    return registry_checkpoint(&gossip->self->registry, &gossip->rules, gossip->self->epoch) && own_sign_head(gossip);
}

/* What we know of the sender, if it is that; NULL: it is not. */
static struct trouble *trouble_of_sender(struct gossip *gossip) {
    return gossip->authentic ? trouble_make(gossip->sender) : NULL;
}

void own_say_again(struct gossip *gossip) {
    const struct registry *log = gossip->self->registry;
    struct trouble *its = trouble_of_sender(gossip);
    if (!restraint_lets(&gossip->own.unmixed, gossip->now_ms)) return;
    if (its && !restraint_lets(&its->unmixed, gossip->now_ms)) return;
    restraint_grow(&gossip->own.unmixed, gossip->now_ms, UNMIX_MS, UNMIX_ALL_MAX_MS);
    if (its) restraint_grow(&its->unmixed, gossip->now_ms, UNMIX_MS, UNMIX_AGAIN_MAX_MS);
    bool fresh = registry_base_sequence(log) == registry_sequence(log);
    if (fresh ? own_sign_head(gossip) : own_checkpoint(gossip)) own_tell_head(gossip);
}

static bool take_own(struct gossip *gossip, const uint8_t *bytes, size_t size) {
    struct member *self = gossip->self;
    struct registry_watch nobody = {0};
    struct registry_rules rules = gossip->rules;
    rules.limits = (struct registry_limits){UINT32_MAX / 8, UINT32_MAX / 2, UINT32_MAX / 8};
    struct log_entry *entry = log_entry_new(registry_sequence(self->registry) + 1, bytes, size);
    bool taken = entry && registry_apply(&self->registry, &rules, entry, &nobody) == REGISTRY_OK;
    log_entry_unref(entry);
    return taken;
}

/* The first draft becomes an entry. False when memory is short or signing failed: later again. */
static bool cut_one(struct gossip *gossip) {
    struct member *self = gossip->self;
    struct draft *draft = &gossip->own.drafts[0];
    uint8_t bytes[MESSAGE_BLOB_MAX];
    struct wire_out body;
    wire_out_init(&body, bytes, ENTRY_BODY_MAX);
    wire_put_array(&body, 4 + 2 * draft->count);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, &self->id);
    wire_put_uint(&body, self->epoch);
    wire_put_uint(&body, registry_sequence(self->registry) + 1);
    wire_put_raw(&body, draft->ops, draft->size);
    assert(!body.failed);
    if (!gossip->crypto.sign(gossip->crypto.context, bytes, body.size, bytes + body.size)) return false;
    if (!take_own(gossip, bytes, body.size + GOSSIP_SIGNATURE_SIZE)) return false;
    members_changed(gossip, self);
    gossip->own.draft_count--;
    memmove(gossip->own.drafts, gossip->own.drafts + 1, gossip->own.draft_count * sizeof *gossip->own.drafts);
    return true;
}

static void cut(struct gossip *gossip) {
    uint32_t made = 0;
    while (gossip->own.draft_count > 0 && made < CUT_ENTRIES_MAX && cut_one(gossip))
        made++;
    gossip->own.next_cut_ms = gossip->now_ms + CUT_MS;
    if (made == 0) return;
    tell_entries(gossip); /* before a checkpoint takes them out of the log */
    if (checkpoint_due(gossip) && own_checkpoint(gossip)) own_tell_head(gossip);
}

/* Not faster than it can be told: meanwhile changes gather. */
/* Before the first answer nobody could be told anyway, and with it we know what others remember of an earlier life: a
 * disk that was lost or put back must not make two logs with the same numbers. */
static bool is_asking(struct gossip *gossip) {
    struct own *own = &gossip->own;
    bool alone = gossip->bootstrap_count + gossip->remembered_count + gossip->seek.group_count == 0;
    if (own->ask_until_ms != 0 && (alone || gossip->now_ms >= own->ask_until_ms)) own->ask_until_ms = 0;
    return own->ask_until_ms != 0;
}

void own_answered(struct gossip *gossip) {
    struct own *own = &gossip->own;
    if (own->ask_until_ms == 0 || gossip->header->holds_epoch == 0) return;
    own->ask_until_ms = 0;
    if (own->draft_count > 0) own->next_cut_ms = gossip->now_ms;
}

static bool cut_is_due(struct gossip *gossip) {
    struct own *own = &gossip->own;
    if (own->draft_count == 0 || gossip->now_ms < own->next_cut_ms) return false;
    if (is_asking(gossip)) {
        own->next_cut_ms = own->ask_until_ms;
        return false;
    }
    if (budget_waiting(&gossip->budget, BUDGET_OWN) == 0) return true;
    own->next_cut_ms = gossip->now_ms + CUT_MS;
    return false;
}

static struct draft *draft_with_room(struct own *own, size_t size) {
    if (own->draft_count > 0 && own->drafts[own->draft_count - 1].size + size <= OPS_SIZE_MAX)
        return &own->drafts[own->draft_count - 1];
    if (own->draft_count == own->draft_room) {
        size_t room = own->draft_room ? own->draft_room * 2 : 2;
        struct draft *drafts = realloc(own->drafts, room * sizeof *drafts);
        if (!drafts) return NULL;
        own->drafts = drafts;
        own->draft_room = room;
    }
    struct draft *draft = &own->drafts[own->draft_count++];
    draft->size = 0;
    draft->count = 0;
    return draft;
}

static bool on_shown(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown) {
    struct gossip *gossip = context;
    uint8_t bytes[ENTRY_FILTER_MAX + 8];
    struct wire_out op;
    wire_out_init(&op, bytes, sizeof bytes);
    wire_put_uint(&op, shown ? (uint64_t)kind : (uint64_t)kind | ENTRY_DELETE);
    wire_put_bytes(&op, filter, size);
    assert(!op.failed);
    struct draft *draft = draft_with_room(&gossip->own, op.size);
    if (!draft) return false;
    memcpy(draft->ops + draft->size, bytes, op.size);
    draft->size += op.size;
    draft->count++;
    return true;
}

struct cover *own_cover(struct gossip *gossip, enum gossip_row_kind kind) {
    return &gossip->own.covers[kind == GOSSIP_NEWPUB ? 0 : 1];
}

void own_init(struct gossip *gossip) {
    for (int kind = GOSSIP_NEWPUB; kind <= GOSSIP_NEWSUB; kind++) {
        struct cover_options options = {.kind = (enum gossip_row_kind)kind,
                                        .rows_max = gossip->limits.rows_max,
                                        .seed = wire_load_u64(gossip->secret) + (uint64_t)kind,
                                        .on_change = on_shown,
                                        .context = gossip};
        cover_init(own_cover(gossip, options.kind), &options);
    }
}

static void tick_covers(struct gossip *gossip) {
    for (int kind = GOSSIP_NEWPUB; kind <= GOSSIP_NEWSUB; kind++) {
        struct cover *cover = own_cover(gossip, (enum gossip_row_kind)kind);
        cover_tick(cover, gossip->now_ms);
        if (!cover_take_alarm(cover, gossip->now_ms)) continue;
        event_plain(gossip, GOSSIP_WARNING, gossip->self, gossip->self->epoch, 0,
                    kind == GOSSIP_NEWPUB
                        ? "over 1 % of what other brokers joined here met no topic: raise limits.rows_max"
                        : "over 1 % of what came from other brokers was wanted by nobody here: raise "
                          "limits.rows_max");
    }
}

uint64_t own_change(struct gossip *gossip, enum gossip_row_kind kind, const char *filter, size_t size, bool put) {
    struct own *own = &gossip->own;
    struct cover *cover = own_cover(gossip, kind);
    bool done =
        put ? cover_put(cover, gossip->now_ms, filter, size) : cover_delete(cover, gossip->now_ms, filter, size);
    uint64_t sequence = registry_sequence(gossip->self->registry) + own->draft_count;
    if (cut_is_due(gossip)) cut(gossip);
    /* Sequence 0 means no memory, so a log that is still empty says 1. */
    return !done ? 0 : sequence == 0 ? 1 : sequence;
}

static void check_left(struct gossip *gossip) {
    struct own *own = &gossip->own;
    uint32_t visible = members_visible_count(gossip) - 1, told = 0, deaf = 0;
    const struct member *member;
    for (size_t i = 0; told < LEAVE_ACKNOWLEDGED && (member = members_visible(gossip, i)); i++) {
        bool holds = member->known_incarnation >= gossip->self->incarnation;
        told += holds;
        deaf += !holds && member->refuses_us; /* it has nothing of ours that it could take back */
    }
    if (told + deaf >= visible || told >= LEAVE_ACKNOWLEDGED || gossip->now_ms >= own->leave_deadline_ms)
        own->left = true;
}

static bool lags(const struct gossip *gossip, const struct member *member) {
    return member->known_sequence < registry_sequence(gossip->self->registry) ||
           member->known_incarnation < gossip->self->incarnation;
}

void own_heard(struct gossip *gossip, struct member *member) {
    const struct packet_header *header = gossip->header;
    const struct member *self = gossip->self;
    if (header->holds_epoch != self->epoch || header->holds_incarnation > self->incarnation ||
        header->holds_sequence > registry_sequence(self->registry))
        return;
    member->refuses_us = false;
    if (header->holds_incarnation > member->known_incarnation) member->known_incarnation = header->holds_incarnation;
    if (gossip->own.leaving && !gossip->own.left) check_left(gossip);
    if (header->holds_sequence <= member->known_sequence) return;
    member->known_sequence = header->holds_sequence;
    member->resends = 0;
    if (!lags(gossip, member))
        member->resend_ms = NEVER;
    else if (member->resend_ms == NEVER)
        member->resend_ms = gossip->now_ms + RESEND_MS; /* it took some: the rest */
    members_changed(gossip, member);
    event_knows(gossip, member);
}

/* It did not say that it holds what was sent. The first tries at the pace of a barrier, then slower: rumours and repair
 * do the rest, and with many members all of it but one try. */
void own_resend(struct gossip *gossip, struct member *member) {
    if (gossip->now_ms < member->resend_ms) return;
    uint32_t resends_max = is_eager(gossip) ? RESENDS_MAX : 1;
    member->resend_ms = NEVER;
    if (!member_is_visible(member) || !lags(gossip, member) || member->resends >= resends_max) return;
    if (budget_waiting(&gossip->budget, BUDGET_OWN) > 0) { /* perhaps what it lacks has not gone yet */
        member->resend_ms = gossip->now_ms + RESEND_MS;
        return;
    }
    send_entries(gossip, member, member->known_sequence + 1);
    if (++member->resends < resends_max)
        member->resend_ms = gossip->now_ms + ((uint64_t)RESEND_MS << (member->resends < 4 ? 0 : member->resends - 3));
}

void own_tick(struct gossip *gossip) {
    struct own *own = &gossip->own;
    own_life_tick(gossip);
    if (own->token_ms != 0 && gossip->now_ms >= own->token_ms) identity_tell_more(gossip);
    tick_covers(gossip);
    if (cut_is_due(gossip)) cut(gossip);
    if (own->leaving && !own->left) check_left(gossip);
}

uint64_t own_deadline_ms(const struct gossip *gossip) {
    const struct own *own = &gossip->own;
    uint64_t deadline = own->draft_count > 0 ? own->next_cut_ms : NEVER;
    deadline = earlier(deadline, earlier(cover_deadline_ms(&own->covers[0]), cover_deadline_ms(&own->covers[1])));
    if (own->leaving && !own->left) deadline = earlier(deadline, own->leave_deadline_ms);
    if (own->token_ms != 0) deadline = earlier(deadline, own->token_ms);
    return earlier(deadline, own_life_deadline_ms(gossip));
}

void own_leave(struct gossip *gossip) {
    struct own *own = &gossip->own;
    if (own->leaving) return;
    own->leaving = true;
    own->leave_deadline_ms = gossip->now_ms + LEAVE_MS;
    gossip->self->leaving = true;
    if (!own_sign_head(gossip)) own->left = true;
    own_tell_head(gossip);
    check_left(gossip);
}

/* It has been told that we live, and we tell it again (accusation.c): at this pace it does not look. */
static void blame(struct gossip *gossip, struct trouble *its) {
    if (gossip->now_ms < its->blamed_ms) return;
    its->blamed_ms = gossip->now_ms + BLAME_MS;
    conduct_note_sender(gossip, MISDEED_ACCUSES);
}

/* A head costs a signature and is told to all: whoever accuses us without end, alone or with others, makes us sign so
 * often at most. Who has not proved who he is has the gossip key and perhaps nothing more. */
static bool may_refute(struct gossip *gossip) {
    struct own *own = &gossip->own;
    struct restraint *all = gossip->authentic ? &own->refuted : &own->refuted_strangers;
    struct trouble *its = trouble_of_sender(gossip);
    if (its && !restraint_lets(&its->refuted, gossip->now_ms)) {
        blame(gossip, its);
        return false;
    }
    if (!restraint_lets(all, gossip->now_ms)) return false;
    if (gossip->authentic)
        restraint_grow(all, gossip->now_ms, REFUTE_ALL_MS, REFUTE_ALL_MAX_MS);
    else
        restraint_grow(all, gossip->now_ms, REFUTE_STRANGERS_MS, REFUTE_STRANGERS_MAX_MS);
    if (its) restraint_grow(&its->refuted, gossip->now_ms, REFUTE_MS, REFUTE_AGAIN_MAX_MS);
    return true;
}

/* Being accused says that we may be slow (Lifeguard III.A); by one and the same again and again it says something about
 * that one. */
static bool is_a_hint(struct gossip *gossip) {
    struct member *sender = gossip->sender;
    if (!gossip->authentic || gossip->now_ms < sender->hint_ms) return false;
    sender->hint_ms = gossip->now_ms + HINT_AGAIN_MS;
    return true;
}

void own_refute(struct gossip *gossip, const struct message *accusation) {
    struct member *self = gossip->self;
    uint64_t before = self->incarnation, incarnation = accusation->version.incarnation;
    if (gossip->own.leaving || !may_refute(gossip)) return;
    /* An honest accusation is about a head that we signed: perhaps in an earlier life, whose disk is lost. */
    if (incarnation > before && !own_believes(gossip, incarnation - before)) return;
    self->incarnation = incarnation > before ? incarnation : before;
    if (!own_sign_head(gossip)) {
        self->incarnation = before;
        return;
    }
    gossip->counters.refutations++;
    if (is_a_hint(gossip)) probe_look_well(gossip, false);
    own_tell_head(gossip);
}

void own_free(struct gossip *gossip) {
    cover_free(&gossip->own.covers[0]);
    cover_free(&gossip->own.covers[1]);
    free(gossip->own.drafts);
}
