#include "tools/simulate/plan_values.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nearest.h"

#define KEYS_MAX 32u
#define DAY_S 86400.0
#define OFTENEST_US 1e3
#define LONGEST_US (1000 * DAY_S * 1e6)

int plan_line(const yaml_node_t *node) {
    return (int)node->start_mark.line + 1;
}

void plan_complain(struct plan_reader *reader, const yaml_node_t *node, const char *format, ...) {
    struct plan_complaints *complaints = reader->complaints;
    if (complaints->count == PLAN_COMPLAINTS_MAX) return;
    struct plan_complaint *complaint = &complaints->items[complaints->count++];
    complaint->line = node ? plan_line(node) : 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint->text, sizeof complaint->text, format, arguments);
    va_end(arguments);
    for (char *c = complaint->text; *c != '\0'; c++) /* values from the file may hold anything */
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

void plan_bad(struct plan_reader *reader, const struct plan_key *key, const yaml_node_t *node, const char *text) {
    plan_complain(reader, node, "%s: \"%.80s\" is not understood; write %s", key->name, text, key->write);
}

/* It is what is to be written, and out of bounds. */
static void too_much(struct plan_reader *reader, const struct plan_key *key, const yaml_node_t *node, const char *text,
                     const char *most) {
    plan_complain(reader, node, "%s: \"%.80s\" is too much; write at most %s", key->name, text, most);
}

const char *plan_scalar(struct plan_reader *reader, const struct plan_key *key, const yaml_node_t *node) {
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0) {
        plan_complain(reader, node, "%s %s; write %s", key->name,
                      node->type == YAML_SCALAR_NODE     ? "is empty"
                      : node->type == YAML_SEQUENCE_NODE ? "is a list"
                                                         : "has keys below it",
                      key->write);
        return NULL;
    }
    return (const char *)node->data.scalar.value;
}

/* ---- mappings and lists ---- */

static void unknown_key(struct plan_reader *reader, const yaml_node_t *node, const char *what,
                        const struct plan_key *keys, size_t count) {
    const char *name = (const char *)node->data.scalar.value, *words[KEYS_MAX];
    char all[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && i < KEYS_MAX; i++) {
        words[i] = keys[i].name;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ", keys[i].name);
    }
    const char *meant = nearest_word(name, words, count < KEYS_MAX ? count : KEYS_MAX);
    if (meant)
        plan_complain(reader, node, "unknown key \"%.60s\" of %s; write \"%s\"", name, what, meant);
    else
        plan_complain(reader, node, "unknown key \"%.60s\" of %s; write one of: %s", name, what, all);
}

static bool is_repeated(struct plan_reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                        const char *name) {
    for (const yaml_node_pair_t *earlier = mapping->data.mapping.pairs.start; earlier < pair; earlier++) {
        const yaml_node_t *key = yaml_document_get_node(reader->document, earlier->key);
        if (key->type == YAML_SCALAR_NODE && strcmp((const char *)key->data.scalar.value, name) == 0) return true;
    }
    return false;
}

static void read_pair(struct plan_reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                      const char *what, const struct plan_key *keys, size_t count) {
    const yaml_node_t *name_node = yaml_document_get_node(reader->document, pair->key);
    yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
    if (name_node->type != YAML_SCALAR_NODE) {
        plan_complain(reader, name_node, "a key must be a word; write KEY: VALUE");
        return;
    }
    const char *name = (const char *)name_node->data.scalar.value;
    if (is_repeated(reader, mapping, pair, name)) {
        plan_complain(reader, name_node, "%.60s was given before; write it once", name);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(keys[i].name, name) != 0) continue;
        keys[i].read(reader, &keys[i], value);
        return;
    }
    unknown_key(reader, name_node, what, keys, count);
}

void plan_read_keys(struct plan_reader *reader, yaml_node_t *mapping, const char *what, const struct plan_key *keys,
                    size_t count, void *target) {
    bool nothing = mapping->type == YAML_SCALAR_NODE && mapping->data.scalar.length == 0;
    if (nothing) return; /* all keys below it are commented out */
    if (mapping->type != YAML_MAPPING_NODE) {
        plan_complain(reader, mapping, "%s has no keys; write KEY: VALUE, one a line", what);
        return;
    }
    void *before = reader->target;
    reader->target = target;
    for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top;
         pair++)
        read_pair(reader, mapping, pair, what, keys, count);
    reader->target = before;
}

void plan_each(struct plan_reader *reader, yaml_node_t *value,
               void (*item)(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item),
               const struct plan_key *key) {
    if (value->type != YAML_SEQUENCE_NODE) {
        item(reader, key, value);
        return;
    }
    for (yaml_node_item_t *at = value->data.sequence.items.start; at < value->data.sequence.items.top; at++)
        item(reader, key, yaml_document_get_node(reader->document, *at));
}

/* ---- values ---- */

