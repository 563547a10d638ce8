/* For tests of daemon/store*.c: a folder of its own for each test, journals by hand, and what a file holds as text. */
#ifndef UNIT_STORE_FIXTURE_H
#define UNIT_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "daemon/store_inside.h"

static char fixture_dir[64], fixture_data[96], fixture_file[128];
static char error[STORE_ERROR_MAX];

static inline int fixture_make(void **state) {
    (void)state;
    error[0] = '\0';
    /* Nothing here needs a disk that is slow to sync. */
    strcpy(fixture_dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/hobnob-store-XXXXXX" : "/tmp/hobnob-store-XXXXXX");
    if (mkdtemp(fixture_dir) == NULL) return -1;
    snprintf(fixture_data, sizeof(fixture_data), "%s/data", fixture_dir);
    snprintf(fixture_file, sizeof(fixture_file), "%s/hobnob.db", fixture_data);
    return 0;
}

static inline int fixture_remove(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", fixture_dir);
    return system(command);
}

#define ON_DISK(test) cmocka_unit_test_setup_teardown(test, fixture_make, fixture_remove)

static inline struct store *fixture_open(enum store_sync sync, uint64_t *epoch) {
    uint64_t own;
    struct store *store = store_open(fixture_data, sync, error);
    assert_string_equal(error, "");
    assert_non_null(store);
    assert_true(store_raise_epoch(store, epoch != NULL ? epoch : &own, error));
    return store;
}

/* A copy of the folder, as a crash at this moment leaves it behind. */
static inline void fixture_copy(const char *to) {
    char command[512];
    snprintf(command, sizeof(command), "cp -r %s %s", fixture_data, to);
    assert_int_equal(system(command), 0);
}

/* ---- journals ---- */

static inline struct record_text fixture_text(const char *text) {
    return (struct record_text){text, strlen(text)};
}

struct fixture_journal {
    struct record_buffer buffer;
    uint64_t last, wall_ms;
};

static inline void fixture_write(struct fixture_journal *journal, const struct record *record) {
    assert_int_equal(record_write(&journal->buffer, record), 0);
    journal->last++;
}
#define WRITE(journal, ...) fixture_write((journal), &(struct record){__VA_ARGS__})

/* What was written since the last call, for store_give(). */
static inline struct broker_journal fixture_take(struct fixture_journal *journal) {
    struct broker_journal taken = {.bytes = journal->buffer.bytes,
                                   .size = journal->buffer.size,
                                   .last = journal->last,
                                   .wall_ms = journal->wall_ms};
    journal->buffer = (struct record_buffer){0};
    return taken;
}

/* ---- what a file holds ---- */

struct fixture_dump {
    char *text;
    size_t size;
    FILE *stream;
    uint64_t first_number;
};

static inline void fixture_print_text(FILE *out, const char *name, struct record_text text) {
    fprintf(out, " %s=", name);
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char byte = ((const unsigned char *)text.bytes)[i];
        fprintf(out, byte > 32 && byte < 127 ? "%c" : "\\%02x", byte);
    }
}

static inline void fixture_print_publication(FILE *out, const struct record_publication *publication) {
    fixture_print_text(out, "topic", publication->topic);
    fixture_print_text(out, "payload", publication->payload);
    fixture_print_text(out, "properties", publication->properties);
    fprintf(out, " qos=%u retain=%d expires=%llu stamp=%llu/%u/%02x%02x", publication->qos, publication->retain,
            (unsigned long long)publication->expires_wall_ms, (unsigned long long)publication->stamp_wall_ms,
            publication->stamp_count, publication->stamp_origin[0], publication->stamp_origin[15]);
}

/* A line with all fields, whatever the type. */
static inline void fixture_print(void *context, const struct record *record) {
    FILE *out = ((struct fixture_dump *)context)->stream;
    fprintf(out, "%d s=%llu m=%llu p=%llu", record->type, (unsigned long long)record->session,
            (unsigned long long)record->message, (unsigned long long)record->position);
    fixture_print_text(out, "client", record->client_id);
    fixture_print_text(out, "user", record->user_name);
    fprintf(out, " expiry=%u ends=%llu will=%d/%u/%llu/%llu", record->expiry_s,
            (unsigned long long)record->ends_wall_ms, record->has_will, record->will_delay_s,
            (unsigned long long)record->will_expiry_s, (unsigned long long)record->will_due_wall_ms);
    fixture_print_publication(out, &record->will);
    fixture_print_text(out, "filter", record->filter);
    fprintf(out, " options=%u id=%u", record->options, record->identifier);
    fixture_print_publication(out, &record->publication);
    fprintf(out, " publisher=%llu qos=%u retain=%d released=%d pid=%u", (unsigned long long)record->publisher,
            record->qos, record->retain, record->released, record->packet_id);
    fixture_print_text(out, "ids", record->identifiers);
    fixture_print_text(out, "peer", (struct record_text){record->peer, sizeof(record->peer)});
    fprintf(out, " peer_epoch=%llu stream=%llu expected=%llu", (unsigned long long)record->peer_epoch,
            (unsigned long long)record->stream, (unsigned long long)record->expected);
    fixture_print_text(out, "peer_name", record->peer_name);
    fprintf(out, " reserved=%llu level=%u sequence=%llu below=%llu", (unsigned long long)record->reserved,
            record->level, (unsigned long long)record->sequence, (unsigned long long)record->below);
    fputc('\n', out);
}

/* All records of the store, a line each, for free(). */
static inline char *fixture_load(struct store *store, uint64_t *first_number) {
    struct fixture_dump dump = {0};
    uint64_t own;
    dump.stream = open_memstream(&dump.text, &dump.size);
    assert_true(store_load(store, fixture_print, &dump, first_number != NULL ? first_number : &own, error));
    fclose(dump.stream);
    return dump.text;
}

/* What the next start would be told. */
static inline char *fixture_reload(uint64_t *first_number) {
    struct store *store = store_open(fixture_data, STORE_SYNC_FULL, error);
    assert_string_equal(error, "");
    char *text = fixture_load(store, first_number);
    store_close(store);
    return text;
}

/* The same as fixture_load, of one record that was never written. */
static inline char *fixture_line(const struct record *record) {
    struct fixture_dump dump = {0};
    dump.stream = open_memstream(&dump.text, &dump.size);
    fixture_print(&dump, record);
    fclose(dump.stream);
    return dump.text;
}

#endif
