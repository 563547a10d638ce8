#include "gossip_registry_fixture.h"

static uint64_t state = 0x9876543210fedcbau;
static uint32_t roll(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

static bool has(const struct registry *registry, const char *filter) {
    size_t index;
    return rows_find(&registry->rows, GOSSIP_NEWSUB, filter, strlen(filter), &index);
}

static void entries_apply_in_order_and_once(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct registry replica = {0};
    fixture_init(&owner);
    registry_reset(&replica, 1);
    fixture_say(&owner, "+a");
    fixture_say(&owner, "+b");
    fixture_say(&owner, "-a");
    assert_int_equal(fixture_offer(&replica, &owner, 1), REGISTRY_OK);
    assert_int_equal(fixture_offer(&replica, &owner, 1), REGISTRY_REPEATED);
    assert_int_equal(fixture_offer(&replica, &owner, 3), REGISTRY_GAP);
    assert_true(has(&replica, "a")); /* the third waits: a mixture is never shown */
    assert_int_equal(fixture_offer(&replica, &owner, 2), REGISTRY_OK);
    assert_int_equal(replica.sequence, 3);
    assert_false(has(&replica, "a"));
    assert_memory_equal(replica.chain, owner.registry.chain, 8);
    registry_free(&replica);
    registry_free(&owner.registry);
}

static void the_chain_leaves_the_signature_out(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    uint8_t bytes[MESSAGE_BLOB_MAX], a[8] = {0}, b[8] = {0};
    fixture_init(&owner);
    size_t size = fixture_entry(&owner, 1, "+x", bytes);
    entry_chain(bytes, size, &owner.crypto, a);
    bytes[size - 1] ^= 1;
    entry_chain(bytes, size, &owner.crypto, b);
    assert_memory_equal(a, b, 8);
    bytes[size - GOSSIP_SIGNATURE_SIZE - 1] ^= 1;
    memset(b, 0, 8);
    entry_chain(bytes, size, &owner.crypto, b);
    assert_memory_not_equal(a, b, 8);
    registry_free(&owner.registry);
}

static void a_replica_folds_when_the_owner_does(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct registry replica = {0};
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    fixture_init(&owner);
    registry_reset(&replica, 1);
    for (int i = 0; i < 5; i++) {
        char op[16];
        snprintf(op, sizeof op, "+row/%d", i);
        fixture_say(&owner, op);
        fixture_offer(&replica, &owner, (uint64_t)i + 1);
    }
    fixture_checkpoint(&owner);
    size_t size = fixture_head(&owner, &head, bytes);
    assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                     REGISTRY_OK);
    assert_int_equal(replica.log_count, 0);
    assert_int_equal(replica.base_sequence, 5);
    assert_true(fixture_same_rows(&replica, &owner.registry));
    fixture_say(&owner, "-row/3");
    assert_int_equal(fixture_offer(&replica, &owner, 6), REGISTRY_OK);
    assert_false(has(&replica, "row/3"));
    registry_free(&replica);
    registry_free(&owner.registry);
}

/* The owner wrote one row, the replica took three entries of which two are of another life; then the owner signs a
 * checkpoint at or below what the replica holds. */
static void a_replica_that_mixed_two_lives_takes_the_owners_checkpoint(void **unused) {
    (void)unused;
    for (uint64_t further = 0; further < 2; further++) {
        struct fixture_owner first_life, owner;
        struct registry replica = {0};
        struct head head;
        uint8_t bytes[HEAD_SIZE_MAX];
        fixture_init(&first_life);
        fixture_init(&owner);
        registry_reset(&replica, 1);
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
        size_t size = fixture_head(&owner, &head, bytes);
        assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                         REGISTRY_GAP);
        assert_false(has(&replica, "old/1"));
        assert_int_equal(fixture_offer_chunk(&replica, &owner, 0), REGISTRY_OK);
        for (uint64_t sequence = replica.sequence + 1; sequence <= owner.registry.sequence; sequence++)
            assert_int_equal(fixture_offer(&replica, &owner, sequence), REGISTRY_OK);
        assert_true(fixture_same_rows(&replica, &owner.registry));
        assert_memory_equal(replica.chain, owner.registry.chain, sizeof replica.chain);
        registry_free(&replica);
        registry_free(&first_life.registry);
        registry_free(&owner.registry);
    }
}

static void make_large(struct fixture_owner *owner, int rows) {
    for (int i = 0; i < rows; i++) {
        char op[80];
        snprintf(op, sizeof op, "+a/filter/that/takes/some/room/so/that/there/are/many/chunks/%d", i);
        fixture_say(owner, op);
    }
}

