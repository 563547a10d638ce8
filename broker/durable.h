/* Inside broker/: the records of what happens. Each function is called right after the change it tells of, and does
 * nothing for a session that does not outlive its connection, or without options.durable.
 */
#ifndef BROKER_DURABLE_H
#define BROKER_DURABLE_H

#include "broker/record.h"
#include "broker/session.h"

/* The session as it is now. One that lasts from now on is told of with all it holds; one that no longer does is told to
 * end. */
void durable_session(struct broker *broker, uint64_t now_ms, struct session *session);
/* Told before what it holds is freed. */
void durable_session_end(struct broker *broker, struct session *session);

void durable_subscribed(struct broker *broker, const struct session *session, const struct filter *filter);
void durable_unsubscribed(struct broker *broker, const struct session *session, const struct filter *filter);

/* It gets its position and, if it is the first that lasts, its message a number. */
void durable_queued(struct broker *broker, uint64_t now_ms, const struct session *session, struct outgoing *outgoing);
/* It got its packet id. */
void durable_sent(struct broker *broker, const struct session *session, struct outgoing *outgoing);
/* PUBREC has come; call before its message is let go. */
void durable_released(struct broker *broker, const struct session *session, struct outgoing *outgoing);
/* Call before it is freed. */
void durable_done(struct broker *broker, const struct session *session, struct outgoing *outgoing);

void durable_received(struct broker *broker, const struct session *session, uint16_t packet_id);
void durable_received_end(struct broker *broker, const struct session *session, uint16_t packet_id);

/* Of the store of retained messages. */
void durable_retained(struct broker *broker, uint64_t now_ms, const struct message *message);
void durable_retained_end(struct broker *broker, const struct message *message);

/* The record of a message, or of one that is retained. */
struct record durable_publication_record(const struct broker *broker, uint64_t now_ms, enum record_type type,
                                         const struct message *message);
struct record durable_session_record(const struct broker *broker, uint64_t now_ms, const struct session *session);
struct record durable_queued_record(const struct session *session, const struct outgoing *outgoing);

#endif
