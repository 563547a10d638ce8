#include "tests/sim/disk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

/* Rows are found and sorted by their keys: type, session, number (big endian, so that bytes sort as numbers), peer if
 * it is of one, text. */
#define KEY_HEAD 17u

struct row {
    UT_hash_handle hh;
    struct record_buffer bytes; /* the record that tells it */
    size_t key_size;
    uint8_t key[];
};

struct disk {
    struct row *rows;
    uint64_t highest;
    char fault[DISK_WHY]; /* the first one */
};

struct disk *disk_new(void) {
    struct disk *disk = calloc(1, sizeof *disk);
    assert(disk != NULL);
    return disk;
}

static void remove_row(struct disk *disk, struct row *row) {
    HASH_DEL(disk->rows, row);
    free(row->bytes.bytes);
    free(row);
}

static void remove_all(struct disk *disk) {
    struct row *row, *next;
    HASH_ITER(hh, disk->rows, row, next) {
        remove_row(disk, row);
    }
}

void disk_free(struct disk *disk) {
    if (disk == NULL) return;
    remove_all(disk);
    free(disk);
}

static void big_endian(uint8_t *out, uint64_t value) {
    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
}

/* The key of the row of this type that the record speaks of. */
static size_t make_key(uint8_t **key, enum record_type type, const struct record *record) {
    struct record_text text = {0};
    uint64_t session = 0, number = 0;
    if (type == RECORD_SESSION || type == RECORD_SUBSCRIPTION || type == RECORD_QUEUED || type == RECORD_RECEIVED)
        session = record->session;
    if (type == RECORD_MESSAGE) number = record->message;
    if (type == RECORD_QUEUED) number = record->position;
    if (type == RECORD_RECEIVED) number = record->packet_id;
    if (type == RECORD_SUBSCRIPTION || type == RECORD_JOIN) text = record->filter;
    if (type == RECORD_RETAINED) text = record->publication.topic;
    size_t peer = type >= RECORD_TAKEN ? sizeof record->peer : 0;
    if (type == RECORD_OUTBOX) number = record->sequence;
    *key = malloc(KEY_HEAD + peer + text.size);
    assert(*key != NULL);
    (*key)[0] = (uint8_t)type;
    big_endian(*key + 1, session);
    big_endian(*key + 9, number);
    memcpy(*key + KEY_HEAD, record->peer, peer);
    if (text.size > 0) memcpy(*key + KEY_HEAD + peer, text.bytes, text.size);
    return KEY_HEAD + peer + text.size;
}

static struct row *find(const struct disk *disk, enum record_type type, const struct record *record) {
    struct row *row;
    uint8_t *key;
    size_t size = make_key(&key, type, record);
    HASH_FIND(hh, disk->rows, key, size, row);
    free(key);
    return row;
}

static void fill(struct row *row, const struct record *record) {
    row->bytes.size = 0;
    int result = record_write(&row->bytes, record);
    assert(result == 0);
}

static struct record read_row(const struct row *row) {
    struct record record;
    size_t size = record_read(row->bytes.bytes, row->bytes.size, &record);
    assert(size == row->bytes.size);
    return record;
}

static void put(struct disk *disk, const struct record *record) {
    struct row *row = find(disk, record->type, record);
    if (row == NULL) {
        uint8_t *key;
        size_t size = make_key(&key, record->type, record);
        row = calloc(1, sizeof *row + size);
        assert(row != NULL);
        memcpy(row->key, key, size);
        row->key_size = size;
        free(key);
        HASH_ADD_KEYPTR(hh, disk->rows, row->key, row->key_size, row);
    }
    fill(row, record);
}

static void fault(struct disk *disk, const char *what, const struct record *record) {
    if (disk->fault[0] != '\0') return;
    snprintf(disk->fault, sizeof disk->fault, "%s: type %d, session %llu, message %llu, position %llu, packet id %u",
             what, record->type, (unsigned long long)record->session, (unsigned long long)record->message,
             (unsigned long long)record->position, record->packet_id);
}

static void end(struct disk *disk, enum record_type type, const struct record *record) {
    struct row *row = find(disk, type, record);
    if (row == NULL)
        fault(disk, "the end of what is not there", record);
    else
        remove_row(disk, row);
}

static void end_session(struct disk *disk, const struct record *record) {
    struct row *row, *next;
    uint8_t session[8];
    big_endian(session, record->session);
    end(disk, RECORD_SESSION, record);
    HASH_ITER(hh, disk->rows, row, next) {
        if (row->key[0] != RECORD_MESSAGE && row->key[0] < RECORD_RETAINED && memcmp(row->key + 1, session, 8) == 0)
            remove_row(disk, row);
    }
}

static void change_queued(struct disk *disk, const struct record *record) {
    struct row *row = find(disk, RECORD_QUEUED, record);
    if (row == NULL) {
        fault(disk, "a change of what is not there", record);
        return;
    }
    struct row copy = {.bytes = {0}};
    struct record queued = read_row(row);
    if (record->type == RECORD_SENT) {
        queued.packet_id = record->packet_id;
    } else {
        queued.released = true;
        queued.message = 0;
    }
    fill(&copy, &queued);
    free(row->bytes.bytes);
    row->bytes = copy.bytes;
}

static void put_of_peer(struct disk *disk, const struct record *record) {
    if (find(disk, RECORD_PEER, record) == NULL) fault(disk, "of a peer that is not there", record);
    struct row *row = record->type == RECORD_OUTBOX ? find(disk, RECORD_OUTBOX, record) : NULL;
    if (row != NULL && read_row(row).message != record->message) /* the same is for fewer there than before */
        fault(disk, "a sequence for another message", record);
    put(disk, record);
}

