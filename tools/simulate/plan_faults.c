#include "tools/simulate/plan_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nearest.h"
#include "tools/simulate/agenda.h"

#define KEY_COUNT(keys) (sizeof(keys) / sizeof *(keys))
#define A_TIME "a time, such as 500ms, 2s, 10m or 24h"

/* What a fault of the file says, beside the fault. */
struct fault_read {
    struct plan_fault fault;
    bool has_kind, has_at;
};

static const char *const shapes[] = {"half", "thirds", "one", "ring", "sites"};
static const char *const disks[] = {"kept", "lost", "old"};

static void read_word(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value,
                      const char *const *words, size_t count, int *found) {
    const char *text = plan_scalar(reader, key, value);
    if (!text) return;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) != 0) continue;
        *found = (int)i;
        return;
    }
    plan_bad(reader, key, value, text);
}

static bool find_broker(const struct plan *plan, const char *name, uint32_t *broker) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < plan->site_count; i++) {
        size_t size = strlen(plan->sites[i].name);
        uint64_t number;
        if (strncmp(name, plan->sites[i].name, size) == 0 && name[size] == '-' &&
            plan_parse_count(name + size + 1, plan->sites[i].brokers, &number) && number > 0) {
            *broker = first + (uint32_t)number - 1;
            return true;
        }
        first += plan->sites[i].brokers;
    }
    return false;
}

/* any, a broker, or a site: then one of its brokers is drawn. */
static void read_whom(struct plan_reader *reader, struct plan_fault *fault, const yaml_node_t *node, const char *text) {
    if (strcmp(text, "any") == 0 || find_broker(reader->plan, text, &fault->broker)) return;
    for (uint32_t i = 0; i < reader->plan->site_count; i++) {
        if (strcmp(reader->plan->sites[i].name, text) != 0) continue;
        fault->site = i;
        return;
    }
    plan_complain(
        reader, node,
        "there is no broker or site \"%.60s\"; write any, a site, or SITE-NUMBER with the number from 1 to the "
        "site's brokers",
        text);
}

static void read_kind(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct fault_read *read = reader->target;
    enum fault_kind kind = (enum fault_kind)key->offset;
    int shape = 0;
    if (read->has_kind) {
        plan_complain(reader, value, "%s: this fault is already a %s; begin another with - at:", key->name,
                      fault_name(read->fault.kind));
        return;
    }
    read->has_kind = true;
    read->fault.kind = kind;
    if (kind == FAULT_PARTITION) {
        read_word(reader, key, value, shapes, KEY_COUNT(shapes), &shape);
        read->fault.shape = (enum fault_shape)shape;
        return;
    }
    const char *text = plan_scalar(reader, key, value);
    if (text) read_whom(reader, &read->fault, value, text);
}

static void read_at(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct fault_read *read = reader->target;
    read->has_at = true;
    plan_read_us64(reader, key, value);
}

static void read_disk(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct fault_read *read = reader->target;
    int disk = 0;
    read_word(reader, key, value, disks, KEY_COUNT(disks), &disk);
    read->fault.disk = (enum fault_disk)disk;
}

static void read_jump(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct fault_read *read = reader->target;
    const char *text = plan_scalar(reader, key, value);
    uint64_t us;
    if (!text) return;
    bool back = text[0] == '-';
    if (!plan_parse_us(text + back, &us))
        plan_bad(reader, key, value, text);
    else
        read->fault.jump_ms = (back ? -1 : 1) * (int64_t)(us / 1000);
}

static void read_mtu(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct fault_read *read = reader->target;
    const char *text = plan_scalar(reader, key, value);
    if (text && !plan_parse_count(text, 65535, &read->fault.amount_us)) plan_bad(reader, key, value, text);
}

static void read_one_site(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item) {
    struct fault_read *read = reader->target;
    const char *text = plan_scalar(reader, key, item);
    uint32_t site;
    if (!text || !plan_find_site(reader, item, text, &site)) return;
    if (read->fault.site_count < PLAN_FAULT_SITES_MAX)
        read->fault.sites[read->fault.site_count++] = site;
    else
        plan_complain(reader, item, "more than %u sites; name the others' side instead", PLAN_FAULT_SITES_MAX);
}

static void read_sites(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    plan_each(reader, value, read_one_site, key);
}

