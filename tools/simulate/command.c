/* hobnob simulate: a federation on a virtual network, before it is built. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/commands.h"
#include "tools/complain.h"
#include "tools/simulate/world.h"
#include "tools/simulate/plan_draw.h"

static void show(void *c, const struct world *w) {
    struct network_counters n;
    (void)c;
    network_read_counters(w->network, &n);
    fprintf(stderr, "%f s, %llu events, %llu datagrams %llu polls pending %zu\n", (double)w->agenda.now_us / 1e6,
            (unsigned long long)w->events, (unsigned long long)n.datagrams, (unsigned long long)w->polls,
            w->agenda.count);
}

int command_simulate(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "draw") == 0) {
        int bad = 0;
        for (int seed = atoi(argv[2]); seed < atoi(argv[2]) + atoi(argv[3]); seed++) {
            struct plan plan;
            plan_draw(&plan, (uint64_t)seed);
            struct world *world = world_new(&plan, NULL, argc > 4 ? fopen(argv[4], "w") : NULL, SABOTAGE_NONE);
            world->trace_datagrams = getenv("DATAGRAMS");
            if (!world_run(world, getenv("PROGRESS") ? show : NULL, NULL)) {
                bad++;
                printf("seed %d: %s\n", seed, world->why);
                fflush(stdout);
            }
            if (argc > 4 || getenv("SHOW"))
                printf("%d events %llu settled %.1f s faults %llu\n", seed, (unsigned long long)world->events,
                       (double)measure_result(world->measure)->settled_us / 1e6,
                       (unsigned long long)measure_result(world->measure)->faults);
            world_free(world);
            plan_free(&plan);
        }
        printf("%d bad\n", bad);
        return bad > 0;
    }
    struct plan plan;
    plan_init(&plan);
    plan.load.change_us = 60 * AGENDA_S;
    plan.idle_us = 15 * AGENDA_S;
    plan_spread(&plan, argc > 1 ? (uint32_t)atoi(argv[1]) : 8);
    if (argc > 2) plan.weather.loss = atof(argv[2]);
    if (argc > 3) plan.duration_us = (uint64_t)atoi(argv[3]) * AGENDA_S;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    struct world *world = world_new(&plan, NULL, argc > 4 ? fopen(argv[4], "w") : NULL, SABOTAGE_NONE);
    bool good = world_run(world, NULL, NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    struct result *r = measure_result(world->measure);
    printf("good %d %s\n formed %.1f events %lu datagrams %lu hash %lx\n know p50 %.3f p99 %.3f last p50 %.3f max %.3f "
           "changes %lu inc %lu\n idle %.0f B/s %.1f dg/s steady %.0f B/s\n per member %.0f B\n wall %.2f s sim %.1f s "
           "false %lu susp %lu\n",
           good, world->why, (double)r->formed_us / 1e6, r->events, r->datagrams, r->trace_hash,
           (double)tally_at(&r->know, .5) / 1e6, (double)tally_at(&r->know, .99) / 1e6,
           (double)tally_at(&r->know_last, .5) / 1e6, (double)r->know_last.max / 1e6, r->changes, r->changes_incomplete,
           r->idle_bytes_per_s, r->idle_datagrams_per_s, r->steady_bytes_per_s, r->bytes_per_member,
           (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9, (double)r->simulated_us / 1e6,
           r->false_deaths, r->suspicions);
    world_free(world);
    return good ? EXIT_GOOD : EXIT_NO;
}
