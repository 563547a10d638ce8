/* An owner that tells each of the others another thing, of its log, its checkpoints and its heads, in any order, and
 * does not say what is true when it is asked: those who can reach one another hold the same of it in the end. */
#include "gossip_court.h"

#include "gossip_registry_fixture.h"

#define TALES 3
#define STEPS 60
#define SEEDS 500
#define AGREED_MS 30000
#define BYTES_PER_S_MAX 20000

/* One of the stories: a log of its own from the beginning. */
struct tale {
    struct registry *registry;
    struct registry_rules rules;
    struct {
        uint8_t bytes[MESSAGE_BLOB_MAX];
        size_t size;
    } entries[STEPS];
    struct checkpoint *told[STEPS]; /* that a head has named */
    size_t told_count;
};

struct teller {
    struct court court;
    struct tale tales[TALES];
    uint64_t dice;
    uint64_t newest; /* incarnation */
    bool gives;      /* what its heads name, when it is asked */
};

static uint32_t roll(struct teller *teller, uint32_t bound) {
    return fixture_roll(&teller->dice, bound);
}

static void give_chunk(struct traitor *traitor, int by, const struct message *message, void *context) {
    const struct teller *teller = context;
    for (size_t i = 0; i < TALES; i++)
        for (size_t k = 0; k < teller->tales[i].told_count; k++) {
            const struct checkpoint *told = teller->tales[i].told[k];
            struct checkpoint_chunk chunk;
            if (told->sequence != message->version.sequence ||
                message->number >= checkpoint_chunks(rowset_encoded_size(&told->rows)))
                continue;
            checkpoint_read(told, message->number, &chunk);
            struct message answer = *message;
            answer.kind = MESSAGE_CHUNK;
            answer.bytes = chunk.bytes;
            answer.size = chunk.size;
            answer.proof = chunk.proof;
            answer.proof_size = chunk.proof_size;
            traitor_say_one(traitor, by, answer);
        }
}

static void teller_new(struct teller *teller, uint64_t seed) {
    memset(teller, 0, sizeof *teller);
    teller->court = court_new(seed);
    teller->dice = seed * 0x9e3779b97f4a7c15u;
    teller->newest = 1;
    teller->gives = roll(teller, 2) == 0;
    teller->court.traitor->context = teller;
    if (teller->gives) teller->court.traitor->asked_chunk = give_chunk;
    for (size_t i = 0; i < TALES; i++) {
        struct fixture_owner owner;
        fixture_init(&owner);
        teller->tales[i].rules = owner.rules;
        teller->tales[i].rules.crypto.context = &teller->court.net->nodes[HONEST].identity;
    }
}

static void teller_free(struct teller *teller) {
    for (size_t i = 0; i < TALES; i++) {
        for (size_t k = 0; k < teller->tales[i].told_count; k++)
            checkpoint_unref(teller->tales[i].told[k]);
        registry_unref(teller->tales[i].registry);
    }
    traitor_free(teller->court.traitor);
    net_free(teller->court.net);
}

/* To some, and not to others. */
static void say_to_some(struct teller *teller, const struct message *message) {
    for (int to = 0; to < HONEST; to++)
        if (roll(teller, 3) == 0) traitor_say_one(teller->court.traitor, to, *message);
}

static void tell_entry(struct teller *teller, struct tale *tale, const char *filter) {
    uint64_t sequence = registry_sequence(tale->registry) + 1;
    uint8_t bytes[MESSAGE_BLOB_MAX];
    size_t size = traitor_entry(teller->court.traitor, HONEST, 1, sequence, filter, false, bytes);
    struct log_entry *entry = log_entry_new(sequence, bytes, size);
    assert_int_equal(registry_apply(&tale->registry, &tale->rules, entry, &fixture_nobody), REGISTRY_OK);
    log_entry_unref(entry);
    memcpy(tale->entries[sequence].bytes, bytes, size);
    tale->entries[sequence].size = size;
}

/* Any entry of this tale, so that they come in any order. */
static void say_entries(struct teller *teller, const struct tale *tale) {
    for (uint64_t sequence = 1; sequence <= registry_sequence(tale->registry); sequence++)
        say_to_some(teller, &(struct message){.kind = MESSAGE_ENTRY,
                                              .bytes = tale->entries[sequence].bytes,
                                              .size = tale->entries[sequence].size});
}

static void tell_head(struct teller *teller, struct tale *tale, bool leaving) {
    struct traitor *traitor = teller->court.traitor;
    uint8_t bytes[HEAD_SIZE_MAX];
    struct head head = traitor_own_head(traitor);

    teller->newest += roll(teller, 3) != 0;
    head.incarnation = teller->newest;
    head.leaving = leaving;
    head.cloned = roll(teller, 4) == 0;
    if (tale->registry && roll(teller, 2) == 0) {
        assert_true(registry_checkpoint(&tale->registry, &tale->rules, 1));
        tale->told[tale->told_count++] = tale->registry->base;
        tale->registry->base->refs++;
    }
    head.sequence = registry_sequence(tale->registry);
    checkpoint_name(tale->registry ? tale->registry->base : NULL, &tale->rules.crypto, &head);
    const struct registry *other = teller->tales[roll(teller, TALES)].registry;
    if (roll(teller, 4) == 0 && other && other->base) { /* not the rows that its log makes */
        memcpy(head.checkpoint_root, other->base->root, sizeof head.checkpoint_root);
        head.checkpoint_size = rowset_encoded_size(&other->base->rows);
    }
    size_t size = traitor_head(traitor, head, bytes);
    say_to_some(teller, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
}

static void cut(struct teller *teller, bool apart) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++)
            teller->court.net->cut[i][j] = apart && i % 2 != j % 2;
}

