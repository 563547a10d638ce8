/* Key files: reading with a complaint that helps, and making new ones. */
#ifndef TOOLS_KEYFILE_H
#define TOOLS_KEYFILE_H

#include <stdbool.h>

#include "auth/keys.h"

/* Freed by the caller with auth_key_free(). private_needed: a public key is refused. */
bool keyfile_read(const char *path, bool private_needed, struct auth_key **key);
/* A new pair from the system's randomness. */
bool keyfile_make(struct auth_key **key);
/* Writes the pair, mode 0600, and the public half, mode 0644; either path may be NULL. */
bool keyfile_write(const struct auth_key *key, const char *private_path, const char *public_path);
/* The text of a new gossip key file; cleared by the caller. */
bool keyfile_gossip_text(char text[192]);
/* The thumbprint in base64url. */
void keyfile_thumbprint(const struct auth_key *key, char text[44]);

#endif
