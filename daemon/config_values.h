/* Inside daemon/config*.c: how keys are found in the YAML document and values are read from it. Not a door. */
#ifndef DAEMON_CONFIG_VALUES_H
#define DAEMON_CONFIG_VALUES_H

#include <yaml.h>

#include "daemon/config.h"

struct config_reader {
    yaml_document_t *document;
    struct config *config;
    struct config_faults *faults;
    const char *dir;
    const yaml_node_t *name;  /* the key whose value is read */
    const char *peer;         /* whose keys are read in federation.peers; "" outside */
    size_t peer_count;        /* of these, so far */
    struct policy_list *list; /* that filters are read into */
    bool no_memory;
};

struct config_key;

/* Reads the value of a key into reader->config. path is the key's name with those above it: "listen.mqtt". */
typedef void config_read_value(struct config_reader *reader, const struct config_key *key, const char *path,
                               yaml_node_t *value);

struct config_key {
    const char *name; /* NULL: any */
    config_read_value *read;
    size_t offset;                     /* of the value in struct config */
    const char *write;                 /* what to write, for faults: "one name, such as edge-1" */
    const struct config_key *children; /* of a mapping */
    size_t child_count;
    uint64_t min; /* of a number; 0 is 1 */
    uint64_t max; /* of a number; those above 32 bits are uint64_t in struct config, the others uint32_t */
};

config_read_value config_read_mapping;             /* keys below it, by the table children */
config_read_value config_read_name;                /* char *: letters, digits, . _ - */
config_read_value config_read_data_dir;            /* char *: path */
config_read_value config_read_path;                /* struct config_path */
config_read_value config_read_issuers;             /* identity.issuers */
config_read_value config_read_listeners;           /* struct config_listeners: HOST:PORT */
config_read_value config_read_listeners_or_unix;   /* the same, and unix:PATH */
config_read_value config_read_proxies;             /* listen.proxies */
config_read_value config_read_unix_mode;           /* listen.unix_mode */
config_read_value config_read_require_client_cert; /* tls.require_client_cert */
config_read_value config_read_advertise;           /* federation.advertise */
config_read_value config_read_bootstrap;           /* federation.bootstrap */
config_read_value config_read_multicast;           /* federation.multicast */
config_read_value config_read_private_topics;      /* federation.private_topics */
config_read_value config_read_export;              /* federation.export, and of a peer */
config_read_value config_read_import;              /* federation.import, and of a peer */
config_read_value config_read_peer;                /* federation.peers.NAME */
config_read_value config_read_anonymous;           /* clients.anonymous */
config_read_value config_read_number;              /* 1 to max */
config_read_value config_read_level;               /* log.level */
config_read_value config_read_sync;                /* storage.sync */
config_read_value config_read_unavailable;         /* known, and not in this version */

/* Where the value of the key belongs. */
void *config_target(struct config_reader *reader, const struct config_key *key);
/* The text of a scalar (libyaml ends it with a zero); NULL, and a fault, for anything else and for nothing. */
const char *config_scalar(struct config_reader *reader, const struct config_key *key, const char *path,
                          const yaml_node_t *node);
/* A fault: PATH: "TEXT" WHY; write ... */
void config_bad_value(struct config_reader *reader, const struct config_key *key, const char *path,
                      const yaml_node_t *node, const char *text, const char *why);

/* NULL if the text may be the name of a broker or federation; else what is wrong with it. */
const char *config_name_fault(const char *text);

/* A list, or one item alone. */
typedef void config_read_item(struct config_reader *reader, const struct config_key *key, const char *path,
                              const yaml_node_t *item);
void config_read_list(struct config_reader *reader, const struct config_key *key, const char *path,
                      const yaml_node_t *value, size_t max, config_read_item *read);

/* The line in which a node starts. */
int config_line(const yaml_node_t *node);

/* An absolute path, on the heap. */
char *config_absolute(const char *dir, const char *path);

#endif