static void a_checkpoint_is_taken_wholly_or_not_at_all_in_any_order_of_chunks(void **unused) {
    (void)unused;
    for (int round = 0; round < 50; round++) {
        struct fixture_owner owner;
        struct registry replica = {0};
        struct head head;
        uint8_t bytes[HEAD_SIZE_MAX];
        fixture_init(&owner);
        registry_reset(&replica, 1);
        make_large(&owner, 60);
        fixture_checkpoint(&owner);
        fixture_say(&owner, "+above");
        size_t size = fixture_head(&owner, &head, bytes);
        assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                         REGISTRY_GAP);
        uint64_t chunks = staging_chunks(&replica.staging[0]);
        assert_true(chunks >= 4);
        enum registry_result result = REGISTRY_GAP;
        for (int tries = 0; result != REGISTRY_OK; tries++) {
            assert_true(tries < 1000);
            assert_int_equal(replica.rows.count, 0);
            result = fixture_offer_chunk(&replica, &owner, roll((uint32_t)chunks));
        }
        assert_int_equal(replica.rows.count, 60);
        assert_int_equal(replica.sequence, 60);
        assert_int_equal(fixture_offer(&replica, &owner, 61), REGISTRY_OK);
        assert_memory_equal(replica.chain, owner.registry.chain, 8);
        assert_true(fixture_same_rows(&replica, &owner.registry));
        registry_free(&replica);
        registry_free(&owner.registry);
    }
}

static void chunks_that_are_not_what_was_signed_change_nothing(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct registry replica = {0};
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX], wrong[MESSAGE_CHUNK_SIZE];
    fixture_init(&owner);
    registry_reset(&replica, 1);
    make_large(&owner, 30);
    fixture_checkpoint(&owner);
    size_t size = fixture_head(&owner, &head, bytes);
    registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody);
    uint64_t chunks = staging_chunks(&replica.staging[0]);
    memcpy(wrong, owner.registry.base, sizeof wrong);
    wrong[10] ^= 1;
    assert_int_equal(
        registry_chunk(&replica, &owner.crypto, &fixture_limits, 30, 0, wrong, sizeof wrong, &fixture_nobody),
        REGISTRY_GAP);
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 1; i < chunks; i++)
        result = fixture_offer_chunk(&replica, &owner, i);
    assert_int_equal(result, REGISTRY_REFUSED);
    assert_int_equal(replica.rows.count, 0);
    assert_int_equal(replica.sequence, 0);
    /* And again from the beginning, with honest ones. */
    assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                     REGISTRY_GAP);
    for (uint64_t i = 0; i < chunks; i++)
        result = fixture_offer_chunk(&replica, &owner, i);
    assert_int_equal(result, REGISTRY_OK);
    registry_free(&replica);
    registry_free(&owner.registry);
}

static void an_older_transfer_is_worth_its_bytes_when_a_newer_one_begins(void **unused) {
    (void)unused;
    struct fixture_owner owner, old;
    struct registry replica = {0};
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    fixture_init(&owner);
    fixture_init(&old);
    registry_reset(&replica, 1);
    make_large(&owner, 40);
    make_large(&old, 40);
    fixture_checkpoint(&owner);
    fixture_checkpoint(&old);
    size_t size = fixture_head(&owner, &head, bytes);
    registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody);
    fixture_offer_chunk(&replica, &owner, 0);
    fixture_say(&owner, "+newer");
    fixture_checkpoint(&owner);
    size = fixture_head(&owner, &head, bytes);
    assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                     REGISTRY_GAP);
    /* The owner dies; only a peer with the older checkpoint is left. */
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 1; result == REGISTRY_GAP; i++)
        result = fixture_offer_chunk(&replica, &old, i);
    assert_int_equal(result, REGISTRY_OK);
    assert_int_equal(replica.sequence, 40);
    assert_true(fixture_same_rows(&replica, &old.registry));
    registry_free(&replica);
    registry_free(&owner.registry);
    registry_free(&old.registry);
}

static void an_empty_checkpoint_needs_no_chunks(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct registry replica = {0};
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    fixture_init(&owner);
    registry_reset(&replica, 1);
    fixture_say(&owner, "+a");
    fixture_say(&owner, "-a");
    fixture_checkpoint(&owner);
    size_t size = fixture_head(&owner, &head, bytes);
    assert_int_equal(registry_head(&replica, &owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody),
                     REGISTRY_OK);
    assert_int_equal(replica.sequence, 2);
    fixture_say(&owner, "+b");
    assert_int_equal(fixture_offer(&replica, &owner, 3), REGISTRY_OK);
    assert_memory_equal(replica.chain, owner.registry.chain, 8);
    registry_free(&replica);
    registry_free(&owner.registry);
}

