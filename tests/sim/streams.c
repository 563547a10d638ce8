/* Streams: see network.h. A stream's direction is a queue of pieces of which the first is on its way; the others follow
 * in order. */
#include "tests/sim/network_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define RETRANSMIT_US 200000u /* the first wait after a loss; doubled up to the next */
#define RETRANSMIT_MAX_US 3200000u
#define GIVE_UP_US (900u * 1000u * 1000u) /* of standing still: what Linux does after 15 retries */
#define CONNECT_RETRY_US 1000000u

enum piece_kind { PIECE_OPEN, PIECE_BYTES, PIECE_END };

struct piece {
    struct piece *next;
    uint64_t at_us;
    enum piece_kind kind;
    bool final;
    size_t size;
    uint8_t bytes[];
};

struct direction {
    struct piece *first, *last;
    bool armed, blocked;
    uint64_t last_at_us, wait_us, still_us;
    size_t under_way;
};

struct stream {
    uint64_t number;
    size_t host[2]; /* 0 dialled 1 */
    uint16_t port;
    bool accepted, connected;
    bool over[2];                   /* no callback for this end any more */
    bool dark[2];                   /* it ended without a word */
    struct direction directions[2]; /* from end 0, from end 1 */
};

/* Every event of a stream names it by number: the stream may be over when it fires. */
struct stream_event {
    struct event event;
    struct network *network;
    uint64_t number;
    int side;
    struct gossip_address to;
};

static struct stream *find(const struct network *network, uint64_t number) {
    return number == 0 || number > network->stream_count ? NULL : network->streams[number - 1];
}

static network_end end_of(const struct stream *stream, int side) {
    return stream->number * 2 + (uint64_t)side;
}

static void push(struct network *network, const struct stream *stream, int side, uint64_t delay_us,
                 void (*fire)(struct event *), const struct gossip_address *to) {
    struct stream_event *event = calloc(1, sizeof *event);
    assert(event != NULL);
    event->event.fire = fire;
    event->network = network;
    event->number = stream->number;
    event->side = side;
    if (to != NULL) event->to = *to;
    heap_push(network->heap, &event->event, delay_us);
}

static uint64_t delay_us(struct network *network, const struct stream *stream) {
    return network_delay_us(network, &network->stream_dice, stream->host[0], stream->host[1]);
}

static const struct network_ports *ports_of(const struct network *network, const struct stream *stream, int side) {
    return &network->hosts[stream->host[side]].ports;
}

static void drop_pieces(struct direction *direction) {
    while (direction->first != NULL) {
        struct piece *piece = direction->first;
        direction->first = piece->next;
        free(piece);
    }
    direction->last = NULL;
    direction->under_way = 0;
    direction->last_at_us = 0;
}

static void free_stream(struct stream *stream) {
    drop_pieces(&stream->directions[0]);
    drop_pieces(&stream->directions[1]);
    free(stream);
}

static void release_if_over(struct network *network, struct stream *stream) {
    if (!stream->over[0] || !stream->over[1] || stream->directions[0].first != NULL ||
        stream->directions[1].first != NULL)
        return;
    network->streams[stream->number - 1] = NULL;
    free_stream(stream);
}

static void on_delivery(struct event *event);

static void arm(struct network *network, struct stream *stream, int side) {
    struct direction *direction = &stream->directions[side];
    if (direction->armed || direction->first == NULL) return;
    uint64_t now = heap_now_us(network->heap), at = direction->first->at_us;
    direction->armed = true;
    push(network, stream, side, (at > now ? at - now : 0) + direction->wait_us, on_delivery, NULL);
}

