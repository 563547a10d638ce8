/* TUN devices in network namespaces of other processes: each the only way out of its namespace. */
#ifndef WEATHER_PORTS_H
#define WEATHER_PORTS_H

#include "tests/weather/packet.h"

#define PORTS_MAX 64u
#define PORT_ADDRESSES_MAX 4u
#define PORT_NAME_MAX 63u
#define PORT_DEVICE "wire0"

struct port {
    char name[PORT_NAME_MAX + 1];
    int fd;
    struct ip_address addresses[PORT_ADDRESSES_MAX]; /* the newest first */
};

/* Opens PORT_DEVICE in the namespace of process `pid`, which stays down and without an address: that is for who made
 * the namespace to say. False with errno. */
bool port_open(struct port *port, const char *name, long pid);
/* What is sent to it comes to this port from now on; the oldest address makes room. */
void port_add_address(struct port *port, const struct ip_address *address);
bool port_has_address(const struct port *port, const struct ip_address *address);
bool ip_parse(const char *text, struct ip_address *address);

#endif
