/* The configuration: one YAML file, read wholly, all of its faults named at once.
 *
 * A fault reads "file:line: what is wrong, and what to write". Paths are made absolute relative to the file. Nothing
 * but text and numbers is in here; the files it names are read by identity.h.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/broker.h"
#include "broker/policy.h"
#include "daemon/log.h"
#include "daemon/store.h"
#include "gossip/gossip.h"

#define CONFIG_LISTENERS_MAX 16u /* per kind */
#define CONFIG_BOOTSTRAP_MAX 64u
#define CONFIG_FILTERS_MAX 256u /* per list */
#define CONFIG_PEERS_MAX 256u   /* with lists of their own */
#define CONFIG_ISSUERS_MAX 8u
#define CONFIG_PROXIES_MAX 64u
#define CONFIG_FAULTS_MAX 100u /* more are not kept */
#define CONFIG_FAULT_TEXT_MAX 1400u

/* HOST:PORT as written: "0.0.0.0:1883", "[::1]:1883", "edge-2.example:7100"; or, of some listeners, unix:PATH. */
struct config_address {
    char host[256]; /* unix: the absolute path, at most CONFIG_UNIX_PATH_MAX bytes */
    bool is_unix;
    uint16_t port;
    int line;    /* in the file; 0 without one */
    char ip[46]; /* numeric text of host: set while reading if host is numeric, for listeners by listening_resolve()
                    otherwise */
};

#define CONFIG_UNIX_PATH_MAX 107u
#define CONFIG_ADDRESS_MAX 272u
/* As written: "0.0.0.0:1883", "[::1]:1883". */
void config_address_format(const struct config_address *address, char out[CONFIG_ADDRESS_MAX]);

struct config_listeners {
    size_t count;
    struct config_address items[CONFIG_LISTENERS_MAX];
};

/* An address, or a range of them. */
struct config_network {
    uint8_t bytes[16]; /* IPv4: ::ffff:a.b.c.d */
    uint8_t bits;      /* of these that count */
};

struct config_path {
    char *path; /* absolute; NULL if not given */
    int line;
};

struct config {
    char *file; /* absolute path of the configuration, NULL without one */
    char *name; /* the broker's */
    int name_line;
    char *data_dir; /* absolute; NULL: everything in memory */
    int data_dir_line;
    struct {
        enum store_sync sync;
    } storage;
    struct {
        struct config_path token, key;
        size_t issuer_count;
        struct config_path issuers[CONFIG_ISSUERS_MAX];
    } identity;
    struct {
        struct config_listeners mqtt, mqtts, ws, wss, peers, admin;
        size_t proxy_count;
        struct config_network proxies[CONFIG_PROXIES_MAX]; /* whose connections begin with a PROXY header */
        unsigned unix_mode;                                /* of the files of unix sockets */
    } listen;
    struct {
        struct config_path cert, key, client_ca;
        bool require_client_cert;
        int require_line; /* 0 if not given */
    } tls;
    struct {
        char *name; /* "default" if not given */
        bool has_advertise;
        struct config_address advertise;
        size_t bootstrap_count;
        struct config_address bootstrap[CONFIG_BOOTSTRAP_MAX];
        struct config_path gossip_key;
        bool multicast;
        int multicast_line;    /* 0 if not given */
        struct policy *policy; /* private_topics, export, import, peers */
    } federation;
    struct {
        bool anonymous_everywhere; /* clients.anonymous: true; by default anonymous clients are welcome from loopback
                                      only */
        bool anonymous_nowhere;    /* clients.anonymous: false */
    } clients;
    struct broker_limits broker_limits; /* 0 where not given: the core's default */
    struct gossip_limits gossip_limits;
    uint64_t memory_bytes_max; /* limits.memory_bytes_max; 0: memory_default_max() */
    enum log_level log_level;
};

struct config_fault {
    bool warning; /* worth a line, and the daemon runs all the same */
    int line;     /* 0: the file as a whole */
    char text[CONFIG_FAULT_TEXT_MAX];
};

struct config_faults {
    size_t count;  /* kept */
    size_t errors; /* those that are no warnings, also the ones not kept */
    struct config_fault items[CONFIG_FAULTS_MAX];
};

void config_fault_add(struct config_faults *faults, bool warning, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Sorted by line; equal lines keep their order. */
void config_faults_sort(struct config_faults *faults);
/* "file:line: text" (no line if it is 0), with a final zero; cut at size. */
#define CONFIG_FAULT_LINE_MAX 5600u
void config_fault_format(const struct config_fault *fault, const char *file, char *out, size_t size);

/* Reads the file. Returns NULL when there is no use in going on (it cannot be read, is no YAML, memory is short); else
 * a configuration, good if no errors were added. path is used in faults as it is given. */
struct config *config_read(const char *path, struct config_faults *faults);
/* The same from text; dir is the absolute folder that paths are relative to. */
struct config *config_parse(const char *text, size_t size, const char *dir, struct config_faults *faults);
/* What runs without a file: one broker, in memory, MQTT on 127.0.0.1:1883, admin on 127.0.0.1:9100. NULL when memory is
 * short. */
struct config *config_default(void);
void config_free(struct config *config);

/* True if the numeric text is an address of listen.proxies. */
bool config_is_proxy(const struct config *config, const char *ip);

/* True for 127.0.0.0/8, ::1 and IPv4-mapped loopback, in numeric text. */
bool config_ip_is_loopback(const char *ip);

#endif
