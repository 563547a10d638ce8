/* hobnob: the admin's tool. Each command is a file of its own; this one only chooses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "dispatch.h"

static const struct command commands[] = {
    {"init", "make the keys, tokens and configurations of a whole federation", command_init},
    {"key", "make a key, or change the gossip's: new, rotate, show, push", command_key},
    {"token", "make, show or check a token: mint, show, verify", command_token},
    {"status", "show a running broker at a glance", command_status},
    {"members", "list the brokers it sees", command_members},
    {"registry", "list who publishes and subscribes to what, where", command_registry},
    {"links", "list its links to other brokers, with counters", command_links},
    {"why", "say why a publication does not get from broker to broker", command_why},
    {"bench", "put a load on any MQTT broker: throughput, latency, losses", command_bench},
    {"simulate", "run a federation on a virtual network: faults, figures, proofs", command_simulate},
};

int main(int argc, char **argv) {
    static const struct command_group hobnob = {
        "hobnob",
        "Makes keys, tokens and configurations offline, and asks running brokers.",
        "\nExit status: 0 good, 1 the answer is no, 2 wrong usage.\n",
        commands,
        sizeof commands / sizeof *commands,
    };
    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        puts("hobnob " HOBNOB_VERSION);
        return EXIT_GOOD;
    }
    /* argp's note about short options is of no use here. */
    setenv("ARGP_HELP_FMT", "rmargin=79,no-dup-args-note", 0);
    int code = dispatch(&hobnob, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        complain("standard output: cannot be written; check the disk or the program it goes to");
        return code == EXIT_GOOD ? EXIT_NO : code;
    }
    return code;
}
