/* Who we are: the key, token, issuers and gossip keys that the configuration names, read into memory. */
#ifndef DAEMON_IDENTITY_H
#define DAEMON_IDENTITY_H

#include "auth/signed_ring.h"
#include "auth/trust.h"
#include "daemon/config.h"

struct identity {
    struct auth_key *key; /* our pair; NULL for a broker alone (no peers listener) */
    struct auth_key *issuers[CONFIG_ISSUERS_MAX];
    size_t issuer_count;
    char *token; /* without surrounding white space, with a final zero */
    size_t token_size;
    int64_t token_from_s, token_ends_s; /* as it says, seconds since 1970; 0 for a token that cannot be read */
    struct auth_ring ring;              /* the gossip keys in use: those of the ring below, if there is one */
    /* The signed key ring: the one kept in data_dir, or that of federation.gossip_key if that is a later one. */
    char ring_text[AUTH_SIGNED_RING_MAX + 1]; /* empty: plain keys */
    uint64_t ring_number;
    uint8_t ring_digest[32];
    bool ring_is_kept; /* it is that of data_dir, and the keys of federation.gossip_key are not used */
    /* Empty if the token is good at the time of reading, else why not: such a broker serves its own site and gets no
     * links. */
    char token_fault[400];
};

/* Reads all files of config, adding a fault for each that is missing, unreadable or wrong, in the lines that name them.
 * A token that does not fit is an error for
 * --check (token_is_error) and no fault for a daemon that starts, which says it in one line of its log (token_fault).
 * wall_s: seconds since 1970. */
void identity_read(struct identity *identity, const struct config *config, bool token_is_error, int64_t wall_s,
                   struct config_faults *faults);
void identity_deinit(struct identity *identity);

#endif
