#include "daemon/identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/ring_file.h"

#define FILE_SIZE_MAX 65536u /* bytes of a key, token or key ring */

/* The whole file with a final zero, or NULL and a fault in the line that names it. */
static char *read_file(const struct config_path *file, const char *key, const char *remedy, size_t *size,
                       struct config_faults *faults) {
    errno = 0;
    FILE *stream = fopen(file->path, "rb");
    struct stat status;
    char *text = NULL;
    errno = stream != NULL && fstat(fileno(stream), &status) == 0 && S_ISDIR(status.st_mode) ? EISDIR : errno;
    if (stream != NULL && errno != EISDIR) text = malloc(FILE_SIZE_MAX + 1);
    if (text != NULL) {
        *size = fread(text, 1, FILE_SIZE_MAX + 1, stream);
        if (*size > FILE_SIZE_MAX) {
            errno = EFBIG;
            free(text);
            text = NULL;
        } else {
            text[*size] = '\0';
        }
    }
    if (text == NULL) {
        const bool forbidden = errno == EACCES;
        config_fault_add(faults, false, file->line, "%s: %s cannot be read: %s; %s", key, file->path, strerror(errno),
                         forbidden ? "let the user that runs hobnobd read it (chown)" : remedy);
    }
    if (stream != NULL) fclose(stream);
    return text;
}

static void warn_if_others_can_read(const struct config_path *file, const char *key, struct config_faults *faults) {
    struct stat status;
    if (stat(file->path, &status) == 0 && (status.st_mode & 077u) != 0)
        config_fault_add(faults, true, file->line, "%s: %s can be read by others; write chmod 600 %s", key, file->path,
                         file->path);
}

static void read_key(struct identity *identity, const struct config *config, struct config_faults *faults) {
    const struct config_path *file = &config->identity.key;
    if (file->path == NULL) return;
    size_t size = 0;
    char *text = read_file(file, "identity.key",
                           "write the path of the broker's private key (hobnob key new makes one)", &size, faults);
    if (text == NULL) return;
    struct auth_key *key = NULL;
    if (auth_key_parse(text, size, &key) != AUTH_OK) {
        config_fault_add(
            faults, false, file->line,
            "identity.key: %s is no P-256 private key in PEM; write the path of one (hobnob key new makes one)",
            file->path);
    } else if (!auth_key_is_private(key)) {
        config_fault_add(faults, false, file->line,
                         "identity.key: %s is a public key; write the path of the private one", file->path);
        auth_key_free(key);
        key = NULL;
    } else {
        warn_if_others_can_read(file, "identity.key", faults);
    }
    identity->key = key;
    explicit_bzero(text, size);
    free(text);
}

static void read_issuers(struct identity *identity, const struct config *config, struct config_faults *faults) {
    for (size_t i = 0; i < config->identity.issuer_count; i++) {
        const struct config_path *file = &config->identity.issuers[i];
        size_t size = 0;
        char *text =
            read_file(file, "identity.issuers",
                      "write the path of the issuer's public key (issuer.pub from hobnob init)", &size, faults);
        if (text == NULL) continue;
        struct auth_key *key = NULL;
        if (auth_key_parse(text, size, &key) != AUTH_OK) {
            config_fault_add(faults, false, file->line,
                             "identity.issuers: %s is no P-256 public key in PEM; write the path of one (issuer.pub "
                             "from hobnob init)",
                             file->path);
        } else {
            identity->issuers[identity->issuer_count++] = key;
            if (auth_key_is_private(key))
                config_fault_add(faults, true, file->line,
                                 "identity.issuers: %s is the issuer's private key, which belongs on no broker; write "
                                 "the path of issuer.pub, and delete it here",
                                 file->path);
        }
        explicit_bzero(text, size);
        free(text);
    }
}

/* ---- gossip keys ---- */

