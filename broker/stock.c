#include "broker/stock.h"

#include "broker/digest.h"
#include "broker/interest.h"
#include "broker/selection.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Of one frame of joins. */
struct stock {
    struct stock *prev, *next;
    uint32_t number;
    uint32_t open; /* joins that are not answered */
    size_t own;    /* items that are the peer's, of all those below */
    bool asked;    /* and so complete; not looked for again */
    struct digest digest;
};

struct look {
    const struct federation *federation;
    const struct peer *peer;
    struct stock *stock;
    size_t room;
    bool failed;
};

static struct stock *find(const struct link *link, uint32_t number) {
    struct stock *stock;
    DL_FOREACH(link->stocks, stock) {
        if (stock->number == number) return stock;
    }
    return NULL;
}

static void forget_items(struct federation *federation, struct stock *stock) {
    federation->digest_items -= stock->digest.count;
    digest_deinit(&stock->digest);
    stock->own = 0;
}

static void drop(struct federation *federation, struct link *link, struct stock *stock) {
    DL_DELETE(link->stocks, stock);
    link->stock_count--;
    forget_items(federation, stock);
    free(stock);
}

/* What another broker's message has in the way of the peer's: up to this stamp the peer's are not wanted, as the higher
 * id decides between two of the same time and count. False if all are. */
static bool in_the_way(const struct stamp *held, const struct peer *peer, struct stamp *below) {
    *below = *held;
    memcpy(below->origin, peer->id.bytes, sizeof below->origin);
    if (stamp_compare(held, below) >= 0) return true;
    if (below->count == 0 && below->wall_ms-- == 0) return false;
    below->count--;
    return true;
}

static bool on_retained(void *context, struct message *message) {
    struct look *look = context;
    struct stock *stock = look->stock;
    struct stamp stamp;
    bool own = memcmp(message->stamp.origin, look->peer->id.bytes, sizeof message->stamp.origin) == 0;
    if (!in_the_way(&message->stamp, look->peer, &stamp)) return true;
    if (stock->digest.count == look->room ||
        !digest_add(&stock->digest, message->topic, message->topic_size, &stamp, own)) {
        look->failed = true;
        return false;
    }
    stock->own += own;
    return true;
}

/* At a glance, or at all. False if that was not enough, or there is no room for it. */
static bool collect(struct federation *federation, const struct peer *peer, struct stock *stock,
                    const struct selection *selection, bool glance) {
    struct look look = {
        .federation = federation, .peer = peer, .stock = stock, .room = DIGEST_ITEMS_MAX - federation->digest_items};
    bool all =
        glance ? selection_glance(selection, federation->retained, federation->now_ms, STOCK_GLANCE, on_retained, &look)
               : selection_walk(selection, federation->retained, federation->now_ms, on_retained, &look);
    if (!all || look.failed) {
        digest_deinit(&stock->digest);
        stock->own = 0;
        return false;
    }
    digest_settle(&stock->digest);
    federation->digest_items += stock->digest.count;
    return true;
}

/* ---- with the joins ---- */

static struct stock *stock_new(struct link *link, uint32_t number) {
    struct stock *stock = link->stock_count < STOCK_MAX ? calloc(1, sizeof *stock) : NULL;
    if (!stock) return NULL;
    stock->number = number;
    digest_init(&stock->digest, link->peer->taken.stream);
    DL_APPEND(link->stocks, stock);
    link->stock_count++;
    return stock;
}

/* All of it, if that is little, or the sums. */
static void say(struct federation *federation, struct link *link, const struct stock *stock) {
    uint8_t bytes[DIGEST_LIST_MAX * DIGEST_ITEM_SIZE > DIGEST_SUMS_SIZE ? DIGEST_LIST_MAX * DIGEST_ITEM_SIZE
                                                                        : DIGEST_SUMS_SIZE];
    uint64_t sums[DIGEST_FAN];
    uint8_t *end = bytes;
    const struct digest *digest = &stock->digest;
    struct frame_digests said = {.number = stock->number, .expected = link->peer->taken.expected};
    if (digest->count <= DIGEST_LIST_MAX) {
        for (size_t i = 0; i < digest->count; i++)
            end = digest_put_item(end, &digest->items[i]);
        said.items = (struct frame_part){bytes, (size_t)(end - bytes)};
    } else {
        digest_sums(digest, DIGEST_ROOT, sums);
        for (unsigned i = 0; i < DIGEST_FAN; i++)
            end = digest_put(end, sums[i]);
        said.sums = (struct frame_part){bytes, (size_t)(end - bytes)};
    }
    struct frame_out out = {0};
    frame_write_digests(&out, FRAME_HOLDS, &said);
    sender_frame(federation, link, &out, 0);
    frame_out_deinit(&out);
}

