/* Who comes, who is refused, and who goes: a line each, for the log. */
#include "broker/connect.h"
#include "broker/engine.h"
#include "broker/session.h"

#include <stdio.h>

enum { ID_SHOWN = 64, NAME_SHOWN = 32 }; /* bytes of what strangers say */

static int shown(size_t size, int max) {
    return size < (size_t)max ? (int)size : max;
}

int client_id_shown(const struct client *client) {
    return client->session != NULL ? shown(client->session->client_id_size, ID_SHOWN) : 0;
}

const char *client_id_of(const struct client *client) {
    return client->session != NULL ? client->session->client_id : "";
}

/* ", user 'joe'" if there is one. */
static void add_user(const struct mqtt_connect *connect, char out[NAME_SHOWN + 16]) {
    out[0] = '\0';
    if (connect->has_user_name)
        snprintf(out, NAME_SHOWN + 16, ", user '%.*s'", shown(connect->user_name.size, NAME_SHOWN),
                 (const char *)connect->user_name.bytes);
}

void note_refused(struct broker *broker, const struct client *client, const struct mqtt_connect *connect,
                  enum mqtt_reason reason) {
    const char *why = client->why != NULL ? client->why : mqtt_reason_text((uint8_t)reason);
    const bool by_limit = reason == MQTT_QUOTA_EXCEEDED; /* it has its own line, one for many */
    const enum broker_note_level level = by_limit ? BROKER_NOTE_DEBUG : BROKER_NOTE_INFO;
    char user[NAME_SHOWN + 16];

    if (by_limit && !broker->debug_notes) return;
    if (why == NULL) why = "by the authentication method";
    if (connect == NULL) {
        broker_note_add(broker, level, "CONNECT from %s refused: reason 0x%02X, %s", client->origin.address, reason,
                        why);
        return;
    }
    add_user(connect, user);
    broker_note_add(broker, level, "CONNECT from %s refused: reason 0x%02X, %s; client '%.*s'%s",
                    client->origin.address, reason, why, shown(connect->client_id.size, ID_SHOWN),
                    (const char *)connect->client_id.bytes, user);
}

void note_connected(struct broker *broker, const struct client *client, const struct mqtt_connect *connect,
                    bool resumed) {
    const char *certificate = client->origin.certificate_name;
    char user[NAME_SHOWN + 16];

    if (!broker->debug_notes) return;
    add_user(connect, user);
    broker_note_add(
        broker, BROKER_NOTE_DEBUG, "client '%.*s' at %s has connected: MQTT %s, keep alive %u s, %s session%s%s%.*s%s",
        shown(connect->client_id.size, ID_SHOWN), (const char *)connect->client_id.bytes, client->origin.address,
        client->version >= MQTT_50 ? "5.0" : "3.1.1", (unsigned)client->keep_alive_s, resumed ? "resumed" : "new", user,
        certificate != NULL ? ", certificate '" : "", NAME_SHOWN, certificate != NULL ? certificate : "",
        certificate != NULL ? "'" : "");
}

void note_gone(struct broker *broker, const struct client *client, const char *how, enum will_fate fate) {
    const struct session *session = client->session;

    if (!broker->debug_notes || client->told) return;
    if (session == NULL) {
        broker_note_add(broker, BROKER_NOTE_DEBUG, "client at %s is gone before it was connected: %s",
                        client->origin.address, how != NULL ? how : "for no reason that is known");
        return;
    }
    broker_note_add(broker, BROKER_NOTE_DEBUG, "client '%.*s' at %s is gone: %s; its session %s%s", CLIENT_WHO(client),
                    how != NULL ? how : "for no reason that is known", session->expiry_s > 0 ? "stays" : "ends",
                    session->will != NULL && fate == WILL_DUE ? ", its will is due" : "");
}
