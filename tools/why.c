/* hobnob why: what keeps a publication from getting from one broker to another. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "commands.h"
#include "complain.h"
#include "options.h"
#include "table.h"

#define QUERY_MAX 3072u

struct wanted {
    const char *topic, *from, *to;
    struct admin_options admin;
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case 'f': wanted->from = value; return 0;
    case 't': wanted->to = value; return 0;
    case 'a': wanted->admin.url = value; return 0;
    case 'j': wanted->admin.json = true; return 0;
    case ARGP_KEY_ARG:
        if (wanted->topic == NULL) {
            wanted->topic = value;
            return 0;
        }
        complain("%s: one word too many; name one topic", value);
        return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"from", 'f', "BROKER", 0, "Where it is published", 0},
    {"to", 't', "BROKER", 0, "Where the clients are that do not get it", 0},
    {"admin", 'a', "URL", 0, "The listen.admin of any broker, http://127.0.0.1:9100 if not given", 0},
    {"json", 'j', NULL, 0, "Print the answer as JSON, for programs", 0},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    on_option,
    "TOPIC",
    "Says why a publication on TOPIC, made at one broker, does not arrive at the clients of another, or that it would. "
    "The broker that is asked asks both. Ends with 0 if it would arrive, 1 if it would not, 2 if that cannot be told, "
    "as a broker does not answer.\v"
    "Example:\n  hobnob why plant/1/temp --from edge-1 --to edge-2\n",
    NULL,
    NULL,
    NULL};

static bool is_missing(const struct wanted *wanted, int *code) {
    if (wanted->topic == NULL || *wanted->topic == '\0')
        *code = complain_usage("the topic is missing; write hobnob why TOPIC --from BROKER --to BROKER");
    else if (wanted->from == NULL || *wanted->from == '\0')
        *code = complain_usage("--from is missing: the broker at which it is published");
    else if (wanted->to == NULL || *wanted->to == '\0')
        *code = complain_usage("--to is missing: the broker whose clients do not get it");
    else
        return !admin_url_good(&wanted->admin, code);
    return true;
}

static json_t *ask(const struct wanted *wanted) {
    char query[QUERY_MAX];
    char *topic = curl_easy_escape(NULL, wanted->topic, 0), *from = curl_easy_escape(NULL, wanted->from, 0),
         *to = curl_easy_escape(NULL, wanted->to, 0);
    json_t *answer = NULL;
    if (topic == NULL || from == NULL || to == NULL)
        complain("memory is short; try again");
    else if ((size_t)snprintf(query, sizeof query, "why?topic=%s&from=%s&to=%s", topic, from, to) >= sizeof query)
        complain("the topic is too long to be asked about");
    else
        answer = admin_ask(&wanted->admin, query);
    curl_free(topic);
    curl_free(from);
    curl_free(to);
    return answer;
}

static const char *word(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static bool print_steps(const json_t *steps) {
    struct table *table = table_new();
    bool good = table != NULL;
    static const char *const titles[] = {"", "stage", "broker", "what it says"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        good = good && table_add_column(table, titles[i], false);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *cells[] = {json_is_true(json_object_get(step, "stops")) ? "STOP" : "ok", word(step, "stage"),
                               word(step, "broker"), word(step, "text")};
        good = good && table_add_row(table, cells);
    }
    good = good && table_print(table);
    table_free(table);
    if (!good) complain("memory is short; ask with --json");
    return good;
}

static int tell(const struct wanted *wanted, json_t *answer) {
    const json_t *why = json_object_get(answer, "why"), *arrives = json_object_get(why, "arrives");
    if (arrives == NULL) {
        complain("%s: the answer says nothing of it; is this hobnobd of this version?", wanted->admin.url);
        return EXIT_USAGE;
    }
    int code = json_is_true(arrives) ? EXIT_GOOD : json_is_false(arrives) ? EXIT_NO : EXIT_USAGE;
    static const char *const verdicts[] = {
        [EXIT_GOOD] = "would arrive", [EXIT_NO] = "would not arrive", [EXIT_USAGE] = "cannot be told"};
    if (wanted->admin.json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
        return code;
    }
    printf("From %s to %s: %s\n", wanted->from, wanted->to, verdicts[code]);
    if (code != EXIT_GOOD) printf("%s: %s\n", word(why, "broker"), word(why, "reason"));
    putchar('\n');
    return print_steps(json_object_get(why, "steps")) ? code : EXIT_USAGE;
}

int command_why(int argc, char **argv) {
    struct wanted wanted = {.admin = {"http://127.0.0.1:9100", false}};
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code) || is_missing(&wanted, &code)) return code;
    json_t *answer = ask(&wanted);
    if (answer == NULL) return EXIT_USAGE;
    code = tell(&wanted, answer);
    json_decref(answer);
    return code;
}
