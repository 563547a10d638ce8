#include "tools/simulate/numbers_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/simulate/report.h"
#include "tools/simulate/world.h"

/* What a row costs on one core of 2024, so that nobody waits for a day without having been told. */
#define JOIN_US 30.0     /* of a broker that comes to know another, */
#define SECOND_US 60.0   /* and of a simulated second of a broker */
#define BUSY_BY_LOSS 3.0 /* times more by share: what is lost is said again, */
#define BUSY_BY_SLOW 3.0 /* and whoever is late is suspected */

#define ROWS_WEIGHED 8u      /* of each kind and broker */
#define WEIGHED_MAX 1000u    /* brokers that share nothing */
#define ALONE 3u             /* brokers: what they take is nearly all for themselves */
#define SHARES 3u            /* of slow brokers */
#define SLOW_BROKER_S 60000u /* seconds of all together, by which one false death shows: 17 hours */

/* ---- cells ---- */

static void time_cell(char cell[NUMBERS_CELL], bool known, uint64_t us) {
    char text[24] = "-";
    if (known) report_time(us, text);
    snprintf(cell, NUMBERS_CELL, "%s", text);
}

static void number_cell(char cell[NUMBERS_CELL], double value) {
    if (value < 1e4)
        snprintf(cell, NUMBERS_CELL, "%.0f", value);
    else
        snprintf(cell, NUMBERS_CELL, "%.0fk", value / 1e3);
}

static void cost_cells(char (*cells)[NUMBERS_CELL], const struct cost *cost) {
    snprintf(cells[0], NUMBERS_CELL, "%.1f s", cost->wall_s);
    snprintf(cells[1], NUMBERS_CELL, "%.1f s", cost->cpu_s);
}

static void add_cost(struct cost *sum, const struct cost *cost) {
    sum->wall_s += cost->wall_s;
    sum->cpu_s += cost->cpu_s;
}

static void blank(struct numbers_row *row) {
    for (size_t i = 0; i < NUMBERS_COLUMNS_MAX; i++)
        snprintf(row->cells[i], NUMBERS_CELL, "-");
}

static void name_row(struct numbers_row *row, uint64_t brokers, const struct strategy *strategy, const char *third) {
    blank(row);
    snprintf(row->cells[0], NUMBERS_CELL, "%" PRIu64, brokers);
    snprintf(row->cells[1], NUMBERS_CELL, "%s", strategy->name);
    snprintf(row->cells[2], NUMBERS_CELL, "%s", third);
}

static void name_loss(struct numbers_row *row, uint64_t brokers, double loss, const struct strategy *strategy) {
    char text[24];
    snprintf(text, sizeof text, "%g %%", loss * 100);
    name_row(row, brokers, strategy, text);
}

/* ---- runs ---- */

/* False: it takes longer than is wanted, and the row says so. */
static bool is_affordable(const struct numbers_wanted *wanted, const struct plan *plan, unsigned runs,
                          struct numbers_row *row) {
    double brokers = plan->broker_count, seconds = (double)plan->duration_us / 1e6;
    double busy = 1 + BUSY_BY_LOSS * plan->weather.loss + BUSY_BY_SLOW * plan->slow_share;
    double us = runs * busy * (brokers * brokers * JOIN_US + brokers * seconds * SECOND_US);
    char text[24];
    if (us <= (double)wanted->longest_us) return true;
    report_time((uint64_t)us, text);
    snprintf(row->cells[NUMBERS_NAMES], NUMBERS_CELL, "not run: takes about %s", text);
    return false;
}

/* What an invariant says of it is not asked here: figures are wanted of runs that do not heal, too. */
static struct result *run(const struct numbers_wanted *wanted, struct plan *plan, const struct strategy *strategy) {
    static struct result result;
    struct cost begun = cost_now();
    if (!wanted->quiet)
        fprintf(stderr, "%s, %" PRIu32 " brokers, %g %% loss: %s\n", strategy->name, plan->broker_count,
                plan->weather.loss * 100, plan->title);
    struct world *world = world_new(plan, strategy, NULL, SABOTAGE_NONE);
    world_run(world, NULL, NULL);
    result = *measure_result(world->measure);
    result.cost = cost_since(&begun);
    world_free(world);
    return &result;
}

