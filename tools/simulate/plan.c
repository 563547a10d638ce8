#include "tools/simulate/plan.h"

#include "tools/simulate/agenda.h"
#include "tools/simulate/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_init(struct plan *plan) {
    *plan = (struct plan){
        .seed = 1,
        .weather = {.delay_us = 1000, .jitter_us = 300},
        .load = {.publishers = 2, .subscribers = 2},
        .start_us = 2 * AGENDA_S,
        .duration_us = 120 * AGENDA_S,
        .settle_us = 120 * AGENDA_S,
        .bootstrap_count = 3,
    };
}

void plan_free(struct plan *plan) {
    free(plan->paths);
    free(plan->faults);
    memset(plan, 0, sizeof *plan);
}

struct plan_fault *plan_add_fault(struct plan *plan) {
    plan->faults = memory_room(plan->faults, &plan->fault_room, plan->fault_count + 1, sizeof *plan->faults);
    struct plan_fault *fault = &plan->faults[plan->fault_count++];
    *fault = (struct plan_fault){.broker = PLAN_ANY, .site = PLAN_ANY, .for_us = PLAN_NEVER};
    return fault;
}

struct plan_path *plan_add_path(struct plan *plan, uint32_t from, uint32_t to) {
    plan->paths = memory_room(plan->paths, &plan->path_room, plan->path_count + 1, sizeof *plan->paths);
    struct plan_path *path = &plan->paths[plan->path_count++];
    *path = (struct plan_path){.from = from, .to = to, .weather = plan->weather};
    return path;
}

void plan_spread(struct plan *plan, uint32_t broker_count) {
    uint64_t before = 0, passed = 0;
    if (plan->site_count == 0) {
        plan->site_count = 1;
        snprintf(plan->sites[0].name, sizeof plan->sites[0].name, "edge");
    }
    for (uint32_t i = 0; i < plan->site_count; i++)
        before += plan->sites[i].brokers;
    for (uint32_t i = 0; i < plan->site_count; i++) {
        uint64_t weight = before > 0 ? plan->sites[i].brokers : 1, all = before > 0 ? before : plan->site_count;
        uint64_t from = passed * broker_count / all;
        passed += weight;
        plan->sites[i].brokers = (uint32_t)(passed * broker_count / all - from);
    }
    plan->broker_count = broker_count;
}

uint32_t plan_site_of(const struct plan *plan, uint32_t broker) {
    uint32_t site = 0;
    while (site + 1 < plan->site_count && broker >= plan->sites[site].brokers)
        broker -= plan->sites[site++].brokers;
    return site;
}

void plan_broker_name(const struct plan *plan, uint32_t broker, char name[GOSSIP_NAME_MAX + 1]) {
    uint32_t number = broker, site = 0;
    while (site + 1 < plan->site_count && number >= plan->sites[site].brokers)
        number -= plan->sites[site++].brokers;
    snprintf(name, GOSSIP_NAME_MAX + 1, "%s-%u", plan->sites[site].name, number + 1);
}

const char *fault_name(enum fault_kind kind) {
    static const char *const names[FAULT_COUNT] = {"crash", "leave", "pause",   "stall",  "slow",
                                                   "clock", "move",  "clone",   "old",    "partition",
                                                   "loss",  "mtu",   "foreign", "hostile"};
    return names[kind];
}
