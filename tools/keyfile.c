#include "keyfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "files.h"

static const char *key_remedy(enum auth_result result, const char *text) {
    if (result == AUTH_NO_MEMORY) return "memory is short; try again";
    if (strstr(text, "ENCRYPTED") != NULL) return "is locked with a password; decrypt it first with openssl pkey";
    if (strstr(text, "-----BEGIN") == NULL) return "is not a PEM file; make a key with hobnob key new";
    return "is not a P-256 key in PEM; make one with hobnob key new";
}

bool keyfile_read(const char *path, bool private_needed, struct auth_key **key) {
    char *text = NULL;
    size_t size = 0;
    if (!file_read(path, &text, &size)) return false;
    enum auth_result result = auth_key_parse(text, size, key);
    if (result != AUTH_OK) complain("%s: %s", path, key_remedy(result, text));
    explicit_bzero(text, size);
    free(text);
    if (result != AUTH_OK) return false;
    if (!private_needed || auth_key_is_private(*key)) return true;
    complain("%s: is a public key and cannot sign; name the .key file", path);
    auth_key_free(*key);
    *key = NULL;
    return false;
}

bool keyfile_make(struct auth_key **key) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    if (!random_bytes(entropy, sizeof entropy)) return false;
    enum auth_result result = auth_key_new(entropy, key);
    explicit_bzero(entropy, sizeof entropy);
    if (result != AUTH_OK) complain("key: memory is short; try again");
    return result == AUTH_OK;
}

bool keyfile_write(const struct auth_key *key, const char *private_path, const char *public_path) {
    char *private_pem = NULL, *public_pem = NULL;
    bool good = auth_key_private_pem(key, &private_pem) == AUTH_OK && auth_key_public_pem(key, &public_pem) == AUTH_OK;
    if (!good) complain("key: memory is short; try again");
    if (good && private_path != NULL) good = file_write_new(private_path, private_pem, 0600);
    if (good && public_path != NULL) good = file_write_new(public_path, public_pem, 0644);
    if (private_pem != NULL) explicit_bzero(private_pem, strlen(private_pem));
    free(private_pem);
    free(public_pem);
    return good;
}

bool keyfile_gossip_text(char text[192]) {
    uint8_t key[32];
    char line[48];
    if (!random_bytes(key, sizeof key)) return false;
    auth_ring_line(key, line);
    snprintf(text, 192,
             "# Seals the gossip: the same file at every broker. hobnob key rotate changes it while they run\n%s",
             line);
    explicit_bzero(key, sizeof key);
    explicit_bzero(line, sizeof line);
    return true;
}

void keyfile_thumbprint(const struct auth_key *key, char text[44]) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    auth_key_thumbprint(key, thumbprint);
    auth_base64url_encode(thumbprint, sizeof thumbprint, text);
}
