#include "site.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"
#include "complain.h"
#include "nearest.h"

static const char *const port_names[PORT_COUNT] = {"mqtt", "ws", "peers", "admin"};

/* Folders and files of init's own bear these names. */
static bool reserved(const char *name) {
    static const char *const names[] = {"issuer", "gossip", "hobnob.yaml", "issuer.key", "issuer.pub", "gossip.key"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static struct site_broker *find(struct site *site, const char *name) {
    for (size_t i = 0; i < site->broker_count; i++)
        if (strcmp(site->brokers[i].name, name) == 0) return &site->brokers[i];
    return NULL;
}

int site_set_names(struct site *site, char *list) {
    for (char *name; (name = strsep(&list, ",")) != NULL;) {
        if (*name == '\0')
            return complain_usage("--brokers: a name is missing beside a comma; write --brokers edge-1,edge-2");
        if (!auth_name_valid(name, strlen(name)))
            return complain_usage("--brokers %s: is not a broker's name; write 1 to 63 letters, digits, dots, dashes "
                                  "and underscores, a letter or digit first",
                                  name);
        if (reserved(name))
            return complain_usage("--brokers %s: is the name of a file made here; choose another", name);
        if (find(site, name) != NULL)
            return complain_usage("--brokers %s: is there twice; give each broker a name of its own", name);
        if (site->broker_count == SITE_BROKERS_MAX)
            return complain_usage("--brokers: more than %u of them; leave some for later", SITE_BROKERS_MAX);
        site->brokers[site->broker_count++] = (struct site_broker){.name = name, .host = "127.0.0.1", .loopback = true};
    }
    return EXIT_GOOD;
}

static bool host_valid(const char *host) {
    struct in6_addr v6;
    if (strchr(host, ':') != NULL) return inet_pton(AF_INET6, host, &v6) == 1;
    size_t size = strlen(host);
    return size > 0 && size <= SITE_HOST_MAX &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == size && *host != '-';
}

int site_set_host(struct site *site, char *assignment) {
    char *host = strchr(assignment, '=');
    if (host == NULL) return complain_usage("--host %s: has no \"=\"; write --host NAME=ADDRESS", assignment);
    *host++ = '\0';
    struct site_broker *broker = find(site, assignment);
    if (broker == NULL) {
        const char *names[SITE_BROKERS_MAX];
        for (size_t i = 0; i < site->broker_count; i++)
            names[i] = site->brokers[i].name;
        const char *meant = nearest_word(assignment, names, site->broker_count);
        if (meant != NULL)
            return complain_usage("--host %s: no such broker in --brokers; did you mean %s?", assignment, meant);
        return complain_usage("--host %s: no such broker in --brokers; add it there", assignment);
    }
    size_t size = strlen(host);
    if (size > 2 && host[0] == '[' && host[size - 1] == ']') {
        host[size - 1] = '\0';
        host++;
    }
    if (!host_valid(host))
        return complain_usage(
            "--host %s=%s: is not a host; write a name or an IP address without a port (--ports moves ports)",
            assignment, host);
    if (strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
        return complain_usage(
            "--host %s=%s: is every address and no place to reach; write the one by which the others reach this broker",
            assignment, host);
    broker->host = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    broker->loopback = strncmp(broker->host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
    return EXIT_GOOD;
}

static int set_port(struct site *site, const char *name, const char *value) {
    size_t kind = 0;
    while (kind < PORT_COUNT && strcmp(port_names[kind], name) != 0)
        kind++;
    if (kind == PORT_COUNT) {
        const char *meant = nearest_word(name, port_names, PORT_COUNT);
        if (meant != NULL) return complain_usage("--ports %s: no such port; did you mean %s?", name, meant);
        return complain_usage("--ports %s: no such port; write mqtt, ws, peers or admin", name);
    }
    char *end;
    unsigned long port = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0' || port == 0 || port > UINT16_MAX)
        return complain_usage("--ports %s=%s: is not a port; write a number from 1 to 65535", name, value);
    site->base_ports[kind] = (uint32_t)port;
    return EXIT_GOOD;
}

int site_set_ports(struct site *site, char *assignments) {
    for (char *one; (one = strsep(&assignments, ",")) != NULL;) {
        char *value = strchr(one, '=');
        if (value == NULL)
            return complain_usage("--ports %s: has no \"=\"; write --ports mqtt=1883,ws=8080,peers=7100,admin=9100",
                                  one);
        *value++ = '\0';
        int code = set_port(site, one, value);
        if (code != EXIT_GOOD) return code;
    }
    return EXIT_GOOD;
}

/* All loopback addresses are this host's, and the admin port is on 127.0.0.1 for each of them. */
static bool same_host(const struct site_broker *a, const struct site_broker *b) {
    return (a->loopback && b->loopback) || strcmp(a->host, b->host) == 0;
}

/* Brokers of one host must share no port of any kind; this one against those before it and itself. */
static int check_ports(const struct site *site, size_t broker) {
    const struct site_broker *mine = &site->brokers[broker];
    for (size_t other = 0; other <= broker; other++) {
        const struct site_broker *theirs = &site->brokers[other];
        if (!same_host(mine, theirs)) continue;
        for (size_t a = 0; a < PORT_COUNT; a++)
            for (size_t b = 0; b < (other == broker ? a : PORT_COUNT); b++)
                if (mine->ports[a] == theirs->ports[b])
                    return complain_usage("--ports: %s of %s and %s of %s would both be %u; move %s or %s further away",
                                          port_names[a], mine->name, port_names[b], theirs->name, mine->ports[a],
                                          port_names[a], port_names[b]);
    }
    return EXIT_GOOD;
}

int site_assign(struct site *site) {
    const char *local = NULL, *remote = NULL;
    for (size_t i = 0; i < site->broker_count; i++) {
        struct site_broker *broker = &site->brokers[i];
        if (broker->loopback)
            local = broker->name;
        else
            remote = broker->name;
        uint32_t earlier = 0;
        for (size_t j = 0; j < i; j++)
            earlier += same_host(&site->brokers[j], broker);
        for (size_t kind = 0; kind < PORT_COUNT; kind++) {
            uint32_t port = site->base_ports[kind] + earlier;
            if (port > UINT16_MAX)
                return complain_usage("--ports %s=%u: leaves no port for %s; choose a lower one", port_names[kind],
                                      site->base_ports[kind], broker->name);
            broker->ports[kind] = (uint16_t)port;
        }
        int code = check_ports(site, i);
        if (code != EXIT_GOOD) return code;
    }
    if (local != NULL && remote != NULL)
        return complain_usage(
            "--host: %s has an address and %s is on loopback, where %s cannot reach it; add --host %s=ADDRESS", remote,
            local, remote, local);
    return EXIT_GOOD;
}
