/* What a replica makes of an owner's log and heads. Its checkpoints, chunk by chunk: test_gossip_transfer.c. */
#include "gossip_registry_fixture.h"

static uint64_t dice = 0x9876543210fedcbau;

static bool has(const struct fixture_replica *replica, const char *filter) {
    return rowset_has(registry_rows(replica->registry), GOSSIP_NEWSUB, filter, strlen(filter));
}

static void entries_apply_in_order_and_once(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    fixture_say(&owner, "+a");
    fixture_say(&owner, "+b");
    fixture_say(&owner, "-a");
    assert_int_equal(fixture_offer(&replica, &owner, 1), REGISTRY_OK);
    assert_int_equal(fixture_offer(&replica, &owner, 1), REGISTRY_REPEATED);
    assert_int_equal(fixture_offer(&replica, &owner, 3), REGISTRY_GAP);
    assert_true(has(&replica, "a")); /* the third waits: a mixture is never shown */
    assert_int_equal(fixture_offer(&replica, &owner, 2), REGISTRY_OK);
    assert_int_equal(replica.registry->at.sequence, 3);
    assert_false(has(&replica, "a"));
    assert_true(fixture_agrees(&replica, &owner));
    assert_null(replica.transfers.all);
    fixture_end(&replica);
    /* Nor by the registry itself, whoever asks. */
    struct registry *empty = NULL;
    assert_int_equal(registry_apply(&empty, &owner.rules, owner.registry->log[1], &fixture_nobody), REGISTRY_GAP);
    assert_null(empty);
    assert_int_equal(registry_apply(&owner.registry, &owner.rules, owner.registry->log[0], &fixture_nobody),
                     REGISTRY_REPEATED);
    registry_unref(owner.registry);
}

static void the_chain_leaves_the_signature_out(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    uint8_t bytes[MESSAGE_BLOB_MAX], a[8] = {0}, b[8] = {0};
    fixture_init(&owner);
    size_t size = fixture_entry(&owner, 1, "+x", bytes);
    entry_chain(bytes, size, &owner.rules.crypto, a);
    bytes[size - 1] ^= 1;
    entry_chain(bytes, size, &owner.rules.crypto, b);
    assert_memory_equal(a, b, 8);
    bytes[size - GOSSIP_SIGNATURE_SIZE - 1] ^= 1;
    memset(b, 0, 8);
    entry_chain(bytes, size, &owner.rules.crypto, b);
    assert_memory_not_equal(a, b, 8);
}

/* P11: a delete is forgotten when its owner says so, by a checkpoint above it, and by no clock. */
static void a_replica_folds_when_the_owner_does(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    for (int i = 0; i < 5; i++) {
        char op[24];
        snprintf(op, sizeof op, "+row/%d", i);
        fixture_say(&owner, op);
        fixture_offer(&replica, &owner, (uint64_t)i + 1);
    }
    fixture_checkpoint(&owner);
    assert_int_equal(replica.registry->log_count, 5);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_OK);
    assert_int_equal(replica.registry->log_count, 0);
    assert_int_equal(replica.registry->at.base_sequence, 5);
    assert_true(fixture_agrees(&replica, &owner));
    fixture_say(&owner, "-row/3");
    assert_int_equal(fixture_offer(&replica, &owner, 6), REGISTRY_OK);
    assert_false(has(&replica, "row/3"));
    fixture_end(&replica);
    registry_unref(owner.registry);
}

static void a_replica_that_is_ahead_folds_what_lies_below(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    fixture_say(&owner, "+a");
    fixture_say(&owner, "-a");
    fixture_say(&owner, "+b");
    fixture_checkpoint(&owner);
    struct registry *at_three = owner.registry;
    shared_ref(&at_three->shared);
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = fixture_head(&owner, &head, bytes);
    struct fixture_owner ahead;
    fixture_init(&ahead);
    const char *const ops[] = {"+a", "-a", "+b", "-b", "+c"};
    for (size_t i = 0; i < 5; i++) {
        fixture_say(&ahead, ops[i]);
        assert_int_equal(fixture_offer(&replica, &ahead, i + 1), REGISTRY_OK);
    }
    assert_int_equal(
        transfers_head(&replica.transfers, &replica.registry, &owner.rules, &head, bytes, size, &fixture_nobody),
        REGISTRY_OK);
    assert_int_equal(replica.registry->at.base_sequence, 3);
    assert_int_equal(replica.registry->log_count, 2);
    assert_true(fixture_same_rows(&replica.registry->base->rows, &at_three->rows));
    assert_true(has(&replica, "c") && !has(&replica, "b"));
    assert_memory_equal(replica.registry->at.chain, ahead.registry->at.chain, 8);
    registry_unref(at_three);
    fixture_end(&replica);
    registry_unref(owner.registry);
    registry_unref(ahead.registry);
}

