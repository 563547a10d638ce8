/* A virtual network: datagrams that get lost, late, doubled and out of order, and streams that keep order or break.
 *
 * Hosts have one IPv4 address each. A stream is what TCP (under TLS and WebSocket, or under MQTT) gives: ordered
 * pieces, a bounded number of bytes under way, an end that the far side learns about. Loss makes a stream late; a cut
 * path makes it stand still.
 *
 * Callbacks come from heap_step() only, never from within a call of this header, so a caller is never re-entered.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "gossip/gossip.h"
#include "tests/sim/dice.h"
#include "tests/sim/heap.h"

struct network;

/* One end of a stream. Never reused; an end that is over is accepted everywhere and does nothing. 0 is none. */
typedef uint64_t network_end;

/* What every path is like. Times in microseconds. */
struct network_weather {
    uint32_t delay_us, jitter_us;     /* one way: delay plus up to jitter, so datagrams overtake each other */
    uint32_t loss_ppm, duplicate_ppm; /* of datagrams; a stream's piece is late by a retransmission instead of lost */
    uint32_t late_ppm, late_us;       /* some datagrams come this much later: reordering beyond the jitter */
    uint32_t window_bytes;            /* under way in one direction of a stream */
    uint32_t bytes_per_ms;            /* of one direction of a stream; 0 is endless */
    uint32_t piece_bytes;             /* a stream's messages arrive in random pieces of up to this; 0: whole */
};

struct network_ports {
    void *context;
    void (*on_datagram)(void *context, uint16_t port, const struct gossip_address *from, const uint8_t *bytes,
                        size_t size);
    /* Someone connected to this port; false refuses. */
    bool (*on_accept)(void *context, network_end end, uint16_t port, size_t from_host);
    void (*on_connected)(void *context, network_end end, size_t to_host);
    /* final: the last piece of what one network_send() took. */
    void (*on_bytes)(void *context, network_end end, const uint8_t *bytes, size_t size, bool final);
    void (*on_writable)(void *context, network_end end); /* after network_writable() was false */
    void (*on_closed)(void *context,
                      network_end end); /* by the far side, refused, timed out or reset: the end is over */
};

enum network_power {
    NETWORK_UP,
    NETWORK_DOWN, /* the process is gone, its host still answers: connections are refused and reset */
    NETWORK_DARK  /* the host is gone: nothing answers */
};

struct network_counters {
    uint64_t datagrams, datagram_bytes, lost, doubled, streams, stream_bytes, refused;
};

struct network *network_new(struct heap *heap, uint64_t seed);
void network_free(struct network *network);
void network_set_weather(struct network *network, const struct network_weather *weather);

/* A new host, up, at 10.x.y.z. ports are copied. */
size_t network_add_host(struct network *network, const struct network_ports *ports);
/* Gives the host an address that nobody had before. */
void network_move_host(struct network *network, size_t host);
struct gossip_address network_address(const struct network *network, size_t host, uint16_t port);
/* Going down ends all its streams: DOWN tells the far ends, DARK does not (they find out when the host answers again).
 * No callback comes to a host that is not up. */
void network_set_power(struct network *network, size_t host, enum network_power power);

/* The process does not run for so long (a debugger, a suspended machine, a full CPU): what arrives waits, all at once
 * afterwards. */
void network_pause(struct network *network, size_t host, uint64_t for_us);
/* How long it will still be paused, 0 if it runs. For the timers of whoever runs on the host. */
uint64_t network_paused_us(const struct network *network, size_t host);

/* What is sent from one host no longer reaches the other (one way). */
void network_cut(struct network *network, size_t from, size_t to, bool cut);
/* Datagrams from one host no longer reach the other (one way); streams do. network_heal() does not change it. */
void network_block(struct network *network, size_t from, size_t to, bool blocked);
/* Everything between the two takes this much longer, each way. */
void network_lengthen(struct network *network, size_t a, size_t b, uint32_t extra_us);
void network_heal(struct network *network); /* no path is cut */
/* All streams between the two break at once, what is under way in them is lost. */
void network_reset(struct network *network, size_t a, size_t b);

void network_datagram(struct network *network, size_t from, uint16_t from_port, const struct gossip_address *to,
                      const uint8_t *bytes, size_t size);

/* TCP, TLS and the upgrade take three round trips. on_connected or on_closed follows, on_closed after timeout_us at the
 * latest. */
network_end network_dial(struct network *network, size_t from, const struct gossip_address *to, uint64_t timeout_us);
bool network_writable(const struct network *network, network_end end);
/* Takes all of it (copied), whatever the window. */
void network_send(struct network *network, network_end end, const uint8_t *bytes, size_t size);
/* Ends it in order: what was sent still arrives. No callback for this end comes any more. */
void network_close(struct network *network, network_end end);

void network_read_counters(const struct network *network, struct network_counters *out);

#endif
