/* What a change of our own filters costs, however many there are, and what the covers let through.
 *
 *   bench_covers speed [--topics N] [--shape flat|tree|deep] [--changes N]
 *   bench_covers cliff [--rows N] [--learn MINUTES]
 *
 * speed puts N topics (1,000,000), lets N others come and go in turn, and deletes all: changes a second, the longest
 * single call, the longest gossip_tick's part, bytes a topic. Shapes: `many/N`; `site/hall/device/metric`, ten metrics
 * a device; twelve levels with a long name each. Times are of the CPU. Instructions of a change come from
 *
 *   valgrind --tool=callgrind --collect-atstart=no --toggle-collect='cover_*' bench_covers speed --topics 100000
 *
 * cliff has a tree of 1,000,000 topics (100 sites, 10 lines, 100 devices, 10 metrics), each published as often as any
 * other, and a broker that wants 8,730 of them: 8,030 of its own site, 50 devices (500 topics) that roam, 200 at
 * random. It prints what comes in unwanted with so many rows, at first and after so many minutes in which each minute
 * 1,000 topics drawn at random are published and noted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/subs.h"
#include "gossip/cover.h"

static double cpu_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t dice = 88172645463325252u;
static uint32_t roll(uint32_t bound) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (uint32_t)((dice >> 20) % bound);
}

static const char *option(int count, char **arguments, const char *name, const char *otherwise) {
    for (int i = 2; i + 1 < count; i++)
        if (strcmp(arguments[i], name) == 0) return arguments[i + 1];
    return otherwise;
}

static uint64_t told;
static bool on_count(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown) {
    (void)context, (void)kind, (void)filter, (void)size, (void)shown;
    told++;
    return true;
}

/* ---- speed ---- */

static size_t topic_at(const char *shape, uint32_t i, char out[512]) {
    if (shape[0] == 'f') return (size_t)sprintf(out, "many/%07u", i);
    size_t size = 0;
    for (int level = 0; shape[0] == 'd' && level < 8; level++)
        size += (size_t)sprintf(out + size, "a-level-with-a-long-name-%u/", i % 2);
    return size + (size_t)sprintf(out + size, "site/hall-%u/device-%u/metric-%u", i / 10 % 50, i / 10, i % 10);
}

struct spent {
    double all, longest;
};

static void change(struct cover *cover, struct spent *spent, uint64_t now_ms, const char *topic, size_t size,
                   bool put) {
    double start = cpu_s();
    if (!(put ? cover_put(cover, now_ms, topic, size) : cover_delete(cover, now_ms, topic, size))) abort();
    double took = cpu_s() - start;
    spent->all += took;
    if (took > spent->longest) spent->longest = took;
}

static void tick(struct cover *cover, struct spent *spent, uint64_t now_ms) {
    if (cover_deadline_ms(cover) > now_ms) return;
    double start = cpu_s();
    cover_tick(cover, now_ms);
    double took = cpu_s() - start;
    spent->all += took;
    if (took > spent->longest) spent->longest = took;
}

static void print_spent(const char *what, const struct spent *spent, uint32_t count) {
    printf("  %-8s %10.0f a second, %6.2f us each, the longest %8.0f us\n", what, count / spent->all,
           spent->all / count * 1e6, spent->longest * 1e6);
}

static void speed(int count, char **arguments) {
    const char *shape = option(count, arguments, "--shape", "tree");
    uint32_t topics = (uint32_t)atol(option(count, arguments, "--topics", "1000000"));
    uint32_t changes = (uint32_t)atol(option(count, arguments, "--changes", "200000"));
    struct cover_options options = {.kind = GOSSIP_NEWPUB, .rows_max = 512, .seed = 1, .on_change = on_count};
    struct cover cover;
    struct spent put = {0}, churn = {0}, ticks = {0}, gone = {0};
    char topic[512];
    uint64_t now_ms = 1000;
    cover_init(&cover, &options);
    for (uint32_t i = 0; i < topics; i++, now_ms += i % 100 == 0)
        change(&cover, &put, now_ms, topic, topic_at(shape, i, topic), true);
    printf("%u topics, %s: %.1f bytes a topic, %u rows, %llu changes told\n", topics, shape,
           (double)cover_memory(&cover) / topics, cover.row_count, (unsigned long long)told);
    print_spent("put", &put, topics);
    for (uint32_t i = 0; i < changes; i++, now_ms += 1) {
        uint32_t which = roll(topics);
        change(&cover, &churn, now_ms, topic, topic_at(shape, which, topic), false);
        tick(&cover, &ticks, now_ms);
        change(&cover, &churn, now_ms, topic, topic_at(shape, which, topic), true);
    }
    if (changes > 0) print_spent("churn", &churn, 2 * changes);
    for (uint32_t i = 0; i < topics; i++, now_ms += i % 100 == 0) {
        change(&cover, &gone, now_ms, topic, topic_at(shape, i, topic), false);
        tick(&cover, &ticks, now_ms);
    }
    print_spent("delete", &gone, topics);
    printf("  ticks: the longest %.0f us; %llu changes told in all\n", ticks.longest * 1e6, (unsigned long long)told);
    cover_free(&cover);
}