void stock_tell(struct federation *federation, struct link *link, uint32_t number) {
    struct selection selection = {0};
    struct frame joins;
    const char *filter;
    size_t size;
    frame_end_items(&link->scratch);
    if (link->scratch.failed || frame_read(link->scratch.bytes, link->scratch.size, &joins) != FRAME_OK) return;
    struct stock *stock = stock_new(link, number);
    if (!stock) return;
    stock->open = joins.item_count;
    while (frame_next_name(&joins, &filter, &size))
        selection_add(&selection, filter, size);
    bool known = collect(federation, link->peer, stock, &selection, true);
    selection_deinit(&selection);
    if (known && stock->own == 0) {
        drop(federation, link, stock);
        return;
    }
    say(federation, link, stock);
    if (link->state == LINK_UP) forget_items(federation, stock);
}

void stock_answered(struct federation *federation, struct link *link, uint32_t number) {
    struct stock *stock = link ? find(link, number) : NULL;
    if (stock && --stock->open == 0) drop(federation, link, stock);
}

/* ---- when it is asked ---- */

/* What came since the joins were said may be told now, as it need not come again. */
static void look_at_all(struct federation *federation, struct link *link, struct stock *stock) {
    struct selection selection = {0};
    stock->asked = true;
    forget_items(federation, stock);
    interest_told(federation, link->peer, stock->number, &selection);
    collect(federation, link->peer, stock, &selection, false);
    selection_deinit(&selection);
}

static void answer_sums(const struct stock *stock, const struct frame_part *nodes, uint8_t *at) {
    uint64_t sums[DIGEST_FAN];
    for (size_t i = 0; i < nodes->size; i += DIGEST_NODE_SIZE) {
        digest_sums(&stock->digest, digest_get(nodes->bytes + i), sums);
        for (unsigned child = 0; child < DIGEST_FAN; child++)
            at = digest_put(at, sums[child]);
    }
}

static void answer_wanted(const struct stock *stock, const struct frame_part *items, uint8_t *wanted) {
    for (size_t i = 0; i < items->size / DIGEST_ITEM_SIZE; i++) {
        struct digest_item offered = digest_get_item(items->bytes + i * DIGEST_ITEM_SIZE);
        const struct digest_item *held = digest_find(&stock->digest, offered.topic);
        if (!held || !digest_item_has(held, offered.wall_ms, offered.count)) wanted[i / 8] |= (uint8_t)(0x80 >> i % 8);
    }
}

static bool nodes_valid(const struct frame_part *nodes) {
    if (nodes->size > STOCK_NODES_MAX * DIGEST_NODE_SIZE) return false;
    for (size_t i = 0; i < nodes->size; i += DIGEST_NODE_SIZE) {
        uint64_t node = digest_get(nodes->bytes + i);
        if (!digest_node_valid(node) || digest_node_is_last(node)) return false;
    }
    return true;
}

bool stock_is_compared(const struct link *link, uint32_t number) {
    return link->compares && find(link, number);
}

void stock_compare(struct federation *federation, struct link *link, const struct frame_digests *asked) {
    struct stock *stock = find(link, asked->number);
    link->compares = true;
    if (!nodes_valid(&asked->nodes)) {
        link_malformed(federation, link, "compares what cannot be compared");
        return;
    }
    if (!stock) return; /* nobody wants it any more */
    if (asked->nodes.size == 0 && asked->items.size == 0) {
        drop(federation, link, stock);
        return;
    }
    if (!stock->asked) look_at_all(federation, link, stock);
    size_t sums_size = asked->nodes.size / DIGEST_NODE_SIZE * DIGEST_SUMS_SIZE;
    size_t wanted_size = (asked->items.size / DIGEST_ITEM_SIZE + 7) / 8;
    /* With nothing in it, the answer says that all is wanted. */
    uint8_t *bytes = stock->own > 0 || sums_size == 0 ? calloc(1, sums_size + wanted_size + 1) : NULL;
    struct frame_digests answer = {.number = stock->number};
    if (bytes) {
        answer.sums = (struct frame_part){bytes, sums_size};
        answer.wanted = (struct frame_part){bytes + sums_size, wanted_size};
        answer_sums(stock, &asked->nodes, bytes);
        answer_wanted(stock, &asked->items, bytes + sums_size);
    }
    struct frame_out out = {0};
    frame_write_digests(&out, FRAME_COMPARED, &answer);
    sender_frame(federation, link, &out, 0);
    frame_out_deinit(&out);
    free(bytes);
}

void stock_end(struct federation *federation, struct link *link) {
    while (link->stocks)
        drop(federation, link, link->stocks);
}
