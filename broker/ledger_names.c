/* Apart from ledger.c, since the daemon needs them without the rest. */
#include "broker/peering.h"

const char *link_limit_name(enum link_at limit) {
    static const char *const names[LINK_AT_COUNT] = {
        [LINK_AT_QUEUE_BYTES] = "link_queue_bytes",  [LINK_AT_QUEUES_BYTES] = "link_queues_bytes",
        [LINK_AT_QUEUE_AGE] = "link_queue_age_h",    [LINK_AT_REPLAY_WINDOW] = "replay_window_ms",
        [LINK_AT_REPLAY_BYTES] = "replay_bytes_max", [LINK_AT_REPLAY_INVITES] = "replay_topics_max",
        [LINK_AT_FRAME_SIZE] = "frame_size_max",     [LINK_AT_MEMORY] = "memory",
    };
    return names[limit];
}

const char *given_up_name(enum given_up why) {
    static const char *const names[GIVEN_UP_COUNT] = {
        [GIVEN_UP_EXPIRED] = "expired", [GIVEN_UP_RESTARTED] = "restarted",   [GIVEN_UP_POLICY] = "policy",
        [GIVEN_UP_AWAY] = "away",       [GIVEN_UP_REASSIGNED] = "reassigned",
    };
    return names[why];
}
