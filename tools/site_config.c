#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "site.h"

/* Brackets and colons mean something in YAML and in HOST:PORT alike. */
static void print_address(FILE *out, const char *host, uint16_t port) {
    if (strchr(host, ':') != NULL)
        fprintf(out, "\"[%s]:%u\"", host, port);
    else
        fprintf(out, "%s:%u", host, port);
}

static void print_listener(FILE *out, const char *key, const char *host, uint16_t port, const char *comment) {
    fprintf(out, "  %s: ", key);
    print_address(out, host, port);
    fprintf(out, "%s%s\n", *comment != '\0' ? "  # " : "", comment);
}

static void print_listeners(FILE *out, const struct site_broker *broker) {
    bool v6 = strchr(broker->host, ':') != NULL;
    const char *host = broker->loopback ? broker->host : v6 ? "::" : "0.0.0.0";
    fputs("listen:\n", out);
    print_listener(out, "mqtt", host, broker->ports[PORT_MQTT], "");
    print_listener(out, "ws", host, broker->ports[PORT_WS], "MQTT over WebSocket, path /mqtt");
    print_listener(out, "peers", host, broker->ports[PORT_PEERS],
                   "the one port other brokers need: gossip on UDP, links on TCP");
    print_listener(out, "admin", "127.0.0.1", broker->ports[PORT_ADMIN], "for hobnob status, and /metrics");
}

/* The brokers that follow in the list, round its end: with more than hobnobd reads, still every broker is named by
 * some. */
static void print_federation(FILE *out, const struct site *site, size_t index) {
    const struct site_broker *broker = &site->brokers[index];
    fputs("federation:\n  advertise: ", out);
    print_address(out, broker->host, broker->ports[PORT_PEERS]);
    fputs("  # how the others reach this broker\n", out);
    if (site->broker_count > 1) fputs("  bootstrap:  # whom to ask first; those not listed are found by gossip\n", out);
    for (size_t i = 1; i < site->broker_count && i <= SITE_BOOTSTRAP_MAX; i++) {
        const struct site_broker *other = &site->brokers[(index + i) % site->broker_count];
        fputs("    - ", out);
        print_address(out, other->host, other->ports[PORT_PEERS]);
        fputc('\n', out);
    }
    fputs("  gossip_key: gossip.key  # the same at every broker\n", out);
}

char *site_config_text(const struct site *site, size_t index) {
    const struct site_broker *broker = &site->brokers[index];
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out,
            "# Broker %s. Start it with: hobnobd hobnob.yaml\n"
            "# Paths are relative to this file, so the folder can be moved as it is.\n"
            "name: %s  # as in its token\n"
            "data_dir: data\n\n"
            "identity:\n"
            "  token: %s.jwt\n"
            "  key: %s.key  # private: leave its mode at 0600\n"
            "  issuers: [issuer.pub]  # whose tokens are believed\n\n",
            broker->name, broker->name, broker->name, broker->name);
    print_listeners(out, broker);
    fputc('\n', out);
    print_federation(out, site, index);
    if (broker->loopback)
        fputs("\n# Clients on this host need no password. To welcome or refuse everybody, write:\n# clients:\n#   "
              "anonymous: true\n",
              out);
    else
        fputs("\nclients:\n  anonymous: false  # true lets in every client that reaches the mqtt and ws ports, from "
              "any host\n",
              out);
    bool good = ferror(out) == 0;
    if (fclose(out) == 0 && good) return text;
    free(text);
    return NULL;
}
