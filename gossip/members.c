/* Who there is. Records stand in chunks and never move; a directory finds them by id. One array holds their numbers in
 * parts (parts.c). */
#include "gossip/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct member *members_wake_at(struct gossip *gossip, uint32_t number) {
    struct quiet *quiet = quiet_of(&gossip->members, number);
    return quiet->is_awake ? quiet->awake : quiet_wake(gossip, number);
}

static const struct member *look(const struct gossip *gossip, uint32_t number, struct member *copy) {
    const struct quiet *quiet = quiet_of(&gossip->members, number);
    if (quiet->is_awake) return quiet->awake;
    quiet_read(gossip, number, copy);
    return copy;
}

const struct member_id *members_id_at(const struct members *members, uint32_t number) {
    const struct quiet *quiet = quiet_of(members, number);
    return quiet->is_awake ? &quiet->awake->id : &quiet->portrait->id;
}

static const struct member_id *id_of(const void *context, uint32_t number) {
    return members_id_at(context, number);
}

struct directory_ids members_ids(const struct members *members) {
    return (struct directory_ids){id_of, members};
}

static uint64_t id_end(const struct member_id *id) {
    uint64_t end;
    memcpy(&end, id->bytes + sizeof *id - sizeof end, sizeof end);
    return end;
}

struct member *members_find(struct gossip *gossip, const struct member_id *id) {
    struct recent *recent = &gossip->members.recent[id_end(id) % MEMBERS_RECENT];
    if (recent->member && recent->id_end == id_end(id) && id_equal(&recent->member->id, id)) return recent->member;
    uint32_t number = directory_find(&gossip->members.directory, members_ids(&gossip->members), id);
    struct member *member = number == DIRECTORY_NOBODY ? NULL : members_wake_at(gossip, number);
    if (member) *recent = (struct recent){id_end(id), member};
    return member;
}

void members_forget_recent(struct members *members, const struct member *member) {
    struct recent *recent = &members->recent[id_end(&member->id) % MEMBERS_RECENT];
    if (recent->member == member) recent->member = NULL;
}

struct member *members_at(struct gossip *gossip, size_t place) {
    return members_wake_at(gossip, gossip->members.places[place]);
}

const struct member *members_look_at(const struct gossip *gossip, uint32_t number, struct member *copy) {
    return look(gossip, number, copy);
}

const struct member *members_look(const struct gossip *gossip, size_t place, struct member *copy) {
    return look(gossip, gossip->members.places[place], copy);
}

const struct member *members_look_for(const struct gossip *gossip, const struct member_id *id, struct member *copy) {
    uint32_t number = directory_find(&gossip->members.directory, members_ids(&gossip->members), id);
    return number == DIRECTORY_NOBODY ? NULL : look(gossip, number, copy);
}

struct member *members_awake(const struct gossip *gossip, size_t index) {
    return gossip->members.awake[index].member;
}

size_t members_place(const struct gossip *gossip, const struct member *member) {
    return quiet_of(&gossip->members, member->number)->place;
}

bool member_is_visible(const struct member *member) {
    return !member->self && member->known && (member->state == MEMBER_ALIVE || member->state == MEMBER_SUSPECT);
}

/* ---- what follows from a member's fields ---- */

uint64_t member_deadline_ms(const struct gossip *gossip, const struct member *member) {
    if (member->self) return NEVER;
    uint64_t deadline = earlier(probe_member_deadline_ms(member), evidence_deadline_ms(gossip, member));
    deadline = earlier(deadline, identity_deadline_ms(member));
    return earlier(deadline, member->resend_ms);
}

struct member *members_of_timer(struct timer *timer) {
    return (struct member *)(void *)((char *)timer - offsetof(struct member, timer));
}

/* With few members the time that a suspicion lasts depends on how many they are. */
static void refresh_suspects(struct gossip *gossip) {
    if (members_visible_count(gossip) > SUSPICION_ACCUSERS_MAX + 2) return;
    struct member *suspect;
    for (size_t i = 0; (suspect = members_suspect(gossip, i)); i++)
        timers_set(&gossip->timers, &suspect->timer, member_deadline_ms(gossip, suspect));
}

