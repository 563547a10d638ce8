/* Peer links: WebSocket over TLS 1.3, both sides with a self-signed certificate on their broker key; path /hobnob,
 * subprotocol "hobnob", one binary message per frame of broker/PROTOCOL.md. TLS proves the key and no more; the broker
 * compares its thumbprint with the token. Reached through web_inside.h's links_on(). */
#ifndef DAEMON_LINKS_H
#define DAEMON_LINKS_H

#define LINKS_PATH "/hobnob"
#define LINKS_PROTOCOL "hobnob"

#endif
