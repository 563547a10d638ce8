/* Hashes of what we hold, kept as it changes: the exclusive or of a hash of each member's version, in all and by
 * buckets. Asking costs nothing, however many members there are. */
#include "gossip/verbs.h"

#include <string.h>

#define MEET_MS 200u
#define ANSWER_MS 1000u
#define LACKED_FEW 8u  /* members that we have never heard of: not worth a roll */
#define LISTED_MAX 16u /* buckets in one exchange; more differ only for who lacks many members */

unsigned digest_bucket_of(const struct member_id *id) {
    return id->bytes[0] % MESSAGE_BUCKET_COUNT;
}

bool digest_lists(const struct member *member) {
    return member_is_visible(member) || (member->self && !member->leaving);
}

static uint64_t hash_of(const struct gossip *gossip, const struct version *version) {
    uint8_t bytes[MESSAGE_VERSION_SIZE], digest[32];
    version_store(bytes, version);
    gossip->crypto.sha256(gossip->crypto.context, bytes, sizeof bytes, digest);
    return wire_load_u64(digest);
}

/* In, or out again. The table is what the rows are, not how they are signed: incarnations are left out, and owners that
 * never said anything. */
static void count(const struct gossip *gossip, struct digest *digest, const struct counted *counted) {
    if (!counted->listed) return;
    uint64_t hash = hash_of(gossip, &counted->version);
    struct version rows = counted->version;
    rows.incarnation = 0;
    memcpy(rows.mark, counted->chain, sizeof rows.mark);
    digest->buckets[digest_bucket_of(&rows.id)] ^= hash;
    digest->all ^= hash;
    if (rows.sequence > 0) digest->table ^= hash_of(gossip, &rows);
}

struct counted digest_counted(const struct member *member) {
    struct counted counted = {.listed = digest_lists(member), .version = repair_version_of(member)};
    if (member->registry) memcpy(counted.chain, member->registry->at.chain, sizeof counted.chain);
    return counted;
}

static bool same_version(const struct version *a, const struct version *b) {
    return a->epoch == b->epoch && a->incarnation == b->incarnation && a->sequence == b->sequence &&
           memcmp(a->mark, b->mark, sizeof a->mark) == 0;
}

void digest_changed(struct gossip *gossip, struct member *member) {
    struct counted *counted = &member->counted;
    if (!digest_lists(member) && !counted->listed) return;
    struct counted now = digest_counted(member);
    if (now.listed && counted->listed && same_version(&now.version, &counted->version)) return;
    count(gossip, &gossip->digest, counted);
    *counted = now;
    count(gossip, &gossip->digest, counted);
}

void digest_forget(struct gossip *gossip, struct member *member) {
    count(gossip, &gossip->digest, &member->counted);
    member->counted = (struct counted){0};
}

const char *digest_fault(const struct gossip *gossip) {
    struct digest expected = {0};
    struct member copy;
    for (size_t i = 0; i < gossip->members.count; i++) {
        const struct member *member = members_look(gossip, i, &copy);
        struct counted counted = digest_counted(member);
        count(gossip, &expected, &counted);
    }
    return memcmp(&expected, &gossip->digest, sizeof expected) == 0 ? NULL : "a digest is not that of the members";
}

uint64_t gossip_table_hash(const struct gossip *gossip) {
    return gossip->digest.table;
}

/* ---- comparing with another ---- */

struct message digest_of_all(const struct gossip *gossip) {
    return (struct message){.kind = MESSAGE_DIGEST, .number = gossip->digest.all};
}

void digest_asked(struct gossip *gossip, const struct member *member) {
    gossip->comparison.with = member->id;
    gossip->comparison.until_ms = gossip->now_ms + ANSWER_MS;
}

void digest_send(struct gossip *gossip, struct member *member) {
    digest_asked(gossip, member);
    struct message digest = digest_of_all(gossip), prove = {.kind = MESSAGE_PROVE};
    struct packet packet;
    struct gossip_address to = member_route(member);
    packet_begin(&packet, member, &to);
    packet.dial = address_equal(&to, &member->address);
    if (!member->path_proven) packet_add(gossip, &packet, &prove);
    packet_add(gossip, &packet, &digest);
    packet_end(gossip, &packet, false);
}

void digest_again(struct gossip *gossip) {
    const struct comparison *comparison = &gossip->comparison;
    if (gossip->now_ms >= comparison->until_ms || !id_equal(&comparison->with, &gossip->sender->id)) return;
    struct message digest = digest_of_all(gossip);
    reply_add(gossip, &digest);
}

/* Whoever joins many would else compare with each of them, and get all that it lacks from each. */
void digest_meet(struct gossip *gossip, struct member *member) {
    if (roll_is_called(gossip)) return; /* behind it */
    if (!members_are_many(gossip) && gossip->now_ms >= gossip->comparison.meet_ms) {
        gossip->comparison.meet_ms = gossip->now_ms + MEET_MS;
        digest_send(gossip, member);
        return;
    }
    gossip->next_sync_ms = earlier(gossip->next_sync_ms, gossip->now_ms + MEET_MS);
}

void digest_on_digest(struct gossip *gossip, uint64_t hash) {
    if (!gossip->sender || !gossip->sender->known || hash == gossip->digest.all) return;
    digest_answer(gossip);
}

