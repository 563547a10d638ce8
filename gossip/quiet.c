/* Members with whom nothing is going on take little memory: a broker of ten thousand knows nearly all of the others
 * only by what they said and when they were last heard, and deals with a few at a time.
 *
 * A member sleeps when waking it would give back what there was, but for times that have passed and counts that have
 * no more use. So a field that is not known here keeps its member awake as long as it is not zero. */
#include "gossip/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LOOKED_AT 8u /* members that one call may put to sleep when far too many are awake, or pass over */
#define QUIET_TICK_MS 16u
#define ASKED_KEEP_MS 1000u /* an answer is at hand as long as this */
#define TRY_AGAIN_MS 100u
#define SPARE_MAX 2u
#define FOLLOWED_OFTEN_MS 1000u /* once or twice is what everybody is who was vouched for */
#define FOLLOWED_KEEP_MS 300000u

static const char nobody[GOSSIP_NAME_MAX + 1];

struct quiet *quiet_of(const struct members *members, uint32_t number) {
    return &members->quiet[number];
}

/* ---- records ---- */

static void begin(struct member *member, uint32_t number) {
    memset(member, 0, sizeof *member);
    member->number = number;
    member->part = PART_OTHER;
    member->name = nobody;
    member->heard_ms = NEVER;
    member->probe.deadline_ms = member->probe.enough_ms = member->probe.sure_ms = NEVER;
    member->valid_until_ms = NEVER;
    member->resend_ms = NEVER;
}

static bool reserve(struct gossip *gossip) {
    struct members *members = &gossip->members;
    if (!timers_reserve(&gossip->timers, members->awake_count + 1)) return false;
    if (members->awake_count == members->awake_room) {
        uint32_t room = members->awake_room + members->awake_room / 2 + 16;
        struct awake *awake = realloc(members->awake, room * sizeof *awake);
        if (!awake) return false;
        members->awake = awake;
        members->awake_room = room;
    }
    if (!members->spare) {
        members->spare = calloc(1, sizeof *members->spare);
        members->spare_count = members->spare != NULL;
    }
    return members->spare != NULL;
}

struct member *quiet_rise(struct gossip *gossip, uint32_t number) {
    struct members *members = &gossip->members;
    if (!reserve(gossip)) return NULL;
    struct member *member = members->spare;
    members->spare = member->next_free;
    members->spare_count--;
    begin(member, number);
    member->awake_at = members->awake_count;
    members->awake[members->awake_count++] = (struct awake){member, 0};
    return member;
}

void quiet_drop(struct gossip *gossip, struct member *member) {
    struct members *members = &gossip->members;
    members_forget_recent(members, member);
    trouble_free(member->trouble);
    assert(member->timer.at == 0 && !member->waiting_head);
    struct awake last = members->awake[--members->awake_count];
    members->awake[member->awake_at] = last;
    last.member->awake_at = member->awake_at;
    if (members->spare_count >= SPARE_MAX) {
        free(member);
        return;
    }
    member->next_free = members->spare;
    members->spare = member;
    members->spare_count++;
}

/* ---- waking ---- */

/* A sleeper keeps the end of the number of the head it holds, 0 for none that is known. No member that is alive goes
 * without a word of it for as many of our heads as that can count. */
static uint32_t shorten(const struct gossip *gossip, uint64_t known) {
    bool fits = known <= gossip->self->incarnation && gossip->self->incarnation - known < QUIET_KNOWN_MAX;
    return fits ? (uint32_t)known & QUIET_KNOWN_MAX : 0;
}

static uint64_t lengthen(const struct gossip *gossip, uint32_t end) {
    uint64_t newest = gossip->self->incarnation;
    return end == 0 ? 0 : newest - ((newest - end) & QUIET_KNOWN_MAX);
}

/* But for what the portrait is made of, which the caller has references to, or borrows. */
static void read(const struct gossip *gossip, const struct quiet *quiet, struct member *out) {
    out->id = out->who->id;
    out->state = MEMBER_ALIVE;
    out->part = PART_ALIVE_TO_ASK;
    out->known = out->has_key = out->visible_told = true;
    out->name_hash = out->who->name_hash;
    out->public_key = out->who->public_key;
    out->name = out->who->name;
    out->token = out->who->token;
    out->token_size = out->who->token_size;
    out->head = out->said->bytes;
    out->head_size = out->said->size;
    out->epoch = out->said->epoch;
    out->incarnation = out->said->incarnation;
    out->address = out->said->address;
    out->ring = out->said->ring;
    memcpy(out->ring_mark, out->said->ring_mark, sizeof out->ring_mark);
    out->heard_ms = quiet->heard == UINT32_MAX ? NEVER : (uint64_t)quiet->heard * QUIET_TICK_MS;
    out->fresh_epoch = quiet->fresh ? out->epoch : 0;
    out->path = out->said->address;
    out->path_proven = quiet->path_proven;
    memcpy(out->echo, quiet->echo, sizeof out->echo);
    replay_wake(&out->replay, out->epoch, (uint8_t)quiet->life, quiet->newest);
    out->known_sequence = out->sent_sequence = quiet->known_sequence;
    out->known_incarnation = lengthen(gossip, quiet->known_incarnation);
    out->told_at = quiet->told_at;
    out->rumor = (struct rumor){.head_sends = quiet->head_sends,
                                .entry_sends = quiet->entry_sends,
                                .head_had = quiet->head_had,
                                .entry_had = quiet->entry_had};
    out->counted = digest_counted(out);
}

