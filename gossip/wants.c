/* A WANT, or the answer to it, may be lost, and hearsay ends: what was asked for and did not come is asked for again,
 * of another one that holds it, a few times at growing gaps. Then it is left to comparisons, for a while whatever is
 * said, since it may not be there: who boasts must not make us ask others without end. */
#include "gossip/verbs.h"

#include <string.h>

#define AGAIN_MS 50u   /* and what a round trip takes; twice as long each other time */
#define ANSWER_MS 100u /* of one whose round trips are not known, */
#define ANSWER_MAX_MS 2000u
#define AGAIN_LINK_MS 1000u /* nothing is lost there, but by a link that ends or a queue that is full */
#define AGAIN_TIMES 10u
#define AGAIN_IN_ALL 24u /* however much comes: what is boasted of may be above it for ever */
#define REST_MS 10000u
#define SAID_BY_ONE_MAX (WANTS_MAX / 2) /* so that one liar leaves room for what others say */

static const struct member_id nobody;

void wants_init(struct gossip *gossip) {
    gossip->wants.next_ms = NEVER;
}

static struct wanted *find(struct wants *wants, const struct member_id *id) {
    for (size_t i = 0; i < WANTS_MAX; i++)
        if (wants->all[i].used && id_equal(&wants->all[i].there.id, id)) return &wants->all[i];
    return NULL;
}

static struct wanted *place_for(struct wants *wants, const struct member *by) {
    struct wanted *free_one = NULL;
    uint32_t said = 0;
    for (size_t i = 0; i < WANTS_MAX; i++) {
        struct wanted *wanted = &wants->all[i];
        if (!wanted->used)
            free_one = wanted;
        else
            said += id_equal(&wanted->said_by, &by->id);
    }
    return said < SAID_BY_ONE_MAX ? free_one : NULL;
}

static void set_due(struct gossip *gossip, struct wanted *wanted, uint64_t due_ms) {
    wanted->due_ms = due_ms;
    gossip->wants.next_ms = earlier(gossip->wants.next_ms, due_ms);
}

static uint64_t gap_ms(const struct member *asked, uint32_t tries) {
    const struct probe *probe = &asked->probe;
    uint64_t answer = probe->rtt_ms > 0 ? probe->rtt_ms + 4 * (uint64_t)probe->rtt_varies_ms : ANSWER_MS;
    if (answer > ANSWER_MAX_MS) answer = ANSWER_MAX_MS;
    return (member_route(asked).family == ADDRESS_LINK ? AGAIN_LINK_MS : AGAIN_MS + answer) << tries / 2;
}

static void raise(struct version *there, const struct version *to) {
    if (to->epoch > there->epoch) {
        *there = *to;
    } else if (to->epoch == there->epoch) {
        if (to->incarnation > there->incarnation) there->incarnation = to->incarnation;
        if (to->sequence > there->sequence) there->sequence = to->sequence;
    }
}

static bool is_resting(const struct wanted *wanted) {
    return wanted->tries > AGAIN_TIMES;
}

/* Something came since it was asked for: it is there, and so may be the rest. */
static void note_progress(struct gossip *gossip, const struct member *member, struct wanted *wanted) {
    uint64_t held = registry_sequence(member->registry);
    if (held == wanted->held) return;
    wanted->held = held;
    if (wanted->all_tries >= AGAIN_IN_ALL) return;
    if (is_resting(wanted)) set_due(gossip, wanted, gossip->now_ms + AGAIN_MS);
    wanted->tries = 0;
}

static void await(struct gossip *gossip, struct member *member, const struct member *from, const struct version *there,
                  bool asked) {
    struct wanted *wanted = find(&gossip->wants, &member->id);
    if (!wanted) {
        wanted = place_for(&gossip->wants, from);
        if (!wanted) return;
        *wanted = (struct wanted){.used = true,
                                  .there = *there,
                                  .said_by = from->id,
                                  .asked = member->wanted_of,
                                  .held = registry_sequence(member->registry)};
        set_due(gossip, wanted, gossip->now_ms + gap_ms(from, 0));
    }
    note_progress(gossip, member, wanted);
    raise(&wanted->there, there);
    if (is_resting(wanted)) return;
    if (asked) {
        wanted->asked = from->id;
        uint64_t due_ms = gossip->now_ms + gap_ms(from, 0);
        if (wanted->due_ms < due_ms) set_due(gossip, wanted, due_ms);
    } else if (!id_equal(&from->id, &wanted->asked)) {
        wanted->also_by = from->id;
    }
}

