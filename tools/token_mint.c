/* hobnob token mint: a signed token on standard output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"
#include "broker/topic.h"
#include "commands.h"
#include "complain.h"
#include "files.h"
#include "keyfile.h"
#include "options.h"
#include "when.h"

enum option_key {
    OPTION_ISSUER = 1000,
    OPTION_BROKER,
    OPTION_CLIENT,
    OPTION_ADMIN,
    OPTION_KEY,
    OPTION_EXPIRES,
    OPTION_NOT_BEFORE,
    OPTION_AT,
    OPTION_LIST
};

/* Options that fill a list of the claims; their key is OPTION_LIST plus the place here. */
enum list_place { BLOCK_PUBLISH, BLOCK_SUBSCRIBE, BLOCK_BROKER, ALLOW_PUBLISH, ALLOW_SUBSCRIBE, LIST_COUNT };
static const char *const list_options[LIST_COUNT] = {"block-publish", "block-subscribe", "block-broker",
                                                     "allow-publish", "allow-subscribe"};

struct wanted {
    const char *issuer, *key, *expires, *not_before, *at;
    char *name;
    const char *audience, *audience_option;
    struct auth_filters lists[LIST_COUNT]; /* items are borrowed from argv */
};

static const struct argp_option options[] = {
    {"issuer", OPTION_ISSUER, "FILE", 0, "The issuer's private key, which signs the token", 1},
    {"broker", OPTION_BROKER, "NAME", 0, "For the broker of this name; needs --key", 2},
    {"client", OPTION_CLIENT, "NAME", 0, "For an MQTT client of this name", 2},
    {"admin", OPTION_ADMIN, "NAME", 0, "For a person or program that uses the admin port", 2},
    {"key", OPTION_KEY, "FILE", 0,
     "The key the token is bound to, .key or .pub: without that key the token is of no use to anyone", 3},
    {"expires", OPTION_EXPIRES, "WHEN", 0,
     "How long it is valid (90d, 12h, 30min) or until when (2027-01-31, 2027-01-31T12:00:00Z)", 3},
    {"not-before", OPTION_NOT_BEFORE, "TIME", 0, "When it begins to be valid, if not at once", 3},
    {"at", OPTION_AT, "TIME", 0, "Mint as if it were this time", 3},
    {"block-publish", OPTION_LIST + BLOCK_PUBLISH, "FILTER", 0,
     "Nothing is published under this MQTT filter (any number of times)", 4},
    {"block-subscribe", OPTION_LIST + BLOCK_SUBSCRIBE, "FILTER", 0, "Nothing is subscribed to under this filter", 4},
    {"block-broker", OPTION_LIST + BLOCK_BROKER, "NAME", 0, "Nothing is exchanged with this broker", 4},
    {"allow-publish", OPTION_LIST + ALLOW_PUBLISH, "FILTER", 0, "Only what such filters match is published", 4},
    {"allow-subscribe", OPTION_LIST + ALLOW_SUBSCRIBE, "FILTER", 0, "Only what such filters match is subscribed to", 4},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t set_holder(struct wanted *wanted, char *name, const char *audience, const char *option) {
    if (wanted->audience != NULL) {
        complain("--%s: the token is for one holder, and --%s named one; leave one out", option,
                 wanted->audience_option);
        return EINVAL;
    }
    wanted->name = name;
    wanted->audience = audience;
    wanted->audience_option = option;
    return 0;
}

static error_t add_to_list(struct wanted *wanted, enum list_place place, char *value) {
    struct auth_filters *list = &wanted->lists[place];
    bool good =
        place == BLOCK_BROKER ? auth_name_valid(value, strlen(value)) : topic_filter_valid(value, strlen(value));
    if (!good) {
        complain("--%s %s: is not a valid %s", list_options[place], value,
                 place == BLOCK_BROKER ? "broker's name; write letters, digits, dots, dashes and underscores"
                                       : "MQTT filter; + and # stand for whole levels, # only at the end");
        return EINVAL;
    }
    if (list->count == AUTH_FILTERS_MAX) {
        complain("--%s: more than %u of them; merge some with wildcards", list_options[place], AUTH_FILTERS_MAX);
        return EINVAL;
    }
    list->items[list->count++] = value;
    return 0;
}

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case OPTION_ISSUER: wanted->issuer = value; return 0;
    case OPTION_BROKER: return set_holder(wanted, value, AUTH_AUDIENCE_BROKER, "broker");
    case OPTION_CLIENT: return set_holder(wanted, value, AUTH_AUDIENCE_CLIENT, "client");
    case OPTION_ADMIN: return set_holder(wanted, value, AUTH_AUDIENCE_ADMIN, "admin");
    case OPTION_KEY: wanted->key = value; return 0;
    case OPTION_EXPIRES: wanted->expires = value; return 0;
    case OPTION_NOT_BEFORE: wanted->not_before = value; return 0;
    case OPTION_AT: wanted->at = value; return 0;
    case ARGP_KEY_ARG: complain("%s: one word too many; this command takes options only", value); return EINVAL;
    default: break;
    }
    if (key < OPTION_LIST || key >= OPTION_LIST + LIST_COUNT) return ARGP_ERR_UNKNOWN;
    return add_to_list(wanted, (enum list_place)(key - OPTION_LIST), value);
}

