#include "broker/retained.h"

#include "broker/timers.h"
#include "broker/tree.h"

#include <stdlib.h>
#include <string.h>

enum { TICK_MAX = 256 };

/* The item of a tree node: the last message of this topic, or the tombstone of one. */
struct entry {
    struct timer
        timer; /* first: the timer of an entry is the entry. Expiry of the message, or the end of the tombstone */
    struct tree_node *node;
    struct message *message;
    struct entry *older, *newer; /* tombstones by age */
    uint64_t number;             /* of its message among all that were ever set */
};

struct retained {
    struct tree tree;
    struct timers timers;
    struct entry *oldest_tombstone, *newest_tombstone;
    uint64_t bytes, bytes_max;
    uint64_t sets;
    size_t live, tombstones;
    uint32_t messages_max;
    retained_on_change *on_change; /* NULL if nobody watches */
    void *context;
};

struct retained *retained_new(uint64_t bytes_max, uint32_t messages_max, uint64_t seed) {
    struct retained *retained = calloc(1, sizeof *retained);

    if (retained == NULL || tree_init(&retained->tree, seed) != 0) {
        free(retained);
        return NULL;
    }
    retained->bytes_max = bytes_max;
    retained->messages_max = messages_max;
    return retained;
}

void retained_watch(struct retained *retained, retained_on_change *on_change, void *context) {
    retained->on_change = on_change;
    retained->context = context;
}

static void tell(const struct retained *retained, uint64_t now_ms, const struct message *message, bool is_set) {
    if (retained->on_change != NULL) retained->on_change(retained->context, now_ms, message, is_set);
}

void retained_free(struct retained *retained) {
    if (retained == NULL) return;
    for (struct tree_node *node = retained->tree.root; node != NULL; node = tree_next(node)) {
        struct entry *entry = node->item;
        if (entry != NULL) {
            message_unref(entry->message);
            free(entry);
        }
    }
    tree_deinit(&retained->tree);
    free(retained);
}

static bool is_tombstone(const struct message *message) {
    return message->payload_size == 0;
}

static size_t entry_cost(const struct message *message) {
    return sizeof(struct entry) + message_cost(message);
}

/* Takes the entry's message out of the books; the entry stays. */
static void unaccount(struct retained *retained, struct entry *entry) {
    retained->bytes -= entry_cost(entry->message);
    timer_clear(&retained->timers, &entry->timer);
    if (!is_tombstone(entry->message)) {
        retained->live--;
        return;
    }
    retained->tombstones--;
    *(entry->older ? &entry->older->newer : &retained->oldest_tombstone) = entry->newer;
    *(entry->newer ? &entry->newer->older : &retained->newest_tombstone) = entry->older;
    entry->older = entry->newer = NULL;
}

static void account(struct retained *retained, struct entry *entry, uint64_t tombstone_end_ms) {
    retained->bytes += entry_cost(entry->message);
    if (!is_tombstone(entry->message)) {
        retained->live++;
        timer_set(&retained->timers, &entry->timer, entry->message->expires_at_ms);
        return;
    }
    retained->tombstones++;
    timer_set(&retained->timers, &entry->timer, tombstone_end_ms);
    entry->older = retained->newest_tombstone;
    *(entry->older ? &entry->older->newer : &retained->oldest_tombstone) = entry;
    retained->newest_tombstone = entry;
}

static void entry_drop(struct retained *retained, uint64_t now_ms, struct entry *entry) {
    struct tree_node *node = entry->node;

    tell(retained, now_ms, entry->message, false);
    unaccount(retained, entry);
    message_unref(entry->message);
    free(entry);
    node->item = NULL;
    tree_prune(&retained->tree, node);
}

/* Drops the oldest tombstones, apart from the one of this entry, until a message in place of the entry's fits. */
static bool make_room(struct retained *retained, uint64_t now_ms, struct tree_path *path, const struct entry *entry,
                      const struct message *message) {
    size_t released = entry != NULL ? entry_cost(entry->message) : 0;
    size_t slots = entry != NULL ? 1 : 0;

    for (;;) {
        struct entry *victim = retained->oldest_tombstone;
        uint64_t nodes = entry == NULL ? tree_missing_bytes(&retained->tree, path) : 0;
        if (retained_bytes(retained) - released + entry_cost(message) + nodes <= retained->bytes_max &&
            retained->live + retained->tombstones - slots < retained->messages_max)
            return true;
        if (victim != NULL && victim == entry) victim = victim->newer;
        if (victim == NULL) return false;
        entry_drop(retained, now_ms, victim);
    }
}

enum retained_result retained_set(struct retained *retained, uint64_t now_ms, struct message *message) {
    return retained_put_back(retained, now_ms, message, UINT64_MAX);
}

