#include "tools/simulate/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/commands.h"
#include "tools/complain.h"
#include "tools/options.h"
#include "tools/simulate/plan_values.h"
#include "tools/simulate/report.h"
#include "tools/simulate/world.h"
#include "tools/table.h"

#define LIST_MAX 16u
#define COLUMNS_MAX 14u
#define CELL 48u

enum { OPTION_STRATEGY = 256, OPTION_CUT, OPTION_MARKDOWN, OPTION_PART };
enum part { PART_KNOW = 1, PART_SLOW = 2, PART_CUT = 4 };

static const struct argp_option options[] = {
    {"brokers", 'b', "LIST", 0, "Numbers of brokers; 3,100,1000,10000 if not given", 0},
    {"loss", 'l', "LIST", 0, "Shares of datagrams that are lost; 0,5%,20%,40% if not given", 0},
    {"cut", OPTION_CUT, "LIST", 0, "How long halves are cut apart; 10s,10m,24h if not given", 0},
    {"strategy", OPTION_STRATEGY, "LIST", 0, "Protocols; hobnob,memberlist,memberlist-join if not given", 0},
    {"part", OPTION_PART, "LIST", 0, "Of: know (rows, crashes, bytes, joins), slow (false deaths), cut (healing)", 0},
    {"seed", 's', "N", 0, "Draw everything from this seed; 1 if not given", 1},
    {"markdown", OPTION_MARKDOWN, NULL, 0, "Print tables in Markdown, each as soon as it is there", 1},
    {"quiet", 'q', NULL, 0, "Do not say on standard error what is being run", 1},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct wanted {
    uint64_t brokers[LIST_MAX], cuts[LIST_MAX], seed;
    double losses[LIST_MAX];
    const struct strategy *strategies[LIST_MAX];
    size_t broker_count, cut_count, loss_count, strategy_count;
    unsigned parts;
    bool markdown, quiet;
};

/* ---- options ---- */

static bool next_word(const char **list, char word[32]) {
    size_t size = strcspn(*list, ",");
    if (size == 0 || size >= 32) return false;
    memcpy(word, *list, size);
    word[size] = '\0';
    *list += size + ((*list)[size] == ',');
    return true;
}

static bool take_word(struct wanted *wanted, int key, const char *word) {
    static const char *const parts[] = {"know", "slow", "cut"};
    switch (key) {
    case 'b':
        return wanted->broker_count < LIST_MAX &&
               plan_parse_count(word, PLAN_BROKERS_MAX, &wanted->brokers[wanted->broker_count]) &&
               wanted->brokers[wanted->broker_count++] >= 2;
    case 'l':
        return wanted->loss_count < LIST_MAX && plan_parse_share(word, &wanted->losses[wanted->loss_count]) &&
               wanted->losses[wanted->loss_count++] < 1;
    case OPTION_CUT:
        return wanted->cut_count < LIST_MAX && plan_parse_us(word, &wanted->cuts[wanted->cut_count]) &&
               wanted->cuts[wanted->cut_count++] > 0;
    case OPTION_STRATEGY:
        return wanted->strategy_count < LIST_MAX &&
               (wanted->strategies[wanted->strategy_count++] = strategy_find(word)) != NULL;
    default:
        for (unsigned i = 0; i < 3; i++) {
            if (strcmp(word, parts[i]) != 0) continue;
            wanted->parts |= 1u << i;
            return true;
        }
        return false;
    }
}

static error_t take_list(struct wanted *wanted, int key, const char *name, const char *text, const char *write) {
    char word[32];
    for (const char *rest = text; *rest != '\0';) {
        if (next_word(&rest, word) && take_word(wanted, key, word)) continue;
        complain_usage("--%s %s: is not understood; write %s", name, text, write);
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case 'b': return take_list(wanted, key, "brokers", text, "numbers from 2, such as 3,100");
    case 'l': return take_list(wanted, key, "loss", text, "shares, such as 0,20%");
    case OPTION_CUT: return take_list(wanted, key, "cut", text, "times, such as 10s,10m");
    case OPTION_STRATEGY:
        return take_list(wanted, key, "strategy", text, "names of: hobnob,memberlist,memberlist-join");
    case OPTION_PART: return take_list(wanted, key, "part", text, "names of: know,slow,cut");
    case 's':
        if (plan_parse_count(text, UINT64_MAX / 2, &wanted->seed)) return 0;
        complain_usage("--seed %s: is not understood; write a whole number", text);
        return EINVAL;
    case OPTION_MARKDOWN: wanted->markdown = true; return 0;
    case 'q': wanted->quiet = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void set_defaults(struct wanted *wanted) {
    if (wanted->broker_count == 0) take_list(wanted, 'b', "", "3,100,1000,10000", "");
    if (wanted->loss_count == 0) take_list(wanted, 'l', "", "0,5%,20%,40%", "");
    if (wanted->cut_count == 0) take_list(wanted, OPTION_CUT, "", "10s,10m,24h", "");
    if (wanted->strategy_count == 0) take_list(wanted, OPTION_STRATEGY, "", "hobnob,memberlist,memberlist-join", "");
    if (wanted->parts == 0) wanted->parts = PART_KNOW | PART_SLOW | PART_CUT;
}

/* ---- tables ---- */

struct numbers_table {
    const struct wanted *wanted;
    struct table *table; /* NULL in Markdown, where rows go out at once */
    size_t columns;
};

static void markdown_row(const char *const *cells, size_t columns) {
    for (size_t i = 0; i < columns; i++)
        printf("| %s ", cells[i]);
    puts("|");
    fflush(stdout);
}

static bool begin_table(struct numbers_table *table, const struct wanted *wanted, const char *caption,
                        const char *const *titles, size_t columns) {
    *table = (struct numbers_table){.wanted = wanted, .columns = columns};
    printf("%s\n\n", caption);
    if (wanted->markdown) {
        static const char *const rule[COLUMNS_MAX] = {
            "---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:"};
        markdown_row(titles, columns);
        markdown_row(rule, columns);
        return true;
    }
    bool good = (table->table = table_new()) != NULL;
    for (size_t i = 0; good && i < columns; i++)
        good = table_add_column(table->table, titles[i], i >= 2);
    return good;
}

static bool add_row(struct numbers_table *table, char cells[COLUMNS_MAX][CELL]) {
    const char *row[COLUMNS_MAX];
    for (size_t i = 0; i < table->columns; i++)
        row[i] = cells[i];
    if (table->table) return table_add_row(table->table, row);
    markdown_row(row, table->columns);
    return true;
}

static bool end_table(struct numbers_table *table, bool good) {
    if (table->table && good) good = table_print(table->table);
    table_free(table->table);
    putchar('\n');
    return good;
}

static void time_cell(char cell[CELL], bool known, uint64_t us) {
    char text[24] = "-";
    if (known) report_time(us, text);
    snprintf(cell, CELL, "%s", text);
}

static void number_cell(char cell[CELL], double value) {
    if (value < 1e4)
        snprintf(cell, CELL, "%.0f", value);
    else
        snprintf(cell, CELL, "%.0fk", value / 1e3);
}

/* ---- runs ---- */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What an invariant says of it is not asked here: figures are wanted of runs that do not heal, too. */
static struct result *run(const struct wanted *wanted, struct plan *plan, const struct strategy *strategy) {
    static struct result result;
    double begun = now_s();
    if (!wanted->quiet)
        fprintf(stderr, "%s, %" PRIu32 " brokers, %g %% loss: %s\n", strategy->name, plan->broker_count,
                plan->weather.loss * 100, plan->title);
    struct world *world = world_new(plan, strategy, NULL, SABOTAGE_NONE);
    world_run(world, NULL, NULL);
    result = *measure_result(world->measure);
    result.wall_s = now_s() - begun;
    world_free(world);
    return &result;
}

static void plan_for(struct plan *plan, const struct wanted *wanted, uint64_t brokers, double loss, const char *title) {
    plan_init(plan);
    snprintf(plan->title, sizeof plan->title, "%s", title);
    plan_spread(plan, (uint32_t)brokers);
    plan->seed = wanted->seed;
    plan->weather.loss = loss;
    plan->load.filter_size = 24;
    plan->start_us = brokers > 100 ? 10 * AGENDA_S : 2 * AGENDA_S;
}

static void name_row(char cells[COLUMNS_MAX][CELL], uint64_t brokers, double loss, const struct strategy *strategy) {
    snprintf(cells[0], CELL, "%" PRIu64 "%s", brokers, "");
    snprintf(cells[1], CELL, "%s", strategy->name);
    snprintf(cells[2], CELL, "%g %%", loss * 100);
}

/* How far and how fast rows, crashes and newcomers are known, and for how many bytes. */
static bool row_of_know(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy) {
    struct plan plan;
    char cells[COLUMNS_MAX][CELL];
    plan_for(&plan, table->wanted, brokers, loss, "rows, crashes, joins");
    plan.load.change_us = (brokers > 1000 ? 600 : 60) * AGENDA_S;
    plan.idle_us = (brokers > 1000 ? 30 : 120) * AGENDA_S; /* long enough for a whole-state exchange of each */
    /* Crashes come when all agree: many that retransmit blindly need their exchanges of whole states for that. */
    uint64_t crashes_us = (brokers > 1000 ? 80 : brokers > 100 ? 420 : 160) * AGENDA_S;
    plan.duration_us = crashes_us + (brokers > 1000 ? 70 : 260) * AGENDA_S;
    struct plan_fault *crash = plan_add_fault(&plan);
    crash->kind = FAULT_CRASH;
    crash->broker = PLAN_ANY;
    crash->site = PLAN_ANY;
    crash->disk = DISK_LOST;
    crash->at_us = crashes_us;
    crash->for_us = 40 * AGENDA_S;
    crash->every_us = 60 * AGENDA_S;
    const struct result *result = run(table->wanted, &plan, strategy);
    name_row(cells, brokers, loss, strategy);
    bool known = result->know.count > 0, noticed = result->detect.count > 0, joined = result->join.count > 0;
    time_cell(cells[3], known, tally_at(&result->know, 0.5));
    time_cell(cells[4], known, tally_at(&result->know, 0.99));
    time_cell(cells[5], known, result->know.max);
    time_cell(cells[6], noticed, tally_at(&result->detect, 0.5));
    time_cell(cells[7], noticed, result->detect.max);
    number_cell(cells[8], result->idle_bytes_per_s);
    number_cell(cells[9], result->steady_bytes_per_s);
    time_cell(cells[10], joined, tally_at(&result->join, 0.5));
    number_cell(cells[11], joined ? (double)tally_at(&result->join_bytes, 0.5) : 0);
    number_cell(cells[12], strategy->core ? result->bytes_per_member : 0);
    if (!strategy->core) snprintf(cells[12], CELL, "-"); /* a model's memory says nothing */
    snprintf(cells[13], CELL, "%.1f s", result->wall_s);
    plan_free(&plan);
    return add_row(table, cells);
}

static bool print_know(const struct wanted *wanted) {
    static const char *const titles[] = {"brokers", "protocol",   "loss",         "row 50 %", "99 %",
                                         "last",    "down 50 %",  "last",         "idle B/s", "steady B/s",
                                         "join",    "join bytes", "bytes/member", "wall"};
    struct numbers_table table;
    bool good = begin_table(&table, wanted,
                            "Time until a row is known to half of the brokers, to 99 %, to the last; until a crash is "
                            "noticed; bytes that a broker sends; a start with an empty disk until it agrees, and what "
                            "it receives",
                            titles, 14);
    for (size_t n = 0; n < wanted->broker_count; n++)
        for (size_t l = 0; l < wanted->loss_count; l++)
            for (size_t s = 0; good && s < wanted->strategy_count; s++)
                good = row_of_know(&table, wanted->brokers[n], wanted->losses[l], wanted->strategies[s]);
    return end_table(&table, good);
}

static bool row_of_slow(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy) {
    char cells[COLUMNS_MAX][CELL];
    name_row(cells, brokers, loss, strategy);
    static const double shares[] = {0, 0.01, 0.2};
    for (size_t i = 0; i < 3; i++) {
        struct plan plan;
        plan_for(&plan, table->wanted, brokers, loss, "slow brokers");
        plan.slow_share = shares[i];
        plan.slow_us = 2 * AGENDA_S;
        plan.duration_us = (brokers > 1000 ? 60 : brokers > 100 ? 300 : 1800) * AGENDA_S;
        plan.settle_us = AGENDA_S;
        const struct result *result = run(table->wanted, &plan, strategy);
        if (result->broker_hours > 0)
            snprintf(cells[3 + i], CELL, "%.3g", (double)result->false_death_brokers / result->broker_hours);
        else
            snprintf(cells[3 + i], CELL, "-");
        plan_free(&plan);
    }
    return add_row(table, cells);
}

static bool print_slow(const struct wanted *wanted) {
    static const char *const titles[] = {"brokers", "protocol", "loss", "none slow", "1 % slow", "20 % slow"};
    struct numbers_table table;
    bool good = begin_table(
        &table, wanted, "Healthy brokers called down in a broker-hour, while others see all input 2 s late", titles, 6);
    for (size_t n = 0; n < wanted->broker_count; n++)
        for (size_t l = 0; l < wanted->loss_count; l++)
            for (size_t s = 0; good && s < wanted->strategy_count; s++)
                good = row_of_slow(&table, wanted->brokers[n], wanted->losses[l], wanted->strategies[s]);
    return end_table(&table, good);
}

/* A day of many brokers is many events. */
static bool is_too_much(uint64_t brokers, uint64_t cut_us) {
    return (double)brokers * (double)cut_us / 1e6 > 300000;
}

static bool row_of_cut(struct numbers_table *table, uint64_t brokers, uint64_t cut_us,
                       const struct strategy *strategy) {
    struct plan plan;
    char cells[COLUMNS_MAX][CELL], length[24];
    plan_for(&plan, table->wanted, brokers, 0, "halves cut apart");
    plan.load.change_us = 600 * AGENDA_S;
    struct plan_fault *cut = plan_add_fault(&plan);
    cut->kind = FAULT_PARTITION;
    cut->shape = SHAPE_HALF;
    cut->broker = cut->site = PLAN_ANY;
    cut->at_us = 40 * AGENDA_S;
    cut->for_us = cut_us;
    plan.duration_us = cut->at_us + cut_us + 300 * AGENDA_S;
    report_time(cut_us, length);
    snprintf(cells[0], CELL, "%" PRIu64, brokers);
    snprintf(cells[1], CELL, "%s", strategy->name);
    snprintf(cells[2], CELL, "%s", length);
    if (is_too_much(brokers, cut_us)) {
        snprintf(cells[3], CELL, "not run");
        snprintf(cells[4], CELL, "-");
    } else {
        plan.load.change_us = 0;
        const struct result *result = run(table->wanted, &plan, strategy);
        if (result->heal.count > 0)
            time_cell(cells[3], true, tally_at(&result->heal, 0.5));
        else
            snprintf(cells[3], CELL, "not in 5 min");
        snprintf(cells[4], CELL, "%.1f s", result->wall_s);
    }
    plan_free(&plan);
    return add_row(table, cells);
}

static bool print_cut(const struct wanted *wanted) {
    static const char *const titles[] = {"brokers", "protocol", "cut", "healed after", "wall"};
    struct numbers_table table;
    bool good = begin_table(&table, wanted, "Two halves that were cut apart: time until all agree again", titles, 5);
    for (size_t n = 0; n < wanted->broker_count; n++)
        for (size_t c = 0; c < wanted->cut_count; c++)
            for (size_t s = 0; good && s < wanted->strategy_count; s++)
                good = row_of_cut(&table, wanted->brokers[n], wanted->cuts[c], wanted->strategies[s]);
    return end_table(&table, good);
}

int numbers_command(int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        NULL,
        "Prints how fast and for how many bytes rows, crashes and newcomers become known, how often healthy brokers "
        "are "
        "taken for dead, and how long healing takes: for Hobnob's own gossip core, and for memberlist's published "
        "rules "
        "on the same networks.\v"
        "Everything takes hours; a part, such as --brokers 3,100 --loss 0,20%, minutes. The same options and seed give "
        "the same figures, but for wall.",
        NULL,
        NULL,
        NULL};
    struct wanted wanted = {.seed = 1};
    int code;
    if (!options_parse(&argp, argc, argv, &wanted, &code)) return code;
    set_defaults(&wanted);
    bool good = (!(wanted.parts & PART_KNOW) || print_know(&wanted)) &&
                (!(wanted.parts & PART_SLOW) || print_slow(&wanted)) &&
                (!(wanted.parts & PART_CUT) || print_cut(&wanted));
    if (good) return EXIT_GOOD;
    complain("simulate: memory is short; stop other programs");
    return EXIT_NO;
}
