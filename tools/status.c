/* hobnob status: one broker at a glance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "commands.h"
#include "complain.h"
#include "table.h"

#define DEPTH_MAX 4

/* "uptime_s": 93 is shown as uptime 93 s. */
static char *value_text(char *title, const json_t *value) {
    size_t size = strlen(title);
    char text[24];
    if (!json_is_integer(value) || json_integer_value(value) < 0 || size < 3 || strcmp(title + size - 2, " s") != 0)
        return admin_text(value);
    title[size - 2] = '\0';
    admin_duration((uint64_t)json_integer_value(value) * 1000, text);
    return strdup(text);
}

static bool add_value(struct table *table, char *title, const json_t *value) {
    char *text = value_text(title, value);
    const char *cells[] = {title, text};
    bool good = text != NULL && table_add_row(table, cells);
    free(text);
    return good;
}

/* Objects inside are shown as "outer inner". */
static bool add_members(struct table *table, json_t *object, const char *prefix, int depth) {
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value) {
        char *title = NULL;
        if (asprintf(&title, "%s%s%s", prefix, *prefix != '\0' ? " " : "", name) < 0) return false;
        for (char *at = title; *at != '\0'; at++)
            if (*at == '_') *at = ' ';
        bool good = json_is_object(value) && depth < DEPTH_MAX ? add_members(table, value, title, depth + 1)
                                                               : add_value(table, title, value);
        free(title);
        if (!good) return false;
    }
    return true;
}

int command_status(int argc, char **argv) {
    struct admin_options options;
    int code;
    if (!admin_parse(argc, argv,
                     "Shows one broker at a glance: its name, run (epoch), clients, and what it knows of the others.",
                     &options, &code))
        return code;
    json_t *answer = admin_get(&options, "status");
    if (answer == NULL) return EXIT_NO;
    json_t *inner = json_object_get(answer, "status");
    code = EXIT_GOOD;
    if (options.json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        struct table *table = table_new();
        if (table != NULL) table_hide_titles(table);
        if (table == NULL || !table_add_column(table, "what", false) || !table_add_column(table, "value", false) ||
            !add_members(table, json_is_object(inner) ? inner : answer, "", 0) || !table_print(table)) {
            complain("memory is short; ask with --json");
            code = EXIT_NO;
        }
        table_free(table);
    }
    json_decref(answer);
    return code;
}
