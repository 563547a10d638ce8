/* What outlives a run: one SQLite file, DATA_DIR/hobnob.db, with the epoch and all that broker/record.h tells of.
 *
 * At the start (store_open, store_raise_epoch, store_load) calls block for the disk. After store_start() the file
 * belongs to a thread: the loop gives it the broker's journal each turn, it applies all that waits in one transaction
 * (group commit), and says how far it is. While one commit runs the next batch gathers, so a slow disk makes batches
 * larger and not the broker slower.
 *
 * A transaction that fails (full, failing disk) is rolled back and kept, and tried again each second, with a fresh
 * connection if the error may have left the old one in doubt. Nothing given is ever left out silently: if the file is
 * not the one that was written to, the state asks for all of it again (lost).
 *
 * Only one process may have the file open.
 */
#ifndef DAEMON_STORE_H
#define DAEMON_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_ERROR_MAX 400u
#define STORE_SCHEMA_VERSION 5 /* PRAGMA user_version; older ones are migrated, a newer one is refused */

/* When records count as durable. */
enum store_sync {
    STORE_SYNC_FULL,   /* once the disk has said so (fsync): they survive a power cut */
    STORE_SYNC_NORMAL, /* once the system has them: they survive kill -9; a power cut may lose the last moments */
    STORE_SYNC_OFF,    /* at once; commits at least each second: whatever ends the process may lose that second */
};

struct store;
struct record;
struct broker_journal;

/* Makes the folder (mode 0700) and the file if they are missing, checks the file and migrates it. NULL on failure, and
 * then error is one line with the remedy; a damaged file is refused and left as it is. */
struct store *store_open(const char *data_dir, enum store_sync sync, char error[STORE_ERROR_MAX]);
/* Reads the file as store_open() and store_load() do, and says what they would say; nothing is made or changed.
 * STORE_USED: another process has it open, so it is not read. *holder is that process then, 0 if it is not known. */
enum store_inspected { STORE_SOUND, STORE_BAD, STORE_USED };
enum store_inspected store_inspect(const char *data_dir, int *holder, char error[STORE_ERROR_MAX]);

/* Whether the file system that the folder is on is mounted read-only. */
bool store_is_read_only(const char *dir);

/* Stops the thread if it runs (store_stop), and closes the file. NULL is fine. */
void store_close(struct store *store);

/* The epoch of this run: one more than that of any run before, on the disk before this returns. False and an error as
 * above. Before store_start(). */
bool store_raise_epoch(struct store *store, uint64_t *epoch, char error[STORE_ERROR_MAX]);

/* All records in the order that broker_restore() wants; queued ones by session, and within it by position.
 * first_number is larger than every number ever given to this file. What a record points to is borrowed for the call.
 * Before store_start(). */
typedef void store_on_record(void *context, const struct record *record);
bool store_load(struct store *store, store_on_record *on_record, void *context, uint64_t *first_number,
                char error[STORE_ERROR_MAX]);

/* The latest time that came with a journal or store_save_wall(): what is kept was told by a clock that was this far.
 * Before store_start(). */
bool store_read_wall(struct store *store, uint64_t *wall_ms, char error[STORE_ERROR_MAX]);

/* ---- the thread ---- */

/* wake is called from the thread whenever store_read_state() has news; it must only wake its loop (uv_async_send). */
bool store_start(struct store *store, void (*wake)(void *context), void *context, char error[STORE_ERROR_MAX]);

/* Takes the journal's bytes over, to be applied in the order given. The records of one journal are applied in one
 * transaction or not at all; one that begins with RECORD_RESET takes the place of all that waits. Never blocks for the
 * disk. */
void store_give(struct store *store, const struct broker_journal *journal);
/* Keeps an epoch, with the next commit; a lower one than is kept changes nothing. */
void store_save_epoch(struct store *store, uint64_t epoch);

/* Keeps the time, with a commit of its own if there is nothing else to be kept. */
void store_save_wall(struct store *store, uint64_t wall_ms);

enum store_stopped {
    STORE_STOPPED_ALL,     /* all is in the file */
    STORE_STOPPED_SHORT,   /* the disk failed until max_ms were over */
    STORE_STOPPED_HANGING, /* not even a second later the thread is back from the disk; it is left behind, and the store
                              with it */
};
/* Commits all that was given, puts the write-ahead log into the file and ends the thread; the store can then only be
 * closed. */
enum store_stopped store_stop(struct store *store, uint64_t max_ms);

#define STORE_BUCKETS 10u
extern const uint32_t store_bucket_us[STORE_BUCKETS]; /* upper bounds of commit_buckets, rising */

struct store_state {
    uint64_t durable; /* records up to this number are safe, in the sense of store_sync */
    bool failing;     /* cannot write; reason says why and what to do, one line */
    char reason[STORE_ERROR_MAX];
    uint64_t
        losses; /* times at which the file was found not to hold what was given: broker_restart_journal() each time */

    uint64_t commits, records, bytes; /* bytes of journal */
    uint64_t records_saved;           /* of these, not written since what they begin ended in the same commit */
    uint64_t failures;                /* attempts that failed */
    uint64_t pending_bytes;           /* given and not committed */
    uint64_t wal_bytes;               /* of the write-ahead log, after the last commit */
    uint64_t commit_us, commit_us_max;
    uint64_t commit_buckets[STORE_BUCKETS]; /* commits that took at most store_bucket_us, each counted once */
};
void store_read_state(struct store *store, struct store_state *out);

/* "full", "normal", "off"; parse returns false for anything else. */
const char *store_sync_name(enum store_sync sync);
bool store_sync_parse(const char *name, enum store_sync *sync);

#endif
