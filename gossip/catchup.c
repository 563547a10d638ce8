/* Large transfers: which way, from whom, and whose turn it is. The pieces are those of repair.c and digest.c, so a
 * transfer that breaks goes on where it was, with anybody: what came is kept by (owner, epoch, T), and a table is
 * compared anew. Pace: who asks has a bounded number of chunks under way, who serves a bucket of bytes for all. */
#include "gossip/verbs.h"

#include <string.h>

#define AHEAD_BY_DATAGRAM 4u
#define AHEAD_BY_LINK 64u
#define LEASE_MS 3000u      /* who asks for nothing so long has no turn any more */
#define BURST_BYTES 131072u /* of the bucket; half of what waits for one link at most (broker/carry.h) */
#define CHUNK_BYTES 1100u   /* about, with its proof */
#define ELSEWHERE_MS 1000u
#define PUT_OFF_MAX_MS 60000u /* no helper can put us off for longer */
#define FEW_BUCKETS 8u        /* that are compared by datagrams meanwhile */
#define PULL_MS 10000u

/* ---- serving ---- */

static size_t served_max(const struct gossip *gossip) {
    return gossip->limits.transfers_max < CATCHUP_SERVED_MAX ? gossip->limits.transfers_max : CATCHUP_SERVED_MAX;
}

/* A turn for the sender: its own, or one that is free. If there is none: when there may be one. */
static bool take_turn(struct gossip *gossip, uint64_t *wait_ms) {
    struct catchup *catchup = &gossip->catchup;
    size_t place = SIZE_MAX;
    *wait_ms = LEASE_MS;
    for (size_t i = 0; i < served_max(gossip); i++) {
        bool live = catchup->served[i].until_ms > gossip->now_ms;
        if (live && id_equal(&catchup->served[i].id, &gossip->sender->id)) {
            place = i;
            break;
        }
        if (live)
            *wait_ms = earlier(*wait_ms, catchup->served[i].until_ms - gossip->now_ms);
        else if (place == SIZE_MAX)
            place = i;
    }
    if (place == SIZE_MAX) return false;
    catchup->served[place].id = gossip->sender->id;
    catchup->served[place].until_ms = gossip->now_ms + LEASE_MS;
    return true;
}

static bool take_bytes(struct gossip *gossip, uint64_t size, uint64_t *wait_ms) {
    struct catchup *catchup = &gossip->catchup;
    uint64_t rate = gossip->limits.transfer_bytes_per_s, passed = gossip->now_ms - catchup->tokens_ms;
    uint64_t more = passed >= 1000 ? BURST_BYTES : passed * rate / 1000;
    /* A fraction of a byte is not forgotten: the time that made it is not counted yet. */
    if (more > 0 || passed >= 1000) catchup->tokens_ms = gossip->now_ms;
    catchup->tokens = catchup->tokens + more < BURST_BYTES ? catchup->tokens + more : BURST_BYTES;
    if (catchup->tokens >= size) {
        catchup->tokens -= size;
        return true;
    }
    *wait_ms = BURST_BYTES / 2 * 1000 / rate + 1;
    return false;
}

/* Come again after a while, or ask another, of whom there may be one with whom we have a link. */
static void put_off(struct gossip *gossip, uint64_t wait_ms, bool elsewhere) {
    struct member *other = NULL;
    if (gossip->catchup.told) return;
    gossip->catchup.told = true;
    gossip->counters.transfers_put_off++;
    struct message later = {.kind = MESSAGE_LATER, .number = wait_ms + chance_below(&gossip->chance, LEASE_MS / 4)};
    if (elsewhere && members_pick_any(gossip, &other, 1, gossip->sender) == 1) later.version.id = other->id;
    reply_add(gossip, &later);
}

bool catchup_serves_chunk(struct gossip *gossip, uint64_t chunks) {
    uint64_t wait_ms;
    if (chunks <= CATCHUP_SMALL_CHUNKS) return true;
    if (!gossip->sender || gossip->catchup.told) return false;
    bool turn = take_turn(gossip, &wait_ms);
    if (turn && take_bytes(gossip, CHUNK_BYTES, &wait_ms)) return true;
    put_off(gossip, wait_ms, !turn);
    return false;
}

void catchup_on_pull(struct gossip *gossip) {
    uint64_t wait_ms;
    if (!gossip->over_link || !gossip->authentic) return;
    if (take_turn(gossip, &wait_ms))
        digest_answer(gossip);
    else
        put_off(gossip, wait_ms, true);
}

bool catchup_serves_owner(struct gossip *gossip, size_t size) {
    uint64_t wait_ms;
    if (!gossip->over_link) return false;
    for (size_t i = 0; i < served_max(gossip); i++)
        if (gossip->catchup.served[i].until_ms > gossip->now_ms &&
            id_equal(&gossip->catchup.served[i].id, &gossip->sender->id))
            return take_bytes(gossip, size, &wait_ms);
    return false;
}

