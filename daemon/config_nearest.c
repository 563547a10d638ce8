/* What a mistyped key was probably meant to be. */
#include <string.h>

#include "daemon/config_values.h"

#define WORD_MAX 64u

/* Levenshtein 1966: insertions, deletions and replacements that turn one word into the other. */
static size_t distance(const char *a, const char *b) {
    const size_t a_size = strlen(a), b_size = strlen(b);
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= b_size; j++) row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            const size_t one_more = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < one_more ? replaced : one_more;
        }
    }
    return row[b_size];
}

const char *config_nearest(const struct config_key *keys, size_t count, const char *word) {
    const size_t size = strlen(word);
    const char *nearest = NULL;
    size_t best = size / 2 + 2; /* a word of which more than half differs means something else */
    if (size > WORD_MAX) return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t d = distance(word, keys[i].name);
        if (d >= best) continue;
        best = d;
        nearest = keys[i].name;
    }
    return nearest;
}