/* The head names a checkpoint that the replica is below; then entries carry it there, and beyond. */
static void a_replica_folds_to_a_head_that_came_before_the_entries(void **unused) {
    (void)unused;
    for (int reversed = 0; reversed < 2; reversed++) {
        struct fixture_owner owner, log;
        struct fixture_replica replica = {0};
        fixture_init(&owner);
        fixture_init(&log);
        for (uint64_t i = 1; i <= 5; i++) {
            char op[16];
            snprintf(op, sizeof op, "+row/%d", (int)i);
            fixture_say(&log, op);
            if (i <= 3) fixture_say(&owner, op);
        }
        fixture_checkpoint(&owner);
        assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
        for (uint64_t i = 1; i <= 5; i++)
            fixture_offer(&replica, &log, reversed ? 6 - i : i);
        assert_int_equal(replica.registry->at.sequence, 5);
        assert_int_equal(replica.registry->at.base_sequence, 3);
        assert_int_equal(replica.registry->log_count, 2);
        assert_null(replica.transfers.all);
        fixture_end(&replica);
        registry_unref(owner.registry);
        registry_unref(log.registry);
    }
}

/* The owner wrote one row, the replica took three entries of which two are of another life; then the owner signs a
 * checkpoint at or below what the replica holds. */
static void a_replica_that_mixed_two_lives_takes_the_owners_checkpoint(void **unused) {
    (void)unused;
    for (uint64_t further = 0; further < 2; further++) {
        struct fixture_owner first_life, owner;
        struct fixture_replica replica = {0};
        fixture_init(&first_life);
        fixture_init(&owner);
        fixture_say(&first_life, "+old/1");
        fixture_say(&owner, "+new/1");
        for (uint64_t sequence = 1; sequence <= 2 + further; sequence++) {
            if (sequence > 1) {
                fixture_say(&first_life, "+both");
                fixture_say(&owner, "+both");
            }
            assert_int_equal(fixture_offer(&replica, sequence == 1 ? &first_life : &owner, sequence), REGISTRY_OK);
            if (sequence == 2) fixture_checkpoint(&owner);
        }
        assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
        assert_false(has(&replica, "old/1"));
        assert_int_equal(fixture_offer_chunk(&replica, &owner, 0), REGISTRY_OK);
        for (uint64_t sequence = replica.registry->at.sequence + 1; sequence <= owner.registry->at.sequence; sequence++)
            assert_int_equal(fixture_offer(&replica, &owner, sequence), REGISTRY_OK);
        assert_true(fixture_agrees(&replica, &owner));
        fixture_end(&replica);
        registry_unref(first_life.registry);
        registry_unref(owner.registry);
    }
}

/* The head was there first, and is not looked at again when it comes the next time: so it must not be lost when the
 * entries that came then prove to be of two lives. */
static void a_mixture_is_seen_however_often_it_comes_about(void **unused) {
    (void)unused;
    struct fixture_owner first_life, owner;
    struct fixture_replica replica = {0};
    fixture_init(&first_life);
    fixture_init(&owner);
    fixture_say(&first_life, "+old");
    fixture_say(&owner, "+new");
    fixture_say(&owner, "+both");
    fixture_checkpoint(&owner);
    struct fixture_owner log;
    fixture_init(&log);
    fixture_say(&log, "+new");
    fixture_say(&log, "+both");
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fixture_offer(&replica, &first_life, 1), REGISTRY_OK);
        assert_int_equal(fixture_offer(&replica, &log, 2), REGISTRY_OK);
        assert_null(replica.registry);
    }
    assert_int_equal(fixture_offer_chunk(&replica, &owner, 0), REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &owner));
    fixture_end(&replica);
    registry_unref(first_life.registry);
    registry_unref(owner.registry);
    registry_unref(log.registry);
}

