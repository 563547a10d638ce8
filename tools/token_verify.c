/* hobnob token verify: would a broker believe this token? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"
#include "commands.h"
#include "complain.h"
#include "keyfile.h"
#include "options.h"
#include "tokenfile.h"
#include "when.h"

#define ISSUERS_MAX 8u

enum option_key { OPTION_ISSUER = 1000, OPTION_AT, OPTION_KEY, OPTION_AS };

struct wanted {
    const char *issuers[ISSUERS_MAX];
    size_t issuer_count;
    const char *at, *key, *as, *path;
};

static const struct argp_option options[] = {
    {"issuer", OPTION_ISSUER, "FILE", 0, "A trusted issuer's public key (several times while rotating)", 0},
    {"key", OPTION_KEY, "FILE", 0, "Check too that the token is bound to this key, .key or .pub", 0},
    {"as", OPTION_AS, "USE", 0, "What it is to be used as: broker, client or admin; what it says itself if not given",
     0},
    {"at", OPTION_AT, "TIME", 0, "Check as if it were this time", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case OPTION_AT: wanted->at = value; return 0;
    case OPTION_KEY: wanted->key = value; return 0;
    case OPTION_AS: wanted->as = value; return 0;
    case OPTION_ISSUER:
        if (wanted->issuer_count == ISSUERS_MAX) {
            complain("--issuer: more than %u of them; leave some out", ISSUERS_MAX);
            return EINVAL;
        }
        wanted->issuers[wanted->issuer_count++] = value;
        return 0;
    case ARGP_KEY_ARG: return options_one_file(&wanted->path, value);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp arguments = {
    options,
    on_option,
    "FILE",
    "Checks the token in FILE (- for standard input) as a broker would. Exit status 0: it is good; 1: it is not, and "
    "why is said.\v"
    "Example:\n  hobnob token verify --issuer issuer.pub --key edge-4.key edge-4.jwt\n",
    NULL,
    NULL,
    NULL};

static const char *audience_of(const char *as) {
    if (strcmp(as, "broker") == 0) return AUTH_AUDIENCE_BROKER;
    if (strcmp(as, "client") == 0) return AUTH_AUDIENCE_CLIENT;
    return strcmp(as, "admin") == 0 ? AUTH_AUDIENCE_ADMIN : NULL;
}

static bool bound_to(const char *path, const struct auth_claims *claims, char reason[160]) {
    struct auth_key *key = NULL;
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    *reason = '\0';
    if (!keyfile_read(path, false, &key)) return false;
    auth_key_thumbprint(key, thumbprint);
    auth_key_free(key);
    if (claims->key_bound && memcmp(thumbprint, claims->key_thumbprint, sizeof thumbprint) == 0) return true;
    snprintf(reason, 160, "%s: mint one with hobnob token mint --key",
             claims->key_bound ? "the token is bound to another key" : "the token is bound to no key");
    return false;
}

static int verify(const struct wanted *wanted, const struct auth_key *const *issuers, const char *token, size_t size,
                  int64_t now_s) {
    char reason[160];
    struct auth_claims claims;
    const char *audience = wanted->as != NULL ? audience_of(wanted->as) : NULL;
    char own[32];
    if (audience == NULL && auth_token_decode(token, size, &claims, reason) == AUTH_OK) {
        /* An audience that is none of ours is then refused as not for use as a broker. */
        bool known = strncmp(claims.audience, "hobnob:", 7) == 0 && audience_of(claims.audience + 7) != NULL;
        snprintf(own, sizeof own, "%s", known ? claims.audience : AUTH_AUDIENCE_BROKER);
        audience = own;
        auth_claims_deinit(&claims);
    }
    if (auth_token_verify(token, size, issuers, wanted->issuer_count,
                          audience != NULL ? audience : AUTH_AUDIENCE_BROKER, now_s, &claims, reason) != AUTH_OK) {
        complain("%s: %s", wanted->path, reason);
        return EXIT_NO;
    }
    bool good = wanted->key == NULL || bound_to(wanted->key, &claims, reason);
    if (good)
        printf("good: %s, for use as %s, expires %s (%s)\n", claims.subject, claims.audience,
               when_time(claims.expires_at_s).text, when_relative(claims.expires_at_s, now_s).text);
    else if (*reason != '\0')
        complain("%s: %s", wanted->path, reason);
    auth_claims_deinit(&claims);
    return good ? EXIT_GOOD : EXIT_NO;
}

int command_token_verify(int argc, char **argv) {
    struct wanted wanted = {0};
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    int64_t now_s = when_now();
    if (wanted.path == NULL)
        return complain_usage(
            "the token's file is missing; write \"%s --issuer issuer.pub FILE\", or - for standard input", argv[0]);
    if (wanted.issuer_count == 0)
        return complain_usage(
            "--issuer: missing; name the public key of the issuer you trust, such as --issuer issuer.pub");
    if (wanted.as != NULL && audience_of(wanted.as) == NULL)
        return complain_usage("--as %s: no such use; write broker, client or admin", wanted.as);
    if (wanted.at != NULL && !when_parse_time(wanted.at, &now_s))
        return complain_usage("--at %s: is not a time; write 2027-01-31, 2027-01-31T12:00:00Z or seconds since 1970",
                              wanted.at);

    struct auth_key *issuers[ISSUERS_MAX] = {NULL};
    char *token = NULL;
    size_t size = 0;
    bool good = true;
    for (size_t i = 0; good && i < wanted.issuer_count; i++)
        good = keyfile_read(wanted.issuers[i], false, &issuers[i]);
    good = good && tokenfile_read(wanted.path, &token, &size);
    code = good ? verify(&wanted, (const struct auth_key *const *)issuers, token, size, now_s) : EXIT_NO;
    free(token);
    for (size_t i = 0; i < wanted.issuer_count; i++)
        auth_key_free(issuers[i]);
    return code;
}
