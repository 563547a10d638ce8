#include "daemon/storing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REMIND_MS 60000u /* between two lines while the store fails */
#define STOP_MAX_MS 5000u
#define WATCH_MS 1000u
#define WALL_EVERY_MS 600000u  /* how much later the clock may have been than the store knows */
#define CLOCK_BEHIND_MS 60000u /* worth a line */

struct storing {
    struct server *server;
    struct store *store;
    uv_async_t news;
    uv_timer_t watch; /* runs while something is under way: a disk that hangs brings no news */
    bool news_open, started, hangs;
    uint64_t durable; /* as the broker was told */
    uint64_t losses;  /* seen */
    bool failing;
    uint64_t failing_since_ms, reminded_ms;
    bool owes_all; /* the file has to be given everything once more, and memory was short for that */
    uint64_t loaded;
    uint64_t wall_saved_ms; /* server_now_ms() then */
};

/* ---- the start ---- */

static void set_error(const struct server *server, const char *text, char error[SERVER_ERROR_MAX]) {
    const struct config *config = server->config;
    if (config->file != NULL && config->data_dir_line != 0)
        snprintf(error, SERVER_ERROR_MAX, "%.300s:%d: %s", config->file, config->data_dir_line, text);
    else
        snprintf(error, SERVER_ERROR_MAX, "%s", text);
}

struct storing *storing_new(struct server *server, char error[SERVER_ERROR_MAX]) {
    char text[STORE_ERROR_MAX] = "memory is short: give the machine more";
    struct storing *storing = calloc(1, sizeof(*storing));
    if (storing != NULL) {
        storing->server = server;
        storing->store = store_open(server->config->data_dir, server->config->storage.sync, text);
        if (storing->store != NULL && store_raise_epoch(storing->store, &server->epoch, text)) return storing;
    }
    set_error(server, text, error);
    storing_free(storing);
    return NULL;
}

static void on_record(void *context, const struct record *record) {
    struct storing *storing = context;
    storing->loaded++;
    broker_restore(node_broker(storing->server->node), server_now_ms(storing->server), record);
}

/* A board without a battery starts in the past, where all that expires had longer to live. The time of the store is the
 * least that has passed. */
static bool load(struct storing *storing, uint64_t *first_number, char text[STORE_ERROR_MAX]) {
    struct server *server = storing->server;
    uint64_t wall_ms = 0;
    const uint64_t now_ms = server_now_ms(server), told_ms = (uint64_t)server->wall_told_ms;
    if (!store_read_wall(storing->store, &wall_ms, text)) return false;
    if (wall_ms > told_ms) broker_set_wall_offset(node_broker(server->node), (int64_t)(wall_ms - now_ms));
    if (wall_ms > told_ms + CLOCK_BEHIND_MS)
        log_text(server->log, LOG_LEVEL_WARNING, "clock",
                 "this host's clock is %" PRIu64
                 " s behind the last time that the store knows: for expiry intervals of "
                 "what was kept no time has passed since; set the clock (NTP, a battery)",
                 (wall_ms - told_ms) / 1000);
    return store_load(storing->store, on_record, storing, first_number, text);
}

/* From the storage thread. */
static void wake(void *context) {
    struct storing *storing = context;
    uv_async_send(&storing->news);
}

static void on_news(uv_async_t *async);
static void on_watch(uv_timer_t *watch);

bool storing_start(struct storing *storing, char error[SERVER_ERROR_MAX]) {
    if (storing == NULL) return true;
    struct server *server = storing->server;
    char text[STORE_ERROR_MAX];
    uint64_t first_number = 0;
    const uint64_t begun_ns = uv_hrtime();
    if (!load(storing, &first_number, text)) {
        set_error(server, text, error);
        return false;
    }
    if (!broker_restored(node_broker(server->node), server_now_ms(server), first_number)) {
        set_error(server, "memory is too short for what the store holds: give the machine more", error);
        return false;
    }
    node_set_wall(server->node, server_now_ms(server), server->wall_told_ms);
    storing->wall_saved_ms = server_now_ms(server);
    log_text(server->log, LOG_LEVEL_INFO, "store", "%" PRIu64 " records restored in %" PRIu64 " ms, sync %s",
             storing->loaded, (uv_hrtime() - begun_ns) / 1000000, store_sync_name(server->config->storage.sync));
    storing->news.data = storing;
    storing->watch.data = storing;
    storing->news_open =
        uv_async_init(server->loop, &storing->news, on_news) == 0 && uv_timer_init(server->loop, &storing->watch) == 0;
    storing->started = storing->news_open && store_start(storing->store, wake, storing, text);
    if (!storing->started) {
        set_error(server, storing->news_open ? text : "the event loop is out of resources", error);
        return false;
    }
    uv_unref((uv_handle_t *)&storing->news);
    uv_unref((uv_handle_t *)&storing->watch);
    return true;
}

/* ---- news of the thread ---- */

