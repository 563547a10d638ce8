/* A checkpoint comes in chunks, each proved against the head that names it, and is taken wholly or not at all. */
#include "gossip_registry_fixture.h"

static uint64_t dice = 0x9876543210fedcbau;

/* An owner that signs two states for one T harms nobody but itself: who holds one takes the other when its head comes,
 * wholly, and never a mixture of their chunks. */
static void two_checkpoints_signed_for_one_sequence_are_never_mixed(void **unused) {
    (void)unused;
    struct fixture_owner one, two;
    struct fixture_replica replica = {0};
    fixture_init(&one);
    fixture_init(&two);
    for (int i = 0; i < 60; i++) {
        char op[64];
        snprintf(op, sizeof op, "+a/filter/that/takes/some/room/%d", i);
        fixture_say(&one, op);
        snprintf(op, sizeof op, "+a/filter/that/takes/less/room/%d", i);
        fixture_say(&two, op);
    }
    fixture_checkpoint(&one);
    fixture_checkpoint(&two);
    assert_int_equal(fixture_offer_head(&replica, &one), REGISTRY_GAP);
    assert_int_equal(fixture_offer_head(&replica, &two), REGISTRY_GAP);
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 0; i < fixture_chunks(&one); i++) {
        assert_int_equal(fixture_offer_chunk(&replica, &one, i),
                         i + 1 < fixture_chunks(&one) ? REGISTRY_GAP : REGISTRY_OK);
        if (i + 1 < fixture_chunks(&one)) result = fixture_offer_chunk(&replica, &two, i);
    }
    assert_int_equal(result, REGISTRY_GAP);
    assert_true(fixture_agrees(&replica, &one));
    assert_int_equal(fixture_offer_head(&replica, &two), REGISTRY_GAP);
    assert_null(replica.registry);
    for (uint64_t i = 0; i < fixture_chunks(&two); i++)
        result = fixture_offer_chunk(&replica, &two, i);
    assert_int_equal(result, REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &two));
    fixture_end(&replica);
    registry_unref(one.registry);
    registry_unref(two.registry);
}

/* P8: nothing of a state is shown before all of it is there. */
static void a_checkpoint_is_taken_wholly_or_not_at_all_in_any_order_of_chunks(void **unused) {
    (void)unused;
    for (int round = 0; round < 50; round++) {
        struct fixture_owner owner;
        struct fixture_replica replica = {0};
        fixture_init(&owner);
        fixture_say_many(&owner, 60);
        fixture_checkpoint(&owner);
        fixture_say(&owner, "+above");
        assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
        uint64_t chunks = fixture_chunks(&owner);
        assert_true(chunks >= 4);
        enum registry_result result = REGISTRY_GAP;
        for (int tries = 0; result != REGISTRY_OK; tries++) {
            assert_true(tries < 1000);
            assert_null(replica.registry);
            result = fixture_offer_chunk(&replica, &owner, fixture_roll(&dice, (uint32_t)chunks));
        }
        assert_int_equal(replica.registry->rows.count, 60);
        assert_int_equal(replica.registry->at.sequence, 60);
        assert_int_equal(fixture_offer(&replica, &owner, 61), REGISTRY_OK);
        assert_true(fixture_agrees(&replica, &owner));
        fixture_end(&replica);
        registry_unref(owner.registry);
    }
}

/* Somebody who has the gossip key, or a member that lies, answers before the honest do. */
static void a_false_chunk_costs_nothing_but_itself(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    fixture_say_many(&owner, 30);
    fixture_checkpoint(&owner);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
    uint64_t chunks = fixture_chunks(&owner);
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 0; i < chunks; i++) {
        struct checkpoint_chunk chunk;
        checkpoint_read(owner.registry->base, i, &chunk);
        struct message message = {.version = {.id = fixture_id, .epoch = 1, .sequence = 30},
                                  .number = i,
                                  .bytes = chunk.bytes,
                                  .size = chunk.size,
                                  .proof = chunk.proof,
                                  .proof_size = chunk.proof_size};
        struct message wrong[4] = {message, message, message, message};
        wrong[0].proof_size = 0;
        wrong[1].number = i ^ 1;
        wrong[2].size--;
        wrong[3].version.sequence++;
        for (size_t j = 0; j < 4; j++)
            assert_int_equal(
                transfers_chunk(&replica.transfers, &replica.registry, &owner.rules, &wrong[j], &fixture_nobody),
                REGISTRY_REPEATED);
        for (size_t at = 0; at < chunk.size; at += 97) {
            chunk.bytes[at] ^= 1;
            assert_int_equal(
                transfers_chunk(&replica.transfers, &replica.registry, &owner.rules, &message, &fixture_nobody),
                REGISTRY_REPEATED);
            chunk.bytes[at] ^= 1;
        }
        for (size_t at = 0; at < chunk.proof_size; at++) {
            chunk.proof[at] ^= 1;
            assert_int_equal(
                transfers_chunk(&replica.transfers, &replica.registry, &owner.rules, &message, &fixture_nobody),
                REGISTRY_REPEATED);
            chunk.proof[at] ^= 1;
        }
        result = transfers_chunk(&replica.transfers, &replica.registry, &owner.rules, &message, &fixture_nobody);
    }
    assert_int_equal(result, REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &owner));
    fixture_end(&replica);
    registry_unref(owner.registry);
}

