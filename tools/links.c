/* hobnob links: the connections to other brokers, with what crossed them. */
#include "admin.h"
#include "commands.h"

int command_links(int argc, char **argv) {
    static const char *const columns[] = {"peer", "state", "direction"};
    static const struct admin_listing listing = {
        "links",
        "Lists the links to other brokers and their counters. A link is made when two brokers have business together.",
        "no links: no client here and elsewhere have a topic in common yet",
        columns,
        sizeof columns / sizeof *columns,
    };
    return admin_list(argc, argv, &listing);
}