static void an_owner_that_never_checkpoints_is_stopped_at_a_limit(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct registry replica = {0};
    uint8_t bytes[MESSAGE_BLOB_MAX];
    fixture_init(&owner);
    registry_reset(&replica, 1);
    enum registry_result result = REGISTRY_OK;
    uint64_t sequence = 0;
    while (result == REGISTRY_OK && sequence < 10000) {
        char op[32];
        snprintf(op, sizeof op, "+more/%d", (int)sequence);
        size_t size = fixture_entry(&owner, ++sequence, op, bytes);
        result = registry_apply(&replica, &owner.crypto, &fixture_limits, bytes, size, &fixture_nobody);
    }
    assert_int_equal(result, REGISTRY_REFUSED);
    assert_int_equal(replica.log_count, 4 * fixture_limits.log_entries_max);
    registry_free(&replica);
    registry_free(&owner.registry);
}

struct world {
    struct fixture_owner owner;
    struct rows history[400];
    struct registry replicas[3];
};

/* Visible rows always equal the owner's state at the replica's sequence (I1), which never falls (I2): random entries,
 * losses, checkpoints, relays. */
static void visible_rows_are_always_the_owners_state_at_some_sequence(void **unused) {
    (void)unused;
    for (int run = 0; run < 60; run++) {
        struct world *world = calloc(1, sizeof *world);
        fixture_init(&world->owner);
        for (int i = 0; i < 3; i++)
            registry_reset(&world->replicas[i], 1);
        for (int step = 0; step < 600; step++) {
            struct registry *log = &world->owner.registry, *replica = &world->replicas[roll(3)];
            uint64_t before = replica->sequence;
            char op[16];
            struct head head;
            uint8_t bytes[HEAD_SIZE_MAX];
            if (roll(4) == 0 && log->sequence < 399) {
                snprintf(op, sizeof op, "%ck/%u", roll(3) ? '+' : '-', roll(6));
                fixture_say(&world->owner, op);
                assert_true(rows_copy(&log->rows, &world->history[log->sequence]));
                if (roll(7) == 0) fixture_checkpoint(&world->owner);
            } else if (roll(3) == 0) {
                size_t size = fixture_head(&world->owner, &head, bytes);
                registry_head(replica, &world->owner.crypto, &fixture_limits, &head, bytes, size, &fixture_nobody);
                fixture_offer_chunk(replica, &world->owner, 0);
            } else {
                /* From the owner or from another replica. */
                const struct registry *source = roll(2) ? log : &world->replicas[roll(3)];
                uint64_t span = source->sequence - source->base_sequence;
                const struct log_entry *entry =
                    span ? registry_entry(source, source->base_sequence + 1 + roll((uint32_t)span)) : NULL;
                if (entry)
                    registry_apply(replica, &world->owner.crypto, &fixture_limits, entry->bytes, entry->size,
                                   &fixture_nobody);
            }
            assert_true(replica->sequence >= before);
            struct registry expected = {.rows = world->history[replica->sequence]};
            if (!fixture_same_rows(replica, &expected))
                fail_msg("run %d, step %d: not the owner's state at %d", run, step, (int)replica->sequence);
        }
        for (int i = 0; i < 3; i++)
            registry_free(&world->replicas[i]);
        for (int i = 0; i < 400; i++)
            rows_free(&world->history[i]);
        registry_free(&world->owner.registry);
        free(world);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_apply_in_order_and_once),
        cmocka_unit_test(the_chain_leaves_the_signature_out),
        cmocka_unit_test(a_replica_folds_when_the_owner_does),
        cmocka_unit_test(a_replica_that_mixed_two_lives_takes_the_owners_checkpoint),
        cmocka_unit_test(a_checkpoint_is_taken_wholly_or_not_at_all_in_any_order_of_chunks),
        cmocka_unit_test(chunks_that_are_not_what_was_signed_change_nothing),
        cmocka_unit_test(an_older_transfer_is_worth_its_bytes_when_a_newer_one_begins),
        cmocka_unit_test(an_empty_checkpoint_needs_no_chunks),
        cmocka_unit_test(an_owner_that_never_checkpoints_is_stopped_at_a_limit),
        cmocka_unit_test(visible_rows_are_always_the_owners_state_at_some_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
