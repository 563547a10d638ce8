/* MQTT over WebSocket (MQTT 5.0 section 6): path /mqtt, subprotocol "mqtt", and "mqttv3.1" for older clients, binary
 * messages. A message may hold any piece of the MQTT stream. Reached through web_inside.h's websocket_on(). */
#ifndef DAEMON_WEBSOCKET_H
#define DAEMON_WEBSOCKET_H

#define WEBSOCKET_PATH "/mqtt"

#endif