static void an_owner_that_never_checkpoints_is_stopped_at_a_limit(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    uint8_t bytes[MESSAGE_BLOB_MAX];
    fixture_init(&owner);
    enum registry_result result = REGISTRY_OK;
    uint64_t sequence = 0;
    while (result == REGISTRY_OK && sequence < 10000) {
        char op[32];
        snprintf(op, sizeof op, "+more/%d", (int)sequence);
        size_t size = fixture_entry(&owner, ++sequence, op, bytes);
        result = fixture_offer_bytes(&replica, &owner.rules, bytes, size);
    }
    assert_int_equal(result, REGISTRY_LOG_FULL);
    assert_int_equal(replica.registry->log_count, 4 * fixture_limits.log_entries_max);
    fixture_end(&replica);
}

static void count_changes(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool active) {
    (void)kind, (void)filter, (void)size;
    int *balance = context;
    *balance += active ? 1 : -100;
}

static void what_comes_and_goes_within_one_entry_is_not_told(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    int balance = 0;
    const struct registry_watch watch = {count_changes, &balance};
    uint8_t bytes[MESSAGE_BLOB_MAX];
    struct wire_out body;
    fixture_init(&owner);
    wire_out_init(&body, bytes, ENTRY_BODY_MAX);
    wire_put_array(&body, 4 + 2 * 6);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, &fixture_id);
    wire_put_uint(&body, 1);
    wire_put_uint(&body, 1);
    static const struct {
        uint64_t code;
        const char *filter;
    } ops[] = {{2, "stays"}, {2, "passes"}, {2 | ENTRY_DELETE, "passes"}, {2, "stays"}, {2, "twice"}, {2, "twice"}};
    for (size_t i = 0; i < 6; i++) {
        wire_put_uint(&body, ops[i].code);
        wire_put_bytes(&body, ops[i].filter, strlen(ops[i].filter));
    }
    net_sign_as(owner.identity.public_key, bytes, body.size, bytes + body.size);
    struct entry entry;
    size_t size = body.size + GOSSIP_SIGNATURE_SIZE;
    assert_true(entry_read(bytes, size, &entry));
    assert_int_equal(transfers_entry(&replica.transfers, &replica.registry, &owner.rules, &entry, bytes, size, &watch),
                     REGISTRY_OK);
    assert_int_equal(balance, 2);
    assert_int_equal(replica.registry->rows.count, 2);
    fixture_end(&replica);
}

#define KEYS 6u

struct world {
    struct fixture_owner owner;
    uint8_t history[400]; /* what was said, by sequence: a bit for each key. The registry has no part in it */
    struct fixture_replica replicas[3];
    uint8_t told[3]; /* the same, as each was told of its rows */
};

static uint8_t bit_of(const char *filter) {
    return (uint8_t)(1u << (filter[2] - '0'));
}

static void note_told(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool active) {
    uint8_t *told = context, bit = bit_of(filter);
    assert_true(kind == GOSSIP_NEWSUB && size == 3);
    assert_int_equal(*told & bit, active ? 0 : bit); /* nothing is told twice */
    *told ^= bit;
}

static uint8_t shown_by(const struct registry *registry) {
    struct rowset_walk walk;
    struct rowset_row row;
    uint8_t shown = 0;
    for (rowset_begin(registry_rows(registry), &walk); rowset_next(&walk, &row);)
        shown |= bit_of(row.filter);
    return shown;
}

static void one_step(struct world *world) {
    struct registry *log = world->owner.registry;
    struct fixture_replica *replica = &world->replicas[fixture_roll(&dice, 3)];
    char op[16];
    if (fixture_roll(&dice, 4) == 0 && registry_sequence(log) < 399) {
        snprintf(op, sizeof op, "%ck/%u", fixture_roll(&dice, 3) ? '+' : '-', fixture_roll(&dice, KEYS));
        uint8_t before = world->history[registry_sequence(log)], bit = bit_of(op + 1);
        fixture_say(&world->owner, op);
        log = world->owner.registry;
        world->history[log->at.sequence] = op[0] == '+' ? before | bit : before & (uint8_t)~bit;
        if (fixture_roll(&dice, 7) == 0) fixture_checkpoint(&world->owner);
    } else if (fixture_roll(&dice, 3) == 0) {
        fixture_offer_head(replica, &world->owner);
        if (log && log->base && log->base->rows.count > 0) fixture_offer_chunk(replica, &world->owner, 0);
    } else {
        /* From the owner or from another replica. */
        const struct registry *source = fixture_roll(&dice, 2) ? log : world->replicas[fixture_roll(&dice, 3)].registry;
        size_t count = source ? source->log_count : 0;
        const struct log_entry *entry = count ? source->log[fixture_roll(&dice, (uint32_t)count)] : NULL;
        if (entry) fixture_offer_bytes(replica, &world->owner.rules, entry->bytes, entry->size);
    }
}