static void add_piece(struct network *network, struct stream *stream, int side, enum piece_kind kind,
                      const uint8_t *bytes, size_t size, bool final) {
    struct direction *direction = &stream->directions[side];
    struct piece *piece = calloc(1, sizeof *piece + size);
    assert(piece != NULL);
    piece->kind = kind;
    piece->final = final;
    piece->size = size;
    if (size != 0) memcpy(piece->bytes, bytes, size);
    uint64_t at = heap_now_us(network->heap) + delay_us(network, stream);
    if (dice_ppm(&network->stream_dice, network->weather.loss_ppm)) at += RETRANSMIT_US;
    if (at < direction->last_at_us) at = direction->last_at_us;
    if (network->weather.bytes_per_ms != 0) at += (uint64_t)size * 1000 / network->weather.bytes_per_ms;
    piece->at_us = direction->last_at_us = at;
    direction->under_way += size;
    if (direction->last != NULL)
        direction->last->next = piece;
    else
        direction->first = piece;
    direction->last = piece;
    arm(network, stream, side);
}

/* The far end of this side learns that it is over, without what was under way to it. */
static void break_off(struct network *network, struct stream *stream, int side) {
    drop_pieces(&stream->directions[side]);
    add_piece(network, stream, side, PIECE_END, NULL, 0, true);
}

/* True if this end's process is paused: the event comes again when it runs. */
static bool wait_while_paused(struct network *network, const struct stream *stream, int side, struct event *event) {
    uint64_t paused_us = stream == NULL ? 0 : network_paused_us(network, stream->host[side]);
    if (paused_us != 0) heap_push(network->heap, event, paused_us);
    return paused_us != 0;
}

static void on_writable_again(struct event *event) {
    struct stream_event *again = (struct stream_event *)event;
    struct network *network = again->network;
    struct stream *stream = find(network, again->number);
    if (wait_while_paused(network, stream, again->side, event)) return;
    if (stream != NULL && !stream->over[again->side]) {
        const struct network_ports *ports = ports_of(network, stream, again->side);
        ports->on_writable(ports->context, end_of(stream, again->side));
    }
    free(again);
}

static void end_side(struct network *network, struct stream *stream, int side) {
    if (stream->over[side]) return;
    stream->over[side] = true;
    if ((side == 0 || stream->accepted) && network->hosts[stream->host[side]].power == NETWORK_UP) {
        const struct network_ports *ports = ports_of(network, stream, side);
        ports->on_closed(ports->context, end_of(stream, side));
    }
}

static bool stands_still(const struct network *network, const struct stream *stream, int from) {
    size_t sender = stream->host[from], receiver = stream->host[1 - from];
    return network_is_cut(network, sender, receiver) || network_is_cut(network, receiver, sender) ||
           network->hosts[receiver].power == NETWORK_DARK || network->hosts[sender].power == NETWORK_DARK;
}

static void stand_still(struct network *network, struct stream *stream, int side) {
    struct direction *direction = &stream->directions[side];
    direction->wait_us = direction->wait_us == 0 ? RETRANSMIT_US : direction->wait_us * 2;
    if (direction->wait_us > RETRANSMIT_MAX_US) direction->wait_us = RETRANSMIT_MAX_US;
    direction->still_us += direction->wait_us;
    if (direction->still_us > GIVE_UP_US) {
        drop_pieces(direction);
        end_side(network, stream, side);
        stream->over[1 - side] = stream->over[1 - side] || stream->dark[1 - side];
        return;
    }
    arm(network, stream, side);
}

static void hand_over(struct network *network, struct stream *stream, int to, const struct piece *piece) {
    const struct network_ports *ports = ports_of(network, stream, to);
    if (stream->dark[to]) { /* the host is back and knows nothing of this stream */
        drop_pieces(&stream->directions[1 - to]);
        if (!stream->over[1 - to]) break_off(network, stream, to);
    } else if (piece->kind == PIECE_END) {
        end_side(network, stream, to);
    } else if (stream->over[to]) { /* the far end may not know it: after standing still it was given up here */
        if (!stream->over[1 - to] && stream->directions[to].first == NULL) break_off(network, stream, to);
    } else if (piece->kind == PIECE_OPEN) {
        stream->connected = true;
        ports->on_connected(ports->context, end_of(stream, to), stream->host[1 - to]);
    } else {
        network->counters.stream_bytes += piece->size;
        ports->on_bytes(ports->context, end_of(stream, to), piece->bytes, piece->size, piece->final);
    }
}

