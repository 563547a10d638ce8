#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "complain.h"
#include "table.h"

#define COLUMNS_MAX 48u

char *admin_text(const json_t *value) {
    if (value == NULL || json_is_null(value)) return strdup("-");
    if (json_is_string(value)) return strdup(*json_string_value(value) != '\0' ? json_string_value(value) : "-");
    if (json_is_boolean(value)) return strdup(json_is_true(value) ? "yes" : "no");
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
}

/* The listing's own columns that the first row has, then the rest of that row. */
static size_t choose_columns(const struct admin_listing *listing, json_t *first, const char **columns) {
    size_t count = 0;
    for (size_t i = 0; i < listing->column_count; i++)
        if (json_object_get(first, listing->columns[i]) != NULL) columns[count++] = listing->columns[i];
    size_t known = count;
    const char *name;
    json_t *value;
    json_object_foreach(first, name, value) {
        bool taken = false;
        for (size_t i = 0; i < known; i++) taken |= strcmp(columns[i], name) == 0;
        if (!taken && count < COLUMNS_MAX) columns[count++] = name;
    }
    return count;
}

static bool add_row(struct table *table, const json_t *row, const char *const *columns, size_t count) {
    char *cells[COLUMNS_MAX] = {NULL};
    bool good = true;
    for (size_t i = 0; i < count; i++) good &= (cells[i] = admin_text(json_object_get(row, columns[i]))) != NULL;
    good = good && table_add_row(table, (const char *const *)cells);
    for (size_t i = 0; i < count; i++) free(cells[i]);
    return good;
}

static bool print_rows(const struct admin_listing *listing, json_t *rows) {
    json_t *first = json_array_get(rows, 0);
    const char *columns[COLUMNS_MAX];
    char title[64];
    size_t count = choose_columns(listing, first, columns);
    struct table *table = table_new();
    bool good = table != NULL;
    for (size_t i = 0; good && i < count; i++) {
        size_t at = 0;
        for (; columns[i][at] != '\0' && at < sizeof title - 1; at++) title[at] = columns[i][at] == '_' ? ' ' : columns[i][at];
        title[at] = '\0';
        good = table_add_column(table, title, json_is_number(json_object_get(first, columns[i])));
    }
    for (size_t i = 0; good && i < json_array_size(rows); i++) good = add_row(table, json_array_get(rows, i), columns, count);
    good = good && table_print(table);
    table_free(table);
    if (!good) complain("memory is short; ask with --json");
    return good;
}

int admin_list(int argc, char **argv, const struct admin_listing *listing) {
    struct admin_options options;
    int code;
    if (!admin_parse(argc, argv, listing->about, &options, &code)) return code;
    json_t *answer = admin_get(&options, listing->name);
    if (answer == NULL) return EXIT_NO;
    json_t *rows = json_object_get(answer, listing->name);
    code = EXIT_GOOD;
    if (!json_is_array(rows)) {
        complain("%s: the answer has no list \"%s\"; is this hobnobd of this version?", options.url, listing->name);
        code = EXIT_NO;
    } else if (options.json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
    } else if (json_array_size(rows) == 0) {
        puts(listing->empty);
    } else if (!print_rows(listing, rows)) {
        code = EXIT_NO;
    }
    json_decref(answer);
    return code;
}
