/* Checks of what brokers know of each other. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/checks.h"

#define ROW_TEXT_MAX 192u

struct rows {
    const struct world *world;
    char (*texts)[ROW_TEXT_MAX];
    size_t count, room;
    bool own_only, of_hostile; /* of all honest owners, or of the hostile ones */
};

static struct member_id id_of(const struct world_node *node) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    struct member_id id;
    auth_key_thumbprint(node->key, thumbprint);
    memcpy(id.bytes, thumbprint, sizeof id.bytes);
    return id;
}

static bool is_hostile(const struct world *world, const struct member_id *id) {
    for (size_t i = 0; i < world->node_count; i++) {
        struct member_id its = id_of(world->nodes[i]);
        if (world->nodes[i]->hostility != NULL && memcmp(&its, id, sizeof its) == 0) return true;
    }
    return false;
}

static bool on_row(void *context, const struct member_info *owner, enum gossip_row_kind kind, const char *filter,
                   size_t size) {
    struct rows *rows = context;
    if ((rows->own_only && !owner->self) || is_hostile(rows->world, &owner->id) != rows->of_hostile) return true;
    if (rows->count == rows->room) {
        rows->room = rows->room == 0 ? 64 : rows->room * 2;
        rows->texts = realloc(rows->texts, rows->room * sizeof *rows->texts);
        assert(rows->texts != NULL);
    }
    snprintf(rows->texts[rows->count++], ROW_TEXT_MAX, "%s of %s: %.*s", kind == GOSSIP_NEWPUB ? "newpub" : "newsub",
             owner->name, (int)size, filter);
    return true;
}

static int compare(const void *a, const void *b) {
    return strcmp(a, b);
}

static void collect(struct rows *rows, const struct world_node *node) {
    gossip_walk_rows(node_gossip(node->node), world_node_now_ms(node), on_row, rows);
}

static void sort(struct rows *rows) {
    if (rows->count > 0) qsort(rows->texts, rows->count, sizeof *rows->texts, compare);
}

static bool is_live(const struct world_node *node) {
    return node->node != NULL && !node->leaving;
}

/* What a hostile one shows, and is shown of it, is its own affair. */
static bool is_judged(const struct world_node *node) {
    return is_live(node) && node->hostility == NULL;
}

static bool same_rows(const struct rows *truth, const struct rows *view, const char *name, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < truth->count || i < view->count; i++) {
        int order = i == view->count ? -1 : i == truth->count ? 1 : strcmp(truth->texts[i], view->texts[i]);
        if (order == 0) continue;
        snprintf(why, CHECKS_WHY, "%s %s %s", name, order < 0 ? "does not show" : "still shows",
                 order < 0 ? truth->texts[i] : view->texts[i]);
        return false;
    }
    return true;
}

static bool rows_agree(const struct world *world, char why[CHECKS_WHY]) {
    struct rows truth = {.world = world, .own_only = true};
    bool good = true;
    for (size_t i = 0; i < world->node_count; i++)
        if (is_judged(world->nodes[i])) collect(&truth, world->nodes[i]);
    sort(&truth);
    for (size_t i = 0; i < world->node_count && good; i++) {
        struct rows view = {.world = world};
        if (!is_judged(world->nodes[i])) continue;
        collect(&view, world->nodes[i]);
        sort(&view);
        good = same_rows(&truth, &view, world->nodes[i]->name, why);
        free(view.texts);
    }
    free(truth.texts);
    return good;
}

static const char *state_name(enum member_state state) {
    static const char *const names[] = {"unverified", "alive", "suspect", "down", "left"};
    return names[state];
}

static bool sees(const struct world_node *viewer, const struct world_node *node, char why[CHECKS_WHY]) {
    struct member_id id = id_of(node);
    struct member_info info;
    bool known = gossip_member_find(node_gossip(viewer->node), world_node_now_ms(viewer), &id, &info);
    bool live = is_live(node), alive = known && info.state == MEMBER_ALIVE;
    if (live == alive && (!live || info.epoch == gossip_epoch(node_gossip(node->node)))) return true;
    snprintf(why, CHECKS_WHY, "%s sees %s %s (epoch %" PRIu64 "), which is %s", viewer->name, node->name,
             known ? state_name(info.state) : "not at all", known ? info.epoch : 0, live ? "alive" : "not there");
    return false;
}

