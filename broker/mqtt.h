/* The packets of MQTT 3.1.1 and MQTT 5.0 as bytes: framing, decoding what a client may send, encoding what a server may
 * send.
 *
 * Decoding is in place: views point into the caller's bytes and end when those do. Decoders answer with the reason
 * to refuse the packet, MQTT_SUCCESS when all is well. Encoders write into the caller's buffer and return the size.
 */
#ifndef BROKER_MQTT_H
#define BROKER_MQTT_H

#include "broker/message.h"
#include "broker/reader.h"

enum mqtt_type {
    MQTT_WILL = 0, /* no packet: the will's properties inside CONNECT */
    MQTT_CONNECT = 1,
    MQTT_CONNACK = 2,
    MQTT_PUBLISH = 3,
    MQTT_PUBACK = 4,
    MQTT_PUBREC = 5,
    MQTT_PUBREL = 6,
    MQTT_PUBCOMP = 7,
    MQTT_SUBSCRIBE = 8,
    MQTT_SUBACK = 9,
    MQTT_UNSUBSCRIBE = 10,
    MQTT_UNSUBACK = 11,
    MQTT_PINGREQ = 12,
    MQTT_PINGRESP = 13,
    MQTT_DISCONNECT = 14,
    MQTT_AUTH = 15,
};

/* MQTT 5.0 section 2.4. */
enum mqtt_reason {
    MQTT_SUCCESS = 0x00,
    MQTT_DISCONNECT_WITH_WILL = 0x04,
    MQTT_NO_MATCHING_SUBSCRIBERS = 0x10,
    MQTT_NO_SUBSCRIPTION_EXISTED = 0x11,
    MQTT_CONTINUE_AUTHENTICATION = 0x18,
    MQTT_RE_AUTHENTICATE = 0x19,
    MQTT_UNSPECIFIED_ERROR = 0x80,
    MQTT_MALFORMED = 0x81,
    MQTT_PROTOCOL_ERROR = 0x82,
    MQTT_IMPLEMENTATION_ERROR = 0x83,
    MQTT_UNSUPPORTED_VERSION = 0x84,
    MQTT_CLIENT_ID_INVALID = 0x85,
    MQTT_BAD_USER_OR_PASSWORD = 0x86,
    MQTT_NOT_AUTHORIZED = 0x87,
    MQTT_SERVER_UNAVAILABLE = 0x88,
    MQTT_SERVER_BUSY = 0x89,
    MQTT_SERVER_SHUTTING_DOWN = 0x8B,
    MQTT_BAD_AUTH_METHOD = 0x8C,
    MQTT_KEEP_ALIVE_TIMEOUT = 0x8D,
    MQTT_SESSION_TAKEN_OVER = 0x8E,
    MQTT_TOPIC_FILTER_INVALID = 0x8F,
    MQTT_TOPIC_NAME_INVALID = 0x90,
    MQTT_PACKET_ID_IN_USE = 0x91,
    MQTT_PACKET_ID_NOT_FOUND = 0x92,
    MQTT_RECEIVE_MAX_EXCEEDED = 0x93,
    MQTT_TOPIC_ALIAS_INVALID = 0x94,
    MQTT_PACKET_TOO_LARGE = 0x95,
    MQTT_RATE_TOO_HIGH = 0x96,
    MQTT_QUOTA_EXCEEDED = 0x97,
    MQTT_PAYLOAD_FORMAT_INVALID = 0x99,
    MQTT_SHARED_NOT_SUPPORTED = 0x9E,
};

enum { MQTT_311 = 4, MQTT_50 = 5 }; /* protocol levels */
/* Bridges of Mosquitto set this bit beside MQTT_311: their subscriptions are no local and retain as published, which
 * 3.1.1 cannot say. */
enum { MQTT_BRIDGE = 0x80 };

/* reasons.c: what a Reason String says for this code when the place it happens knows no better; at most
 * MQTT_REASON_STRING_MAX bytes, NULL for success and codes that we never give. */
#define MQTT_REASON_STRING_MAX 100u
const char *mqtt_reason_text(uint8_t reason);

/* ---- framing ---- */

struct mqtt_frame {
    uint8_t type, flags;
    uint8_t header_size;  /* 2 to 5 */
    uint32_t packet_size; /* header included */
};
enum mqtt_framing { MQTT_FRAME_OK = 0, MQTT_FRAME_MALFORMED = -1, MQTT_FRAME_MORE = 1 };
/* Reads the fixed header (section 2.1). MQTT_FRAME_OK does not say that the whole packet is there. */
enum mqtt_framing mqtt_read_frame(const uint8_t *bytes, size_t size, struct mqtt_frame *frame);

