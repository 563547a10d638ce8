/* Who there is. Large records never move; a directory finds them by id; and one array holds their numbers
 * in parts, so that a random visible one, the next one to be asked, all suspects and all who are absent are each found
 * without a walk. */
#include "gossip/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PICK_TRIES_MAX 64u
#define PROVEN_TRIES_MAX 12u /* where those are rare, as in a storm of joins, all would choose the same few */

struct member *members_wake_at(struct gossip *gossip, uint32_t number) {
    struct quiet *quiet = quiet_of(&gossip->members, number);
    return quiet->is_awake ? quiet->awake : quiet_wake(gossip, number);
}

static const struct member *look(const struct gossip *gossip, uint32_t number, struct member *copy) {
    const struct quiet *quiet = quiet_of(&gossip->members, number);
    if (quiet->is_awake) return quiet->awake;
    quiet_read(quiet, number, copy);
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

/* ---- parts ---- */

static enum member_part part_at(const struct members *members, uint32_t place) {
    unsigned part = 0;
    while (place >= members->part_end[part])
        part++;
    return (enum member_part)part;
}

static void set_place(struct members *members, uint32_t place, uint32_t number) {
    members->places[place] = number;
    quiet_of(members, number)->place = place & QUIET_PLACE_MAX;
}

static void swap_places(struct members *members, uint32_t a, uint32_t b) {
    uint32_t number = members->places[a];
    set_place(members, a, members->places[b]);
    set_place(members, b, number);
}

static void move(struct members *members, struct member *member, enum member_part to) {
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

static void move_where_it_belongs(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    enum member_part to = part_for(member);
    if (to == member->part) return;
    member->part = to;
    bool asked = was_asked(part_at(members, quiet_of(members, member->number)->place));
    move(members, member, asked ? when_asked(to) : to);
}

bool member_is_visible(const struct member *member) {
    return !member->self && member->known && (member->state == MEMBER_ALIVE || member->state == MEMBER_SUSPECT);
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
    if (member) move(members, member, member->state == MEMBER_ALIVE ? PART_ALIVE_ASKED : PART_SUSPECT_ASKED);
    return member;
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
static void list_told(struct members *members, struct member *member) {
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

/* With few members the time that a suspicion lasts depends on how many they are. */
static void refresh_suspects(struct gossip *gossip) {
    if (members_visible_count(gossip) > SUSPICION_ACCUSERS_MAX + 2) return;
    struct member *suspect;
    for (size_t i = 0; (suspect = members_suspect(gossip, i)); i++)
        timers_set(&gossip->timers, &suspect->timer, member_deadline_ms(gossip, suspect));
}

void members_changed(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    uint32_t visible = members_visible_count(gossip);
    move_where_it_belongs(gossip, member);
    timers_set(&gossip->timers, &member->timer, member_deadline_ms(gossip, member));
    list_told(members, member);
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
    enum member_part part = part_at(members, place);
    *id = member->id;
    if (quiet->place != place) return "a member does not know its place";
    if (directory_find(&members->directory, members_ids(members), id) != number)
        return "a member is not found by its id";
    bool in_part = part == member->part || part == when_asked(member->part);
    if (part_for(member) != member->part || !in_part) return "a member is in the wrong part";
    if (timers_deadline_ms(&gossip->timers, &member->timer) != member_deadline_ms(gossip, member))
        return "a deadline is not the timer's";
    if (should_be_told(member) != (member->told_at > 0)) return "a rumour is listed that is none, or the reverse";
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

static bool reserve_quiet(struct members *members) {
    if (members->free || members->quiet_count < members->quiet_room) return true;
    uint32_t room = members->quiet_room + members->quiet_room / 4 + 16;
    if (room > QUIET_PLACE_MAX) return false;
    struct quiet *quiet = realloc(members->quiet, room * sizeof *quiet);
    if (!quiet) return false;
    members->quiet = quiet;
    members->quiet_room = room;
    return true;
}

static bool reserve(struct members *members) {
    if (!reserve_quiet(members)) return false;
    if (members->count < members->room) return true;
    size_t room = members->room + members->room / 4 + 16;
    uint32_t *places = realloc(members->places, room * sizeof *places);
    if (!places) return false;
    members->places = places;
    members->room = room;
    return true;
}

static struct member *add(struct gossip *gossip, const struct member_id *id) {
    struct members *members = &gossip->members;
    if (!reserve(members)) return NULL;
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
    set_place(members, (uint32_t)members->count++, number);
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
    list_told(members, member);
    move(members, member, PART_OTHER);
    members->count--;
    struct quiet *quiet = quiet_of(members, member->number);
    set_place(members, quiet->place, members->places[members->count]);
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
        free(quiet->awake->trouble);
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
