#include "broker/session.h"

#include <stdlib.h>
#include <string.h>

/* Position of the id, or where it belongs. */
static uint32_t position_of(const struct session *session, uint16_t packet_id) {
    uint32_t low = 0, high = session->received_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (session->received[middle] < packet_id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct session *session, uint32_t position, uint16_t packet_id) {
    return position < session->received_count && session->received[position] == packet_id;
}

bool session_received_has(const struct session *session, uint16_t packet_id) {
    return is_at(session, position_of(session, packet_id), packet_id);
}

enum received_result session_received_add(struct session *session, uint16_t packet_id) {
    uint32_t position = position_of(session, packet_id);

    if (is_at(session, position, packet_id)) return RECEIVED_AGAIN;
    if (session->received_count == session->received_capacity) {
        uint32_t capacity = session->received_capacity ? session->received_capacity * 2 : 8;
        uint16_t *grown = realloc(session->received, capacity * sizeof *grown);
        if (grown == NULL) return RECEIVED_NO_MEMORY;
        session->received = grown;
        session->received_capacity = capacity;
    }
    memmove(session->received + position + 1, session->received + position,
            (session->received_count - position) * sizeof *session->received);
    session->received[position] = packet_id;
    session->received_count++;
    return RECEIVED_NEW;
}

bool session_received_remove(struct session *session, uint16_t packet_id) {
    uint32_t position = position_of(session, packet_id);

    if (!is_at(session, position, packet_id)) return false;
    session->received_count--;
    memmove(session->received + position, session->received + position + 1,
            (session->received_count - position) * sizeof *session->received);
    if (session->received_count == 0) {
        free(session->received);
        session->received = NULL;
        session->received_capacity = 0;
    }
    return true;
}
