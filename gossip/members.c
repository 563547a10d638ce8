#include "gossip/state.h"

#include <stdlib.h>
#include <string.h>

bool id_equal(const struct member_id *a, const struct member_id *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

static bool find(const struct gossip *gossip, const struct member_id *id, size_t *index) {
    size_t low = 0, high = gossip->members.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(&gossip->members.items[middle]->id, id, sizeof *id);
        if (order == 0) {
            *index = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return false;
}

struct member *members_find(const struct gossip *gossip, const struct member_id *id) {
    size_t index;
    return find(gossip, id, &index) ? gossip->members.items[index] : NULL;
}

/* A stranger takes the place of the oldest stranger, or of the member that has been down the longest; nobody verified
 * and present is displaced. */
static bool displace(struct gossip *gossip) {
    struct member *oldest = NULL;
    bool strangers = gossip->members.unverified >= UNVERIFIED_MAX;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (member->self || member_is_visible(member) || member == gossip->sender) continue;
        if (strangers && member->has_key) continue;
        if (!oldest || member->made_ms < oldest->made_ms) oldest = member;
    }
    if (!oldest) return false;
    members_remove(gossip, oldest);
    return true;
}

struct member *members_make(struct gossip *gossip, const struct member_id *id) {
    struct members *members = &gossip->members;
    size_t index;
    if (find(gossip, id, &index)) return members->items[index];
    if ((members->unverified >= UNVERIFIED_MAX || members->count >= gossip->limits.members_max) && !displace(gossip))
        return NULL;
    if (members->count == members->room) {
        size_t room = members->room ? members->room * 2 : 16;
        struct member **items = realloc(members->items, room * sizeof *items);
        if (!items) return NULL;
        members->items = items;
        members->room = room;
    }
    struct member *member = calloc(1, sizeof *member);
    if (!member) return NULL;
    member->id = *id;
    member->made_ms = gossip->now_ms;
    member->heard_ms = NEVER;
    member->probe.deadline_ms = NEVER;
    member->valid_until_ms = NEVER;
    member->resend_ms = NEVER;
    find(gossip, id, &index);
    memmove(members->items + index + 1, members->items + index, (members->count - index) * sizeof *members->items);
    members->items[index] = member;
    members->count++;
    members->unverified++;
    return member;
}

void members_remove(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    size_t index;
    if (!find(gossip, &member->id, &index)) return;
    memmove(members->items + index, members->items + index + 1, (members->count - index - 1) * sizeof *members->items);
    members->count--;
    if (!member->has_key) members->unverified--;
    carrier_forget(gossip, member);
    if (gossip->sender == member) gossip->sender = NULL;
    if (gossip->reply.member == member) gossip->reply.member = NULL;
    transfers_drop(&gossip->transfers, &member->id);
    registry_unref(member->registry);
    free(member->token);
    free(member);
}

bool member_is_visible(const struct member *member) {
    return !member->self && member->known && (member->state == MEMBER_ALIVE || member->state == MEMBER_SUSPECT);
}

uint32_t members_visible_count(const struct gossip *gossip) {
    uint32_t count = 1;
    for (size_t i = 0; i < gossip->members.count; i++)
        count += member_is_visible(gossip->members.items[i]);
    return count;
}

size_t members_pick(struct gossip *gossip, struct member **out, size_t want, const struct member *skip) {
    /* Algorithm R: each visible member is as likely as any other, in one walk. */
    size_t seen = 0;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (!member_is_visible(member) || member == skip || !carrier_reaches(gossip, member)) continue;
        seen++;
        if (seen <= want) {
            out[seen - 1] = member;
        } else {
            uint32_t slot = chance_below(&gossip->chance, (uint32_t)seen);
            if (slot < want) out[slot] = member;
        }
    }
    return seen < want ? seen : want;
}

struct gossip_address member_route(const struct member *member) {
    bool nowhere = member->path.family == 0 && member->address.family == 0;
    if (member->way.link && (member->way.by_link || nowhere)) return carrier_address(&member->id);
    if (member->path_proven || member->address.family == 0) return member->path;
    return member->address;
}
