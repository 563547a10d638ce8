/* Tables for people, by libsmartcols: aligned, fitted to the terminal if there is one. */
#ifndef TOOLS_TABLE_H
#define TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct table;

/* NULL when memory is short. */
struct table *table_new(void);
void table_free(struct table *table);
/* numbers: aligned to the right. False when memory is short. */
bool table_add_column(struct table *table, const char *title, bool numbers);
/* A row of as many cells as there are columns; copied, control characters are shown escaped. */
bool table_add_row(struct table *table, const char *const *cells);
void table_hide_titles(struct table *table);
bool table_print(struct table *table);

#endif
