/* The door. */
#include "broker/topic.h"
#include "gossip/verbs.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void set_defaults(struct gossip_limits *limits) {
    const struct gossip_limits defaults = {
        .probe_interval_ms = 500,
        .probe_timeout_ms = 200,
        .rumor_interval_ms = 200,
        .suspicion_min_ms = 1200,
        .anti_entropy_ms = 2000,
        .rejoin_ms = 2000,
        .members_max = 16384,
        .rows_max = 512,
        .owner_bytes_max = 1u << 20,
        .log_entries_max = 64,
        .eager_members_max = 32,
        .datagrams_queued_max = 4096,
        .down_keep_ms = 24u * 3600 * 1000,
        .registry_bytes_max = 256u << 20,
        .transfers_max = 4,
        .transfer_bytes_per_s = 4u << 20,
        .datagram_buckets_max = 40,
        .awake_max = 1024,
        .links_max = 32,
        .datagram_bytes_per_s = 512u << 10,
    };
    /* The limits are numbers of one size and nothing else. */
    uint32_t given[sizeof defaults / sizeof(uint32_t)], standard[sizeof defaults / sizeof(uint32_t)];
    memcpy(given, limits, sizeof given);
    memcpy(standard, &defaults, sizeof standard);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i] == 0) given[i] = standard[i];
    memcpy(limits, given, sizeof given);
}

static bool start_self(struct gossip *gossip, const struct gossip_options *options) {
    struct member_id id;
    if (!gossip->crypto.id_of(gossip->crypto.context, options->public_key, &id)) return false;
    struct member *self = members_make(gossip, &id);
    if (!self) return false;
    gossip->self = self;
    gossip->members.unverified--;
    self->self = self->has_key = self->known = true;
    self->state = MEMBER_ALIVE;
    members_changed(gossip, self);
    struct who *who =
        who_new(gossip->shared, &id, options->public_key, options->name, options->token, options->token_size);
    if (!who) return false;
    member_set_who(self, who);
    members_changed(gossip, self);
    if (self->name_hash == 0) return false; /* not enough memory to find it by its name */
    self->epoch = options->epoch > 0 ? options->epoch : 1;
    if (address_is_usable(&options->advertise)) self->address = options->advertise;
    return ring_init(gossip, options) && own_sign_head(gossip);
}

static bool options_are_good(const struct gossip_options *options) {
    return options->name && strlen(options->name) > 0 && strlen(options->name) <= GOSSIP_NAME_MAX &&
           options->public_key && options->token && options->token_size > 0 && options->token_size <= MESSAGE_TOKEN_MAX;
}

struct gossip *gossip_new(const struct gossip_options *options, uint64_t now_ms) {
    if (!options_are_good(options)) return NULL;
    struct gossip *gossip = calloc(1, sizeof *gossip);
    if (!gossip) return NULL;
    gossip->limits = options->limits;
    set_defaults(&gossip->limits);
    gossip->crypto = options->crypto;
    gossip->rules = (struct registry_rules){
        .crypto = options->crypto,
        .limits = {gossip->limits.rows_max, gossip->limits.owner_bytes_max, gossip->limits.log_entries_max},
        .pool = options->shared,
    };
    gossip->shared = options->shared;
    gossip->chance.state = options->seed;
    gossip->now_ms = now_ms;
    budget_init(&gossip->budget, gossip->limits.datagram_bytes_per_s, now_ms);
    wire_store_u64(gossip->secret, chance_next(&gossip->chance));
    wire_store_u64(gossip->secret + 8, chance_next(&gossip->chance));
    gossip->next_rumor_ms = gossip->partition_since_ms = gossip->watch.due_ms = gossip->sweep_ms = NEVER;
    gossip->carrier.next_ms = gossip->carrier.datagram_ms = gossip->carrier.link_ms = gossip->carrier.link_since_ms =
        NEVER;
    gossip->next_probe_ms = now_ms + chance_below(&gossip->chance, gossip->limits.probe_interval_ms);
    gossip->next_sync_ms = now_ms + chance_below(&gossip->chance, gossip->limits.anti_entropy_ms);
    gossip->next_rejoin_ms = now_ms;
    gossip->seek.next_ms = gossip->seek.dial_ms = gossip->roll.next_ms = NEVER;
    gossip->own.advertise_fixed = address_is_usable(&options->advertise);
    gossip->own.ask_until_ms = now_ms + OWN_ASK_MS;
    uint8_t digest[32];
    const char *federation = options->federation ? options->federation : "";
    gossip->crypto.sha256(gossip->crypto.context, (const uint8_t *)federation, strlen(federation), digest);
    memcpy(gossip->federation_mark, digest, sizeof gossip->federation_mark);
    for (size_t i = 0; i < 3; i++)
        gossip->own.raised_ms[i] = NEVER;
    own_init(gossip);
    wants_init(gossip);
    if (!seal_init(&gossip->seal, options, &gossip->chance) || !start_self(gossip, options)) {
        gossip_free(gossip);
        return NULL;
    }
    return gossip;
}

void gossip_free(struct gossip *gossip) {
    if (!gossip) return;
    members_free(gossip);
    transfers_free(&gossip->transfers);
    graves_free(&gossip->graves);
    own_free(gossip);
    outbox_free(gossip);
    carrier_free(gossip);
    events_free(gossip);
    memset(gossip, 0, sizeof *gossip); /* keys */
    free(gossip);
}

/* Time never runs backwards in here, whatever the caller's clock does. */
static void set_now(struct gossip *gossip, uint64_t now_ms) {
    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;
}

