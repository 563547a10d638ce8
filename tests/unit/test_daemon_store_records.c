/* Each record as rows and back, and that neither the grouping into transactions nor what is saved in them can be told
 * from the file. */
#include "tests/unit/store_fixture.h"

#define U64_MAX UINT64_MAX

/* Applies what was written since the last call, as one transaction. */
static struct store_applied apply(struct store *store, struct fixture_journal *journal) {
    struct broker_journal taken = fixture_take(journal);
    struct broker_span span = {taken.bytes, taken.size};
    struct store_applied applied;
    const struct store_numbers numbers = {.run = store->run, .last = journal->last, .epoch = store->run};
    assert_int_equal(store_apply(&store->connection, &span, 1, &numbers, &applied), SQLITE_OK);
    free(taken.bytes);
    return applied;
}

static void assert_holds(struct store *store, const struct record *records, size_t count) {
    char *text = fixture_load(store, NULL), *at = text;
    for (size_t i = 0; i < count; i++) {
        char *line = fixture_line(&records[i]);
        if (strncmp(at, line, strlen(line)) != 0) fail_msg("expected\n%s\nin\n%s", line, text);
        at += strlen(line);
        free(line);
    }
    assert_string_equal(at, "");
    free(text);
}

#define HOLDS(store, ...)                                                                                              \
    do {                                                                                                               \
        const struct record expected[] = {__VA_ARGS__};                                                                \
        assert_holds(store, expected, sizeof(expected) / sizeof(expected[0]));                                         \
    } while (0)

#define TEXT(literal)                                                                                                  \
    { literal, sizeof(literal) - 1 }

static const struct record session = {.type = RECORD_SESSION,
                                      .session = 7,
                                      .client_id = TEXT("sensor \xc3\xa9"),
                                      .user_name = TEXT("anna"),
                                      .expiry_s = UINT32_MAX,
                                      .ends_wall_ms = 1800000000123,
                                      .has_will = true,
                                      .will = {.topic = TEXT("will/topic"),
                                               .payload = TEXT("gone\0\xff"),
                                               .properties = TEXT("\x01\x01"),
                                               .qos = 2,
                                               .retain = true},
                                      .will_delay_s = 5,
                                      .will_expiry_s = UINT64_MAX,
                                      .will_due_wall_ms = 1800000005123};
static const struct record plain_session = {
    .type = RECORD_SESSION, .session = 8, .client_id = TEXT("b"), .expiry_s = 1};
static const struct record subscription = {.type = RECORD_SUBSCRIPTION,
                                           .session = 7,
                                           .filter = TEXT("$share/g/a/+/#"),
                                           .options = 0x2e,
                                           .identifier = 268435455};
static const struct record message = {.type = RECORD_MESSAGE,
                                      .message = 11,
                                      .publication = {.topic = TEXT("a/b"),
                                                      .payload = TEXT("\0\1\2"),
                                                      .properties = TEXT("\x26\0\1a\0\1b"),
                                                      .qos = 1,
                                                      .retain = true,
                                                      .expires_wall_ms = U64_MAX,
                                                      .stamp_wall_ms = 1800000000000,
                                                      .stamp_count = 7},
                                      .publisher = 8};
static const struct record empty_message = {
    .type = RECORD_MESSAGE, .message = 12, .publication = {.topic = TEXT("a"), .qos = 2}};
static const struct record queued = {.type = RECORD_QUEUED,
                                     .session = 7,
                                     .position = 21,
                                     .message = 11,
                                     .qos = 1,
                                     .retain = true,
                                     .identifiers = TEXT("\1\0\0\0\2\0\0\0")};
static const struct record received = {.type = RECORD_RECEIVED, .session = 7, .packet_id = 65535};
static const struct record retained = {.type = RECORD_RETAINED,
                                       .publication = {.topic = TEXT("r/1"),
                                                       .payload = TEXT("on"),
                                                       .properties = TEXT("\x01\x01"),
                                                       .qos = 2,
                                                       .retain = true,
                                                       .expires_wall_ms = 5,
                                                       .stamp_wall_ms = 1800000000000,
                                                       .stamp_count = 9,
                                                       .stamp_origin = {1, 2, 3, [15] = 4}},
                                       .publisher = 7};
static const struct record peer_taken = {
    .type = RECORD_TAKEN, .peer = {1, 2, 3, [15] = 4}, .peer_epoch = 6, .stream = U64_MAX, .expected = 1ull << 40};

