/* hobnob links: the connections to other brokers, with what crossed them. */
#include "admin.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

static void put_joins(json_t *row) {
    char text[48];
    snprintf(text, sizeof text, "%lld/%lld", (long long)json_integer_value(json_object_get(row, "joined_here")),
             (long long)json_integer_value(json_object_get(row, "joined_there")));
    json_object_set_new(row, "joins", json_string(text));
}

/* The names of those that dropped something. */
static void put_limits(json_t *row) {
    char text[256] = "";
    const char *limit;
    json_t *count;
    json_object_foreach(json_object_get(row, "dropped_by"), limit, count) {
        size_t size = strlen(text);
        if (json_integer_value(count) > 0)
            snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? " " : "", limit);
    }
    json_object_set_new(row, "limits", json_string(text));
}

static void for_people(json_t *row) {
    put_joins(row);
    put_limits(row);
}

int command_links(int argc, char **argv) {
    static const struct admin_column columns[] = {
        {"peer", NULL, 0},
        {"state", NULL, 0},
        {"direction", "way", 0},
        {"joins", NULL, 0},
        {"publications_sent", "sent", 0},
        {"sent_again", "again", 0},
        {"outbox_messages", "waiting", 0},
        {"dropped", NULL, 0},
        {"publications_received", "got", 0},
        {"repeated", NULL, 0},
        {"lost", NULL, 0},
        {"reordered", "late", 0},
        {"limits", NULL, 0},
    };
    static const struct admin_listing listing = {
        "links",
        "Lists the links to other brokers: which side dialled (way), the filters joined here by the peer and there by "
        "us (joins), publications sent to it, sent again after a link was lost, waiting, and dropped at a limit, "
        "which is named (limits); then those that came from it and were taken (got), came again and were not "
        "(repeated), were passed over (lost), and of these came late. A link is made when two brokers have business "
        "together, or when gossip wants it, since datagrams do not pass. --json has more: how many each limit "
        "dropped, "
        "what was given up and why, frames, bytes, gossip.",
        "no links: no client here and elsewhere have a topic in common yet, and gossip needs none",
        columns,
        sizeof columns / sizeof *columns,
        true,
        for_people,
    };
    return admin_list(argc, argv, &listing);
}
