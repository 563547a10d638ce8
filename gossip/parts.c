/* Members in parts of one array, so that a random visible one, the next one to be asked, all suspects and all who are
 * absent are each found without a walk. */
#include "gossip/verbs.h"

#define PICK_TRIES_MAX 64u
#define PROVEN_TRIES_MAX 12u /* where those are rare, as in a storm of joins, all would choose the same few */

static enum member_part part_at(const struct members *members, uint32_t place) {
    unsigned part = 0;
    while (place >= members->part_end[part])
        part++;
    return (enum member_part)part;
}

void parts_put(struct members *members, uint32_t place, uint32_t number) {
    members->places[place] = number;
    quiet_of(members, number)->place = place & QUIET_PLACE_MAX;
}

static void swap_places(struct members *members, uint32_t a, uint32_t b) {
    uint32_t number = members->places[a];
    parts_put(members, a, members->places[b]);
    parts_put(members, b, number);
}

void parts_move(struct members *members, struct member *member, enum member_part to) {
    const struct quiet *quiet = quiet_of(members, member->number);
    unsigned part = part_at(members, quiet->place);
    members->changes += (part <= PART_ALIVE_TO_ASK) != (to <= PART_ALIVE_TO_ASK);
    for (; part < to; part++) {
        members->part_end[part]--;
        swap_places(members, quiet->place, members->part_end[part]);
    }
    for (; part > to; part--) {
        swap_places(members, quiet->place, members->part_end[part - 1]);
        members->part_end[part - 1]++;
    }
}

/* What we send reaches it, and it heeds it. */
static bool has_proved(const struct quiet *quiet) {
    return quiet->is_awake ? quiet->awake->path_proven || quiet->awake->way.link : quiet->path_proven;
}

static bool was_asked(enum member_part part) {
    return part == PART_ALIVE_ASKED || part == PART_SUSPECT_ASKED;
}

/* As long as it is not asked. */
static enum member_part part_for(const struct member *member) {
    if (member_is_visible(member)) return member->state == MEMBER_ALIVE ? PART_ALIVE_TO_ASK : PART_SUSPECT_TO_ASK;
    bool gone = member->state == MEMBER_DOWN || member->state == MEMBER_LEFT;
    bool absent = gone || (member->state == MEMBER_UNVERIFIED && !member->refused);
    return absent && !member->self ? PART_ABSENT : PART_OTHER;
}

static enum member_part when_asked(enum member_part part) {
    return part == PART_ALIVE_TO_ASK ? PART_ALIVE_ASKED : part == PART_SUSPECT_TO_ASK ? PART_SUSPECT_ASKED : part;
}

void parts_settle(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    enum member_part to = part_for(member);
    if (to == member->part) return;
    member->part = to;
    bool asked = was_asked(part_at(members, quiet_of(members, member->number)->place));
    parts_move(members, member, asked ? when_asked(to) : to);
}

uint32_t members_visible_count(const struct gossip *gossip) {
    return gossip->members.part_end[PART_SUSPECT_ASKED] + 1;
}

/* Who has just begun to join many takes the word of the one that made it call the roll. */
bool members_are_many(const struct gossip *gossip) {
    uint64_t others = members_visible_count(gossip) - 1, most = gossip->limits.eager_members_max;
    return others > most || (roll_is_called(gossip) && gossip->roll.listed > most + 1);
}

struct member *members_visible(struct gossip *gossip, size_t index) {
    return index + 1 < members_visible_count(gossip) ? members_at(gossip, index) : NULL;
}

uint32_t members_suspect_count(const struct gossip *gossip) {
    return gossip->members.part_end[PART_SUSPECT_ASKED] - gossip->members.part_end[PART_ALIVE_TO_ASK];
}

struct member *members_suspect(struct gossip *gossip, size_t index) {
    if (index >= members_suspect_count(gossip)) return NULL;
    return members_at(gossip, gossip->members.part_end[PART_ALIVE_TO_ASK] + index);
}

/* Some may be out of reach, by datagram and by link: then it is no use to try for ever. */
static size_t pick(struct gossip *gossip, struct member **out, size_t count, size_t want, const struct member *skip,
                   bool proven) {
    uint32_t visible = members_visible_count(gossip) - 1;
    size_t tries_max = proven ? PROVEN_TRIES_MAX : PICK_TRIES_MAX;
    for (size_t tries = 0; visible > 0 && count < want && tries < tries_max; tries++) {
        if (count + (skip && member_is_visible(skip)) == visible) break;
        size_t place = chance_below(&gossip->chance, visible);
        if (proven && !has_proved(quiet_of(&gossip->members, gossip->members.places[place]))) continue;
        struct member *member = members_at(gossip, place);
        bool taken = !member || member == skip || !carrier_reaches(gossip, member);
        for (size_t i = 0; i < count; i++)
            taken = taken || out[i] == member;
        if (!taken) out[count++] = member;
    }
    return count;
}

size_t members_pick_any(struct gossip *gossip, struct member **out, size_t want, const struct member *skip) {
    return pick(gossip, out, 0, want, skip, false);
}

size_t members_pick(struct gossip *gossip, struct member **out, size_t want, const struct member *skip) {
    size_t count = pick(gossip, out, 0, want, skip, true);
    return pick(gossip, out, count, want, skip, false);
}

struct member *members_pick_absent(struct gossip *gossip) {
    uint32_t first = gossip->members.part_end[PART_SUSPECT_ASKED];
    uint32_t count = gossip->members.part_end[PART_ABSENT] - first;
    return count > 0 ? members_at(gossip, first + chance_below(&gossip->chance, count)) : NULL;
}

uint32_t members_absent_count(const struct gossip *gossip) {
    return gossip->members.part_end[PART_ABSENT] - gossip->members.part_end[PART_SUSPECT_ASKED];
}

uint32_t members_gone_count(const struct gossip *gossip) {
    uint32_t count = 0;
    for (uint32_t place = gossip->members.part_end[PART_SUSPECT_ASKED]; place < gossip->members.part_end[PART_ABSENT];
         place++) {
        struct member copy;
        count += members_look_at(gossip, gossip->members.places[place], &copy)->state != MEMBER_UNVERIFIED;
    }
    return count;
}

struct member *members_next_to_ask(struct gossip *gossip) {
    struct members *members = &gossip->members;
    uint32_t *end = members->part_end;
    if (end[PART_ALIVE_ASKED] == end[PART_SUSPECT_TO_ASK]) { /* a new round */
        end[PART_ALIVE_ASKED] = 0;
        end[PART_SUSPECT_TO_ASK] = end[PART_SUSPECT_ASKED];
    }
    uint32_t count = end[PART_SUSPECT_TO_ASK] - end[PART_ALIVE_ASKED];
    if (count == 0) return NULL;
    struct member *member = members_at(gossip, end[PART_ALIVE_ASKED] + chance_below(&gossip->chance, count));
    if (member) parts_move(members, member, member->state == MEMBER_ALIVE ? PART_ALIVE_ASKED : PART_SUSPECT_ASKED);
    return member;
}

bool parts_hold(const struct members *members, uint32_t place, const struct member *member) {
    enum member_part part = part_at(members, place);
    bool in_part = part == member->part || part == when_asked(member->part);
    return quiet_of(members, members->places[place])->place == place && part_for(member) == member->part && in_part;
}
