#include "options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "nearest.h"

#define OPTIONS_MAX 64u
#define WORD_MAX 64u

static const struct argp_option built_in[] = {
    {"help", '?', NULL, 0, NULL, 0}, {"usage", 1, NULL, 0, NULL, 0}, {NULL, 0, NULL, 0, NULL, 0}};

static size_t collect(const struct argp *argp, const struct argp_option **found) {
    size_t count = 0;
    for (const struct argp_option *option = argp->options; option != NULL && (option->name != NULL || option->key != 0);
         option++)
        if (count < OPTIONS_MAX - 2 && (option->flags & OPTION_DOC) == 0) found[count++] = option;
    found[count++] = &built_in[0];
    found[count++] = &built_in[1];
    return count;
}

/* By name, or by a beginning that fits one option only, as getopt takes it. */
static const struct argp_option *find_long(const struct argp_option *const *options, size_t count, const char *name,
                                           size_t size, bool *ambiguous) {
    const struct argp_option *found = NULL;
    *ambiguous = false;
    for (size_t i = 0; i < count; i++) {
        if (options[i]->name == NULL || strncmp(options[i]->name, name, size) != 0) continue;
        if (options[i]->name[size] == '\0') {
            *ambiguous = false;
            return options[i];
        }
        if (found != NULL) *ambiguous = true;
        found = options[i];
    }
    return found;
}

static int unknown_long(const char *program, const struct argp_option *const *options, size_t count, const char *name,
                        size_t size) {
    const char *words[OPTIONS_MAX];
    char typed[WORD_MAX];
    for (size_t i = 0; i < count; i++)
        words[i] = options[i]->name;
    if (size >= sizeof typed) size = sizeof typed - 1;
    memcpy(typed, name, size);
    typed[size] = '\0';
    const char *meant = nearest_word(typed, words, count);
    if (meant != NULL) return complain_usage("--%s: no such option; did you mean --%s?", typed, meant);
    return complain_usage("--%s: no such option; \"%s --help\" lists them", typed, program);
}

/* Checks the long option at argv[*at] and steps over its value. */
static int check_long(const struct argp_option *const *options, size_t count, char **argv, int argc, int *at) {
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
    bool ambiguous;
    const struct argp_option *option = find_long(options, count, name, size, &ambiguous);
    if (option == NULL) return unknown_long(argv[0], options, count, name, size);
    if (ambiguous)
        return complain_usage("--%.*s: could be several options; write it out, \"%s --help\" lists them", (int)size,
                              name, argv[0]);
    if (option->arg == NULL && equals != NULL)
        return complain_usage("--%s: takes no value; leave \"%s\" out", option->name, equals);
    if (option->arg != NULL && equals == NULL && ++*at >= argc)
        return complain_usage("--%s: its value is missing; write --%s %s", option->name, option->name, option->arg);
    return EXIT_GOOD;
}

static const struct argp_option *find_short(const struct argp_option *const *options, size_t count, int letter) {
    for (size_t i = 0; i < count; i++)
        if (options[i]->key == letter && isprint(letter)) return options[i];
    return NULL;
}

/* Checks the letters of one word such as -jx. */
static int check_short(const struct argp_option *const *options, size_t count, char **argv, int argc, int *at) {
    for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
        const struct argp_option *option = find_short(options, count, (unsigned char)*letter);
        if (option == NULL) return complain_usage("-%c: no such option; \"%s --help\" lists them", *letter, argv[0]);
        if (option->arg == NULL) continue;
        if (letter[1] == '\0' && ++*at >= argc)
            return complain_usage("-%c: its value is missing; write --%s %s", *letter, option->name, option->arg);
        break;
    }
    return EXIT_GOOD;
}

bool options_parse(const struct argp *argp, int argc, char **argv, void *input, int *code) {
    const struct argp_option *options[OPTIONS_MAX];
    size_t count = collect(argp, options);
    for (int at = 1; at < argc && strcmp(argv[at], "--") != 0; at++) {
        *code = EXIT_GOOD;
        if (strncmp(argv[at], "--", 2) == 0)
            *code = check_long(options, count, argv, argc, &at);
        else if (argv[at][0] == '-' && argv[at][1] != '\0')
            *code = check_short(options, count, argv, argc, &at);
        if (*code != EXIT_GOOD) return false;
    }
    argp_err_exit_status = EXIT_USAGE;
    error_t error = argp_parse(argp, argc, argv, 0, NULL, input);
    *code = error == 0 ? EXIT_GOOD : EXIT_USAGE;
    return error == 0;
}

error_t options_one_file(const char **path, const char *value) {
    if (*path != NULL) {
        complain("%s: one word too many; name one file", value);
        return EINVAL;
    }
    *path = value;
    return 0;
}

error_t options_on_show(int key, char *value, struct argp_state *state) {
    struct options_show *show = state->input;
    switch (key) {
    case 'j': show->json = true; return 0;
    case ARGP_KEY_ARG: return options_one_file(&show->path, value);
    default: return ARGP_ERR_UNKNOWN;
    }
}
