#include "broker/engine.h"

static void u32_default(uint32_t *value, uint32_t otherwise) {
    if (*value == 0) *value = otherwise;
}

static void u64_default(uint64_t *value, uint64_t otherwise) {
    if (*value == 0) *value = otherwise;
}

static void u32_at_most(uint32_t *value, uint32_t max) {
    if (*value > max) *value = max;
}

void limits_complete(struct broker_limits *limits) {
    u32_default(&limits->packet_size_max, 16u << 20);
    u32_default(&limits->clients_max, 100000);
    u32_default(&limits->sessions_max, 100000);
    u32_default(&limits->subscriptions_per_client, 1000);
    u32_default(&limits->inflight_max, 100);
    u32_default(&limits->queue_messages_max, 10000);
    u64_default(&limits->queue_bytes_max, 64u << 20);
    u64_default(&limits->output_bytes_max, 4u << 20);
    u32_default(&limits->topic_alias_max, 32);
    u64_default(&limits->journal_bytes_max, 64u << 20);
    u32_default(&limits->connect_timeout_ms, 10000);
    u32_default(&limits->session_expiry_max_s, 7 * 24 * 3600);
    u32_default(&limits->keep_alive_max_s, UINT16_MAX);
    u64_default(&limits->retained_bytes_max, 256u << 20);
    u32_default(&limits->retained_messages_max, 1000000);
    u32_default(&limits->subscribe_barrier_ms, 300);
    u32_default(&limits->replay_window_ms, 5000);
    u64_default(&limits->replay_bytes_max, 4u << 20);
    u32_default(&limits->leave_linger_ms, 5000);
    u32_default(&limits->peers_max, 1024);
    u64_default(&limits->link_queue_bytes, 64u << 20);
    u32_default(&limits->link_frame_bytes, 64u << 10);
    u32_default(&limits->link_idle_ms, 5000);
    u32_default(&limits->advert_idle_s, 3600);
    /* What is counted in 16 bits, and the largest packet MQTT can frame. */
    u32_at_most(&limits->inflight_max, UINT16_MAX);
    u32_at_most(&limits->topic_alias_max, UINT16_MAX);
    u32_at_most(&limits->keep_alive_max_s, UINT16_MAX);
    u32_at_most(&limits->packet_size_max, 268435455u + 5);
    u32_at_most(&limits->subscriptions_per_client, UINT16_MAX);
}