void wants_newer(struct gossip *gossip, struct member *member, struct member *from, const struct version *there) {
    bool asked = repair_want(gossip, member, from);
    if (!member->known || !from || from->self || !gossip->authentic || roll_is_called(gossip)) return;
    if (from == member && !members_are_many(gossip)) return; /* it says it again by itself (own.c) */
    if (member_is_visible(member)) await(gossip, member, from, there, asked);
}

/* ---- asking again ---- */

static bool may_ask(const struct gossip *gossip, const struct wanted *wanted, const struct member *member) {
    return member && member_is_visible(member) && carrier_reaches(gossip, member) &&
           !id_equal(&member->id, &wanted->asked);
}

/* Who said so too, its owner, or anybody: most have heard of it by now. */
static struct member *choose(struct gossip *gossip, struct member *member, struct wanted *wanted) {
    struct member *also = id_equal(&wanted->also_by, &nobody) ? NULL : members_find(gossip, &wanted->also_by), *some;
    wanted->also_by = nobody;
    if (may_ask(gossip, wanted, also)) return also;
    if (may_ask(gossip, wanted, member)) return member;
    return members_pick(gossip, &some, 1, member) == 1 ? some : member;
}

/* Chunks that are on their way are asked for by themselves, and the log above them when they are there. */
static bool is_fetched(const struct gossip *gossip, const struct member *member) {
    const struct transfer *transfer = transfers_find(&gossip->transfers, &member->id);
    for (size_t i = 0; transfer && i < TRANSFER_STAGINGS; i++)
        if (transfer->staging[i].used) return true;
    return false;
}

static bool is_lacking(const struct gossip *gossip, const struct member *member, const struct wanted *wanted) {
    if (!member || !member->known || !member_is_visible(member) || is_fetched(gossip, member)) return false;
    struct version held = repair_version_of(member);
    return repair_is_newer(&wanted->there, &held);
}

static void ask_again(struct gossip *gossip, struct wanted *wanted) {
    struct member *member = members_find(gossip, &wanted->there.id);
    if (!is_lacking(gossip, member, wanted)) {
        wanted->used = false;
        return;
    }
    note_progress(gossip, member, wanted);
    if (is_resting(wanted)) {
        wanted->used = false;
    } else if (budget_waiting(&gossip->budget, BUDGET_REPAIR) > 0) { /* perhaps it was not even asked for yet */
        set_due(gossip, wanted, gossip->now_ms + AGAIN_MS);
    } else if (wanted->tries == AGAIN_TIMES || wanted->all_tries == AGAIN_IN_ALL) {
        wanted->tries = AGAIN_TIMES + 1;
        set_due(gossip, wanted, gossip->now_ms + REST_MS);
    } else {
        struct member *other = choose(gossip, member, wanted);
        repair_ask(gossip, member, other);
        wanted->asked = other->id;
        wanted->all_tries++;
        set_due(gossip, wanted, gossip->now_ms + gap_ms(other, ++wanted->tries));
    }
}

void wants_tick(struct gossip *gossip) {
    struct wants *wants = &gossip->wants;
    if (gossip->now_ms < wants->next_ms) return;
    wants->next_ms = NEVER;
    for (size_t i = 0; i < WANTS_MAX; i++) {
        struct wanted *wanted = &wants->all[i];
        if (!wanted->used) continue;
        if (gossip->now_ms >= wanted->due_ms)
            ask_again(gossip, wanted);
        else
            set_due(gossip, wanted, wanted->due_ms);
    }
}

uint64_t wants_deadline_ms(const struct gossip *gossip) {
    return gossip->wants.next_ms;
}
