/* Inside daemon/store*.c. Not a door. */
#ifndef DAEMON_STORE_INSIDE_H
#define DAEMON_STORE_INSIDE_H

#include <sqlite3.h>

#include "broker/broker.h"
#include "broker/record.h"
#include "daemon/store.h"

enum store_statement {
    STORE_RESET_SESSIONS, /* ten of them, in this order */
    STORE_RESET_SUBSCRIPTIONS,
    STORE_RESET_MESSAGES,
    STORE_RESET_QUEUED,
    STORE_RESET_RECEIVED,
    STORE_RESET_RETAINED,
    STORE_RESET_TAKEN,
    STORE_RESET_PEERS,
    STORE_RESET_JOINS,
    STORE_RESET_OUTBOX,
    STORE_SESSION,
    STORE_SESSION_END, /* four of them, in this order */
    STORE_SESSION_END_SUBSCRIPTIONS,
    STORE_SESSION_END_QUEUED,
    STORE_SESSION_END_RECEIVED,
    STORE_SUBSCRIPTION,
    STORE_SUBSCRIPTION_END,
    STORE_MESSAGE,
    STORE_MESSAGE_END,
    STORE_QUEUED,
    STORE_SENT,
    STORE_RELEASED,
    STORE_DONE,
    STORE_RECEIVED,
    STORE_RECEIVED_END,
    STORE_RETAINED,
    STORE_RETAINED_END,
    STORE_TAKEN,
    STORE_TAKEN_END,
    STORE_PEER,
    STORE_PEER_END, /* three of them, in this order */
    STORE_PEER_END_JOINS,
    STORE_PEER_END_OUTBOX,
    STORE_JOIN,
    STORE_JOIN_END,
    STORE_OUTBOX,
    STORE_OUTBOX_END,
    STORE_NUMBER, /* ?1 name, ?2 value */
    STORE_NUMBER_RAISE,
    STORE_BEGIN,
    STORE_COMMIT,
};
#define STORE_STATEMENTS (STORE_COMMIT + 1)

/* One SQLite connection. Used by one thread at a time. */
struct store_connection {
    sqlite3 *database;
    sqlite3_stmt *statements[STORE_STATEMENTS]; /* prepared when first used */
    int wal_pages;                              /* of the write-ahead log, after the last commit */
};

struct store_thread;

struct store {
    char *dir;
    enum store_sync sync;
    uint64_t run;                       /* epoch with which this run began */
    struct store_connection connection; /* the thread's own while it runs */
    struct store_thread *thread;        /* NULL before store_start() */
    uint64_t retry_ms;                  /* between attempts while the disk fails; before store_start() */
    uint64_t hangs_ms;                  /* that an attempt may last; longer is failing. Before store_start() */
    bool abandoned;                     /* the thread hangs in the disk: nothing may be freed */
};

#define STORE_PAGE 4096u
#define STORE_NUMBER_MAX (UINT64_C(1) << 62) /* no number ever comes this far: one that has is damage */
#define STORE_WAL_PAGES 4096                 /* of the write-ahead log, 16 MiB; then it is put into the file */

/* ---- store.c: connections; results are SQLite's ---- */

/* Opens the file, locks it, and brings its schema to the present version. */
bool store_connect(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]);
void store_disconnect(struct store_connection *connection);
/* One line that says what the result of this connection means, and what to do. */
void store_explain(const struct store *store, const struct store_connection *connection, int result,
                   char error[STORE_ERROR_MAX]);
/* The value of a row of the table numbers, 0 if there is none. */
int store_read_number(struct store_connection *connection, const char *name, uint64_t *value);

/* False, and says so, for a write-ahead log without its file: SQLite would take the file for a new one, and delete the
 * log. */
bool store_check_log(const struct store *store, char error[STORE_ERROR_MAX]);

/* ---- store_schema.c ---- */

/* Whether the file may be touched at all: it is new, or ours and of a version that we know. */
bool store_check_origin(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]);
/* The file of a known version, read whole, changes nothing. *present: its tables are those of the present version. */
bool store_check_content(const struct store *store, struct store_connection *connection, bool *present,
                         char error[STORE_ERROR_MAX]);
/* The checked file, brought to the present version. */
bool store_prepare_schema(const struct store *store, struct store_connection *connection, char error[STORE_ERROR_MAX]);

/* ---- store_load.c ---- */

/* All records, and the highest number among them. */
int store_read_records(struct store_connection *connection, store_on_record *on_record, void *context,
                       uint64_t *highest);

/* ---- store_batch.c: what a batch need not write ---- */

struct store_plan_entry {
    uint64_t number; /* of the message, or position; 0 for a free slot */
    bool queued;     /* which of the two */
    bool begins, ends;
    bool released;
    uint16_t packet_id; /* 0: not sent */
};

/* What of a peer's outbox ends in the batch. */
struct store_plan_outbox {
    uint8_t peer[16];
    uint64_t first, below; /* sequences */
};
enum { STORE_PLAN_OUTBOXES = 16 };

/* What becomes of messages and queued publications within one batch. Positions are never used twice, so a key stands
 * for one thing; so are the sequences of an outbox. */
struct store_plan {
    struct store_plan_entry *entries; /* NULL when memory was short: everything is written as it comes */
    size_t mask;                      /* of the table's size, a power of two */
    struct store_plan_outbox outboxes[STORE_PLAN_OUTBOXES]; /* of more peers everything is written */
    size_t outbox_count;
    uint64_t highest; /* of all numbers seen */
    size_t records;
};

/* Reads all records; false if the bytes are no records. */
bool store_plan_make(struct store_plan *plan, const struct broker_span *batch, size_t count);
void store_plan_deinit(struct store_plan *plan);
/* The present state of this record's message or position after the batch; NULL if the plan does not know it. */
const struct store_plan_entry *store_plan_find(const struct store_plan *plan, const struct record *record);
/* True if the record need not be written; may complete a record of RECORD_QUEUED with what comes after it. */
bool store_plan_saves(struct store_plan *plan, struct record *record);

/* The last RECORD_RESET of the batch: where what counts begins. False if there is none. */
bool store_find_reset(const struct broker_span *batch, size_t count, size_t *span, size_t *offset);

/* ---- store_apply.c ---- */

/* Written with each batch: whose it is, the number of its last record, the epoch to be kept, and the time by the clock
 * that the records go by. */
struct store_numbers {
    uint64_t run, last, epoch, wall_ms;
};

struct store_applied {
    uint64_t records, saved;
};

/* One transaction. SQLITE_OK if it was committed; else it was not, or is in doubt (then the numbers in the file tell,
 * read on a fresh connection). STORE_UNSOUND if the bytes are no records. */
#define STORE_UNSOUND SQLITE_MISMATCH
int store_apply(struct store_connection *connection, const struct broker_span *batch, size_t count,
                const struct store_numbers *numbers, struct store_applied *applied);
/* SQLITE_CORRUPT if the tables are not those that the records need. */
int store_check_tables(struct store_connection *connection);
/* Puts the write-ahead log into the file (mode: SQLITE_CHECKPOINT_PASSIVE; _TRUNCATE empties its file too). */
int store_checkpoint(struct store_connection *connection, int mode);

/* ---- store_thread.c ---- */

/* Frees what store_start() made; the thread has ended. */
void store_thread_free(struct store *store);

#endif
