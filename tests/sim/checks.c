/* Checks of what clients sent and got. */
#include "tests/sim/checks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ENDING_US                                                                                                      \
    (10000u * HEAP_MS) /* after a subscription's end its last messages may still be under way, or its broker paused */

bool checks_matches(const char *filter, const char *topic) {
    if (topic[0] == '$' && (filter[0] == '+' || filter[0] == '#')) return false;
    for (;;) {
        size_t wanted = strcspn(filter, "/"), level = strcspn(topic, "/");
        if (strcmp(filter, "#") == 0) return true;
        bool same = wanted == level && strncmp(filter, topic, level) == 0;
        if (!same && !(wanted == 1 && filter[0] == '+')) return false;
        filter += wanted;
        topic += level;
        if (*topic == '\0') return *filter == '\0' || strcmp(filter, "/#") == 0;
        if (*filter == '\0') return false;
        filter++;
        topic++;
    }
}

const char *checks_inner(const char *filter) {
    if (strncmp(filter, "$share/", 7) != 0) return NULL;
    return strchr(filter + 7, '/') + 1;
}

/* copies[publication * clients + client], without retained ones. */
static uint32_t *count_copies(const struct world *world) {
    const struct journal *journal = &world->journal;
    uint32_t *copies = calloc(journal->publication_count * world->client_count + 1, sizeof *copies);
    assert(copies != NULL);
    for (size_t i = 0; i < journal->receipt_count; i++) {
        const struct journal_receipt *receipt = &journal->receipts[i];
        if (!receipt->retain) copies[receipt->publication * world->client_count + receipt->client]++;
    }
    return copies;
}

struct due {
    bool must, may; /* have a copy */
    uint8_t qos;    /* the highest granted */
};

static struct due due(const struct world *world, size_t client, const struct journal_publication *publication) {
    struct due result = {0};
    for (size_t i = 0; i < world->journal.subscription_count; i++) {
        const struct journal_subscription *entry = &world->journal.subscriptions[i];
        const char *inner = checks_inner(entry->filter);
        if (entry->client != client || !checks_matches(inner != NULL ? inner : entry->filter, publication->topic))
            continue;
        if (entry->ended_us != JOURNAL_NEVER && entry->ended_us + ENDING_US < publication->sent_us) continue;
        struct checks_crossing crossing = checks_crossing(world, publication->broker_host, entry->broker_host,
                                                          publication->topic, publication->sent_us);
        result.may |= crossing.ever;
        if (!crossing.always) continue;
        if (inner != NULL || entry->granted_us > publication->sent_us || entry->ended_us != JOURNAL_NEVER) continue;
        result.must = true;
        if (entry->qos > result.qos) result.qos = entry->qos;
    }
    return result;
}

static bool copies_are_due(const struct world *world, size_t number, size_t client, uint32_t copies,
                           enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal_publication *publication = &world->journal.publications[number];
    struct due expected = due(world, client, publication);
    uint8_t qos = publication->qos < expected.qos ? publication->qos : expected.qos;
    bool many = copies > 1 && !(repeats == CHECKS_QOS1_MAY_REPEAT && qos == 1);
    if (!many && !(copies == 0 && expected.must) && !(copies > 0 && !expected.may)) return true;
    snprintf(why, CHECKS_WHY, "publication %zu (%s, QoS %u, by %s at %llu us) reached %s %u times instead of %s",
             number, publication->topic, publication->qos, sim_client_id(world->clients[publication->client]),
             (unsigned long long)publication->sent_us, sim_client_id(world->clients[client]), copies,
             expected.must  ? "once"
             : expected.may ? "at most once"
                            : "never");
    return false;
}

bool checks_delivery(const struct world *world, uint64_t from_us, enum checks_repeats repeats, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    uint32_t *copies = count_copies(world);
    bool good = true;
    for (size_t number = 0; number < journal->publication_count && good; number++) {
        if (journal->publications[number].sent_us == JOURNAL_NEVER || journal->publications[number].sent_us < from_us)
            continue;
        for (size_t client = 0; client < world->client_count && good; client++)
            good = copies_are_due(world, number, client, copies[number * world->client_count + client], repeats, why);
    }
    free(copies);
    return good;
}

static bool came_before(const struct journal *journal, size_t at) {
    const struct journal_receipt *receipt = &journal->receipts[at];
    for (size_t i = 0; i < at; i++) {
        const struct journal_receipt *earlier = &journal->receipts[i];
        if (earlier->publication == receipt->publication && earlier->client == receipt->client &&
            earlier->session == receipt->session && !earlier->retain)
            return true;
    }
    return false;
}

