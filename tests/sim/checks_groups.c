/* Checks of what groups of shared subscriptions got. */
#include "tests/sim/checks.h"

#include <string.h>

static bool is_of_group(const struct journal_subscription *entry, const struct journal_subscription *group) {
    return entry->broker_host == group->broker_host && strcmp(entry->filter, group->filter) == 0;
}

static bool was_seen(const struct journal *journal, const struct journal_subscription *group, const size_t *client) {
    for (const struct journal_subscription *entry = journal->subscriptions; entry != group; entry++)
        if (is_of_group(entry, group) && (client == NULL || entry->client == *client)) return true;
    return false;
}

static bool group_got(const struct world *world, const struct journal_subscription *group, size_t number,
                      enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    const struct journal_publication *publication = &journal->publications[number];
    size_t copies = 0;
    bool must = false, must_once = repeats == CHECKS_ONCE || publication->qos != 1;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *entry = &journal->subscriptions[i];
        if (!is_of_group(entry, group)) continue;
        must = must || (entry->granted_us <= publication->sent_us && entry->ended_us == JOURNAL_NEVER);
        if (!was_seen(journal, entry, &entry->client)) copies += journal_copies(journal, entry->client, number, false);
    }
    if (!(must && copies == 0) && !(must_once && copies > 1)) return true;
    snprintf(why, CHECKS_WHY, "publication %zu (%s, QoS %u) reached the group %s at broker %zu %zu times", number,
             publication->topic, publication->qos, group->filter, group->broker_host, copies);
    return false;
}

bool checks_groups(const struct world *world, uint64_t from_us, enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *group = &journal->subscriptions[i];
        const char *inner = checks_inner(group->filter);
        if (inner == NULL || was_seen(journal, group, NULL)) continue;
        for (size_t number = 0; number < journal->publication_count; number++) {
            const struct journal_publication *publication = &journal->publications[number];
            if (publication->sent_us == JOURNAL_NEVER || publication->sent_us < from_us ||
                !checks_matches(inner, publication->topic))
                continue;
            if (!group_got(world, group, number, repeats, why)) return false;
        }
    }
    return true;
}
