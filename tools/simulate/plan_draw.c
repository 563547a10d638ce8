#include "tools/simulate/plan_draw.h"

#include "tools/simulate/agenda.h"
#include "tools/simulate/dice.h"

#include <stdio.h>

#define CHAOS_S 40u
#define SETTLE_S 120u

static void draw_weather(struct dice *dice, struct weather *weather) {
    *weather = (struct weather){.delay_us = (uint32_t)dice_magnitude(dice, 200, 300000)};
    weather->jitter_us = (uint32_t)dice_below(dice, weather->delay_us + 1);
    if (dice_below(dice, 3) != 0) weather->loss = dice_real(dice) * dice_real(dice) * 0.4;
    if (dice_below(dice, 3) == 0) {
        weather->burst_share = dice_real(dice) * 0.2;
        weather->burst_us = (uint32_t)dice_magnitude(dice, 50 * AGENDA_MS, 5 * AGENDA_S);
    }
    if (dice_below(dice, 2)) weather->duplicate = dice_real(dice) * 0.1;
    if (dice_below(dice, 3) == 0) weather->corrupt = dice_real(dice) * 0.02;
    if (dice_below(dice, 2)) {
        weather->reorder = dice_real(dice) * 0.1;
        weather->reorder_us = (uint32_t)dice_magnitude(dice, 10 * AGENDA_MS, 3 * AGENDA_S);
    }
    if (dice_below(dice, 4) == 0) weather->bytes_per_s = dice_magnitude(dice, 30000, 1000000);
}

static void draw_sites(struct dice *dice, struct plan *plan) {
    plan->site_count = 1 + (uint32_t)dice_below(dice, 3);
    for (uint32_t i = 0; i < plan->site_count; i++) {
        snprintf(plan->sites[i].name, sizeof plan->sites[i].name, "site%u", i + 1);
        plan->sites[i].brokers = 1;
    }
    plan_spread(plan, 5 + (uint32_t)dice_below(dice, 4));
    /* The first broker is a bootstrap of all, so its site has addresses that others reach. */
    if (plan->site_count > 1 && dice_below(dice, 3) == 0)
        plan->sites[plan->site_count - 1].nat = dice_below(dice, 2) ? NAT_CONE : NAT_SYMMETRIC;
    for (uint32_t from = 0; from < plan->site_count; from++) {
        for (uint32_t to = 0; to < plan->site_count; to++) {
            if (from == to) continue;
            draw_weather(dice, &plan_add_path(plan, from, to)->weather);
        }
    }
}

void plan_draw(struct plan *plan, uint64_t seed) {
    static const uint32_t seldom_s[FAULT_COUNT] = {
        [FAULT_CRASH] = 12,   [FAULT_LEAVE] = 40,     [FAULT_PAUSE] = 25,   [FAULT_STALL] = 40,
        [FAULT_SLOW] = 40,    [FAULT_CLOCK] = 20,     [FAULT_MOVE] = 25,    [FAULT_CLONE] = 60,
        [FAULT_OLD] = 60,     [FAULT_PARTITION] = 15, [FAULT_LOSS] = 40,    [FAULT_MTU] = 60,
        [FAULT_FOREIGN] = 60, [FAULT_HOSTILE] = 40,   [FAULT_BLOCKED] = 40, [FAULT_ROTATE] = 25,
    };
    struct dice dice;
    plan_init(plan);
    dice_init(&dice, seed, "plan");
    snprintf(plan->title, sizeof plan->title, "a federation drawn from seed %llu", (unsigned long long)seed);
    plan->seed = seed;
    plan->duration_us = CHAOS_S * AGENDA_S;
    plan->settle_us = SETTLE_S * AGENDA_S;
    plan->calms = true;
    plan->start_us = dice_magnitude(&dice, 10 * AGENDA_MS, 10 * AGENDA_S);
    plan->idle_us = 0;
    plan->load.publishers = (uint32_t)dice_below(&dice, 5);
    plan->load.subscribers = 1 + (uint32_t)dice_below(&dice, 5);
    plan->load.change_us = dice_magnitude(&dice, 100 * AGENDA_MS, 30 * AGENDA_S);
    plan->load.filter_size = dice_below(&dice, 3) == 0 ? (uint32_t)dice_below(&dice, 240) : 0;
    draw_weather(&dice, &plan->weather);
    draw_sites(&dice, plan);
    plan->bootstrap_count = 1 + (uint32_t)dice_below(&dice, 3);
    plan->drift_ppm = dice_below(&dice, 2) ? 50000 : 0;
    if (dice_below(&dice, 3) == 0) plan->limits.log_entries_max = 4 + (uint32_t)dice_below(&dice, 12);
    if (dice_below(&dice, 4) == 0) plan->limits.eager_members_max = 2;
    if (dice_below(&dice, 4) == 0) plan->limits.rows_max = 8 + (uint32_t)dice_below(&dice, 16);
    for (uint32_t kind = 0; kind < FAULT_COUNT; kind++)
        if (dice_below(&dice, 2)) plan->chaos_us[kind] = seldom_s[kind] * AGENDA_S;
}
