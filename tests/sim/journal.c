#include "tests/sim/journal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void journal_init(struct journal *journal) {
    memset(journal, 0, sizeof *journal);
}

void journal_deinit(struct journal *journal) {
    for (size_t i = 0; i < journal->publication_count; i++)
        free(journal->publications[i].topic);
    for (size_t i = 0; i < journal->subscription_count; i++)
        free(journal->subscriptions[i].filter);
    free(journal->publications);
    free(journal->subscriptions);
    free(journal->receipts);
}

static void *with_room(void *items, size_t count, size_t *room, size_t size) {
    if (count < *room) return items;
    *room = *room == 0 ? 64 : *room * 2;
    items = realloc(items, *room * size);
    assert(items != NULL);
    return items;
}

static char *copy_text(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    assert(copy != NULL);
    memcpy(copy, text, size);
    return copy;
}

size_t journal_add_publication(struct journal *journal, const struct journal_publication *publication) {
    journal->publications = with_room(journal->publications, journal->publication_count, &journal->publication_room,
                                      sizeof *journal->publications);
    struct journal_publication *added = &journal->publications[journal->publication_count];
    *added = *publication;
    added->topic = copy_text(publication->topic);
    return journal->publication_count++;
}

size_t journal_add_subscription(struct journal *journal, const struct journal_subscription *subscription) {
    journal->subscriptions = with_room(journal->subscriptions, journal->subscription_count, &journal->subscription_room,
                                       sizeof *journal->subscriptions);
    struct journal_subscription *added = &journal->subscriptions[journal->subscription_count];
    *added = *subscription;
    added->filter = copy_text(subscription->filter);
    return journal->subscription_count++;
}

uint8_t *journal_payload_new(const struct journal *journal, size_t publication) {
    size_t size = journal->publications[publication].size;
    char number[32];
    int digits = snprintf(number, sizeof number, "%zu ", publication);
    assert((size_t)digits <= size);
    uint8_t *payload = malloc(size);
    assert(payload != NULL);
    memset(payload, '.', size);
    memcpy(payload, number, (size_t)digits);
    return payload;
}

static bool find(const struct journal *journal, const uint8_t *payload, size_t size, uint64_t *number) {
    size_t at = 0;
    *number = 0;
    for (; at < size && at < 18 && payload[at] >= '0' && payload[at] <= '9'; at++)
        *number = *number * 10 + (uint64_t)(payload[at] - '0');
    return at > 0 && at < size && payload[at] == ' ' && *number < journal->publication_count;
}

bool journal_receive(struct journal *journal, const char *topic, size_t topic_size, const uint8_t *payload, size_t size,
                     const struct journal_receipt *receipt, uint64_t *publication) {
    bool good = find(journal, payload, size, publication);
    if (good) {
        const struct journal_publication *sent = &journal->publications[*publication];
        uint8_t *expected = journal_payload_new(journal, (size_t)*publication);
        good = size == sent->size && memcmp(expected, payload, size) == 0 && strlen(sent->topic) == topic_size &&
               memcmp(sent->topic, topic, topic_size) == 0;
        free(expected);
    }
    if (!good) {
        journal->damaged++;
        return false;
    }
    journal->receipts =
        with_room(journal->receipts, journal->receipt_count, &journal->receipt_room, sizeof *journal->receipts);
    struct journal_receipt *added = &journal->receipts[journal->receipt_count++];
    *added = *receipt;
    added->publication = *publication;
    return true;
}

size_t journal_copies(const struct journal *journal, size_t client, uint64_t publication, bool retained) {
    size_t copies = 0;
    for (size_t i = 0; i < journal->receipt_count; i++) {
        const struct journal_receipt *receipt = &journal->receipts[i];
        copies += receipt->client == client && receipt->publication == publication && (retained || !receipt->retain);
    }
    return copies;
}
