/* hobnob bench: puts a load on an MQTT broker and says what it made of it. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_wire.h"
#include "commands.h"
#include "complain.h"
#include "files.h"
#include "options.h"

#define CLIENTS_MAX 60000u      /* of all topics together */
#define PUBLISHERS_MAX 60000u   /* of a topic; a stamp counts them in 16 bits */
#define WINDOW_MAX 30000u       /* a stamp's number must tell ahead from behind */
#define PAYLOAD_MAX (64u << 20) /* bytes */
#define PREFIX_MAX 100u         /* bytes */

enum {
    OPTION_TOPIC = 256,
    OPTION_WARMUP,
    OPTION_WINDOW,
    OPTION_INFLIGHT,
    OPTION_DURABLE,
    OPTION_BROKER,
    OPTION_USER,
    OPTION_SUBSCRIBER_HOST,
    OPTION_SUBSCRIBER_PORT,
    OPTION_PASSWORD
};

static const struct argp_option options[] = {
    {"host", 'h', "HOST", 0, "The broker's address, 127.0.0.1 if not given", 0},
    {"port", 'p', "PORT", 0, "Its MQTT port, 1883 if not given", 0},
    {"subscriber-host", OPTION_SUBSCRIBER_HOST, "HOST", 0, "The subscribers' broker, if it is another one", 0},
    {"subscriber-port", OPTION_SUBSCRIBER_PORT, "PORT", 0, "Its MQTT port", 0},
    {"topics", 't', "N", 0, "So many topics, each with publishers and subscribers of its own; 1 if not given", 1},
    {"publishers", 'P', "N", 0, "Publishers of each topic; 1 if not given", 1},
    {"subscribers", 'S', "N", 0, "Subscribers of each topic; 1 if not given, may be 0", 1},
    {"qos", 'q', "0|1|2", 0, "Of publications and subscriptions; 0 if not given", 1},
    {"size", 's', "BYTES", 0, "Of each payload, at least 8; 64 if not given", 1},
    {"rate", 'r', "N", 0, "Publications a second, of all publishers together; as many as will go if not given", 1},
    {"seconds", 'd', "S", 0, "Time measured; 5 if not given", 2},
    {"warmup", OPTION_WARMUP, "S", 0, "Time before that; 0.5 if not given", 2},
    {"messages", 'n', "N", 0, "Ends after so many publications in all, all of it measured", 2},
    {"window", OPTION_WINDOW, "N", 0,
     "Publications of a topic that may be on their way at a time, so that no queue of the broker overflows; 1000 if "
     "not "
     "given",
     3},
    {"inflight", OPTION_INFLIGHT, "N", 0,
     "QoS 1 and 2: publications of a publisher not yet acknowledged; 100 if not given, less if the broker says so", 3},
    {"mqtt", 'V', "3.1.1|5", 0, "Version of the protocol; 3.1.1 if not given", 3},
    {"durable", OPTION_DURABLE, NULL, 0, "Subscribers' sessions outlive their connection (needs --mqtt 5)", 3},
    {"topic", OPTION_TOPIC, "PREFIX", 0, "Topics are PREFIX/0, PREFIX/1 and so on; bench if not given", 3},
    {"user", OPTION_USER, "NAME", 0, "User name of all clients", 3},
    {"password-file", OPTION_PASSWORD, "FILE", 0, "Their password, in a file", 3},
    {"broker-pid", OPTION_BROKER, "PID", 0, "The broker's process on this host: tells what it costs", 4},
    {"json", 'j', NULL, 0, "Print the result as JSON, for programs", 4},
    {NULL, 0, NULL, 0, NULL, 0},
};

struct wanted {
    struct bench_plan plan;
    const char *password_file;
    bool json;
};

