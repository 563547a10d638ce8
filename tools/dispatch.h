/* Choosing a command by its name: for hobnob itself and for the groups "key" and "token". */
#ifndef TOOLS_DISPATCH_H
#define TOOLS_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

struct command {
    const char *name;
    const char *summary; /* a line for the list */
    /* argv[0] is the whole name as typed, "hobnob token mint". Returns an exit code. */
    int (*run)(int argc, char **argv);
};

struct command_group {
    const char *program; /* "hobnob" or "hobnob token" */
    const char *about;   /* lines above the list */
    const char *more;    /* lines below it */
    const struct command *commands;
    size_t count;
};

int dispatch(const struct command_group *group, int argc, char **argv);

#endif
