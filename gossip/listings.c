/* What the caller may look at. */
#include "gossip/verbs.h"

#include <string.h>

static enum member_trouble trouble_of(const struct gossip *gossip, const struct member *member) {
    if (conduct_does_harm(&gossip->conduct, gossip->now_ms, &member->id)) return MEMBER_TROUBLE_RULES;
    if (member->self ? own_is_cloned(gossip) : member->cloned) return MEMBER_TROUBLE_CLONED;
    if (member->name_taken) return MEMBER_TROUBLE_NAME;
    if (member->refused) return MEMBER_TROUBLE_TOKEN;
    if (stray_other_key(member)) return MEMBER_TROUBLE_SEALED;
    return conduct_trouble(&gossip->conduct, gossip->now_ms, &member->id);
}

static void describe(const struct gossip *gossip, uint64_t now_ms, const struct member *member,
                     struct member_info *info) {
    memset(info, 0, sizeof *info);
    info->id = member->id;
    memcpy(info->name, member->name, sizeof info->name);
    info->state = member->state;
    if (member->self && gossip->own.leaving) info->state = MEMBER_LEFT;
    info->address = member->address.family ? member->address : member->path;
    info->epoch = member->epoch;
    info->sequence = registry_sequence(member->registry);
    bool heard = member->heard_ms != NEVER && now_ms >= member->heard_ms;
    info->heard_ms_ago = member->self || (member->heard_ms != NEVER && !heard) ? 0
                         : heard                                               ? now_ms - member->heard_ms
                                                                               : NEVER;
    info->rows = (uint32_t)registry_rows(member->registry)->count;
    info->ring = member->ring;
    info->trouble = trouble_of(gossip, member);
    memcpy(info->ring_mark, member->ring_mark, sizeof info->ring_mark);
    info->self = member->self;
    info->link = member->way.link;
    info->by_link = member_route(member).family == ADDRESS_LINK;
}

bool gossip_member_at(const struct gossip *gossip, uint64_t now_ms, size_t index, struct member_info *info) {
    if (index >= gossip->members.count) return false;
    if (index == 0) {
        describe(gossip, now_ms, gossip->self, info);
        return true;
    }
    /* Ourselves are first, so those before our place are one later. */
    struct member copy;
    size_t place = index - (index <= members_place(gossip, gossip->self));
    describe(gossip, now_ms, members_look(gossip, place, &copy), info);
    return true;
}

bool gossip_member_find(const struct gossip *gossip, uint64_t now_ms, const struct member_id *id,
                        struct member_info *info) {
    struct member copy;
    const struct member *member = members_look_for(gossip, id, &copy);
    if (member) describe(gossip, now_ms, member, info);
    return member != NULL;
}

void gossip_walk_rows(const struct gossip *gossip, uint64_t now_ms, gossip_on_row *on_row, void *context) {
    struct member copy;
    for (size_t i = 0; i < gossip->members.count; i++) {
        const struct member *member = members_look(gossip, i, &copy);
        if (!member->self && !holdings_show(member)) continue;
        struct member_info info;
        describe(gossip, now_ms, member, &info);
        struct rowset_walk walk;
        struct rowset_row row;
        for (rowset_begin(registry_rows(member->registry), &walk); rowset_next(&walk, &row);)
            if (!on_row(context, &info, row.kind, row.filter, row.size)) return;
    }
}

static void count_covers(const struct gossip *gossip, struct gossip_counters *out) {
    for (size_t i = 0; i < 2; i++) {
        const struct cover *cover = &gossip->own.covers[i];
        out->filters_own += cover_wanted_count(cover);
        out->filter_bytes += cover_memory(cover);
        out->rows_merged += cover->merged_count;
        out->merges += cover->merges;
        out->splits += cover->splits;
        out->unwanted += cover->unwanted;
        out->over_covered += cover->traffic.over;
    }
}

void gossip_read_counters(const struct gossip *gossip, struct gossip_counters *out) {
    *out = gossip->counters;
    out->registry_bytes = gossip->holdings.bytes + transfers_bytes(&gossip->transfers);
    out->graves = gossip->graves.count;
    out->members_by_link = gossip->carrier.by_link_count;
    for (size_t i = 0; i < CARRIER_WANTS_MAX; i++)
        out->links_wanted += gossip->carrier.wants[i].until_ms != 0;
    count_covers(gossip, out);
    out->ring = gossip->self->ring;
    struct member copy;
    for (size_t i = 0; i < gossip->members.count; i++) {
        const struct member *member = members_look(gossip, i, &copy);
        out->members_in_trouble += trouble_of(gossip, member) != MEMBER_TROUBLE_NONE;
        if (member->self) {
            out->rows_own = registry_rows(member->registry)->count;
            out->members_alive++;
            continue;
        }
        out->members_alive += member->state == MEMBER_ALIVE;
        out->members_suspect += member->state == MEMBER_SUSPECT;
        out->members_down += member->state == MEMBER_DOWN;
        out->rings_behind += member_is_visible(member) && ring_is_behind(gossip, member);
        out->rows_others += holdings_show(member) ? registry_rows(member->registry)->count : 0;
    }
}
