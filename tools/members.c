/* hobnob members: the brokers of the federation, as this one sees them. */
#include "admin.h"
#include "commands.h"

int command_members(int argc, char **argv) {
    static const struct admin_column columns[] = {{"name", NULL},  {"state", NULL}, {"address", NULL},
                                                  {"epoch", NULL}, {"rows", NULL},  {"id", NULL}};
    static const struct admin_listing listing = {
        "members",
        "Lists the brokers of the federation as the asked one sees them: alive, suspect (not answering), down, or "
        "left.",
        "no members: this broker has no listen.peers",
        columns,
        sizeof columns / sizeof *columns,
        false,
    };
    return admin_list(argc, argv, &listing);
}
