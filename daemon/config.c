#include "daemon/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/config_keys.h"
#include "daemon/config_values.h"

#define FILE_SIZE_MAX (1024u * 1024u) /* bytes of a configuration */

/* ---- what is missing or does not fit together ---- */

static bool set_text(char **out, const char *text) {
    *out = strdup(text);
    return *out != NULL;
}

static void listen_on_loopback(struct config_listeners *listeners, uint16_t port) {
    listeners->items[listeners->count++] =
        (struct config_address){.host = "127.0.0.1", .ip = "127.0.0.1", .port = port};
}

static size_t client_listeners(const struct config *config) {
    return config->listen.mqtt.count + config->listen.mqtts.count + config->listen.ws.count + config->listen.wss.count;
}

static bool set_defaults(struct config *config, const char *dir) {
    const bool listens = client_listeners(config) + config->listen.peers.count + config->listen.admin.count +
                             config->listen.proxy_count >
                         0;
    if (!listens) {
        listen_on_loopback(&config->listen.mqtt, 1883);
        listen_on_loopback(&config->listen.admin, 9100);
    }
    if (config->listen.unix_mode == 0) config->listen.unix_mode = 0660;
    if (config->federation.name == NULL && !set_text(&config->federation.name, "default")) return false;
    if (config->data_dir == NULL && dir != NULL) config->data_dir = config_absolute(dir, "data");
    return config->data_dir != NULL || dir == NULL;
}

static void require(struct config_faults *faults, bool given, int line, const char *what, const char *write) {
    if (!given) config_fault_add(faults, false, line, "listen.peers needs %s; write %s", what, write);
}

static void check_federation(const struct config *config, struct config_faults *faults) {
    if (config->listen.peers.count == 0) {
        const int line = config->federation.gossip_key.line != 0  ? config->federation.gossip_key.line
                         : config->federation.bootstrap_count > 0 ? config->federation.bootstrap[0].line
                         : config->federation.multicast           ? config->federation.multicast_line
                                                                  : 0;
        if (line != 0 && faults->errors == 0)
            config_fault_add(faults, true, line,
                             "federation has no effect without listen.peers; write listen: {peers: 0.0.0.0:7100}");
        return;
    }
    const int line = config->listen.peers.items[0].line;
    require(faults, config->identity.token.line != 0, line, "identity.token",
            "the path of the broker's token (hobnob token mint makes one)");
    require(faults, config->identity.key.line != 0, line, "identity.key",
            "the path of the broker's private key (hobnob key new makes one)");
    require(faults, config->identity.issuers[0].line != 0, line, "identity.issuers",
            "the path of the issuer's public key, as in issuers: [issuer.pub]");
    require(faults, config->federation.gossip_key.line != 0, line, "federation.gossip_key",
            "the path of the federation's gossip key");
}

static void check_clients_can_come(const struct config *config, struct config_faults *faults) {
    const struct config_listeners *other =
        config->listen.peers.count > 0 ? &config->listen.peers : &config->listen.admin;
    if (client_listeners(config) == 0 && faults->errors == 0)
        config_fault_add(
            faults, true, other->items[0].line,
            "no client can connect without listen.mqtt, mqtts, ws or wss; write mqtt: 127.0.0.1:1883 there");
}

static bool is_loopback(const struct config_address *address) {
    return address->is_unix || config_ip_is_loopback(address->ip) || strcmp(address->host, "localhost") == 0;
}

