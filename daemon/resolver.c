#include "daemon/resolver.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/datagrams.h"
#include "daemon/listening.h"

#define ADDRESSES_MAX CONFIG_BOOTSTRAP_MAX /* of one name, and of all */

struct name {
    uv_getaddrinfo_t request; /* first: requests are cast to names */
    struct resolver *resolver;
    const struct config_address *config;
    bool is_asked;   /* an answer is awaited */
    bool is_unknown; /* the last answer was none; said in the log when it begins and when it ends */
    uint64_t asked_ms;
    size_t address_count;
    struct gossip_address addresses[ADDRESSES_MAX];
};

/* What the log says of a name. */
struct words {
    const char *unknown, *found, *remedy;
};
static const struct words bootstrap_words = {"bootstrap_unknown", "bootstrap_found",
                                             "asked again for ever; if the name is wrong, mend federation.bootstrap"};
static const struct words own_words = {
    "advertise_unknown", "advertise_found",
    "asked again for ever; until then others keep the address that they see or were told; if the name is wrong, mend "
    "federation.advertise"};

struct resolver {
    struct server *server;
    uv_timer_t timer;
    bool closing, timer_closed;
    size_t asked; /* answers awaited */
    size_t name_count;
    struct name names[CONFIG_BOOTSTRAP_MAX];
    struct name own;            /* federation.advertise; config NULL if that is no name */
    struct gossip_address told; /* of our own, to gossip; family 0: none yet */
};

static bool is_own(const struct name *name) {
    return name == &name->resolver->own;
}

/* Several addresses of one name, and several names: gossip tries them all. If they are too many each name has its
 * share. */
static void tell_gossip(struct resolver *resolver) {
    struct gossip_address all[ADDRESSES_MAX];
    size_t count = 0;
    for (size_t j = 0; j < ADDRESSES_MAX; j++)
        for (size_t i = 0; i < resolver->name_count && count < ADDRESSES_MAX; i++)
            if (j < resolver->names[i].address_count) all[count++] = resolver->names[i].addresses[j];
    struct server *server = resolver->server;
    gossip_set_bootstrap(node_gossip(server->node), server_now_ms(server), all, count);
    server_pump(server);
}

static void log_changed(const struct resolver *resolver) {
    char ip[INET6_ADDRSTRLEN] = "";
    uv_inet_ntop(resolver->told.family == 6 ? AF_INET6 : AF_INET, resolver->told.ip, ip, sizeof(ip));
    log_line(resolver->server->log, LOG_LEVEL_INFO, "advertise_changed", "host", resolver->own.config->host, "address",
             ip, NULL);
}

/* Of several addresses the one that is used stays, as names with many are answered in any order. */
static void tell_own(struct resolver *resolver) {
    const struct name *own = &resolver->own;
    struct server *server = resolver->server;
    for (size_t i = 0; i < own->address_count; i++)
        if (memcmp(&own->addresses[i], &resolver->told, sizeof(resolver->told)) == 0) return;
    size_t taken = 0;
    while (taken < own->address_count &&
           !gossip_set_advertise(node_gossip(server->node), server_now_ms(server), &own->addresses[taken]))
        taken++;
    if (taken == own->address_count) return;
    const bool changed = resolver->told.family != 0;
    resolver->told = own->addresses[taken];
    if (changed) log_changed(resolver);
    server_pump(server);
}

static void take_addresses(struct name *name, const struct addrinfo *found) {
    name->address_count = 0;
    for (; found != NULL && name->address_count < ADDRESSES_MAX; found = found->ai_next) {
        struct gossip_address *address = &name->addresses[name->address_count];
        memset(address, 0, sizeof(*address)); /* they are compared as bytes */
        if (!datagrams_address_from(found->ai_addr, address)) continue;
        address->port = name->config->port;
        name->address_count++;
    }
}

/* What was known stays known when DNS fails: an old address is better than none. */
static void take_answer(struct name *name, int status, const struct addrinfo *found) {
    struct log *log = name->resolver->server->log;
    const char *host = name->config->host;
    const struct words *words = is_own(name) ? &own_words : &bootstrap_words;
    if (status == 0) {
        take_addresses(name, found);
        if (name->is_unknown) log_line(log, LOG_LEVEL_INFO, words->found, "host", host, NULL);
    } else if (!name->is_unknown) {
        log_line(log, LOG_LEVEL_WARNING, words->unknown, "host", host, "error", uv_strerror(status), "text",
                 words->remedy, NULL);
    }
    name->is_unknown = status != 0;
}

