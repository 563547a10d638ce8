/* Discovery on the local network. A group's address is one more way to a first peer: a sealed SEEK goes to it, and who
 * hears it and does not see the seeker dials it, by unicast, after a random time. So the seeker learns nothing that it
 * would not from being a bootstrap address, and who has no gossip key learns nothing.
 *
 * No storm when a thousand start at once: whoever has heard enough SEEKs keeps its own to itself, each dials one seeker
 * at a time, and of brokers that see one another about three answer, whatever their number. */
#include "gossip/verbs.h"

#include <string.h>

#define FIRST_MAX_MS 500u /* the first SEEK comes at a random time within this */
#define AGAIN_MIN_MS 1000u
#define AGAIN_MAX_MS 30000u
#define HEARD_ENOUGH 16u /* SEEKs of others that stand for ours */
#define ANSWERS 3u       /* wanted of brokers that see one another */
#define DIAL_WITHIN_MS 250u

static bool is_alone(const struct gossip *gossip) {
    return members_visible_count(gossip) == 1;
}

static void plan(struct gossip *gossip) {
    struct seek *seek = &gossip->seek;
    uint64_t grown = AGAIN_MIN_MS + chance_below(&gossip->chance, (uint32_t)(3 * seek->gap_ms - AGAIN_MIN_MS + 1));
    seek->gap_ms = grown < AGAIN_MAX_MS ? grown : AGAIN_MAX_MS;
    if (!is_alone(gossip)) seek->gap_ms = AGAIN_MAX_MS;
    seek->next_ms = gossip->now_ms + seek->gap_ms / 2 + chance_below(&gossip->chance, (uint32_t)seek->gap_ms + 1);
    seek->heard = 0;
}

static void send(struct gossip *gossip, const struct gossip_address *group) {
    struct packet packet;
    packet_begin(&packet, NULL, group);
    packet.dial = true;
    /* The head makes it as long as the dial that answers it, so that a forged source wins nothing. */
    struct message message = {.kind = MESSAGE_SEEK, .bytes = gossip->self->head, .size = gossip->self->head_size};
    packet_add(gossip, &packet, &message);
    packet_end(gossip, &packet, false);
}

/* Of all that were heard since the last dial some are kept, each as likely as another. */
static void keep(struct gossip *gossip, const struct gossip_address *address) {
    struct seek *seek = &gossip->seek;
    size_t place = seek->waiting;
    for (size_t i = 0; i < seek->waiting; i++)
        if (address_equal(&seek->sought[i].address, address)) return;
    if (seek->waiting < SOUGHT_MAX)
        seek->waiting++;
    else
        place = chance_below(&gossip->chance, seek->heard > SOUGHT_MAX ? seek->heard : SOUGHT_MAX);
    if (place >= SOUGHT_MAX) return;
    seek->sought[place] = (struct bootstrap){.address = *address};
    if (seek->dial_ms == NEVER) seek->dial_ms = gossip->now_ms + chance_below(&gossip->chance, DIAL_WITHIN_MS);
}

/* Nearly no packet is one: two bytes tell. */
static bool may_be_seek(const struct wire_in *in) {
    if (in->size - in->at < 2) return false;
    const uint8_t *bytes = in->bytes + in->at;
    bool is_short = (bytes[0] & 0xf0) == 0x90 && bytes[1] < 0x80;
    return !is_short || bytes[1] == MESSAGE_SEEK;
}

bool seek_hear(struct gossip *gossip, const struct wire_in *messages) {
    struct wire_in in = *messages;
    struct message message;
    if (!may_be_seek(messages) || !message_get(&in, &message) || message.kind != MESSAGE_SEEK) return false;
    struct seek *seek = &gossip->seek;
    const struct member *member = members_find(gossip, &gossip->header->id);
    if (seek->group_count == 0 || (member && (member->self || member->refused))) return true;
    seek->heard++;
    if (member && member_is_visible(member)) {
        plan(gossip); /* it has asked for us too */
        return true;
    }
    if (chance_below(&gossip->chance, members_visible_count(gossip)) < ANSWERS) keep(gossip, &gossip->source);
    return true;
}

static void dial_one(struct gossip *gossip) {
    struct seek *seek = &gossip->seek;
    size_t place = chance_below(&gossip->chance, (uint32_t)seek->waiting), last = --seek->waiting;
    struct bootstrap chosen = seek->sought[place];
    /* It stays, behind those that wait, until its answer is here or its place is needed. */
    seek->sought[place] = seek->sought[last];
    seek->sought[last] = chosen;
    if (!rejoin_is_answered(gossip, &chosen)) rejoin_dial(gossip, &seek->sought[last]);
    seek->dial_ms = seek->waiting == 0
                        ? NEVER
                        : gossip->now_ms + DIAL_WITHIN_MS / 2 + chance_below(&gossip->chance, DIAL_WITHIN_MS);
}

void seek_tick(struct gossip *gossip) {
    struct seek *seek = &gossip->seek;
    if (gossip->now_ms >= seek->dial_ms) dial_one(gossip);
    if (gossip->now_ms < seek->next_ms) return;
    bool suppressed = seek->heard >= HEARD_ENOUGH || gossip->self->leaving;
    for (size_t i = 0; i < seek->group_count && !suppressed; i++)
        send(gossip, &seek->groups[i]);
    plan(gossip);
}

uint64_t seek_deadline_ms(const struct gossip *gossip) {
    return earlier(gossip->seek.next_ms, gossip->seek.dial_ms);
}

void gossip_set_groups(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *groups, size_t count,
                       const struct gossip_address *own) {
    struct seek *seek = &gossip->seek;
    gossip->now_ms = now_ms > gossip->now_ms ? now_ms : gossip->now_ms;
    seek->group_count = count < GROUPS_MAX ? count : GROUPS_MAX;
    if (seek->group_count > 0) memcpy(seek->groups, groups, seek->group_count * sizeof *groups);
    /* Without an address in its head nobody would sign for it, and of two such neither would begin (proof.c). */
    if (gossip->self->address.family == 0) own_seen_at(gossip, own);
    seek->gap_ms = AGAIN_MIN_MS;
    seek->next_ms = seek->group_count == 0 ? NEVER : gossip->now_ms + chance_below(&gossip->chance, FIRST_MAX_MS);
}