static bool hashes_agree(const struct world_node *first, const struct world_node *node, char why[CHECKS_WHY]) {
    if (gossip_table_hash(node_gossip(first->node)) == gossip_table_hash(node_gossip(node->node))) return true;
    snprintf(why, CHECKS_WHY, "the table hashes of %s and %s differ", first->name, node->name);
    return false;
}

/* Equal hashes of two that were told different things would be a fault of the hash. */
static bool tales_agree(const struct world *world, const struct world_node *first, const struct world_node *node,
                        char why[CHECKS_WHY]) {
    struct rows one = {.world = world, .of_hostile = true}, other = one;
    collect(&one, first);
    collect(&other, node);
    sort(&one);
    sort(&other);
    bool good = same_rows(&one, &other, node->name, why);
    free(one.texts);
    free(other.texts);
    return good;
}

bool checks_tables_agree(const struct world *world, char why[CHECKS_WHY]) {
    const struct world_node *first = NULL;
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *node = world->nodes[i];
        if (!is_judged(node)) continue;
        if (first == NULL) first = node;
        if (!tales_agree(world, first, node, why) || !hashes_agree(first, node, why)) return false;
    }
    return true;
}

bool checks_registry_agrees(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *viewer = world->nodes[i];
        if (!is_judged(viewer)) continue;
        for (size_t j = 0; j < world->node_count; j++)
            if (j != i && world->nodes[j]->hostility == NULL && !sees(viewer, world->nodes[j], why)) return false;
    }
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i]->hostility != NULL) return rows_agree(world, why);
    return rows_agree(world, why) && checks_tables_agree(world, why);
}

void checks_trace_members(struct world *world) {
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *node = world->nodes[i];
        struct member_info info;
        if (node->node == NULL) continue;
        for (size_t at = 0; gossip_member_at(node_gossip(node->node), world_node_now_ms(node), at, &info); at++)
            trace_line(&world->trace, heap_now_us(world->heap), node->name,
                       "holds %s%s: %s, epoch %" PRIu64 ", sequence %" PRIu64 ", %u rows", info.name,
                       info.self ? " (itself)" : "", state_name(info.state), info.epoch, info.sequence, info.rows);
    }
}

bool checks_calm(const struct world *world, uint64_t ticks_per_s_max, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *node = world->nodes[i];
        if (node->node == NULL) continue;
        uint64_t seconds = (heap_now_us(world->heap) - node->started_us) / (1000 * HEAP_MS) + 1;
        if (node->ticks <= seconds * ticks_per_s_max) continue;
        snprintf(why, CHECKS_WHY,
                 "%s ticked %" PRIu64 " times in %" PRIu64 " s, %" PRIu64
                 " times with its next deadline not in the future",
                 node->name, node->ticks, seconds, node->spins);
        return false;
    }
    return true;
}

struct link_info checks_links(const struct world *world, size_t node) {
    struct link_info sum = {0}, link;
    if (world->nodes[node]->node == NULL) return sum;
    for (size_t i = 0; broker_link_at(node_broker(world->nodes[node]->node), i, &link); i++) {
        sum.joined_here += link.joined_here;
        sum.joined_there += link.joined_there;
        sum.publications_sent += link.publications_sent;
        sum.publications_received += link.publications_received;
        sum.frames_sent += link.frames_sent;
        sum.frames_received += link.frames_received;
        sum.bytes_sent += link.bytes_sent;
        sum.bytes_received += link.bytes_received;
        sum.invites_sent += link.invites_sent;
        sum.invites_received += link.invites_received;
        sum.repeated += link.repeated;
        sum.lost += link.lost;
        sum.reordered += link.reordered;
        sum.dropped += link.dropped;
        sum.outbox_messages += link.outbox_messages;
    }
    return sum;
}
