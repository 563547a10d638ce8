/* Files of the gossip keys: a key ring that was signed, or the plain keys that a federation began with. */
#ifndef TOOLS_RINGFILE_H
#define TOOLS_RINGFILE_H

#include <stdbool.h>

#include "auth/signed_ring.h"

/* A signed ring; its signature is not checked. False after a complaint. */
bool ringfile_read(const char *path, struct auth_signed_ring *ring);
/* The same with its text, at most AUTH_SIGNED_RING_MAX bytes and a final zero. */
bool ringfile_read_text(const char *path, char text[AUTH_SIGNED_RING_MAX + 1], struct auth_signed_ring *ring);
/* Either: plain keys are ring 0 of no federation yet, of which the first key seals and the others are old. */
bool ringfile_read_any(const char *path, struct auth_signed_ring *ring);
/* A file with comments that say what it is; mode 0600, and it must not exist. */
bool ringfile_write(const char *path, const struct auth_signed_ring *ring, const char *text);

/* "send", "accept", "old". */
const char *ringfile_stage(enum auth_key_stage stage);
/* What a ring means to brokers, in a sentence without a full stop. */
const char *ringfile_meaning(const struct auth_signed_ring *ring);
/* The first bytes of its digest, by which people tell rings of one number apart. */
struct ringfile_mark {
    char text[9];
};
struct ringfile_mark ringfile_mark(const struct auth_signed_ring *ring);

#endif
