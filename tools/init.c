/* hobnob init: a federation's keys, tokens and configurations, offline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "options.h"
#include "site.h"
#include "table.h"
#include "when.h"

#define ARGUMENTS_MAX 1024u

enum option_key { OPTION_BROKERS = 1000, OPTION_HOST, OPTION_PORTS, OPTION_EXPIRES };

struct wanted {
    char *dir, *brokers, *ports;
    const char *expires;
    char *hosts[ARGUMENTS_MAX];
    size_t host_count;
};

static error_t on_option(int key, char *value, struct argp_state *state) {
    struct wanted *wanted = state->input;
    switch (key) {
    case OPTION_BROKERS: wanted->brokers = value; return 0;
    case OPTION_PORTS: wanted->ports = value; return 0;
    case OPTION_EXPIRES: wanted->expires = value; return 0;
    case OPTION_HOST:
        if (wanted->host_count == ARGUMENTS_MAX) {
            complain("--host: more than %u of them; leave some for later", ARGUMENTS_MAX);
            return EINVAL;
        }
        wanted->hosts[wanted->host_count++] = value;
        return 0;
    case ARGP_KEY_ARG:
        if (wanted->dir != NULL) {
            complain("%s: one word too many; name one folder, and the brokers with commas and no spaces", value);
            return EINVAL;
        }
        wanted->dir = value;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"brokers", OPTION_BROKERS, "NAME,NAME...", 0, "The brokers of the federation", 1},
    {"host", OPTION_HOST, "NAME=ADDRESS", 0,
     "The broker NAME runs on a host of its own, which others reach by this name or IP address (once for each)", 2},
    {"expires", OPTION_EXPIRES, "WHEN", 0, "How long the tokens are valid, or until when; 365d if not given", 3},
    {"ports", OPTION_PORTS, "KIND=PORT,...", 0,
     "First port of each kind; mqtt=1883,ws=8080,peers=7100,admin=9100 if not given. Further brokers on a host count "
     "up from it",
     4},
    {NULL, 0, NULL, 0, NULL, 0},
};
static const struct argp arguments = {
    options,
    on_option,
    "DIR",
    "Makes the folder DIR with an issuer's key, a gossip key, and a folder for each broker that can be copied to its "
    "host as it is. "
    "Without --host all brokers run on this host. Needs no network; an existing DIR is never touched.\v"
    "Examples:\n  hobnob init site --brokers edge-1,edge-2,edge-3\n  hobnob init site --brokers a,b --host a=10.0.0.7 "
    "--host b=b.example\n",
    NULL,
    NULL,
    NULL};

static bool add_broker(struct table *table, const struct site_broker *broker) {
    char cells[1 + PORT_COUNT][320];
    const char *row[1 + PORT_COUNT];
    bool v6 = strchr(broker->host, ':') != NULL;
    snprintf(cells[0], sizeof cells[0], "%s", broker->name);
    for (size_t kind = 0; kind < PORT_COUNT; kind++)
        snprintf(cells[1 + kind], sizeof cells[0], "%s%s%s:%u", v6 && kind != PORT_ADMIN ? "[" : "",
                 kind == PORT_ADMIN ? "127.0.0.1" : broker->host, v6 && kind != PORT_ADMIN ? "]" : "",
                 broker->ports[kind]);
    for (size_t i = 0; i < 1 + PORT_COUNT; i++)
        row[i] = cells[i];
    return table_add_row(table, row);
}

static void print_brokers(const struct site *site) {
    static const char *const titles[] = {"BROKER", "MQTT", "WEBSOCKET", "PEERS", "ADMIN"};
    struct table *table = table_new();
    bool good = table != NULL;
    for (size_t i = 0; good && i < 1 + PORT_COUNT; i++)
        good = table_add_column(table, titles[i], false);
    for (size_t i = 0; good && i < site->broker_count; i++)
        good = add_broker(table, &site->brokers[i]);
    if (good) table_print(table);
    table_free(table);
}

static void print_summary(const struct site *site) {
    const struct site_broker *first = &site->brokers[0], *last = &site->brokers[site->broker_count - 1];
    printf("Made %s: %zu broker%s, tokens valid until %s.\n\n", site->dir, site->broker_count,
           site->broker_count > 1 ? "s" : "", when_time(site->expires_at_s).text);
    print_brokers(site);
    printf("\nKeep %s/issuer.key safe and offline: whoever has it can add brokers.\n\n", site->dir);
    if (first->loopback) {
        printf("Start %s:\n", site->broker_count > 1 ? "each in a terminal of its own" : "it");
        for (size_t i = 0; i < site->broker_count && i < 10; i++)
            printf("  hobnobd %s/%s/hobnob.yaml\n", site->dir, site->brokers[i].name);
        if (site->broker_count > 10) puts("  ...");
        printf("Then:\n  hobnob members --admin http://127.0.0.1:%u\n", first->ports[PORT_ADMIN]);
        printf("  mosquitto_sub -h %s -p %u -t '#' -v\n", last->host, last->ports[PORT_MQTT]);
        printf("  mosquitto_pub -h %s -p %u -t hello -m world\n", first->host, first->ports[PORT_MQTT]);
        return;
    }
    puts("Copy each folder to its host and start it there:");
    printf("  scp -rp %s/%s %s:\n  hobnobd %s/hobnob.yaml\n", site->dir, first->name, first->host, first->name);
    puts("Clients are refused until hobnob.yaml says \"anonymous: true\" under clients: then every client that reaches "
         "the host is let in.");
    printf("Open the peers port between the hosts, UDP and TCP (%u).\n", first->ports[PORT_PEERS]);
}

static int prepare(struct site *site, struct wanted *wanted) {
    if (wanted->dir == NULL || *wanted->dir == '\0')
        return complain_usage("the folder to make is missing; write hobnob init DIR --brokers edge-1,edge-2");
    if (wanted->brokers == NULL)
        return complain_usage("--brokers: missing; name the brokers to make, such as --brokers edge-1,edge-2,edge-3");
    for (size_t size = strlen(wanted->dir); size > 1 && wanted->dir[size - 1] == '/'; size--)
        wanted->dir[size - 1] = '\0';
    site->dir = wanted->dir;
    site->now_s = when_now();
    if (!when_parse_end(wanted->expires, site->now_s, &site->expires_at_s))
        return complain_usage(
            "--expires %s: is neither a duration (up to 100y) nor a time; write 365d, 12h or 2027-01-31",
            wanted->expires);
    if (site->expires_at_s <= site->now_s)
        return complain_usage("--expires %s: is in the past; choose a later time", wanted->expires);

    int code = site_set_names(site, wanted->brokers);
    for (size_t i = 0; code == EXIT_GOOD && i < wanted->host_count; i++)
        code = site_set_host(site, wanted->hosts[i]);
    if (code == EXIT_GOOD && wanted->ports != NULL) code = site_set_ports(site, wanted->ports);
    return code == EXIT_GOOD ? site_assign(site) : code;
}

int command_init(int argc, char **argv) {
    struct wanted *wanted = calloc(1, sizeof *wanted);
    struct site *site = calloc(1, sizeof *site);
    int code = EXIT_NO;
    if (wanted == NULL || site == NULL) {
        complain("memory is short; try again");
    } else {
        wanted->expires = "365d";
        *site = (struct site){.base_ports = {1883, 8080, 7100, 9100}};
        if (options_parse(&arguments, argc, argv, wanted, &code)) code = prepare(site, wanted);
        if (code == EXIT_GOOD) {
            code = site_write(site) ? EXIT_GOOD : EXIT_NO;
            if (code == EXIT_GOOD) print_summary(site);
        }
    }
    free(site);
    free(wanted);
    return code;
}
