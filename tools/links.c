/* hobnob links: the connections to other brokers, with what crossed them. */
#include "admin.h"
#include "commands.h"

int command_links(int argc, char **argv) {
    static const struct admin_column columns[] = {
        {"peer", NULL, 0},
        {"state", NULL, 0},
        {"direction", "way", 0},
        {"publications_sent", "sent", 0},
        {"publications_received", "got", 0},
        {"repeated", NULL, 0},
        {"lost", NULL, 0},
        {"dropped", NULL, 0},
        {"outbox_messages", "waiting", 0},
        {"gossip_wants", "gossip", 0},
        {"joined_here", "joins here", 0},
        {"joined_there", "there", 0},
    };
    static const struct admin_listing listing = {
        "links",
        "Lists the links to other brokers: which side dialled (way), publications sent, got and waiting, and the "
        "filters joined here by the peer and there by us. A link is made when two brokers have business together, "
        "or when gossip wants it (gossip), since datagrams do not pass. --json has more counters.",
        "no links: no client here and elsewhere have a topic in common yet, and gossip needs none",
        columns,
        sizeof columns / sizeof *columns,
        true,
        NULL,
    };
    return admin_list(argc, argv, &listing);
}
