/* Values that are addresses: to listen on, of other brokers, of proxies. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config_values.h"

/* HOST:PORT or [IPv6]:PORT; NULL if good, else what is wrong with it. */
static const char *parse_address(const char *text, struct config_address *address) {
    const char *colon = strrchr(text, ':');
    const char *host = text;
    size_t host_size = colon != NULL ? (size_t)(colon - text) : 0;
    if (strstr(text, "://") != NULL) return "is a URL";
    if (colon == NULL) return text[strspn(text, "0123456789")] == '\0' ? "has no host" : "has no port";
    if (text[0] == '[') {
        if (host_size < 3 || text[host_size - 1] != ']') return "has no ] before its port";
        host++;
        host_size -= 2;
    } else if (memchr(text, ':', host_size) != NULL) {
        return "has several colons and no brackets";
    }
    if (host_size == 0) return "has no host";
    if (host_size >= sizeof(address->host)) return "has a host longer than 255 characters";
    for (size_t i = 0; i < host_size; i++)
        if (!isalnum((unsigned char)host[i]) && strchr(".-_:%", host[i]) == NULL)
            return "has a character that no host has";
    unsigned port = 0;
    for (const char *c = colon + 1; *c != '\0' && port <= 65535; c++)
        port = *c >= '0' && *c <= '9' ? port * 10 + (unsigned)(*c - '0') : 65536;
    if (port < 1 || port > 65535) return "has a port that is no number from 1 to 65535";
    memcpy(address->host, host, host_size);
    address->host[host_size] = '\0';
    address->port = (uint16_t)port;
    uint8_t bytes[16];
    if (inet_pton(AF_INET, address->host, bytes) == 1 || inet_pton(AF_INET6, address->host, bytes) == 1)
        strcpy(address->ip, address->host);
    return NULL;
}

void config_address_format(const struct config_address *address, char out[CONFIG_ADDRESS_MAX]) {
    if (address->is_unix) {
        snprintf(out, CONFIG_ADDRESS_MAX, "unix:%s", address->host);
        return;
    }
    const bool v6 = strchr(address->host, ':') != NULL;
    snprintf(out, CONFIG_ADDRESS_MAX, v6 ? "[%s]:%u" : "%s:%u", address->host, address->port);
}

static bool read_address(struct config_reader *reader, const struct config_key *key, const char *path,
                         const yaml_node_t *node, struct config_address *address) {
    const char *text = config_scalar(reader, key, path, node);
    if (text == NULL) return false;
    struct config_address parsed = {.line = config_line(node)};
    const char *wrong = parse_address(text, &parsed);
    if (wrong != NULL) {
        config_bad_value(reader, key, path, node, text, wrong);
        return false;
    }
    *address = parsed;
    return true;
}

/* Where others are to reach somebody. */
static bool read_destination(struct config_reader *reader, const struct config_key *key, const char *path,
                             const yaml_node_t *node, struct config_address *address) {
    struct config_address parsed;
    if (!read_address(reader, key, path, node, &parsed)) return false;
    if (strcmp(parsed.ip, "0.0.0.0") == 0 || strcmp(parsed.ip, "::") == 0) {
        config_bad_value(reader, key, path, node, parsed.host,
                         "is an address to listen on and not one that others can reach");
        return false;
    }
    *address = parsed;
    return true;
}

void config_read_advertise(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    if (read_destination(reader, key, path, value, &reader->config->federation.advertise))
        reader->config->federation.has_advertise = true;
}

#define UNIX "unix:"

static bool is_unix(const yaml_node_t *item) {
    return item->type == YAML_SCALAR_NODE && strncmp((const char *)item->data.scalar.value, UNIX, strlen(UNIX)) == 0;
}

static void read_listener(struct config_reader *reader, const struct config_key *key, const char *path,
                          const yaml_node_t *item) {
    struct config_listeners *listeners = config_target(reader, key);
    if (is_unix(item)) {
        config_fault_add(reader->faults, false, config_line(item),
                         "%s: unix sockets are for mqtt and ws alone; write %s", path, key->write);
        return;
    }
    if (read_address(reader, key, path, item, &listeners->items[listeners->count])) listeners->count++;
}

/* No address at all would leave open what is there without the key. */
static void read_listeners(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value, config_read_item *read) {
    const bool empty =
        value->type == YAML_SEQUENCE_NODE && value->data.sequence.items.start == value->data.sequence.items.top;
    if (empty)
        config_fault_add(reader->faults, false, config_line(value),
                         "%s is an empty list; write %s, or leave the key out", path, key->write);
    else
        config_read_list(reader, key, path, value, CONFIG_LISTENERS_MAX, read);
}

void config_read_listeners(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    read_listeners(reader, key, path, value, read_listener);
}

