#include "gossip/inspect.h"

#include "gossip/verbs.h"

#include <string.h>

static void look_at(const struct member *member, struct gossip_inspected *out) {
    const struct registry *log = member->registry;
    *out = (struct gossip_inspected){
        .id = member->id,
        .state = member->state,
        .self = member->self,
        .known = member->known,
        .visible = member_is_visible(member),
        .address = member_route(member),
        .epoch = member->epoch,
        .incarnation = member->incarnation,
        .accused_epoch = member->accused_epoch,
        .accused_incarnation = member->accused_incarnation,
        .down_epoch = member->down_epoch,
        .down_incarnation = member->down_incarnation,
        .log_epoch = log ? log->at.epoch : member->epoch,
        .sequence = registry_sequence(log),
        .base_sequence = registry_base_sequence(log),
        .row_count = registry_rows(log)->count,
        .row_bytes = registry_rows(log)->bytes,
        .base_size = log && log->base ? rowset_encoded_size(&log->base->rows) : 0,
        .log_count = log ? log->log_count : 0,
        .log_bytes = log ? log->log_bytes : 0,
    };
    if (log) memcpy(out->chain, log->at.chain, sizeof out->chain);
}

bool gossip_inspect_at(const struct gossip *gossip, size_t index, struct gossip_inspected *out) {
    if (index >= gossip->members.count) return false;
    struct member copy;
    look_at(members_look(gossip, index, &copy), out);
    return true;
}

bool gossip_inspect_find(const struct gossip *gossip, const struct member_id *id, struct gossip_inspected *out) {
    struct member copy;
    const struct member *member = members_look_for(gossip, id, &copy);
    if (!member) return false;
    look_at(member, out);
    return true;
}

bool gossip_inspect_self(const struct gossip *gossip, struct gossip_inspected *out) {
    look_at(gossip->self, out);
    return true;
}

void gossip_inspect_sizes(const struct gossip *gossip, struct gossip_sizes *out) {
    *out = (struct gossip_sizes){
        .members = gossip->members.count,
        .members_unverified = gossip->members.unverified,
        .datagrams = gossip->budget.count,
        .drafts = gossip->own.draft_count,
    };
    for (const struct queued_event *event = gossip->events; event; event = event->next)
        out->events++;
    for (size_t i = 0; i < RELAYS_MAX; i++)
        out->relays += gossip->relays[i].used;
    for (size_t i = 0; i < STRANGERS_MAX; i++)
        out->strangers += gossip->strangers[i].used;
}

size_t gossip_inspect_staged(const struct gossip *gossip, const struct member_id *id) {
    const struct transfer *transfer = transfers_find(&gossip->transfers, id);
    size_t bytes = 0;
    for (size_t i = 0; transfer && i < TRANSFER_STAGINGS; i++)
        bytes += transfer->staging[i].size;
    return bytes;
}

void gossip_inspect_rows(const struct gossip *gossip, const struct member_id *id, gossip_inspect_on_row *on_row,
                         void *context) {
    struct member copy;
    const struct member *member = members_look_for(gossip, id, &copy);
    struct rowset_walk walk;
    struct rowset_row row;
    if (!member) return;
    for (rowset_begin(registry_rows(member->registry), &walk); rowset_next(&walk, &row);)
        on_row(context, row.kind, row.filter, row.size);
}

void gossip_inspect_signed(const struct gossip *gossip, const struct member_id *id, size_t entries_max,
                           gossip_inspect_on_signed *on_signed, void *context) {
    struct member copy;
    const struct member *member = members_look_for(gossip, id, &copy);
    if (!member || !member->has_key) return;
    const struct registry *log = member->registry;
    const struct checkpoint *base = log ? log->base : NULL;
    if (member->head_size > 0) on_signed(context, member->public_key, member->head, member->head_size);
    if (base && base->head_size > 0) on_signed(context, member->public_key, base->head, base->head_size);
    for (size_t i = log && log->log_count > entries_max ? log->log_count - entries_max : 0; log && i < log->log_count;
         i++)
        on_signed(context, member->public_key, log->log[i]->bytes, log->log[i]->size);
}
