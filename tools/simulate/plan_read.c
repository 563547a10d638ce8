/* The keys of a plan. */
#include "tools/simulate/plan_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/nearest.h"
#include "tools/simulate/plan_faults.h"

#define FILE_SIZE_MAX (1u << 20)
#define FILTER_SIZE_MAX 250u
#define ROWS_MAX 100000u
#define KEY_COUNT(keys) (sizeof(keys) / sizeof *(keys))

#define A_TIME "a time, such as 500ms, 2s, 10m or 24h"
#define A_SHARE "a share, such as 5% or 0.05"
#define A_COUNT "a whole number"
#define A_RATE "a rate, such as 2/min or 10/h"

/* ---- weather ---- */

static const struct plan_key weather_keys[] = {
    {"delay", plan_read_us32, offsetof(struct weather, delay_us), A_TIME},
    {"jitter", plan_read_us32, offsetof(struct weather, jitter_us), A_TIME},
    {"loss", plan_read_share, offsetof(struct weather, loss), A_SHARE},
    {"burst_share", plan_read_share, offsetof(struct weather, burst_share), A_SHARE},
    {"burst_length", plan_read_us32, offsetof(struct weather, burst_us), A_TIME},
    {"burst_loss", plan_read_share, offsetof(struct weather, burst_loss), A_SHARE},
    {"duplicate", plan_read_share, offsetof(struct weather, duplicate), A_SHARE},
    {"corrupt", plan_read_share, offsetof(struct weather, corrupt), A_SHARE},
    {"reorder", plan_read_share, offsetof(struct weather, reorder), A_SHARE},
    {"reorder_by", plan_read_us32, offsetof(struct weather, reorder_us), A_TIME},
    {"mtu", plan_read_count, offsetof(struct weather, mtu), "bytes of IP, such as 1280"},
    {"bandwidth", plan_read_bytes_per_s, offsetof(struct weather, bytes_per_s), "a rate, such as 64kB/s or 2Mbit/s"},
    {"queue", plan_read_us32, offsetof(struct weather, queue_us), A_TIME},
};

static void check_weather(struct plan_reader *reader, const yaml_node_t *node, const struct weather *weather) {
    if (weather->burst_share > 0 && weather->burst_us == 0)
        plan_complain(reader, node, "burst_share needs burst_length; write burst_length: 500ms");
    if (weather->burst_share >= 1)
        plan_complain(reader, node, "burst_share must be below 100%%; write loss instead for what is always so");
    if (weather->reorder > 0 && weather->reorder_us == 0)
        plan_complain(reader, node, "reorder needs reorder_by; write reorder_by: 100ms");
}

static void read_network(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    (void)key;
    plan_read_keys(reader, value, "network", weather_keys, KEY_COUNT(weather_keys), &reader->plan->weather);
    check_weather(reader, value, &reader->plan->weather);
}

/* ---- sites ---- */

