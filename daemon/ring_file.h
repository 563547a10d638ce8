/* Gossip key rings as files: the one that is used is kept as DATA_DIR/gossip.ring, and an admin may leave a new one in
 * DATA_DIR/inbox. These block for the disk: at the start, or in libuv's pool. */
#ifndef DAEMON_RING_FILE_H
#define DAEMON_RING_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/signed_ring.h"

#define RING_FILE_MAX 2048u      /* bytes, comments before the ring included */
#define RING_FILE_ERROR_MAX 400u /* of a line that names cause and remedy */
#define RING_INBOX_FILES_MAX 8u  /* looked at at once */
#define RING_INBOX_REFUSED ".refused"

/* The ring that was kept: its text goes to text with a final zero. RING_FILE_NONE: there is none. RING_FILE_BAD: error
 * says why it cannot be used. Its signature is not checked. */
enum ring_file_result { RING_FILE_OK, RING_FILE_NONE, RING_FILE_BAD };
enum ring_file_result ring_file_read_kept(const char *data_dir, struct auth_signed_ring *ring,
                                          char text[AUTH_SIGNED_RING_MAX + 1], char error[RING_FILE_ERROR_MAX]);
/* Keeps this text in its place, on the disk before it returns; whatever happens, there is a whole file. */
bool ring_file_keep(const char *data_dir, const char *text, size_t size, char error[RING_FILE_ERROR_MAX]);

/* A file in the inbox. */
struct ring_inbox_file {
    char name[256];
    uint64_t inode, size;
    int64_t changed_ns; /* by the file system's clock: for comparing only */
    bool read;          /* text holds all of it; else error says why not */
    char text[RING_FILE_MAX + 1];
    char error[RING_FILE_ERROR_MAX];
};
/* The files there now, made if it is missing; those that begin with a dot or end in .refused are passed over. */
size_t ring_inbox_read(const char *data_dir, struct ring_inbox_file files[RING_INBOX_FILES_MAX]);
/* Takes it away, or, with its name kept, aside. */
void ring_inbox_remove(const char *data_dir, const struct ring_inbox_file *file);
void ring_inbox_refuse(const char *data_dir, const struct ring_inbox_file *file);

#endif
