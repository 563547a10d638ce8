/* hobnob simulate: a federation on a virtual network, before it is built. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/complain.h"
#include "tools/options.h"
#include "tools/simulate/numbers.h"
#include "tools/simulate/plan_draw.h"
#include "tools/simulate/plan_read.h"
#include "tools/simulate/plan_values.h"
#include "tools/simulate/report.h"
#include "tools/simulate/world.h"

#define PROGRESS_FROM_S 3.0 /* a run that takes longer says how far it is, */
#define PROGRESS_EVERY_S 1.0

enum { OPTION_SEEDS = 256, OPTION_TRACE, OPTION_DATAGRAMS, OPTION_STRATEGY, OPTION_NUMBERS };

static const struct argp_option options[] = {
    {"seed", 's', "N", 0, "Draw everything from this seed; the plan's, or 1, if not given", 0},
    {"seeds", OPTION_SEEDS, "N", 0, "Run so many seeds, one after another, from the first; only what breaks is told",
     0},
    {"brokers", 'b', "N", 0, "So many brokers, in the plan's proportion of sites", 1},
    {"loss", 'l', "SHARE", 0, "Loss of datagrams everywhere, such as 20%", 1},
    {"duration", 'd', "TIME", 0, "How long faults and load last, such as 10m", 1},
    {"strategy", OPTION_STRATEGY, "NAME", 0,
     "The protocol that the brokers speak: hobnob (if not given), memberlist or memberlist-join, by memberlist's "
     "published rules",
     1},
    {"json", 'j', NULL, 0, "Print the result as JSON, for programs", 2},
    {"trace", OPTION_TRACE, "FILE", 0, "Write what happens to a file, a line each", 2},
    {"datagrams", OPTION_DATAGRAMS, NULL, 0, "Each datagram too (with --trace)", 2},
    {"quiet", 'q', NULL, 0, "No progress on standard error", 2},
    {"numbers", OPTION_NUMBERS, NULL, 0,
     "As the first word: no plan, but tables of figures, beside those of memberlist's published rules; "
     "\"hobnob simulate --numbers --help\" has its options",
     3},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct wanted {
    const char *file, *trace_path, *loss_text, *duration_text;
    const struct strategy *strategy;
    uint64_t seed, seeds, brokers, duration_us;
    double loss;
    bool has_seed, has_loss, json, datagrams, quiet;
};

static error_t set_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value) {
    if (plan_parse_count(text, most, value) && *value >= least) return 0;
    complain_usage("--%s %s: must be a whole number from %" PRIu64 " to %" PRIu64, option, text, least, most);
    return EINVAL;
}

static error_t set_strategy(struct wanted *wanted, const char *text) {
    const struct strategy *strategy;
    char names[200] = "";
    wanted->strategy = strategy_find(text);
    if (wanted->strategy) return 0;
    for (size_t i = 0; (strategy = strategy_at(i)) != NULL; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i > 0 ? ", " : "", strategy->name);
    complain_usage("--strategy %s: no such strategy; write one of: %s", text, names);
    return EINVAL;
}

