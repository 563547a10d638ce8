/* A store in memory for tests: applies the records of a journal by their contract (broker/record.h), and fails the test
 * where a record does not fit what is there. Its whole content can be compared as text.
 */
#ifndef TESTS_UNIT_MODEL_STORE_H
#define TESTS_UNIT_MODEL_STORE_H

#include "mqtt_client.h"

#include "broker/record.h"

struct row {
    struct record record; /* its views point into bytes */
    uint8_t *bytes;
};

struct model_store {
    struct row *rows; /* in the order they came to be */
    size_t count, capacity;
    uint64_t highest; /* number of a session, message or position */
    uint64_t applied; /* records */
};

HELPER void model_clear(struct model_store *store) {
    for (size_t i = 0; i < store->count; i++)
        free(store->rows[i].bytes);
    store->count = 0;
}

HELPER void model_free(struct model_store *store) {
    model_clear(store);
    free(store->rows);
    *store = (struct model_store){0};
}

/* A copy that owns its bytes. */
HELPER struct row row_of(const struct record *record) {
    struct record_buffer buffer = {0};
    struct row row;

    assert_int_equal(record_write(&buffer, record), 0);
    assert_int_equal(record_read(buffer.bytes, buffer.size, &row.record), buffer.size);
    row.bytes = buffer.bytes;
    return row;
}

HELPER void model_add(struct model_store *store, const struct record *record) {
    if (store->count == store->capacity) {
        store->capacity = store->capacity ? store->capacity * 2 : 16;
        store->rows = realloc(store->rows, store->capacity * sizeof *store->rows);
        assert_non_null(store->rows);
    }
    store->rows[store->count++] = row_of(record);
}

HELPER void model_replace(struct row *row, const struct record *record) {
    struct row fresh = row_of(record);

    free(row->bytes);
    *row = fresh;
}

HELPER void model_remove(struct model_store *store, const struct row *row) {
    size_t at = (size_t)(row - store->rows);

    free(row->bytes);
    memmove(store->rows + at, store->rows + at + 1, (store->count - at - 1) * sizeof *store->rows);
    store->count--;
}