static const struct record peer = {.type = RECORD_PEER,
                                   .peer = {1, 2, 3, [15] = 4},
                                   .peer_name = TEXT("edge-2"),
                                   .peer_epoch = 6,
                                   .stream = U64_MAX,
                                   .reserved = 1ull << 41,
                                   .ends_wall_ms = 1800000000000};
static const struct record join = {.type = RECORD_JOIN, .peer = {1, 2, 3, [15] = 4}, .filter = TEXT("a/+"), .level = 2};
static const struct record waiting = {
    .type = RECORD_OUTBOX, .peer = {1, 2, 3, [15] = 4}, .sequence = 1ull << 40, .message = 11};

static void every_field_comes_back(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const struct record all[] = {session,  plain_session, subscription, message, queued, received,
                                 retained, peer_taken,    peer,         join,    waiting};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fixture_write(&journal, &all[i]);
    apply(store, &journal);
    HOLDS(store, session, plain_session, subscription, message, queued, received, retained, peer_taken, peer, join,
          waiting);
    store_close(store);
    char *text = fixture_reload(NULL);
    assert_non_null(strstr(text, "payload=gone\\00\\ff"));
    free(text);
}

static void changes_replace_what_was(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const struct record before[] = {session, subscription, retained};
    for (size_t i = 0; i < 3; i++)
        fixture_write(&journal, &before[i]);
    apply(store, &journal);
    struct record changed = plain_session, other = subscription, tombstone = retained;
    changed.session = 7;
    other.options = 1;
    other.identifier = 0;
    tombstone.publication.payload = (struct record_text){0};
    tombstone.publication.stamp_count = 10;
    fixture_write(&journal, &changed);
    fixture_write(&journal, &other);
    fixture_write(&journal, &tombstone);
    apply(store, &journal);
    HOLDS(store, changed, other, tombstone);
    store_close(store);
}

static void queued_publication_goes_through_its_states(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    fixture_write(&journal, &plain_session);
    fixture_write(&journal, &message);
    fixture_write(&journal, &queued);
    apply(store, &journal);
    struct record now = queued;
    WRITE(&journal, .type = RECORD_SENT, .session = 7, .position = 21, .packet_id = 3);
    apply(store, &journal);
    now.packet_id = 3;
    HOLDS(store, plain_session, message, now);
    WRITE(&journal, .type = RECORD_RELEASED, .session = 7, .position = 21);
    WRITE(&journal, .type = RECORD_MESSAGE_END, .message = 11);
    apply(store, &journal);
    now.released = true;
    now.message = 0;
    HOLDS(store, plain_session, now);
    WRITE(&journal, .type = RECORD_DONE, .session = 7, .position = 21);
    apply(store, &journal);
    HOLDS(store, plain_session);
    store_close(store);
}

static void states_within_one_batch_are_written_once(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    fixture_write(&journal, &message);
    fixture_write(&journal, &queued);
    WRITE(&journal, .type = RECORD_SENT, .session = 7, .position = 21, .packet_id = 3);
    WRITE(&journal, .type = RECORD_RELEASED, .session = 7, .position = 21);
    WRITE(&journal, .type = RECORD_MESSAGE_END, .message = 11);
    const struct store_applied applied = apply(store, &journal);
    assert_int_equal(applied.records, 5);
    assert_int_equal(applied.saved, 4);
    struct record now = queued;
    now.released = true;
    now.packet_id = 3;
    now.message = 0;
    HOLDS(store, now);
    store_close(store);
}

static void what_begins_and_ends_in_one_batch_is_not_written(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    fixture_write(&journal, &message);
    fixture_write(&journal, &queued);
    WRITE(&journal, .type = RECORD_SENT, .session = 7, .position = 21, .packet_id = 3);
    WRITE(&journal, .type = RECORD_DONE, .session = 7, .position = 21);
    WRITE(&journal, .type = RECORD_MESSAGE_END, .message = 11);
    const struct store_applied applied = apply(store, &journal);
    assert_int_equal(applied.saved, 5);
    char *text = fixture_load(store, NULL);
    assert_string_equal(text, "");
    free(text);
    store_close(store);
}

static void message_that_another_queue_holds_stays(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    struct record other = queued;
    other.session = 8;
    other.position = 22;
    fixture_write(&journal, &message);
    fixture_write(&journal, &queued);
    fixture_write(&journal, &other);
    WRITE(&journal, .type = RECORD_DONE, .session = 7, .position = 21);
    apply(store, &journal);
    HOLDS(store, message, other);
    store_close(store);
}

