/* How much is lost just now. The loss that pings are judged by (probe.c) is a long mean of those that were answered in
 * the end; when the radio falls silent for all at once it says nothing yet, and within a second the living would be
 * held dead. So unanswered pings to those not suspected are counted at once too: while far fewer are answered than
 * should be, silence says little about a suspect, and what it said before is asked again. */
#include "gossip/verbs.h"

#define SLOWNESS 3u
#define TRIES_MAX 2u /* of one probe: whoever has died must not look like silence all around */
#define WHOLE 65536u

/* Halfway from what is usual to all. */
static bool is_silent(const struct gossip *gossip) {
    return gossip->lost_now >= gossip->loss + (WHOLE - gossip->loss) / 2;
}

static void ask_suspects_anew(struct gossip *gossip) {
    struct member *member;
    for (size_t i = 0; (member = members_suspect(gossip, i)); i++)
        probe_suspect_anew(gossip, member);
}

static bool counts(const struct member *member) {
    return member->state == MEMBER_ALIVE && member->fresh_epoch == member->epoch;
}

void silence_note_unanswered(struct gossip *gossip, const struct member *member) {
    if (!counts(member) || member->probe.tries > TRIES_MAX) return;
    bool before = is_silent(gossip);
    gossip->lost_now = doubt_note_loss(gossip->lost_now, true, SLOWNESS);
    if (!before && is_silent(gossip)) ask_suspects_anew(gossip);
}

void silence_note_answered(struct gossip *gossip, const struct member *member) {
    if (counts(member)) gossip->lost_now = doubt_note_loss(gossip->lost_now, false, SLOWNESS);
}

uint16_t silence_loss(const struct gossip *gossip) {
    return is_silent(gossip) ? gossip->lost_now : gossip->loss;
}
