#include "daemon/peer_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS 2000u /* after the start */
#define EVERY_MS 60000u

struct peer_cache {
    struct server *server;
    uv_timer_t timer;
    uv_work_t work; /* a disk may take its time: the loop does not wait for it */
    bool writing, dirty, closing, timer_closed;
    bool failed; /* said in the log when it begins and when it ends */
    char path[PATH_MAX];
    size_t count, loaded;
    struct gossip_address list[PEER_CACHE_MAX];
    /* What the thread writes, and how that went. */
    size_t written_count;
    struct gossip_address written[PEER_CACHE_MAX];
    int error;
};

size_t peer_cache_count(const struct peer_cache *cache) {
    return cache != NULL ? cache->loaded : 0;
}

static void release(struct peer_cache *cache) {
    if (cache->timer_closed && !cache->writing) free(cache);
}

static void on_work(uv_work_t *work) {
    struct peer_cache *cache = work->data;
    const bool good = peer_cache_save(cache->path, cache->written, cache->written_count) == PEER_CACHE_OK;
    cache->error = good ? 0 : errno;
}

static void write_it(struct peer_cache *cache);

static void on_written(uv_work_t *work, int status) {
    struct peer_cache *cache = work->data;
    const bool fails = status == 0 && cache->error != 0;
    cache->writing = false;
    cache->dirty = cache->dirty || fails;
    if (fails && !cache->failed)
        log_line(cache->server->log, LOG_LEVEL_WARNING, "peer_cache", "file", cache->path, "error",
                 strerror(cache->error), "text",
                 "the peers to start with next time cannot be kept: mend data_dir; tried again each minute", NULL);
    if (status == 0) cache->failed = fails;
    if (cache->dirty && !fails && cache->closing) write_it(cache);
    release(cache);
}

static void write_it(struct peer_cache *cache) {
    if (cache->writing) return;
    memcpy(cache->written, cache->list, sizeof(cache->list));
    cache->written_count = cache->count;
    cache->dirty = false;
    cache->writing = uv_queue_work(cache->server->loop, &cache->work, on_work, on_written) == 0;
    if (!cache->writing) cache->dirty = true;
}

static void look(struct peer_cache *cache) {
    struct gossip_address good[PEER_CACHE_MAX];
    const size_t count = gossip_good_peers(node_gossip(cache->server->node), good, PEER_CACHE_MAX);
    if (peer_cache_merge(cache->list, &cache->count, good, count)) cache->dirty = true;
    if (cache->dirty) write_it(cache);
}

static void on_timer(uv_timer_t *timer) {
    look(timer->data);
}

static void load(struct peer_cache *cache) {
    struct server *server = cache->server;
    const enum peer_cache_result result = peer_cache_load(cache->path, cache->list, &cache->count);
    cache->loaded = cache->count;
    if (result == PEER_CACHE_DAMAGED || result == PEER_CACHE_ERROR)
        log_line(server->log, LOG_LEVEL_WARNING, "peer_cache", "file", cache->path, "error",
                 result == PEER_CACHE_DAMAGED ? "it is damaged" : strerror(errno), "text",
                 "the peers of the last run are not used, and the file is written anew", NULL);
    if (cache->count == 0) return;
    gossip_set_remembered(node_gossip(server->node), server_now_ms(server), cache->list, cache->count);
    server_pump(server);
}

struct peer_cache *peer_cache_new(struct server *server) {
    struct peer_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) return NULL;
    cache->server = server;
    cache->work.data = cache;
    uv_timer_init(server->loop, &cache->timer);
    cache->timer.data = cache;
    const char *folder = server->config->data_dir;
    if (folder == NULL) return cache;
    if ((size_t)snprintf(cache->path, sizeof(cache->path), "%s/" PEER_CACHE_FILE, folder) >= sizeof(cache->path))
        return cache; /* nor could the store be opened there */
    load(cache);
    uv_timer_start(&cache->timer, on_timer, FIRST_MS, EVERY_MS);
    return cache;
}

static void on_timer_closed(uv_handle_t *handle) {
    struct peer_cache *cache = handle->data;
    cache->timer_closed = true;
    release(cache);
}

void peer_cache_close(struct peer_cache *cache) {
    if (cache == NULL || cache->closing) return;
    const bool active = uv_is_active((uv_handle_t *)&cache->timer) != 0;
    if (active) look(cache);
    cache->closing = true;
    uv_close((uv_handle_t *)&cache->timer, on_timer_closed);
}