static const struct argp arguments = {
    options,
    on_option,
    NULL,
    "Signs a token and prints it. A broker's token has at most 900 bytes, as it must fit into one gossip datagram. "
    "Brokers of this version ask for the tokens of brokers only, and do not enforce block and allow lists yet.\v"
    "Example:\n  hobnob token mint --issuer issuer.key --broker edge-4 --key edge-4.pub \\\n"
    "      --expires 90d > edge-4.jwt\n",
    NULL,
    NULL,
    NULL};

/* Says what is missing or cannot be; fills the times. */
static int check(const struct wanted *wanted, struct auth_claims *claims) {
    if (wanted->audience == NULL)
        return complain_usage("the token's holder is missing; write --broker NAME, --client NAME or --admin NAME");
    if (wanted->issuer == NULL)
        return complain_usage("--issuer: missing; name the issuer's private key, such as --issuer issuer.key");
    bool for_broker = strcmp(wanted->audience, AUTH_AUDIENCE_BROKER) == 0;
    if (for_broker && !auth_name_valid(wanted->name, strlen(wanted->name)))
        return complain_usage("--broker %s: is not a broker's name; write 1 to 63 letters, digits, dots, dashes and "
                              "underscores, a letter or digit first",
                              wanted->name);
    if (for_broker && wanted->key == NULL)
        return complain_usage(
            "--key: missing; a broker's token is bound to its key, name %s.pub (hobnob key new --out %s makes it)",
            wanted->name, wanted->name);
    if (wanted->expires == NULL)
        return complain_usage("--expires: missing; a token that never ends could not be taken back, write how long it "
                              "is to be valid, such as --expires 90d");

    claims->issued_at_s = when_now();
    if (wanted->at != NULL && !when_parse_time(wanted->at, &claims->issued_at_s))
        return complain_usage("--at %s: is not a time; write 2027-01-31, 2027-01-31T12:00:00Z or seconds since 1970",
                              wanted->at);
    if (wanted->not_before != NULL && !when_parse_time(wanted->not_before, &claims->not_before_s))
        return complain_usage(
            "--not-before %s: is not a time; write 2027-01-31, 2027-01-31T12:00:00Z or seconds since 1970",
            wanted->not_before);
    if (!when_parse_end(wanted->expires, claims->issued_at_s, &claims->expires_at_s))
        return complain_usage(
            "--expires %s: is neither a duration (up to 100y) nor a time; write 90d, 12h, 30min or 2027-01-31",
            wanted->expires);
    if (claims->expires_at_s <= claims->issued_at_s || claims->expires_at_s <= claims->not_before_s)
        return complain_usage("--expires %s: lies before the token begins to be valid; choose a later time",
                              wanted->expires);
    return EXIT_GOOD;
}

static bool bind(const char *path, struct auth_claims *claims) {
    struct auth_key *key = NULL;
    if (path == NULL) return true;
    if (!keyfile_read(path, false, &key)) return false;
    auth_key_thumbprint(key, claims->key_thumbprint);
    claims->key_bound = true;
    auth_key_free(key);
    return true;
}

static int mint(const struct wanted *wanted, struct auth_claims *claims) {
    static char reason[160];
    struct auth_key *issuer = NULL;
    uint8_t entropy[16];
    char *token = NULL;
    if (!bind(wanted->key, claims) || !keyfile_read(wanted->issuer, true, &issuer)) return EXIT_NO;
    bool good = random_bytes(entropy, sizeof entropy);
    if (good && auth_token_mint_saying(claims, issuer, entropy, &token, reason) != AUTH_OK) {
        complain("%s: %s", wanted->name, reason);
        good = false;
    }
    if (good && (puts(token) == EOF || fflush(stdout) != 0)) {
        complain("standard output: cannot be written; check the disk it goes to");
        good = false;
    }
    free(token);
    auth_key_free(issuer);
    return good ? EXIT_GOOD : EXIT_NO;
}

int command_token_mint(int argc, char **argv) {
    struct wanted wanted = {0};
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    static char audience[32];
    struct auth_claims claims = {.subject = wanted.name}; /* borrows; never given to auth_claims_deinit */
    code = check(&wanted, &claims);
    if (code != EXIT_GOOD) return code;
    snprintf(audience, sizeof audience, "%s", wanted.audience);
    claims.audience = audience;
    claims.blocked_publish_topics = wanted.lists[BLOCK_PUBLISH];
    claims.blocked_subscribe_topics = wanted.lists[BLOCK_SUBSCRIBE];
    claims.blocked_brokers = wanted.lists[BLOCK_BROKER];
    claims.allowed_publish_topics = wanted.lists[ALLOW_PUBLISH];
    claims.allowed_subscribe_topics = wanted.lists[ALLOW_SUBSCRIBE];
    return mint(&wanted, &claims);
}