void quiet_read(const struct gossip *gossip, uint32_t number, struct member *out) {
    const struct quiet *quiet = quiet_of(&gossip->members, number);
    begin(out, number);
    out->who = quiet->portrait->who;
    out->said = quiet->portrait->said;
    out->registry = quiet->portrait->registry;
    read(gossip, quiet, out);
}

struct member *quiet_wake(struct gossip *gossip, uint32_t number) {
    struct quiet *quiet = quiet_of(&gossip->members, number);
    struct member *member = quiet_rise(gossip, number);
    if (!member) return NULL;
    portrait_give(quiet->portrait, &member->who, &member->said, &member->registry);
    read(gossip, quiet, member);
    quiet->awake = member;
    quiet->is_awake = true;
    return member;
}

const struct statement *quiet_said(const struct members *members, size_t place) {
    const struct quiet *quiet = quiet_of(members, members->places[place]);
    return quiet->is_awake ? NULL : quiet->portrait->said;
}

void quiet_forget_known(struct members *members) {
    for (size_t place = 0; place < members->count; place++) {
        struct quiet *quiet = quiet_of(members, members->places[place]);
        struct member *member = quiet->is_awake ? quiet->awake : NULL;
        if (member)
            member->known_sequence = member->known_incarnation = member->sent_sequence = 0;
        else
            quiet->known_sequence = quiet->known_incarnation = 0;
    }
}

/* ---- sleeping ---- */

static bool is_newer(const struct member *member, uint64_t epoch, uint64_t incarnation) {
    return member->epoch > epoch || (member->epoch == epoch && member->incarnation > incarnation);
}

/* Takes out of the copy what has no more use. False: something is still of use, for so long as is known. */
static bool forget_the_past(uint64_t now_ms, struct member *copy, uint64_t *until_ms) {
    uint64_t *const times[] = {&copy->refused_event_ms, &copy->refused_told_ms, &copy->refused_us_ms,
                               &copy->passed_over_ms,   &copy->who_asked_ms,    &copy->evidence_sent_ms,
                               &copy->head_told_ms,     &copy->prove_ms,        &copy->allowances.until_ms,
                               &copy->want_ms,          &copy->hint_ms};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (*times[i] > now_ms) {
            *until_ms = *times[i];
            return false;
        }
        *times[i] = 0;
    }
    if (copy->follow_gap_ms > FOLLOWED_OFTEN_MS && now_ms < copy->follow_ms + FOLLOWED_KEEP_MS) return false;
    copy->follow_ms = copy->follow_gap_ms = 0;
    for (size_t i = 0; i < ACCUSED_MAX; i++)
        if (member_trouble(copy)->accused[i].until_ms > now_ms) return false;
    if (is_newer(copy, copy->accused_epoch, copy->accused_incarnation))
        copy->accused_epoch = copy->accused_incarnation = 0;
    if (is_newer(copy, copy->down_epoch, copy->down_incarnation)) copy->down_epoch = copy->down_incarnation = 0;
    const struct trouble *trouble = member_trouble(copy);
    if (!restraint_is_over(&trouble->refuted, now_ms, REFUTE_AGAIN_MAX_MS) ||
        !restraint_is_over(&trouble->unmixed, now_ms, UNMIX_AGAIN_MAX_MS) || trouble->blamed_ms > now_ms ||
        trouble->cloned_told_ms > now_ms)
        return false;
    const struct two_states *two_states = &trouble->two_states;
    if (two_states->due_ms != 0 || two_states->again_ms > now_ms) return false;
    copy->greeted_epoch = 0;
    copy->made_ms = copy->down_since_ms = copy->wanted_above = 0;
    memset(&copy->wanted_of, 0, sizeof copy->wanted_of);
    memset(copy->allowances.left, 0, sizeof copy->allowances.left);
    copy->resends = 0;
    copy->sent_sequence = copy->known_sequence;
    copy->trouble = NULL;
    return true;
}

static bool way_is_plain(const struct way *way) {
    return !way->link && !way->by_link && way->misses == 0 && way->asked == 0;
}

