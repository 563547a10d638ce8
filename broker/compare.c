#include "broker/compare.h"

#include "broker/digest.h"
#include "broker/group.h"
#include "broker/stock.h"
#include "broker/selection.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* What the peer said with its joins. */
struct told {
    uint32_t number;
    uint64_t expected;
    size_t sums_size, items_size;
    uint8_t bytes[]; /* sums, then items */
};

/* What becomes of an item. */
enum { ITEM_HELD, ITEM_WANTED, ITEM_SENT };

struct comparison {
    struct comparison *prev, *next;
    uint32_t number; /* the peer's */
    uint32_t mark;   /* ours, of the joins that wait for it */
    uint32_t open;   /* how many they are */
    struct told *told;
    struct digest digest; /* as of the joins */
    size_t wanted;
    /* Nodes that differ: those that were answered, those on their way to the peer, and those that wait. */
    uint64_t *nodes;
    size_t answered, sent, count, capacity;
    size_t frames[COMPARISON_FRAMES]; /* nodes of each frame that is on its way */
    unsigned frame_count;
};

static struct comparison *by_mark(const struct link *link, uint32_t mark) {
    struct comparison *comparison;
    DL_FOREACH(link->comparisons, comparison) {
        if (comparison->mark == mark) return comparison;
    }
    return NULL;
}

static struct comparison *by_number(const struct link *link, uint32_t number) {
    struct comparison *comparison;
    DL_FOREACH(link->comparisons, comparison) {
        if (comparison->number == number) return comparison;
    }
    return NULL;
}

static void comparison_free(struct federation *federation, struct comparison *comparison) {
    federation->digest_items -= comparison->digest.count;
    digest_deinit(&comparison->digest);
    free(comparison->nodes);
    free(comparison->told);
    free(comparison);
}

static void drop(struct federation *federation, struct link *link, struct comparison *comparison) {
    DL_DELETE(link->comparisons, comparison);
    link->comparison_count--;
    link->compare_frames -= comparison->frame_count;
    comparison_free(federation, comparison);
}

bool compare_end(struct federation *federation, struct link *link) {
    bool any = link->comparisons != NULL;
    while (link->comparisons)
        drop(federation, link, link->comparisons);
    free(link->told);
    link->told = NULL;
    return any;
}

/* ---- the end ---- */

struct sending {
    struct federation *federation;
    struct peer *peer;
    struct comparison *comparison;
    enum group_result result;
};

static bool is_for(const struct federation *federation, const struct peer *peer, const struct message *message) {
    return group_is_ours(federation, message) &&
           policy_lets(&peer->rules, POLICY_EXPORT, message->topic, message->topic_size);
}

/* Another stamp than that of the item is one that was sent as it was published. */
static bool on_wanted(void *context, struct message *message) {
    struct sending *sending = context;
    const struct digest *digest = &sending->comparison->digest;
    if (!is_for(sending->federation, sending->peer, message)) return true;
    const struct digest_item *item = digest_find(digest, digest_topic(digest, message->topic, message->topic_size));
    if (!item || item->state != ITEM_WANTED || !digest_item_is(item, &message->stamp)) return true;
    sending->result = group_send_retained(sending->federation, sending->peer, message);
    return sending->result == GROUP_OK;
}

static enum group_result send_wanted(struct federation *federation, struct link *link, struct comparison *comparison,
                                     const struct selection *joins) {
    struct sending sending = {.federation = federation, .peer = link->peer, .comparison = comparison};
    if (comparison->wanted > 0 &&
        !selection_walk(joins, federation->retained, federation->now_ms, on_wanted, &sending) &&
        sending.result == GROUP_OK)
        return GROUP_NO_MEMORY;
    return sending.result;
}

static void confirm(struct federation *federation, struct link *link, const struct selection *joins) {
    struct frame_out *out = sender_begin(link, FRAME_JOINED, JOINED_YES);
    for (size_t i = 0; i < joins->count; i++)
        frame_add_name(out, joins->filters[i].text, joins->filters[i].size);
    sender_end(federation, link, link->peer->outbox.end);
}

/* It is asked for nothing more. */
static void say_end(struct federation *federation, struct link *link, uint32_t number) {
    struct frame_out out = {0};
    frame_write_digests(&out, FRAME_COMPARE, &(struct frame_digests){.number = number});
    sender_frame(federation, link, &out, 0);
    frame_out_deinit(&out);
}

