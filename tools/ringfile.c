#include "ringfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "files.h"

bool ringfile_read_text(const char *path, char text[AUTH_SIGNED_RING_MAX + 1], struct auth_signed_ring *ring) {
    char *file = NULL, reason[160] = "";
    size_t size = 0, ring_size = 0;
    if (!file_read(path, &file, &size)) return false;
    const char *begin = auth_signed_ring_in(file, size, &ring_size);
    bool good = false;
    if (begin == NULL)
        complain("%s: is no signed key ring; make one with hobnob key rotate", path);
    else if (auth_signed_ring_read(begin, ring_size, ring, reason) != AUTH_OK)
        complain("%s: %s", path, reason);
    else
        good = true;
    if (good) {
        memcpy(text, begin, ring_size);
        text[ring_size] = '\0';
    }
    explicit_bzero(file, size);
    free(file);
    return good;
}

bool ringfile_read(const char *path, struct auth_signed_ring *ring) {
    char text[AUTH_SIGNED_RING_MAX + 1];
    bool good = ringfile_read_text(path, text, ring);
    explicit_bzero(text, sizeof text);
    return good;
}

static bool read_keys(const char *path, const char *file, size_t size, struct auth_signed_ring *ring) {
    struct auth_ring keys;
    enum auth_result result = auth_ring_parse(file, size, &keys);
    if (result != AUTH_OK) {
        complain("%s: %s", path,
                 result == AUTH_NO_MEMORY
                     ? "memory is short; try again"
                     : "holds neither gossip keys nor a key ring; name gossip.key, or the ring that was made last");
        return false;
    }
    *ring = (struct auth_signed_ring){.count = keys.count};
    for (size_t i = 0; i < keys.count; i++) {
        memcpy(ring->keys[i].id, keys.keys[i].id, sizeof keys.keys[i].id);
        memcpy(ring->keys[i].key, keys.keys[i].key, sizeof keys.keys[i].key);
        ring->keys[i].stage = i == 0 ? AUTH_KEY_SEND : AUTH_KEY_OLD;
    }
    explicit_bzero(&keys, sizeof keys);
    return true;
}

bool ringfile_read_any(const char *path, struct auth_signed_ring *ring) {
    char *file = NULL, reason[160] = "";
    size_t size = 0, ring_size = 0;
    if (!file_read(path, &file, &size)) return false;
    const char *begin = auth_signed_ring_in(file, size, &ring_size);
    bool good = begin != NULL ? auth_signed_ring_read(begin, ring_size, ring, reason) == AUTH_OK
                              : read_keys(path, file, size, ring);
    if (begin != NULL && !good) complain("%s: %s", path, reason);
    explicit_bzero(file, size);
    free(file);
    return good;
}

const char *ringfile_stage(enum auth_key_stage stage) {
    static const char *const words[] = {[AUTH_KEY_ACCEPT] = "accept", [AUTH_KEY_SEND] = "send", [AUTH_KEY_OLD] = "old"};
    return words[stage];
}

const char *ringfile_meaning(const struct auth_signed_ring *ring) {
    bool old = false;
    for (size_t i = 0; i < ring->count; i++) {
        if (ring->keys[i].stage == AUTH_KEY_ACCEPT)
            return "step 1 of 3: a new key is accepted everywhere, and the old one goes on sealing";
        old |= ring->keys[i].stage == AUTH_KEY_OLD;
    }
    return old ? "step 2 of 3: the new key seals, and the old one is still accepted"
               : "step 3 of 3: one key, and no other is accepted";
}

struct ringfile_mark ringfile_mark(const struct auth_signed_ring *ring) {
    struct ringfile_mark mark;
    snprintf(mark.text, sizeof mark.text, "%02x%02x%02x%02x", ring->digest[0], ring->digest[1], ring->digest[2],
             ring->digest[3]);
    return mark;
}

bool ringfile_write(const char *path, const struct auth_signed_ring *ring, const char *text) {
    char file[AUTH_SIGNED_RING_MAX + 400];
    snprintf(file, sizeof file,
             "# Gossip key ring %llu of federation %s, mark %s. Secret: whoever has it can read the gossip.\n"
             "# %s.\n%s",
             (unsigned long long)ring->number, ring->federation, ringfile_mark(ring).text, ringfile_meaning(ring),
             text);
    bool good = file_write_new(path, file, 0600);
    explicit_bzero(file, sizeof file);
    return good;
}
