/* Members of whom there is something to tell, in a list. */
#include "gossip/verbs.h"

#include <stdlib.h>

static bool should_be_told(const struct member *member) {
    const struct rumor *rumor = &member->rumor;
    return (member->known || member->self) && (rumor->head_sends || rumor->entry_sends || rumor->accuse_sends);
}

static bool reserve_told(struct members *members) {
    if (members->told_count < members->told_room) return true;
    uint32_t room = members->told_room + members->told_room / 2 + 16;
    uint32_t *told = realloc(members->told, room * sizeof *told);
    if (!told) return false;
    members->told = told;
    members->told_room = room;
    return true;
}

static void set_told_at(struct members *members, uint32_t number, uint32_t told_at) {
    struct quiet *quiet = quiet_of(members, number);
    if (quiet->is_awake)
        quiet->awake->told_at = told_at;
    else
        quiet->told_at = told_at & QUIET_TOLD_MAX;
}

/* Short of memory it is not told: who lacks it compares some day. */
void told_list(struct members *members, struct member *member) {
    bool told = should_be_told(member);
    if (told == (member->told_at > 0)) return;
    if (told && !reserve_told(members)) {
        member->rumor = (struct rumor){0};
    } else if (told) {
        members->told[members->told_count] = member->number;
        member->told_at = ++members->told_count;
    } else {
        uint32_t last = members->told[--members->told_count];
        members->told[member->told_at - 1] = last;
        set_told_at(members, last, member->told_at);
        member->told_at = 0;
    }
}

uint32_t members_told_count(const struct gossip *gossip) {
    return gossip->members.told_count;
}

struct member *members_told(struct gossip *gossip, size_t index) {
    return members_wake_at(gossip, gossip->members.told[index]);
}

bool told_holds(const struct member *member) {
    return should_be_told(member) == (member->told_at > 0);
}
