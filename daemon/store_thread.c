/* The thread that owns the file: it gathers what was given, commits it, and says so. */
#include "daemon/store_inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <uv.h>

#define NS_PER_MS UINT64_C(1000000)
#define RETRY_STOPPING_MS 100u
#define STOP_GRACE_MS 1000u
#define OFF_EVERY_MS 1000u                   /* STORE_SYNC_OFF: the longest wait of a record */
#define OFF_BATCH_BYTES (4u * 1024 * 1024)   /* and this much does not wait */
#define OFF_BEHIND_BYTES (64u * 1024 * 1024) /* more than this waiting is not called durable */
#define TRANSACTION_BYTES (1024u * 1024)     /* of journal, so that nobody waits long for others; one is never split */
#define TRANSACTION_JOURNALS 1024u

const uint32_t store_bucket_us[STORE_BUCKETS] = {500,   1000,   2500,   5000,    10000,
                                                 25000, 100000, 500000, 2000000, UINT32_MAX};

struct store_thread {
    struct store *store;
    void (*wake)(void *context);
    void *context;
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t changed; /* for the thread: something was given, or it is to stop */
    uv_cond_t ended_now;

    /* Under the mutex. */
    struct broker_journal *waiting;
    size_t waiting_count, waiting_capacity;
    uint64_t waiting_bytes, batch_bytes;
    uint64_t given, committed; /* numbers of records */
    uint64_t epoch, epoch_kept;
    uint64_t wall_ms;
    bool wall_asked;        /* the time is to be kept, whatever else is */
    uint64_t first_wait_ns; /* since when something waits */
    uint64_t stop_ns;       /* when to give up; 0: not stopping */
    uint64_t attempt_ns;    /* since when the disk is at work; 0: it is not */
    bool gap;               /* a journal was lost before those that wait */
    bool ended;
    struct store_state state;

    /* The thread's own. */
    struct broker_journal batch[TRANSACTION_JOURNALS];
    struct broker_span spans[TRANSACTION_JOURNALS];
    size_t batch_count;
    uint64_t written;  /* number of the last record in this file */
    bool awaits_reset; /* what comes is void until a RECORD_RESET */
};

static void free_journals(struct broker_journal *journals, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(journals[i].bytes);
}

static bool add_waiting(struct store_thread *thread, const struct broker_journal *journal) {
    if (thread->waiting_count == thread->waiting_capacity) {
        const size_t capacity = thread->waiting_capacity == 0 ? 64 : thread->waiting_capacity * 2;
        struct broker_journal *grown = realloc(thread->waiting, capacity * sizeof(*grown));
        if (grown == NULL) return false;
        thread->waiting = grown;
        thread->waiting_capacity = capacity;
    }
    thread->waiting[thread->waiting_count++] = *journal;
    thread->waiting_bytes += journal->size;
    return true;
}

/* The first ones become the batch, as many as make one transaction. */
static void take_batch(struct store_thread *thread) {
    size_t count = 0;
    uint64_t bytes = 0;
    while (count < thread->waiting_count && count < TRANSACTION_JOURNALS &&
           (count == 0 || bytes + thread->waiting[count].size <= TRANSACTION_BYTES))
        bytes += thread->waiting[count++].size;
    if (count > 0) memcpy(thread->batch, thread->waiting, count * sizeof(*thread->batch));
    thread->batch_count = count;
    thread->batch_bytes = bytes;
    thread->waiting_count -= count;
    thread->waiting_bytes -= bytes;
    if (thread->waiting_count > 0)
        memmove(thread->waiting, thread->waiting + count, thread->waiting_count * sizeof(*thread->waiting));
    if (thread->gap) thread->awaits_reset = true;
    thread->gap = false;
}

/* Whether something is to be kept that is no record. */
static bool has_numbers(const struct store_thread *thread) {
    return thread->epoch != thread->epoch_kept || thread->wall_asked;
}

/* ---- one attempt ---- */

/* After these the connection is as it was before the transaction; after others it is in doubt. */
static bool leaves_connection_sound(int result) {
    switch (result & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM: return true;
    default: return false;
    }
}

