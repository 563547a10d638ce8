#include <inttypes.h>
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

void admin_duration(uint64_t ms, char out[24]) {
    if (ms < 10000)
        snprintf(out, 24, "%.1f s", (double)ms / 1000);
    else if (ms < 120000)
        snprintf(out, 24, "%" PRIu64 " s", ms / 1000);
    else if (ms < 2 * 3600000u)
        snprintf(out, 24, "%" PRIu64 " min", ms / 60000);
    else if (ms < 48 * 3600000u)
        snprintf(out, 24, "%" PRIu64 " h", ms / 3600000);
    else
        snprintf(out, 24, "%" PRIu64 " d", ms / (24 * 3600000u));
}

static bool has(const struct admin_column *columns, size_t count, const char *field) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(columns[i].field, field) == 0) return true;
    return false;
}

/* The listing's own columns that the first row has, then the rest of that row if it is wanted. */
static size_t choose_columns(const struct admin_listing *listing, json_t *first,
                             struct admin_column columns[COLUMNS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < listing->column_count && count < COLUMNS_MAX; i++)
        if (json_object_get(first, listing->columns[i].field) != NULL) columns[count++] = listing->columns[i];
    const char *field;
    json_t *value;
    json_object_foreach(first, field,
                        value) if (!listing->only_these && count < COLUMNS_MAX && !has(columns, count, field))
        columns[count++] = (struct admin_column){field, NULL, 0};
    return count;
}

static bool add_column(struct table *table, const struct admin_column *column, bool numbers) {
    char *title = strdup(column->title != NULL ? column->title : column->field);
    if (title == NULL) return false;
    for (char *at = title; *at != '\0'; at++)
        if (*at == '_') *at = ' ';
    bool good = table_add_column(table, title, numbers);
    free(title);
    return good;
}

static bool add_row(struct table *table, const json_t *row, const struct admin_column *columns, size_t count) {
    char *cells[COLUMNS_MAX] = {NULL};
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        cells[i] = admin_text(json_object_get(row, columns[i].field));
        good &= cells[i] != NULL;
        if (cells[i] != NULL && columns[i].letters != 0 && strlen(cells[i]) > columns[i].letters)
            cells[i][columns[i].letters] = '\0';
    }
    good = good && table_add_row(table, (const char *const *)cells);
    for (size_t i = 0; i < count; i++)
        free(cells[i]);
    return good;
}

static bool print_rows(const struct admin_listing *listing, json_t *rows) {
    json_t *first = json_array_get(rows, 0);
    for (size_t i = 0; listing->for_people != NULL && i < json_array_size(rows); i++)
        listing->for_people(json_array_get(rows, i));
    struct admin_column columns[COLUMNS_MAX];
    size_t count = choose_columns(listing, first, columns);
    struct table *table = table_new();
    bool good = table != NULL;
    for (size_t i = 0; good && i < count; i++)
        good = add_column(table, &columns[i], json_is_number(json_object_get(first, columns[i].field)));
    for (size_t i = 0; good && i < json_array_size(rows); i++)
        good = add_row(table, json_array_get(rows, i), columns, count);
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