HELPER bool same_bytes(struct record_text a, struct record_text b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

/* The row of that type with the record's key. */
HELPER struct row *model_find(const struct model_store *store, enum record_type type, const struct record *key) {
    for (size_t i = 0; i < store->count; i++) {
        const struct record *record = &store->rows[i].record;
        bool found = record->type == type;
        switch (type) {
        case RECORD_SESSION: found = found && record->session == key->session; break;
        case RECORD_SUBSCRIPTION:
            found = found && record->session == key->session && same_bytes(record->filter, key->filter);
            break;
        case RECORD_MESSAGE: found = found && record->message == key->message; break;
        case RECORD_QUEUED:
            found = found && record->session == key->session && record->position == key->position;
            break;
        case RECORD_RECEIVED:
            found = found && record->session == key->session && record->packet_id == key->packet_id;
            break;
        case RECORD_TAKEN: found = found && memcmp(record->peer, key->peer, sizeof key->peer) == 0; break;
        default: found = found && same_bytes(record->publication.topic, key->publication.topic);
        }
        if (found) return &store->rows[i];
    }
    return NULL;
}

HELPER void model_must(bool fits, const char *what) {
    if (!fits) fail_msg("a record that does not fit: %s", what);
}

HELPER void model_upsert(struct model_store *store, const struct record *record) {
    struct row *row = model_find(store, record->type, record);

    if (row != NULL)
        model_replace(row, record);
    else
        model_add(store, record);
}

HELPER void model_end(struct model_store *store, enum record_type type, const struct record *record) {
    struct row *row = model_find(store, type, record);

    model_must(row != NULL, "the end of what is not there");
    model_remove(store, row);
}

HELPER void model_session_end(struct model_store *store, const struct record *record) {
    model_end(store, RECORD_SESSION, record);
    for (size_t i = store->count; i-- > 0;) {
        enum record_type type = store->rows[i].record.type;
        if ((type == RECORD_SUBSCRIPTION || type == RECORD_QUEUED || type == RECORD_RECEIVED) &&
            store->rows[i].record.session == record->session)
            model_remove(store, &store->rows[i]);
    }
}

HELPER void model_change_queued(struct model_store *store, const struct record *record) {
    struct row *row = model_find(store, RECORD_QUEUED, record);
    struct record changed;

    model_must(row != NULL, "a change of what is not queued");
    changed = row->record;
    if (record->type == RECORD_SENT) {
        model_must(changed.packet_id == 0, "a second packet id");
        changed.packet_id = record->packet_id;
    } else {
        model_must(changed.packet_id != 0 && changed.qos == 2 && !changed.released, "a release before it was sent");
        changed.released = true;
        changed.message = 0;
    }
    model_replace(row, &changed);
}

HELPER uint64_t model_highest(uint64_t highest, const struct record *record) {
    if (record->session > highest) highest = record->session;
    if (record->message > highest) highest = record->message;
    return record->position > highest ? record->position : highest;
}

HELPER void model_apply(struct model_store *store, const struct record *record) {
    bool known = record->session == 0 || model_find(store, RECORD_SESSION, record) != NULL;

    store->applied++;
    model_must(known || record->type == RECORD_SESSION, "a session that is not there");
    switch (record->type) {
    case RECORD_RESET: model_clear(store); break;
    case RECORD_SESSION_END: model_session_end(store, record); break;
    case RECORD_SUBSCRIPTION_END: model_end(store, RECORD_SUBSCRIPTION, record); break;
    case RECORD_MESSAGE_END: model_end(store, RECORD_MESSAGE, record); break;
    case RECORD_SENT:
    case RECORD_RELEASED: model_change_queued(store, record); break;
    case RECORD_DONE: model_end(store, RECORD_QUEUED, record); break;
    case RECORD_RECEIVED_END: model_end(store, RECORD_RECEIVED, record); break;
    case RECORD_RETAINED_END: model_end(store, RECORD_RETAINED, record); break;
    case RECORD_TAKEN_END: model_end(store, RECORD_TAKEN, record); break;
    case RECORD_MESSAGE:
    case RECORD_QUEUED:
    case RECORD_RECEIVED:
        model_must(model_find(store, record->type, record) == NULL, "made twice");
        model_add(store, record);
        break;
    default: model_upsert(store, record);
    }
    store->highest = model_highest(store->highest, record);
}

/* What must hold between transactions. */
HELPER void model_check(const struct model_store *store) {
    for (size_t i = 0; i < store->count; i++) {
        const struct record *record = &store->rows[i].record;
        bool referred = false;
        if (record->type == RECORD_QUEUED && !record->released)
            model_must(model_find(store, RECORD_MESSAGE, record) != NULL, "queued without its message");
        if (record->type != RECORD_MESSAGE) continue;
        for (size_t j = 0; j < store->count && !referred; j++)
            referred = store->rows[j].record.type == RECORD_QUEUED && store->rows[j].record.message == record->message;
        model_must(referred, "a message that nobody refers to");
    }
}

/* One transaction. */
HELPER void model_apply_journal(struct model_store *store, const struct broker_journal *journal) {
    struct record record;
    size_t size;

    for (size_t at = 0; at < journal->size; at += size) {
        size = record_read(journal->bytes + at, journal->size - at, &record);
        model_must(size > 0, "no record");
        model_apply(store, &record);
    }
    model_check(store);
}

HELPER int compare_positions(const void *a, const void *b) {
    const struct record *one = *(const struct record *const *)a, *other = *(const struct record *const *)b;

    return one->position < other->position ? -1 : one->position > other->position;
}

/* Tells all of it to a broker, as a store does at the start; false if that was short of memory. */
HELPER bool model_tell(const struct model_store *store, struct broker *broker, uint64_t now_ms) {
    static const enum record_type order[] = {RECORD_SESSION, RECORD_SUBSCRIPTION, RECORD_MESSAGE,
                                             RECORD_QUEUED,  RECORD_RECEIVED,     RECORD_RETAINED};
    const struct record **sorted = malloc((store->count + 1) * sizeof *sorted);

    assert_non_null(sorted);
    for (size_t step = 0; step < sizeof order / sizeof order[0]; step++) {
        size_t count = 0;
        for (size_t i = 0; i < store->count; i++)
            if (store->rows[i].record.type == order[step]) sorted[count++] = &store->rows[i].record;
        if (order[step] == RECORD_QUEUED) qsort(sorted, count, sizeof *sorted, compare_positions);
        for (size_t i = 0; i < count; i++)
            broker_restore(broker, now_ms, sorted[i]);
    }
    free(sorted);
    return broker_restored(broker, now_ms, store->highest + 1);
}

HELPER void model_restore(const struct model_store *store, struct broker *broker, uint64_t now_ms) {
    assert_true(model_tell(store, broker, now_ms));
}

/* ---- as text ---- */

struct lines {
    char **lines;
    size_t count;
};

HELPER void line_text(char *out, size_t size, struct record_text text) {
    for (size_t i = 0; i < text.size; i++) {
        unsigned byte = ((const uint8_t *)text.bytes)[i];
        size_t at = strlen(out);
        snprintf(out + at, size - at, byte > 32 && byte < 127 ? "%c" : "\\%02x", byte);
    }
    snprintf(out + strlen(out), size - strlen(out), ";");
}

/* The publisher is known by number only while its session is there. */
HELPER void line_publication(char *out, size_t size, const struct model_store *store,
                             const struct record_publication *publication, uint64_t publisher) {
    bool lasts = model_find(store, RECORD_SESSION, &(struct record){.session = publisher}) != NULL;

    line_text(out, size, publication->topic);
    line_text(out, size, publication->payload);
    line_text(out, size, publication->properties);
    snprintf(out + strlen(out), size - strlen(out), "q%d r%d x%llu s%llu.%u o%02x%02x p%llu ", publication->qos,
             publication->retain, (unsigned long long)publication->expires_wall_ms,
             (unsigned long long)publication->stamp_wall_ms, publication->stamp_count, publication->stamp_origin[0],
             publication->stamp_origin[15], lasts ? (unsigned long long)publisher : 0);
}

/* Message numbers are left out: what counts is which message. */
HELPER const char *line_of(const struct model_store *store, const struct record *record) {
    static char line[4096];
    const struct row *row;

    snprintf(line, sizeof line, "%2d s%llu m%d q%020llu ", record->type, (unsigned long long)record->session,
             record->message != 0, (unsigned long long)record->position);
    line_text(line, sizeof line, record->client_id);
    line_text(line, sizeof line, record->user_name);
    line_text(line, sizeof line, record->filter);
    line_text(line, sizeof line, record->identifiers);
    snprintf(line + strlen(line), sizeof line - strlen(line), "e%u,%llu w%d,%u,%llu,%llu o%x,%u q%d%d%d id%d ",
             record->expiry_s, (unsigned long long)record->ends_wall_ms, record->has_will, record->will_delay_s,
             (unsigned long long)record->will_expiry_s, (unsigned long long)record->will_due_wall_ms, record->options,
             record->identifier, record->qos, record->retain, record->released, record->packet_id);
    if (record->has_will) line_publication(line, sizeof line, store, &record->will, 0);
    if (record->type == RECORD_MESSAGE || record->type == RECORD_RETAINED)
        line_publication(line, sizeof line, store, &record->publication, record->publisher);
    row = record->type == RECORD_QUEUED && !record->released ? model_find(store, RECORD_MESSAGE, record) : NULL;
    if (row != NULL) line_publication(line, sizeof line, store, &row->record.publication, row->record.publisher);
    return line;
}

HELPER int compare_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

HELPER struct lines model_lines(const struct model_store *store) {
    struct lines lines = {.lines = malloc((store->count + 1) * sizeof *lines.lines), .count = store->count};

    assert_non_null(lines.lines);
    for (size_t i = 0; i < store->count; i++) {
        const char *line = line_of(store, &store->rows[i].record);
        lines.lines[i] = malloc(strlen(line) + 1);
        assert_non_null(lines.lines[i]);
        strcpy(lines.lines[i], line);
    }
    qsort(lines.lines, lines.count, sizeof *lines.lines, compare_lines);
    return lines;
}

HELPER void lines_free(struct lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->lines[i]);
    free(lines->lines);
}

/* True if both hold the same; else the first difference is printed. */
HELPER bool model_same(const struct model_store *a, const struct model_store *b) {
    struct lines one = model_lines(a), other = model_lines(b);
    size_t count = one.count > other.count ? one.count : other.count;
    bool same = true;

    for (size_t i = 0; i < count && same; i++) {
        const char *left = i < one.count ? one.lines[i] : "", *right = i < other.count ? other.lines[i] : "";
        same = strcmp(left, right) == 0;
        if (!same) print_error("differs:\n< %s\n> %s\n", left, right);
    }
    lines_free(&one);
    lines_free(&other);
    return same;
}

/* The whole state of the broker, which it tells in a journal that begins anew. */
HELPER struct model_store model_of(struct broker *broker, uint64_t now_ms) {
    struct model_store store = {0};
    struct broker_journal journal;

    assert_true(broker_restart_journal(broker, now_ms));
    assert_true(broker_take_journal(broker, &journal));
    model_apply_journal(&store, &journal);
    free(journal.bytes);
    return store;
}

#endif
