/* hobnob members: the brokers of the federation, as this one sees them. */
#include "admin.h"
#include "commands.h"

/* When it was last heard, and which one answers. */
static void for_people(json_t *row) {
    char text[24] = "-";
    bool self = json_is_true(json_object_get(row, "self"));
    json_int_t ms = json_integer_value(json_object_get(row, "heard_ms_ago"));
    if (self) json_object_set_new(row, "way", json_string("self"));
    if (!self && ms >= 0) admin_duration((uint64_t)ms, text);
    if (json_object_get(row, "heard_ms_ago") != NULL) json_object_set_new(row, "heard_ms_ago", json_string(text));
}

int command_members(int argc, char **argv) {
    static const struct admin_column columns[] = {
        {"name", NULL, 0},  {"id", NULL, 8}, /* as in the log */
        {"state", NULL, 0}, {"address", NULL, 0}, {"way", NULL, 0},  {"epoch", NULL, 0},
        {"ring", NULL, 0},  {"trouble", NULL, 0}, {"rows", NULL, 0}, {"heard_ms_ago", "heard", 0},
    };
    static const struct admin_listing listing = {
        "members",
        "Lists the brokers of the federation as the asked one sees them: alive, suspect (not answering), down, or "
        "left. way says how gossip reaches one: udp, or link where datagrams do not pass; self is the one asked. "
        "heard is how long ago. An id is shown by its first 8 digits; --json has all, and the mark of its key ring. "
        "ring is the number of the gossip key ring that a broker uses, 0 for the keys of its configuration; trouble "
        "is a token that is refused, a name that another key has, a key in use by two, another gossip key, or what one "
        "did in the last ten minutes: it breaks the rules, is over our limits, or accuses others that answer us; of "
        "the one asked also a token that expired, is refused by others, or ends soon: in the last tenth of its life. "
        "A name with ? is what a refused token says, and nobody vouches for it. The log says more.",
        "no members: this broker has no listen.peers",
        columns,
        sizeof columns / sizeof *columns,
        true,
        for_people,
    };
    return admin_list(argc, argv, &listing);
}
