/* hobnob members: the brokers of the federation, as this one sees them. */
#include "admin.h"
#include "commands.h"

int command_members(int argc, char **argv) {
    static const char *const columns[] = {"name", "state", "address", "epoch", "id"};
    static const struct admin_listing listing = {
        "members",
        "Lists the brokers of the federation as the asked one sees them: alive, suspect (not answering), down, or left.",
        "no members: this broker has no listen.peers",
        columns,
        sizeof columns / sizeof *columns,
    };
    return admin_list(argc, argv, &listing);
}
