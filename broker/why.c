#include "broker/why_inside.h"

#include "broker/topic.h"
#include "broker/why_path.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { INQUIRIES_MAX = 16, INQUIRIES_MS = 1000 }; /* of one peer, in that time */

static_assert(2 * WHY_TOLD_MAX + 8 <= WHY_STEPS_MAX, "both ends, and what is known of them");

enum end_state {
    END_NOT_ASKED, /* it is this broker, the same as the other, or not there */
    END_WAITS,     /* for a link */
    END_ASKED,
    END_ANSWERED
};

struct why {
    struct why *prev, *next;
    uint64_t number, due_ms;
    bool is_done, is_told;
    struct why_end ends[2]; /* where it is published, where it is subscribed to */
    enum end_state states[2];
    struct inquiry inquiry;
    struct why_steps steps;
    char topic[];
};

static struct why *find(const struct federation *federation, uint64_t number) {
    struct why *why;
    DL_FOREACH(federation->whys, why) {
        if (why->number == number) return why;
    }
    return NULL;
}

/* ---- asking ---- */

static bool is_same(const struct why_end *a, const struct why_end *b) {
    return strcmp(a->name, b->name) == 0;
}

static bool is_here(const struct federation *federation, const struct why_end *end) {
    return memcmp(&end->id, &federation->id, sizeof end->id) == 0;
}

static void send(struct federation *federation, struct why *why, int end, struct peer *peer) {
    why->states[end] = END_ASKED;
    sender_why(federation, peer->link, &why->inquiry);
}

/* A link is made if there is none, and stays as long as one without business. */
static void ask(struct federation *federation, struct why *why, int end) {
    struct peer *peer = peers_find(federation, &why->ends[end].id);
    why->states[end] = END_WAITS;
    if (!peer) return;
    if (peer->link) {
        send(federation, why, end, peer);
        return;
    }
    uint64_t until_ms = federation->now_ms + WHY_WAIT_MS;
    if (peer->keep_until_ms < until_ms) peer->keep_until_ms = until_ms;
    peer_want_link(federation, peer);
}

void why_linked(struct federation *federation, struct peer *peer) {
    struct why *why;
    DL_FOREACH(federation->whys, why) {
        for (int end = 0; end < 2; end++)
            if (why->states[end] == END_WAITS && memcmp(&why->ends[end].id, &peer->id, sizeof peer->id) == 0 &&
                peer->link && peer->link->state == LINK_UP)
                send(federation, why, end, peer);
    }
}

/* ---- the answer ---- */

static void tell_standing(struct why *why, const struct why_end *end) {
    if (end->standing[0] == '\0') return;
    if (end->is_there)
        why_passes(&why->steps, WHY_MEMBER, "%s %s", end->name, end->standing);
    else
        why_stops(&why->steps, WHY_MEMBER, "%s %s", end->name, end->standing);
}

static void tell_silence(const struct federation *federation, struct why *why, int end) {
    const struct peer *peer = peers_find(federation, &why->ends[end].id);
    if (why->states[end] == END_ASKED)
        why_stops(&why->steps, WHY_SILENCE, "%s has not answered in %u s: it hangs, or is of a version that cannot",
                  why->ends[end].name, WHY_WAIT_MS / 1000u);
    else if (why->states[end] == END_WAITS)
        why_stops(&why->steps, WHY_SILENCE, "%s cannot be asked, as there is no link with it%s%s", why->ends[end].name,
                  peer && why_unlinked(peer)[0] != '\0' ? ": " : "", peer ? why_unlinked(peer) : "");
}

static void finish(struct federation *federation, struct why *why) {
    why->steps.teller = federation->name;
    why_tell(federation, &why->inquiry, &why->steps);
    for (int end = 0; end < 2; end++)
        tell_silence(federation, why, end);
    why_order(&why->steps, why->ends[0].name);
    if (why->steps.count == 0) why_stops(&why->steps, WHY_SILENCE, "neither broker says anything of it");
    why->is_done = true;
}

static bool is_open(const struct why *why) {
    bool waits = false;
    for (int end = 0; end < 2; end++)
        waits |= why->states[end] == END_WAITS || why->states[end] == END_ASKED;
    return waits;
}

void why_on_answer(struct federation *federation, const struct peer *peer, struct frame *frame) {
    struct why *why = find(federation, frame->inquiry.number);
    struct inquiry_step step;
    for (int end = 0; why && !why->is_done && end < 2; end++) {
        if (why->states[end] != END_ASKED || memcmp(&why->ends[end].id, &peer->id, sizeof peer->id) != 0) continue;
        why->states[end] = END_ANSWERED;
        why->steps.teller = why->ends[end].name;
        for (int told = 0; told < WHY_TOLD_MAX && frame_next_step(frame, &step); told++)
            why_add(&why->steps, (uint8_t)(step.stage < WHY_SILENCE ? step.stage : WHY_SILENCE), step.stops, step.text,
                    step.size);
        if (!is_open(why)) finish(federation, why);
    }
}