static void deliver(struct network *network, struct stream *stream, int side) {
    struct direction *direction = &stream->directions[side];
    direction->armed = false;
    if (direction->first == NULL) return;
    if (stands_still(network, stream, side)) {
        stand_still(network, stream, side);
        return;
    }
    direction->wait_us = direction->still_us = 0;
    if (direction->first->at_us > heap_now_us(network->heap)) { /* what this delivery was for is gone */
        arm(network, stream, side);
        return;
    }
    struct piece *piece = direction->first;
    direction->first = piece->next;
    if (direction->first == NULL) direction->last = NULL;
    direction->under_way -= piece->size;
    hand_over(network, stream, 1 - side, piece);
    free(piece);
    if (direction->blocked && direction->under_way < network->weather.window_bytes) {
        direction->blocked = false;
        push(network, stream, side, delay_us(network, stream), on_writable_again, NULL);
    }
    arm(network, stream, side);
}

static void on_delivery(struct event *event) {
    struct stream_event *delivery = (struct stream_event *)event;
    struct stream *stream = find(delivery->network, delivery->number);
    if (wait_while_paused(delivery->network, stream, 1 - delivery->side, event)) return;
    if (stream != NULL) {
        deliver(delivery->network, stream, delivery->side);
        release_if_over(delivery->network, stream);
    }
    free(delivery);
}

/* ---- connecting ---- */

static void on_handshake(struct event *event);

static void refuse(struct network *network, struct stream *stream) {
    network->counters.refused++;
    stream->over[1] = true;
    add_piece(network, stream, 1, PIECE_END, NULL, 0, true);
}

/* The first packet is at the host, or (done) the whole handshake is over there. */
static void knock(struct network *network, struct stream *stream, const struct gossip_address *to, bool done) {
    size_t from = stream->host[0], host = network_host_at(network, to);
    if (host == SIZE_MAX || network->hosts[host].power == NETWORK_DARK || network_is_cut(network, from, host) ||
        network_is_cut(network, host, from)) {
        push(network, stream, done, CONNECT_RETRY_US, on_handshake, to); /* until the dialler's time is over */
        return;
    }
    stream->host[1] = host;
    if (network->hosts[host].power != NETWORK_UP) {
        refuse(network, stream);
    } else if (!done) {
        push(network, stream, 1, 4 * delay_us(network, stream), on_handshake, to);
    } else {
        const struct network_ports *ports = ports_of(network, stream, 1);
        stream->accepted = true;
        add_piece(network, stream, 1, PIECE_OPEN, NULL, 0, true); /* before anything that on_accept sends */
        if (!ports->on_accept(ports->context, end_of(stream, 1), to->port, from)) {
            drop_pieces(&stream->directions[1]);
            refuse(network, stream);
        }
    }
}

static void on_handshake(struct event *event) {
    struct stream_event *step = (struct stream_event *)event;
    struct stream *stream = find(step->network, step->number);
    if (wait_while_paused(step->network, stream, 1, event)) return;
    if (stream != NULL && !stream->over[0] && !stream->over[1])
        knock(step->network, stream, &step->to, step->side == 1);
    free(step);
}

static void on_timeout(struct event *event) {
    struct stream_event *timeout = (struct stream_event *)event;
    struct network *network = timeout->network;
    struct stream *stream = find(network, timeout->number);
    if (wait_while_paused(network, stream, 0, event)) return;
    if (stream != NULL && !stream->connected) {
        end_side(network, stream, 0);
        if (stream->accepted)
            break_off(network, stream, 0);
        else
            stream->over[1] = true;
        release_if_over(network, stream);
    }
    free(timeout);
}

