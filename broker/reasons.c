#include "broker/mqtt.h"

#include <stddef.h>

const char *mqtt_reason_text(uint8_t reason) {
    switch (reason) {
    case MQTT_MALFORMED: return "a packet is not well-formed";
    case MQTT_PROTOCOL_ERROR: return "a packet breaks the rules of MQTT";
    case MQTT_UNSUPPORTED_VERSION: return "MQTT 3.1.1 and 5.0 are spoken here";
    case MQTT_CLIENT_ID_INVALID: return "the client id is longer than 1024 bytes";
    case MQTT_BAD_USER_OR_PASSWORD: return "user name or password are wrong";
    case MQTT_NOT_AUTHORIZED: return "not allowed";
    case MQTT_SERVER_UNAVAILABLE: return "the broker is short of memory";
    case MQTT_SERVER_SHUTTING_DOWN: return "the broker ends";
    case MQTT_BAD_AUTH_METHOD: return "this authentication method is not known here";
    case MQTT_KEEP_ALIVE_TIMEOUT: return "nothing heard for one and a half times the keep alive";
    case MQTT_SESSION_TAKEN_OVER: return "another connection has come with this client id";
    case MQTT_TOPIC_NAME_INVALID: return "the topic name has a wildcard, or is too long or too deep";
    case MQTT_RECEIVE_MAX_EXCEEDED: return "more unacknowledged publications than the broker's receive maximum";
    case MQTT_TOPIC_ALIAS_INVALID: return "a topic alias of 0 or above the broker's topic alias maximum";
    case MQTT_PACKET_TOO_LARGE: return "a packet is larger than the broker's maximum packet size";
    case MQTT_RATE_TOO_HIGH: return "more publications a second than limits.publish_rate_max";
    case MQTT_QUOTA_EXCEEDED: return "a limit of the broker is reached";
    default: return NULL;
    }
}
