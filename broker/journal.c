#include "broker/journal.h"

#include <stdlib.h>
#include <string.h>

void journal_discard(struct journal *journal) {
    free(journal->buffer.bytes);
    free(journal->takes);
}

uint64_t journal_bytes(const struct journal *journal) {
    /* The whole state makes what was before it void. It has limits of its own, and to write it is the way out of
     * trouble: held against the limit it would be written again for each record that follows. */
    uint64_t from = journal->anew_last > journal->durable ? journal->anew_made : journal->bytes_durable;

    return journal->bytes_made - from;
}

bool journal_is_half_full(const struct journal *journal) {
    return journal_bytes(journal) > journal->bytes_max / 2;
}

bool journal_refuses(const struct journal *journal) {
    return journal->is_on && (journal->failing || journal_bytes(journal) > journal->bytes_max);
}

bool journal_has(const struct journal *journal, uint64_t number) {
    return number <= journal->durable;
}

uint64_t journal_since(const struct journal *journal, uint64_t last) {
    return journal->last != last ? journal->last : 0;
}

static void drop_buffer(struct journal *journal) {
    journal->bytes_made -= journal->buffer.size;
    if (journal->take_count == 0 || journal->takes[journal->take_count - 1].last < journal->anew_last)
        journal->anew_last = 0; /* it was in there */
    free(journal->buffer.bytes);
    journal->buffer = (struct record_buffer){0};
}

void journal_lose(struct journal *journal) {
    journal->lost = true;
    drop_buffer(journal);
}

void journal_begin_anew(struct journal *journal) {
    drop_buffer(journal);
    journal->lost = false;
    journal->beginning_anew = true;
    journal_add(journal, &(struct record){.type = RECORD_RESET});
}

bool journal_end_anew(struct journal *journal) {
    journal->beginning_anew = false;
    if (journal->lost) return false;
    journal->anew_last = journal->last;
    journal->anew_made = journal->bytes_made;
    return true;
}

void journal_add(struct journal *journal, const struct record *record) {
    size_t size = journal->buffer.size;

    if (!journal->is_on) return;
    journal->last++;
    if (journal->lost) return;
    if (record_write(&journal->buffer, record) != 0) {
        journal_lose(journal);
        return;
    }
    journal->bytes_made += journal->buffer.size - size;
    if (!journal->beginning_anew && journal_bytes(journal) / 2 > journal->bytes_max) journal_lose(journal);
}

/* Without memory the last entry stands for this one too: its bytes then count for longer. */
static void remember_take(struct journal *journal) {
    struct journal_take take = {.last = journal->last, .bytes_made = journal->bytes_made};
    size_t capacity = journal->take_capacity ? journal->take_capacity * 2 : 4;
    struct journal_take *grown;

    if (journal->take_count == journal->take_capacity) {
        grown = realloc(journal->takes, capacity * sizeof *grown);
        if (grown == NULL) {
            if (journal->take_count > 0) journal->takes[journal->take_count - 1] = take;
            return;
        }
        journal->takes = grown;
        journal->take_capacity = capacity;
    }
    journal->takes[journal->take_count++] = take;
}

bool journal_take(struct journal *journal, struct broker_journal *out) {
    if (journal->lost || journal->buffer.size == 0) return false;
    *out = (struct broker_journal){.bytes = journal->buffer.bytes, .size = journal->buffer.size, .last = journal->last};
    journal->buffer = (struct record_buffer){0};
    remember_take(journal);
    return true;
}

void journal_durable(struct journal *journal, uint64_t number) {
    size_t done = 0;

    if (number <= journal->durable || number > journal->last) return;
    journal->durable = number;
    while (done < journal->take_count && journal->takes[done].last <= number)
        journal->bytes_durable = journal->takes[done++].bytes_made;
    if (done == 0) return;
    journal->take_count -= done;
    memmove(journal->takes, journal->takes + done, journal->take_count * sizeof *journal->takes);
}
