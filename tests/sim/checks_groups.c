/* Checks of what groups of shared subscriptions got (G7): a group is one, whatever brokers its members are at. */
#include "tests/sim/checks.h"

#include <string.h>

static bool was_seen(const struct journal *journal, const struct journal_subscription *group, const size_t *client) {
    for (const struct journal_subscription *entry = journal->subscriptions; entry != group; entry++)
        if (strcmp(entry->filter, group->filter) == 0 && (client == NULL || entry->client == *client)) return true;
    return false;
}

/* Something between the publisher and a member has died since, and may have forgotten what it did. */
static bool was_shaken(const struct world *world, uint64_t since_us) {
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i]->crashed_us > since_us) return true;
    return false;
}

static bool group_got(const struct world *world, const struct journal_subscription *group, size_t number,
                      uint64_t quiet_us, enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    const struct journal_publication *publication = &journal->publications[number];
    const bool quiet = publication->sent_us >= quiet_us;
    size_t copies = 0;
    bool must = false, all = true, may = false, at_qos_1 = publication->qos == 1;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *entry = &journal->subscriptions[i];
        if (strcmp(entry->filter, group->filter) != 0) continue;
        const struct checks_crossing crossing = checks_crossing(world, publication->broker_host, entry->broker_host,
                                                                publication->topic, publication->sent_us);
        may = may || crossing.ever;
        /* Who does not import it may have been chosen, or may have given it back to one that does not. */
        all = all && crossing.always &&
              checks_crossing(world, entry->broker_host, publication->broker_host, publication->topic,
                              publication->sent_us)
                  .always;
        must = must || (entry->granted_us <= publication->sent_us && entry->ended_us == JOURNAL_NEVER);
        at_qos_1 = at_qos_1 || (publication->qos == 2 && entry->qos == 1); /* so it goes on its last way */
        if (!was_seen(journal, entry, &entry->client)) copies += journal_copies(journal, entry->client, number, false);
    }
    const bool must_once =
        quiet ? repeats == CHECKS_ONCE || !at_qos_1 : !at_qos_1 && !was_shaken(world, publication->sent_us);
    if (!(quiet && must && all && copies == 0) && !(must_once && copies > 1) && !(copies > 0 && !may)) return true;
    snprintf(why, CHECKS_WHY, "publication %zu (%s, QoS %u, at %llu us) reached the group %s %zu times", number,
             publication->topic, publication->qos, (unsigned long long)publication->sent_us, group->filter, copies);
    return false;
}

bool checks_groups(const struct world *world, uint64_t quiet_us, enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        const struct journal_subscription *group = &journal->subscriptions[i];
        const char *inner = checks_inner(group->filter);
        if (inner == NULL || was_seen(journal, group, NULL)) continue;
        for (size_t number = 0; number < journal->publication_count; number++) {
            const struct journal_publication *publication = &journal->publications[number];
            if (publication->sent_us == JOURNAL_NEVER || !checks_matches(inner, publication->topic)) continue;
            if (!group_got(world, group, number, quiet_us, repeats, why)) return false;
        }
    }
    return true;
}
