/* The subscription tree and the retained store against lists that are searched from end to end. The input is a program
 * of three bytes and a text a step: what to do, with whom, how long the text is. */
#include "broker/retained.h"
#include "broker/subs.h"
#include "broker/topic.h"
#include "tests/fuzz/naive_topics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUBSCRIBERS 4u
#define ENTRIES_MAX 64u

struct entry {
    const char *text; /* in the input */
    size_t size;
    unsigned subscriber;
    struct subscription subscription;
    uint8_t payload; /* of a retained message; 0: a tombstone */
    bool is_seen;
};

struct list {
    struct entry entries[ENTRIES_MAX];
    size_t count;
};

struct state {
    struct subs *subs;
    struct retained *retained;
    struct subscriber subscribers[SUBSCRIBERS];
    struct list subscriptions, messages;
    uint64_t now_ms;
};

static struct entry *find(struct list *list, const char *text, size_t size, unsigned subscriber) {
    for (size_t i = 0; i < list->count; i++) {
        struct entry *entry = &list->entries[i];
        if (entry->subscriber == subscriber && entry->size == size && memcmp(entry->text, text, size) == 0)
            return entry;
    }
    return NULL;
}

static bool naive_match(const char *filter, size_t filter_size, const char *name, size_t name_size) {
    struct naive a, b;
    assert(naive_split(filter, filter_size, &a) && naive_split(name, name_size, &b));
    return naive_matches(&a, &b);
}

/* ---- subscriptions ---- */

static void add(struct state *state, const char *filter, size_t size, unsigned subscriber, uint8_t options) {
    struct subscription subscription = {.qos = options & 3, .identifier = options};
    struct entry *entry = find(&state->subscriptions, filter, size, subscriber);
    if (entry == NULL && state->subscriptions.count == ENTRIES_MAX) return;
    enum subs_result result = subs_add(state->subs, filter, size, &state->subscribers[subscriber], &subscription);
    assert(result == (entry != NULL ? SUBS_REPLACED : SUBS_OK));
    if (entry == NULL) entry = &state->subscriptions.entries[state->subscriptions.count++];
    *entry = (struct entry){.text = filter, .size = size, .subscriber = subscriber, .subscription = subscription};
}

static void drop(struct state *state, const char *filter, size_t size, unsigned subscriber) {
    struct entry *entry = find(&state->subscriptions, filter, size, subscriber);
    enum subs_result result = subs_remove(state->subs, filter, size, &state->subscribers[subscriber]);
    assert(result == (entry != NULL ? SUBS_OK : SUBS_NOT_FOUND));
    if (entry != NULL) *entry = state->subscriptions.entries[--state->subscriptions.count];
}

struct hits {
    struct state *state;
    const char *name;
    size_t size;
};

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct hits *hits = context;
    for (size_t i = 0; i < hits->state->subscriptions.count; i++) {
        struct entry *entry = &hits->state->subscriptions.entries[i];
        if (entry->is_seen || &hits->state->subscribers[entry->subscriber] != subscriber ||
            entry->subscription.identifier != subscription->identifier ||
            !naive_match(entry->text, entry->size, hits->name, hits->size))
            continue;
        assert(entry->subscription.qos == subscription->qos);
        entry->is_seen = true;
        return;
    }
    abort(); /* a hit that no subscription explains */
}

static void match(struct state *state, const char *name, size_t size) {
    struct hits hits = {state, name, size};
    subs_match(state->subs, name, size, on_hit, &hits);
    for (size_t i = 0; i < state->subscriptions.count; i++) {
        struct entry *entry = &state->subscriptions.entries[i];
        assert(entry->is_seen == naive_match(entry->text, entry->size, name, size));
        entry->is_seen = false;
    }
}

/* ---- retained messages ---- */

static void retain(struct state *state, const char *topic, size_t size, uint8_t payload) {
    struct entry *entry = find(&state->messages, topic, size, 0);
    if (entry == NULL && state->messages.count == ENTRIES_MAX) return;
    struct message *message = message_new(&(struct message){.topic = topic,
                                                            .topic_size = (uint32_t)size,
                                                            .payload = &payload,
                                                            .payload_size = payload != 0,
                                                            .expires_at_ms = UINT64_MAX,
                                                            .stamp = {.wall_ms = state->now_ms++}});
    assert(message != NULL);
    assert(retained_set(state->retained, state->now_ms, message) == RETAINED_STORED);
    message_unref(message);
    if (entry == NULL) entry = &state->messages.entries[state->messages.count++];
    *entry = (struct entry){.text = topic, .size = size, .payload = payload};
}

static bool on_message(void *context, struct message *message) {
    struct state *state = context;
    struct entry *entry = find(&state->messages, message->topic, message->topic_size, 0);
    assert(entry != NULL && !entry->is_seen && entry->payload != 0);
    assert(message->payload_size == 1 && message->payload[0] == entry->payload);
    entry->is_seen = true;
    return true;
}

static void check_shown(struct state *state, const char *filter, size_t size) {
    for (size_t i = 0; i < state->messages.count; i++) {
        struct entry *entry = &state->messages.entries[i];
        assert(entry->is_seen == (entry->payload != 0 && naive_match(filter, size, entry->text, entry->size)));
        assert(retained_has(state->retained, entry->text, entry->size) == (entry->payload != 0));
        entry->is_seen = false;
    }
}

static void show(struct state *state, const char *filter, size_t size, uint32_t step) {
    retained_match(state->retained, state->now_ms, filter, size, false, on_message, state);
    check_shown(state, filter, size);
    /* In pieces it must come to the same. */
    struct retained_walk walk = {0};
    retained_walk_begin(state->retained, &walk);
    for (unsigned turns = 0;; turns++) {
        uint32_t budget = step + 1;
        assert(turns < 4 * ENTRIES_MAX * TOPIC_LEVELS_MAX);
        if (retained_walk_on(state->retained, &walk, state->now_ms, filter, size, &budget, on_message, state)) break;
    }
    retained_walk_end(state->retained, &walk);
    check_shown(state, filter, size);
}

static void step(struct state *state, uint8_t verb, uint8_t detail, const char *text, size_t size) {
    bool is_name = topic_name_valid(text, size), is_filter = topic_filter_valid(text, size);
    unsigned subscriber = verb >> 3 & (SUBSCRIBERS - 1);
    switch (verb & 7) {
    case 0:
    case 1:
        if (is_filter) add(state, text, size, subscriber, detail % 3);
        break;
    case 2:
        if (is_filter) drop(state, text, size, subscriber);
        break;
    case 3:
        if (is_name) match(state, text, size);
        break;
    case 4:
    case 5:
        if (is_name) retain(state, text, size, detail);
        break;
    case 6:
        if (is_name) retain(state, text, size, 0);
        break;
    case 7:
        if (is_filter) show(state, text, size, detail);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct state state;
    state = (struct state){.subs = subs_new(1), .retained = retained_new(1u << 24, 1000, 1), .now_ms = 1000};
    assert(state.subs != NULL && state.retained != NULL);
    while (size >= 3) {
        size_t length = data[2] < size - 3 ? data[2] : size - 3;
        step(&state, data[0], data[1], (const char *)data + 3, length);
        data += 3 + length, size -= 3 + length;
    }
    assert(subs_count(state.subs) == state.subscriptions.count);
    while (state.subscriptions.count > 0)
        drop(&state, state.subscriptions.entries[0].text, state.subscriptions.entries[0].size,
             state.subscriptions.entries[0].subscriber);
    assert(subs_count(state.subs) == 0);
    subs_free(state.subs);
    retained_free(state.retained);
    return 0;
}
