#include "gossip/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gossip_event *push(struct gossip *gossip, enum gossip_event_kind kind, const char *filter, size_t size) {
    struct queued_event *queued = calloc(1, sizeof *queued + size);
    if (!queued) return NULL;
    queued->event.kind = kind;
    if (size > 0) {
        memcpy(queued->filter, filter, size);
        queued->event.filter = queued->filter;
        queued->event.filter_size = size;
    }
    if (gossip->events_last)
        gossip->events_last->next = queued;
    else
        gossip->events = queued;
    gossip->events_last = queued;
    return &queued->event;
}

static void fill(struct gossip_event *event, const struct member *member) {
    event->id = member->id;
    event->state = member->state;
    event->epoch = member->epoch;
    event->sequence = registry_sequence(member->registry);
    event->address = member->address.family ? member->address : member->path;
    memcpy(event->name, member->name, sizeof event->name);
}

void event_member(struct gossip *gossip, struct member *member) {
    struct gossip_event *event = push(gossip, GOSSIP_MEMBER, NULL, 0);
    if (!event) {
        member->resync = gossip->resync = true;
        return;
    }
    fill(event, member);
}

void event_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool active) {
    struct event_rows *rows = context;
    if (!holdings_show(rows->member)) return;
    struct gossip_event *event = push(rows->gossip, GOSSIP_ROW, filter, size);
    if (!event) {
        rows->member->resync = rows->gossip->resync = true;
        return;
    }
    fill(event, rows->member);
    event->row_kind = kind;
    event->active = active;
}

void event_rows_all(struct gossip *gossip, struct member *member) {
    struct event_rows context = {gossip, member};
    struct rowset_walk walk;
    struct rowset_row row;
    for (rowset_begin(registry_rows(member->registry), &walk); rowset_next(&walk, &row);)
        event_row(&context, row.kind, row.filter, row.size, true);
}

/* It may have said so before it was visible, or before it was down, when the caller had no use for it. */
void event_knows(struct gossip *gossip, struct member *member) {
    if (member->known_sequence == 0) return;
    if (!event_plain(gossip, GOSSIP_KNOWS, member, gossip->self->epoch, member->known_sequence, ""))
        member->resync = gossip->resync = true;
}

/* A caller that missed an event would keep a wrong picture for good, so everything of that member is said again,
 * beginning with nothing. */
void events_resync(struct gossip *gossip) {
    if (!gossip->resync) return;
    gossip->resync = false;
    for (size_t i = 0; i < gossip->members.awake_count; i++) {
        struct member *member = members_awake(gossip, i);
        if (!member->resync) continue;
        member->resync = false;
        if (member_is_visible(member)) {
            enum member_state state = member->state;
            member->state = MEMBER_DOWN;
            event_member(gossip, member);
            member->state = state;
        }
        event_member(gossip, member);
        if (!member_is_visible(member)) continue;
        event_rows_all(gossip, member);
        event_knows(gossip, member);
    }
}

bool event_plain(struct gossip *gossip, enum gossip_event_kind kind, const struct member *member, uint64_t epoch,
                 uint64_t sequence, const char *text) {
    struct gossip_event *event = push(gossip, kind, NULL, 0);
    if (!event) return false; /* most are for people */
    if (member) fill(event, member);
    event->epoch = epoch;
    event->sequence = sequence;
    snprintf(event->text, sizeof event->text, "%s", text);
    return true;
}

void event_conduct(struct gossip *gossip, const struct member *member, enum member_trouble trouble, const char *text) {
    struct gossip_event *event = push(gossip, GOSSIP_CONDUCT, NULL, 0);
    if (!event) return; /* it is still shown */
    fill(event, member);
    event->trouble = trouble;
    snprintf(event->text, sizeof event->text, "%s", text);
}

bool event_cloned(struct gossip *gossip, const struct gossip_address *from) {
    struct gossip_event *event = push(gossip, GOSSIP_CLONED, NULL, 0);
    if (!event) return false;
    fill(event, gossip->self);
    event->address = *from;
    snprintf(event->text, sizeof event->text,
             "another broker speaks with our key: find it and give it a key of its own");
    return true;
}

bool event_ring(struct gossip *gossip, const struct member_id *from) {
    const struct member *member = members_find(gossip, from);
    struct gossip_event *event = push(gossip, GOSSIP_RING, NULL, 0);
    if (!event) return false;
    fill(event, member ? member : gossip->self);
    event->sequence = gossip->self->ring;
    return true;
}

void events_free(struct gossip *gossip) {
    free(gossip->event_given);
    while (gossip->events) {
        struct queued_event *queued = gossip->events;
        gossip->events = queued->next;
        free(queued);
    }
}

bool gossip_next_event(struct gossip *gossip, struct gossip_event *event) {
    free(gossip->event_given);
    gossip->event_given = gossip->events;
    if (!gossip->events) return false;
    gossip->events = gossip->events->next;
    if (!gossip->events) gossip->events_last = NULL;
    *event = gossip->event_given->event;
    return true;
}