static void end_of_a_session_takes_all_it_held(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const struct record all[] = {session, plain_session, subscription, message, empty_message, queued, received};
    struct record other = queued;
    other.session = 8;
    other.position = 22;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fixture_write(&journal, &all[i]);
    WRITE(&journal, .type = RECORD_QUEUED, .session = 7, .position = 23, .message = 12, .qos = 2);
    fixture_write(&journal, &other);
    apply(store, &journal);
    WRITE(&journal, .type = RECORD_SESSION_END, .session = 7);
    apply(store, &journal);
    HOLDS(store, plain_session, message, other); /* message 12 had no other holder */
    store_close(store);
}

static void how_far_a_peer_was_taken_goes_on_and_ends(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    struct record further = peer_taken, other = peer_taken;
    further.expected++;
    other.peer[0] = 9;
    fixture_write(&journal, &peer_taken);
    fixture_write(&journal, &other);
    fixture_write(&journal, &further);
    apply(store, &journal);
    HOLDS(store, further, other);
    WRITE(&journal, .type = RECORD_TAKEN_END, .peer = {9, 2, 3, [15] = 4});
    apply(store, &journal);
    HOLDS(store, further);
    store_close(store);
}

static void what_is_kept_for_a_peer_changes_and_ends(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    struct record later = peer, lower = join, other = join;
    later.reserved++;
    later.ends_wall_ms = 0;
    lower.level = 1;
    other.filter = (struct record_text){"b", 1};
    const struct record all[] = {peer, join, other, message, waiting, later, lower};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fixture_write(&journal, &all[i]);
    WRITE(&journal, .type = RECORD_JOIN_END, .peer = {1, 2, 3, [15] = 4}, .filter = {"b", 1});
    apply(store, &journal);
    HOLDS(store, message, later, lower, waiting);
    WRITE(&journal, .type = RECORD_PEER_END, .peer = {1, 2, 3, [15] = 4});
    WRITE(&journal, .type = RECORD_MESSAGE_END, .message = 11);
    apply(store, &journal);
    char *text = fixture_load(store, NULL);
    assert_string_equal(text, "");
    free(text);
    store_close(store);
}

/* Those of sequence first to first + 9; the message of each has its sequence for a number. */
static void write_outbox(struct fixture_journal *journal, uint8_t id, uint64_t first) {
    for (uint64_t i = first; i < first + 10; i++) {
        WRITE(journal, .type = RECORD_MESSAGE, .message = id * 1000u + i, .publication = {.topic = TEXT("t")});
        WRITE(journal, .type = RECORD_OUTBOX, .peer = {id}, .sequence = i, .message = id * 1000u + i);
    }
}

static void end_outbox(struct fixture_journal *journal, uint8_t id, uint64_t first, uint64_t below) {
    for (uint64_t i = first; i < below; i++)
        WRITE(journal, .type = RECORD_MESSAGE_END, .message = id * 1000u + i);
    WRITE(journal, .type = RECORD_OUTBOX_END, .peer = {id}, .sequence = first, .below = below);
}

static void an_outbox_ends_in_ranges_in_one_batch_or_several(void **state) {
    (void)state;
    for (int batches = 0; batches < 2; batches++) {
        struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
        struct fixture_journal journal = {0};
        WRITE(&journal, .type = RECORD_RESET);
        for (uint8_t id = 1; id <= 20; id++)
            write_outbox(&journal, id, 1);
        if (batches) apply(store, &journal);
        for (uint8_t id = 1; id <= 20; id++) {
            end_outbox(&journal, id, 3, 4); /* given up */
            end_outbox(&journal, id, 1, 3);
            end_outbox(&journal, id, 4, id == 7 ? 10 : 11);
        }
        apply(store, &journal);
        const struct record left = {.type = RECORD_MESSAGE, .message = 7010, .publication = {.topic = TEXT("t")}};
        const struct record last = {.type = RECORD_OUTBOX, .peer = {7}, .sequence = 10, .message = 7010};
        HOLDS(store, left, last);
        store_close(store);
    }
}

static void subscriptions_received_and_retained_end(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const struct record all[] = {plain_session, subscription, received, retained};
    for (size_t i = 0; i < 4; i++)
        fixture_write(&journal, &all[i]);
    apply(store, &journal);
    WRITE(&journal, .type = RECORD_SUBSCRIPTION_END, .session = 7, .filter = subscription.filter);
    WRITE(&journal, .type = RECORD_RECEIVED_END, .session = 7, .packet_id = 65535);
    WRITE(&journal, .type = RECORD_RETAINED_END, .publication = {.topic = retained.publication.topic});
    apply(store, &journal);
    HOLDS(store, plain_session);
    store_close(store);
}