static void read_bootstrap_item(struct config_reader *reader, const struct config_key *key, const char *path,
                                const yaml_node_t *item) {
    if (read_destination(reader, key, path, item,
                         &reader->config->federation.bootstrap[reader->config->federation.bootstrap_count]))
        reader->config->federation.bootstrap_count++;
}

void config_read_bootstrap(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    config_read_list(reader, key, path, value, CONFIG_BOOTSTRAP_MAX, read_bootstrap_item);
}

/* ---- unix sockets ---- */

/* unix:PATH, relative to the folder of the configuration. */
static bool read_unix(struct config_reader *reader, const struct config_key *key, const char *path,
                      const yaml_node_t *item, struct config_address *address) {
    const char *text = config_scalar(reader, key, path, item);
    char *absolute = text[strlen(UNIX)] != '\0' ? config_absolute(reader->dir, text + strlen(UNIX)) : NULL;
    const bool fits = absolute != NULL && strlen(absolute) <= CONFIG_UNIX_PATH_MAX;
    if (fits) {
        *address = (struct config_address){.is_unix = true, .line = config_line(item)};
        strcpy(address->host, absolute);
    } else {
        config_fault_add(reader->faults, false, config_line(item),
                         "%s: \"%.200s\" %s; write unix:PATH, such as unix:/run/hobnob/mqtt.sock", path, text,
                         absolute != NULL ? "has a path longer than 107 bytes, with all folders above it"
                                          : "has no path");
    }
    free(absolute);
    return fits;
}

static void read_listener_or_unix(struct config_reader *reader, const struct config_key *key, const char *path,
                                  const yaml_node_t *item) {
    struct config_listeners *listeners = config_target(reader, key);
    if (!is_unix(item))
        read_listener(reader, key, path, item);
    else if (read_unix(reader, key, path, item, &listeners->items[listeners->count]))
        listeners->count++;
}

void config_read_listeners_or_unix(struct config_reader *reader, const struct config_key *key, const char *path,
                                   yaml_node_t *value) {
    read_listeners(reader, key, path, value, read_listener_or_unix);
}

/* ---- networks ---- */

/* IPv4 as ::ffff:a.b.c.d; false if it is no numeric address. */
static bool parse_ip(const char *text, uint8_t bytes[16], bool *v4) {
    memset(bytes, 0, 10);
    memset(bytes + 10, 0xff, 2);
    *v4 = inet_pton(AF_INET, text, bytes + 12) == 1;
    return *v4 || inet_pton(AF_INET6, text, bytes) == 1;
}

static bool network_has(const struct config_network *network, const uint8_t bytes[16]) {
    const unsigned whole = network->bits / 8, rest = network->bits % 8;
    if (memcmp(network->bytes, bytes, whole) != 0) return false;
    return rest == 0 || (network->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

bool config_is_proxy(const struct config *config, const char *ip) {
    uint8_t bytes[16];
    bool v4;
    if (config->listen.proxy_count == 0 || !parse_ip(ip, bytes, &v4)) return false;
    for (size_t i = 0; i < config->listen.proxy_count; i++)
        if (network_has(&config->listen.proxies[i], bytes)) return true;
    return false;
}

/* NULL if good, else what is wrong with it: ADDRESS or ADDRESS/BITS. */
static const char *parse_network(const char *text, struct config_network *network) {
    char ip[46];
    bool v4;
    const size_t ip_size = strcspn(text, "/");
    if (ip_size >= sizeof(ip)) return "is no address";
    memcpy(ip, text, ip_size);
    ip[ip_size] = '\0';
    if (!parse_ip(ip, network->bytes, &v4)) return "is no numeric address";
    const unsigned max = v4 ? 32 : 128;
    unsigned bits = max;
    if (text[ip_size] == '/') {
        const char *digits = text + ip_size + 1;
        bits = *digits == '\0' ? max + 1 : 0;
        for (; *digits != '\0' && bits <= max; digits++)
            bits = *digits >= '0' && *digits <= '9' ? bits * 10 + (unsigned)(*digits - '0') : max + 1;
    }
    if (bits > max) return v4 ? "has no number of bits from 0 to 32" : "has no number of bits from 0 to 128";
    network->bits = (uint8_t)(bits + (v4 ? 96 : 0));
    return NULL;
}

static void read_proxy(struct config_reader *reader, const struct config_key *key, const char *path,
                       const yaml_node_t *item) {
    struct config *config = reader->config;
    const char *text = config_scalar(reader, key, path, item);
    if (text == NULL) return;
    const char *wrong = parse_network(text, &config->listen.proxies[config->listen.proxy_count]);
    if (wrong == NULL)
        config->listen.proxy_count++;
    else
        config_bad_value(reader, key, path, item, text, wrong);
}

void config_read_proxies(struct config_reader *reader, const struct config_key *key, const char *path,
                         yaml_node_t *value) {
    config_read_list(reader, key, path, value, CONFIG_PROXIES_MAX, read_proxy);
}
