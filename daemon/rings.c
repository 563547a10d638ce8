#include "daemon/rings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ring_file.h"

enum fate { FATE_STAYS, FATE_REMOVED, FATE_REFUSED };

/* By what a file that is still being copied is told from one that is whole. */
struct seen {
    uint64_t inode, size;
    int64_t changed_ns;
};

struct rings {
    struct server *server;
    uv_timer_t timer;
    uv_work_t work; /* one at a time: it keeps the ring if that is due, and then looks into the inbox */
    bool working, closing, timer_closed;

    /* The ring to be kept. */
    bool owed, failing;
    uint64_t retry_ms;
    size_t size;
    char text[AUTH_SIGNED_RING_MAX + 1];

    /* Of the work: what it was given, and what it has found. */
    bool keep, kept;
    size_t keep_size;
    char keep_text[AUTH_SIGNED_RING_MAX + 1], error[RING_FILE_ERROR_MAX];
    size_t file_count;
    struct ring_inbox_file files[RING_INBOX_FILES_MAX];
    enum fate fates[RING_INBOX_FILES_MAX];
    size_t seen_count;
    struct seen seen[RING_INBOX_FILES_MAX];
};

/* ---- in the pool ---- */

static void settle(struct rings *rings, const char *data_dir) {
    for (size_t i = 0; i < rings->file_count; i++) {
        if (rings->fates[i] == FATE_REMOVED) ring_inbox_remove(data_dir, &rings->files[i]);
        if (rings->fates[i] == FATE_REFUSED) ring_inbox_refuse(data_dir, &rings->files[i]);
        rings->fates[i] = FATE_STAYS;
    }
}

static void work(uv_work_t *request) {
    struct rings *rings = request->data;
    const char *data_dir = rings->server->config->data_dir;
    if (rings->keep) rings->kept = ring_file_keep(data_dir, rings->keep_text, rings->keep_size, rings->error);
    settle(rings, data_dir);
    rings->file_count = ring_inbox_read(data_dir, rings->files);
}

/* ---- on the loop ---- */

static void begin(struct rings *rings);

static void on_kept(struct rings *rings) {
    struct server *server = rings->server;
    if (!rings->keep) return;
    if (rings->kept && rings->failing) log_text(server->log, LOG_LEVEL_INFO, "ring", "the key ring is kept now");
    if (!rings->kept && !rings->failing)
        log_text(server->log, LOG_LEVEL_ERROR, "ring",
                 "the key ring is used and not kept, so a restart would fetch it from another broker: %s",
                 rings->error);
    rings->failing = !rings->kept;
    if (rings->kept) return;
    rings->retry_ms = server_now_ms(server) + RINGS_RETRY_MS;
    rings->owed = true;
}

static bool has_settled(const struct rings *rings, const struct ring_inbox_file *file) {
    for (size_t i = 0; i < rings->seen_count; i++)
        if (rings->seen[i].inode == file->inode && rings->seen[i].size == file->size &&
            rings->seen[i].changed_ns == file->changed_ns)
            return true;
    return false;
}

static enum fate take(struct rings *rings, const struct ring_inbox_file *file) {
    struct server *server = rings->server;
    char reason[160] = "";
    size_t size = 0;
    const char *begins = file->read ? auth_signed_ring_in(file->text, strlen(file->text), &size) : NULL;
    if (begins == NULL) {
        log_text(server->log, LOG_LEVEL_WARNING, "ring",
                 "%s in the inbox is no key ring, and is put aside as %s%s: %s; hobnob key rotate makes one",
                 file->name, file->name, RING_INBOX_REFUSED, file->read ? "it holds something else" : file->error);
        return FATE_REFUSED;
    }
    switch (node_take_ring(server->node, server_now_ms(server), begins, size, reason)) {
    case GOSSIP_RING_TAKEN: return FATE_REMOVED;
    case GOSSIP_RING_HELD:
        log_text(server->log, LOG_LEVEL_INFO, "ring", "%s in the inbox is the key ring that is used already",
                 file->name);
        return FATE_REMOVED;
    case GOSSIP_RING_OLDER:
    case GOSSIP_RING_OUTDONE:
    case GOSSIP_RING_REFUSED: break;
    }
    log_text(server->log, LOG_LEVEL_WARNING, "ring", "%s in the inbox is not taken, and put aside as %s%s: %s",
             file->name, file->name, RING_INBOX_REFUSED, reason);
    return FATE_REFUSED;
}

static void look(struct rings *rings) {
    for (size_t i = 0; i < rings->file_count; i++)
        if (has_settled(rings, &rings->files[i])) rings->fates[i] = take(rings, &rings->files[i]);
    rings->seen_count = rings->file_count;
    for (size_t i = 0; i < rings->file_count; i++) {
        const struct ring_inbox_file *file = &rings->files[i];
        rings->seen[i] = (struct seen){file->inode, file->size, file->changed_ns};
        explicit_bzero(rings->files[i].text, sizeof(rings->files[i].text));
    }
}

static void release(struct rings *rings) {
    if (rings->working || !rings->timer_closed) return;
    explicit_bzero(rings, sizeof(*rings));
    free(rings);
}

static void on_worked(uv_work_t *request, int status) {
    struct rings *rings = request->data;
    rings->working = false;
    if (status == 0) on_kept(rings);
    if (status == 0 && !rings->closing) look(rings);
    if (rings->owed && !rings->failing) begin(rings); /* at the end of the daemon, too */
    release(rings);
}

static void begin(struct rings *rings) {
    if (rings->working) return;
    rings->keep = rings->owed && (!rings->failing || server_now_ms(rings->server) >= rings->retry_ms);
    if (rings->keep) {
        memcpy(rings->keep_text, rings->text, rings->size);
        rings->keep_size = rings->size;
        rings->owed = false;
    }
    rings->working = uv_queue_work(rings->server->loop, &rings->work, work, on_worked) == 0;
    if (!rings->working && rings->keep) rings->owed = true;
}

static void on_timer(uv_timer_t *timer) {
    begin(timer->data);
}

struct rings *rings_new(struct server *server) {
    struct rings *rings = calloc(1, sizeof(*rings));
    if (rings == NULL) return NULL;
    rings->server = server;
    rings->work.data = rings;
    uv_timer_init(server->loop, &rings->timer);
    rings->timer.data = rings;
    uv_timer_start(&rings->timer, on_timer, 0, RINGS_LOOK_MS);
    return rings;
}

void rings_save(struct rings *rings, const char *text, size_t size) {
    if (rings == NULL || rings->closing || size > AUTH_SIGNED_RING_MAX) return;
    memcpy(rings->text, text, size);
    rings->size = size;
    rings->owed = true;
    rings->retry_ms = 0;
    begin(rings);
}

enum gossip_ring_verdict rings_post(struct server *server, const char *text, size_t size, char *reason) {
    size_t ring_size = 0;
    const char *begins = auth_signed_ring_in(text, size, &ring_size);
    if (begins == NULL) {
        snprintf(reason, 160, "this is no key ring; hobnob key rotate makes one");
        return GOSSIP_RING_REFUSED;
    }
    return node_take_ring(server->node, server_now_ms(server), begins, ring_size, reason);
}

bool rings_failing(const struct rings *rings) {
    return rings != NULL && rings->failing;
}

static void on_timer_closed(uv_handle_t *handle) {
    struct rings *rings = handle->data;
    rings->timer_closed = true;
    release(rings);
}

void rings_close(struct rings *rings) {
    if (rings == NULL || rings->closing) return;
    rings->closing = true;
    uv_close((uv_handle_t *)&rings->timer, on_timer_closed);
}