static void use_ring(struct identity *identity, const struct auth_signed_ring *ring, const char *text, size_t size) {
    memset(&identity->ring, 0, sizeof(identity->ring));
    identity->ring.count = ring->count;
    for (size_t i = 0; i < ring->count; i++) {
        memcpy(identity->ring.keys[i].id, ring->keys[i].id, sizeof(ring->keys[i].id));
        memcpy(identity->ring.keys[i].key, ring->keys[i].key, sizeof(ring->keys[i].key));
    }
    memcpy(identity->ring_text, text, size);
    identity->ring_text[size] = '\0';
    identity->ring_number = ring->number;
    memcpy(identity->ring_digest, ring->digest, sizeof(identity->ring_digest));
}

static enum auth_result verify_ring(const struct identity *identity, const struct config *config, const char *text,
                                    size_t size, struct auth_signed_ring *ring, char reason[160]) {
    return auth_signed_ring_verify(text, size, (const struct auth_key *const *)identity->issuers,
                                   identity->issuer_count, config->federation.name, ring, reason);
}

/* federation.gossip_key may name a signed ring as well: a broker that joins later begins with the present one. */
static void read_configured_ring(struct identity *identity, const struct config *config, const char *text, size_t size,
                                 struct config_faults *faults) {
    const struct config_path *file = &config->federation.gossip_key;
    struct auth_signed_ring ring;
    char reason[160];
    if (verify_ring(identity, config, text, size, &ring, reason) != AUTH_OK) {
        config_fault_add(faults, false, file->line, "federation.gossip_key: %s: %s", file->path, reason);
        return;
    }
    use_ring(identity, &ring, text, size);
    warn_if_others_can_read(file, "federation.gossip_key", faults);
    explicit_bzero(&ring, sizeof(ring));
}

static bool is_later(const struct auth_signed_ring *ring, const struct identity *identity) {
    return ring->number > identity->ring_number ||
           (ring->number == identity->ring_number &&
            memcmp(ring->digest, identity->ring_digest, sizeof(ring->digest)) > 0);
}

/* What was taken while the broker ran has its place before what it was configured with. It was verified when it came:
 * an issuer that is no longer named changes nothing about the keys that the others use. */
static void read_kept_ring(struct identity *identity, const struct config *config, struct config_faults *faults) {
    struct auth_signed_ring ring;
    char text[AUTH_SIGNED_RING_MAX + 1], error[RING_FILE_ERROR_MAX], reason[160];
    const int line = config->federation.gossip_key.line;
    if (line == 0 || config->data_dir == NULL) return;
    const enum ring_file_result result = ring_file_read_kept(config->data_dir, &ring, text, error);
    if (result == RING_FILE_BAD)
        config_fault_add(faults, true, line,
                         "federation.gossip_key: the key ring in data_dir is not used, and the keys of this file are: "
                         "%s; give this broker the present ring (hobnob key push)",
                         error);
    if (result != RING_FILE_OK || !is_later(&ring, identity)) return;
    if (strcmp(ring.federation, config->federation.name) != 0) {
        config_fault_add(faults, true, line,
                         "federation.gossip_key: the key ring in data_dir is of federation %s and not used; delete "
                         "gossip.ring there if federation.name is right",
                         ring.federation);
    } else {
        if (verify_ring(identity, config, text, strlen(text), &ring, reason) != AUTH_OK)
            config_fault_add(faults, true, line,
                             "federation.gossip_key: the key ring in data_dir is used all the same: %s; sign it again "
                             "(hobnob key rotate --again)",
                             reason);
        use_ring(identity, &ring, text, strlen(text));
        identity->ring_is_kept = true;
    }
    explicit_bzero(&ring, sizeof(ring));
    explicit_bzero(text, sizeof(text));
}

static void read_ring(struct identity *identity, const struct config *config, struct config_faults *faults) {
    const struct config_path *file = &config->federation.gossip_key;
    if (file->path == NULL) return;
    size_t size = 0;
    char *text =
        read_file(file, "federation.gossip_key",
                  "write the path of the gossip key that all brokers share (hobnob init makes one)", &size, faults);
    if (text == NULL) return;
    size_t ring_size = 0;
    const char *ring = auth_signed_ring_in(text, size, &ring_size);
    const enum auth_result result = ring == NULL ? auth_ring_parse(text, size, &identity->ring) : AUTH_OK;
    if (ring != NULL) {
        read_configured_ring(identity, config, ring, ring_size, faults);
    } else if (result != AUTH_OK || identity->ring.count == 0) {
        identity->ring.count = 0;
        config_fault_add(faults, false, file->line,
                         "federation.gossip_key: %s holds no good keys; write 1 to %u lines of 32 bytes in base64 each",
                         file->path, AUTH_RING_MAX);
    } else {
        warn_if_others_can_read(file, "federation.gossip_key", faults);
    }
    explicit_bzero(text, size);
    free(text);
    read_kept_ring(identity, config, faults);
}