static void tell_tales(struct teller *teller) {
    uint32_t likeness = roll(teller, 4);
    bool leaves = roll(teller, 4) == 0;
    int steps = roll(teller, 3) == 0 ? STEPS - 1 : STEPS / 3;
    teller->court.net->loss_percent = roll(teller, 3) == 0 ? 20 : 0;
    for (int step = 0; step < steps; step++) {
        struct tale *tale = &teller->tales[roll(teller, TALES)];
        char filter[32];
        snprintf(filter, sizeof filter, "tale/%d", step);
        bool same = roll(teller, 4) < likeness;
        for (size_t i = 0; i < TALES; i++) {
            if (!same) snprintf(filter, sizeof filter, "tale/%d/%zu", step, i);
            tell_entry(teller, &teller->tales[i], filter);
        }
        if (roll(teller, 2) == 0) say_entries(teller, tale);
        if (roll(teller, 3) == 0) tell_head(teller, tale, leaves && roll(teller, 3) == 0);
        if (roll(teller, 4) == 0) cut(teller, roll(teller, 2) == 0);
        net_run(teller->court.net, roll(teller, 100));
    }
    cut(teller, false);
}

static bool agree(struct net *net, int one, int other) {
    struct member_id id = net_id(net, HONEST);
    const struct member *a = members_find(net->nodes[one].gossip, &id),
                        *b = members_find(net->nodes[other].gossip, &id);
    if (member_is_visible(a) != member_is_visible(b)) return false;
    if (!member_is_visible(a)) return true;
    return a->incarnation == b->incarnation && a->head_size == b->head_size &&
           memcmp(a->head, b->head, a->head_size - GOSSIP_SIGNATURE_SIZE) == 0 &&
           registry_sequence(a->registry) == registry_sequence(b->registry) &&
           fixture_same_rows(registry_rows(a->registry), registry_rows(b->registry));
}

static bool all_agree(struct net *net) {
    for (int i = 1; i < HONEST; i++)
        if (!agree(net, 0, i)) return false;
    return net_tables_equal(net);
}

static void show(struct net *net, uint64_t seed) {
    struct member_id id = net_id(net, HONEST);
    for (int i = 0; i < HONEST; i++) {
        const struct member *held = members_find(net->nodes[i].gossip, &id);
        print_message("seed %d, node %d: state %d, incarnation %d, base %d, sequence %d, rows %zu\n", (int)seed, i,
                      held->state, (int)held->incarnation, (int)registry_base_sequence(held->registry),
                      (int)registry_sequence(held->registry), registry_rows(held->registry)->count);
    }
}

/* At once, and for good. */
static bool end_in_agreement(struct teller *teller) {
    struct net *net = teller->court.net;
    uint64_t until = net->now_ms + AGREED_MS;
    if (!net_until(net, all_agree, AGREED_MS)) return false;
    net_run(net, until - net->now_ms);
    for (int i = 0; i < 20; i++) {
        net_run(net, 500);
        if (!all_agree(net)) return false;
    }
    return true;
}

static void all_hold_the_same_in_the_end(void **state) {
    (void)state;
    int failed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct teller teller;
        teller_new(&teller, seed);
        tell_tales(&teller);
        if (!end_in_agreement(&teller)) {
            show(teller.court.net, seed);
            failed++;
        }
        teller_free(&teller);
    }
    assert_int_equal(failed, 0);
}

/* New pairs of one sequence, to all, ten times a second: each is believed, told on and undone with measure. */
static void pairs_without_end_cost_a_measure(void **state) {
    (void)state;
    struct court court = court_new(7);
    struct net *net = court.net;
    uint64_t before = SUM(net, bytes_sent);
    for (int round = 0; round < 300; round++) {
        for (int to = 0; to < HONEST; to++) {
            uint8_t bytes[MESSAGE_BLOB_MAX];
            char filter[32];
            snprintf(filter, sizeof filter, "tale/%d/%d", round, to);
            size_t size = traitor_entry(court.traitor, HONEST, 1, 1 + (uint64_t)round % 60, filter, false, bytes);
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        }
        net_run(net, 100);
    }
    uint64_t per_s = (SUM(net, bytes_sent) - before) / HONEST / 30;
    print_message("%llu bytes a second of each\n", (unsigned long long)per_s);
    assert_true(per_s < BYTES_PER_S_MAX);
    assert_true(net_until(net, all_agree, AGREED_MS));
    court_free(&court);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hold_the_same_in_the_end),
        cmocka_unit_test(pairs_without_end_cost_a_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
