#include "tools/simulate/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/simulate/agenda.h"
#include "tools/table.h"

#define NOT_YET UINT64_MAX

void report_time(uint64_t us, char out[24]) {
    double value = (double)us;
    if (us == NOT_YET)
        snprintf(out, 24, "never");
    else if (value < 1e6)
        snprintf(out, 24, "%.0f ms", value / 1e3);
    else if (value < 120e6)
        snprintf(out, 24, "%.1f s", value / 1e6);
    else if (value < 7200e6)
        snprintf(out, 24, "%.1f min", value / 60e6);
    else
        snprintf(out, 24, "%.1f h", value / 3600e6);
}

static void bytes_text(double bytes, const char *unit, char out[24]) {
    if (bytes < 10000)
        snprintf(out, 24, "%.0f B%s", bytes, unit);
    else if (bytes < 1e7)
        snprintf(out, 24, "%.1f kB%s", bytes / 1e3, unit);
    else
        snprintf(out, 24, "%.1f MB%s", bytes / 1e6, unit);
}

/* ---- for people ---- */

static bool add_times(struct table *table, const char *what, const struct tally *tally) {
    char count[24], median[24], most[24], last[24];
    if (tally->count == 0) return true;
    snprintf(count, sizeof count, "%" PRIu64, tally->count);
    report_time(tally_at(tally, 0.5), median);
    report_time(tally_at(tally, 0.99), most);
    report_time(tally->max, last);
    return table_add_row(table, (const char *const[]){what, count, median, most, last});
}

static bool print_times(const struct result *result) {
    static const char *const titles[] = {"TIME", "COUNT", "MEDIAN", "99 %", "LONGEST"};
    struct table *table = table_new();
    bool good = table != NULL;
    for (size_t i = 0; good && i < 5; i++)
        good = table_add_column(table, titles[i], i > 0);
    good = good && add_times(table, "a change known to a broker", &result->know) &&
           add_times(table, "a change known to all", &result->know_last) &&
           add_times(table, "a crash noticed by a broker", &result->detect) &&
           add_times(table, "a crash noticed by all", &result->detect_last) &&
           add_times(table, "a start until it agrees", &result->join) &&
           add_times(table, "a cut healed until all agree", &result->heal) &&
           add_times(table, "a key ring given until all use it", &result->rings);
    bool any =
        result->know.count + result->detect.count + result->join.count + result->heal.count + result->rings.count > 0;
    if (good && any) good = table_print(table);
    if (good && any) printf("\n");
    table_free(table);
    return good;
}