void members_timed(struct gossip *gossip, struct member *member) {
    parts_settle(gossip, member);
    timers_set(&gossip->timers, &member->timer, member_deadline_ms(gossip, member));
}

void members_changed(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    uint32_t visible = members_visible_count(gossip);
    members_timed(gossip, member);
    told_list(members, member);
    digest_changed(gossip, member);
    names_changed(gossip, member);
    if (members_visible_count(gossip) != visible) refresh_suspects(gossip);
}

static const char *member_fault(const struct gossip *gossip, uint32_t place, struct member_id *id) {
    const struct members *members = &gossip->members;
    uint32_t number = members->places[place];
    const struct quiet *quiet = quiet_of(members, number);
    struct member copy;
    const struct member *member = look(gossip, number, &copy);
    *id = member->id;
    if (directory_find(&members->directory, members_ids(members), id) != number)
        return "a member is not found by its id";
    if (!parts_hold(members, place, member)) return "a member is not in its place, or in the wrong part";
    if (timers_deadline_ms(&gossip->timers, &member->timer) != member_deadline_ms(gossip, member))
        return "a deadline is not the timer's";
    if (!told_holds(member)) return "a rumour is listed that is none, or the reverse";
    bool there = member->who && (member->self || member_is_visible(member));
    if (member->name_hash != 0) { /* 0 also when memory was short */
        if (!there || member->name_hash != member->who->name_hash) return "a name is not the member's";
        if (names_free(gossip, member->name, &(struct member_id){{0}})) return "a member is not found by its name";
    }
    if (quiet->is_awake && members->awake[member->awake_at].member != member) return "who is awake is not listed";
    return NULL;
}

const char *members_fault(const struct gossip *gossip) {
    const struct members *members = &gossip->members;
    struct member_id id, last = {{0}};
    for (uint32_t place = 0; place < members->count; place++) {
        const char *fault = member_fault(gossip, place, &id);
        if (fault) return fault;
    }
    size_t walked = 0;
    for (uint32_t number;
         (number = directory_after(&members->directory, members_ids(members), &last)) != DIRECTORY_NOBODY; walked++)
        last = *members_id_at(members, number);
    if (walked != members->count) return "the order of ids does not pass by all";
    return digest_fault(gossip);
}

/* ---- coming and going ---- */

/* A stranger takes the place of the oldest stranger, or of the member that has been down the longest; nobody verified
 * and present is displaced. */
static bool displace(struct gossip *gossip) {
    struct member *oldest = NULL;
    bool strangers = gossip->members.unverified >= UNVERIFIED_MAX;
    for (size_t i = members_visible_count(gossip) - 1; i < gossip->members.count; i++) {
        struct member *member = members_at(gossip, i);
        if (!member || member->self || member == gossip->sender) continue;
        if (strangers && member->has_key) continue;
        if (!oldest || member->made_ms < oldest->made_ms) oldest = member;
    }
    if (!oldest) return false;
    holdings_bury(gossip, oldest);
    members_remove(gossip, oldest);
    return true;
}

/* A quarter more; of ten thousand no more than there may be. */
static uint32_t more_room(size_t room, uint32_t members_max) {
    size_t more = room + room / 4 + 16;
    if (room < members_max && more > members_max) more = members_max;
    return more <= QUIET_PLACE_MAX ? (uint32_t)more : 0;
}

static bool reserve_quiet(struct members *members, uint32_t members_max) {
    if (members->free || members->quiet_count < members->quiet_room) return true;
    uint32_t room = more_room(members->quiet_room, members_max);
    if (room == 0) return false;
    struct quiet *quiet = realloc(members->quiet, room * sizeof *quiet);
    if (!quiet) return false;
    members->quiet = quiet;
    members->quiet_room = room;
    return true;
}

static bool reserve(struct members *members, uint32_t members_max) {
    if (!reserve_quiet(members, members_max)) return false;
    if (members->count < members->room) return true;
    uint32_t room = more_room(members->room, members_max);
    if (room == 0) return false;
    uint32_t *places = realloc(members->places, room * sizeof *places);
    if (!places) return false;
    members->places = places;
    members->room = room;
    return true;
}

