#include "daemon/config_values.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/nearest.h"

#define PATH_MAX_SHOWN 128u

int config_line(const yaml_node_t *node) {
    return (int)node->start_mark.line + 1;
}

char *config_absolute(const char *dir, const char *path) {
    const size_t size = strlen(dir) + strlen(path) + 2;
    char *absolute = malloc(size);
    if (absolute == NULL) return NULL;
    if (path[0] == '/')
        snprintf(absolute, size, "%s", path);
    else
        snprintf(absolute, size, "%s/%s", dir, path);
    return absolute;
}

void *config_target(struct config_reader *reader, const struct config_key *key) {
    return (char *)reader->config + key->offset;
}

static void fault(struct config_reader *reader, const yaml_node_t *node, const char *path, const char *what,
                  const char *write) {
    config_fault_add(reader->faults, false, config_line(node), "%s %s; write %s", path, what, write);
}

const char *config_scalar(struct config_reader *reader, const struct config_key *key, const char *path,
                          const yaml_node_t *node) {
    if (node->type == YAML_SEQUENCE_NODE) {
        fault(reader, node, path, "is a list", key->write);
        return NULL;
    }
    if (node->type != YAML_SCALAR_NODE) {
        fault(reader, node, path, "has keys below it", key->write);
        return NULL;
    }
    const char *text = (const char *)node->data.scalar.value;
    if (node->data.scalar.length == 0) {
        fault(reader, node, path, "is empty", key->write);
        return NULL;
    }
    if (strlen(text) != node->data.scalar.length) {
        fault(reader, node, path, "holds a zero character", key->write);
        return NULL;
    }
    return text;
}

void config_bad_value(struct config_reader *reader, const struct config_key *key, const char *path,
                      const yaml_node_t *node, const char *text, const char *why) {
    config_fault_add(reader->faults, false, config_line(node), "%s: \"%.100s\" %s; write %s", path, text, why,
                     key->write);
}

static char *copy(struct config_reader *reader, char *text) {
    if (text == NULL) reader->no_memory = true;
    return text;
}

/* ---- mappings ---- */

static const struct config_key *find_key(const struct config_key *keys, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (keys[i].name == NULL || strcmp(keys[i].name, name) == 0) return &keys[i];
    return NULL;
}

static void unknown_key(struct config_reader *reader, const struct config_key *mapping, const char *path,
                        const yaml_node_t *node) {
    const char *name = (const char *)node->data.scalar.value;
    const char *nearest = NULL;
    for (size_t i = 0; i < mapping->child_count; i++)
        nearest_try(name, mapping->children[i].name, &nearest);
    if (nearest != NULL) {
        config_fault_add(reader->faults, false, config_line(node), "unknown key \"%.60s\"; write \"%s\"", path,
                         nearest);
        return;
    }
    char known[CONFIG_FAULT_TEXT_MAX - 120] = "";
    size_t used = 0;
    for (size_t i = 0; i < mapping->child_count && used < sizeof(known); i++)
        used +=
            (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i == 0 ? "" : ", ", mapping->children[i].name);
    config_fault_add(reader->faults, false, config_line(node), "unknown key \"%.60s\"; write one of: %s", path, known);
}

/* The line of an earlier pair with the same key, or 0. */
static int given_before(struct config_reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                        const char *name) {
    for (const yaml_node_pair_t *earlier = mapping->data.mapping.pairs.start; earlier < pair; earlier++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, earlier->key);
        if (key->type == YAML_SCALAR_NODE && strcmp((const char *)key->data.scalar.value, name) == 0)
            return config_line(key);
    }
    return 0;
}

static void read_pair(struct config_reader *reader, const struct config_key *mapping, const char *path,
                      const yaml_node_t *node, const yaml_node_pair_t *pair) {
    const yaml_node_t *name_node = yaml_document_get_node(reader->document, pair->key);
    yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
    char below[PATH_MAX_SHOWN];
    if (name_node->type != YAML_SCALAR_NODE) {
        config_fault_add(reader->faults, false, config_line(name_node), "a key must be a word; write KEY: VALUE");
        return;
    }
    const char *name = (const char *)name_node->data.scalar.value;
    snprintf(below, sizeof(below), "%s%s%.60s", path, path[0] == '\0' ? "" : ".", name);
    const int first = given_before(reader, node, pair, name);
    if (first != 0) {
        config_fault_add(reader->faults, false, config_line(name_node),
                         "%s was given before, in line %d; write it once", below, first);
        return;
    }
    const struct config_key *key = find_key(mapping->children, mapping->child_count, name);
    reader->name = name_node;
    if (key == NULL)
        unknown_key(reader, mapping, below, name_node);
    else
        key->read(reader, key, below, value);
}

