/* Who and where we are: the address that others reach us by, the life (epoch) that is above all they remember, and
 * whether our key is ours alone. */
#include "gossip/verbs.h"

#include <string.h>

#define SEEN_AGAIN_MS 5000u
#define SEEN_HOLD_MAX_MS 600000u
#define CLONE_TOLD_MS 600000u
#define CLONE_WINDOW_MS 600000u
#define CLONE_RAISE_MS 10000u /* then no oftener: who was overtaken by a clone that is gone is not seen so long */
#define CLONE_EVENT_MS 60000u
#define TOLD_EPOCH_MS 10000u
#define TOLD_EPOCH_AGAIN_MS 3600000u
/* A member's bare word for our numbers: it may not carry us far, nor often. */
#define JUMP_MAX 1000000u

/* ---- where ---- */

bool address_is_loopback(const struct gossip_address *address) {
    static const uint8_t v6[16] = {[15] = 1};
    return (address->family == 4 && address->ip[0] == 127) ||
           (address->family == 6 && memcmp(address->ip, v6, sizeof v6) == 0);
}

bool address_is_usable(const struct gossip_address *address) {
    static const uint8_t none[16];
    bool v4 = address->family == 4, v6 = address->family == 6;
    if ((!v4 && !v6) || address->port == 0 || memcmp(address->ip, none, v4 ? 4 : 16) == 0) return false;
    return v4 ? address->ip[0] < 224 : address->ip[0] != 0xff;
}

static bool say_address(struct gossip *gossip, const struct gossip_address *address) {
    struct member *self = gossip->self;
    struct gossip_address before = self->address;
    self->address = *address;
    bool said = own_sign_head(gossip);
    if (said)
        own_tell_head(gossip);
    else
        self->address = before;
    return said;
}

/* The last word of each of a few: one alone neither moves us, where there are others, nor hides what they say. True if
 * another says the same, or, where there is no other, the same one said it before. */
static bool is_said_twice(struct gossip *gossip, const struct gossip_address *address) {
    struct own *own = &gossip->own;
    const struct member_id *by = gossip->sender ? &gossip->sender->id : &gossip->self->id;
    bool before = false, another = false;
    size_t place = 0;
    for (size_t i = 0; i < SEEN_MAX; i++) {
        bool its = id_equal(&own->seen[i].by, by), same = address_equal(&own->seen[i].address, address);
        before = before || (its && same);
        another = another || (!its && same);
        if (own->seen[i].at_ms < own->seen[place].at_ms) place = i;
    }
    for (size_t i = 0; i < SEEN_MAX; i++)
        if (id_equal(&own->seen[i].by, by)) place = i;
    own->seen[place].by = *by;
    own->seen[place].address = *address;
    own->seen[place].at_ms = gossip->now_ms;
    return another || (before && members_visible_count(gossip) <= 2);
}

void own_seen_at(struct gossip *gossip, const struct gossip_address *address) {
    struct own *own = &gossip->own;
    const struct member *self = gossip->self;
    if (own->advertise_fixed || !address_is_usable(address) || address_equal(address, &self->address)) return;
    /* A neighbour on our own host sees us on loopback, where nobody else does. */
    bool better = self->address.family == 0 || (address_is_loopback(&self->address) && !address_is_loopback(address));
    if (!better && address_is_loopback(address)) return;
    /* The first answer is believed at once, a change when it is seen twice and not too often, and ever more rarely
     * while it goes on: peers on both sides of a router disagree for good. */
    bool twice = is_said_twice(gossip, address);
    bool again = twice && gossip->now_ms >= own->seen_changed_ms + own->seen_hold_ms;
    if (!better && !again) return;
    bool calm = better || gossip->now_ms >= own->seen_changed_ms + 2 * SEEN_HOLD_MAX_MS;
    own->seen_hold_ms = calm ? SEEN_AGAIN_MS : 2 * own->seen_hold_ms;
    if (own->seen_hold_ms > SEEN_HOLD_MAX_MS) own->seen_hold_ms = SEEN_HOLD_MAX_MS;
    own->seen_changed_ms = gossip->now_ms;
    say_address(gossip, address);
}

bool gossip_set_advertise(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *address) {
    struct own *own = &gossip->own;
    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;
    if (own->left || own->leaving || !address_is_usable(address)) return false;
    if (!address_equal(address, &gossip->self->address) && !say_address(gossip, address)) return false;
    own->advertise_fixed = true;
    return true;
}

/* ---- which life ---- */

