/* hobnob registry: who publishes and who subscribes to what, where. */
#include "admin.h"
#include "commands.h"

int command_registry(int argc, char **argv) {
    static const struct admin_column columns[] = {
        {"owner", NULL, 0}, {"kind", NULL, 0}, {"filter", NULL, 0}, {"active", NULL, 0}};
    static const struct admin_listing listing = {
        "registry",
        "Lists the registry: which broker's clients publish (newpub) or subscribe (newsub) under which filter.",
        "the registry is empty: nobody subscribes or publishes yet, or this broker has no listen.peers",
        columns,
        sizeof columns / sizeof *columns,
        false,
        NULL,
    };
    return admin_list(argc, argv, &listing);
}
