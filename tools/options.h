/* Options by argp, with one-line errors that suggest what was meant. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <argp.h>
#include <stdbool.h>

/* Looks over the words first (unknown option, missing or superfluous value), so that an error is one line, then lets
 * argp parse and print --help. False if the command is over: *code is its exit code. argp itself ends the process after
 * --help. */
bool options_parse(const struct argp *argp, int argc, char **argv, void *input, int *code);

/* For ARGP_KEY_ARG of a command that takes one file: EINVAL, and said, for a second one. */
error_t options_one_file(const char **path, const char *value);

/* A command that shows one file, as JSON with --json. */
struct options_show {
    const char *path; /* NULL: none was named */
    bool json;
};
/* Its argp parser: the input is a struct options_show. */
error_t options_on_show(int key, char *value, struct argp_state *state);

#endif