/* Not the disk's fault, and trying the same again is of no use: rows that contradict the records. */
static bool tells_of_loss(int result) {
    switch (result & 0xff) {
    case STORE_UNSOUND:
    case SQLITE_ERROR: /* no such table */
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
    case SQLITE_MISUSE: return true;
    default: return false;
    }
}

static void drop_batch(struct store_thread *thread) {
    free_journals(thread->batch, thread->batch_count);
    thread->batch_count = 0;
    uv_mutex_lock(&thread->mutex);
    thread->batch_bytes = 0;
    uv_mutex_unlock(&thread->mutex);
}

static void ask_for_all(struct store_thread *thread) {
    drop_batch(thread);
    thread->awaits_reset = true;
    uv_mutex_lock(&thread->mutex);
    thread->state.losses++;
    uv_mutex_unlock(&thread->mutex);
    thread->wake(thread->context);
}

static uint64_t batch_last(const struct store_thread *thread) {
    return thread->batch_count > 0 ? thread->batch[thread->batch_count - 1].last : 0;
}

/* The batch is on the disk. */
static void finish_batch(struct store_thread *thread) {
    const uint64_t last = batch_last(thread);
    if (last > 0) thread->written = last;
    uv_mutex_lock(&thread->mutex);
    if (last > thread->committed) thread->committed = last;
    uv_mutex_unlock(&thread->mutex);
    drop_batch(thread);
}

/* A fresh connection, to the file that was written before: another one, or one that somebody else has written to, has
 * to be filled anew. An fsync that failed may have left pages in the system's memory that never come to the disk; the
 * checkpoint writes them again. */
static bool reconnect(struct store_thread *thread, char error[STORE_ERROR_MAX]) {
    struct store_connection *connection = &thread->store->connection;
    uint64_t run = 0, applied = 0;
    if (connection->database != NULL) return true;
    if (!store_connect(thread->store, connection, error)) return false;
    int result = store_read_number(connection, "run", &run);
    if (result == SQLITE_OK) result = store_read_number(connection, "applied", &applied);
    if (result == SQLITE_OK) result = store_checkpoint(connection, SQLITE_CHECKPOINT_TRUNCATE);
    if (result != SQLITE_OK) {
        store_explain(thread->store, connection, result, error);
        store_disconnect(connection);
        return false;
    }
    if (run == thread->store->run && thread->batch_count > 0 && applied == batch_last(thread))
        finish_batch(thread); /* the commit in doubt was one */
    else if (run != thread->store->run || applied != thread->written)
        ask_for_all(thread);
    thread->written = applied;
    return true;
}

/* The batch as spans, from its last reset on if it has one; returns their number, 0 if none of it counts. */
static size_t cut_batch(struct store_thread *thread, const struct broker_span **spans) {
    size_t first = 0, offset = 0;
    for (size_t i = 0; i < thread->batch_count; i++)
        thread->spans[i] = (struct broker_span){thread->batch[i].bytes, thread->batch[i].size};
    if (store_find_reset(thread->spans, thread->batch_count, &first, &offset)) {
        thread->awaits_reset = false;
        thread->spans[first].bytes += offset;
        thread->spans[first].size -= offset;
    }
    *spans = thread->spans + first;
    if (!thread->awaits_reset) return thread->batch_count - first;
    drop_batch(thread);
    return 0;
}

static void count_commit(struct store_thread *thread, const struct store_applied *applied, uint64_t us) {
    struct store_state *state = &thread->state;
    size_t bucket = 0;
    while (us > store_bucket_us[bucket])
        bucket++;
    state->commits++;
    state->records += applied->records;
    state->records_saved += applied->saved;
    state->bytes += thread->batch_bytes;
    state->commit_us += us;
    if (us > state->commit_us_max) state->commit_us_max = us;
    state->commit_buckets[bucket]++;
    state->wal_bytes = (uint64_t)thread->store->connection.wal_pages * STORE_PAGE;
}

