/* hobnob links: the connections to other brokers, with what crossed them. */
#include "admin.h"
#include "commands.h"

int command_links(int argc, char **argv) {
    static const struct admin_column columns[] = {
        {"peer", NULL},
        {"state", NULL},
        {"direction", NULL},
        {"publications_sent", "sent"},
        {"publications_received", "received"},
        {"repeated", NULL},
        {"lost", NULL},
        {"dropped", NULL},
        {"outbox_messages", "waiting"},
        {"joined_here", "joined here"},
        {"joined_there", "joined there"},
    };
    static const struct admin_listing listing = {
        "links",
        "Lists the links to other brokers: publications that crossed them, those waiting, and filters joined at either "
        "end. A link is made when two "
        "brokers have business together. --json has more counters.",
        "no links: no client here and elsewhere have a topic in common yet",
        columns,
        sizeof columns / sizeof *columns,
        true,
    };
    return admin_list(argc, argv, &listing);
}