static void release(struct resolver *resolver) {
    if (resolver->asked == 0 && resolver->timer_closed) free(resolver);
}

static void on_answer(uv_getaddrinfo_t *request, int status, struct addrinfo *found) {
    struct name *name = (struct name *)request;
    struct resolver *resolver = name->resolver;
    resolver->asked--;
    name->is_asked = false;
    if (!resolver->closing) {
        take_answer(name, status, found);
        if (status == 0 && is_own(name))
            tell_own(resolver);
        else if (status == 0)
            tell_gossip(resolver);
    }
    uv_freeaddrinfo(found);
    release(resolver);
}

static void ask(struct name *name) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    if (name->is_asked || name->config->ip[0] != '\0') return;
    name->asked_ms = server_now_ms(name->resolver->server);
    const int result =
        uv_getaddrinfo(name->resolver->server->loop, &name->request, on_answer, name->config->host, NULL, &hints);
    if (result != 0) {
        take_answer(name, result, NULL);
        return;
    }
    name->is_asked = true;
    name->resolver->asked++;
}

static bool is_alone(const struct server *server) {
    struct gossip_counters counters;
    gossip_read_counters(node_gossip(server->node), &counters);
    return counters.members_alive + counters.members_suspect <= 1;
}

static void ask_if_due(struct name *name, bool alone) {
    const uint64_t passed_ms = server_now_ms(name->resolver->server) - name->asked_ms;
    if (alone || name->is_unknown || passed_ms >= RESOLVER_AGAIN_MS) ask(name);
}

void resolver_look(struct resolver *resolver) {
    const bool alone = is_alone(resolver->server);
    for (size_t i = 0; i < resolver->name_count; i++)
        ask_if_due(&resolver->names[i], alone);
    if (resolver->own.config != NULL) ask_if_due(&resolver->own, alone);
}

static void on_timer(uv_timer_t *timer) {
    resolver_look(timer->data);
}

static void take_numeric(struct name *name) {
    struct sockaddr_storage address;
    if (name->config->ip[0] == '\0') return;
    listening_sockaddr(name->config, &address);
    name->address_count = datagrams_address_from((struct sockaddr *)&address, &name->addresses[0]) ? 1 : 0;
}

static const struct config_address *own_address(const struct config *config) {
    return config->federation.has_advertise ? &config->federation.advertise : &config->listen.peers.items[0];
}

struct resolver *resolver_new(struct server *server) {
    struct resolver *resolver = calloc(1, sizeof(*resolver));
    if (resolver == NULL) return NULL;
    resolver->server = server;
    resolver->name_count = server->config->federation.bootstrap_count;
    for (size_t i = 0; i < resolver->name_count; i++) {
        resolver->names[i].resolver = resolver;
        resolver->names[i].config = &server->config->federation.bootstrap[i];
        take_numeric(&resolver->names[i]);
    }
    resolver->own.resolver = resolver;
    if (own_address(server->config)->ip[0] == '\0') resolver->own.config = own_address(server->config);
    uv_timer_init(server->loop, &resolver->timer);
    resolver->timer.data = resolver;
    tell_gossip(resolver);
    if (resolver->own.config != NULL) ask(&resolver->own);
    for (size_t i = 0; i < resolver->name_count; i++)
        ask(&resolver->names[i]);
    uv_timer_start(&resolver->timer, on_timer, RESOLVER_RETRY_MS, RESOLVER_RETRY_MS);
    return resolver;
}

static void on_timer_closed(uv_handle_t *handle) {
    struct resolver *resolver = handle->data;
    resolver->timer_closed = true;
    release(resolver);
}

void resolver_close(struct resolver *resolver) {
    if (resolver == NULL || resolver->closing) return;
    resolver->closing = true;
    for (size_t i = 0; i < resolver->name_count; i++)
        if (resolver->names[i].is_asked) uv_cancel((uv_req_t *)&resolver->names[i].request);
    if (resolver->own.is_asked) uv_cancel((uv_req_t *)&resolver->own.request);
    uv_close((uv_handle_t *)&resolver->timer, on_timer_closed);
}

struct gossip_address resolver_advertise(const struct config *config) {
    struct gossip_address address = {0};
    struct sockaddr_storage numeric;
    const struct config_address *from = own_address(config);
    const bool any = strcmp(from->ip, "0.0.0.0") == 0 || strcmp(from->ip, "::") == 0;
    if (from->ip[0] == '\0' || any) return address;
    listening_sockaddr(from, &numeric);
    datagrams_address_from((struct sockaddr *)&numeric, &address);
    return address;
}