int gossip_set_token(struct gossip *gossip, uint64_t now_ms, const uint8_t *token, size_t token_size) {
    set_now(gossip, now_ms);
    if (token_size == 0 || token_size > MESSAGE_TOKEN_MAX) return -1;
    struct member *self = gossip->self;
    struct who *who = who_new(gossip->shared, &self->id, self->public_key, self->name, token, token_size);
    if (!who) return -1;
    member_set_who(self, who);
    identity_tell_token(gossip);
    return 0;
}

void gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                    size_t size) {
    set_now(gossip, now_ms);
    gossip->counters.datagrams_received++;
    gossip->counters.bytes_received += size;
    uint8_t plain[SEAL_PLAIN_MAX];
    bool own = false;
    long plain_size = seal_open(&gossip->seal, &gossip->crypto, bytes, size, plain, &own);
    if (plain_size < 0) {
        gossip->counters.unsealed++;
        stray_received(gossip, from);
        return;
    }
    if (own) {
        rejoin_on_own_packet(gossip, plain, (size_t)plain_size);
        return;
    }
    gossip->carrier.datagram_ms = gossip->now_ms;
    gossip->carrier.link_since_ms = NEVER;
    gossip->source = *from;
    seal_place(bytes, &gossip->place);
    receive_packet(gossip, plain, (size_t)plain_size);
    quiet_settle(gossip);
}

uint64_t gossip_deadline_ms(const struct gossip *gossip) {
    uint64_t deadline = earlier(timers_first_ms(&gossip->timers), probe_deadline_ms(gossip));
    deadline = earlier(deadline, budget_deadline_ms(&gossip->budget, gossip->now_ms));
    deadline = earlier(deadline, own_deadline_ms(gossip));
    deadline = earlier(deadline, ring_deadline_ms(gossip));
    deadline = earlier(deadline, rumors_deadline_ms(gossip));
    deadline = earlier(deadline, repair_deadline_ms(gossip));
    deadline = earlier(deadline, wants_deadline_ms(gossip));
    deadline = earlier(deadline, roll_deadline_ms(gossip));
    deadline = earlier(deadline, seek_deadline_ms(gossip));
    deadline = earlier(deadline, carrier_deadline_ms(gossip));
    return earlier(deadline, rejoin_deadline_ms(gossip));
}

#define CACHE_LINE 64u

void gossip_expect(const struct gossip *gossip) {
    static const size_t more[] = {
        offsetof(struct gossip, seal.prefix),
        offsetof(struct gossip, roll),
        offsetof(struct gossip, seek),
        offsetof(struct gossip, ring),
        offsetof(struct gossip, carrier),
        offsetof(struct gossip, own),
        offsetof(struct gossip, own.ask_until_ms),
        offsetof(struct gossip, own.covers[0]),
        offsetof(struct gossip, own.covers[1]),
        offsetof(struct gossip, wants),
        offsetof(struct gossip, reply),
    };
    const char *bytes = (const char *)gossip;
    for (size_t at = 0; at < offsetof(struct gossip, counters) + CACHE_LINE; at += CACHE_LINE)
        __builtin_prefetch(bytes + at);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        __builtin_prefetch(bytes + more[i]);
}

static void tick_members(struct gossip *gossip) {
    struct timer *timer;
    for (size_t left = gossip->members.count; left > 0 && (timer = timers_due(&gossip->timers, gossip->now_ms));
         left--) {
        struct member *member = members_of_timer(timer);
        identity_tick(gossip, member);
        probe_tick_member(gossip, member);
        own_resend(gossip, member);
        if (evidence_tick(gossip, member))
            members_changed(gossip, member);
        else
            members_remove(gossip, member);
    }
}

void gossip_tick(struct gossip *gossip, uint64_t now_ms) {
    uint64_t deadline = gossip_deadline_ms(gossip);
    set_now(gossip, now_ms);
    lag_note_tick(gossip, deadline);
    tick_members(gossip);
    probe_tick(gossip);
    own_tick(gossip);
    ring_tick(gossip);
    rumors_tick(gossip);
    repair_tick(gossip);
    wants_tick(gossip);
    rejoin_tick(gossip);
    seek_tick(gossip);
    roll_tick(gossip);
    carrier_tick(gossip);
    events_resync(gossip);
    quiet_settle(gossip);
}

static uint64_t change_row(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *filter,
                           size_t size, bool put) {
    set_now(gossip, now_ms);
    if (!topic_filter_valid(filter, size)) return 0;
    return own_change(gossip, kind, filter, size, put);
}

uint64_t gossip_row_put(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *filter,
                        size_t size) {
    return change_row(gossip, now_ms, kind, filter, size, true);
}

uint64_t gossip_row_delete(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *filter,
                           size_t size) {
    return change_row(gossip, now_ms, kind, filter, size, false);
}

void gossip_note_unwanted(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *name,
                          size_t size) {
    set_now(gossip, now_ms);
    cover_note_unwanted(own_cover(gossip, kind), gossip->now_ms, name, size);
}

void gossip_note_wanted(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, uint64_t count) {
    set_now(gossip, now_ms);
    cover_note_wanted(own_cover(gossip, kind), gossip->now_ms, count);
}

void gossip_leave(struct gossip *gossip, uint64_t now_ms) {
    set_now(gossip, now_ms);
    own_leave(gossip);
}

bool gossip_left(const struct gossip *gossip) {
    return gossip->own.left;
}

uint64_t gossip_epoch(const struct gossip *gossip) {
    return gossip->self->epoch;
}