/* P23: one good chunk of a large checkpoint does not get memory for all of it. */
static void memory_for_a_checkpoint_grows_with_what_came(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    owner.rules.limits.rows_max = owner.rules.limits.log_entries_max = 1000;
    fixture_say_many(&owner, 400);
    fixture_checkpoint(&owner);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
    uint64_t chunks = fixture_chunks(&owner);
    assert_true(chunks > 16);
    for (uint64_t i = 0; i + 1 < chunks; i++) {
        assert_int_equal(fixture_offer_chunk(&replica, &owner, i), REGISTRY_GAP);
        size_t came = (size_t)(i + 1) * MESSAGE_CHUNK_SIZE;
        assert_true(transfers_bytes(&replica.transfers) <= sizeof(struct transfer) + 4 * MESSAGE_CHUNK_SIZE + 2 * came);
    }
    assert_int_equal(fixture_offer_chunk(&replica, &owner, chunks - 1), REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &owner));
    fixture_end(&replica);
    registry_unref(owner.registry);
}

/* What its owner signed is no list of rows: it is looked at once, and not fetched again. */
static void a_checkpoint_that_is_no_good_is_fetched_once(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    owner.rules.limits.log_entries_max = 1000;
    for (int i = 0; i < 250; i++) {
        char op[16];
        snprintf(op, sizeof op, "+r/%d", i);
        fixture_say(&owner, op);
    }
    fixture_checkpoint(&owner);
    owner.rules.limits.rows_max = 0; /* bears 239: what one entry may add */
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 0; i < fixture_chunks(&owner); i++)
        result = fixture_offer_chunk(&replica, &owner, i);
    assert_int_equal(result, REGISTRY_REFUSED);
    assert_null(replica.registry);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_REFUSED);
    assert_int_equal(fixture_offer_chunk(&replica, &owner, 0), REGISTRY_REPEATED);
    fixture_end(&replica);
    registry_unref(owner.registry);
}

/* Two replicas take chunks of the older T, the newer one begins, and its owner dies: only who has the older is left. */
static void an_older_transfer_is_worth_its_bytes_when_a_newer_one_begins(void **unused) {
    (void)unused;
    struct fixture_owner owner, old;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    fixture_init(&old);
    fixture_say_many(&owner, 40);
    fixture_say_many(&old, 40);
    fixture_checkpoint(&owner);
    fixture_checkpoint(&old);
    fixture_offer_head(&replica, &owner);
    fixture_offer_chunk(&replica, &owner, 0);
    fixture_say(&owner, "+newer");
    fixture_checkpoint(&owner);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_GAP);
    enum registry_result result = REGISTRY_GAP;
    for (uint64_t i = 1; result == REGISTRY_GAP; i++)
        result = fixture_offer_chunk(&replica, &old, i);
    assert_int_equal(result, REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &old));
    fixture_end(&replica);
    registry_unref(owner.registry);
    registry_unref(old.registry);
}

/* P6: its owner lost its disk and began again in the same epoch, and nobody has that checkpoint: it is not waited for.
 */
static void a_transfer_ends_when_a_later_head_names_an_earlier_checkpoint(void **unused) {
    (void)unused;
    struct fixture_owner lost, owner;
    struct fixture_replica replica = {0};
    fixture_init(&lost);
    fixture_init(&owner);
    fixture_say(&lost, "+old/1");
    fixture_say(&lost, "+old/2");
    fixture_checkpoint(&lost);
    assert_int_equal(fixture_offer_head(&replica, &lost), REGISTRY_GAP);
    owner.incarnation = lost.incarnation;
    fixture_offer_head(&replica, &owner);
    for (uint64_t sequence = 1; sequence <= 3; sequence++) {
        fixture_say(&owner, sequence == 1 ? "+new/1" : sequence == 2 ? "+new/2" : "+new/3");
        assert_int_equal(fixture_offer(&replica, &owner, sequence), REGISTRY_OK);
        assert_true(fixture_agrees(&replica, &owner));
    }
    fixture_end(&replica);
    registry_unref(lost.registry);
    registry_unref(owner.registry);
}

static void an_empty_checkpoint_needs_no_chunks(void **unused) {
    (void)unused;
    struct fixture_owner owner;
    struct fixture_replica replica = {0};
    fixture_init(&owner);
    fixture_say(&owner, "+a");
    fixture_say(&owner, "-a");
    fixture_checkpoint(&owner);
    assert_int_equal(fixture_offer_head(&replica, &owner), REGISTRY_OK);
    assert_int_equal(replica.registry->at.sequence, 2);
    fixture_say(&owner, "+b");
    assert_int_equal(fixture_offer(&replica, &owner, 3), REGISTRY_OK);
    assert_true(fixture_agrees(&replica, &owner));
    fixture_end(&replica);
    registry_unref(owner.registry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_checkpoints_signed_for_one_sequence_are_never_mixed),
        cmocka_unit_test(a_checkpoint_is_taken_wholly_or_not_at_all_in_any_order_of_chunks),
        cmocka_unit_test(a_false_chunk_costs_nothing_but_itself),
        cmocka_unit_test(memory_for_a_checkpoint_grows_with_what_came),
        cmocka_unit_test(a_checkpoint_that_is_no_good_is_fetched_once),
        cmocka_unit_test(an_older_transfer_is_worth_its_bytes_when_a_newer_one_begins),
        cmocka_unit_test(a_transfer_ends_when_a_later_head_names_an_earlier_checkpoint),
        cmocka_unit_test(an_empty_checkpoint_needs_no_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
