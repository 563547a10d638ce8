/* Datagrams that do not open. Most are nobody's business. But one that comes from where a member is, whom we reach over
 * its link alone, says why: one of us was configured with another gossip key, and nothing else would tell. */
#include "gossip/verbs.h"

#include <stdio.h>

#define LOOKS_PER_S 32u /* a look walks over all who are awake, and anybody can send what does not open */

bool stray_other_key(const struct member *member) {
    return member->way.other_key && member_route(member).family == ADDRESS_LINK;
}

void stray_tell(struct gossip *gossip, const struct member *member) {
    char text[200];
    snprintf(text, sizeof text,
             "%.63s seals its datagrams with a gossip key that is not ours, and is reached over its link alone: give "
             "both the same federation.gossip_key",
             member->name);
    if (stray_other_key(member)) event_plain(gossip, GOSSIP_WARNING, member, member->epoch, 0, text);
}

/* Of keys that the issuer signs, the later ring reaches the other over the link: that is no trouble. A way that is not
 * proven may be that of anybody who took the member's name. */
static bool is_from(const struct gossip *gossip, const struct member *member, const struct gossip_address *from) {
    return gossip->self->ring == 0 && member->ring == 0 &&
           (address_equal(&member->address, from) || (member->path_proven && address_equal(&member->path, from)));
}

void stray_received(struct gossip *gossip, const struct gossip_address *from) {
    struct carrier *carrier = &gossip->carrier;
    carrier_stray(gossip, from);
    if (gossip->now_ms >= carrier->stray_until_ms) {
        carrier->stray_until_ms = gossip->now_ms + 1000;
        carrier->stray_looks = LOOKS_PER_S;
    }
    if (carrier->link_count == 0 || carrier->stray_looks == 0) return;
    carrier->stray_looks--;
    for (size_t i = 0; i < gossip->members.awake_count; i++) { /* who has a link is awake */
        struct member *member = members_awake(gossip, i);
        if (!member_is_visible(member) || member->way.other_key || !is_from(gossip, member, from)) continue;
        member->way.other_key = true;
        stray_tell(gossip, member);
    }
}
