/* hobnob key show: what a gossip key ring says, without its keys. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "options.h"
#include "ringfile.h"

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print it as JSON, for programs", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    options_on_show,
    "FILE",
    "Shows what the gossip key ring in FILE says: its number, and the id and stage of each key, which are no secrets. "
    "The signature is not checked.",
    NULL,
    NULL,
    NULL};

static json_t *to_json(const struct auth_signed_ring *ring, const char *issuer) {
    json_t *keys = json_array();
    for (size_t i = 0; keys != NULL && i < ring->count; i++) {
        const uint8_t *id = ring->keys[i].id;
        char text[9];
        snprintf(text, sizeof text, "%02x%02x%02x%02x", id[0], id[1], id[2], id[3]);
        json_array_append_new(keys, json_pack("{s:s, s:s}", "id", text, "stage", ringfile_stage(ring->keys[i].stage)));
    }
    return json_pack("{s:I, s:s, s:s, s:s, s:o}", "number", (json_int_t)ring->number, "federation", ring->federation,
                     "mark", ringfile_mark(ring).text, "issuer", issuer, "keys", keys);
}

static void print_ring(const struct auth_signed_ring *ring, const char *issuer) {
    printf("  %-12s %llu\n", "number", (unsigned long long)ring->number);
    printf("  %-12s %s\n", "federation", ring->federation);
    printf("  %-12s %s\n", "mark", ringfile_mark(ring).text);
    printf("  %-12s %s\n", "issuer's key", issuer);
    for (size_t i = 0; i < ring->count; i++) {
        const uint8_t *id = ring->keys[i].id;
        printf("  %-12s %02x%02x%02x%02x %s\n", i == 0 ? "keys" : "", id[0], id[1], id[2], id[3],
               ringfile_stage(ring->keys[i].stage));
    }
    printf("This is %s.\n", ringfile_meaning(ring));
}

int command_key_show(int argc, char **argv) {
    struct options_show wanted = {0};
    struct auth_signed_ring ring;
    char issuer[44];
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    if (wanted.path == NULL)
        return complain_usage("the ring's file is missing; write \"%s FILE\", or - for standard input", argv[0]);
    if (!ringfile_read(wanted.path, &ring)) return EXIT_NO;
    auth_base64url_encode(ring.issuer, sizeof ring.issuer, issuer);
    code = EXIT_GOOD;
    if (wanted.json) {
        json_t *json = to_json(&ring, issuer);
        if (json == NULL) {
            complain("memory is short; try again");
            code = EXIT_NO;
        } else {
            json_dumpf(json, stdout, JSON_INDENT(2));
            putchar('\n');
        }
        json_decref(json);
    } else {
        print_ring(&ring, issuer);
    }
    explicit_bzero(&ring, sizeof ring);
    return code;
}