void config_read_mapping(struct config_reader *reader, const struct config_key *key, const char *path,
                         yaml_node_t *value) {
    const bool nothing = value->type == YAML_SCALAR_NODE && value->data.scalar.length == 0 &&
                         value->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (nothing) return; /* all keys below it are commented out */
    if (value->type != YAML_MAPPING_NODE) {
        fault(reader, value, path[0] == '\0' ? "the configuration" : path,
              path[0] == '\0' ? "has no keys" : "has no keys below it",
              path[0] == '\0' ? "it in YAML, one KEY: VALUE a line, such as name: edge-1" : "one KEY: VALUE a line");
        return;
    }
    for (const yaml_node_pair_t *pair = value->data.mapping.pairs.start; pair < value->data.mapping.pairs.top; pair++)
        read_pair(reader, key, path, value, pair);
}

/* ---- single values ---- */

const char *config_name_fault(const char *text) {
    for (const char *c = text; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
            return "has characters other than letters, digits, '.', '_' and '-'";
    return strlen(text) > GOSSIP_NAME_MAX ? "is longer than 63 characters" : NULL;
}

void config_read_name(struct config_reader *reader, const struct config_key *key, const char *path,
                      yaml_node_t *value) {
    char **name = config_target(reader, key);
    const char *text = config_scalar(reader, key, path, value);
    if (name == &reader->config->name) reader->config->name_line = config_line(value); /* given, be it good or not */
    if (text == NULL) return;
    const char *fault = config_name_fault(text);
    if (fault != NULL) {
        config_bad_value(reader, key, path, value, text, fault);
        return;
    }
    free(*name);
    *name = copy(reader, strdup(text));
}

/* "~/keys" would be a folder with the name "~" below that of the configuration. */
static bool path_is_plain(struct config_reader *reader, const struct config_key *key, const char *path,
                          const yaml_node_t *node, const char *text) {
    if (strcmp(text, "~") != 0 && strncmp(text, "~/", 2) != 0) return true;
    config_bad_value(reader, key, path, node, text, "begins with ~, which only a shell understands");
    return false;
}

void config_read_data_dir(struct config_reader *reader, const struct config_key *key, const char *path,
                          yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    reader->config->data_dir_line = config_line(value);
    if (text == NULL || !path_is_plain(reader, key, path, value, text)) return;
    char **out = config_target(reader, key);
    free(*out);
    *out = copy(reader, config_absolute(reader->dir, text));
}

/* The line is set even if the value is bad: a key that was given is not reported as missing too. */
static bool set_path(struct config_reader *reader, const struct config_key *key, const char *path,
                     const yaml_node_t *node, struct config_path *out) {
    const char *text = config_scalar(reader, key, path, node);
    out->line = config_line(node);
    if (text == NULL || !path_is_plain(reader, key, path, node, text)) return false;
    out->path = copy(reader, config_absolute(reader->dir, text));
    return true;
}

void config_read_path(struct config_reader *reader, const struct config_key *key, const char *path,
                      yaml_node_t *value) {
    set_path(reader, key, path, value, config_target(reader, key));
}

void config_read_number(struct config_reader *reader, const struct config_key *key, const char *path,
                        yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    uint64_t number = 0;
    const uint64_t least = key->min > 0 ? key->min : 1;
    if (text == NULL) return;
    for (const char *c = text; *c != '\0'; c++) {
        const bool digit = *c >= '0' && *c <= '9';
        const unsigned d = digit ? (unsigned)(*c - '0') : 0;
        if (!digit || number > (key->max - d) / 10) {
            number = 0;
            break;
        }
        number = number * 10 + d;
    }
    if (number < least) {
        config_fault_add(reader->faults, false, config_line(value),
                         "%s: \"%.100s\" is no whole number from %llu to %llu; write %s", path, text,
                         (unsigned long long)least, (unsigned long long)key->max, key->write);
        return;
    }
    if (key->max > UINT32_MAX)
        *(uint64_t *)config_target(reader, key) = number;
    else
        *(uint32_t *)config_target(reader, key) = (uint32_t)number;
}

void config_read_anonymous(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    if (text == NULL) return;
    reader->config->clients.anonymous_everywhere = strcmp(text, "true") == 0;
    reader->config->clients.anonymous_nowhere = strcmp(text, "false") == 0;
    if (!reader->config->clients.anonymous_everywhere && !reader->config->clients.anonymous_nowhere)
        config_bad_value(reader, key, path, value, text, "is neither true nor false");
}

void config_read_multicast(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    reader->config->federation.multicast_line = config_line(value);
    if (text == NULL) return;
    reader->config->federation.multicast = strcmp(text, "true") == 0;
    if (!reader->config->federation.multicast && strcmp(text, "false") != 0)
        config_bad_value(reader, key, path, value, text, "is neither true nor false");
}

void config_read_require_client_cert(struct config_reader *reader, const struct config_key *key, const char *path,
                                     yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    reader->config->tls.require_line = config_line(value);
    if (text == NULL) return;
    reader->config->tls.require_client_cert = strcmp(text, "true") == 0;
    if (!reader->config->tls.require_client_cert && strcmp(text, "false") != 0)
        config_bad_value(reader, key, path, value, text, "is neither true nor false");
}

void config_read_unix_mode(struct config_reader *reader, const struct config_key *key, const char *path,
                           yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    unsigned mode = 0;
    if (text == NULL) return;
    for (const char *c = text; *c != '\0'; c++)
        mode = *c >= '0' && *c <= '7' && mode < 01000 ? mode * 8 + (unsigned)(*c - '0') : 01000;
    if (mode == 0 || mode > 0777)
        config_bad_value(reader, key, path, value, text, "is no mode from 0001 to 0777");
    else
        reader->config->listen.unix_mode = mode;
}

void config_read_level(struct config_reader *reader, const struct config_key *key, const char *path,
                       yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    if (text != NULL && !log_level_parse(text, &reader->config->log_level))
        config_bad_value(reader, key, path, value, text, "is no level");
}

void config_read_sync(struct config_reader *reader, const struct config_key *key, const char *path,
                      yaml_node_t *value) {
    const char *text = config_scalar(reader, key, path, value);
    if (text != NULL && !store_sync_parse(text, &reader->config->storage.sync))
        config_bad_value(reader, key, path, value, text, "is none of them");
}

/* Better refused than ignored: who writes tls: believes to be protected. */
void config_read_unavailable(struct config_reader *reader, const struct config_key *key, const char *path,
                             yaml_node_t *value) {
    config_fault_add(reader->faults, false, config_line(value),
                     "%s is not available yet in this version; remove it and write %s", path, key->write);
}

/* ---- lists, or one value alone ---- */

void config_read_list(struct config_reader *reader, const struct config_key *key, const char *path,
                      const yaml_node_t *value, size_t max, config_read_item *read) {
    if (value->type != YAML_SEQUENCE_NODE) {
        read(reader, key, path, value);
        return;
    }
    const yaml_node_item_t *items = value->data.sequence.items.start;
    const size_t count = (size_t)(value->data.sequence.items.top - items);
    if (count > max)
        config_fault_add(reader->faults, false, config_line(value), "%s has %zu entries; write at most %zu", path,
                         count, max);
    for (size_t i = 0; i < count && i < max; i++)
        read(reader, key, path, yaml_document_get_node(reader->document, items[i]));
}

static void read_issuer(struct config_reader *reader, const struct config_key *key, const char *path,
                        const yaml_node_t *item) {
    size_t *count = &reader->config->identity.issuer_count;
    if (set_path(reader, key, path, item, &reader->config->identity.issuers[*count])) ++*count;
}

void config_read_issuers(struct config_reader *reader, const struct config_key *key, const char *path,
                         yaml_node_t *value) {
    config_read_list(reader, key, path, value, CONFIG_ISSUERS_MAX, read_issuer);
}
