#include "tests/weather/ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int open_tun(void) {
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", PORT_DEVICE);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) != 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* A device belongs to the namespace in which it was made; its file may be read from any. */
bool port_open(struct port *port, const char *name, long pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/ns/net", pid);
    memset(port, 0, sizeof *port);
    snprintf(port->name, sizeof port->name, "%s", name);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(path, O_RDONLY | O_CLOEXEC), why = 0;
    port->fd = -1;
    if (home >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0) {
        port->fd = open_tun();
        why = errno;
        if (setns(home, CLONE_NEWNET) != 0) {
            why = errno;
            if (port->fd >= 0) close(port->fd);
            port->fd = -1;
        }
    } else {
        why = errno;
    }
    if (home >= 0) close(home);
    if (there >= 0) close(there);
    errno = why;
    return port->fd >= 0;
}

void port_add_address(struct port *port, const struct ip_address *address) {
    if (port_has_address(port, address)) return;
    memmove(port->addresses + 1, port->addresses, (PORT_ADDRESSES_MAX - 1) * sizeof *address);
    port->addresses[0] = *address;
}

bool port_has_address(const struct port *port, const struct ip_address *address) {
    for (size_t i = 0; i < PORT_ADDRESSES_MAX; i++)
        if (ip_equal(&port->addresses[i], address)) return true;
    return false;
}

bool ip_parse(const char *text, struct ip_address *address) {
    memset(address, 0, sizeof *address);
    address->family = strchr(text, ':') ? 6 : 4;
    return inet_pton(address->family == 6 ? AF_INET6 : AF_INET, text, address->bytes) == 1;
}
