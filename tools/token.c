/* hobnob token: making and reading tokens. */
#include "commands.h"
#include "dispatch.h"

int command_token(int argc, char **argv) {
    static const struct command commands[] = {
        {"mint", "sign a token for a broker, a client or an admin", command_token_mint},
        {"show", "show what a token says, without checking it", command_token_show},
        {"verify", "check a token as a broker would", command_token_verify},
    };
    static const struct command_group group = {"hobnob token",
                                               "Makes and reads tokens. Needs no daemon and no network.", "", commands,
                                               sizeof commands / sizeof *commands};
    return dispatch(&group, argc, argv);
}
