/* Rumours: each interval to three members, what is new about others. In full until two receivers had it already,
 * then only its name and version; whoever lacks it asks. One slot per member, in its record: the newest takes the place
 * of the older. */
#include "gossip/verbs.h"

#define FANOUT 3u
#define FRESH_PART 4u /* of an interval */
#define HAD_ENOUGH 2u
#define PACKET_ENOUGH 900u /* bytes; the rest waits for the next interval */
#define WRITTEN_MAX 64u

/* 4 * ceil(log10(N + 1)), and more where many are lost, so that as many arrive. Measured are pings, which are lost on
 * two ways: the part of 1 that comes back is about that of one way squared. */
static uint32_t sends_for(const struct gossip *gossip) {
    uint32_t sends = 4, members = members_visible_count(gossip);
    for (uint32_t n = 10; n < members + 1 && n < 1000000000; n *= 10)
        sends += 4;
    return sends + sends * gossip->loss / 65536;
}

/* The first news after a pause goes on at once. */
static void after_last(struct gossip *gossip, uint64_t gap_ms) {
    uint64_t due = gossip->last_rumor_ms + gap_ms;
    gossip->next_rumor_ms = earlier(gossip->next_rumor_ms, due > gossip->now_ms ? due : gossip->now_ms);
}

static void soon(struct gossip *gossip) {
    after_last(gossip, gossip->limits.rumor_interval_ms);
}

void rumors_head(struct gossip *gossip, struct member *member) {
    member->rumor.head_sends = sends_for(gossip);
    member->rumor.head_had = 0;
    members_changed(gossip, member);
    soon(gossip);
}

/* Of one that had nothing to tell it goes on soon. Of one that changes row after row the newest does in each round, and
 * what is between is asked for once by each: faster rounds would tell everything several times. */
void rumors_entry(struct gossip *gossip, struct member *member, bool known_widely) {
    uint64_t interval_ms = gossip->limits.rumor_interval_ms;
    bool first = member->rumor.entry_sends == 0;
    member->rumor.entry_sends = sends_for(gossip);
    member->rumor.entry_had = known_widely ? HAD_ENOUGH : 0;
    members_changed(gossip, member);
    after_last(gossip, first ? interval_ms / FRESH_PART : interval_ms);
}

/* Rounds may just have begun, and whoever hears last of a death holds the dead alive longest. */
static void tell_some(struct gossip *gossip, const struct member *accused, const struct message *accusation) {
    struct member *some[FANOUT];
    if (!probe_may(gossip, FANOUT)) return;
    size_t count = members_pick(gossip, some, FANOUT, accused);
    for (size_t i = 0; i < count; i++)
        send_one(gossip, some[i], accusation);
}

void rumors_accusation(struct gossip *gossip, struct member *member) {
    member->rumor.accuse_sends = sends_for(gossip);
    members_changed(gossip, member);
    soon(gossip);
    struct message accusation = accusation_of(member);
    if (members_are_many(gossip)) {
        tell_some(gossip, member, &accusation);
        return;
    }
    if (!probe_may(gossip, members_visible_count(gossip) - 1)) return;
    /* In a small federation everybody hears at once, the accused too. */
    struct member *other;
    for (size_t i = 0; (other = members_visible(gossip, i)); i++)
        send_one(gossip, other, &accusation);
}

void rumors_say_had(struct gossip *gossip, const struct member *member) {
    struct message had = {.kind = MESSAGE_HAD, .version = repair_version_of(member)};
    reply_add(gossip, &had);
}

void rumors_on_had(struct gossip *gossip, const struct message *message) {
    struct member *member = members_find(gossip, &message->version.id);
    if (!member || message->version.epoch != member->epoch || !gossip->source_proven) return;
    if (message->version.incarnation >= member->incarnation) member->rumor.head_had++;
    if (message->version.sequence >= registry_sequence(member->registry)) member->rumor.entry_had++;
}

void rumors_wake(struct gossip *gossip) {
    soon(gossip);
}

static void write_rumor(struct gossip *gossip, struct packet *packet, struct member *about) {
    struct rumor *rumor = &about->rumor;
    bool name_only = false;
    if (rumor->accuse_sends > 0) {
        /* Also when it is held dead: others may have heard of too few accusers yet to hold it so. */
        bool current = accusation_stands(about);
        rumor->accuse_sends = current ? rumor->accuse_sends - 1 : 0;
        struct message accusation = accusation_of(about);
        if (current) packet_add(gossip, packet, &accusation);
    }
    if (packet->member == about) return;
    if (rumor->head_sends > 0) {
        rumor->head_sends--;
        struct message head = evidence_head_of(about), vouch = vouch_for(about);
        bool full = rumor->head_had < HAD_ENOUGH && about->head_size > 0;
        if (full && member_is_visible(about) && members_are_many(gossip)) packet_add(gossip, packet, &vouch);
        if (full)
            packet_add(gossip, packet, &head);
        else
            name_only = true;
    }
    if (rumor->entry_sends > 0) {
        rumor->entry_sends--;
        const struct log_entry *entry = registry_entry(about->registry, registry_sequence(about->registry));
        if (rumor->entry_had < HAD_ENOUGH && entry) {
            struct message message = {.kind = MESSAGE_ENTRY, .bytes = entry->bytes, .size = entry->size};
            packet_add(gossip, packet, &message);
            gossip->counters.entries_sent++;
        } else {
            name_only = true;
        }
    }
    if (name_only) {
        struct message have = {.kind = MESSAGE_HAVE, .version = repair_version_of(about)};
        packet_add(gossip, packet, &have);
    }
}

static void tell(struct gossip *gossip, struct member *to) {
    struct packet packet;
    struct gossip_address route = member_route(to);
    struct member *written[WRITTEN_MAX];
    uint32_t count = members_told_count(gossip), start = count > 0 ? chance_below(&gossip->chance, count) : 0, i;
    packet_begin(&packet, to, &route);
    for (i = 0; i < count && i < WRITTEN_MAX && packet.out.size < PACKET_ENOUGH; i++) {
        written[i] = members_told(gossip, (start + i) % count);
        if (written[i]) write_rumor(gossip, &packet, written[i]);
    }
    packet_end(gossip, &packet, false);
    while (i-- > 0)
        if (written[i]) members_changed(gossip, written[i]); /* it may be done */
}

/* By chance alone one in some thousand rumours passes by somebody, who learns it by a comparison seconds later. So one
 * of each round is the next or the previous in the ring of ids: whose neighbours know knows, too. */
static struct member *pick_neighbour(struct gossip *gossip) {
    if (!members_are_many(gossip)) return NULL;
    gossip->rumor_ahead = !gossip->rumor_ahead;
    struct member *neighbour = gossip->rumor_ahead ? members_successor(gossip) : members_predecessor(gossip);
    return neighbour && carrier_reaches(gossip, neighbour) ? neighbour : NULL;
}

void rumors_tick(struct gossip *gossip) {
    if (gossip->now_ms < gossip->next_rumor_ms) return;
    struct member *some[FANOUT], *neighbour = pick_neighbour(gossip);
    size_t count = members_pick(gossip, some, neighbour ? FANOUT - 1 : FANOUT, neighbour);
    if (neighbour) some[count++] = neighbour;
    for (size_t i = 0; i < count; i++)
        tell(gossip, some[i]);
    gossip->last_rumor_ms = gossip->now_ms;
    gossip->next_rumor_ms = NEVER;
    if (count > 0 && members_told_count(gossip) > 0) soon(gossip);
}

uint64_t rumors_deadline_ms(const struct gossip *gossip) {
    return gossip->next_rumor_ms;
}