static void tell_change(struct storing *storing, const struct store_state *state) {
    struct server *server = storing->server;
    const uint64_t now_ms = server_now_ms(server);
    if (state->failing) {
        storing->failing_since_ms = storing->reminded_ms = now_ms;
        log_text(server->log, LOG_LEVEL_ERROR, "store",
                 "cannot write; publications of QoS 1 and 2 that it would have to keep are refused: %s", state->reason);
    } else {
        log_text(server->log, LOG_LEVEL_INFO, "store", "writes again, after %" PRIu64 " s",
                 (now_ms - storing->failing_since_ms) / 1000);
    }
    storing->failing = state->failing;
    broker_set_store_failing(node_broker(server->node), now_ms, state->failing);
}

static void remind(struct storing *storing, const struct store_state *state) {
    struct server *server = storing->server;
    const uint64_t now_ms = server_now_ms(server);
    if (!state->failing || now_ms - storing->reminded_ms < REMIND_MS) return;
    storing->reminded_ms = now_ms;
    log_text(server->log, LOG_LEVEL_ERROR, "store", "cannot write for %" PRIu64 " s now: %s",
             (now_ms - storing->failing_since_ms) / 1000, state->reason);
}

/* The file does not hold what it was given: it is given everything once more. */
static void give_all(struct storing *storing) {
    struct server *server = storing->server;
    storing->owes_all = !broker_restart_journal(node_broker(server->node), server_now_ms(server));
    if (storing->owes_all) return;
    log_text(server->log, LOG_LEVEL_WARNING, "store",
             "the file is not the one that was written to: all that the broker holds is written to it anew");
}

/* True if the broker was told of more durable records. */
static bool take_news(struct storing *storing) {
    struct store_state state;
    store_read_state(storing->store, &state);
    if (state.losses != storing->losses) give_all(storing);
    storing->losses = state.losses;
    if (state.failing != storing->failing) tell_change(storing, &state);
    remind(storing, &state);
    if (state.durable <= storing->durable) return false;
    storing->durable = state.durable;
    node_durable(storing->server->node, server_now_ms(storing->server), state.durable);
    return true;
}

static void on_news(uv_async_t *async) {
    struct storing *storing = async->data;
    take_news(storing);
    server_pump(storing->server);
}

static void on_watch(uv_timer_t *watch) {
    struct storing *storing = watch->data;
    struct store_state state;
    store_read_state(storing->store, &state);
    if (state.pending_bytes == 0 && !state.failing) uv_timer_stop(watch);
    take_news(storing);
    server_pump(storing->server);
}

/* ---- in operation ---- */

void storing_give(struct storing *storing, const struct broker_journal *journal) {
    if (!uv_is_active((uv_handle_t *)&storing->watch)) uv_timer_start(&storing->watch, on_watch, WATCH_MS, WATCH_MS);
    store_give(storing->store, journal);
}

void storing_save_epoch(struct storing *storing, uint64_t epoch) {
    if (storing != NULL) store_save_epoch(storing->store, epoch);
}

/* What expires in a broker that has nothing to write is to go on expiring when its host loses power and clock. */
static void save_wall(struct storing *storing) {
    const struct server *server = storing->server;
    store_save_wall(storing->store, (uint64_t)server->wall_told_ms);
    storing->wall_saved_ms = server_now_ms(server);
}

bool storing_turn(struct storing *storing) {
    if (storing == NULL) return false;
    if (storing->owes_all) give_all(storing);
    if (server_now_ms(storing->server) - storing->wall_saved_ms >= WALL_EVERY_MS) save_wall(storing);
    if (!node_store(storing->server->node)) return false;
    /* With sync off it is durable already. */
    return storing->server->config->storage.sync == STORE_SYNC_OFF && take_news(storing);
}

bool storing_serves(struct storing *storing, char reason[STORE_ERROR_MAX]) {
    struct store_state state;
    if (!storing_read_state(storing, &state) || !state.failing) return true;
    snprintf(reason, STORE_ERROR_MAX, "%s", state.reason);
    return false;
}

bool storing_read_state(struct storing *storing, struct store_state *out) {
    if (storing == NULL) return false;
    store_read_state(storing->store, out);
    return true;
}

/* ---- the end ---- */

void storing_stop(struct storing *storing) {
    if (storing == NULL || !storing->news_open) return;
    struct server *server = storing->server;
    if (storing->started) {
        node_store(server->node);
        save_wall(storing);
    }
    const enum store_stopped stopped = store_stop(storing->store, STOP_MAX_MS);
    if (stopped != STORE_STOPPED_ALL)
        log_text(server->log, LOG_LEVEL_ERROR, "store", "not all could be written in %u s%s", STOP_MAX_MS / 1000,
                 server->config->storage.sync == STORE_SYNC_OFF ? "" : "; what was not, was not acknowledged either");
    storing->hangs = stopped == STORE_STOPPED_HANGING;
    if (storing->hangs) return; /* its thread may still wake the loop */
    uv_close((uv_handle_t *)&storing->news, NULL);
    uv_close((uv_handle_t *)&storing->watch, NULL);
    uv_run(server->loop, UV_RUN_NOWAIT);
}

void storing_free(struct storing *storing) {
    if (storing == NULL || storing->hangs) return;
    store_close(storing->store);
    free(storing);
}
