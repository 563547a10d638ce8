/* Inside plan_*.c: keys of a plan, and how their values are written. Not a door. */
#ifndef SIMULATE_PLAN_VALUES_H
#define SIMULATE_PLAN_VALUES_H

#include <yaml.h>

#include "tools/simulate/plan_read.h"

struct plan_reader {
    yaml_document_t *document;
    struct plan *plan;
    struct plan_complaints *complaints;
    void *target; /* of the mapping in hand */
};

struct plan_key {
    const char *name;
    /* Reads the value to where it belongs: target + offset, or what the reader knows. */
    void (*read)(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);
    size_t offset;
    const char *write; /* what to write, for complaints: "a time, such as 500ms, 2s or 10m" */
};

void plan_complain(struct plan_reader *reader, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int plan_line(const yaml_node_t *node);

/* Every pair of a mapping by its key. what: "a site", for complaints. */
void plan_read_keys(struct plan_reader *reader, yaml_node_t *mapping, const char *what, const struct plan_key *keys,
                    size_t count, void *target);
/* The text of a scalar; NULL after a complaint. */
const char *plan_scalar(struct plan_reader *reader, const struct plan_key *key, const yaml_node_t *node);
void plan_bad(struct plan_reader *reader, const struct plan_key *key, const yaml_node_t *node, const char *text);
/* Calls for each item of a list, or for the value alone. */
void plan_each(struct plan_reader *reader, yaml_node_t *value,
               void (*item)(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item),
               const struct plan_key *key);

/* Values into the plan, by the type of the field. */
void plan_read_us64(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);        /* uint64_t */
void plan_read_us32(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);        /* uint32_t */
void plan_read_ms32(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);        /* uint32_t */
void plan_read_share(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);       /* double */
void plan_read_count(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);       /* uint32_t */
void plan_read_bytes_per_s(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value); /* uint64_t */
void plan_read_mean(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value); /* uint64_t: 2/min */
void plan_read_flag(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value); /* bool */

bool plan_parse_us(const char *text, uint64_t *us);
bool plan_parse_count(const char *text, uint64_t most, uint64_t *count);
bool plan_parse_share(const char *text, double *share);

#endif
