/* hobnob key push: a signed gossip key ring, into the hands of a running broker. */
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "commands.h"
#include "complain.h"
#include "options.h"
#include "ringfile.h"

struct wanted {
    const char *path;
    struct admin_options admin;
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case 'a': wanted->admin.url = value; return 0;
    case 'j': wanted->admin.json = true; return 0;
    case ARGP_KEY_ARG: return options_one_file(&wanted->path, value);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"admin", 'a', "URL", 0, "The broker's listen.admin, http://127.0.0.1:9100 if not given", 0},
    {"json", 'j', NULL, 0, "Print the answer as JSON, for programs", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    on_option,
    "FILE",
    "Gives the gossip key ring in FILE to one running broker, which checks it, keeps it, and passes it on to all "
    "others. Ends with 1 if the broker does not take it.\v"
    "Example:\n  hobnob key push gossip-1.ring --admin http://127.0.0.1:9100\n  hobnob members --admin "
    "http://127.0.0.1:9100\n",
    NULL,
    NULL,
    NULL};

static int tell(const struct wanted *wanted, json_t *answer) {
    json_t *ring = json_object_get(answer, "ring");
    const char *verdict = json_string_value(json_object_get(ring, "verdict"));
    if (verdict == NULL) {
        complain("%s: the answer says nothing of a ring; is this hobnobd of this version?", wanted->admin.url);
        return EXIT_NO;
    }
    if (wanted->admin.json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
        return EXIT_GOOD;
    }
    long long number = (long long)json_integer_value(json_object_get(ring, "number"));
    if (strcmp(verdict, "held") == 0)
        printf("Ring %lld is used there already. \"hobnob members\" shows who else has it.\n", number);
    else
        printf("Ring %lld is used there from now on, and passed on. \"hobnob members\" shows who else has it.\n",
               number);
    return EXIT_GOOD;
}

int command_key_push(int argc, char **argv) {
    struct wanted wanted = {.admin = {"http://127.0.0.1:9100", false}};
    struct auth_signed_ring ring;
    char text[AUTH_SIGNED_RING_MAX + 1];
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code) || !admin_url_good(&wanted.admin, &code)) return code;
    if (wanted.path == NULL)
        return complain_usage("the ring's file is missing; write \"%s FILE\", with one that hobnob key rotate made",
                              argv[0]);
    if (!ringfile_read_text(wanted.path, text, &ring)) return EXIT_NO;
    json_t *answer = admin_post(&wanted.admin, "ring", text, strlen(text));
    code = answer != NULL ? tell(&wanted, answer) : EXIT_NO;
    json_decref(answer);
    explicit_bzero(text, sizeof text);
    explicit_bzero(&ring, sizeof ring);
    return code;
}
