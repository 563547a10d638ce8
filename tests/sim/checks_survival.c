/* Checks of what crashes leave behind. */
#include "tests/sim/checks.h"

#include <stdlib.h>
#include <string.h>

static const struct world_node *broker_of(const struct world *world, size_t host) {
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i]->host == host) return world->nodes[i];
    return NULL;
}

static bool session_was_kept(const struct world *world, const struct sim_client *client, char why[CHECKS_WHY]) {
    const struct world_node *broker = broker_of(world, sim_client_broker_host(client));
    if (!sim_client_is_persistent(client) || broker == NULL) return true;
    if (sim_client_sessions(client) <= 1 + broker->disk_losses) return true;
    snprintf(why, CHECKS_WHY, "%s kept a session and had to begin %llu anew at %s, which lost its disk %llu times",
             sim_client_id(client), (unsigned long long)sim_client_sessions(client), broker->name,
             (unsigned long long)broker->disk_losses);
    return false;
}

/* What the entry was sent before shows that the publication's broker, which has not ended since, keeps a join for it;
 * and the subscriber's had its disk all the time. */
static bool is_joined(const struct world *world, const struct journal_subscription *entry,
                      const struct journal_publication *publication) {
    const struct journal *journal = &world->journal;
    const struct world_node *from = broker_of(world, publication->broker_host),
                            *to = broker_of(world, entry->broker_host);
    if (from == NULL || to == NULL || to->disk_losses > 0) return false;
    for (size_t i = 0; i < journal->receipt_count && journal->receipts[i].at_us < publication->sent_us; i++) {
        const struct journal_receipt *receipt = &journal->receipts[i];
        const struct journal_publication *earlier = &journal->publications[receipt->publication];
        if (receipt->client == entry->client && !receipt->retain && earlier->broker_host == publication->broker_host &&
            earlier->sent_us > entry->granted_us && earlier->sent_us > from->started_us &&
            checks_matches(entry->filter, earlier->topic))
            return true;
    }
    return false;
}

/* The entry is of a kept session, and the publication's broker, the same or another, owes it a copy. */
static bool owes(const struct world *world, const struct journal_subscription *entry,
                 const struct journal_publication *publication) {
    return publication->qos > 0 && entry->qos > 0 && publication->acked_us != JOURNAL_NEVER &&
           sim_client_is_persistent(world->clients[entry->client]) && entry->ended_us == JOURNAL_NEVER &&
           entry->granted_us < publication->sent_us && checks_matches(entry->filter, publication->topic) &&
           (entry->broker_host == publication->broker_host || is_joined(world, entry, publication));
}

static bool has_arrived(const struct world *world, size_t client, size_t number, char why[CHECKS_WHY]) {
    const struct journal_publication *publication = &world->journal.publications[number];
    if (journal_copies(&world->journal, client, number, true) > 0) return true;
    snprintf(why, CHECKS_WHY, "publication %zu (%s, QoS %u, by %s) was acknowledged at %llu us and never reached %s",
             number, publication->topic, publication->qos, sim_client_id(world->clients[publication->client]),
             (unsigned long long)publication->acked_us, sim_client_id(world->clients[client]));
    return false;
}

static bool all_arrived(const struct world *world, const struct journal_subscription *entry, char why[CHECKS_WHY]) {
    for (size_t number = 0; number < world->journal.publication_count; number++)
        if (owes(world, entry, &world->journal.publications[number]) && !has_arrived(world, entry->client, number, why))
            return false;
    return true;
}

bool checks_survival(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->client_count; i++)
        if (!session_was_kept(world, world->clients[i], why)) return false;
    for (size_t i = 0; i < world->journal.subscription_count; i++)
        if (!all_arrived(world, &world->journal.subscriptions[i], why)) return false;
    for (size_t i = 0; i < world->node_count; i++) {
        char fault[DISK_WHY];
        if (disk_is_sound(world->nodes[i]->disk, fault)) continue;
        snprintf(why, CHECKS_WHY, "the records of %s do not fit: %s", world->nodes[i]->name, fault);
        return false;
    }
    return true;
}
