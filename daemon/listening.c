#include "daemon/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static void resolve(struct config_address *address, const char *what, struct config_faults *faults) {
    if (address->ip[0] != '\0') return;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    const int result = getaddrinfo(address->host, NULL, &hints, &found);
    if (result != 0 || found == NULL ||
        getnameinfo(found->ai_addr, found->ai_addrlen, address->ip, sizeof(address->ip), NULL, 0, NI_NUMERICHOST) != 0)
        config_fault_add(faults, false, address->line,
                         "%s: the host %s is unknown (%s); write an address of this host, such as 0.0.0.0:%u", what,
                         address->host, gai_strerror(result), address->port);
    if (found != NULL) freeaddrinfo(found);
}

void listening_resolve(struct config *config, struct config_faults *faults) {
    const struct {
        const char *what;
        struct config_listeners *listeners;
    } kinds[] = {{"listen.mqtt", &config->listen.mqtt},
                 {"listen.ws", &config->listen.ws},
                 {"listen.peers", &config->listen.peers},
                 {"listen.admin", &config->listen.admin}};
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
        for (size_t i = 0; i < kinds[kind].listeners->count; i++)
            resolve(&kinds[kind].listeners->items[i], kinds[kind].what, faults);
}

socklen_t listening_sockaddr(const struct config_address *address, struct sockaddr_storage *out) {
    memset(out, 0, sizeof(*out));
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    if (inet_pton(AF_INET, address->ip, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(address->port);
        return sizeof(*v4);
    }
    inet_pton(AF_INET6, address->ip, &v6->sin6_addr);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address->port);
    return sizeof(*v6);
}

bool listening_v6only(const struct config_listeners *listeners, const struct config_address *address) {
    if (strcmp(address->ip, "::") != 0) return false;
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].port == address->port && strchr(listeners->items[i].ip, ':') == NULL) return true;
    return false;
}

void listening_explain(const struct config *config, const char *what, const struct config_address *address, int error,
                       char *out, size_t size) {
    char where[320] = "", shown[CONFIG_ADDRESS_MAX];
    if (config->file != NULL && address->line != 0)
        snprintf(where, sizeof(where), "%.300s:%d: ", config->file, address->line);
    config_address_format(address, shown);
    switch (error) {
    case EADDRINUSE:
        snprintf(out, size,
                 "%s%s: %s is in use by another process: stop that one (ss -lntup shows it), or write another port",
                 where, what, shown);
        break;
    case EACCES:
    case EPERM:
        snprintf(out, size, "%s%s: %s is not allowed: write a port above 1023, or give hobnobd CAP_NET_BIND_SERVICE",
                 where, what, shown);
        break;
    case EADDRNOTAVAIL:
        snprintf(out, size,
                 "%s%s: %s is no address of this host: write one that is (ip address shows them), or 0.0.0.0:%u", where,
                 what, shown, address->port);
        break;
    case EAFNOSUPPORT:
        snprintf(out, size, "%s%s: %s needs IPv6, which this host has not: write 0.0.0.0:%u", where, what, shown,
                 address->port);
        break;
    case EMFILE:
    case ENFILE:
        snprintf(out, size, "%s%s: %s needs one more open file than there may be: raise the limit (ulimit -n)", where,
                 what, shown);
        break;
    default:
        snprintf(out, size, "%s%s: %s cannot be listened on: %s: write another address", where, what, shown,
                 strerror(error));
        break;
    }
}
