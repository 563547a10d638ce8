/* The PROXY protocol, versions 1 and 2 (HAProxy's doc/proxy-protocol.txt): what a proxy says of a connection before its
 * first byte. Pure: bytes in, facts out. Whom to believe is the caller's to decide. */
#ifndef DAEMON_PROXY_H
#define DAEMON_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROXY_HEADER_MAX 4096u /* bytes; proxies send some hundred */
#define PROXY_NAME_MAX 256u

struct proxy_header {
    size_t size;      /* what follows these bytes is the client's */
    bool is_local;    /* the connection is the proxy's own, such as one that checks whether we live */
    bool has_address; /* false: it is local, or the proxy does not know it: that of the socket stands */
    char ip[46];      /* the client's, numeric text */
    uint16_t port;
    char name[PROXY_NAME_MAX + 1]; /* subject CN of a client certificate that the proxy has verified; "" if none */
};

enum proxy_result { PROXY_DONE = 0, PROXY_MORE = 1, PROXY_BAD = -1 };

/* The header at the start of bytes; *out is filled when it is whole. PROXY_MORE: so far it could become one; ask again
 * with all bytes from the start. PROXY_BAD: *wrong says why, a constant text. */
enum proxy_result proxy_decode(const uint8_t *bytes, size_t size, struct proxy_header *out, const char **wrong);

#endif