static void *target(struct plan_reader *reader, const struct plan_key *key) {
    return (char *)reader->target + key->offset;
}

/* A number and what stands behind it; false if there is no number. */
static bool split(const char *text, double *number, const char **unit) {
    char *end;
    *number = strtod(text, &end);
    while (*end == ' ')
        end++;
    *unit = end;
    return end != text && *number >= 0 && *number < 1e15;
}

static bool read_us_of(const char *text, double *us) {
    static const struct {
        const char *name;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"min", 60e6}, {"h", 3600e6}, {"d", DAY_S * 1e6}};
    double number;
    const char *unit;
    if (!split(text, &number, &unit)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) != 0) continue;
        *us = number * units[i].us + 0.5;
        return true;
    }
    return false;
}

bool plan_parse_us(const char *text, uint64_t *us) {
    double exact;
    if (!read_us_of(text, &exact) || exact > LONGEST_US + 1) return false;
    *us = (uint64_t)exact;
    return true;
}

bool plan_parse_share(const char *text, double *share) {
    double number;
    const char *unit;
    if (!split(text, &number, &unit)) return false;
    if (strcmp(unit, "%") == 0)
        number /= 100;
    else if (*unit != '\0')
        return false;
    if (number > 1) return false;
    *share = number;
    return true;
}

bool plan_parse_count(const char *text, uint64_t most, uint64_t *count) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long long number = strtoull(text, &end, 10);
    if (*end != '\0' || number > most) return false;
    *count = number;
    return true;
}

static bool read_us(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value, uint64_t most,
                    const char *most_text, uint64_t *us) {
    const char *text = plan_scalar(reader, key, value);
    double exact;
    if (!text) return false;
    if (plan_parse_us(text, us) && *us <= most) return true;
    if (read_us_of(text, &exact))
        too_much(reader, key, value, text, most_text);
    else
        plan_bad(reader, key, value, text);
    return false;
}

void plan_read_us64(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    uint64_t us;
    if (read_us(reader, key, value, UINT64_MAX, "1000d", &us)) *(uint64_t *)target(reader, key) = us;
}

void plan_read_us32(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    uint64_t us;
    if (read_us(reader, key, value, UINT32_MAX, "71m", &us)) *(uint32_t *)target(reader, key) = (uint32_t)us;
}

void plan_read_ms32(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    uint64_t us;
    if (read_us(reader, key, value, (uint64_t)UINT32_MAX * 1000, "49d", &us))
        *(uint32_t *)target(reader, key) = (uint32_t)(us / 1000);
}

void plan_read_share(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    const char *text = plan_scalar(reader, key, value);
    if (text && !plan_parse_share(text, target(reader, key))) plan_bad(reader, key, value, text);
}

void plan_read_count(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    const char *text = plan_scalar(reader, key, value);
    uint64_t count;
    if (!text) return;
    if (plan_parse_count(text, UINT32_MAX, &count))
        *(uint32_t *)target(reader, key) = (uint32_t)count;
    else if (text[strspn(text, "0123456789")] == '\0')
        too_much(reader, key, value, text, "4294967295");
    else
        plan_bad(reader, key, value, text);
}

void plan_read_bytes_per_s(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"B/s", 1},       {"kB/s", 1e3},       {"MB/s", 1e6},       {"GB/s", 1e9},
                 {"bit/s", 0.125}, {"kbit/s", 0.125e3}, {"Mbit/s", 0.125e6}, {"Gbit/s", 0.125e9}};
    const char *text = plan_scalar(reader, key, value), *unit;
    double number;
    if (!text) return;
    for (size_t i = 0; split(text, &number, &unit) && i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) != 0 || number * units[i].bytes < 1) continue;
        if (number * units[i].bytes > 1e15) {
            too_much(reader, key, value, text, "1000000GB/s");
            return;
        }
        *(uint64_t *)target(reader, key) = (uint64_t)(number * units[i].bytes);
        return;
    }
    plan_bad(reader, key, value, text);
}

void plan_read_mean(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    static const struct {
        const char *name;
        double us;
    } units[] = {{"/s", 1e6}, {"/min", 60e6}, {"/h", 3600e6}, {"/d", DAY_S * 1e6}};
    const char *text = plan_scalar(reader, key, value), *unit;
    double number;
    if (!text) return;
    for (size_t i = 0; split(text, &number, &unit) && i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) != 0) continue;
        if (number > units[i].us / OFTENEST_US) { /* 0 would be never */
            too_much(reader, key, value, text, "1000/s");
            return;
        }
        *(uint64_t *)target(reader, key) = number > 0 ? (uint64_t)(units[i].us / number) : 0;
        return;
    }
    plan_bad(reader, key, value, text);
}

void plan_read_flag(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    const char *text = plan_scalar(reader, key, value);
    if (!text) return;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *(bool *)target(reader, key) = text[0] == 't';
    else
        plan_bad(reader, key, value, text);
}
