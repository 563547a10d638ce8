/* hobnob registry: who publishes and who subscribes to what, where. */
#include "admin.h"
#include "commands.h"

int command_registry(int argc, char **argv) {
    static const char *const columns[] = {"owner", "kind", "filter", "active"};
    static const struct admin_listing listing = {
        "registry",
        "Lists the registry: which broker's clients publish (newpub) or subscribe (newsub) under which filter.",
        "the registry is empty: nobody subscribes or publishes yet",
        columns,
        sizeof columns / sizeof *columns,
    };
    return admin_list(argc, argv, &listing);
}