/* A whole number within bounds, or a complaint. */
static bool parse_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value) {
    char *end;
    errno = 0;
    unsigned long long found = strtoull(text, &end, 10);
    if (errno == 0 && *text >= '0' && *text <= '9' && *end == '\0' && found >= least && found <= most) {
        *value = found;
        return true;
    }
    complain_usage("--%s %s: must be a whole number from %llu to %llu", option, text, (unsigned long long)least,
                   (unsigned long long)most);
    return false;
}

static bool parse_real(const char *option, const char *text, double least, double most, double *value) {
    char *end;
    double found = strtod(text, &end);
    if (end != text && *end == '\0' && found >= least && found <= most) {
        *value = found;
        return true;
    }
    complain_usage("--%s %s: must be a number from %g to %g", option, text, least, most);
    return false;
}

static error_t set_u32(const char *option, const char *text, uint64_t least, uint64_t most, uint32_t *field) {
    uint64_t value;
    if (!parse_count(option, text, least, most, &value)) return EINVAL;
    *field = (uint32_t)value;
    return 0;
}

static error_t set_real(const char *option, const char *text, double least, double most, double *field) {
    return parse_real(option, text, least, most, field) ? 0 : EINVAL;
}

static error_t set_version(struct bench_plan *plan, const char *text) {
    plan->version = strcmp(text, "5") == 0 || strcmp(text, "5.0") == 0 ? 5 : strcmp(text, "3.1.1") == 0 ? 4 : 0;
    if (plan->version != 0) return 0;
    complain_usage("--mqtt %s: no such version; write 3.1.1 or 5", text);
    return EINVAL;
}

static error_t set_prefix(struct bench_plan *plan, const char *text) {
    plan->prefix = text;
    if (*text != '\0' && strlen(text) <= PREFIX_MAX && strpbrk(text, "+#") == NULL) return 0;
    complain_usage("--topic %s: must be 1 to %u bytes without + and #", text, PREFIX_MAX);
    return EINVAL;
}