static struct member *add(struct gossip *gossip, const struct member_id *id) {
    struct members *members = &gossip->members;
    if (!reserve(members, gossip->limits.members_max)) return NULL;
    uint32_t number = members->free ? members->free - 1 : members->quiet_count;
    struct quiet *quiet = quiet_of(members, number);
    struct member *member = quiet_rise(gossip, number);
    if (!member) return NULL;
    if (!directory_add(&members->directory, members_ids(members), id, number)) {
        quiet_drop(gossip, member);
        return NULL;
    }
    if (members->free)
        members->free = quiet->place;
    else
        members->quiet_count++;
    *quiet = (struct quiet){.awake = member, .is_awake = true};
    member->id = *id;
    members->part_end[PART_OTHER]++;
    parts_put(members, (uint32_t)members->count++, number);
    return member;
}

struct member *members_make(struct gossip *gossip, const struct member_id *id) {
    struct members *members = &gossip->members;
    struct member *known = members_find(gossip, id);
    if (known || directory_find(&members->directory, members_ids(members), id) != DIRECTORY_NOBODY) return known;
    if ((members->unverified >= UNVERIFIED_MAX || members->count >= gossip->limits.members_max) && !displace(gossip))
        return NULL;
    struct member *member = add(gossip, id);
    if (!member) return NULL;
    member->made_ms = gossip->now_ms;
    member->has_grave = graves_find(&gossip->graves, id) != NULL;
    members->unverified++;
    members_changed(gossip, member);
    return member;
}

struct member *members_meet(struct gossip *gossip, const struct member_id *id) {
    struct member *member = members_find(gossip, id);
    if (member || roll_is_called(gossip) || !receive_may(gossip, ALLOW_HEARSAY, 1)) return member;
    return members_make(gossip, id);
}

void member_set_who(struct member *member, struct who *who) {
    who_unref(member->who);
    member->who = who;
    member->public_key = who->public_key;
    member->name = who->name;
    member->token = who->token;
    member->token_size = who->token_size;
}

void member_set_said(struct member *member, struct statement *said) {
    statement_unref(member->said);
    member->said = said;
    member->head = said->bytes;
    member->head_size = said->size;
}

void members_remove(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    if (!member->has_key) members->unverified--;
    carrier_forget(gossip, member);
    if (gossip->sender == member) gossip->sender = NULL;
    if (gossip->reply.member == member) gossip->reply.member = NULL;
    holdings_free(gossip, member);
    timers_set(&gossip->timers, &member->timer, NEVER);
    digest_forget(gossip, member);
    names_forget(gossip, member);
    member->known = member->self = false;
    told_list(members, member);
    parts_move(members, member, PART_OTHER);
    members->count--;
    struct quiet *quiet = quiet_of(members, member->number);
    parts_put(members, quiet->place, members->places[members->count]);
    members->part_end[PART_OTHER]--;
    directory_remove(&members->directory, members_ids(members), &member->id);
    who_unref(member->who);
    statement_unref(member->said);
    free(member->waiting_head);
    member->waiting_head = NULL;
    uint32_t number = member->number;
    quiet_drop(gossip, member);
    *quiet = (struct quiet){.place = members->free & QUIET_PLACE_MAX};
    members->free = number + 1;
}

void members_free(struct gossip *gossip) {
    struct members *members = &gossip->members;
    for (size_t place = 0; place < members->count; place++) {
        const struct quiet *quiet = quiet_of(members, members->places[place]);
        if (!quiet->is_awake) {
            portrait_unref(quiet->portrait);
            continue;
        }
        who_unref(quiet->awake->who);
        statement_unref(quiet->awake->said);
        registry_unref(quiet->awake->registry);
        free(quiet->awake->waiting_head);
        trouble_free(quiet->awake->trouble);
        free(quiet->awake);
    }
    while (members->spare) {
        struct member *member = members->spare;
        members->spare = member->next_free;
        free(member);
    }
    free(members->quiet);
    free(members->places);
    free(gossip->names.slots);
    free(members->awake);
    free(members->told);
    directory_free(&members->directory);
    timers_free(&gossip->timers);
}

struct gossip_address member_route(const struct member *member) {
    bool nowhere = member->path.family == 0 && member->address.family == 0;
    if (member->way.link && (member->way.by_link || nowhere)) return carrier_address(&member->id);
    if (member->path_proven || member->address.family == 0) return member->path;
    return member->address;
}
