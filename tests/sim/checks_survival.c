/* Checks of what crashes leave behind. */
#include "tests/sim/checks.h"

#include <stdlib.h>
#include <string.h>

static bool session_was_kept(const struct world *world, const struct sim_client *client, char why[CHECKS_WHY]) {
    const struct world_node *broker = world_node_on(world, sim_client_broker_host(client));
    if (!sim_client_is_persistent(client) || broker == NULL) return true;
    if (sim_client_sessions(client) <= 1 + broker->disk_losses) return true;
    snprintf(why, CHECKS_WHY, "%s kept a session and had to begin %llu anew at %s, which lost its disk %llu times",
             sim_client_id(client), (unsigned long long)sim_client_sessions(client), broker->name,
             (unsigned long long)broker->disk_losses);
    return false;
}

/* No run of the broker began between the two. */
static bool in_one_run(const struct world_node *node, uint64_t first_us, uint64_t second_us) {
    for (uint64_t run = 0; run < node->run; run++)
        if (node->starts_us[run] > first_us && node->starts_us[run] < second_us) return false;
    return true;
}

/* As good for the publication as the entry itself, if one join stands for both. */
static bool is_as_good(const struct world *world, const struct journal_subscription *other,
                       const struct journal_subscription *entry, const struct journal_publication *publication) {
    return other->qos > 0 && other->ended_us == JOURNAL_NEVER && checks_matches(other->filter, publication->topic) &&
           sim_client_is_persistent(world->clients[other->client]) >=
               sim_client_is_persistent(world->clients[entry->client]);
}

/* A join for whichever subscription at the entry's broker let the earlier one through would let this one through. */
static bool shows_join(const struct world *world, const struct journal_subscription *entry,
                       const struct journal_publication *earlier, const struct journal_publication *publication) {
    for (size_t i = 0; i < world->journal.subscription_count; i++) {
        const struct journal_subscription *other = &world->journal.subscriptions[i];
        if (other->broker_host == entry->broker_host && checks_matches(other->filter, earlier->topic) &&
            !is_as_good(world, other, entry, publication))
            return false;
    }
    return checks_matches(entry->filter, earlier->topic);
}

static uint64_t policy_since_us(const struct world_node *node) {
    return node->policy_count > 0 ? node->policies[node->policy_count - 1].since_us : 0;
}

/* Since then both brokers have had their policies, and those let it cross: a join may end when one changes. */
static bool may_cross(const struct world *world, const struct world_node *from, const struct world_node *to,
                      const struct journal_publication *publication, uint64_t since_us) {
    return since_us > policy_since_us(from) && since_us > policy_since_us(to) &&
           checks_crossing(world, from->host, to->host, publication->topic, since_us).always;
}

/* What the entry was sent before from the publication's broker shows that this one keeps a join for it. Both had their
 * disks all the time; and only one of them began anew since: the other knows of the join, or of the topic. */
static bool is_joined(const struct world *world, const struct journal_subscription *entry,
                      const struct journal_publication *publication) {
    const struct journal *journal = &world->journal;
    const struct world_node *from = world_node_on(world, publication->broker_host),
                            *to = world_node_on(world, entry->broker_host);
    if (from == NULL || to == NULL || from->disk_losses + to->disk_losses > 0) return false;
    for (size_t i = 0; i < journal->receipt_count && journal->receipts[i].at_us < publication->sent_us; i++) {
        const struct journal_receipt *receipt = &journal->receipts[i];
        const struct journal_publication *earlier = &journal->publications[receipt->publication];
        if (receipt->client == entry->client && !receipt->retain && earlier->broker_host == publication->broker_host &&
            earlier->sent_us > entry->granted_us && earlier->qos > 0 && earlier->acked_us < publication->sent_us &&
            (in_one_run(from, earlier->sent_us, publication->acked_us) ||
             in_one_run(to, earlier->sent_us, publication->acked_us)) &&
            shows_join(world, entry, earlier, publication) && may_cross(world, from, to, publication, earlier->sent_us))
            return true;
    }
    return false;
}

/* The entry lasts, and the publication's broker, the same or another, owes it a copy. */
static bool owes(const struct world *world, const struct journal_subscription *entry,
                 const struct journal_publication *publication) {
    return publication->qos > 0 && entry->qos > 0 && publication->acked_us != JOURNAL_NEVER &&
           entry->ended_us == JOURNAL_NEVER && entry->granted_us < publication->sent_us &&
           checks_matches(entry->filter, publication->topic) &&
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
