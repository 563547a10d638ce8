/* simulator: runs the scenarios, and random schedules from a band of seeds. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/scenario.h"

#define RANDOM_RUNS 40u
#define HOSTILE_ONE_IN 10u /* for so many random runs there is one with a hostile broker */

struct settings {
    uint64_t seed;
    unsigned runs;
    const char *scenario;
    bool list, json, trace;
};

struct result {
    bool good;
    uint64_t hash, lines, virtual_ms, events;
    char failure[CHECKS_WHY + 200];
};

static const struct scenario *const families[] = {scenarios_delivery, scenarios_links,  scenarios_datagrams,
                                                  scenarios_faults,   scenarios_gossip, scenarios_share,
                                                  scenarios_trust,    scenarios_disk,   scenarios_hostile};

static struct result play(const struct scenario *scenario, uint64_t seed, unsigned variant, FILE *trace) {
    struct world_options options = {.seed = seed * 1000 + variant, .trace = trace};
    struct run run = {.seed = seed, .variant = variant};
    if (scenario->adjust != NULL) scenario->adjust(&options);
    struct world *world = world_new(&options);
    struct result result = {.good = scenario->play(&run, world)};
    if (heap_fired(world->heap) >= WORLD_EVENTS_MAX)
        result.good = run_fail(&run, "a storm: %" PRIu64 " events", heap_fired(world->heap));
    trace_line(&world->trace, heap_now_us(world->heap), "run", "%s", result.good ? "good" : run.failure);
    result.hash = world->trace.hash;
    result.lines = world->trace.lines;
    result.virtual_ms = world_now_ms(world);
    result.events = heap_fired(world->heap);
    memcpy(result.failure, run.failure, sizeof result.failure);
    world_free(world);
    return result;
}

/* Twice: the second run must be the first one again. */
static struct result play_twice(const struct scenario *scenario, uint64_t seed, unsigned variant, bool trace) {
    struct result result = play(scenario, seed, variant, trace ? stdout : NULL),
                  again = play(scenario, seed, variant, NULL);
    if (result.good && again.hash != result.hash) {
        result.good = false;
        snprintf(result.failure, sizeof result.failure,
                 "not repeatable: trace hash %016" PRIx64 " (%" PRIu64 " lines), then %016" PRIx64 " (%" PRIu64
                 " lines)",
                 result.hash, result.lines, again.hash, again.lines);
    }
    return result;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_json_text(const char *text) {
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        if ((unsigned char)*text >= 0x20) putchar(*text);
    }
    putchar('"');
}

static void report(const struct settings *settings, const struct scenario *scenario, uint64_t seed, unsigned variant,
                   const struct result *result, double took_s) {
    if (settings->json) {
        printf("{\"scenario\":\"%s\",\"variant\":%u,\"seed\":%" PRIu64 ",\"passed\":%s,\"trace_hash\":\"%016" PRIx64
               "\",\"virtual_ms\":%" PRIu64 ",\"events\":%" PRIu64 ",\"seconds\":%.3f",
               scenario->name, variant, seed, result->good ? "true" : "false", result->hash, result->virtual_ms,
               result->events, took_s);
        if (!result->good) {
            fputs(",\"failure\":", stdout);
            print_json_text(result->failure);
        }
        puts("}");
    } else {
        char name[96];
        snprintf(name, sizeof name, "%s/%u", scenario->name, variant);
        printf("%-4s %-62s seed %-4" PRIu64 " trace %016" PRIx64 " %9.1f s virtual %6.2f s real\n",
               result->good ? "ok" : "FAIL", name, seed, result->hash, (double)result->virtual_ms / 1000, took_s);
        if (!result->good)
            printf("     %s\n     again: simulator --seed %" PRIu64 " --scenario %s/%u --trace\n", result->failure,
                   seed, scenario->name, variant);
    }
    fflush(stdout);
}

