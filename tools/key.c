/* hobnob key: its commands; and new: a pair for a broker or an issuer, or a key for the gossip. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "complain.h"
#include "dispatch.h"
#include "files.h"
#include "keyfile.h"
#include "nearest.h"
#include "options.h"

static const char *const kinds[] = {"broker", "issuer", "gossip"};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)

struct wanted {
    const char *prefix, *kind;
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case 'o': wanted->prefix = value; return 0;
    case 'k': wanted->kind = value; return 0;
    case ARGP_KEY_ARG: complain("%s: one word too many; the name goes behind --out", value); return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"out", 'o', "PREFIX", 0, "Write PREFIX.key (mode 0600) and PREFIX.pub. Neither may exist", 0},
    {"kind", 'k', "KIND", 0, "broker (default), issuer, or gossip (PREFIX.key only: it has no public half)", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    on_option,
    NULL,
    "Makes a key from this host's randomness and prints its thumbprint, which is the name tokens know it by.\v"
    "Example:\n  hobnob key new --out edge-4\n  hobnob token mint --issuer issuer.key --broker edge-4 --key edge-4.pub "
    "\\\n      --expires 90d > edge-4.jwt\n",
    NULL,
    NULL,
    NULL};

static int new_gossip(const char *path) {
    char text[192];
    bool good = keyfile_gossip_text(text) && file_write_new(path, text, 0600);
    explicit_bzero(text, sizeof text);
    if (good) printf("%s: made; copy it to every broker as its gossip.key\n", path);
    return good ? EXIT_GOOD : EXIT_NO;
}

static int new_pair(const char *private_path, const char *public_path) {
    struct auth_key *key = NULL;
    if (access(public_path, F_OK) == 0) {
        complain("%s: %s", public_path, file_remedy(EEXIST));
        return EXIT_NO;
    }
    if (!keyfile_make(&key)) return EXIT_NO;
    bool good = keyfile_write(key, private_path, NULL);
    if (good && !keyfile_write(key, NULL, public_path)) {
        good = false;
        unlink(private_path);
    }
    if (good) {
        char thumbprint[44];
        keyfile_thumbprint(key, thumbprint);
        puts(thumbprint);
    }
    auth_key_free(key);
    return good ? EXIT_GOOD : EXIT_NO;
}

static int command_key_new(int argc, char **argv) {
    struct wanted wanted = {NULL, "broker"};
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    if (wanted.prefix == NULL || *wanted.prefix == '\0')
        return complain_usage("--out: missing; say where the key goes, such as --out edge-4");

    bool known = false;
    for (size_t i = 0; i < KIND_COUNT; i++)
        known |= strcmp(wanted.kind, kinds[i]) == 0;
    if (!known) {
        const char *meant = nearest_word(wanted.kind, kinds, KIND_COUNT);
        if (meant != NULL) return complain_usage("--kind %s: no such kind; did you mean %s?", wanted.kind, meant);
        return complain_usage("--kind %s: no such kind; write broker, issuer or gossip", wanted.kind);
    }
    char private_path[PATH_MAX], public_path[PATH_MAX];
    if ((size_t)snprintf(private_path, sizeof private_path, "%s.key", wanted.prefix) >= sizeof private_path)
        return complain_usage("--out: the path is too long; choose a shorter one");
    snprintf(public_path, sizeof public_path, "%s.pub", wanted.prefix);
    return strcmp(wanted.kind, "gossip") == 0 ? new_gossip(private_path) : new_pair(private_path, public_path);
}

int command_key(int argc, char **argv) {
    static const struct command commands[] = {
        {"new", "make a key and print its thumbprint", command_key_new},
        {"rotate", "make the gossip key ring that follows the present one", command_key_rotate},
        {"show", "show what a gossip key ring says", command_key_show},
        {"push", "give a gossip key ring to a running broker", command_key_push},
    };
    static const struct command_group group = {
        "hobnob key", "Makes keys, and changes the gossip's. Only push needs a daemon and a network.", "", commands,
        sizeof commands / sizeof *commands};
    return dispatch(&group, argc, argv);
}