static void packet_id_is_received_again_in_the_same_batch(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    fixture_write(&journal, &received);
    WRITE(&journal, .type = RECORD_RECEIVED_END, .session = 7, .packet_id = 65535);
    fixture_write(&journal, &received);
    apply(store, &journal);
    HOLDS(store, received);
    store_close(store);
}

static void reset_begins_with_nothing(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const struct record all[] = {session,  subscription, message, queued, received,
                                 retained, peer_taken,   peer,    join,   waiting};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fixture_write(&journal, &all[i]);
    apply(store, &journal);
    WRITE(&journal, .type = RECORD_RESET);
    fixture_write(&journal, &plain_session);
    apply(store, &journal);
    HOLDS(store, plain_session);
    store_close(store);
}

static void numbers_are_never_given_twice(void **state) {
    (void)state;
    uint64_t first = 0;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    WRITE(&journal, .type = RECORD_MESSAGE, .message = 1ull << 40, .publication = {.topic = TEXT("a")});
    WRITE(&journal, .type = RECORD_MESSAGE_END, .message = 1ull << 40);
    apply(store, &journal);
    WRITE(&journal, .type = RECORD_RESET);
    apply(store, &journal);
    store_close(store);
    free(fixture_reload(&first));
    assert_true(first > 1ull << 40);
}

static void queues_come_in_order_of_their_positions(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    const uint64_t positions[] = {300, 5, 70, 1ull << 40, 6};
    for (size_t i = 0; i < 5; i++)
        WRITE(&journal, .type = RECORD_QUEUED, .session = 1 + i % 2, .position = positions[i], .message = 900 - i);
    apply(store, &journal);
    char *text = fixture_load(store, NULL), *at = text;
    const char *const order[] = {"s=1 m=896 p=6 ", "s=1 m=898 p=70 ", "s=1 m=900 p=300 ", "s=2 m=899 p=5 ",
                                 "s=2 m=897 p=1099511627776 "};
    for (size_t i = 0; i < 5; i++) {
        at = strstr(at, order[i]);
        assert_non_null(at);
    }
    free(text);
    store_close(store);
}

static void bytes_that_are_no_records_are_refused_and_change_nothing(void **state) {
    (void)state;
    struct store *store = fixture_open(STORE_SYNC_FULL, NULL);
    struct fixture_journal journal = {0};
    fixture_write(&journal, &plain_session);
    const struct broker_journal taken = fixture_take(&journal);
    struct store_applied applied;
    const struct broker_span cut = {taken.bytes, taken.size - 1};
    const struct store_numbers numbers = {.run = store->run, .last = 1, .epoch = store->run};
    assert_int_equal(store_apply(&store->connection, &cut, 1, &numbers, &applied), STORE_UNSOUND);
    char *text = fixture_load(store, NULL);
    assert_string_equal(text, "");
    free(text);
    free(taken.bytes);
    store_close(store);
}

/* ---- any history, in any grouping ---- */

struct history {
    uint32_t dice;
    uint64_t next;
    uint64_t messages[64], queued[64][3]; /* session, position, message */
    size_t message_count, queued_count;
};

static uint32_t draw(struct history *history, uint32_t bound) {
    history->dice = history->dice * 1664525u + 1013904223u;
    return (history->dice >> 8) % bound;
}

static void end_unheld(struct history *history, struct fixture_journal *journal, uint64_t of) {
    for (size_t i = 0; i < history->queued_count; i++)
        if (history->queued[i][2] == of) return;
    for (size_t i = 0; i < history->message_count; i++) {
        if (history->messages[i] != of) continue;
        WRITE(journal, .type = RECORD_MESSAGE_END, .message = of);
        history->messages[i] = history->messages[--history->message_count];
    }
}

static void publish(struct history *history, struct fixture_journal *journal) {
    if (history->message_count == 64 || history->queued_count > 60) return;
    const uint64_t number = ++history->next;
    WRITE(journal, .type = RECORD_MESSAGE, .message = number, .publication = {.topic = TEXT("t"), .qos = 1});
    history->messages[history->message_count++] = number;
    for (uint32_t holders = 1 + draw(history, 3); holders > 0; holders--) {
        uint64_t *entry = history->queued[history->queued_count++];
        entry[0] = 1 + draw(history, 4);
        entry[1] = ++history->next;
        entry[2] = number;
        WRITE(journal, .type = RECORD_QUEUED, .session = entry[0], .position = entry[1], .message = number, .qos = 1);
    }
}