/* ---- decoding: body is the packet without its fixed header ---- */

struct mqtt_connect {
    uint8_t version; /* without MQTT_BRIDGE; set whenever the protocol name was one of MQTT's, 0 otherwise */
    bool is_bridge, clean_start, has_will, will_retain, has_user_name, has_password;
    uint8_t will_qos;
    uint16_t keep_alive_s;
    struct mqtt_view client_id, will_topic /* valid however deep */, will_payload, user_name, password;
    struct mqtt_view will_properties; /* checked */
    uint32_t will_delay_s;
    uint64_t will_expiry_s; /* of 32 bits, or MESSAGE_NO_EXPIRY */
    bool has_session_expiry, no_problem_information, wants_response_information;
    bool has_auth_data;
    struct mqtt_view auth_method, auth_data;    /* auth_method.size 0: none, and then there is no data */
    uint32_t session_expiry_s, packet_size_max; /* packet_size_max: UINT32_MAX if none */
    uint16_t receive_max, topic_alias_max;
};
enum mqtt_reason mqtt_decode_connect(const struct mqtt_frame *frame, struct mqtt_view body, struct mqtt_connect *out);

struct mqtt_publish {
    bool dup, retain;
    uint8_t qos;
    uint16_t packet_id;          /* 0 for QoS 0 */
    uint16_t topic_alias;        /* 0 if none */
    struct mqtt_view topic;      /* not looked into, or empty with an alias */
    struct mqtt_view properties; /* checked, as encoded */
    bool has_hop_properties;     /* some of them must not be passed on, see props_strip() */
    uint64_t expiry_s;           /* of 32 bits, or MESSAGE_NO_EXPIRY */
    struct mqtt_view payload;
};
enum mqtt_reason mqtt_decode_publish(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                     struct mqtt_publish *out);
/* Why this topic, which is not empty, must be refused however deep it may be: the part of decoding a PUBLISH that is
 * needed once for each topic. */
enum mqtt_reason mqtt_check_topic(struct mqtt_view topic);

struct mqtt_ack {
    uint16_t packet_id;
    uint8_t reason;
};
/* PUBACK, PUBREC, PUBREL, PUBCOMP. */
enum mqtt_reason mqtt_decode_ack(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                 struct mqtt_ack *out);

/* AUTH, which is in MQTT 5.0 only. It has a method, and its reason is one that a client may give. */
struct mqtt_auth {
    uint8_t reason;
    struct mqtt_view method, data; /* data.size 0: none */
};
enum mqtt_reason mqtt_decode_auth(const struct mqtt_frame *frame, struct mqtt_view body, struct mqtt_auth *out);

/* SUBSCRIBE and UNSUBSCRIBE. The whole packet is checked, filters apart from their UTF-8 not; then they are walked.
 * MQTT_QUOTA_EXCEEDED for more filters than any client may hold: a filter of one byte would cost us a hundred. */
#define MQTT_FILTERS_MAX UINT16_MAX
struct mqtt_subscribe {
    uint16_t packet_id;
    uint32_t identifier; /* 0 if none */
    uint32_t filter_count;
    struct reader filters;
};
enum mqtt_reason mqtt_decode_subscribe(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                       struct mqtt_subscribe *out);
/* The next filter with its options byte (0 in UNSUBSCRIBE); false at the end. */
bool mqtt_next_filter(enum mqtt_type type, struct mqtt_subscribe *subscribe, struct mqtt_view *filter,
                      uint8_t *options);
/* False if no filter may look like this, however deep: it is empty, or its wildcards are misplaced (MQTT-4.7.1-1, -2,
 * MQTT-4.7.3-1). A shared one has its own answer for that: see topic_share_split(). */
bool mqtt_check_filter(struct mqtt_view filter);

struct mqtt_disconnect {
    uint8_t reason;
    bool has_session_expiry;
    uint32_t session_expiry_s;
};
enum mqtt_reason mqtt_decode_disconnect(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                        struct mqtt_disconnect *out);

/* ---- encoding ---- */

/* No packet of the functions that take such a buffer is longer. */
#define MQTT_SMALL_MAX 256u

