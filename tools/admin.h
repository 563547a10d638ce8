/* Asking a running broker's admin port, and showing what it says. */
#ifndef TOOLS_ADMIN_H
#define TOOLS_ADMIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct admin_options {
    const char *url; /* of the port, without a path */
    bool json;       /* as it came, for programs */
};

/* Parses the two options all of these commands have. False if the command is over, with its exit code. */
bool admin_parse(int argc, char **argv, const char *about, struct admin_options *options, int *code);
/* For commands with more options than these two: whether the URL can be one; else *code is that of the command. */
bool admin_url_good(const struct admin_options *options, int *code);
/* GET /api/v1/NAME. NULL after a complaint. */
json_t *admin_get(const struct admin_options *options, const char *name);
/* The same of a name with a query, "why?topic=a". When the broker cannot answer, the complaint is the reason it gave.
 */
json_t *admin_ask(const struct admin_options *options, const char *query);
/* POST of this text. When the broker refuses it, the complaint is the reason that it gave. */
json_t *admin_post(const struct admin_options *options, const char *name, const char *text, size_t size);

struct admin_column {
    const char *field;
    const char *title; /* NULL: the field, with spaces for _ */
    size_t letters;    /* shown at most; 0: all */
};

/* For the commands that are one table: {"NAME": [row, ...]}. Columns come in this order; those the broker does not send
 * are left out. */
struct admin_listing {
    const char *name, *about, *empty;
    const struct admin_column *columns;
    size_t column_count;
    bool only_these; /* else what more the broker sends follows */
    void (*for_people)(
        json_t *row); /* puts into a row what the table shows in the place of what programs get; or NULL */
};
int admin_list(int argc, char **argv, const struct admin_listing *listing);

/* A value as a cell's text; freed by the caller. */
char *admin_text(const json_t *value);
/* "0.4 s", "12 s", "35 min", "5 h", "3 d". */
void admin_duration(uint64_t ms, char out[24]);

#endif
