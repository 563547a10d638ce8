/* Members in the order of their ids, which is also a ring: the first comes behind the last. */
#include "gossip/verbs.h"

#include <string.h>

struct member *members_after(struct gossip *gossip, const struct member_id *id) {
    struct members_walk walk = members_walk_after(gossip, id);
    uint32_t number = members_walk_next(gossip, &walk);
    return number == DIRECTORY_NOBODY ? NULL : members_wake_at(gossip, number);
}

const struct member *members_look_after(const struct gossip *gossip, const struct member_id *id, struct member *copy) {
    struct members_walk walk = members_walk_after(gossip, id);
    uint32_t number = members_walk_next(gossip, &walk);
    return number == DIRECTORY_NOBODY ? NULL : members_look_at(gossip, number, copy);
}

struct members_walk members_walk_after(const struct gossip *gossip, const struct member_id *id) {
    return (struct members_walk){directory_place_after(&gossip->members.directory, members_ids(&gossip->members), id)};
}

uint32_t members_walk_next(const struct gossip *gossip, struct members_walk *walk) {
    return directory_next(&gossip->members.directory, &walk->place);
}

uint32_t members_walk_prefix(const struct gossip *gossip, const struct members_walk *walk) {
    return gossip->members.directory.slots[walk->place - 1].prefix;
}

bool members_walk_is_behind(const struct gossip *gossip, const struct members_walk *walk, const struct member_id *id) {
    uint32_t prefix = members_walk_prefix(gossip, walk), other = id_prefix(id);
    if (prefix != other) return prefix > other;
    return memcmp(members_id_at(&gossip->members, gossip->members.directory.slots[walk->place - 1].number - 1), id,
                  sizeof *id) > 0;
}

bool members_walk_is_visible(const struct gossip *gossip, uint32_t number) {
    return quiet_of(&gossip->members, number)->place < gossip->members.part_end[PART_SUSPECT_ASKED];
}

static bool is_alive(const struct gossip *gossip, uint32_t number) {
    return quiet_of(&gossip->members, number)->place < gossip->members.part_end[PART_ALIVE_TO_ASK];
}

/* Suspects are asked often by many, and passing over them finds at once who died together with its neighbour. */
static uint32_t look_for_neighbour(const struct gossip *gossip, uint32_t step(const struct directory *, size_t *)) {
    const struct directory *directory = &gossip->members.directory;
    size_t place = directory_place_after(directory, members_ids(&gossip->members), &gossip->self->id);
    for (size_t left = gossip->members.count; left > 0; left--) {
        uint32_t number = step(directory, &place);
        if (number == DIRECTORY_NOBODY) {
            place = place == 0 ? directory->room : 0;
            number = step(directory, &place);
        }
        if (number != DIRECTORY_NOBODY && is_alive(gossip, number)) return number;
    }
    return DIRECTORY_NOBODY;
}

static struct member *neighbour(struct gossip *gossip, bool behind) {
    struct members *members = &gossip->members;
    if (members->neighbours[behind].at_change != members->changes + 1) {
        members->neighbours[behind].at_change = members->changes + 1;
        members->neighbours[behind].number = look_for_neighbour(gossip, behind ? directory_next : directory_previous);
    }
    uint32_t number = members->neighbours[behind].number;
    return number != DIRECTORY_NOBODY ? members_wake_at(gossip, number) : NULL;
}

struct member *members_successor(struct gossip *gossip) {
    return neighbour(gossip, true);
}

struct member *members_predecessor(struct gossip *gossip) {
    return neighbour(gossip, false);
}
