/* What outlives a run: one SQLite file, DATA_DIR/hobnob.db. Today it holds the epoch.
 *
 * Only one process may have it open. Calls block for a disk's write: they happen at the start, and once in a blue moon
 * after.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_ERROR_MAX 400u
#define STORE_SCHEMA_VERSION 1 /* PRAGMA user_version; a newer one is refused */

struct store;

/* Makes the folder (mode 0700) and the file if they are missing. data_dir NULL: in memory. NULL on failure, and then
 * error is one line with the remedy. */
struct store *store_open(const char *data_dir, char error[STORE_ERROR_MAX]);
void store_close(struct store *store);

/* The epoch of this run: one more than that of any run before, on the disk before this returns. False and an error as
 * above. */
bool store_raise_epoch(struct store *store, uint64_t *epoch, char error[STORE_ERROR_MAX]);
/* Keeps an epoch; a lower one than is kept changes nothing. */
bool store_save_epoch(struct store *store, uint64_t epoch, char error[STORE_ERROR_MAX]);

#endif
