#include "tools/simulate/truth.h"

#include "tools/simulate/memory.h"
#include "tools/simulate/standin.h"

#include <stdlib.h>
#include <string.h>

#undef uthash_fatal
#define uthash_fatal(text) memory_is_short()
#include <uthash.h>

#define DELETES 0x10u /* PROTOCOL.md, entry */

struct state_name {
    uint64_t epoch, sequence, chain;
    uint64_t identity;
};

struct state {
    struct state_name name;
    uint64_t rows_hash;
    UT_hash_handle hh;
};

struct row_kept {
    uint64_t hash;
    UT_hash_handle hh;
};

struct author {
    struct truth *truth;
    struct author *next;
    uint32_t identity;
    uint64_t epoch, sequence, rows_hash;
    uint8_t chain[8];
    struct row_kept *rows;
};

/* Who signed first in an epoch of a key. */
struct epoch_of {
    struct {
        uint64_t identity, epoch;
    } name;
    const struct author *author;
    UT_hash_handle hh;
};

struct ambiguous {
    uint64_t identity;
    UT_hash_handle hh;
};

struct truth {
    struct state *states;
    struct epoch_of *epochs;
    struct ambiguous *ambiguous;
    struct author *authors;
};

uint64_t truth_row_hash(enum gossip_row_kind kind, const char *filter, size_t size) {
    return standin_hash((uint64_t)kind, filter, size);
}

struct truth *truth_new(void) {
    return memory_new(1, sizeof(struct truth));
}

static void drop_rows(struct author *author) {
    struct row_kept *row, *next;
    HASH_ITER(hh, author->rows, row, next) {
        HASH_DEL(author->rows, row);
        free(row);
    }
}

void truth_free(struct truth *truth) {
    struct state *state, *next_state;
    struct epoch_of *epoch, *next_epoch;
    struct ambiguous *key, *next_key;
    if (!truth) return;
    HASH_ITER(hh, truth->states, state, next_state) {
        HASH_DEL(truth->states, state);
        free(state);
    }
    HASH_ITER(hh, truth->epochs, epoch, next_epoch) {
        HASH_DEL(truth->epochs, epoch);
        free(epoch);
    }
    HASH_ITER(hh, truth->ambiguous, key, next_key) {
        HASH_DEL(truth->ambiguous, key);
        free(key);
    }
    while (truth->authors) {
        struct author *author = truth->authors;
        truth->authors = author->next;
        drop_rows(author);
        free(author);
    }
    free(truth);
}

struct author *truth_begin(struct truth *truth, uint32_t identity) {
    struct author *author = memory_new(1, sizeof *author);
    author->truth = truth;
    author->identity = identity;
    author->next = truth->authors;
    truth->authors = author;
    return author;
}

/* What it said stays true; only its rows are no longer needed. */
void truth_end(struct truth *truth, struct author *author) {
    (void)truth;
    if (author) drop_rows(author);
}

static struct state_name name_of(uint32_t identity, uint64_t epoch, uint64_t sequence, const uint8_t chain[8]) {
    struct state_name name = {.epoch = epoch, .sequence = sequence, .identity = identity};
    memcpy(&name.chain, chain, sizeof name.chain);
    return name;
}

static void keep(struct author *author) {
    struct truth *truth = author->truth;
    struct state_name name = name_of(author->identity, author->epoch, author->sequence, author->chain);
    struct state *state;
    HASH_FIND(hh, truth->states, &name, sizeof name, state);
    if (state) return;
    state = memory_new(1, sizeof *state);
    state->name = name;
    state->rows_hash = author->rows_hash;
    HASH_ADD(hh, truth->states, name, sizeof state->name, state);
}

static void claim_epoch(struct author *author) {
    struct truth *truth = author->truth;
    struct epoch_of *found, key = {.name = {author->identity, author->epoch}};
    struct ambiguous *both;
    HASH_FIND(hh, truth->epochs, &key.name, sizeof key.name, found);
    if (!found) {
        found = memory_new(1, sizeof *found);
        found->name.identity = author->identity;
        found->name.epoch = author->epoch;
        found->author = author;
        HASH_ADD(hh, truth->epochs, name, sizeof found->name, found);
        return;
    }
    uint64_t identity = author->identity;
    HASH_FIND(hh, truth->ambiguous, &identity, sizeof identity, both);
    if (found->author == author || both) return;
    both = memory_new(1, sizeof *both);
    both->identity = identity;
    HASH_ADD(hh, truth->ambiguous, identity, sizeof both->identity, both);
}

/* ---- the little of msgpack that signed objects use ---- */

struct reader {
    const uint8_t *at, *end;
    bool failed;
};

static uint64_t big_endian(struct reader *reader, size_t size) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < size) {
        reader->failed = true;
        return 0;
    }
    while (size-- > 0)
        value = value << 8 | *reader->at++;
    return value;
}

static uint64_t read_uint(struct reader *reader) {
    uint64_t first = big_endian(reader, 1);
    if (first < 0x80) return first;
    if (first >= 0xcc && first <= 0xcf) return big_endian(reader, (size_t)1 << (first - 0xcc));
    reader->failed = true;
    return 0;
}