static error_t set_text(const char *option, bool good, const char *text, const char *write) {
    if (good) return 0;
    complain_usage("--%s %s: is not understood; write %s", option, text, write);
    return EINVAL;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case 's': wanted->has_seed = true; return set_count("seed", text, 0, UINT64_MAX / 2, &wanted->seed);
    case OPTION_SEEDS: return set_count("seeds", text, 1, 1000000000, &wanted->seeds);
    case 'b': return set_count("brokers", text, 2, PLAN_BROKERS_MAX, &wanted->brokers);
    case 'l':
        wanted->has_loss = true;
        wanted->loss_text = text;
        return set_text("loss", plan_parse_share(text, &wanted->loss), text, "a share, such as 20%");
    case 'd':
        wanted->duration_text = text;
        return set_text("duration", plan_parse_us(text, &wanted->duration_us) && wanted->duration_us > 0, text,
                        "a time, such as 10m");
    case OPTION_STRATEGY: return set_strategy(wanted, text);
    case 'j': wanted->json = true; return 0;
    case OPTION_TRACE: wanted->trace_path = text; return 0;
    case OPTION_DATAGRAMS: wanted->datagrams = true; return 0;
    case 'q': wanted->quiet = true; return 0;
    case OPTION_NUMBERS:
        complain_usage("--numbers: has options of its own; write it first, hobnob simulate --numbers");
        return EINVAL;
    case ARGP_KEY_ARG:
        if (wanted->file) {
            complain_usage("%s: one plan is enough; leave it out", text);
            return EINVAL;
        }
        wanted->file = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the plan ---- */

static void override(const struct wanted *wanted, struct plan *plan) {
    if (wanted->brokers > 0) plan_spread(plan, (uint32_t)wanted->brokers);
    if (wanted->duration_us > 0) plan->duration_us = wanted->duration_us;
    if (!wanted->has_loss) return;
    plan->weather.loss = wanted->loss;
    for (size_t i = 0; i < plan->path_count; i++)
        plan->paths[i].weather.loss = wanted->loss;
}

/* The plan of this seed; false after complaints. */
static bool make_plan(const struct wanted *wanted, uint64_t seed, struct plan *plan) {
    static struct plan_complaints complaints;
    if (!wanted->file) {
        plan_draw(plan, seed);
    } else if (!plan_read(plan, wanted->file, &complaints)) {
        for (size_t i = 0; i < complaints.count; i++) {
            if (complaints.items[i].line > 0)
                complain("%s:%d: %s", wanted->file, complaints.items[i].line, complaints.items[i].text);
            else
                complain("%s: %s", wanted->file, complaints.items[i].text);
        }
        plan_free(plan);
        return false;
    }
    if (wanted->has_seed || wanted->seeds > 0) plan->seed = seed;
    override(wanted, plan);
    return true;
}

/* What is wrong in the plan is said when it is made. */
static uint64_t first_seed(const struct wanted *wanted) {
    static struct plan_complaints unsaid;
    struct plan plan;
    if (wanted->has_seed || !wanted->file) return wanted->has_seed ? wanted->seed : 1;
    uint64_t seed = plan_read(&plan, wanted->file, &unsaid) ? plan.seed : 1;
    plan_free(&plan);
    return seed;
}

/* ---- a run ---- */

struct progress {
    struct cost begun;
    double told_s;
    bool terminal;
};

static void on_progress(void *context, const struct world *world) {
    struct progress *progress = context;
    double took_s = cost_since(&progress->begun).wall_s;
    char done[24], all[24];
    if (took_s < PROGRESS_FROM_S || took_s - progress->told_s < PROGRESS_EVERY_S) return;
    progress->told_s = took_s;
    report_time(world_now_us(world), done);
    report_time(world->plan->duration_us, all);
    fprintf(stderr, "%ssimulated %s of %s, %" PRIu64 " events, %.0f s%s", progress->terminal ? "\r\033[K" : "", done,
            all, world->events, took_s, progress->terminal ? "" : "\n");
}

static void clear_progress(const struct progress *progress) {
    if (progress->terminal && progress->told_s > 0) fputs("\r\033[K", stderr);
}

/* Runs one seed. True when all held; the result and the reason are copied out. */
static bool run(const struct wanted *wanted, const struct plan *plan, FILE *trace, struct result *result,
                char why[WORLD_WHY_MAX]) {
    struct progress progress = {.begun = cost_now(), .terminal = isatty(STDERR_FILENO) != 0};
    struct world *world = world_new(plan, wanted->strategy, trace, SABOTAGE_NONE);
    world->trace_datagrams = wanted->datagrams;
    bool good = world_run(world, wanted->quiet ? NULL : on_progress, &progress);
    clear_progress(&progress);
    *result = *measure_result(world->measure);
    result->cost = cost_since(&progress.begun);
    memcpy(why, world->why, WORLD_WHY_MAX);
    world_free(world);
    return good;
}

/* How to see it again. */
static void tell_again(const struct wanted *wanted, uint64_t seed) {
    char brokers[40] = "";
    if (wanted->brokers > 0) snprintf(brokers, sizeof brokers, " --brokers %" PRIu64, wanted->brokers);
    const char *parts[] = {
        wanted->loss_text ? " --loss " : "",         wanted->loss_text ? wanted->loss_text : "",
        wanted->duration_text ? " --duration " : "", wanted->duration_text ? wanted->duration_text : "",
        wanted->strategy ? " --strategy " : "",      wanted->strategy ? wanted->strategy->name : ""};
    complain("seed %" PRIu64 " broke; to see how: hobnob simulate%s%s --seed %" PRIu64 "%s%s%s%s%s%s%s --trace FILE",
             seed, wanted->file ? " " : "", wanted->file ? wanted->file : "", seed, brokers, parts[0], parts[1],
             parts[2], parts[3], parts[4], parts[5]);
}

static int run_one(const struct wanted *wanted, FILE *trace) {
    struct plan plan;
    char why[WORLD_WHY_MAX];
    static struct result result;
    uint64_t seed = first_seed(wanted);
    if (!make_plan(wanted, seed, &plan)) return EXIT_NO;
    bool good = run(wanted, &plan, trace, &result, why);
    bool printed = wanted->json
                       ? report_print_json(&plan, wanted->strategy ? wanted->strategy->name : "hobnob", &result, why)
                       : report_print(&plan, &result, why);
    if (!printed) complain("simulate: memory is short; stop other programs");
    fflush(stdout);
    if (!good) tell_again(wanted, plan.seed);
    plan_free(&plan);
    return good && printed ? EXIT_GOOD : EXIT_NO;
}

static int run_many(const struct wanted *wanted, FILE *trace) {
    uint64_t first = first_seed(wanted), broken = 0, events = 0, faults = 0;
    struct cost begun = cost_now();
    for (uint64_t seed = first; seed < first + wanted->seeds; seed++) {
        struct plan plan;
        char why[WORLD_WHY_MAX];
        static struct result result;
        if (!make_plan(wanted, seed, &plan)) return EXIT_NO;
        bool good = run(wanted, &plan, trace, &result, why);
        events += result.events;
        faults += result.faults;
        if (!good) {
            broken++;
            printf("seed %" PRIu64 ": %s\n", seed, why);
            fflush(stdout);
            tell_again(wanted, seed);
        }
        plan_free(&plan);
    }
    printf("%" PRIu64 " seeds, %" PRIu64 " broke an invariant; %" PRIu64 " faults, %" PRIu64 " events, %.1f s\n",
           wanted->seeds, broken, faults, events, cost_since(&begun).wall_s);
    return broken > 0 ? EXIT_NO : EXIT_GOOD;
}

int command_simulate(int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "[PLAN.yaml]",
        "Runs a federation of brokers, their real gossip core, on a virtual network and a virtual clock: loss, delay, "
        "NAT, "
        "cuts, crashes, clones, hostile brokers. After every event it checks that what each broker shows is what the "
        "owner said, and in the end that all agree; and it tells how long things took.\v"
        "PLAN.yaml says what is there and what goes wrong when; examples/simulate has five. Without one, a small "
        "federation in which everything goes wrong is drawn from the seed.\n\n"
        "Examples:\n"
        "  hobnob simulate examples/simulate/ship.yaml\n"
        "  hobnob simulate examples/simulate/factory.yaml --brokers 1000 --loss 5%\n"
        "  hobnob simulate --seeds 2000               2,000 federations with all faults\n"
        "  hobnob simulate --numbers --brokers 3,100  figures, beside memberlist's\n\n"
        "The same plan and seed give the same run. Exit status: 0 all held, 1 an invariant broke (the seed is told) or "
        "the plan is wrong, 2 wrong usage.",
        NULL,
        NULL,
        NULL};
    struct wanted wanted = {0};
    int code;
    if (argc > 1 && strcmp(argv[1], "--numbers") == 0) {
        static char name[] = "hobnob simulate --numbers";
        argv[1] = name;
        return numbers_command(argc - 1, argv + 1);
    }
    if (!options_parse(&argp, argc, argv, &wanted, &code)) return code;
    if (wanted.datagrams && !wanted.trace_path)
        return complain_usage("--datagrams: needs --trace FILE, where they are written");
    if (wanted.seeds > 1 && wanted.trace_path)
        return complain_usage("--trace: is of one run; write --seed N in place of --seeds");
    if (wanted.seeds > 1 && wanted.json)
        return complain_usage("--json: is of one run; write --seed N in place of --seeds");
    FILE *trace = wanted.trace_path ? fopen(wanted.trace_path, "w") : NULL;
    if (wanted.trace_path && !trace) {
        complain("%s: cannot be written: %s; write --trace with the path of a file", wanted.trace_path,
                 strerror(errno));
        return EXIT_NO;
    }
    code = wanted.seeds > 0 ? run_many(&wanted, trace) : run_one(&wanted, trace);
    if (trace && fclose(trace) != 0) {
        complain("%s: cannot be written; check the disk", wanted.trace_path);
        return EXIT_NO;
    }
    return code;
}