/* ---- the cliff ---- */

enum { SITES = 100, LINES = 10, DEVICES = 100, METRICS = 10, TOPICS = SITES * LINES * DEVICES * METRICS };

static size_t tree_topic(uint32_t i, char out[512]) {
    return (size_t)sprintf(out, "site-%u/line-%u/dev-%u/m%u", i / (LINES * DEVICES * METRICS),
                           i / (DEVICES * METRICS) % LINES, i / METRICS % DEVICES, i % METRICS);
}

static struct subs *rows;
static struct subscriber reader = {.kind = SUBSCRIBER_PEER};
static bool on_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown) {
    static const struct subscription plain = {.qos = 0};
    (void)context, (void)kind;
    if (shown)
        subs_add(rows, filter, size, &reader, &plain);
    else
        subs_remove(rows, filter, size, &reader);
    return true;
}

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscriber, (void)subscription;
    *(bool *)context = true;
}

static bool comes_in(const char *topic, size_t size) {
    bool hit = false;
    subs_match(rows, topic, size, on_hit, &hit);
    return hit;
}

static void print_over(const char *when, const struct cover *cover, const bool *wanted, uint32_t wanted_count) {
    char topic[512];
    uint32_t unwanted = 0, missed = 0;
    for (uint32_t i = 0; i < TOPICS; i++) {
        bool in = comes_in(topic, tree_topic(i, topic));
        unwanted += in && !wanted[i];
        missed += !in && wanted[i];
    }
    printf("  %-14s %4u rows: %7u unwanted topics (%6.1f %% of those wanted, %5.2f %% of all), %u missed; %llu merges, "
           "%llu splits\n",
           when, cover->row_count, unwanted, 100.0 * unwanted / wanted_count, 100.0 * unwanted / TOPICS, missed,
           (unsigned long long)cover->merges, (unsigned long long)cover->splits);
}

static void cliff_at(uint32_t rows_max, int minutes) {
    bool *wanted = calloc(TOPICS, sizeof *wanted);
    struct cover_options options = {.kind = GOSSIP_NEWSUB, .rows_max = rows_max, .seed = 1, .on_change = on_row};
    struct cover cover;
    uint32_t wanted_count = 0;
    uint64_t now_ms = 1000;
    char topic[512];
    if (!wanted) abort();
    rows = subs_new(1);
    cover_init(&cover, &options);
    for (uint32_t i = 0; i < 803 * METRICS; i++)
        wanted[42 * LINES * DEVICES * METRICS + i] = true;
    for (uint32_t device = 0; device < 50; device++)
        for (uint32_t metric = 0, at = roll(TOPICS / METRICS) * METRICS; metric < METRICS; metric++)
            wanted[at + metric] = true;
    for (uint32_t i = 0; i < 200; i++)
        wanted[roll(TOPICS)] = true;
    uint32_t order = 7919; /* in no order of the tree */
    for (uint32_t i = 0; i < TOPICS; i++) {
        uint32_t which = (uint32_t)((uint64_t)i * order % TOPICS);
        if (!wanted[which]) continue;
        wanted_count++;
        if (!cover_put(&cover, now_ms, topic, tree_topic(which, topic))) abort();
    }
    printf("%u of %u topics wanted\n", wanted_count, (unsigned)TOPICS);
    print_over("at first", &cover, wanted, wanted_count);
    for (int minute = 0; minute < minutes; minute++) {
        for (uint32_t i = 0; i < 1000; i++) {
            uint32_t which = roll(TOPICS);
            size_t size = tree_topic(which, topic);
            if (wanted[which])
                cover_note_wanted(&cover, now_ms, 1);
            else if (comes_in(topic, size))
                cover_note_unwanted(&cover, now_ms, topic, size);
            now_ms += 60;
            if (cover_deadline_ms(&cover) <= now_ms) cover_tick(&cover, now_ms);
        }
    }
    if (minutes > 0) print_over("having learnt", &cover, wanted, wanted_count);
    cover_free(&cover);
    subs_free(rows);
    free(wanted);
}

static void cliff(int count, char **arguments) {
    uint32_t one = (uint32_t)atol(option(count, arguments, "--rows", "0"));
    int minutes = atoi(option(count, arguments, "--learn", "60"));
    static const uint32_t some[] = {1024, 512, 256, 128, 64, 16};
    for (size_t i = 0; one == 0 && i < sizeof some / sizeof *some; i++) {
        dice = 88172645463325252u;
        cliff_at(some[i], minutes);
    }
    if (one > 0) cliff_at(one, minutes);
}

int main(int count, char **arguments) {
    if (count >= 2 && strcmp(arguments[1], "speed") == 0)
        speed(count, arguments);
    else if (count >= 2 && strcmp(arguments[1], "cliff") == 0)
        cliff(count, arguments);
    else
        return fprintf(stderr, "usage: bench_covers speed|cliff [OPTIONS]; see the top of tests/bench/covers.c\n"), 2;
    return 0;
}