uint64_t whys_deadline_ms(const struct federation *federation) {
    uint64_t due_ms = UINT64_MAX;
    const struct why *why;
    DL_FOREACH(federation->whys, why) {
        if (!why->is_done && why->due_ms < due_ms) due_ms = why->due_ms;
    }
    return due_ms;
}

void whys_tick(struct federation *federation) {
    struct why *why;
    DL_FOREACH(federation->whys, why) {
        if (!why->is_done && why->due_ms <= federation->now_ms) finish(federation, why);
    }
}

/* ---- answering peers ---- */

static bool asks_too_often(const struct federation *federation, struct peer *peer) {
    if (federation->now_ms - peer->inquiries_ms >= INQUIRIES_MS) {
        peer->inquiries_ms = federation->now_ms;
        peer->inquiries = 0;
    }
    return peer->inquiries++ >= INQUIRIES_MAX;
}

void why_on_inquiry(struct federation *federation, struct link *link, const struct inquiry *inquiry) {
    if (!topic_name_valid(inquiry->topic, inquiry->topic_size)) {
        link_malformed(federation, link, "asks about what is no topic");
        return;
    }
    if (asks_too_often(federation, link->peer)) return;
    struct why_steps steps = {.teller = ""};
    why_tell(federation, inquiry, &steps);
    struct frame_out *out = sender_begin(link, FRAME_BECAUSE, inquiry->number);
    for (size_t i = 0; i < steps.count; i++) {
        const struct why_step *step = &steps.all[i];
        frame_add_step(out,
                       &(struct inquiry_step){
                           .stage = step->stage, .stops = step->stops, .text = step->text, .size = strlen(step->text)});
    }
    sender_end(federation, link, 0);
}

/* ---- the door ---- */

static struct why *new_why(struct federation *federation, const char *topic, size_t size, const struct why_end *from,
                           const struct why_end *to) {
    if (federation->why_count >= WHY_OPEN_MAX || size > TOPIC_SIZE_MAX) return NULL;
    struct why *why = calloc(1, sizeof *why + size);
    if (!why) return NULL;
    if (size > 0) memcpy(why->topic, topic, size);
    why->number = ++federation->why_numbers;
    why->due_ms = federation->now_ms + WHY_WAIT_MS;
    why->ends[0] = *from;
    why->ends[1] = *to;
    why->inquiry = (struct inquiry){.number = why->number, .topic = why->topic, .topic_size = size};
    memcpy(why->inquiry.from, from->id.bytes, sizeof why->inquiry.from);
    memcpy(why->inquiry.to, to->id.bytes, sizeof why->inquiry.to);
    DL_APPEND(federation->whys, why);
    federation->why_count++;
    return why;
}

static void refuse_topic(const struct federation *federation, struct why *why) {
    why->steps.teller = federation->name;
    why_stops(&why->steps, WHY_TOPIC,
              "this is no topic: 1 to 65,535 bytes of UTF-8, in at most 128 levels, without + and #; of a filter, name "
              "one topic that it matches");
    why->is_done = true;
}

uint64_t broker_why_ask(struct broker *broker, uint64_t now_ms, const char *topic, size_t size,
                        const struct why_end *from, const struct why_end *to) {
    struct federation *federation = broker_federation(broker);
    federation->now_ms = now_ms;
    struct why *why = new_why(federation, topic, size, from, to);
    if (!why) return 0;
    if (!topic_name_valid(topic, size)) {
        refuse_topic(federation, why);
        return why->number;
    }
    why->steps.teller = federation->name;
    tell_standing(why, from);
    if (!is_same(from, to)) tell_standing(why, to);
    for (int end = 0; end < 2; end++) {
        bool is_asked = why->ends[end].is_there && !is_here(federation, &why->ends[end]);
        if (is_asked && !(end == 1 && is_same(from, to))) ask(federation, why, end);
    }
    if (!is_open(why)) finish(federation, why);
    return why->number;
}

bool broker_next_why(struct broker *broker, uint64_t *question) {
    struct why *why;
    DL_FOREACH(broker_federation(broker)->whys, why) {
        if (!why->is_done || why->is_told) continue;
        why->is_told = true;
        *question = why->number;
        return true;
    }
    return false;
}

const struct why_step *broker_why_steps(const struct broker *broker, uint64_t question, size_t *count) {
    const struct why *why = find(broker_federation(broker), question);
    if (!why || !why->is_done) return NULL;
    *count = why->steps.count;
    return why->steps.all;
}

static void drop(struct federation *federation, struct why *why) {
    DL_DELETE(federation->whys, why);
    federation->why_count--;
    free(why);
}

void broker_why_end(struct broker *broker, uint64_t question) {
    struct federation *federation = broker_federation(broker);
    struct why *why = find(federation, question);
    if (why) drop(federation, why);
}

void whys_deinit(struct federation *federation) {
    while (federation->whys)
        drop(federation, federation->whys);
}
