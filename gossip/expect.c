/* What a call that comes soon will touch besides what gossip_expect() asks for: the timers, and the record of who
 * sends. Only hints, which change nothing, also when they are wrong. */
#include "gossip/inspect.h"

#include "gossip/verbs.h"

#define LINE 64u
#define RECORD_FRONT 576u /* of a member's record: what each packet needs stands in front */

static void fetch(const void *from, size_t size) {
    for (size_t at = 0; at < size; at += LINE)
        __builtin_prefetch((const char *)from + at, 1);
}

/* By the beginning of its id alone: DIRECTORY_NOBODY for nobody, and now and then somebody else. */
static uint32_t guess(const struct directory *directory, const struct member_id *id) {
    size_t at = directory_home(directory, id_prefix(id));
    while (at < directory->room && directory->slots[at].number != 0 && directory->slots[at].prefix < id_prefix(id))
        at++;
    bool there = at < directory->room && directory->slots[at].number != 0;
    return there ? directory->slots[at].number - 1 : DIRECTORY_NOBODY;
}

static void fetch_record(const struct gossip *gossip, uint32_t number) {
    const struct quiet *quiet = quiet_of(&gossip->members, number);
    if (quiet->is_awake)
        fetch(quiet->awake, RECORD_FRONT);
    else
        fetch(quiet->portrait, sizeof *quiet->portrait);
}

void gossip_inspect_expect(const struct gossip *gossip, const struct member_id *from, unsigned step) {
    const struct directory *directory = &gossip->members.directory;
    if (step == 0) {
        gossip_expect(gossip);
        return;
    }
    if (step == 1) {
        fetch(gossip->self, RECORD_FRONT);
        fetch(gossip->timers.slots, LINE);
        if (from) fetch(directory->slots + directory_home(directory, id_prefix(from)), 2 * sizeof(uint64_t));
        return;
    }
    uint32_t number = from ? guess(directory, from) : DIRECTORY_NOBODY;
    if (number == DIRECTORY_NOBODY) return;
    if (step == 2)
        fetch(quiet_of(&gossip->members, number), sizeof(struct quiet));
    else
        fetch_record(gossip, number);
}
