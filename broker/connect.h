/* Inside broker/: the way from CONNECT to CONNACK.
 *
 * on_connect.c reads the packet and checks what is in it, on_auth.c asks a client that names an authentication method
 * (MQTT 5.0 section 4.12), welcome.c finds the session and answers.
 */
#ifndef BROKER_CONNECT_H
#define BROKER_CONNECT_H

#include "broker/client.h"

/* Refuses the connection with client->why or mqtt_reason_text(), and says so in a note. connect: NULL if it could not
 * be read, or is not at hand. version is that in which the client understands the answer, 0 if there is none. */
void connect_refuse(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_connect *connect,
                    uint8_t version, enum mqtt_reason reason);
/* The client is who it says it is: it gets a session and CONNACK, or is refused after all. auth_data: what the method
 * still has to say; size 0: nothing. */
void connect_admit(struct broker *broker, uint64_t now_ms, struct client *client, struct mqtt_connect *connect,
                   struct mqtt_view auth_data);
/* Borrows from both. */
struct broker_applicant connect_applicant(const struct client *client, const struct mqtt_connect *connect);

/* client_notes.c: who comes and who goes. What is at level debug is made only where options.debug_notes asks for it. */
void note_refused(struct broker *broker, const struct client *client, const struct mqtt_connect *connect,
                  enum mqtt_reason reason);
void note_connected(struct broker *broker, const struct client *client, const struct mqtt_connect *connect,
                    bool resumed);

/* ---- enhanced authentication ---- */

/* From the CONNECT on; it stays while the client is connected, as later AUTHs must name the same method
 * (MQTT-4.12.1-1). */
struct exchange {
    uint64_t state;          /* the method's own */
    uint64_t deadline_ms;    /* of a re-authentication under way; 0 while there is none */
    struct partial *connect; /* the body of CONNECT, while the answer to it is not given; then NULL */
    struct mqtt_frame frame; /* of it */
    uint32_t method_size;
    uint8_t method[];
};

/* The CONNECT names a method. Ends in connect_admit(), connect_refuse() or a question to the client. */
void exchange_begin(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                    struct mqtt_view body, struct mqtt_connect *connect);
/* True while the client may send nothing but AUTH and DISCONNECT (MQTT-3.1.2-30). */
bool exchange_is_open(const struct client *client);
void exchange_free(struct broker *broker, struct client *client);

#endif