static void note_raise(struct gossip *gossip, const struct gossip_address *from) {
    struct own *own = &gossip->own;
    uint64_t oldest = own->raised_ms[0];
    own->raised_ms[0] = own->raised_ms[1];
    own->raised_ms[1] = own->raised_ms[2];
    own->raised_ms[2] = gossip->now_ms;
    if (oldest == NEVER || gossip->now_ms - oldest > CLONE_WINDOW_MS) return;
    own->cloned_until_ms = gossip->now_ms + CLONE_RAISE_MS;
    own->cloned_told_until_ms = gossip->now_ms + CLONE_TOLD_MS;
    gossip->counters.clones_seen++;
    if (gossip->now_ms < own->cloned_event_ms) return;
    own->cloned_event_ms = gossip->now_ms + CLONE_EVENT_MS;
    event_cloned(gossip, from);
}

/* It cannot be left unsaid. */
static void say_head(struct gossip *gossip) {
    gossip->own.head_owed = !own_sign_head(gossip);
    if (!gossip->own.head_owed) own_tell_head(gossip);
}

static void tell_epoch(struct gossip *gossip) {
    const struct member *self = gossip->self;
    gossip->own.epoch_owed =
        !event_plain(gossip, GOSSIP_EPOCH, self, self->epoch, registry_sequence(self->registry), "");
}

static void raise_epoch(struct gossip *gossip, uint64_t above) {
    struct member *self = gossip->self;
    /* Sequences go on, so that whoever waits for one is not misled; the new epoch begins with a checkpoint there. */
    if (!registry_checkpoint(&self->registry, &gossip->rules, above + 1)) return;
    self->epoch = above + 1;
    self->incarnation = 0;
    quiet_forget_known(&gossip->members);
    members_changed(gossip, self);
    tell_epoch(gossip);
    say_head(gossip);
}

bool own_is_cloned(const struct gossip *gossip) {
    return gossip->own.cloned_told_until_ms != 0;
}

void own_raise_epoch(struct gossip *gossip, uint64_t above, const struct gossip_address *from) {
    if (above == UINT64_MAX || gossip->now_ms < gossip->own.cloned_until_ms) return;
    note_raise(gossip, from);
    raise_epoch(gossip, above);
}

void own_follow(struct gossip *gossip, uint64_t left) {
    if (left != UINT64_MAX) raise_epoch(gossip, left);
}

/* Each epoch makes all others fetch what we hold anew: nobody's bare word does that twice in an hour. */
static bool counts_once(struct gossip *gossip) {
    struct own *own = &gossip->own;
    size_t place = 0;
    for (size_t i = 0; i < TOLD_EPOCH_MAX; i++) {
        if (id_equal(&own->told_epoch[i].id, &gossip->sender->id)) {
            place = i;
            break;
        }
        if (own->told_epoch[i].until_ms < own->told_epoch[place].until_ms) place = i;
    }
    if (gossip->now_ms < own->told_epoch[place].until_ms) return false;
    own->told_epoch[place].id = gossip->sender->id;
    own->told_epoch[place].until_ms = gossip->now_ms + TOLD_EPOCH_AGAIN_MS;
    return true;
}

bool own_believes(struct gossip *gossip, uint64_t ahead) {
    if (!gossip->authentic || ahead > JUMP_MAX || gossip->now_ms < gossip->own.told_epoch_ms || !counts_once(gossip))
        return false;
    gossip->own.told_epoch_ms = gossip->now_ms + TOLD_EPOCH_MS;
    return true;
}

void own_told_epoch(struct gossip *gossip, uint64_t epoch) {
    uint64_t own = gossip->self->epoch;
    if (epoch > own && own_believes(gossip, epoch - own)) raise_epoch(gossip, epoch);
}

void own_life_tick(struct gossip *gossip) {
    struct own *own = &gossip->own;
    if (own->epoch_owed) tell_epoch(gossip);
    if (own->head_owed) say_head(gossip);
    if (own->cloned_told_until_ms == 0 || gossip->now_ms < own->cloned_told_until_ms) return;
    own->cloned_told_until_ms = 0;
    say_head(gossip);
}

uint64_t own_life_deadline_ms(const struct gossip *gossip) {
    const struct own *own = &gossip->own;
    uint64_t deadline = own->epoch_owed || own->head_owed ? gossip->now_ms + 100 : NEVER;
    return own->cloned_told_until_ms != 0 ? earlier(deadline, own->cloned_told_until_ms) : deadline;
}