static bool add_fact(struct table *table, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool add_fact(struct table *table, const char *what, const char *format, ...) {
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return table_add_row(table, (const char *const[]){what, text});
}

static bool add_facts(struct table *table, const struct result *result) {
    char first[24], second[24];
    report_time(result->formed_us, first);
    bool good = add_fact(table, "all agreed after the start", "%s", first);
    report_time(result->settled_us, first);
    good = good && add_fact(table, "and after the last fault", "%s", first);
    good = good && add_fact(table, "faults", "%" PRIu64 ", %" PRIu64 " of them crashes that were followed",
                            result->faults, result->crashes);
    good =
        good && add_fact(table, "false deaths",
                         "%" PRIu64 " of healthy brokers in %.1f broker-hours (%" PRIu64 " reports), %" PRIu64
                         " reports of slow ones",
                         result->false_death_brokers, result->broker_hours, result->false_deaths, result->slow_deaths);
    good = good &&
           add_fact(table, "suspicions", "%" PRIu64 ", %" PRIu64 " refuted", result->suspicions, result->refutations);
    if (result->changes_incomplete > 0)
        good = good && add_fact(table, "changes not known everywhere in time", "%" PRIu64 " of %" PRIu64,
                                result->changes_incomplete, result->changes);
    bytes_text(result->idle_bytes_per_s, "/s", first);
    if (result->idle_bytes_per_s > 0)
        good = good &&
               add_fact(table, "an idle broker sends", "%s in %.1f datagrams/s", first, result->idle_datagrams_per_s);
    bytes_text(result->steady_bytes_per_s, "/s", first);
    if (result->steady_bytes_per_s > 0) good = good && add_fact(table, "a broker under this load sends", "%s", first);
    bytes_text((double)tally_at(&result->join_bytes, 0.5), "", first);
    bytes_text((double)result->join_bytes.max, "", second);
    if (result->join_bytes.count > 0)
        good = good && add_fact(table, "a starting broker receives", "%s, at most %s", first, second);
    bytes_text(result->bytes_per_member, "", first);
    if (result->bytes_per_member > 0)
        good = good && add_fact(table, "memory of a member at a broker", "%s with all its rows", first);
    report_time(result->simulated_us, first);
    good = good && add_fact(table, "simulated", "%s, %" PRIu64 " datagrams", first, result->datagrams);
    bytes_text(cost_resident_max(), "", first);
    good = good && add_fact(table, "took", "%.1f s, %.1f s of them on a core, %s of memory at most",
                            result->cost.wall_s, result->cost.cpu_s, first);
    return good && add_fact(table, "trace", "%016" PRIx64, result->trace_hash);
}

bool report_print(const struct plan *plan, const struct result *result, const char *why) {
    printf("%s%s%u brokers at %u site%s, seed %" PRIu64 "\n\n", plan->title, plan->title[0] ? ": " : "",
           plan->broker_count, plan->site_count, plan->site_count == 1 ? "" : "s", plan->seed);
    if (!print_times(result)) return false;
    struct table *table = table_new();
    bool good = table != NULL && table_add_column(table, "WHAT", false) && table_add_column(table, "FOUND", false);
    if (good) table_hide_titles(table);
    good = good && add_facts(table, result) && table_print(table);
    table_free(table);
    printf("\n%s%s\n", why[0] ? "BROKEN " : "All invariants held.", why);
    return good;
}

/* ---- for programs ---- */

static json_t *seconds(uint64_t us) {
    return us == NOT_YET ? json_null() : json_real((double)us / 1e6);
}

static json_t *times(const struct tally *tally) {
    if (tally->count == 0) return json_null();
    return json_pack("{s:I,s:o,s:o,s:o}", "count", (json_int_t)tally->count, "median", seconds(tally_at(tally, 0.5)),
                     "p99", seconds(tally_at(tally, 0.99)), "max", seconds(tally->max));
}

static json_t *byte_counts(const struct tally *tally) {
    if (tally->count == 0) return json_null();
    return json_pack("{s:I,s:I,s:I}", "count", (json_int_t)tally->count, "median", (json_int_t)tally_at(tally, 0.5),
                     "max", (json_int_t)tally->max);
}

bool report_print_json(const struct plan *plan, const char *strategy, const struct result *result, const char *why) {
    char hash[20];
    snprintf(hash, sizeof hash, "%016" PRIx64, result->trace_hash);
    json_t *plan_json =
        json_pack("{s:s,s:I,s:i,s:i,s:s}", "title", plan->title, "seed", (json_int_t)plan->seed, "brokers",
                  (int)plan->broker_count, "sites", (int)plan->site_count, "strategy", strategy);
    json_t *seconds_json =
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "known_by_broker", times(&result->know), "known_by_all",
                  times(&result->know_last), "crash_noticed", times(&result->detect), "crash_noticed_by_all",
                  times(&result->detect_last), "join", times(&result->join), "heal", times(&result->heal), "ring",
                  times(&result->rings), "formed", seconds(result->formed_us), "settled", seconds(result->settled_us));
    json_t *deaths = json_pack("{s:I,s:I,s:I,s:f}", "false_brokers", (json_int_t)result->false_death_brokers,
                               "false_reports", (json_int_t)result->false_deaths, "slow_reports",
                               (json_int_t)result->slow_deaths, "broker_hours", result->broker_hours);
    json_t *bytes =
        json_pack("{s:f,s:f,s:f,s:o,s:f}", "idle_per_broker_s", result->idle_bytes_per_s, "idle_datagrams_per_s",
                  result->idle_datagrams_per_s, "load_per_broker_s", result->steady_bytes_per_s, "join",
                  byte_counts(&result->join_bytes), "memory_per_member", result->bytes_per_member);
    json_t *counts =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "faults", (json_int_t)result->faults, "crashes",
                  (json_int_t)result->crashes, "changes", (json_int_t)result->changes, "changes_incomplete",
                  (json_int_t)result->changes_incomplete, "suspicions", (json_int_t)result->suspicions, "datagrams",
                  (json_int_t)result->datagrams, "events", (json_int_t)result->events);
    json_t *found =
        json_pack("{s:{s:o,s:o,s:o,s:o,s:o,s:f,s:f,s:f,s:f,s:s,s:s?}}", "simulation", "plan", plan_json, "seconds",
                  seconds_json, "deaths", deaths, "bytes", bytes, "counts", counts, "simulated_s",
                  (double)result->simulated_us / 1e6, "wall_s", result->cost.wall_s, "cpu_s", result->cost.cpu_s,
                  "resident_max", cost_resident_max(), "trace", hash, "broken", why[0] ? why : NULL);
    bool good = found != NULL && json_dumpf(found, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    if (good) putchar('\n');
    json_decref(found);
    return good;
}
