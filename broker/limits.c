#include "broker/engine.h"
#include "broker/topic.h"

static void u32_default(uint32_t *value, uint32_t otherwise) {
    if (*value == 0) *value = otherwise;
}

static void u64_default(uint64_t *value, uint64_t otherwise) {
    if (*value == 0) *value = otherwise;
}

static void u64_at_most(uint64_t *value, uint64_t max) {
    if (*value > max) *value = max;
}

static void u32_at_most(uint32_t *value, uint32_t max) {
    if (*value > max) *value = max;
}

void limits_complete(struct broker_limits *limits) {
    u32_default(&limits->packet_size_max, 16u << 20);
    u64_default(&limits->partial_bytes_max, 256u << 20);
    u32_default(&limits->clients_max, 100000);
    u32_default(&limits->connecting_max, 10000);
    u32_default(&limits->sessions_max, 100000);
    u32_default(&limits->subscriptions_per_client, 1000);
    u32_default(&limits->inflight_max, 100);
    u32_default(&limits->queue_messages_max, 10000);
    u64_default(&limits->queue_bytes_max, 64u << 20);
    u64_default(&limits->queues_bytes_max, 1u << 30);
    u64_default(&limits->output_bytes_max, 4u << 20);
    u32_default(&limits->topic_alias_max, 32);
    u64_default(&limits->journal_bytes_max, 64u << 20);
    u32_default(&limits->topic_size_max, TOPIC_SIZE_MAX);
    u32_default(&limits->topic_levels_max, TOPIC_LEVELS_MAX);
    u32_default(&limits->sys_interval_s, 10);
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
    u64_default(&limits->link_queues_bytes, 256u << 20);
    u32_default(&limits->link_queue_age_h, 24);
    u32_default(&limits->link_frame_bytes, 64u << 10);
    u32_default(&limits->idle_links_max, 64);
    u32_default(&limits->link_idle_ms, 5000);
    u32_default(&limits->advert_idle_s, 3600);
    /* What is counted in 16 bits, and the largest packet MQTT can frame. */
    u32_at_most(&limits->inflight_max, UINT16_MAX);
    u32_at_most(&limits->topic_alias_max, UINT16_MAX);
    u32_at_most(&limits->topic_alias_out_max, UINT16_MAX);
    u32_at_most(&limits->topic_size_max, TOPIC_SIZE_MAX);
    u32_at_most(&limits->topic_levels_max, TOPIC_LEVELS_MAX);
    u32_at_most(&limits->publish_rate_max, 1000000000u);
    u32_at_most(&limits->keep_alive_max_s, UINT16_MAX);
    u32_at_most(&limits->packet_size_max, 268435455u + 5);
    u32_at_most(&limits->subscriptions_per_client, UINT16_MAX);
    /* More is as good as none, and sums with these cannot wrap. */
    u64_at_most(&limits->link_queue_bytes, UINT64_MAX / 4);
    u64_at_most(&limits->link_queues_bytes, UINT64_MAX / 4);
    u64_at_most(&limits->retained_bytes_max, UINT64_MAX / 4);
}

const char *broker_limit_name(enum broker_at limit) {
    static const char *const names[BROKER_AT_COUNT] = {
        [BROKER_AT_CLIENTS_MAX] = "clients_max",
        [BROKER_AT_CONNECTING_MAX] = "connecting_max",
        [BROKER_AT_CONNECT_TIMEOUT_MS] = "connect_timeout_ms",
        [BROKER_AT_SESSIONS_MAX] = "sessions_max",
        [BROKER_AT_SUBSCRIPTIONS] = "subscriptions_per_client",
        [BROKER_AT_PACKET_SIZE_MAX] = "packet_size_max",
        [BROKER_AT_PARTIAL_BYTES_MAX] = "partial_bytes_max",
        [BROKER_AT_INFLIGHT_MAX] = "inflight_max",
        [BROKER_AT_QUEUE_MESSAGES_MAX] = "queue_messages_max",
        [BROKER_AT_QUEUE_BYTES_MAX] = "queue_bytes_max",
        [BROKER_AT_QUEUES_BYTES_MAX] = "queues_bytes_max",
        [BROKER_AT_OUTPUT_BYTES_MAX] = "output_bytes_max",
        [BROKER_AT_TOPIC_ALIAS_MAX] = "topic_alias_max",
        [BROKER_AT_TOPIC_SIZE_MAX] = "topic_size_max",
        [BROKER_AT_TOPIC_LEVELS_MAX] = "topic_levels_max",
        [BROKER_AT_PUBLISH_RATE_MAX] = "publish_rate_max",
        [BROKER_AT_RETAINED_BYTES_MAX] = "retained_bytes_max",
        [BROKER_AT_RETAINED_MESSAGES_MAX] = "retained_messages_max",
        [BROKER_AT_JOURNAL_BYTES_MAX] = "journal_bytes_max",
        [BROKER_AT_MEMORY_BYTES_MAX] = "memory_bytes_max",
    };

    return names[limit];
}
