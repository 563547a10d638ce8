/* hobnob token show: what a token says. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"
#include "commands.h"
#include "complain.h"
#include "options.h"
#include "tokenfile.h"
#include "when.h"

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print the claims as JSON, for programs", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options, options_on_show,
    "FILE",  "Shows what the token in FILE (- for standard input) says, without checking its signature.",
    NULL,    NULL,
    NULL};

static void print_line(const char *title, const char *text) {
    printf("  %-26s %s\n", title, text);
}

static void print_time(const char *title, int64_t time_s, int64_t now_s) {
    char text[160];
    snprintf(text, sizeof text, "%s, %s", when_time(time_s).text, when_relative(time_s, now_s).text);
    print_line(title, text);
}

static void print_list(const char *title, const struct auth_filters *list) {
    for (size_t i = 0; i < list->count; i++)
        print_line(i == 0 ? title : "", list->items[i]);
}

static void print_claims(const struct auth_claims *claims, size_t size) {
    int64_t now_s = when_now();
    char text[64];
    print_line("for (sub)", claims->subject);
    print_line("use (aud)", claims->audience);
    print_line("issuer's key (iss)", claims->issuer);
    print_line("token id (jti)", claims->token_id);
    print_time("issued (iat)", claims->issued_at_s, now_s);
    if (claims->not_before_s != 0) print_time("valid from (nbf)", claims->not_before_s, now_s);
    print_time(claims->expires_at_s > now_s ? "expires (exp)" : "EXPIRED (exp)", claims->expires_at_s, now_s);
    if (claims->key_bound) {
        auth_base64url_encode(claims->key_thumbprint, AUTH_THUMBPRINT_SIZE, text);
        print_line("bound to key (cnf.jkt)", text);
    }
    print_list("blocked_publish_topics", &claims->blocked_publish_topics);
    print_list("blocked_subscribe_topics", &claims->blocked_subscribe_topics);
    print_list("blocked_brokers", &claims->blocked_brokers);
    print_list("allowed_publish_topics", &claims->allowed_publish_topics);
    print_list("allowed_subscribe_topics", &claims->allowed_subscribe_topics);
    snprintf(text, sizeof text, "%zu bytes", size);
    print_line("size", text);
    puts("The signature was not checked; hobnob token verify does that.");
}

/* The middle part as it is; the token was decoded before, so it is good JSON. */
static int print_json(const char *token) {
    static uint8_t json[AUTH_TOKEN_MAX];
    const char *begin = strchr(token, '.') + 1;
    long size = auth_base64url_decode(begin, strcspn(begin, "."), json, sizeof json);
    json_t *claims = size > 0 ? json_loadb((const char *)json, (size_t)size, 0, NULL) : NULL;
    if (claims == NULL) {
        complain("memory is short; try again");
        return EXIT_NO;
    }
    json_dumpf(claims, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(claims);
    return EXIT_GOOD;
}

int command_token_show(int argc, char **argv) {
    struct options_show wanted = {0};
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    if (wanted.path == NULL)
        return complain_usage("the token's file is missing; write \"%s FILE\", or - for standard input", argv[0]);

    char *token = NULL, reason[160];
    size_t size = 0;
    struct auth_claims claims;
    if (!tokenfile_read(wanted.path, &token, &size)) return EXIT_NO;
    if (auth_token_decode(token, size, &claims, reason) != AUTH_OK) {
        complain("%s: %s", wanted.path, reason);
        free(token);
        return EXIT_NO;
    }
    if (wanted.json)
        code = print_json(token);
    else
        print_claims(&claims, size);
    auth_claims_deinit(&claims);
    free(token);
    return code;
}
