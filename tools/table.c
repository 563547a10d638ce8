#include "table.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <unistd.h>

struct table {
    struct libscols_table *scols;
    size_t column_count;
};

struct table *table_new(void) {
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL) return NULL;
    scols_init_debug(0);
    table->scols = scols_new_table();
    if (table->scols != NULL) {
        /* Into a pipe goes the whole text, never cut to a width. */
        if (!isatty(STDOUT_FILENO)) scols_table_set_termforce(table->scols, SCOLS_TERMFORCE_NEVER);
        return table;
    }
    free(table);
    return NULL;
}

void table_free(struct table *table) {
    if (table == NULL) return;
    scols_unref_table(table->scols);
    free(table);
}

bool table_add_column(struct table *table, const char *title, bool numbers) {
    table->column_count++;
    return scols_table_new_column(table->scols, title, 0, numbers ? SCOLS_FL_RIGHT : 0) != NULL;
}

bool table_add_row(struct table *table, const char *const *cells) {
    struct libscols_line *line = scols_table_new_line(table->scols, NULL);
    if (line == NULL) return false;
    for (size_t i = 0; i < table->column_count; i++)
        if (scols_line_set_data(line, i, cells[i]) != 0) return false;
    return true;
}

void table_hide_titles(struct table *table) {
    scols_table_enable_noheadings(table->scols, 1);
}

bool table_print(struct table *table) {
    return scols_print_table(table->scols) == 0;
}