enum retained_result retained_put_back(struct retained *retained, uint64_t now_ms, struct message *message,
                                       uint64_t tombstone_end_ms) {
    uint64_t latest_ms = now_ms + RETAINED_TOMBSTONE_MS;
    struct tree_path path;
    struct tree_node *node;
    struct entry *entry;
    struct message *held;

    tree_path_of(message->topic, message->topic_size, &path);
    node = tree_find(&retained->tree, &path);
    entry = node != NULL ? node->item : NULL;
    if (entry != NULL && stamp_compare(&entry->message->stamp, &message->stamp) >= 0) return RETAINED_OLDER;
    if (!make_room(retained, now_ms, &path, entry, message)) {
        if (entry == NULL || !is_tombstone(message)) return RETAINED_FULL;
        /* A delete must work in a full store: what remains is that the message is gone. */
        entry_drop(retained, now_ms, entry);
        return RETAINED_STORED;
    }
    held = message_ref(message);
    if (held == NULL) return RETAINED_NO_MEMORY;
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        node = entry != NULL ? tree_make(&retained->tree, &path) : NULL;
        if (node == NULL) {
            message_unref(held);
            free(entry);
            return RETAINED_NO_MEMORY;
        }
        entry->node = node;
        node->item = entry;
    } else {
        unaccount(retained, entry);
        message_unref(entry->message);
    }
    entry->message = held;
    entry->number = ++retained->sets;
    account(retained, entry, tombstone_end_ms < latest_ms ? tombstone_end_ms : latest_ms);
    tell(retained, now_ms, message, true);
    return RETAINED_STORED;
}

struct walk {
    uint64_t now_ms, until;
    bool with_tombstones;
    retained_on_message *on_message;
    void *context;
};

static bool show(const struct walk *walk, const struct tree_node *node) {
    const struct entry *entry = node->item;

    if (entry == NULL || entry->number > walk->until) return true;
    /* An expiry interval of a delete is for those who hear it live: what it deleted stays deleted. */
    if (is_tombstone(entry->message) ? !walk->with_tombstones : entry->message->expires_at_ms <= walk->now_ms)
        return true;
    return walk->on_message(walk->context, entry->message);
}

static bool match(const struct retained *retained, const struct walk *walk, const char *filter, size_t size,
                  uint64_t *budget) {
    struct tree_path path;
    struct tree_stand stand = {.node = retained->tree.root, .fit = TREE_ABOVE};

    tree_path_of(filter, size, &path);
    for (; stand.node != NULL; tree_step(&retained->tree, &path, &stand)) {
        if (*budget == 0) return false;
        --*budget;
        if (stand.fit == TREE_MATCHED && !show(walk, stand.node)) return false;
    }
    return true;
}

void retained_match(struct retained *retained, uint64_t now_ms, const char *filter, size_t size, bool with_tombstones,
                    retained_on_message *on_message, void *context) {
    uint64_t budget = UINT64_MAX;
    struct walk walk = {.now_ms = now_ms,
                        .until = UINT64_MAX,
                        .with_tombstones = with_tombstones,
                        .on_message = on_message,
                        .context = context};

    match(retained, &walk, filter, size, &budget);
}

bool retained_match_some(struct retained *retained, uint64_t now_ms, const char *filter, size_t size, uint64_t *budget,
                         retained_on_message *on_message, void *context) {
    struct walk walk = {
        .now_ms = now_ms, .until = UINT64_MAX, .with_tombstones = true, .on_message = on_message, .context = context};

    return match(retained, &walk, filter, size, budget);
}

void retained_each(const struct retained *retained, retained_on_message *on_message, void *context) {
    for (const struct tree_node *node = retained->tree.root; node != NULL; node = tree_next(node)) {
        const struct entry *entry = node->item;
        if (entry != NULL && !on_message(context, entry->message)) return;
    }
}

void retained_walk_begin(struct retained *retained, struct retained_walk *walk) {
    *walk = (struct retained_walk){.at = {.node = retained->tree.root, .fit = TREE_ABOVE}, .until = retained->sets};
    tree_pin(walk->at.node);
}

bool retained_walk_on(struct retained *retained, struct retained_walk *walk, uint64_t now_ms, const char *filter,
                      size_t size, uint32_t *budget, retained_on_message *on_message, void *context) {
    struct tree_path path;
    struct walk look = {.now_ms = now_ms, .until = walk->until, .on_message = on_message, .context = context};

    tree_path_of(filter, size, &path);
    while (walk->at.node != NULL) {
        struct tree_node *node = walk->at.node;
        if (*budget == 0) return false;
        --*budget;
        if (walk->at.fit == TREE_MATCHED && !show(&look, node)) return false;
        tree_step(&retained->tree, &path, &walk->at);
        if (walk->at.node != NULL) tree_pin(walk->at.node);
        tree_unpin(&retained->tree, node);
    }
    return true;
}

void retained_walk_end(struct retained *retained, struct retained_walk *walk) {
    if (walk->at.node != NULL) tree_unpin(&retained->tree, walk->at.node);
    walk->at.node = NULL;
}

bool retained_has(const struct retained *retained, const char *topic, size_t size) {
    struct tree_path path;
    const struct tree_node *node;
    const struct entry *entry;

    tree_path_of(topic, size, &path);
    node = tree_find(&retained->tree, &path);
    entry = node != NULL ? node->item : NULL;
    return entry != NULL && !is_tombstone(entry->message);
}

size_t retained_count(const struct retained *retained) {
    return retained->live;
}

size_t retained_topics(const struct retained *retained) {
    return retained->tree.node_count + 1;
}

uint64_t retained_seed(const struct retained *retained) {
    return retained->tree.seed;
}

uint64_t retained_bytes(const struct retained *retained) {
    return retained->bytes + retained->tree.bytes;
}

uint64_t retained_deadline_ms(const struct retained *retained) {
    return timers_due_ms(&retained->timers);
}

void retained_tick(struct retained *retained, uint64_t now_ms) {
    for (int i = 0; i < TICK_MAX; i++) {
        struct timer *timer = timers_take(&retained->timers, now_ms);
        if (timer == NULL) return;
        entry_drop(retained, now_ms, (struct entry *)timer);
    }
}