network_end network_dial(struct network *network, size_t from, const struct gossip_address *to, uint64_t timeout_us) {
    if (network->stream_count == network->stream_room) {
        network->stream_room = network->stream_room == 0 ? 64 : network->stream_room * 2;
        network->streams = realloc(network->streams, network->stream_room * sizeof(struct stream *));
        assert(network->streams != NULL);
    }
    struct stream *stream = calloc(1, sizeof *stream);
    assert(stream != NULL);
    network->streams[network->stream_count++] = stream;
    network->counters.streams++;
    stream->number = network->stream_count;
    stream->host[0] = stream->host[1] = from;
    stream->port = to->port;
    size_t host = network_host_at(network, to);
    if (host != SIZE_MAX) stream->host[1] = host;
    push(network, stream, 0, delay_us(network, stream), on_handshake, to);
    push(network, stream, 0, timeout_us, on_timeout, NULL);
    return end_of(stream, 0);
}

/* ---- using ---- */

bool network_writable(const struct network *network, network_end end) {
    const struct stream *stream = find(network, end / 2);
    return stream != NULL && !stream->over[end % 2] &&
           stream->directions[end % 2].under_way < network->weather.window_bytes;
}

void network_send(struct network *network, network_end end, const uint8_t *bytes, size_t size) {
    struct stream *stream = find(network, end / 2);
    int side = (int)(end % 2);
    if (stream == NULL || stream->over[side]) return;
    assert(side == 1 ? stream->accepted : stream->connected);
    size_t most = network->weather.piece_bytes;
    for (size_t at = 0;;) {
        size_t take = size - at;
        if (most != 0 && take > 1) {
            size_t piece = 1 + (size_t)dice_below(&network->stream_dice, most);
            take = piece < take ? piece : take;
        }
        add_piece(network, stream, side, PIECE_BYTES, bytes + at, take, at + take == size);
        at += take;
        if (at == size) break;
    }
    if (stream->directions[side].under_way >= network->weather.window_bytes) stream->directions[side].blocked = true;
}

void network_close(struct network *network, network_end end) {
    struct stream *stream = find(network, end / 2);
    int side = (int)(end % 2);
    if (stream == NULL || stream->over[side]) return;
    stream->over[side] = true;
    if (side == 0 && !stream->accepted) stream->over[1] = true;
    add_piece(network, stream, side, PIECE_END, NULL, 0, true);
}

void network_reset(struct network *network, size_t a, size_t b) {
    for (size_t i = 0; i < network->stream_count; i++) {
        struct stream *stream = network->streams[i];
        if (stream == NULL || !stream->accepted) continue;
        if ((stream->host[0] == a && stream->host[1] == b) || (stream->host[0] == b && stream->host[1] == a)) {
            break_off(network, stream, 0);
            break_off(network, stream, 1);
        }
    }
}

void streams_host_down(struct network *network, size_t host, enum network_power power) {
    for (size_t i = 0; i < network->stream_count; i++) {
        struct stream *stream = network->streams[i];
        for (int side = 0; stream != NULL && side < 2; side++) {
            if (stream->host[side] != host || stream->over[side] || (side == 1 && !stream->accepted)) continue;
            stream->over[side] = true;
            stream->over[1] = stream->over[1] || !stream->accepted;
            stream->dark[side] = power == NETWORK_DARK;
            if (power == NETWORK_DARK)
                drop_pieces(&stream->directions[side]);
            else if (dice_ppm(&network->stream_dice, 500000))
                break_off(network, stream, side); /* unread input makes the kernel reset the connection */
            else
                add_piece(network, stream, side, PIECE_END, NULL, 0, true);
        }
    }
}

void streams_free(struct network *network) {
    for (size_t i = 0; i < network->stream_count; i++) {
        if (network->streams[i] != NULL) free_stream(network->streams[i]);
    }
    free(network->streams);
}
