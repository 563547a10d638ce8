/* hobnob simulate --numbers, shared by its files: numbers.c the options and the order of the rows, numbers_rows.c one
 * row of each table, numbers_table.c tables that can be gone on with. */
#ifndef SIMULATE_NUMBERS_INSIDE_H
#define SIMULATE_NUMBERS_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/simulate/strategy.h"

#define NUMBERS_LIST_MAX 16u
#define NUMBERS_COLUMNS_MAX 14u
#define NUMBERS_NAMES 3u /* the first cells of a row say which it is, */
#define NUMBERS_CELL 48u

struct table;

struct numbers_wanted {
    uint64_t brokers[NUMBERS_LIST_MAX], cuts[NUMBERS_LIST_MAX], seed;
    double losses[NUMBERS_LIST_MAX];
    const struct strategy *strategies[NUMBERS_LIST_MAX];
    size_t broker_count, cut_count, loss_count, strategy_count;
    unsigned parts;
    uint64_t longest_us; /* a row that would take longer is not run */
    bool markdown, quiet;
};

/* ---- numbers_table.c ---- */

/* Rows that an earlier output in Markdown has. */
struct numbers_earlier {
    char **lines;
    size_t count, room;
};

/* False, with errno: it cannot be read. */
bool numbers_earlier_read(struct numbers_earlier *earlier, const char *path);
void numbers_earlier_free(struct numbers_earlier *earlier);

struct numbers_table {
    const struct numbers_wanted *wanted;
    const struct numbers_earlier *earlier;
    struct table *table; /* NULL in Markdown, where rows go out at once */
    size_t columns;
    char caption[400];
};

struct numbers_row {
    char cells[NUMBERS_COLUMNS_MAX][NUMBERS_CELL];
};

/* titles: ends with NULL. False when memory is short, as below. */
bool numbers_table_begin(struct numbers_table *table, const char *caption, const char *const *titles);
/* The earlier output has the row with these names, and it was run: it is printed again. */
bool numbers_table_again(struct numbers_table *table, const struct numbers_row *names);
bool numbers_table_add(struct numbers_table *table, const struct numbers_row *row);
bool numbers_table_end(struct numbers_table *table, bool good);

/* ---- numbers_rows.c ---- */

/* One row: takes it from the earlier output, runs what it needs, or says in its first cell why not. */
bool numbers_row_know(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy);
bool numbers_row_slow(struct numbers_table *table, uint64_t brokers, double loss, const struct strategy *strategy);
bool numbers_row_cut(struct numbers_table *table, uint64_t brokers, uint64_t cut_us, const struct strategy *strategy);
bool numbers_row_memory(struct numbers_table *table, uint64_t brokers);

#endif