/* "name", or "name/variant" for one of them. */
static bool is_wanted(const struct settings *settings, const struct scenario *scenario, unsigned variant) {
    if (settings->scenario == NULL) return true;
    size_t size = strcspn(settings->scenario, "/");
    if (strlen(scenario->name) != size || strncmp(scenario->name, settings->scenario, size) != 0) return false;
    return settings->scenario[size] == '\0' || strtoul(settings->scenario + size + 1, NULL, 10) == variant;
}

struct tally {
    unsigned passed, failed;
};

static void run_one(const struct settings *settings, const struct scenario *scenario, uint64_t seed,
                    struct tally *tally) {
    for (unsigned variant = 0; variant == 0 || variant < scenario->variants; variant++) {
        if (!is_wanted(settings, scenario, variant)) continue;
        double began_s = seconds();
        struct result result = play_twice(scenario, seed, variant, settings->trace);
        report(settings, scenario, seed, variant, &result, seconds() - began_s);
        if (result.good)
            tally->passed++;
        else
            tally->failed++;
    }
}

static struct tally run_all(const struct settings *settings) {
    struct tally tally = {0};
    for (size_t family = 0; family < sizeof families / sizeof *families; family++)
        for (const struct scenario *scenario = families[family]; scenario->name != NULL; scenario++)
            run_one(settings, scenario, settings->seed, &tally);
    for (unsigned i = 0; i < settings->runs; i++)
        run_one(settings, &scenario_random, settings->seed + i, &tally);
    bool alone = settings->scenario != NULL;
    for (unsigned i = 0; i < (alone ? settings->runs : settings->runs / HOSTILE_ONE_IN); i++)
        run_one(settings, &scenario_random_hostile, settings->seed + i, &tally);
    return tally;
}

static int list(void) {
    for (size_t family = 0; family < sizeof families / sizeof *families; family++)
        for (const struct scenario *scenario = families[family]; scenario->name != NULL; scenario++)
            printf("%s (%u)\n", scenario->name, scenario->variants == 0 ? 1 : scenario->variants);
    printf("%s\n%s\n", scenario_random.name, scenario_random_hostile.name);
    return 0;
}

static const char usage[] =
    "usage: simulator [--seed N] [--runs N] [--scenario NAME[/VARIANT]] [--list] [--trace] [--json]\n"
    "  --seed N      the first seed (1)\n"
    "  --runs N      random schedules, one per seed from the first on (40; with --scenario random 1),\n"
    "                and for every tenth one more with a hostile broker (--scenario random_hostile)\n"
    "  --scenario    only this one; --list names them\n"
    "  --trace       prints what happens, line by line\n"
    "  --json        one object per line instead of a table\n";

/* Returns -1 to go on, else the exit status. */
static int read_options(int count, char **words, struct settings *settings) {
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},     {"runs", required_argument, NULL, 'r'},
        {"scenario", required_argument, NULL, 'n'}, {"list", no_argument, NULL, 'l'},
        {"trace", no_argument, NULL, 't'},          {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    bool runs_given = false;
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        switch (option) {
        case 's': settings->seed = strtoull(optarg, NULL, 10); break;
        case 'r':
            settings->runs = (unsigned)strtoul(optarg, NULL, 10);
            runs_given = true;
            break;
        case 'n': settings->scenario = optarg; break;
        case 'l': settings->list = true; break;
        case 't': settings->trace = true; break;
        case 'j': settings->json = true; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    }
    if (optind != count) {
        fputs(usage, stderr);
        return 2;
    }
    if (settings->scenario != NULL && !runs_given) settings->runs = 1;
    return -1;
}

int main(int count, char **words) {
    struct settings settings = {.seed = 1, .runs = RANDOM_RUNS};
    int status = read_options(count, words, &settings);
    if (status >= 0) return status;
    if (settings.list) return list();
    struct tally tally = run_all(&settings);
    if (tally.passed + tally.failed == 0) {
        fprintf(stderr, "simulator: there is no scenario %s; --list names them\n",
                settings.scenario == NULL ? "" : settings.scenario);
        return 2;
    }
    if (!settings.json) printf("%u passed, %u failed\n", tally.passed, tally.failed);
    return tally.failed == 0 ? 0 : 1;
}