/* What may_connect() in server.c will say to everybody. */
static void check_clients_are_let_in(const struct config *config, struct config_faults *faults) {
    const struct {
        const char *name;
        const struct config_listeners *listeners;
        bool certificates;
    } kinds[] = {{"listen.mqtt", &config->listen.mqtt, false},
                 {"listen.mqtts", &config->listen.mqtts, config->tls.client_ca.line != 0},
                 {"listen.ws", &config->listen.ws, false},
                 {"listen.wss", &config->listen.wss, config->tls.client_ca.line != 0}};
    if (config->clients.anonymous_everywhere || faults->errors > 0) return;
    for (size_t kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < kinds[kind].listeners->count && !kinds[kind].certificates; i++) {
            const struct config_address *address = &kinds[kind].listeners->items[i];
            char shown[CONFIG_ADDRESS_MAX];
            /* What a name stands for is not known yet. */
            const bool may = is_loopback(address) || address->ip[0] == '\0';
            if (may && !config->clients.anonymous_nowhere) continue;
            config_address_format(address, shown);
            config_fault_add(faults, true, address->line,
                             "%s: every client is refused at %s; write clients: {anonymous: true} to let in all that "
                             "reach it, or use mqtts or wss with tls.client_ca and certificates for clients",
                             kinds[kind].name, shown);
            return;
        }
    }
}

/* One port at one address, or at 0.0.0.0 and any IPv4 address, or at [::] and any IPv6 address. */
static bool addresses_collide(const struct config_address *a, const struct config_address *b) {
    if (a->port != b->port || a->is_unix != b->is_unix) return false;
    if (strcmp(a->host, b->host) == 0) return true;
    if (a->ip[0] == '\0' || b->ip[0] == '\0') return false;
    const bool a_v6 = strchr(a->ip, ':') != NULL, b_v6 = strchr(b->ip, ':') != NULL;
    const char *any = a_v6 ? "::" : "0.0.0.0";
    return a_v6 == b_v6 && (strcmp(a->ip, any) == 0 || strcmp(b->ip, any) == 0 || strcmp(a->ip, b->ip) == 0);
}

/* The same port twice would fail at start only, and name one of the two. */
static void check_collisions(const struct config *config, struct config_faults *faults) {
    const struct {
        const char *name;
        const struct config_listeners *listeners;
    } kinds[] = {{"listen.mqtt", &config->listen.mqtt},   {"listen.mqtts", &config->listen.mqtts},
                 {"listen.ws", &config->listen.ws},       {"listen.wss", &config->listen.wss},
                 {"listen.peers", &config->listen.peers}, {"listen.admin", &config->listen.admin}};
    const struct config_address *seen[6 * CONFIG_LISTENERS_MAX];
    const char *seen_name[6 * CONFIG_LISTENERS_MAX];
    size_t seen_count = 0;
    for (size_t kind = 0; kind < 6; kind++) {
        for (size_t i = 0; i < kinds[kind].listeners->count; i++) {
            const struct config_address *address = &kinds[kind].listeners->items[i];
            for (size_t j = 0; j < seen_count; j++) {
                if (!addresses_collide(seen[j], address)) continue;
                char shown[CONFIG_ADDRESS_MAX];
                config_address_format(address, shown);
                config_fault_add(faults, false, address->line, "%s: %s is taken by %s in line %d; write another %s",
                                 kinds[kind].name, shown, seen_name[j], seen[j]->line,
                                 address->is_unix ? "path" : "port");
                break;
            }
            seen[seen_count] = address;
            seen_name[seen_count++] = kinds[kind].name;
        }
    }
}

/* The certificates, and the listeners that show them. */
static void check_tls(const struct config *config, struct config_faults *faults) {
    const struct config_listeners *listeners =
        config->listen.mqtts.count > 0 ? &config->listen.mqtts : &config->listen.wss;
    const int given = config->tls.cert.line != 0  ? config->tls.cert.line
                      : config->tls.key.line != 0 ? config->tls.key.line
                                                  : config->tls.client_ca.line;
    if (listeners->count == 0) {
        if (given != 0 && faults->errors == 0)
            config_fault_add(
                faults, true, given,
                "tls has no effect without listen.mqtts or listen.wss; write listen: {mqtts: 0.0.0.0:8883}");
        return;
    }
    const char *what = config->tls.cert.line == 0 ? "tls.cert" : config->tls.key.line == 0 ? "tls.key" : NULL;
    if (what != NULL)
        config_fault_add(faults, false, listeners->items[0].line,
                         "listen.mqtts and listen.wss need %s; write tls: {cert: fullchain.pem, key: privkey.pem} with "
                         "the paths of the certificate and its private key",
                         what);
    if (config->tls.require_client_cert && config->tls.client_ca.line == 0)
        config_fault_add(faults, false, config->tls.require_line,
                         "tls.require_client_cert needs tls.client_ca; write the path of the certificates, in PEM, of "
                         "who signs the clients' certificates");
}