/* P8, P10: visible rows always equal what the owner had said by the replica's sequence (I1), which never falls (I2),
 * and so does what was told of them: random entries, losses, checkpoints, relays. Sharing what is alike changes nothing
 * of it. */
static void visible_rows_are_always_the_owners_state_at_some_sequence(void **unused) {
    (void)unused;
    for (int run = 0; run < 60; run++) {
        struct world *world = calloc(1, sizeof *world);
        fixture_init(&world->owner);
        if (run % 2) world->owner.rules.pool = gossip_shared_new();
        for (int i = 0; i < 3; i++)
            world->replicas[i].watch = (struct registry_watch){note_told, &world->told[i]};
        for (int step = 0; step < 600; step++) {
            uint64_t before[3];
            for (int i = 0; i < 3; i++)
                before[i] = registry_sequence(world->replicas[i].registry);
            one_step(world);
            for (int i = 0; i < 3; i++) {
                const struct registry *registry = world->replicas[i].registry;
                assert_true(registry_sequence(registry) >= before[i]);
                uint8_t said = world->history[registry_sequence(registry)];
                if (shown_by(registry) != said || world->told[i] != said)
                    fail_msg("run %d, step %d: not what the owner had said by %d", run, step,
                             (int)registry_sequence(registry));
            }
        }
        for (int i = 0; i < 3; i++)
            fixture_end(&world->replicas[i]);
        registry_unref(world->owner.registry);
        gossip_shared_free(world->owner.rules.pool); /* asserts that nothing is left in it */
        free(world);
    }
}

static void replicas_that_are_equally_far_share_one_registry(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replicas[3] = {0};
    fixture_init(&owner);
    owner.rules.pool = gossip_shared_new();
    fixture_say_many(&owner, 20);
    for (int i = 0; i < 2; i++)
        for (uint64_t sequence = 1; sequence <= 20; sequence++)
            assert_int_equal(fixture_offer(&replicas[i], &owner, sequence), REGISTRY_OK);
    assert_ptr_equal(replicas[0].registry, owner.registry);
    assert_ptr_equal(replicas[1].registry, owner.registry);
    fixture_checkpoint(&owner);
    for (int i = 0; i < 3; i++)
        fixture_offer_head(&replicas[i], &owner);
    for (uint64_t i = 0; i < fixture_chunks(&owner); i++)
        fixture_offer_chunk(&replicas[2], &owner, i);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(replicas[i].registry, owner.registry);
    struct registry *before = owner.registry;
    fixture_say(&owner, "+more");
    assert_ptr_not_equal(owner.registry, before); /* a change makes another; the replicas' stays as it was */
    assert_int_equal(replicas[0].registry->rows.count, 20);
    fixture_offer(&replicas[0], &owner, 21);
    assert_ptr_equal(replicas[0].registry, owner.registry);
    for (int i = 0; i < 3; i++)
        fixture_end(&replicas[i]);
    registry_unref(owner.registry);
    gossip_shared_free(owner.rules.pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_apply_in_order_and_once),
        cmocka_unit_test(the_chain_leaves_the_signature_out),
        cmocka_unit_test(a_replica_folds_when_the_owner_does),
        cmocka_unit_test(a_replica_that_is_ahead_folds_what_lies_below),
        cmocka_unit_test(a_replica_folds_to_a_head_that_came_before_the_entries),
        cmocka_unit_test(a_replica_that_mixed_two_lives_takes_the_owners_checkpoint),
        cmocka_unit_test(a_mixture_is_seen_however_often_it_comes_about),
        cmocka_unit_test(an_owner_that_never_checkpoints_is_stopped_at_a_limit),
        cmocka_unit_test(what_comes_and_goes_within_one_entry_is_not_told),
        cmocka_unit_test(visible_rows_are_always_the_owners_state_at_some_sequence),
        cmocka_unit_test(replicas_that_are_equally_far_share_one_registry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
