/* What hobnob init makes: a federation's brokers, with addresses and ports that do not collide. */
#ifndef TOOLS_SITE_H
#define TOOLS_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_BROKERS_MAX 1000u
#define SITE_BOOTSTRAP_MAX 64u /* as many as hobnobd reads */
#define SITE_HOST_MAX 253u     /* bytes of a host's name (RFC 1035 section 2.3.4) */

enum site_port { PORT_MQTT, PORT_WS, PORT_PEERS, PORT_ADMIN, PORT_COUNT };

struct site_broker {
    const char *name; /* borrowed from the command line */
    const char *host; /* where others reach it; without brackets */
    bool loopback;
    uint16_t ports[PORT_COUNT];
};

struct site {
    const char *dir;
    int64_t now_s, expires_at_s;
    uint32_t base_ports[PORT_COUNT];
    size_t broker_count;
    struct site_broker brokers[SITE_BROKERS_MAX];
};

/* Each of these complains itself and returns an exit code. */
int site_set_names(struct site *site, char *list);        /* "a,b,c"; cut up and borrowed */
int site_set_host(struct site *site, char *assignment);   /* "NAME=ADDR"; cut up and borrowed */
int site_set_ports(struct site *site, char *assignments); /* "mqtt=1883,ws=8080" */
/* After the others: gives every broker its ports, one up for each earlier one on the same host. */
int site_assign(struct site *site);

/* The text of a broker's hobnob.yaml, freed by the caller; NULL when memory is short. */
char *site_config_text(const struct site *site, size_t broker);
/* Makes all files under site->dir, which must not exist: wholly or not at all. */
bool site_write(const struct site *site);

#endif