static void plan_for(struct plan *plan, const struct numbers_wanted *wanted, uint64_t brokers, double loss,
                     const char *title) {
    plan_init(plan);
    snprintf(plan->title, sizeof plan->title, "%s", title);
    plan_spread(plan, (uint32_t)brokers);
    plan->seed = wanted->seed;
    plan->weather.loss = loss;
    plan->load.filter_size = 24;
    plan->start_us = (brokers > 1000 ? 120 : brokers > 100 ? 10 : 2) * AGENDA_S;
}

/* ---- rows ---- */

static void plan_know(struct plan *plan, const struct numbers_wanted *wanted, uint64_t brokers, double loss) {
    plan_for(plan, wanted, brokers, loss, "rows, crashes, joins");
    /* Some changes a second of all are enough. */
    plan->load.change_us = (brokers > 1000 ? brokers * 6 / 10 : brokers > 100 ? 600u : 60u) * AGENDA_S;
    plan->idle_us = (brokers > 1000 ? 30 : 120) * AGENDA_S; /* long enough for a whole-state exchange of each */
    /* Crashes come when all agree: many that retransmit blindly need their exchanges of whole states for that. */
    uint64_t crashes_us = (brokers > 1000 ? 240 : brokers > 100 ? 420 : 160) * AGENDA_S;
    plan->duration_us = crashes_us + (brokers > 1000 ? 70 : 260) * AGENDA_S;
    struct plan_fault *crash = plan_add_fault(plan);
    crash->kind = FAULT_CRASH;
    crash->disk = DISK_LOST;
    crash->at_us = crashes_us;
    crash->for_us = 40 * AGENDA_S;
    crash->every_us = 60 * AGENDA_S;
}

bool numbers_row_know(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy) {
    struct plan plan;
    struct numbers_row row;
    name_loss(&row, brokers, loss, strategy);
    if (numbers_table_again(table, &row)) return true;
    plan_know(&plan, table->wanted, brokers, loss);
    if (is_affordable(table->wanted, &plan, 1, &row)) {
        const struct result *result = run(table->wanted, &plan, strategy);
        bool known = result->know.count > 0, noticed = result->detect.count > 0, joined = result->join.count > 0;
        time_cell(row.cells[3], known, tally_at(&result->know, 0.5));
        time_cell(row.cells[4], known, tally_at(&result->know, 0.99));
        time_cell(row.cells[5], known, result->know.max);
        time_cell(row.cells[6], noticed, tally_at(&result->detect, 0.5));
        time_cell(row.cells[7], noticed, result->detect.max);
        number_cell(row.cells[8], result->idle_bytes_per_s);
        number_cell(row.cells[9], result->steady_bytes_per_s);
        time_cell(row.cells[10], joined, tally_at(&result->join, 0.5));
        if (joined) number_cell(row.cells[11], (double)tally_at(&result->join_bytes, 0.5));
        cost_cells(&row.cells[12], &result->cost);
    }
    plan_free(&plan);
    return numbers_table_add(table, &row);
}

static void plan_slow(struct plan *plan, const struct numbers_wanted *wanted, uint64_t brokers, double loss,
                      double share) {
    plan_for(plan, wanted, brokers, loss, "slow brokers");
    plan->slow_share = share;
    plan->slow_us = 2 * AGENDA_S;
    plan->duration_us = (brokers > 100 ? 120 : SLOW_BROKER_S / brokers) * AGENDA_S;
    plan->settle_us = AGENDA_S;
}