static void progress(struct history *history, struct fixture_journal *journal) {
    if (history->queued_count == 0) return;
    const size_t at = draw(history, (uint32_t)history->queued_count);
    uint64_t *entry = history->queued[at];
    const uint64_t of = entry[2];
    switch (draw(history, 4)) {
    case 0:
        WRITE(journal, .type = RECORD_SENT, .session = entry[0], .position = entry[1],
              .packet_id = (uint16_t)(1 + draw(history, 100)));
        break;
    case 1:
        WRITE(journal, .type = RECORD_RELEASED, .session = entry[0], .position = entry[1]);
        entry[2] = 0;
        break;
    default:
        WRITE(journal, .type = RECORD_DONE, .session = entry[0], .position = entry[1]);
        memcpy(entry, history->queued[--history->queued_count], sizeof(history->queued[0]));
        break;
    }
    end_unheld(history, journal, of);
}

static void step(struct history *history, struct fixture_journal *journal) {
    char topic[2] = {(char)('a' + draw(history, 5)), '\0'};
    const uint64_t of = 1 + draw(history, 4);
    switch (draw(history, 12)) {
    case 0: WRITE(journal, .type = RECORD_SESSION, .session = of, .client_id = TEXT("c"), .expiry_s = 3); break;
    case 1: WRITE(journal, .type = RECORD_SUBSCRIPTION, .session = of, .filter = fixture_text(topic)); break;
    case 2: WRITE(journal, .type = RECORD_SUBSCRIPTION_END, .session = of, .filter = fixture_text(topic)); break;
    case 3: WRITE(journal, .type = RECORD_RECEIVED, .session = of, .packet_id = (uint16_t)topic[0]); break;
    case 4: WRITE(journal, .type = RECORD_RECEIVED_END, .session = of, .packet_id = (uint16_t)topic[0]); break;
    case 5:
        WRITE(journal, .type = draw(history, 3) == 0 ? RECORD_RETAINED_END : RECORD_RETAINED,
              .publication = {.topic = fixture_text(topic), .stamp_wall_ms = ++history->next});
        break;
    case 6:
    case 7:
    case 8: publish(history, journal); break;
    default: progress(history, journal); break;
    }
    if (draw(history, 200) == 0) WRITE(journal, .type = RECORD_RESET);
}

/* The history of a seed, in transactions of about this many steps (0: one for each record), with or without a plan. */
static char *play(uint32_t seed, uint32_t group) {
    struct history history = {.dice = seed};
    struct fixture_journal journal = {0};
    struct store *store = fixture_open(STORE_SYNC_OFF, NULL);
    for (uint32_t i = 0; i < 400; i++) {
        step(&history, &journal);
        if (group > 0 && i % group == 0) apply(store, &journal);
        if (group > 0) continue;
        const struct broker_journal taken = fixture_take(&journal);
        for (size_t at = 0; at < taken.size;) { /* each record alone */
            struct record record;
            at += record_read(taken.bytes + at, taken.size - at, &record);
            fixture_write(&journal, &record);
            apply(store, &journal);
        }
        free(taken.bytes);
    }
    apply(store, &journal);
    char *text = fixture_load(store, NULL);
    store_close(store);
    fixture_remove(NULL);
    fixture_make(NULL);
    return text;
}

static void grouping_cannot_be_told_from_the_file(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        char *alone = play(seed, 0);
        assert_true(strlen(alone) > 200);
        for (uint32_t group = 1; group <= 400; group = group * 3 + seed % 2) {
            char *grouped = play(seed, group);
            assert_string_equal(grouped, alone);
            free(grouped);
        }
        free(alone);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_DISK(every_field_comes_back),
        ON_DISK(changes_replace_what_was),
        ON_DISK(queued_publication_goes_through_its_states),
        ON_DISK(states_within_one_batch_are_written_once),
        ON_DISK(what_begins_and_ends_in_one_batch_is_not_written),
        ON_DISK(message_that_another_queue_holds_stays),
        ON_DISK(end_of_a_session_takes_all_it_held),
        ON_DISK(how_far_a_peer_was_taken_goes_on_and_ends),
        ON_DISK(what_is_kept_for_a_peer_changes_and_ends),
        ON_DISK(an_outbox_ends_in_ranges_in_one_batch_or_several),
        ON_DISK(subscriptions_received_and_retained_end),
        ON_DISK(packet_id_is_received_again_in_the_same_batch),
        ON_DISK(reset_begins_with_nothing),
        ON_DISK(numbers_are_never_given_twice),
        ON_DISK(queues_come_in_order_of_their_positions),
        ON_DISK(bytes_that_are_no_records_are_refused_and_change_nothing),
        ON_DISK(grouping_cannot_be_told_from_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
