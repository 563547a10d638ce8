#include "daemon/turns.h"

#include <time.h>

#define NS_PER_MS 1000000u
#define SUSPENDED_MIN_MS 100u

const uint32_t turns_bucket_us[TURNS_BUCKETS] = {5000, 20000, 100000, 500000, 2000000, UINT32_MAX};

/* The loop took the time when it woke, and has not since. */
static void on_check(uv_check_t *check) {
    struct turns *turns = check->data;
    turns->woke_ms = uv_now(check->loop);
}

/* CLOCK_MONOTONIC stands still while the machine is suspended, CLOCK_BOOTTIME does not. */
static uint64_t suspended_ms(void) {
    struct timespec awake, all;
    if (clock_gettime(CLOCK_MONOTONIC, &awake) != 0 || clock_gettime(CLOCK_BOOTTIME, &all) != 0) return 0;
    const int64_t ms = (int64_t)(all.tv_sec - awake.tv_sec) * 1000 + (all.tv_nsec - awake.tv_nsec) / (int64_t)NS_PER_MS;
    return ms > 0 ? (uint64_t)ms : 0;
}

uint64_t turns_suspended_ms(struct turns *turns) {
    const uint64_t now_ms = suspended_ms(), before_ms = turns->suspended_ms;
    if (now_ms < before_ms + SUSPENDED_MIN_MS) return 0;
    turns->suspended_ms = now_ms;
    return now_ms - before_ms;
}

void turns_start(struct turns *turns, uv_loop_t *loop) {
    uv_check_init(loop, &turns->check);
    turns->check.data = turns;
    turns->suspended_ms = suspended_ms();
    uv_check_start(&turns->check, on_check);
    uv_unref((uv_handle_t *)&turns->check);
}

void turns_count(struct turns_counters *counters, uint64_t us) {
    size_t bucket = 0;
    while (bucket < TURNS_BUCKETS - 1 && us > turns_bucket_us[bucket])
        bucket++;
    counters->buckets[bucket]++;
    counters->count++;
    counters->us += us;
    if (us > counters->us_max) counters->us_max = us;
}

void turns_end(struct turns *turns) {
    const uint64_t now_ms = uv_hrtime() / NS_PER_MS;
    if (turns->woke_ms == 0) return;
    turns_count(&turns->counters, (now_ms > turns->woke_ms ? now_ms - turns->woke_ms : 0) * 1000);
}

void turns_close(struct turns *turns) {
    if (!uv_is_closing((uv_handle_t *)&turns->check)) uv_close((uv_handle_t *)&turns->check, NULL);
}