static error_t set_number(struct bench_plan *plan, int key, const char *text) {
    uint64_t number;
    switch (key) {
    case 'q':
        if (!parse_count("qos", text, 0, 2, &number)) return EINVAL;
        plan->qos = (uint8_t)number;
        return 0;
    case 's':
        if (!parse_count("size", text, sizeof(struct bench_stamp), PAYLOAD_MAX, &number)) return EINVAL;
        plan->payload_size = number;
        return 0;
    case 'n': return parse_count("messages", text, 1, UINT64_MAX / 2, &plan->messages) ? 0 : EINVAL;
    default:
        if (!parse_count("broker-pid", text, 1, INT32_MAX, &number)) return EINVAL;
        plan->broker_pid = (pid_t)number;
        return 0;
    }
}

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    struct bench_plan *plan = &wanted->plan;
    switch (key) {
    case 'h': plan->host = value; return 0;
    case 'p': plan->port = value; return 0;
    case 't': return set_u32("topics", value, 1, CLIENTS_MAX, &plan->topics);
    case 'P': return set_u32("publishers", value, 1, PUBLISHERS_MAX, &plan->publishers);
    case 'S': return set_u32("subscribers", value, 0, CLIENTS_MAX, &plan->subscribers);
    case 'q':
    case 's':
    case 'n':
    case OPTION_BROKER: return set_number(plan, key, value);
    case 'r': return set_real("rate", value, 0.001, 1e9, &plan->rate);
    case 'd': return set_real("seconds", value, 0.01, 1e6, &plan->seconds);
    case OPTION_WARMUP: return set_real("warmup", value, 0, 1e6, &plan->warmup_s);
    case OPTION_WINDOW: return set_u32("window", value, 1, WINDOW_MAX, &plan->window);
    case OPTION_INFLIGHT: return set_u32("inflight", value, 1, UINT16_MAX, &plan->inflight);
    case 'V': return set_version(plan, value);
    case OPTION_DURABLE: plan->durable = true; return 0;
    case OPTION_TOPIC: return set_prefix(plan, value);
    case OPTION_USER: plan->user = value; return 0;
    case OPTION_SUBSCRIBER_HOST: plan->subscriber_host = value; return 0;
    case OPTION_SUBSCRIBER_PORT: plan->subscriber_port = value; return 0;
    case OPTION_PASSWORD: wanted->password_file = value; return 0;
    case 'j': wanted->json = true; return 0;
    case ARGP_KEY_ARG: complain("%s: one word too many; this command takes options only", value); return EINVAL;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp arguments = {
    options,
    on_option,
    NULL,
    "Puts a load on an MQTT broker, any one, and says how many messages went through, how long they took and what was "
    "lost. It uses one core; for more, run several with a --topic of their own.\v"
    "Examples:\n"
    "  hobnob bench                                 one to one\n"
    "  hobnob bench --topics 10 --qos 1             ten pairs\n"
    "  hobnob bench --subscribers 100               one to many\n"
    "  hobnob bench --publishers 100                many to one\n"
    "  hobnob bench --rate 1000 --seconds 30        latency at a fixed rate\n"
    "  hobnob bench --rate 1000 --subscriber-port 1884    across to another\n"
    "\nLatency is counted from before the write to after the read. Without --rate it says how long the window is, and "
    "not how fast the broker. Exit status 1 if a client was refused or cut off, or if messages of QoS 1 or 2 were "
    "lost.\n",
    NULL,
    NULL,
    NULL};

/* What no single option shows. */
static int check(const struct bench_plan *plan) {
    uint64_t clients = (uint64_t)plan->topics * ((uint64_t)plan->publishers + plan->subscribers);
    struct bench_process process;
    if (clients > CLIENTS_MAX)
        return complain_usage("%llu clients are too many; at most %u, so take fewer --topics, --publishers or "
                              "--subscribers",
                              (unsigned long long)clients, CLIENTS_MAX);
    if (plan->durable && plan->version != 5) return complain_usage("--durable: needs --mqtt 5");
    if (plan->password != NULL && plan->user == NULL) return complain_usage("--password-file: needs --user too");
    if (plan->broker_pid != 0 && !bench_process_read(plan->broker_pid, &process))
        return complain_usage("--broker-pid %ld: there is no such process on this host", (long)plan->broker_pid);
    return EXIT_GOOD;
}

static int run(const struct wanted *wanted) {
    struct bench_result *result = malloc(sizeof *result);
    if (result == NULL) {
        complain("memory is short; try again");
        return EXIT_NO;
    }
    int code = EXIT_NO;
    if (bench_run(&wanted->plan, result)) {
        bool good = true;
        if (wanted->json)
            good = bench_print_json(&wanted->plan, result);
        else
            bench_print(&wanted->plan, result);
        if (!good) complain("memory is short; ask without --json");
        code = good && (wanted->plan.qos == 0 || result->lost == 0) ? EXIT_GOOD : EXIT_NO;
    }
    free(result);
    return code;
}

int command_bench(int argc, char **argv) {
    struct wanted wanted = {.plan = {.host = "127.0.0.1",
                                     .port = "1883",
                                     .version = 4,
                                     .topics = 1,
                                     .publishers = 1,
                                     .subscribers = 1,
                                     .prefix = "bench",
                                     .payload_size = 64,
                                     .seconds = 5,
                                     .warmup_s = 0.5,
                                     .window = 1000,
                                     .inflight = 100}};
    char *password = NULL;
    size_t password_size;
    int code;
    if (!options_parse(&arguments, argc, argv, &wanted, &code)) return code;
    if (wanted.password_file != NULL) {
        if (!file_read(wanted.password_file, &password, &password_size)) return EXIT_NO;
        password[strcspn(password, "\r\n")] = '\0';
        wanted.plan.password = password;
    }
    code = check(&wanted.plan);
    if (code == EXIT_GOOD) code = run(&wanted);
    free(password);
    return code;
}