/* Where the copies differ only in bytes between fields, or in what a sleeper need not keep. */
static void take_over(struct member *copy, const struct member *woken) {
    copy->awake_at = woken->awake_at;
    copy->next_free = woken->next_free;
    copy->known_incarnation = woken->known_incarnation; /* or it is unknown, and told again */
    copy->heard_ms = woken->heard_ms;
    copy->fresh_epoch = woken->fresh_epoch;
    memcpy(&copy->address, &woken->address, sizeof copy->address);
    memcpy(&copy->path, &woken->path, sizeof copy->path);
    memcpy(&copy->counted, &woken->counted, sizeof copy->counted);
    memcpy(&copy->probe, &woken->probe, sizeof copy->probe);
    memcpy(&copy->rumor, &woken->rumor, sizeof copy->rumor);
    memcpy(&copy->way, &woken->way, sizeof copy->way);
    memcpy(&copy->replay, &woken->replay, sizeof copy->replay);
    memset(copy->refused_hash, 0, sizeof copy->refused_hash);
}

static bool has_nothing_to_do(const struct member *member) {
    const struct rumor *rumor = &member->rumor;
    bool idle = member->timer.at == 0 && member->probe.deadline_ms == NEVER && member->probe.number == 0;
    bool little = member->told_at <= QUIET_TOLD_MAX && rumor->accuse_sends == 0 &&
                  rumor->head_sends <= QUIET_SENDS_MAX && rumor->entry_sends <= QUIET_SENDS_MAX;
    bool plain = member->who && member->said && member->token && member->state == MEMBER_ALIVE && member->known &&
                 !member->self && way_is_plain(&member->way) && !member->waiting_head;
    return idle && little && plain && member->fresh_epoch <= member->epoch &&
           (!member->path_proven || address_equal(&member->path, &member->address)) &&
           address_equal(&member->said->address, &member->address) && member->address.family != 0 &&
           member->known_sequence <= UINT32_MAX &&
           (member->heard_ms == NEVER || member->heard_ms / QUIET_TICK_MS < UINT32_MAX);
}

static uint32_t at_most(uint32_t value, uint32_t most) {
    return value < most ? value : most;
}

static void write(const struct gossip *gossip, const struct member *member, struct quiet *quiet) {
    memcpy(quiet->echo, member->echo, sizeof quiet->echo);
    quiet->known_sequence = (uint32_t)member->known_sequence;
    quiet->known_incarnation = shorten(gossip, member->known_incarnation) & QUIET_KNOWN_MAX;
    quiet->life = member->replay.life;
    quiet->newest = replay_newest(&member->replay);
    quiet->heard = member->heard_ms == NEVER ? UINT32_MAX : (uint32_t)(member->heard_ms / QUIET_TICK_MS);
    quiet->is_awake = false;
    quiet->path_proven = member->path_proven;
    quiet->fresh = member->fresh_epoch == member->epoch;
    const struct rumor *rumor = &member->rumor;
    quiet->told_at = member->told_at & QUIET_TOLD_MAX;
    quiet->head_sends = rumor->head_sends & QUIET_SENDS_MAX;
    quiet->entry_sends = rumor->entry_sends & QUIET_SENDS_MAX;
    quiet->head_had = at_most(rumor->head_had, QUIET_HAD_MAX) & QUIET_HAD_MAX;
    quiet->entry_had = at_most(rumor->entry_had, QUIET_HAD_MAX) & QUIET_HAD_MAX;
}

static bool try_to_sleep(struct gossip *gossip, struct member *member, uint64_t *not_before_ms) {
    struct quiet *quiet = quiet_of(&gossip->members, member->number), asleep = *quiet;
    *not_before_ms = member->probe.sent_ms + ASKED_KEEP_MS;
    if (gossip->now_ms <= *not_before_ms) return false;
    *not_before_ms = gossip->now_ms + TRY_AGAIN_MS;
    if (!has_nothing_to_do(member)) return false;
    struct member copy, woken;
    memcpy(&copy, member, sizeof copy);
    if (!forget_the_past(gossip->now_ms, &copy, not_before_ms)) return false;
    write(gossip, member, &asleep);
    begin(&woken, member->number);
    woken.who = member->who;
    woken.said = member->said;
    woken.registry = member->registry;
    read(gossip, &asleep, &woken);
    take_over(&copy, &woken);
    if (memcmp(&copy, &woken, sizeof copy) != 0) return false;
    asleep.portrait = portrait_take(gossip->shared, member->who, member->said, member->registry);
    if (!asleep.portrait) return false;
    quiet_drop(gossip, member);
    *quiet = asleep;
    return true;
}

void quiet_settle(struct gossip *gossip) {
    struct members *members = &gossip->members;
    uint32_t max = gossip->limits.awake_max, tries = 1, looks = LOOKED_AT;
    /* One packet may wake dozens. */
    if (members->awake_count > max + max / 4) tries = looks += (members->awake_count - max) / LOOKED_AT;
    for (; looks > 0 && tries > 0 && members->awake_count > max; looks--) {
        if (members->tired >= members->awake_count) members->tired = 0;
        struct awake *awake = &members->awake[members->tired];
        bool early = gossip->now_ms < awake->not_before_ms;
        tries -= !early;
        if (early || !try_to_sleep(gossip, awake->member, &awake->not_before_ms)) members->tired++;
    }
}