/* ---- asking ---- */

static bool is_busy(const struct gossip *gossip, const struct member *member) {
    for (size_t i = 0; i < CATCHUP_BUSY_MAX; i++)
        if (gossip->catchup.busy[i].until_ms > gossip->now_ms && id_equal(&gossip->catchup.busy[i].id, &member->id))
            return true;
    return false;
}

static void note_busy(struct gossip *gossip, const struct member *member, uint64_t until_ms) {
    struct catchup *catchup = &gossip->catchup;
    size_t place = 0;
    for (size_t i = 0; i < CATCHUP_BUSY_MAX; i++) {
        if (id_equal(&catchup->busy[i].id, &member->id)) {
            place = i;
            break;
        }
        if (catchup->busy[i].until_ms < catchup->busy[place].until_ms) place = i;
    }
    catchup->busy[place].id = member->id;
    catchup->busy[place].until_ms = until_ms;
}

/* One with whom there is a link and who did not put us off: of those that are wanted, in turn. */
static struct member *linked(struct gossip *gossip) {
    uint32_t start = chance_below(&gossip->chance, CARRIER_WANTS_MAX);
    for (uint32_t i = 0; i < CARRIER_WANTS_MAX; i++) {
        const struct carrier_want *want = &gossip->carrier.wants[(start + i) % CARRIER_WANTS_MAX];
        struct member *member = want->until_ms != 0 ? members_find(gossip, &want->id) : NULL;
        if (member && member->way.link && member_is_visible(member) && !is_busy(gossip, member)) return member;
    }
    return NULL;
}

uint32_t catchup_way(struct gossip *gossip, const struct staging *staging, struct member **from,
                     struct gossip_address *to) {
    bool small = staging_chunks(staging) <= CATCHUP_SMALL_CHUNKS;
    *to = (struct gossip_address){0};
    if (!small && (!(*from)->way.link || is_busy(gossip, *from))) {
        struct member *other = linked(gossip);
        if (other) *from = other;
    }
    if (!small && is_busy(gossip, *from)) return 0;
    if (!small && (*from)->way.link) {
        *to = carrier_address(&(*from)->id);
        carrier_want(gossip, *from, CARRIER_NEED_MS); /* it is not to be closed now */
        return AHEAD_BY_LINK;
    }
    if (!small) carrier_want(gossip, *from, CARRIER_NEED_MS);
    *to = gossip->header && *from == gossip->sender ? gossip->source : member_route(*from);
    return AHEAD_BY_DATAGRAM;
}

void catchup_on_later(struct gossip *gossip, const struct message *message) {
    if (!gossip->authentic) return;
    uint64_t wait_ms = message->number < PUT_OFF_MAX_MS ? message->number : PUT_OFF_MAX_MS;
    note_busy(gossip, gossip->sender, gossip->now_ms + wait_ms);
    struct member *other = members_find(gossip, &message->version.id);
    bool better = other && member_is_visible(other) && !is_busy(gossip, other);
    if (better) carrier_want(gossip, other, CARRIER_NEED_MS);
    /* Who has put us off is not asked before that; others are, and so that nobody can hold us up, soon. */
    if (wait_ms > ELSEWHERE_MS) wait_ms = ELSEWHERE_MS;
    repair_put_off(gossip, gossip->sender, gossip->now_ms + (better && other->way.link ? 0 : wait_ms));
}

static bool pull(struct gossip *gossip, struct member *member) {
    struct message message = {.kind = MESSAGE_PULL};
    return carrier_send_one(gossip, member, &message);
}

/* Who holds much that we do not is asked over its link; until there is one, or its turn is ours, little is compared. */
unsigned catchup_buckets(struct gossip *gossip, unsigned differing) {
    struct catchup *catchup = &gossip->catchup;
    struct member *sender = gossip->sender;
    if (differing <= gossip->limits.datagram_buckets_max) return differing;
    bool asked = gossip->now_ms < catchup->source_until_ms && id_equal(&catchup->source, &sender->id);
    if (gossip->over_link && asked) return differing;
    if (is_busy(gossip, sender)) return 0;
    carrier_want(gossip, sender, CARRIER_NEED_MS);
    catchup->source = sender->id;
    catchup->source_until_ms = gossip->now_ms + PULL_MS;
    catchup->source_asked = pull(gossip, sender);
    return catchup->source_asked ? 0 : FEW_BUCKETS;
}

void catchup_on_link(struct gossip *gossip, struct member *member) {
    struct catchup *catchup = &gossip->catchup;
    if (catchup->source_asked || gossip->now_ms >= catchup->source_until_ms || !id_equal(&catchup->source, &member->id))
        return;
    catchup->source_asked = pull(gossip, member);
}