static void finish(struct federation *federation, struct link *link, struct comparison *comparison) {
    struct selection joins = {0};
    group_marked(link->peer, comparison->mark, &joins);
    enum group_result result = joins.failed ? GROUP_NO_MEMORY : send_wanted(federation, link, comparison, &joins);
    if (result == GROUP_OK) {
        uint32_t number = comparison->number;
        drop(federation, link, comparison);
        say_end(federation, link, number);
        if (link->state == LINK_UP) confirm(federation, link, &joins);
    } else {
        link_no_room(federation, link);
    }
    selection_deinit(&joins);
}

static void want(struct comparison *comparison, struct digest_item *item) {
    if (item->state != ITEM_HELD) return;
    item->state = ITEM_WANTED;
    comparison->wanted++;
}

static void want_all(struct comparison *comparison) {
    for (size_t i = 0; i < comparison->digest.count; i++)
        want(comparison, &comparison->digest.items[i]);
}

/* ---- what differs ---- */

/* Few items are offered one by one; of many the sums of their parts are asked for. */
static bool is_offered(const struct comparison *comparison, uint64_t node, size_t *first, size_t *count) {
    *count = digest_range(&comparison->digest, node, first);
    return *count <= DIGEST_LIST_MAX || digest_node_is_last(node);
}

/* False when memory is short. A node without items differs in nothing that the peer lacks. */
static bool add_node(struct comparison *comparison, uint64_t node) {
    size_t first;
    if (digest_range(&comparison->digest, node, &first) == 0) return true;
    if (comparison->count == comparison->capacity) {
        size_t capacity = comparison->capacity ? comparison->capacity * 2 : DIGEST_FAN;
        uint64_t *nodes = realloc(comparison->nodes, capacity * sizeof *nodes);
        if (!nodes) return false;
        comparison->nodes = nodes;
        comparison->capacity = capacity;
    }
    comparison->nodes[comparison->count++] = node;
    return true;
}

static bool add_different(struct comparison *comparison, uint64_t node, const uint8_t *theirs) {
    uint64_t ours[DIGEST_FAN];
    digest_sums(&comparison->digest, node, ours);
    for (unsigned i = 0; i < DIGEST_FAN; i++, theirs += DIGEST_NODE_SIZE) {
        if (ours[i] != digest_get(theirs) && !add_node(comparison, digest_child(node, i))) return false;
    }
    return true;
}

/* How many of the nodes that wait go into the next frame, and what it will hold of each kind. */
static size_t next_frame(const struct comparison *comparison, size_t *asked, size_t *offered) {
    size_t at = comparison->sent, first, count;
    for (*asked = *offered = 0; at < comparison->count && *asked < STOCK_NODES_MAX; at++) {
        if (!is_offered(comparison, comparison->nodes[at], &first, &count))
            ++*asked;
        else if (*offered > 0 && (*offered + count) * DIGEST_ITEM_SIZE > COMPARE_FRAME_BYTES)
            break;
        else
            *offered += count;
    }
    return at - comparison->sent;
}

static void write_nodes(const struct comparison *comparison, size_t count, uint8_t *nodes, uint8_t *items) {
    for (size_t i = 0; i < count; i++) {
        uint64_t node = comparison->nodes[comparison->sent + i];
        size_t first, item_count;
        bool offered = is_offered(comparison, node, &first, &item_count);
        if (!offered) nodes = digest_put(nodes, node);
        for (size_t item = first; offered && item < first + item_count; item++)
            items = digest_put_item(items, &comparison->digest.items[item]);
    }
}

static bool send_frame(struct federation *federation, struct link *link, struct comparison *comparison) {
    size_t asked, offered, count = next_frame(comparison, &asked, &offered);
    size_t nodes_size = asked * DIGEST_NODE_SIZE, items_size = offered * DIGEST_ITEM_SIZE;
    uint8_t *bytes = malloc(nodes_size + items_size);
    if (!bytes) return false;
    write_nodes(comparison, count, bytes, bytes + nodes_size);
    const struct frame_digests said = {
        .number = comparison->number, .nodes = {bytes, nodes_size}, .items = {bytes + nodes_size, items_size}};
    comparison->frames[comparison->frame_count++] = count;
    link->compare_frames++;
    comparison->sent += count;
    struct frame_out out = {0};
    frame_write_digests(&out, FRAME_COMPARE, &said);
    free(bytes);
    sender_frame(federation, link, &out, 0);
    frame_out_deinit(&out);
    return true;
}

