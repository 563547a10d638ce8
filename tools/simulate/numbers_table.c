#include "tools/simulate/numbers_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simulate/memory.h"
#include "tools/table.h"

/* ---- what an earlier run has printed ---- */

bool numbers_earlier_read(struct numbers_earlier *earlier, const char *path) {
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    if (!file) return false;
    while ((size = getline(&line, &room, file)) > 0) {
        if (line[size - 1] == '\n') line[--size] = '\0';
        earlier->lines = memory_room(earlier->lines, &earlier->room, earlier->count + 1, sizeof *earlier->lines);
        earlier->lines[earlier->count++] = line;
        line = NULL;
        room = 0;
    }
    free(line);
    bool good = !ferror(file);
    fclose(file);
    return good;
}

void numbers_earlier_free(struct numbers_earlier *earlier) {
    for (size_t i = 0; i < earlier->count; i++)
        free(earlier->lines[i]);
    free(earlier->lines);
}

/* A run that was stopped may have left half a line. */
static bool is_whole(const char *line, size_t columns) {
    size_t bars = 0;
    for (const char *at = line; *at; at++)
        bars += *at == '|';
    return bars == columns + 1 && line[strlen(line) - 1] == '|' && strstr(line, "| not run") == NULL;
}

bool numbers_table_again(struct numbers_table *table, const struct numbers_row *names) {
    char begins[NUMBERS_NAMES * (NUMBERS_CELL + 3) + 4] = "| ";
    for (size_t i = 0; i < NUMBERS_NAMES; i++) {
        strcat(begins, names->cells[i]);
        strcat(begins, " | ");
    }
    /* Outputs of several runs may stand in one file, each with its tables: one blank line is between a caption and its
     * rows, and one after them. */
    size_t blanks = 2;
    for (size_t i = 0; i < table->earlier->count; i++) {
        const char *line = table->earlier->lines[i];
        blanks = strcmp(line, table->caption) == 0 ? 0 : blanks + (line[0] == '\0');
        if (blanks != 1 || strncmp(line, begins, strlen(begins)) != 0 || !is_whole(line, table->columns)) continue;
        puts(line);
        fflush(stdout);
        return true;
    }
    return false;
}

/* ---- tables ---- */

static void markdown_row(const char *const *cells, size_t columns) {
    for (size_t i = 0; i < columns; i++)
        printf("| %s ", cells[i]);
    puts("|");
    fflush(stdout);
}

bool numbers_table_begin(struct numbers_table *table, const char *caption, const char *const *titles) {
    table->table = NULL;
    table->columns = 0;
    while (titles[table->columns])
        table->columns++;
    snprintf(table->caption, sizeof table->caption, "%s (seed %llu)", caption, (unsigned long long)table->wanted->seed);
    printf("%s\n\n", table->caption);
    if (table->wanted->markdown) {
        const char *rule[NUMBERS_COLUMNS_MAX];
        for (size_t i = 0; i < table->columns; i++)
            rule[i] = i < 2 ? "---" : "--:";
        markdown_row(titles, table->columns);
        markdown_row(rule, table->columns);
        return true;
    }
    bool good = (table->table = table_new()) != NULL;
    for (size_t i = 0; good && i < table->columns; i++)
        good = table_add_column(table->table, titles[i], i >= 2);
    return good;
}

bool numbers_table_add(struct numbers_table *table, const struct numbers_row *row) {
    const char *cells[NUMBERS_COLUMNS_MAX];
    for (size_t i = 0; i < table->columns; i++)
        cells[i] = row->cells[i];
    if (table->table) return table_add_row(table->table, cells);
    markdown_row(cells, table->columns);
    return true;
}

bool numbers_table_end(struct numbers_table *table, bool good) {
    if (table->table && good) good = table_print(table->table);
    table_free(table->table);
    putchar('\n');
    return good;
}