bool numbers_row_slow(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy) {
    static const double shares[SHARES] = {0, 0.01, 0.2};
    struct plan plan;
    struct numbers_row row;
    struct cost cost = {0};
    name_loss(&row, brokers, loss, strategy);
    if (numbers_table_again(table, &row)) return true;
    plan_slow(&plan, table->wanted, brokers, loss, shares[SHARES - 1]);
    bool affordable = is_affordable(table->wanted, &plan, SHARES, &row);
    plan_free(&plan);
    for (size_t i = 0; affordable && i < SHARES; i++) {
        plan_slow(&plan, table->wanted, brokers, loss, shares[i]);
        const struct result *result = run(table->wanted, &plan, strategy);
        if (result->broker_hours > 0)
            snprintf(row.cells[NUMBERS_NAMES + i], NUMBERS_CELL, "%.3g",
                     (double)result->false_death_brokers / result->broker_hours);
        add_cost(&cost, &result->cost);
        plan_free(&plan);
    }
    if (affordable) cost_cells(&row.cells[NUMBERS_NAMES + SHARES], &cost);
    return numbers_table_add(table, &row);
}

bool numbers_row_cut(struct numbers_table *table, uint64_t brokers, uint64_t cut_us, const struct strategy *strategy) {
    struct plan plan;
    struct numbers_row row;
    char length[24];
    report_time(cut_us, length);
    name_row(&row, brokers, strategy, length);
    if (numbers_table_again(table, &row)) return true;
    plan_for(&plan, table->wanted, brokers, 0, "halves cut apart");
    struct plan_fault *cut = plan_add_fault(&plan);
    cut->kind = FAULT_PARTITION;
    cut->shape = SHAPE_HALF;
    cut->at_us = (brokers > 1000 ? 240 : brokers > 100 ? 120 : 40) * AGENDA_S;
    cut->for_us = cut_us;
    plan.duration_us = cut->at_us + cut_us + 300 * AGENDA_S;
    if (is_affordable(table->wanted, &plan, 1, &row)) {
        const struct result *result = run(table->wanted, &plan, strategy);
        if (result->heal.count > 0)
            time_cell(row.cells[3], true, tally_at(&result->heal, 0.5));
        else
            snprintf(row.cells[3], NUMBERS_CELL, "not in 5 min");
        cost_cells(&row.cells[4], &result->cost);
    }
    plan_free(&plan);
    return numbers_table_add(table, &row);
}

/* What one broker takes, in a federation whose brokers share nothing, as daemons do not; in bytes. */
static double weigh(const struct numbers_wanted *wanted, uint64_t brokers, uint32_t rows, struct cost *cost) {
    struct plan plan;
    plan_for(&plan, wanted, brokers, 0, "memory");
    plan.alone = true;
    plan.load.publishers = plan.load.subscribers = rows;
    plan.idle_us = 30 * AGENDA_S;
    plan.duration_us = 90 * AGENDA_S;
    const struct result *result = run(wanted, &plan, &strategy_hobnob);
    add_cost(cost, &result->cost);
    double bytes = result->bytes_per_member * (double)brokers;
    plan_free(&plan);
    return bytes;
}

bool numbers_row_memory(struct numbers_table *table, uint64_t brokers) {
    struct numbers_row row;
    struct cost cost = {0};
    name_row(&row, brokers, &strategy_hobnob, "0 %");
    if (numbers_table_again(table, &row)) return true;
    if (brokers > WEIGHED_MAX) {
        snprintf(row.cells[3], NUMBERS_CELL, "not run: a member takes the same at 1,000");
        return numbers_table_add(table, &row);
    }
    double empty = weigh(table->wanted, brokers, 0, &cost);
    double full = weigh(table->wanted, brokers, ROWS_WEIGHED, &cost);
    number_cell(row.cells[3], empty);
    if (brokers > ALONE)
        number_cell(row.cells[4], (empty - weigh(table->wanted, ALONE, 0, &cost)) / (double)(brokers - ALONE));
    number_cell(row.cells[5], (full - empty) / (double)(brokers * 2 * ROWS_WEIGHED));
    cost_cells(&row.cells[6], &cost);
    return numbers_table_add(table, &row);
}