static bool may_ask(const struct link *link, const struct comparison *comparison) {
    return comparison->sent < comparison->count && comparison->frame_count < COMPARISON_FRAMES &&
           link->compare_frames < COMPARE_FRAMES_MAX;
}

/* Asks on, or, once all is known or memory is short, sends what is wanted. */
static void go_on(struct federation *federation, struct link *link, struct comparison *comparison, bool possible) {
    while (possible && may_ask(link, comparison)) {
        possible = send_frame(federation, link, comparison);
        if (link->state != LINK_UP) return; /* and the comparison is gone */
    }
    if (!possible) want_all(comparison);
    if (!possible || comparison->answered == comparison->count) finish(federation, link, comparison);
}

/* ---- the beginning ---- */

void compare_holds(struct federation *federation, struct link *link, const struct frame_digests *said) {
    if (said->sums.size > DIGEST_SUMS_SIZE || said->items.size > (size_t)DIGEST_LIST_MAX * DIGEST_ITEM_SIZE) {
        link_malformed(federation, link, "holds more than may be said at once");
        return;
    }
    free(link->told);
    link->told = malloc(sizeof *link->told + said->sums.size + said->items.size);
    if (!link->told) {
        say_end(federation, link, said->number); /* it gets all of it */
        return;
    }
    *link->told = (struct told){.number = said->number,
                                .expected = said->expected,
                                .sums_size = said->sums.size,
                                .items_size = said->items.size};
    if (said->sums.size > 0) memcpy(link->told->bytes, said->sums.bytes, said->sums.size);
    if (said->items.size > 0) memcpy(link->told->bytes + said->sums.size, said->items.bytes, said->items.size);
}

static bool on_retained(void *context, struct message *message) {
    struct sending *sending = context;
    struct federation *federation = sending->federation;
    struct digest *digest = &sending->comparison->digest;
    if (!is_for(federation, sending->peer, message)) return true;
    return digest->count < DIGEST_ITEMS_MAX - federation->digest_items &&
           digest_add(digest, message->topic, message->topic_size, &message->stamp, true);
}

static bool collect(struct federation *federation, struct peer *peer, struct comparison *comparison,
                    struct frame joins) {
    struct sending context = {.federation = federation, .peer = peer, .comparison = comparison};
    struct selection selection = {0};
    const char *filter;
    size_t size;
    digest_init(&comparison->digest, peer->stream);
    while (frame_next_name(&joins, &filter, &size))
        selection_add(&selection, filter, size);
    bool all = selection_walk(&selection, federation->retained, federation->now_ms, on_retained, &context);
    selection_deinit(&selection);
    if (!all) {
        digest_deinit(&comparison->digest);
        return false;
    }
    digest_settle(&comparison->digest);
    federation->digest_items += comparison->digest.count;
    return true;
}

static bool is_needed(const struct peer *peer, struct frame joins) {
    const char *filter;
    size_t size;
    while (frame_next_name(&joins, &filter, &size))
        if (group_lacks(peer, filter, size)) return true;
    return false;
}

uint32_t compare_new(struct federation *federation, struct link *link, const struct frame *joins) {
    struct told *told = link->told;
    struct comparison *comparison = NULL;
    if (!told) return 0;
    link->told = NULL;
    if (link->comparison_count < COMPARISONS_MAX && !by_number(link, told->number) && is_needed(link->peer, *joins))
        comparison = calloc(1, sizeof *comparison);
    if (!comparison || !collect(federation, link->peer, comparison, *joins)) {
        say_end(federation, link, told->number);
        free(comparison);
        free(told);
        return 0;
    }
    comparison->told = told;
    comparison->number = told->number;
    if (++federation->comparison_marks == 0) federation->comparison_marks = 1;
    comparison->mark = federation->comparison_marks;
    DL_APPEND(link->comparisons, comparison);
    link->comparison_count++;
    return comparison->mark;
}

/* What waits for the peer, or may have reached it already, need not go out twice, even if it is acknowledged by the
 * time the peer says that it lacks it. */
static void strike_sent(const struct peer *peer, struct comparison *comparison) {
    const struct digest *digest = &comparison->digest;
    for (uint64_t sequence = peer->outbox.base; sequence < peer->outbox.end; sequence++) {
        const struct message *message = outbox_entry(&peer->outbox, sequence)->message;
        if (!message || !message->retain) continue;
        struct digest_item *item = digest_find(digest, digest_topic(digest, message->topic, message->topic_size));
        if (item && digest_item_is(item, &message->stamp)) item->state = ITEM_SENT;
    }
}

