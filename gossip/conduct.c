#include "gossip/conduct.h"

#include "gossip/verbs.h"

#include <string.h>

#define WINDOW_MS 60000u
#define SHOWN_MS 600000u

/* A broken memory or cable forges once; a broken cable accuses, a little. */
static const struct {
    uint32_t enough; /* in a minute */
    enum member_trouble trouble;
    const char *text;
} rules[MISDEEDS] = {
    [MISDEED_FORGES] = {3, MEMBER_TROUBLE_RULES,
                        "it forges what other brokers say. Nobody believes it; see who has its host, and stop it"},
    [MISDEED_CONTRADICTS] =
        {1, MEMBER_TROUBLE_RULES,
         "it has signed one thing for some brokers and another for others, and goes on: two brokers have "
         "its key, or it does harm; see who has its host"},
    [MISDEED_NONSENSE] = {3, MEMBER_TROUBLE_RULES,
                          "it sends what cannot be read. It is passed over; see who has its host, and its version"},
    [MISDEED_FLOODS] =
        {1000, MEMBER_TROUBLE_RULES,
         "it floods us with datagrams. What is too much is passed over; see who has its host, and stop it"},
    [MISDEED_TOO_MUCH] = {1, MEMBER_TROUBLE_LIMITS,
                          "it publishes more than limits.rows_max or limits.owner_bytes_max here, and what is beyond "
                          "is not taken: give all brokers the same limits"},
    [MISDEED_ACCUSES] = {20, MEMBER_TROUBLE_ACCUSES,
                         "it says of brokers that answer us that they do not. It is not believed; look at its network"},
};

/* OFFENDERS_MAX: it is none of them. */
static size_t find(const struct conduct *conduct, const struct member_id *id) {
    size_t i = 0;
    while (i < OFFENDERS_MAX && (conduct->offenders[i].last_ms == 0 || !id_equal(&conduct->offenders[i].id, id)))
        i++;
    return i;
}

static struct offender *place_for(struct conduct *conduct, const struct member_id *id) {
    struct offender *oldest = conduct->offenders;
    size_t found = find(conduct, id);
    if (found < OFFENDERS_MAX) return &conduct->offenders[found];
    for (size_t i = 1; i < OFFENDERS_MAX; i++)
        if (conduct->offenders[i].last_ms < oldest->last_ms) oldest = &conduct->offenders[i];
    memset(oldest, 0, sizeof *oldest);
    oldest->id = *id;
    return oldest;
}

bool conduct_count(struct conduct *conduct, uint64_t now_ms, const struct member_id *id, enum misdeed misdeed) {
    struct offender *offender = place_for(conduct, id);
    if (offender->last_ms == 0 || now_ms >= offender->window_ms + WINDOW_MS) {
        memset(offender->counts, 0, sizeof offender->counts);
        offender->window_ms = now_ms;
    }
    offender->last_ms = now_ms + 1;
    if (offender->counts[misdeed] < rules[misdeed].enough) offender->counts[misdeed]++;
    if (offender->counts[misdeed] < rules[misdeed].enough) return false;
    bool told = offender->until_ms[misdeed] > now_ms;
    offender->until_ms[misdeed] = now_ms + SHOWN_MS;
    return !told;
}

static bool is_shown(const struct conduct *conduct, uint64_t now_ms, const struct member_id *id, size_t misdeed) {
    size_t found = find(conduct, id);
    return found < OFFENDERS_MAX && conduct->offenders[found].until_ms[misdeed] > now_ms;
}

bool conduct_does_harm(const struct conduct *conduct, uint64_t now_ms, const struct member_id *id) {
    bool harm = false;
    for (size_t i = 0; i < MISDEEDS; i++)
        harm = harm || (rules[i].trouble == MEMBER_TROUBLE_RULES && i != MISDEED_CONTRADICTS &&
                        is_shown(conduct, now_ms, id, i));
    return harm;
}

enum member_trouble conduct_trouble(const struct conduct *conduct, uint64_t now_ms, const struct member_id *id) {
    for (size_t i = 0; i < MISDEEDS; i++)
        if (is_shown(conduct, now_ms, id, i)) return rules[i].trouble;
    return MEMBER_TROUBLE_NONE;
}

void conduct_note(struct gossip *gossip, const struct member *member, enum misdeed misdeed) {
    if (member->self || !member->known) return;
    gossip->counters.misdeeds++;
    if (conduct_count(&gossip->conduct, gossip->now_ms, &member->id, misdeed))
        event_conduct(gossip, member, rules[misdeed].trouble, rules[misdeed].text);
}

void conduct_note_sender(struct gossip *gossip, enum misdeed misdeed) {
    if (gossip->header && gossip->authentic) conduct_note(gossip, gossip->sender, misdeed);
}
