#include "dispatch.h"

#include <stdio.h>
#include <string.h>

#include "complain.h"
#include "nearest.h"

#define COMMANDS_MAX 32u
#define NAME_MAX_BYTES 64u

static void print_help(const struct command_group *group) {
    printf("Usage: %s COMMAND [OPTION...]\n%s\n\nCommands:\n", group->program, group->about);
    for (size_t i = 0; i < group->count; i++)
        printf("  %-10s %s\n", group->commands[i].name, group->commands[i].summary);
    printf("\nEach has --help: %s %s --help\n%s", group->program, group->commands[0].name, group->more);
}

static const struct command *find(const struct command_group *group, const char *name) {
    for (size_t i = 0; i < group->count; i++)
        if (strcmp(group->commands[i].name, name) == 0) return &group->commands[i];
    return NULL;
}

/* Options belong behind a command; before it there is --help, and --version for hobnob itself. */
static int unknown_option(const struct command_group *group, const char *option) {
    static const char *const known[] = {"--help", "--version"};
    const char *meant = nearest_word(option, known, sizeof known / sizeof *known);
    if (meant != NULL) return complain_usage("%s: no such option; did you mean \"hobnob %s\"?", option, meant);
    return complain_usage("%s: options come after a command; \"%s --help\" lists the commands", option, group->program);
}

static int unknown(const struct command_group *group, const char *name) {
    if (name[0] == '-') return unknown_option(group, name);
    const char *words[COMMANDS_MAX];
    size_t count = 0;
    while (count < group->count && count < COMMANDS_MAX)
        words[count] = group->commands[count].name, count++;
    const char *meant = nearest_word(name, words, count);
    if (meant != NULL)
        return complain_usage("%s: no such command; did you mean \"%s %s\"?", name, group->program, meant);
    return complain_usage("%s: no such command; \"%s --help\" lists them", name, group->program);
}

int dispatch(const struct command_group *group, int argc, char **argv) {
    if (argc < 2) return complain_usage("a command is missing; \"%s --help\" lists them", group->program);
    char *first = argv[1];
    bool help = strcmp(first, "help") == 0;
    if (strcmp(first, "--help") == 0 || strcmp(first, "-?") == 0 || strcmp(first, "-h") == 0 || (help && argc == 2)) {
        print_help(group);
        return EXIT_GOOD;
    }
    const struct command *command = find(group, help ? argv[2] : first);
    if (command == NULL) return unknown(group, help ? argv[2] : first);

    static char dash_help[] = "--help";
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s %s", group->program, command->name);
    if (help) {
        char *asked[] = {name, dash_help, NULL};
        return command->run(2, asked);
    }
    argv[1] = name;
    return command->run(argc - 1, argv + 1);
}