static int commit(struct store_thread *thread) {
    const struct broker_span *spans;
    const size_t count = cut_batch(thread, &spans);
    struct store_applied applied;
    struct store_numbers numbers = {.run = thread->store->run,
                                    .last = count > 0 ? batch_last(thread) : thread->written};
    uv_mutex_lock(&thread->mutex);
    numbers.epoch = thread->epoch;
    numbers.wall_ms = count > 0 ? thread->batch[thread->batch_count - 1].wall_ms : thread->wall_ms;
    const bool needed = count > 0 || has_numbers(thread);
    if (numbers.wall_ms == thread->wall_ms)
        thread->wall_asked = false; /* again with the next batch, should this fail */
    uv_mutex_unlock(&thread->mutex);
    if (!needed) return SQLITE_OK;
    const uint64_t begun_ns = uv_hrtime();
    const int result = store_apply(&thread->store->connection, spans, count, &numbers, &applied);
    if (result != SQLITE_OK) return result;
    uv_mutex_lock(&thread->mutex);
    count_commit(thread, &applied, (uv_hrtime() - begun_ns) / 1000);
    thread->epoch_kept = numbers.epoch;
    thread->state.failing = false;
    uv_mutex_unlock(&thread->mutex);
    finish_batch(thread);
    thread->wake(thread->context);
    return SQLITE_OK;
}

/* The write-ahead log may be what fills the disk: put into the file it leaves room for the next. */
static int commit_on_full_disk(struct store_thread *thread) {
    int result = commit(thread);
    if ((result & 0xff) == SQLITE_FULL &&
        store_checkpoint(&thread->store->connection, SQLITE_CHECKPOINT_TRUNCATE) == SQLITE_OK)
        result = commit(thread);
    return result;
}

/* More than is free must not stand in the log, as it may need as much again in the file. */
static bool log_is_large(const struct store_thread *thread) {
    struct statvfs disk;
    const uint64_t pages = (uint64_t)thread->store->connection.wal_pages;
    if (pages > STORE_WAL_PAGES) return true;
    return statvfs(thread->store->dir, &disk) == 0 && pages * STORE_PAGE > (uint64_t)disk.f_bavail * disk.f_frsize;
}

