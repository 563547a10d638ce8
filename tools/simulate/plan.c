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

/* Each site keeps one broker at least; the largest gives what that takes. */
static void keep_all_sites(struct plan *plan) {
    for (uint32_t i = 0; i < plan->site_count; i++) {
        uint32_t largest = 0;
        for (uint32_t j = 1; j < plan->site_count; j++)
            largest = plan->sites[j].brokers > plan->sites[largest].brokers ? j : largest;
        if (plan->sites[i].brokers > 0 || plan->sites[largest].brokers < 2) continue;
        plan->sites[largest].brokers--;
        plan->sites[i].brokers++;
    }
}

void plan_spread(struct plan *plan, uint32_t broker_count) {
    uint64_t before = 0, passed = 0, given = 0;
    if (plan->site_count == 0) {
        plan->site_count = 1;
        snprintf(plan->sites[0].name, sizeof plan->sites[0].name, "edge");
    }
    for (uint32_t i = 0; i < plan->site_count; i++)
        before += plan->sites[i].brokers;
    for (uint32_t i = 0; i < plan->site_count; i++) {
        passed += before > 0 ? plan->sites[i].brokers : 1;
        uint64_t up_to = passed * broker_count / (before > 0 ? before : plan->site_count);
        plan->sites[i].brokers = (uint32_t)(up_to - given);
        given = up_to;
    }
    plan->broker_count = broker_count;
    keep_all_sites(plan);
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
    static const char *const names[FAULT_COUNT] = {"crash",   "leave",   "pause",   "stall",     "slow", "clock",
                                                   "move",    "clone",   "old",     "partition", "loss", "mtu",
                                                   "foreign", "hostile", "blocked", "rotate"};
    return names[kind];
}