/* Who reaches the admin port sees all topics and clients; tokens for it are not there yet. */
static void check_admin(const struct config *config, struct config_faults *faults) {
    for (size_t i = 0; i < config->listen.admin.count; i++) {
        const struct config_address *address = &config->listen.admin.items[i];
        if (is_loopback(address)) continue;
        config_fault_add(faults, false, address->line,
                         "listen.admin: %s can be reached by others, and admin tokens are not available yet in this "
                         "version; write 127.0.0.1:%u",
                         address->host, address->port);
    }
}

bool config_ip_is_loopback(const char *ip) {
    struct in6_addr v6;
    if (strncmp(ip, "::ffff:", 7) == 0) ip += 7;
    if (strncmp(ip, "127.", 4) == 0) return true;
    return inet_pton(AF_INET6, ip, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* ---- reading ---- */

static struct config *no_memory(struct config *config, struct config_faults *faults) {
    config_free(config);
    config_fault_add(faults, false, 0, "memory is short; give the machine more");
    return NULL;
}

/* libyaml gives an offset in bytes, and no line, for characters that it cannot read. */
static void character_fault(const yaml_parser_t *parser, const char *text, size_t size, struct config_faults *faults) {
    int line = 1;
    for (size_t i = 0; i < size && i < parser->problem_offset; i++)
        if (text[i] == '\n') line++;
    config_fault_add(faults, false, line, "no YAML: %s; write the file as plain text in UTF-8",
                     parser->problem != NULL ? parser->problem : "a character cannot be read");
}

/* True if only spaces come before a tab in this line, counted from 0. */
static bool line_has_tab_indent(const char *text, size_t size, size_t line) {
    const char *end = text + size;
    for (; line > 0 && text != NULL; line--) {
        text = memchr(text, '\n', (size_t)(end - text));
        if (text != NULL) text++;
    }
    while (text != NULL && text < end && *text == ' ')
        text++;
    return text != NULL && text < end && *text == '\t';
}

static void yaml_fault(const yaml_parser_t *parser, const char *text, size_t size, struct config_faults *faults) {
    if (parser->error == YAML_READER_ERROR) {
        character_fault(parser, text, size, faults);
        return;
    }
    const char *problem = parser->problem != NULL ? parser->problem : "it cannot be understood";
    const size_t line = parser->problem_mark.line, begun = parser->context_mark.line;
    char context[64] = "";
    if (line_has_tab_indent(text, size, line)) problem = "the line is indented by a tab";
    if (parser->context != NULL && begun < line)
        snprintf(context, sizeof(context), ", in what begins in line %zu", begun + 1);
    config_fault_add(
        faults, false, (int)line + 1,
        "no YAML: %s%s; write KEY: VALUE a line, keys below another indented by spaces, and values with [ ] "
        "# or a colon in \"quotes\"",
        problem, context);
}

/* The one document of the text; false and a fault if there is none, or more. */
static bool load_document(yaml_parser_t *parser, const char *text, size_t size, yaml_document_t *document,
                          struct config_faults *faults) {
    yaml_document_t second;
    if (!yaml_parser_load(parser, document)) {
        yaml_fault(parser, text, size, faults);
        return false;
    }
    if (!yaml_parser_load(parser, &second)) {
        yaml_fault(parser, text, size, faults);
        yaml_document_delete(document);
        return false;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    if (root != NULL)
        config_fault_add(faults, false, config_line(root),
                         "a second document starts here; write one, without --- between");
    yaml_document_delete(&second);
    return true;
}

static void read_document(struct config_reader *reader) {
    static const struct config_key nothing = {.name = ""};
    struct config_key top = nothing;
    top.children = config_top_keys;
    top.child_count = config_top_key_count;
    yaml_node_t *root = yaml_document_get_root_node(reader->document);
    if (root != NULL) config_read_mapping(reader, &top, "", root);
    if (reader->config->name_line == 0 && (root == NULL || root->type == YAML_MAPPING_NODE))
        config_fault_add(reader->faults, false, 1,
                         "name is missing; write name: edge-1, or what else the token's subject is");
}

struct config *config_parse(const char *text, size_t size, const char *dir, struct config_faults *faults) {
    yaml_parser_t parser;
    yaml_document_t document;
    struct config *config = calloc(1, sizeof(*config));
    if (config != NULL) config->federation.policy = policy_new();
    if (config == NULL || config->federation.policy == NULL || !yaml_parser_initialize(&parser))
        return no_memory(config, faults);
    config->log_level = LOG_LEVEL_INFO;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (!load_document(&parser, text, size, &document, faults)) {
        yaml_parser_delete(&parser);
        config_free(config);
        return NULL;
    }
    struct config_reader reader = {.document = &document, .config = config, .faults = faults, .dir = dir, .peer = ""};
    read_document(&reader);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    if (reader.no_memory || !set_defaults(config, dir)) return no_memory(config, faults);
    check_federation(config, faults);
    check_collisions(config, faults);
    check_admin(config, faults);
    check_tls(config, faults);
    check_clients_can_come(config, faults);
    check_clients_are_let_in(config, faults);
    config_faults_sort(faults);
    return config;
}

/* The whole file on the heap, or NULL and a fault. */
static char *read_file(const char *path, size_t *size, struct config_faults *faults) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        const bool forbidden = errno == EACCES;
        config_fault_add(faults, false, 0, "cannot be read: %s; %s", strerror(errno),
                         forbidden ? "let the user that runs hobnobd read it (chown)"
                                   : "write hobnobd CONFIG.yaml with the path of a configuration (hobnob init makes "
                                     "them)");
        if (file != NULL) fclose(file);
        return NULL;
    }
    const bool regular = !S_ISDIR(status.st_mode);
    char *text = regular ? malloc(FILE_SIZE_MAX + 1) : NULL;
    *size = text != NULL ? fread(text, 1, FILE_SIZE_MAX + 1, file) : 0;
    fclose(file);
    if (text != NULL && *size <= FILE_SIZE_MAX) return text;
    config_fault_add(faults, false, 0,
                     !regular ? "is a folder; write the path of a configuration, such as %s/hobnob.yaml"
                              : "cannot be read, or is larger than 1 MiB; write a file smaller than that to %s",
                     path);
    free(text);
    return NULL;
}

struct config *config_read(const char *path, struct config_faults *faults) {
    size_t size = 0;
    char *text = read_file(path, &size, faults);
    if (text == NULL) return NULL;
    char *absolute = realpath(path, NULL);
    char *dir = absolute != NULL ? strdup(absolute) : NULL;
    struct config *config = NULL;
    if (dir == NULL) {
        no_memory(NULL, faults);
    } else {
        char *slash = strrchr(dir, '/');
        slash[slash == dir ? 1 : 0] = '\0';
        config = config_parse(text, size, dir, faults);
    }
    if (config != NULL)
        config->file = absolute;
    else
        free(absolute);
    free(dir);
    free(text);
    return config;
}

struct config *config_default(void) {
    struct config *config = calloc(1, sizeof(*config));
    if (config == NULL) return NULL;
    config->log_level = LOG_LEVEL_INFO;
    if (set_text(&config->name, "hobnobd") && set_defaults(config, NULL)) return config;
    config_free(config);
    return NULL;
}

void config_free(struct config *config) {
    if (config == NULL) return;
    free(config->file);
    free(config->name);
    free(config->data_dir);
    free(config->identity.token.path);
    free(config->identity.key.path);
    for (size_t i = 0; i < CONFIG_ISSUERS_MAX; i++)
        free(config->identity.issuers[i].path);
    free(config->tls.cert.path);
    free(config->tls.key.path);
    free(config->tls.client_ca.path);
    free(config->federation.name);
    free(config->federation.gossip_key.path);
    policy_free(config->federation.policy);
    free(config);
}
