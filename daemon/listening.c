#include "daemon/listening.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define KEEP_ALIVE_IDLE_S 60
#define KEEP_ALIVE_INTERVAL_S 10
#define KEEP_ALIVE_PROBES 6

static void resolve(struct config_address *address, const char *what, struct config_faults *faults) {
    if (address->ip[0] != '\0' || address->is_unix) return;
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
    } kinds[] = {{"listen.mqtt", &config->listen.mqtt},   {"listen.mqtts", &config->listen.mqtts},
                 {"listen.ws", &config->listen.ws},       {"listen.wss", &config->listen.wss},
                 {"listen.peers", &config->listen.peers}, {"listen.admin", &config->listen.admin}};
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

/* ---- sockets ---- */

/* Failure costs speed, or notices a dead far end later. Accepted sockets inherit all of it. */
static void set_options(int file) {
    const int yes = 1, idle_s = KEEP_ALIVE_IDLE_S, interval_s = KEEP_ALIVE_INTERVAL_S, probes = KEEP_ALIVE_PROBES;
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(file, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

static int close_with_error(int file) {
    const int error = errno;
    close(file);
    return -error;
}

/* The socket's descriptor, or a negative errno value. */
static int bound(const struct config_address *address, bool v6only, int type) {
    struct sockaddr_storage where;
    const socklen_t size = listening_sockaddr(address, &where);
    const int yes = 1, only = v6only ? 1 : 0;
    const int file = socket(where.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0) return -errno;
    if ((type == SOCK_STREAM && setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) ||
        (where.ss_family == AF_INET6 && setsockopt(file, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)) != 0) ||
        bind(file, (const struct sockaddr *)&where, size) != 0)
        return close_with_error(file);
    return file;
}

int listening_probe(const struct config_address *address, bool v6only, int type) {
    const int file = bound(address, v6only, type);
    if (file < 0) return -file;
    close(file);
    return 0;
}

int listening_open(const struct config_address *address, bool v6only) {
    const int file = bound(address, v6only, SOCK_STREAM);
    if (file < 0) return file;
    if (listen(file, BACKLOG) != 0) return close_with_error(file);
    set_options(file);
    return file;
}

/* Removes the file of a socket that nobody listens on; 0, or an errno value. */
static int remove_stale(const struct sockaddr_un *where) {
    struct stat status;
    if (lstat(where->sun_path, &status) != 0) return errno == ENOENT ? 0 : errno;
    if (!S_ISSOCK(status.st_mode)) return EEXIST;
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) return errno;
    const bool stale = connect(probe, (const struct sockaddr *)where, sizeof(*where)) != 0 && errno == ECONNREFUSED;
    close(probe);
    if (!stale) return EADDRINUSE;
    return unlink(where->sun_path) == 0 || errno == ENOENT ? 0 : errno;
}

int listening_open_unix(const struct config_address *address, unsigned mode) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(where.sun_path, sizeof(where.sun_path), "%.107s", address->host);
    const int error = remove_stale(&where);
    if (error != 0) return -error;
    const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0) return -errno;
    const mode_t before = umask(0777); /* nobody connects before the mode is what it is to be */
    const int result = bind(file, (const struct sockaddr *)&where, sizeof(where));
    umask(before);
    if (result != 0 || chmod(where.sun_path, mode) != 0 || listen(file, BACKLOG) != 0) return close_with_error(file);
    return file;
}

bool listening_v6only(const struct config_listeners *listeners, const struct config_address *address) {
    if (strcmp(address->ip, "::") != 0) return false;
    for (size_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].port == address->port && strchr(listeners->items[i].ip, ':') == NULL) return true;
    return false;
}

static void explain_unix(const char *where, const char *what, const char *shown, int error, char *out, size_t size) {
    switch (error) {
    case EADDRINUSE:
        snprintf(out, size, "%s%s: %s is in use by another process: stop that one, or write another path", where, what,
                 shown);
        break;
    case EEXIST: snprintf(out, size, "%s%s: %s is a file and no socket: write another path", where, what, shown); break;
    default:
        snprintf(out, size,
                 "%s%s: %s cannot be made: %s: write a path in a folder that exists and that hobnobd may write to",
                 where, what, shown, strerror(error));
        break;
    }
}

void listening_explain(const struct config *config, const char *what, const struct config_address *address, int error,
                       char *out, size_t size) {
    char where[320] = "", shown[CONFIG_ADDRESS_MAX];
    if (config != NULL && config->file != NULL && address->line != 0)
        snprintf(where, sizeof(where), "%.300s:%d: ", config->file, address->line);
    config_address_format(address, shown);
    if (address->is_unix) {
        explain_unix(where, what, shown, error, out, size);
        return;
    }
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
