/* Tries every order of events in a small world (world.h), depth first, and checks each state that comes about: what is
 * shown is what the owner showed at some sequence (I1), which never falls (I2), so nothing deleted is shown (I3); and
 * from each state everybody agrees once messages flow.
 *
 *   model [--states N] [--seed N]     at most N states of each world with three replicas (4,000)
 *   model --from N                    the worlds from the Nth on, to go on with a search that was ended
 *
 * Worlds with one replica are searched to the end: since whatever was signed may come to anybody at any time, replicas
 * do not depend on one another, and one stands for all as to what may be shown. That they agree takes three; of those
 * worlds a part is looked at, from many places.
 * Ends with "N passed, N failed"; a fault is told with the events that lead to it.
 */
#include "tests/model/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 200
#define SEEN_ROOM (1u << 23)
#define OPEN_MAX 20000u

/* A state of which not all events have been tried. */
struct state {
    struct model model;
    int next, first, count; /* events: which one is next, where it began, how many there are */
    int depth;
    uint8_t path[DEPTH_MAX]; /* the events that led here */
};

struct search {
    const struct model_bounds *bounds;
    bool to_the_end;
    uint64_t *seen; /* open addressing; 0 is free */
    uint64_t states, repeats, random;
    int deepest;
    struct state **open;
    uint32_t open_count;
};

static uint32_t roll(struct search *search, uint32_t bound) {
    search->random = search->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((search->random >> 33) % bound);
}

/* False: it was there already. */
static bool note(struct search *search, uint64_t hash) {
    hash = hash ? hash : 1;
    size_t at = hash & (SEEN_ROOM - 1);
    while (search->seen[at] && search->seen[at] != hash)
        at = (at + 1) & (SEEN_ROOM - 1);
    if (search->seen[at] == hash) return false;
    search->seen[at] = hash;
    search->states++;
    return true;
}

static int count_events(const struct model *model) {
    int count = 0;
    for (;; count++) {
        char text[80];
        model_name(model, count, text);
        if (strcmp(text, "nothing") == 0) return count;
    }
}

static void state_free(struct state *state) {
    model_end(&state->model);
    free(state);
}

static void close_at(struct search *search, uint32_t which) {
    state_free(search->open[which]);
    search->open[which] = search->open[--search->open_count];
}

/* Begins with another event in each state, so that a search that is cut short has been everywhere. */
static void open_state(struct search *search, struct state *state) {
    state->count = count_events(&state->model);
    state->next = 0;
    state->first = state->count ? (int)roll(search, (uint32_t)state->count) : 0;
    search->deepest = state->depth > search->deepest ? state->depth : search->deepest;
    if (search->open_count == OPEN_MAX) close_at(search, roll(search, OPEN_MAX));
    search->open[search->open_count++] = state;
}

static void tell(const struct search *search, const char *fault, const struct state *state) {
    struct model model;
    printf("     %s, after:\n", fault);
    model_begin(&model, search->bounds);
    for (int i = 0; i < state->depth; i++) {
        char text[80];
        model_name(&model, state->path[i], text);
        model_do(&model, state->path[i]);
        printf("       %s\n", text);
    }
    model_end(&model);
}

static const char *look_at(const struct model *before, const struct model *after) {
    const char *fault = model_fault(before, after);
    if (fault) return fault;
    struct model flowing;
    model_copy(after, &flowing);
    fault = model_converge(&flowing);
    model_end(&flowing);
    return fault;
}

/* One event further, mostly from the newest state. */
static bool advance(struct search *search) {
    bool newest = search->to_the_end || roll(search, 4) != 0;
    uint32_t which = newest ? search->open_count - 1 : roll(search, search->open_count);
    struct state *state = search->open[which];
    if (state->next == state->count || state->depth == DEPTH_MAX) {
        close_at(search, which);
        return true;
    }
    int event = (state->next++ + state->first) % state->count;
    struct state *next = malloc(sizeof *next);
    model_copy(&state->model, &next->model);
    model_do(&next->model, event);
    if (!note(search, model_hash(&next->model))) {
        search->repeats++;
        state_free(next);
        return true;
    }
    next->depth = state->depth + 1;
    memcpy(next->path, state->path, (size_t)state->depth);
    next->path[state->depth] = (uint8_t)event;
    const char *fault = look_at(&state->model, &next->model);
    if (fault) tell(search, fault, next);
    open_state(search, next);
    return !fault;
}

static bool run(const char *name, const struct model_bounds *bounds, bool to_the_end, uint64_t states_max,
                uint64_t seed) {
    struct search search = {.bounds = bounds, .to_the_end = to_the_end, .random = seed};
    struct state *start = calloc(1, sizeof *start);
    bool ok = true;
    search.seen = calloc(SEEN_ROOM, sizeof *search.seen);
    search.open = malloc(OPEN_MAX * sizeof(struct state *));
    model_begin(&start->model, bounds);
    note(&search, model_hash(&start->model));
    open_state(&search, start);
    while (ok && search.open_count > 0 && (to_the_end || search.states < states_max))
        ok = advance(&search);
    printf("%s %-44s %-6s %8" PRIu64 " states, %9" PRIu64 " seen again, %3d deep%s\n", ok ? "ok  " : "FAIL", name,
           bounds->script, search.states, search.repeats, search.deepest,
           ok && search.open_count == 0 ? ", all there are" : "");
    fflush(stdout);
    while (search.open_count > 0)
        close_at(&search, search.open_count - 1);
    free(search.open);
    free(search.seen);
    return ok;
}

int main(int argc, char **argv) {
    static const char *const scripts[] = {"abAaB", "aAaAb", "abcAB"};
    static const struct {
        const char *name;
        struct model_bounds bounds; /* the script is put in */
        bool to_the_end;
    } worlds[] = {
        {"one replica, two checkpoints", {NULL, 1, 2, 0, 0, false}, true},
        {"one replica that crashes, one checkpoint", {NULL, 1, 1, 1, 0, false}, true},
        {"one replica, the owner loses its disk", {NULL, 1, 1, 0, 1, true}, true},
        {"three replicas", {NULL, 3, 2, 0, 0, false}, false},
        {"three replicas, and any of them crashes", {NULL, 3, 2, 2, 0, false}, false},
        {"three replicas, the owner restarts", {NULL, 3, 2, 1, 1, false}, false},
        {"three replicas, the owner loses its disk", {NULL, 3, 2, 1, 1, true}, false},
    };
    uint64_t states_max = 4000, seed = 1, from = 1, number = 0;
    unsigned passed = 0, failed = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--states") == 0) states_max = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--from") == 0) from = strtoull(argv[i + 1], NULL, 10);
    }
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        for (size_t j = 0; j < sizeof scripts / sizeof *scripts; j++) {
            struct model_bounds bounds = worlds[i].bounds;
            bounds.script = scripts[j];
            if (++number < from) continue;
            bool ok = run(worlds[i].name, &bounds, worlds[i].to_the_end, states_max, seed);
            passed += ok;
            failed += !ok;
        }
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