struct mqtt_connack {
    bool session_present;
    uint8_t reason; /* MQTT 5.0; translated for 3.1.1 */
    /* The rest for MQTT 5.0 and success only; the values that are the protocol's default are not sent. */
    uint16_t receive_max, topic_alias_max;
    uint32_t packet_size_max; /* UINT32_MAX: no limit */
    bool has_session_expiry, has_server_keep_alive;
    uint32_t session_expiry_s;
    uint16_t server_keep_alive_s;
    const char *assigned_client_id;          /* NULL if none; at most 64 bytes */
    const char *response_information;        /* NULL if none; at most MQTT_RESPONSE_INFORMATION_MAX bytes */
    struct mqtt_view auth_method, auth_data; /* size 0: none; at most MQTT_AUTH_METHOD_MAX, MQTT_AUTH_DATA_MAX bytes */
    /* MQTT 5.0, and any reason. */
    const char *reason_string; /* NULL if none */
};
#define MQTT_RESPONSE_INFORMATION_MAX 1100u
#define MQTT_AUTH_METHOD_MAX 255u
#define MQTT_AUTH_DATA_MAX 1024u
/* CONNACK and AUTH are no longer than this. */
#define MQTT_LARGE_MAX 3072u
size_t mqtt_encode_connack(uint8_t out[MQTT_LARGE_MAX], uint8_t version, const struct mqtt_connack *connack);
/* MQTT 5.0 only. */
size_t mqtt_encode_auth(uint8_t out[MQTT_LARGE_MAX], enum mqtt_reason reason, struct mqtt_view method,
                        struct mqtt_view data);
/* PUBACK, PUBREC, PUBREL, PUBCOMP. */
size_t mqtt_encode_ack(uint8_t out[MQTT_SMALL_MAX], uint8_t version, enum mqtt_type type, uint16_t packet_id,
                       enum mqtt_reason reason);
/* PUBACK or PUBREC that says no, MQTT 5.0 only. reason_string: NULL if none. */
size_t mqtt_encode_refusal(uint8_t out[MQTT_SMALL_MAX], enum mqtt_type type, uint16_t packet_id,
                           enum mqtt_reason reason, const char *reason_string);
size_t mqtt_encode_pingresp(uint8_t out[MQTT_SMALL_MAX]);
/* MQTT 5.0 only. reason_string: NULL if none. */
size_t mqtt_encode_disconnect(uint8_t out[MQTT_SMALL_MAX], enum mqtt_reason reason, const char *reason_string);

struct mqtt_user_property {
    const char *name, *value; /* of at most 65,535 bytes */
};
/* SUBACK, and UNSUBACK (which in 3.1.1 has no codes). */
struct mqtt_suback {
    uint8_t version;
    enum mqtt_type type;
    uint16_t packet_id;
    const uint8_t *codes;
    size_t code_count;
    /* MQTT 5.0 only */
    const char *reason_string; /* NULL: none */
    const struct mqtt_user_property *user_properties;
    size_t user_property_count;
};
/* The codes need not be there yet. */
size_t mqtt_suback_size(const struct mqtt_suback *suback);
void mqtt_encode_suback(uint8_t *out, const struct mqtt_suback *suback);

/* A PUBLISH to a client: the tail is the publisher's properties (to MQTT 5.0) and the payload, as they stand one behind
 * the other in a counted message; the head is all before it. */
struct mqtt_sending {
    uint8_t version, qos;
    bool dup, retain;
    bool topic_is_known; /* by its alias: it is left out */
    uint16_t packet_id;
    uint16_t topic_alias;        /* MQTT 5.0 only; 0 if none */
    uint64_t expiry_left_s;      /* of 32 bits, or MESSAGE_NO_EXPIRY */
    const uint32_t *identifiers; /* of the subscriptions it matched */
    size_t identifier_count;
    const struct message *message;
    uint32_t remaining, properties_size; /* set by mqtt_publish_head_size() */
};
/* Size of the head; the whole packet's size goes to packet_size, UINT32_MAX if MQTT cannot carry it. */
size_t mqtt_publish_head_size(struct mqtt_sending *sending, uint32_t *packet_size);
/* Writes exactly mqtt_publish_head_size() bytes, which has been called for the same values before. */
void mqtt_encode_publish_head(uint8_t *out, const struct mqtt_sending *sending);
/* Writes what is left of the packet. */
void mqtt_encode_publish_tail(uint8_t *out, const struct mqtt_sending *sending);

#endif