void digest_answer(struct gossip *gossip) {
    uint8_t bytes[MESSAGE_BUCKET_COUNT * 8];
    for (size_t i = 0; i < MESSAGE_BUCKET_COUNT; i++)
        wire_store_u64(bytes + 8 * i, gossip->digest.buckets[i]);
    struct message buckets = {
        .kind = MESSAGE_BUCKETS, .number = members_visible_count(gossip), .bytes = bytes, .size = sizeof bytes};
    reply_add(gossip, &buckets);
}

/* The members of a bucket with ids above `after`, in order. First bytes of one bucket are 64 apart. */
static const struct member *next_in_bucket(const struct gossip *gossip, unsigned bucket, const struct member_id *after,
                                           struct member *copy) {
    const struct member *member = members_look_after(gossip, after, copy);
    while (member && digest_bucket_of(&member->id) != bucket) {
        unsigned first = member->id.bytes[0] - member->id.bytes[0] % MESSAGE_BUCKET_COUNT + bucket;
        first += first <= member->id.bytes[0] ? MESSAGE_BUCKET_COUNT : 0;
        if (first > UINT8_MAX) return NULL;
        /* The id before all that begin with this byte. */
        struct member_id before;
        memset(&before, 0xff, sizeof before);
        before.bytes[0] = (uint8_t)(first - 1);
        member = members_look_after(gossip, &before, copy);
    }
    return member;
}

/* All we list of one bucket, in as many messages as it takes; each says which range of ids it covers. */
static void list_bucket(struct gossip *gossip, unsigned bucket) {
    uint8_t records[MESSAGE_VERSIONS_MAX * MESSAGE_VERSION_SIZE];
    struct message message = {.kind = MESSAGE_VERSIONS, .number = bucket, .bytes = records};
    size_t count = 0;
    struct member_id after = {{0}};
    struct member copy;
    const struct member *member;
    for (; (member = next_in_bucket(gossip, bucket, &after, &copy)); after = member->id) {
        if (!digest_lists(member)) continue;
        if (count == MESSAGE_VERSIONS_MAX) {
            memcpy(message.other.bytes, records + (count - 1) * MESSAGE_VERSION_SIZE, sizeof message.other.bytes);
            message.size = count * MESSAGE_VERSION_SIZE;
            reply_add(gossip, &message);
            message.version.id = message.other;
            count = 0;
        }
        struct version version = repair_version_of(member);
        version_store(records + count++ * MESSAGE_VERSION_SIZE, &version);
    }
    memset(&message.other, 0xff, sizeof message.other);
    message.size = count * MESSAGE_VERSION_SIZE;
    reply_add(gossip, &message);
}

/* Who only holds other versions of the same members has no use for the roll; who has heard of many and does not see
 * them has. */
static bool lacks_many(const struct gossip *gossip, uint64_t listed) {
    uint32_t visible = members_visible_count(gossip);
    return listed > visible + LACKED_FEW && listed > visible + members_gone_count(gossip) + LACKED_FEW;
}

void digest_on_buckets(struct gossip *gossip, const struct message *message) {
    const uint8_t *hashes = message->bytes;
    if (!gossip->sender || !gossip->sender->known || !gossip->source_proven) return;
    if (id_equal(&gossip->comparison.with, &gossip->sender->id)) gossip->comparison.until_ms = 0;
    unsigned differing = 0, start = chance_below(&gossip->chance, MESSAGE_BUCKET_COUNT);
    for (unsigned i = 0; i < MESSAGE_BUCKET_COUNT; i++)
        differing += gossip->digest.buckets[i] != wire_load_u64(hashes + 8 * i);
    if (differing > LISTED_MAX && lacks_many(gossip, message->number) && roll_start(gossip, message->number)) return;
    unsigned left = catchup_buckets(gossip, differing);
    if (left > LISTED_MAX && !gossip->over_link) left = LISTED_MAX;
    for (unsigned i = 0; i < MESSAGE_BUCKET_COUNT && left > 0; i++) {
        unsigned bucket = (start + i) % MESSAGE_BUCKET_COUNT;
        if (gossip->digest.buckets[bucket] == wire_load_u64(hashes + 8 * bucket)) continue;
        list_bucket(gossip, bucket);
        left--;
    }
}

static bool is_in(const struct message *message, const struct member_id *id) {
    for (size_t at = 0; at < message->size; at += MESSAGE_VERSION_SIZE)
        if (id_equal((const struct member_id *)(message->bytes + at), id)) return true;
    return false;
}

void digest_on_versions(struct gossip *gossip, const struct message *message) {
    if (!gossip->sender || !gossip->sender->known || !gossip->source_proven ||
        message->size % MESSAGE_VERSION_SIZE != 0 || message->number >= MESSAGE_BUCKET_COUNT)
        return;
    size_t served = 0, unknown = 0;
    for (size_t at = 0; at < message->size; at += MESSAGE_VERSION_SIZE) {
        struct version theirs;
        version_load(message->bytes + at, &theirs);
        unknown += !repair_compare(gossip, &theirs, &served);
    }
    if (unknown > LACKED_FEW) roll_start(gossip, 0); /* two federations have become one */
    struct member_id after = message->version.id;
    struct member copy;
    const struct member *member;
    while ((member = next_in_bucket(gossip, (unsigned)message->number, &after, &copy))) {
        if (memcmp(&member->id, &message->other, sizeof member->id) > 0) return;
        after = member->id;
        if (!digest_lists(member) || is_in(message, &member->id)) continue;
        struct message have = {.kind = MESSAGE_HAVE, .version = repair_version_of(member)};
        reply_add(gossip, &have);
    }
}