static void read_token(struct identity *identity, const struct config *config, struct config_faults *faults) {
    const struct config_path *file = &config->identity.token;
    if (file->path == NULL) return;
    size_t size = 0;
    char *text = read_file(file, "identity.token", "write the path of the broker's token (hobnob token mint makes one)",
                           &size, faults);
    if (text == NULL) return;
    const size_t before = strspn(text, " \t\r\n");
    size -= before;
    memmove(text, text + before, size + 1);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        text[--size] = '\0';
    if (size == 0 || size > AUTH_BROKER_TOKEN_MAX) {
        config_fault_add(faults, false, file->line,
                         "identity.token: %s has %zu bytes; write the path of a broker's token, which has 1 to %u "
                         "(hobnob token mint makes one)",
                         file->path, size, AUTH_BROKER_TOKEN_MAX);
        free(text);
        return;
    }
    identity->token = text;
    identity->token_size = size;
    struct auth_claims claims;
    char reason[160];
    if (auth_token_decode(text, size, &claims, reason) != AUTH_OK) return; /* check_token() says why */
    identity->token_from_s = claims.not_before_s != 0 ? claims.not_before_s : claims.issued_at_s;
    identity->token_ends_s = claims.expires_at_s;
    auth_claims_deinit(&claims);
}

/* Said first, since with a token that was taken from another broker's folder nothing else fits either. */
static bool token_names_another(const struct identity *identity, const struct config *config, char fault[],
                                size_t size) {
    struct auth_claims claims;
    char reason[160];
    if (config->name == NULL || auth_token_decode(identity->token, identity->token_size, &claims, reason) != AUTH_OK)
        return false;
    const bool another = strcmp(claims.subject, config->name) != 0;
    if (another)
        snprintf(fault, size, "it is for %.64s and this broker's name is %s: write name: %.64s, or mint a token for %s",
                 claims.subject, config->name, claims.subject, config->name);
    auth_claims_deinit(&claims);
    return another;
}

/* What a peer will find when we show it. Needs all parts; a part that is missing has its own fault already. */
static void check_token(struct identity *identity, const struct config *config, bool is_error, int64_t wall_s,
                        struct config_faults *faults) {
    if (identity->token == NULL || identity->key == NULL || identity->issuer_count == 0) return;
    const struct auth_trust trust = {.key = identity->key,
                                     .issuers = (const struct auth_key *const *)identity->issuers,
                                     .issuer_count = identity->issuer_count,
                                     .wall_s = wall_s};
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    struct auth_verdict verdict;
    auth_key_thumbprint(identity->key, thumbprint);
    auth_trust_check(&trust, thumbprint, identity->token, identity->token_size, &verdict);
    if (!token_names_another(identity, config, identity->token_fault, sizeof(identity->token_fault))) {
        if (verdict.allowed) return;
        snprintf(identity->token_fault, sizeof(identity->token_fault), "%s", verdict.reason);
    }
    if (is_error)
        config_fault_add(faults, false, config->identity.token.line, "identity.token: %s", identity->token_fault);
}

void identity_read(struct identity *identity, const struct config *config, bool token_is_error, int64_t wall_s,
                   struct config_faults *faults) {
    *identity = (struct identity){0};
    read_key(identity, config, faults);
    read_issuers(identity, config, faults);
    read_ring(identity, config, faults);
    read_token(identity, config, faults);
    check_token(identity, config, token_is_error, wall_s, faults);
    config_faults_sort(faults);
}

void identity_deinit(struct identity *identity) {
    auth_key_free(identity->key);
    for (size_t i = 0; i < identity->issuer_count; i++)
        auth_key_free(identity->issuers[i]);
    free(identity->token);
    *identity = (struct identity){0};
}