static void end_outbox(struct disk *disk, const struct record *record) {
    struct record one = *record;
    size_t ended = 0;
    for (; one.sequence < record->below; one.sequence++) {
        struct row *row = find(disk, RECORD_OUTBOX, &one);
        if (row == NULL) continue;
        remove_row(disk, row);
        ended++;
    }
    if (ended == 0) fault(disk, "the end of what does not wait", record);
}

static void end_peer(struct disk *disk, const struct record *record) {
    struct row *row, *next;
    end(disk, RECORD_PEER, record);
    HASH_ITER(hh, disk->rows, row, next) {
        if ((row->key[0] == RECORD_JOIN || row->key[0] == RECORD_OUTBOX) &&
            memcmp(row->key + KEY_HEAD, record->peer, sizeof record->peer) == 0)
            fault(disk, "the end of a peer that holds something", record);
    }
}

static void apply(struct disk *disk, const struct record *record) {
    if (record->session > disk->highest) disk->highest = record->session;
    if (record->message > disk->highest) disk->highest = record->message;
    if (record->position > disk->highest) disk->highest = record->position;
    switch (record->type) {
    case RECORD_RESET: remove_all(disk); break;
    case RECORD_SESSION:
    case RECORD_SUBSCRIPTION:
    case RECORD_MESSAGE:
    case RECORD_QUEUED:
    case RECORD_RECEIVED:
    case RECORD_RETAINED:
    case RECORD_TAKEN:
    case RECORD_PEER: put(disk, record); break;
    case RECORD_JOIN:
    case RECORD_OUTBOX: put_of_peer(disk, record); break;
    case RECORD_SESSION_END: end_session(disk, record); break;
    case RECORD_SUBSCRIPTION_END: end(disk, RECORD_SUBSCRIPTION, record); break;
    case RECORD_MESSAGE_END: end(disk, RECORD_MESSAGE, record); break;
    case RECORD_SENT:
    case RECORD_RELEASED: change_queued(disk, record); break;
    case RECORD_DONE: end(disk, RECORD_QUEUED, record); break;
    case RECORD_RECEIVED_END: end(disk, RECORD_RECEIVED, record); break;
    case RECORD_RETAINED_END: end(disk, RECORD_RETAINED, record); break;
    case RECORD_TAKEN_END: end(disk, RECORD_TAKEN, record); break;
    case RECORD_PEER_END: end_peer(disk, record); break;
    case RECORD_JOIN_END: end(disk, RECORD_JOIN, record); break;
    case RECORD_OUTBOX_END: end_outbox(disk, record); break;
    }
}

/* ---- what must hold after each transaction ---- */

static void check_holders(struct disk *disk) {
    struct row *row, *next;
    size_t messages = 0;
    struct held {
        UT_hash_handle hh;
        uint64_t message;
    } *held = NULL, *one, *other;
    HASH_ITER(hh, disk->rows, row, next) {
        struct record record = read_row(row);
        if (record.type == RECORD_MESSAGE) messages++;
        if (record.session != 0 && find(disk, RECORD_SESSION, &record) == NULL)
            fault(disk, "held by no session", &record);
        if (record.type != RECORD_OUTBOX && (record.type != RECORD_QUEUED || record.released)) continue;
        if (find(disk, RECORD_MESSAGE, &record) == NULL) fault(disk, "queued without its message", &record);
        HASH_FIND(hh, held, &record.message, sizeof record.message, one);
        if (one != NULL) continue;
        one = calloc(1, sizeof *one);
        assert(one != NULL);
        one->message = record.message;
        HASH_ADD(hh, held, message, sizeof one->message, one);
    }
    if (messages != HASH_COUNT(held) && disk->fault[0] == '\0')
        snprintf(disk->fault, sizeof disk->fault, "%zu messages for %u that are queued", messages, HASH_COUNT(held));
    HASH_ITER(hh, held, one, other) {
        HASH_DEL(held, one);
        free(one);
    }
}

void disk_commit(struct disk *disk, const uint8_t *bytes, size_t size) {
    struct record record;
    for (size_t at = 0; at < size;) {
        size_t taken = record_read(bytes + at, size - at, &record);
        assert(taken > 0);
        at += taken;
        apply(disk, &record);
    }
    check_holders(disk);
}

/* ---- reading ---- */

static int compare(const void *a, const void *b) {
    const struct row *const left = *(struct row *const *)a, *const right = *(struct row *const *)b;
    size_t size = left->key_size < right->key_size ? left->key_size : right->key_size;
    int order = memcmp(left->key, right->key, size);
    return order != 0 ? order : (left->key_size > right->key_size) - (left->key_size < right->key_size);
}

uint64_t disk_read(const struct disk *disk, disk_on_record *on_record, void *context) {
    size_t count = HASH_COUNT(disk->rows), at = 0;
    struct row **sorted = calloc(count + 1, sizeof *sorted), *row, *next;
    assert(sorted != NULL);
    HASH_ITER(hh, disk->rows, row, next) {
        sorted[at++] = row;
    }
    qsort(sorted, count, sizeof *sorted, compare);
    for (at = 0; at < count; at++) {
        struct record record = read_row(sorted[at]);
        on_record(context, &record);
    }
    free(sorted);
    return disk->highest + 1;
}

size_t disk_count(const struct disk *disk, enum record_type type) {
    size_t count = 0;
    struct row *row, *next;
    HASH_ITER(hh, disk->rows, row, next) {
        count += row->key[0] == type;
    }
    return count;
}

bool disk_is_sound(const struct disk *disk, char why[DISK_WHY]) {
    memcpy(why, disk->fault, sizeof disk->fault);
    return disk->fault[0] == '\0';
}