/* The peer has said all that it holds. */
static void want_missing(struct comparison *comparison, const uint8_t *items, size_t size) {
    want_all(comparison);
    for (size_t i = 0; i < size; i += DIGEST_ITEM_SIZE) {
        struct digest_item held = digest_get_item(items + i), *item = digest_find(&comparison->digest, held.topic);
        if (!item || item->state != ITEM_WANTED || !digest_item_has(&held, item->wall_ms, item->count)) continue;
        item->state = ITEM_HELD;
        comparison->wanted--;
    }
}

void compare_begin(struct federation *federation, struct link *link, uint32_t mark) {
    struct comparison *comparison = by_mark(link, mark);
    struct selection joins = {0};
    group_marked(link->peer, mark, &joins);
    comparison->open = (uint32_t)joins.count;
    bool possible = !joins.failed;
    selection_deinit(&joins);
    if (possible && comparison->open == 0) {
        drop(federation, link, comparison);
        return;
    }
    const struct told *told = comparison->told;
    /* What it has acknowledged since it said so, it may hold by now. */
    bool timely = link->peer->outbox.base <= told->expected;
    strike_sent(link->peer, comparison);
    if (timely && told->items_size > 0)
        want_missing(comparison, told->bytes + told->sums_size, told->items_size);
    else if (timely && told->sums_size > 0)
        possible = possible && add_different(comparison, DIGEST_ROOT, told->bytes);
    else
        possible = possible && add_node(comparison, DIGEST_ROOT);
    go_on(federation, link, comparison, possible);
}

/* ---- answers ---- */

void compare_go_on(struct federation *federation, struct link *link) {
    struct comparison *comparison, *next;
    DL_FOREACH_SAFE(link->comparisons, comparison, next) {
        if (link->compare_frames >= COMPARE_FRAMES_MAX) return;
        if (may_ask(link, comparison)) go_on(federation, link, comparison, true);
        if (link->state != LINK_UP) return;
    }
}

/* Takes the answer to one frame. False if it is none. */
static bool take_answer(struct link *link, struct comparison *comparison, const struct frame_digests *answer,
                        bool *possible) {
    size_t end = comparison->answered + comparison->frames[0], first, count, at_sum = 0, at_bit = 0;
    for (size_t node = comparison->answered; node < end; node++) {
        bool offered = is_offered(comparison, comparison->nodes[node], &first, &count);
        if (offered ? (at_bit + count + 7) / 8 > answer->wanted.size : at_sum == answer->sums.size) return false;
        if (!offered) {
            *possible = *possible && add_different(comparison, comparison->nodes[node], answer->sums.bytes + at_sum);
            at_sum += DIGEST_SUMS_SIZE;
            continue;
        }
        for (size_t item = first; item < first + count; item++, at_bit++)
            if (answer->wanted.bytes[at_bit / 8] & 0x80 >> at_bit % 8)
                want(comparison, &comparison->digest.items[item]);
    }
    comparison->answered = end;
    comparison->frame_count--;
    link->compare_frames--;
    memmove(comparison->frames, comparison->frames + 1, comparison->frame_count * sizeof comparison->frames[0]);
    return at_sum == answer->sums.size && (at_bit + 7) / 8 == answer->wanted.size;
}

void compare_answered(struct federation *federation, struct link *link, const struct frame_digests *answer) {
    struct comparison *comparison = by_number(link, answer->number);
    bool possible = answer->sums.size > 0 || answer->wanted.size > 0;
    if (!comparison) return; /* its joins have ended, or it could not go on */
    if (comparison->frame_count == 0 || (possible && !take_answer(link, comparison, answer, &possible))) {
        link_malformed(federation, link, "answers what it was not asked");
        return;
    }
    go_on(federation, link, comparison, possible);
    if (link->state == LINK_UP) compare_go_on(federation, link);
}

void compare_left(struct federation *federation, struct link *link, uint32_t mark) {
    struct comparison *comparison = link ? by_mark(link, mark) : NULL;
    if (comparison && --comparison->open == 0) drop(federation, link, comparison);
}

void compare_sent(struct link *link, const struct message *message) {
    struct comparison *comparison;
    if (!link) return;
    DL_FOREACH(link->comparisons, comparison) {
        const struct digest *digest = &comparison->digest;
        struct digest_item *item = digest_find(digest, digest_topic(digest, message->topic, message->topic_size));
        if (item && digest_item_is(item, &message->stamp)) item->state = ITEM_SENT;
    }
}