static uint64_t read_array(struct reader *reader) {
    uint64_t first = big_endian(reader, 1);
    if (first >= 0x90 && first < 0xa0) return first - 0x90;
    if (first == 0xdc) return big_endian(reader, 2);
    if (first == 0xdd) return big_endian(reader, 4);
    reader->failed = true;
    return 0;
}

static const uint8_t *read_bytes(struct reader *reader, size_t *size) {
    uint64_t first = big_endian(reader, 1);
    bool string = first >= 0xa0 && first < 0xc0;
    if (!string && (first < 0xc4 || first > 0xc6)) reader->failed = true;
    *size = string           ? (size_t)(first - 0xa0)
            : reader->failed ? 0
                             : (size_t)big_endian(reader, (size_t)1 << (first - 0xc4));
    const uint8_t *bytes = reader->at;
    if (*size > (size_t)(reader->end - reader->at)) reader->failed = true;
    if (!reader->failed) reader->at += *size;
    return bytes;
}

/* ---- what is signed ---- */

static void apply(struct author *author, uint64_t code, const char *filter, size_t size) {
    uint64_t hash = truth_row_hash((enum gossip_row_kind)(code & 0xf), filter, size);
    struct row_kept *row;
    HASH_FIND(hh, author->rows, &hash, sizeof hash, row);
    bool deletes = (code & DELETES) != 0;
    if (deletes && row) {
        HASH_DEL(author->rows, row);
        free(row);
        author->rows_hash -= hash;
    } else if (!deletes && !row) {
        row = memory_new(1, sizeof *row);
        row->hash = hash;
        HASH_ADD(hh, author->rows, hash, sizeof row->hash, row);
        author->rows_hash += hash;
    }
}

/* ['E', id, epoch, sequence, kind, filter, ...] */
static void on_entry(struct author *author, struct reader *reader, uint64_t count, const uint8_t *bytes, size_t size) {
    size_t length;
    read_bytes(reader, &length);
    uint64_t epoch = read_uint(reader), sequence = read_uint(reader);
    if (reader->failed || count < 4) return;
    author->epoch = epoch;
    author->sequence = sequence;
    claim_epoch(author);
    for (uint64_t i = 4; i + 1 < count && !reader->failed; i += 2) {
        uint64_t code = read_uint(reader);
        const uint8_t *filter = read_bytes(reader, &length);
        if (!reader->failed) apply(author, code, (const char *)filter, length);
    }
    struct gossip_crypto crypto = standin_crypto(NULL);
    uint8_t joined[8 + GOSSIP_DATAGRAM_MAX], digest[32];
    if (size > sizeof joined - 8) return;
    memcpy(joined, author->chain, 8);
    memcpy(joined + 8, bytes, size);
    crypto.sha256(NULL, joined, 8 + size, digest);
    memcpy(author->chain, digest, sizeof author->chain);
    keep(author);
}

/* ['H', id, epoch, incarnation, sequence, ...]: rows do not change, but an epoch may begin where the last one ended. */
static void on_head(struct author *author, struct reader *reader) {
    size_t length;
    read_bytes(reader, &length);
    uint64_t epoch = read_uint(reader);
    read_uint(reader);
    uint64_t sequence = read_uint(reader);
    if (reader->failed || sequence != author->sequence) return;
    author->epoch = epoch;
    claim_epoch(author);
    keep(author);
}

void truth_on_signed(void *context, const uint8_t *bytes, size_t size) {
    struct author *author = context;
    struct reader reader = {bytes, bytes + size, false};
    uint64_t count = read_array(&reader), word = read_uint(&reader);
    if (reader.failed) return;
    if (word == 'E') on_entry(author, &reader, count, bytes, size);
    if (word == 'H') on_head(author, &reader);
}

bool truth_find(const struct truth *truth, uint32_t identity, uint64_t epoch, uint64_t sequence, const uint8_t chain[8],
                uint64_t *rows_hash) {
    struct state_name name = name_of(identity, epoch, sequence, chain);
    struct state *state;
    if (sequence == 0) {
        *rows_hash = 0;
        return true;
    }
    HASH_FIND(hh, truth->states, &name, sizeof name, state);
    if (state) *rows_hash = state->rows_hash;
    return state != NULL;
}

bool truth_had(const struct truth *truth, uint32_t identity, uint64_t rows_hash) {
    for (const struct state *state = truth->states; state; state = state->hh.next)
        if (state->name.identity == identity && state->rows_hash == rows_hash) return true;
    return false;
}

bool truth_is_ambiguous(const struct truth *truth, uint32_t identity) {
    uint64_t key = identity;
    struct ambiguous *found;
    HASH_FIND(hh, truth->ambiguous, &key, sizeof key, found);
    return found != NULL;
}

uint64_t author_epoch(const struct author *author) {
    return author->epoch;
}

uint64_t author_sequence(const struct author *author) {
    return author->sequence;
}

uint64_t author_rows_hash(const struct author *author) {
    return author->rows_hash;
}

uint64_t truth_states(const struct truth *truth) {
    return HASH_COUNT(truth->states);
}