static void read_name(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct plan_site *site = reader->target;
    const char *text = plan_scalar(reader, key, value);
    if (!text) return;
    bool good = strlen(text) < PLAN_NAME_MAX;
    for (const char *c = text; *c != '\0'; c++)
        good = good &&
               (strchr("._-", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'));
    if (!good) {
        plan_bad(reader, key, value, text);
        return;
    }
    snprintf(site->name, sizeof site->name, "%s", text);
}

static void read_nat(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    static const char *const names[] = {"false", "true", "symmetric"};
    struct plan_site *site = reader->target;
    const char *text = plan_scalar(reader, key, value);
    if (!text) return;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        site->nat = (enum plan_nat)i;
        return;
    }
    plan_bad(reader, key, value, text);
}

static const struct plan_key site_keys[] = {
    {"name", read_name, 0, "a name of letters, digits, '.', '_' and '-', such as ship"},
    {"brokers", plan_read_count, offsetof(struct plan_site, brokers), A_COUNT},
    {"nat", read_nat, 0, "true, false or symmetric"},
};

static void read_site(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item) {
    struct plan *plan = reader->plan;
    (void)key;
    if (plan->site_count == PLAN_SITES_MAX) {
        plan_complain(reader, item, "more than %u sites; leave some out", PLAN_SITES_MAX);
        return;
    }
    struct plan_site *site = &plan->sites[plan->site_count];
    *site = (struct plan_site){.brokers = 1, .line = plan_line(item)};
    plan_read_keys(reader, item, "a site", site_keys, KEY_COUNT(site_keys), site);
    if (site->name[0] == '\0') {
        plan_complain(reader, item, "a site has no name; write name: ship");
        return;
    }
    for (uint32_t i = 0; i < plan->site_count; i++)
        if (strcmp(plan->sites[i].name, site->name) == 0)
            plan_complain(reader, item, "site %s was given in line %d; write another name", site->name,
                          plan->sites[i].line);
    plan->site_count++;
}

static void read_sites(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    plan_each(reader, value, read_site, key);
}

bool plan_find_site(struct plan_reader *reader, const yaml_node_t *node, const char *name, uint32_t *site) {
    const char *words[PLAN_SITES_MAX];
    for (uint32_t i = 0; i < reader->plan->site_count; i++) {
        words[i] = reader->plan->sites[i].name;
        *site = i;
        if (strcmp(words[i], name) == 0) return true;
    }
    const char *meant = nearest_word(name, words, reader->plan->site_count);
    if (meant)
        plan_complain(reader, node, "there is no site \"%.60s\"; write %s", name, meant);
    else
        plan_complain(reader, node, "there is no site \"%.60s\"; name it under sites first", name);
    return false;
}

/* ---- paths ---- */

struct path_read {
    struct weather weather;
    uint32_t ends[2], end_count;
    bool one_way;
};

static void read_end(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item) {
    struct path_read *path = reader->target;
    const char *name = plan_scalar(reader, key, item);
    if (!name) return;
    if (path->end_count == 2)
        plan_complain(reader, item, "between has more than two sites; write between: [ship, shore]");
    else if (plan_find_site(reader, item, name, &path->ends[path->end_count]))
        path->end_count++;
}

static void read_ends(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    plan_each(reader, value, read_end, key);
}

static void read_path(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item) {
    struct plan_key keys[KEY_COUNT(weather_keys) + 2];
    struct path_read path = {.weather = reader->plan->weather};
    (void)key;
    memcpy(keys, weather_keys, sizeof weather_keys);
    keys[KEY_COUNT(weather_keys)] = (struct plan_key){"between", read_ends, 0, "two sites, such as [ship, shore]"};
    keys[KEY_COUNT(weather_keys) + 1] =
        (struct plan_key){"one_way", plan_read_flag, offsetof(struct path_read, one_way), "true or false"};
    size_t complained = reader->complaints->count;
    plan_read_keys(reader, item, "a path", keys, KEY_COUNT(keys), &path);
    check_weather(reader, item, &path.weather);
    if (path.end_count == 1) path.ends[1] = path.ends[0]; /* within one site */
    if (path.end_count == 0 && reader->complaints->count == complained)
        plan_complain(reader, item, "a path is between nothing; write between: [ship, shore]");
    if (path.end_count == 0) return;
    plan_add_path(reader->plan, path.ends[0], path.ends[1])->weather = path.weather;
    if (!path.one_way) plan_add_path(reader->plan, path.ends[1], path.ends[0])->weather = path.weather;
}

static void read_paths(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    plan_each(reader, value, read_path, key);
}

/* ---- the rest ---- */

static const struct plan_key load_keys[] = {
    {"publishers", plan_read_count, offsetof(struct plan_load, publishers), A_COUNT},
    {"subscribers", plan_read_count, offsetof(struct plan_load, subscribers), A_COUNT},
    {"changes", plan_read_mean, offsetof(struct plan_load, change_us), A_RATE},
    {"filter_size", plan_read_count, offsetof(struct plan_load, filter_size), "bytes, up to 250"},
};

static void read_load(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    (void)key;
    plan_read_keys(reader, value, "load", load_keys, KEY_COUNT(load_keys), &reader->plan->load);
    if (reader->plan->load.publishers > ROWS_MAX || reader->plan->load.subscribers > ROWS_MAX)
        plan_complain(reader, value,
                      "a broker has more publishers or subscribers than can be run; write %u of each at "
                      "most",
                      ROWS_MAX);
    if (reader->plan->load.filter_size > FILTER_SIZE_MAX)
        plan_complain(reader, value, "filter_size: %u; write bytes, up to %u", reader->plan->load.filter_size,
                      FILTER_SIZE_MAX);
}

static const struct plan_key gossip_keys[] = {
    {"probe_interval", plan_read_ms32, offsetof(struct gossip_limits, probe_interval_ms), A_TIME},
    {"probe_timeout", plan_read_ms32, offsetof(struct gossip_limits, probe_timeout_ms), A_TIME},
    {"rumor_interval", plan_read_ms32, offsetof(struct gossip_limits, rumor_interval_ms), A_TIME},
    {"suspicion_min", plan_read_ms32, offsetof(struct gossip_limits, suspicion_min_ms), A_TIME},
    {"anti_entropy", plan_read_ms32, offsetof(struct gossip_limits, anti_entropy_ms), A_TIME},
    {"rejoin", plan_read_ms32, offsetof(struct gossip_limits, rejoin_ms), A_TIME},
    {"rows_max", plan_read_count, offsetof(struct gossip_limits, rows_max), A_COUNT},
    {"eager_members_max", plan_read_count, offsetof(struct gossip_limits, eager_members_max), A_COUNT},
    {"log_entries_max", plan_read_count, offsetof(struct gossip_limits, log_entries_max), A_COUNT},
    {"awake_max", plan_read_count, offsetof(struct gossip_limits, awake_max), A_COUNT},
};

static void read_gossip(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    (void)key;
    plan_read_keys(reader, value, "gossip", gossip_keys, KEY_COUNT(gossip_keys), &reader->plan->limits);
}

static void read_title(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    const char *text = plan_scalar(reader, key, value);
    if (text) snprintf(reader->plan->title, sizeof reader->plan->title, "%s", text);
}

static void read_seed(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    const char *text = plan_scalar(reader, key, value);
    if (text && !plan_parse_count(text, UINT64_MAX / 2, &reader->plan->seed)) plan_bad(reader, key, value, text);
}

static void read_drift(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    double share = 0;
    const char *text = plan_scalar(reader, key, value);
    if (!text) return;
    if (plan_parse_share(text, &share) && share <= 0.1)
        reader->plan->drift_ppm = (uint32_t)(share * 1e6);
    else
        plan_bad(reader, key, value, text);
}

/* In the order in which they are read: paths and faults name sites, and paths begin with the weather of the network. */
static const struct plan_key top_keys[] = {
    {"title", read_title, 0, "a line of text"},
    {"seed", read_seed, 0, A_COUNT},
    {"duration", plan_read_us64, offsetof(struct plan, duration_us), A_TIME},
    {"settle", plan_read_us64, offsetof(struct plan, settle_us), A_TIME},
    {"idle", plan_read_us64, offsetof(struct plan, idle_us), A_TIME},
    {"start", plan_read_us64, offsetof(struct plan, start_us), A_TIME},
    {"bootstrap", plan_read_count, offsetof(struct plan, bootstrap_count),
     "how many brokers are everybody's bootstrap, 1 to 8"},
    {"slow_brokers", plan_read_share, offsetof(struct plan, slow_share), A_SHARE},
    {"slow_by", plan_read_us64, offsetof(struct plan, slow_us), A_TIME},
    {"clock_drift", read_drift, 0, "a share up to 10%, such as 0.5%"},
    {"tokens_valid", plan_read_us64, offsetof(struct plan, token_us), A_TIME},
    {"network", read_network, 0, ""},
    {"sites", read_sites, 0, ""},
    {"paths", read_paths, 0, ""},
    {"load", read_load, 0, ""},
    {"gossip", read_gossip, 0, ""},
    {"faults", plan_read_faults, 0, ""},
    {"chaos", plan_read_chaos, 0, ""},
};

/* The pairs in the order of the table, whatever the order of the file. */
static void sort_pairs(yaml_document_t *document, yaml_node_t *root) {
    yaml_node_pair_t *start = root->data.mapping.pairs.start, *top = root->data.mapping.pairs.top, *to = start;
    for (size_t i = 0; i < KEY_COUNT(top_keys); i++) {
        for (yaml_node_pair_t *pair = to; pair < top; pair++) {
            const yaml_node_t *key = yaml_document_get_node(document, pair->key);
            if (key->type != YAML_SCALAR_NODE || strcmp((const char *)key->data.scalar.value, top_keys[i].name) != 0)
                continue;
            yaml_node_pair_t found = *pair;
            *pair = *to;
            *to++ = found;
        }
    }
}

static void check(struct plan_reader *reader) {
    struct plan *plan = reader->plan;
    uint64_t brokers = 0;
    for (uint32_t i = 0; i < plan->site_count; i++)
        brokers += plan->sites[i].brokers;
    if (plan->site_count == 0) {
        plan_complain(reader, NULL, "there are no sites; write sites: with one item - name: edge, brokers: 5");
        return;
    }
    if (brokers < 2 || brokers > PLAN_BROKERS_MAX) {
        plan_complain(reader, NULL, "there are %llu brokers; write 2 to %u in all", (unsigned long long)brokers,
                      PLAN_BROKERS_MAX);
        return;
    }
    if (plan->bootstrap_count < 1 || plan->bootstrap_count > PLAN_BOOTSTRAP_MAX)
        plan_complain(reader, NULL, "bootstrap: %u; write 1 to %u", plan->bootstrap_count, PLAN_BOOTSTRAP_MAX);
    if (plan->duration_us == 0) plan_complain(reader, NULL, "duration is 0; write duration: 10m");
    if (plan->slow_share > 0 && plan->slow_us == 0)
        plan_complain(reader, NULL, "slow_brokers needs slow_by; write slow_by: 2s");
    plan_spread(plan, (uint32_t)brokers);
    for (uint32_t i = 0, broker = 0; i < plan->site_count && broker < plan->bootstrap_count; i++) {
        if (plan->sites[i].nat != NAT_NONE)
            plan_complain(reader, NULL,
                          "the first %u brokers are everybody's bootstrap, and site %s is behind NAT; name sites with "
                          "public addresses first, or write a smaller bootstrap",
                          plan->bootstrap_count, plan->sites[i].name);
        broker += plan->sites[i].brokers;
    }
}

static void yaml_complaint(struct plan_reader *reader, const yaml_parser_t *parser) {
    plan_complain(reader, NULL, "no YAML: %s; write KEY: VALUE, one a line, and indent by spaces",
                  parser->problem ? parser->problem : "it cannot be understood");
    reader->complaints->items[reader->complaints->count - 1].line = (int)parser->problem_mark.line + 1;
}

/* By line; insertion keeps those of one line in order. */
static void sort_complaints(struct plan_complaints *complaints) {
    for (size_t i = 1; i < complaints->count; i++) {
        const struct plan_complaint complaint = complaints->items[i];
        size_t at = i;
        for (; at > 0 && complaints->items[at - 1].line > complaint.line; at--)
            complaints->items[at] = complaints->items[at - 1];
        complaints->items[at] = complaint;
    }
}

bool plan_parse(struct plan *plan, const char *text, size_t size, struct plan_complaints *complaints) {
    yaml_parser_t parser;
    yaml_document_t document;
    struct plan_reader reader = {.document = &document, .plan = plan, .complaints = complaints, .target = plan};
    complaints->count = 0;
    plan_init(plan);
    if (!yaml_parser_initialize(&parser)) {
        plan_complain(&reader, NULL, "memory is short; stop other programs");
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (!yaml_parser_load(&parser, &document)) {
        yaml_complaint(&reader, &parser);
        yaml_parser_delete(&parser);
        return false;
    }
    yaml_node_t *root = yaml_document_get_root_node(&document);
    if (root && root->type == YAML_MAPPING_NODE) sort_pairs(&document, root);
    if (root) plan_read_keys(&reader, root, "the plan", top_keys, KEY_COUNT(top_keys), plan);
    if (complaints->count == 0) check(&reader);
    if (complaints->count == 0) plan_check_faults(&reader);
    sort_complaints(complaints);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    return complaints->count == 0;
}

bool plan_read(struct plan *plan, const char *path, struct plan_complaints *complaints) {
    struct plan_reader reader = {.plan = plan, .complaints = complaints};
    struct stat status;
    complaints->count = 0;
    plan_init(plan);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) != 0 || S_ISDIR(status.st_mode)) {
        plan_complain(&reader, NULL, "cannot be read: %s; write the path of a plan, such as those in examples/simulate",
                      file ? "it is a folder" : strerror(errno));
        if (file) fclose(file);
        return false;
    }
    char *text = malloc(FILE_SIZE_MAX + 1);
    size_t size = text ? fread(text, 1, FILE_SIZE_MAX + 1, file) : FILE_SIZE_MAX + 1;
    fclose(file);
    bool good = size <= FILE_SIZE_MAX;
    if (!good) plan_complain(&reader, NULL, "is larger than 1 MiB; write a shorter plan");
    if (good) good = plan_parse(plan, text, size, complaints);
    free(text);
    return good;
}