/* What a broker that lost its disk had sent on, or had come over a link to it, comes once more. Of copies that go out
 * at QoS 0 no broker keeps a record, so a crash may repeat those of QoS 2 and those that are retained. */
static bool may_repeat(const struct world *world, const struct journal_receipt *receipt) {
    const struct journal_publication *publication = &world->journal.publications[receipt->publication];
    const size_t host = sim_client_broker_host(world->clients[receipt->client]);
    const bool crossed = publication->broker_host != host;
    const bool unrecorded = receipt->qos == 0 && (publication->qos > 0 || publication->retain);
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *node = world->nodes[i];
        const bool passed = node->host == host ? crossed : node->host == publication->broker_host;
        const bool forgot = (passed && node->disk_losses > 0) || ((passed || node->host == host) && unrecorded);
        if (forgot && node->crashed_us > publication->sent_us) return true;
    }
    return false;
}

static bool receipt_is_due(const struct world *world, size_t at, char why[CHECKS_WHY]) {
    const struct journal_receipt *receipt = &world->journal.receipts[at];
    const struct journal_publication *publication = &world->journal.publications[receipt->publication];
    bool unwanted = !due(world, receipt->client, publication).may,
         twice = publication->qos != 1 && receipt->qos != 1 && !receipt->retain && came_before(&world->journal, at) &&
                 !may_repeat(world, receipt);
    if (unwanted || twice)
        snprintf(why, CHECKS_WHY, "publication %llu (%s, QoS %u) reached %s %s",
                 (unsigned long long)receipt->publication, publication->topic, publication->qos,
                 sim_client_id(world->clients[receipt->client]), unwanted ? "unwanted" : "twice in one session");
    return !unwanted && !twice;
}

bool checks_never(const struct world *world, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    bool good = journal->damaged == 0;
    if (!good) snprintf(why, CHECKS_WHY, "%llu messages arrived damaged", (unsigned long long)journal->damaged);
    for (size_t i = 0; i < journal->receipt_count && good; i++)
        good = receipt_is_due(world, i, why);
    for (size_t i = 0; i < world->client_count && good; i++) {
        good = sim_client_violations(world->clients[i]) == 0;
        if (!good)
            snprintf(why, CHECKS_WHY, "%s saw %llu violations of the protocol (see --trace)",
                     sim_client_id(world->clients[i]), (unsigned long long)sim_client_violations(world->clients[i]));
    }
    return good;
}

static bool one_sequence(const struct world *world, const struct journal_receipt *a, const struct journal_receipt *b) {
    const struct journal_publication *of_a = &world->journal.publications[a->publication],
                                     *of_b = &world->journal.publications[b->publication];
    return a->client == b->client && of_a->client == of_b->client && of_a->qos == of_b->qos && a->qos == b->qos &&
           !of_a->retain && !of_b->retain && strcmp(of_a->topic, of_b->topic) == 0;
}

static bool is_member(const struct journal *journal, size_t client) {
    for (size_t i = 0; i < journal->subscription_count; i++)
        if (journal->subscriptions[i].client == client && checks_inner(journal->subscriptions[i].filter)) return true;
    return false;
}

bool checks_order(const struct world *world, char why[CHECKS_WHY]) {
    const struct journal *journal = &world->journal;
    for (size_t i = 0; i < journal->receipt_count; i++) {
        const struct journal_receipt *receipt = &journal->receipts[i], *before = NULL;
        bool repeated = is_member(journal, receipt->client);
        for (size_t j = i; j-- > 0 && !repeated;) {
            if (!one_sequence(world, &journal->receipts[j], receipt)) continue;
            repeated = journal->receipts[j].publication == receipt->publication;
            if (before == NULL || journal->receipts[j].publication > before->publication)
                before = &journal->receipts[j];
        }
        if (!repeated && before != NULL && before->publication > receipt->publication) {
            snprintf(why, CHECKS_WHY, "%s got %llu after %llu of the same publisher, topic and QoS",
                     sim_client_id(world->clients[receipt->client]), (unsigned long long)receipt->publication,
                     (unsigned long long)before->publication);
            return false;
        }
    }
    return true;
}

bool checks_acknowledged(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->journal.publication_count; i++) {
        const struct journal_publication *publication = &world->journal.publications[i];
        if (publication->qos == 0 || publication->forgotten || publication->acked_us != JOURNAL_NEVER) continue;
        snprintf(why, CHECKS_WHY, "publication %zu (%s, QoS %u, by %s) is not acknowledged", i, publication->topic,
                 publication->qos, sim_client_id(world->clients[publication->client]));
        return false;
    }
    return true;
}

bool checks_clients_idle(const struct world *world) {
    for (size_t i = 0; i < world->client_count; i++)
        if (!sim_client_idle(world->clients[i])) return false;
    return true;
}
