#include "broker/session.h"

#include <stdlib.h>
#include <string.h>

/* Up to LIST_MAX ids are a list in ascending order. A client that leaves more open gets a bit for each id there is,
 * until none is open: so a packet never moves more than a short list. Both are an array of received_capacity words. */
enum { LIST_FIRST = 8, LIST_MAX = 256, WORD_BITS = 16, BIT_WORDS = (UINT16_MAX + 1) / WORD_BITS };

static bool is_list(const struct session *session) {
    return session->received_capacity != BIT_WORDS;
}

static void set_bit(uint16_t *words, uint16_t packet_id) {
    words[packet_id / WORD_BITS] |= (uint16_t)(1u << packet_id % WORD_BITS);
}

static bool has_bit(const uint16_t *words, uint32_t packet_id) {
    return words[packet_id / WORD_BITS] >> packet_id % WORD_BITS & 1;
}

/* Position of the id in the list, or where it belongs. */
static uint32_t position_of(const struct session *session, uint32_t packet_id) {
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

bool session_received_has(const struct session *session, uint16_t packet_id) {
    uint32_t position;

    if (!is_list(session)) return has_bit(session->received, packet_id);
    position = position_of(session, packet_id);
    return position < session->received_count && session->received[position] == packet_id;
}

static int grow_list(struct session *session) {
    uint32_t capacity = session->received_capacity ? session->received_capacity * 2 : LIST_FIRST;
    uint16_t *grown = realloc(session->received, capacity * sizeof *grown);

    if (grown == NULL) return -1;
    session->received = grown;
    session->received_capacity = capacity;
    return 0;
}

static int list_to_bits(struct session *session) {
    uint16_t *bits = calloc(BIT_WORDS, sizeof *bits);

    if (bits == NULL) return -1;
    for (uint32_t i = 0; i < session->received_count; i++)
        set_bit(bits, session->received[i]);
    free(session->received);
    session->received = bits;
    session->received_capacity = BIT_WORDS;
    return 0;
}

/* -1 when memory is short. */
static int make_room(struct session *session) {
    if (!is_list(session) || session->received_count < session->received_capacity) return 0;
    return session->received_count < LIST_MAX ? grow_list(session) : list_to_bits(session);
}

enum received_result session_received_add(struct session *session, uint16_t packet_id) {
    uint32_t position;

    if (session_received_has(session, packet_id)) return RECEIVED_AGAIN;
    if (make_room(session) != 0) return RECEIVED_NO_MEMORY;
    if (is_list(session)) {
        position = position_of(session, packet_id);
        memmove(session->received + position + 1, session->received + position,
                (session->received_count - position) * sizeof *session->received);
        session->received[position] = packet_id;
    } else {
        set_bit(session->received, packet_id);
    }
    session->received_count++;
    return RECEIVED_NEW;
}

bool session_received_remove(struct session *session, uint16_t packet_id) {
    uint32_t position;

    if (!session_received_has(session, packet_id)) return false;
    session->received_count--;
    if (is_list(session)) {
        position = position_of(session, packet_id);
        memmove(session->received + position, session->received + position + 1,
                (session->received_count - position) * sizeof *session->received);
    } else {
        session->received[packet_id / WORD_BITS] &= (uint16_t) ~(1u << packet_id % WORD_BITS);
    }
    if (session->received_count == 0) {
        free(session->received);
        session->received = NULL;
        session->received_capacity = 0;
    }
    return true;
}

uint16_t session_received_next(const struct session *session, uint16_t after) {
    uint32_t packet_id = after + 1u;

    if (is_list(session)) {
        uint32_t position = position_of(session, packet_id);
        return position < session->received_count ? session->received[position] : 0;
    }
    while (packet_id <= UINT16_MAX && !has_bit(session->received, packet_id))
        packet_id++;
    return packet_id <= UINT16_MAX ? (uint16_t)packet_id : 0;
}
