/* What client.c (connection, wishes) and client_receive.c (what the broker sends) share. Not a door. */
#ifndef SIM_CLIENT_INSIDE_H
#define SIM_CLIENT_INSIDE_H

#include "tests/sim/client.h"
#include "tests/sim/packet.h"

#define CLIENT_FLIGHT_MAX 20u

enum wish_state { WISH_WAITING, WISH_ASKED, WISH_GRANTED, WISH_ENDING };

/* A subscription that the client wants, across connections. */
struct wish {
    size_t entry; /* in the journal */
    uint16_t packet_id;
    enum wish_state state;
};

/* A QoS 1 or 2 publication between first sending and last acknowledgement. */
struct flight {
    size_t publication;
    uint16_t packet_id;
    bool released; /* PUBREC came, PUBREL went */
};

struct sim_client {
    struct heap *heap;
    struct network *network;
    struct trace *trace;
    struct journal *journal;
    size_t number, host, broker_host;
    struct sim_client_options options;
    char *id;

    enum sim_client_state state;
    network_end end;
    uint64_t generation; /* of the connection; events of an older one do nothing */
    bool wants_connection, ping_unanswered;
    uint8_t *input;
    size_t input_size, input_room;

    uint16_t last_packet_id;
    struct wish *wishes;
    size_t wish_count, wish_room;
    size_t *queue; /* publications not yet sent */
    size_t queue_count, queue_room;
    struct flight flights[CLIENT_FLIGHT_MAX];
    size_t flight_count;
    uint8_t received[65536 / 8]; /* QoS 2 packet ids received and not released */

    uint64_t sessions, violations;
};

void sim_client_receive(struct sim_client *client, const uint8_t *bytes, size_t size);
/* The connection is over, whoever ended it. */
void sim_client_lost(struct sim_client *client);

void sim_client_send_packet(struct sim_client *client, struct packet *packet, enum packet_type type, uint8_t flags);
void sim_client_send_ack(struct sim_client *client, enum packet_type type, uint16_t packet_id);
void sim_client_send_publish(struct sim_client *client, const struct flight *flight, bool dup);
void sim_client_send_subscribe(struct sim_client *client, struct wish *wish);
void sim_client_send_unsubscribe(struct sim_client *client, struct wish *wish);
/* Sends what the queue holds and the flight limit allows. */
void sim_client_send_queue(struct sim_client *client);
uint16_t sim_client_next_packet_id(struct sim_client *client);
/* The journal's entry of this wish is over; another one begins, asked for now. */
void sim_client_renew_wish(struct sim_client *client, struct wish *wish);
void sim_client_end_entry(struct sim_client *client, const struct wish *wish);
void sim_client_remove_wish(struct sim_client *client, struct wish *wish);

#endif