#define FIELD(name) (offsetof(struct fault_read, fault) + offsetof(struct plan_fault, name))
#define A_BROKER "any, a site, or a broker such as ship-1"
static const struct plan_key fault_keys[] = {
    {"at", read_at, FIELD(at_us), A_TIME},
    {"for", plan_read_us64, FIELD(for_us), A_TIME},
    {"every", plan_read_us64, FIELD(every_us), A_TIME},
    {"count", plan_read_count, FIELD(count), "a whole number"},
    {"disk", read_disk, 0, "kept, lost or old"},
    {"sites", read_sites, 0, "sites, such as [ship, shore]"},
    {"flap", plan_read_us64, FIELD(flap_us), A_TIME},
    {"one_way", plan_read_flag, FIELD(one_way), "true or false"},
    {"at_once", plan_read_flag, FIELD(at_once), "true or false"},
    {"by", plan_read_us64, FIELD(amount_us), A_TIME},
    {"jump", read_jump, 0, "a time, such as 1h or -30m"},
    {"share", plan_read_share, FIELD(share), "a share, such as 30%"},
    {"bytes", read_mtu, 0, "bytes of IP, such as 576"},
    {"crash", read_kind, FAULT_CRASH, A_BROKER},
    {"leave", read_kind, FAULT_LEAVE, A_BROKER},
    {"pause", read_kind, FAULT_PAUSE, A_BROKER},
    {"stall", read_kind, FAULT_STALL, A_BROKER},
    {"slow", read_kind, FAULT_SLOW, A_BROKER},
    {"clock", read_kind, FAULT_CLOCK, A_BROKER},
    {"move", read_kind, FAULT_MOVE, A_BROKER},
    {"clone", read_kind, FAULT_CLONE, A_BROKER},
    {"old", read_kind, FAULT_OLD, A_BROKER},
    {"blocked", read_kind, FAULT_BLOCKED, A_BROKER},
    {"rotate", read_kind, FAULT_ROTATE, A_BROKER},
    {"partition", read_kind, FAULT_PARTITION, "half, thirds, one, ring or sites"},
    {"loss", read_kind, FAULT_LOSS, "any or a site"},
    {"mtu", read_kind, FAULT_MTU, "any or a site"},
    {"foreign", read_kind, FAULT_FOREIGN, "any or a site"},
    {"hostile", read_kind, FAULT_HOSTILE, "any or a site"},
};

static void check_fault(struct plan_reader *reader, const yaml_node_t *item, const struct fault_read *read) {
    const struct plan_fault *fault = &read->fault;
    bool lasts = fault->for_us != PLAN_NEVER;
    const char *name = fault_name(fault->kind);
    if (!read->has_at) plan_complain(reader, item, "a fault has no time; write at: 60s");
    if (!read->has_kind) {
        plan_complain(reader, item, "a fault says not what happens; write crash: any, or partition: half");
        return;
    }
    if ((fault->kind == FAULT_PAUSE || fault->kind == FAULT_STALL) && !lasts)
        plan_complain(reader, item, "%s has no end; write for: 10s", name);
    if ((fault->kind == FAULT_SLOW || fault->kind == FAULT_STALL) && fault->amount_us == 0)
        plan_complain(reader, item, "%s says not by how much; write by: 2s", name);
    if (fault->kind == FAULT_CLOCK && fault->jump_ms == 0)
        plan_complain(reader, item, "clock says not how far; write jump: 1h");
    if (fault->kind == FAULT_PARTITION && fault->shape == SHAPE_SITES && fault->site_count == 0)
        plan_complain(reader, item, "partition: sites says not which; write sites: [ship]");
    if (fault->at_once && fault->kind != FAULT_ROTATE)
        plan_complain(reader, item, "at_once is of rotate; leave it out, or write rotate: any");
    if (fault->kind == FAULT_ROTATE && fault->count > 2)
        plan_complain(reader, item,
                      "rotate is done by one admin, or by two who do not know of each other; write count: 2");
    if (fault->every_us > 0 && lasts && fault->every_us <= fault->for_us && fault->kind == FAULT_PARTITION)
        plan_complain(reader, item, "every is not longer than for; write for: shorter, or leave every out");
}

static void read_fault(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *item) {
    struct fault_read read = {.fault = {.broker = PLAN_ANY, .site = PLAN_ANY, .for_us = PLAN_NEVER}};
    size_t complained = reader->complaints->count;
    (void)key;
    plan_read_keys(reader, item, "a fault", fault_keys, KEY_COUNT(fault_keys), &read);
    if (reader->complaints->count == complained) check_fault(reader, item, &read);
    *plan_add_fault(reader->plan) = read.fault;
}

void plan_read_faults(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    plan_each(reader, value, read_fault, key);
}

void plan_read_chaos(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value) {
    struct plan_key keys[FAULT_COUNT];
    (void)key;
    for (size_t i = 0; i < FAULT_COUNT; i++)
        keys[i] = (struct plan_key){fault_name((enum fault_kind)i), plan_read_mean, i * sizeof(uint64_t),
                                    "a rate, such as 2/min or 10/h"};
    plan_read_keys(reader, value, "chaos", keys, FAULT_COUNT, reader->plan->chaos_us);
}

void plan_check_faults(struct plan_reader *reader) {
    for (size_t i = 0; i < reader->plan->fault_count; i++)
        if (reader->plan->faults[i].at_us > reader->plan->duration_us)
            plan_complain(reader, NULL, "a %s is at %.0f s, after the end; write a longer duration, or an earlier at",
                          fault_name(reader->plan->faults[i].kind), (double)reader->plan->faults[i].at_us / 1e6);
}
