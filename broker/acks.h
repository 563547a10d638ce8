/* Inside broker/: packets that must not go to a client before records are on the disk.
 *
 * Each kind is a queue of its own: PUBACKs go in the order of their PUBLISHs, PUBRECs too, PUBRELs in the order of
 * their PUBRECs (MQTT-4.6.0-2 to -4). A packet that need not wait goes straight into the output. A client has a struct
 * acks only while something of it waits.
 */
#ifndef BROKER_ACKS_H
#define BROKER_ACKS_H

#include "broker/client.h"

enum ack_kind {
    ACK_PUBACK,
    ACK_PUBREC,
    ACK_PUBREL,
    ACK_PUBCOMP,
    ACK_FREE, /* keeps no order, and does not wait for a store that fails: CONNACK, UNSUBACK */
};
#define ACK_KINDS (ACK_FREE + 1)

struct acks {
    struct timer
        wait; /* first: the timer of an acks is the acks. In broker.waiting, by record number instead of time */
    struct client *client;
    uint32_t held[ACK_KINDS];
    uint8_t *bytes; /* packets, each behind its head */
    size_t size, capacity;
};

/* Sends the packet once the record of this number is durable and those of its kind before it have gone; 0: no record.
 * The client is doomed when memory is short. */
void acks_send(struct broker *broker, struct client *client, enum ack_kind kind, const void *packet, size_t size,
               uint64_t record);
/* The CONNACK of success. Until it has gone client.muted is set, and everything else waits or is dropped. */
void acks_send_connack(struct broker *broker, struct client *client, const void *packet, size_t size, uint64_t record);
/* session_pump() goes on once this record is durable. */
void acks_await(struct broker *broker, struct client *client, uint64_t record);

/* Packets that wait. */
uint32_t acks_count(const struct client *client);
/* Those of one kind. */
uint32_t acks_held(const struct client *client, enum ack_kind kind);
/* Sends what waited for records that are durable now. */
void acks_durable(struct broker *broker, uint64_t now_ms);
/* The store fails: what does not wait for it goes. */
void acks_stop_waiting(struct broker *broker, uint64_t now_ms);
void acks_drop(struct broker *broker, struct client *client);

#endif