/* Somebody has put another file in its place, or none: what is written to the old one nobody will ever read. */
static bool has_moved(struct store_connection *connection) {
    int moved = 0;
    return sqlite3_file_control(connection->database, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

/* Does what is due: connection, batch, checkpoint. False and an error if one of them failed; to be called again then.
 */
static bool attempt(struct store_thread *thread, char error[STORE_ERROR_MAX]) {
    struct store_connection *connection = &thread->store->connection;
    if (connection->database != NULL && has_moved(connection)) store_disconnect(connection);
    if (!reconnect(thread, error)) return false;
    int result = commit_on_full_disk(thread);
    if (result == SQLITE_OK && log_is_large(thread)) result = store_checkpoint(connection, SQLITE_CHECKPOINT_PASSIVE);
    if (result == SQLITE_OK) return true;
    store_explain(thread->store, connection, result, error);
    if (!leaves_connection_sound(result)) store_disconnect(connection);
    if (tells_of_loss(result)) ask_for_all(thread);
    return false;
}

/* ---- the thread ---- */

static void tell_failing(struct store_thread *thread, const char *error) {
    uv_mutex_lock(&thread->mutex);
    thread->state.failures++;
    thread->state.failing = true;
    snprintf(thread->state.reason, sizeof(thread->state.reason), "%s", error);
    uv_mutex_unlock(&thread->mutex);
    thread->wake(thread->context);
}

static void tell_well(struct store_thread *thread) {
    uv_mutex_lock(&thread->mutex);
    thread->state.failing = false;
    uv_mutex_unlock(&thread->mutex);
    thread->wake(thread->context);
}

/* False when the time to stop is over. */
static bool wait_to_retry(struct store_thread *thread) {
    uv_mutex_lock(&thread->mutex);
    const uint64_t until_ns = uv_hrtime() + thread->store->retry_ms * NS_PER_MS;
    uint64_t now_ns;
    while (thread->stop_ns == 0 && (now_ns = uv_hrtime()) < until_ns)
        uv_cond_timedwait(&thread->changed, &thread->mutex, until_ns - now_ns);
    if (thread->stop_ns != 0) uv_cond_timedwait(&thread->changed, &thread->mutex, RETRY_STOPPING_MS * NS_PER_MS);
    const bool goes_on = thread->stop_ns == 0 || uv_hrtime() < thread->stop_ns;
    uv_mutex_unlock(&thread->mutex);
    return goes_on;
}

/* With STORE_SYNC_OFF nobody waits for a commit, so it may be a large one. */
static uint64_t wait_longer_ns(const struct store_thread *thread) {
    const uint64_t due_ns = thread->first_wait_ns + OFF_EVERY_MS * NS_PER_MS, now_ns = uv_hrtime();
    if (thread->store->sync != STORE_SYNC_OFF || thread->stop_ns != 0 || thread->waiting_bytes >= OFF_BATCH_BYTES ||
        thread->waiting_count == 0)
        return 0;
    return now_ns < due_ns ? due_ns - now_ns : 0;
}

/* Waits for work and takes it over; false when there is none and it is time to stop. */
static bool gather(struct store_thread *thread) {
    uint64_t longer_ns;
    uv_mutex_lock(&thread->mutex);
    while (thread->waiting_count == 0 && !has_numbers(thread) && thread->stop_ns == 0)
        uv_cond_wait(&thread->changed, &thread->mutex);
    while ((longer_ns = wait_longer_ns(thread)) > 0)
        uv_cond_timedwait(&thread->changed, &thread->mutex, longer_ns);
    const bool any = thread->waiting_count > 0 || has_numbers(thread);
    if (any) take_batch(thread);
    uv_mutex_unlock(&thread->mutex);
    return any;
}

static void set_attempt(struct store_thread *thread, uint64_t attempt_ns) {
    uv_mutex_lock(&thread->mutex);
    thread->attempt_ns = attempt_ns;
    uv_mutex_unlock(&thread->mutex);
}

static bool attempt_timed(struct store_thread *thread, char error[STORE_ERROR_MAX]) {
    const uint64_t begun_ns = uv_hrtime();
    set_attempt(thread, begun_ns);
    const bool good = attempt(thread, error);
    set_attempt(thread, 0);
    if (uv_hrtime() - begun_ns >= thread->store->hangs_ms * NS_PER_MS) thread->wake(thread->context);
    return good;
}

static void run(void *context) {
    struct store_thread *thread = context;
    char error[STORE_ERROR_MAX];
    bool goes_on = true, failing = false;
    while (goes_on && gather(thread)) {
        while (goes_on && !attempt_timed(thread, error)) {
            failing = true;
            tell_failing(thread, error);
            goes_on = wait_to_retry(thread);
        }
        if (goes_on && failing) {
            failing = false;
            tell_well(thread);
        }
    }
    if (goes_on && thread->store->connection.database != NULL)
        store_checkpoint(&thread->store->connection, SQLITE_CHECKPOINT_TRUNCATE);
    uv_mutex_lock(&thread->mutex);
    thread->ended = true;
    uv_cond_signal(&thread->ended_now);
    uv_mutex_unlock(&thread->mutex);
}

/* ---- the loop's side ---- */

bool store_start(struct store *store, void (*wake)(void *context), void *context, char error[STORE_ERROR_MAX]) {
    struct store_thread *thread = calloc(1, sizeof(*thread));
    assert(store->thread == NULL && store->run > 0);
    if (thread == NULL) {
        snprintf(error, STORE_ERROR_MAX, "memory is short: give the machine more");
        return false;
    }
    thread->store = store;
    thread->wake = wake;
    thread->context = context;
    thread->epoch = thread->epoch_kept = store->run;
    uv_mutex_init(&thread->mutex);
    uv_cond_init(&thread->changed);
    uv_cond_init(&thread->ended_now);
    store->thread = thread;
    if (uv_thread_create(&thread->thread, run, thread) == 0) return true;
    snprintf(error, STORE_ERROR_MAX,
             "the storage thread cannot be started: raise the limit of processes (ulimit -u) or of memory (ulimit -v)");
    thread->ended = true;
    store_thread_free(store);
    return false;
}

static void drop_waiting(struct store_thread *thread) {
    free_journals(thread->waiting, thread->waiting_count);
    thread->waiting_count = 0;
    thread->waiting_bytes = 0;
}

static bool begins_anew(const struct broker_journal *journal) {
    enum record_type type;
    return record_peek(journal->bytes, journal->size, &type) > 0 && type == RECORD_RESET;
}

void store_give(struct store *store, const struct broker_journal *journal) {
    struct store_thread *thread = store->thread;
    uv_mutex_lock(&thread->mutex);
    if (begins_anew(journal)) drop_waiting(thread); /* void, and as large as a slow disk has let it become */
    const bool first = thread->waiting_count == 0, kept = add_waiting(thread, journal);
    thread->given = journal->last;
    thread->wall_ms = journal->wall_ms;
    if (kept) {
        if (first) thread->first_wait_ns = uv_hrtime();
        if (first || thread->store->sync == STORE_SYNC_OFF) uv_cond_signal(&thread->changed);
    } else {
        free(journal->bytes);
        drop_waiting(thread);
        thread->gap = true;
        thread->state.losses++;
    }
    uv_mutex_unlock(&thread->mutex);
    if (!kept) thread->wake(thread->context);
}

void store_save_epoch(struct store *store, uint64_t epoch) {
    struct store_thread *thread = store->thread;
    uv_mutex_lock(&thread->mutex);
    if (epoch > thread->epoch) thread->epoch = epoch;
    uv_cond_signal(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
}

void store_save_wall(struct store *store, uint64_t wall_ms) {
    struct store_thread *thread = store->thread;
    uv_mutex_lock(&thread->mutex);
    thread->wall_ms = wall_ms;
    thread->wall_asked = true;
    uv_cond_signal(&thread->changed);
    uv_mutex_unlock(&thread->mutex);
}

/* A card or a network disk that hangs gives no error: calls just do not come back, for minutes or ever. */
static void tell_hanging(const struct store_thread *thread, struct store_state *state) {
    const uint64_t for_ms = thread->attempt_ns != 0 ? (uv_hrtime() - thread->attempt_ns) / NS_PER_MS : 0;
    if (for_ms < thread->store->hangs_ms || state->failing) return;
    state->failing = true;
    snprintf(state->reason, sizeof(state->reason),
             "data_dir %s: the disk has not answered for %u s: if that lasts, replace it, or write another data_dir",
             thread->store->dir, (unsigned)(for_ms / 1000));
}

void store_read_state(struct store *store, struct store_state *out) {
    struct store_thread *thread = store->thread;
    uv_mutex_lock(&thread->mutex);
    *out = thread->state;
    tell_hanging(thread, out);
    out->pending_bytes = thread->waiting_bytes + thread->batch_bytes;
    out->durable = thread->committed;
    if (store->sync == STORE_SYNC_OFF && !out->failing && out->pending_bytes <= OFF_BEHIND_BYTES)
        out->durable = thread->given;
    uv_mutex_unlock(&thread->mutex);
}

enum store_stopped store_stop(struct store *store, uint64_t max_ms) {
    struct store_thread *thread = store->thread;
    if (thread == NULL) return STORE_STOPPED_ALL;
    uv_mutex_lock(&thread->mutex);
    thread->stop_ns = uv_hrtime() + max_ms * NS_PER_MS;
    uv_cond_signal(&thread->changed);
    uint64_t now_ns;
    /* Longer than the thread itself waits: it may be slow to notice. */
    const uint64_t until_ns = thread->stop_ns + STOP_GRACE_MS * NS_PER_MS;
    while (!thread->ended && (now_ns = uv_hrtime()) < until_ns)
        uv_cond_timedwait(&thread->ended_now, &thread->mutex, until_ns - now_ns);
    store->abandoned = !thread->ended;
    const bool all = thread->ended && thread->committed == thread->given;
    uv_mutex_unlock(&thread->mutex);
    if (store->abandoned) return STORE_STOPPED_HANGING;
    uv_thread_join(&thread->thread);
    store_thread_free(store);
    return all ? STORE_STOPPED_ALL : STORE_STOPPED_SHORT;
}

void store_thread_free(struct store *store) {
    struct store_thread *thread = store->thread;
    if (thread == NULL) return;
    free_journals(thread->waiting, thread->waiting_count);
    free(thread->waiting);
    free_journals(thread->batch, thread->batch_count);
    uv_mutex_destroy(&thread->mutex);
    uv_cond_destroy(&thread->changed);
    uv_cond_destroy(&thread->ended_now);
    free(thread);
    store->thread = NULL;
}
