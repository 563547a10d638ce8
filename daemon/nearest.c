#include "daemon/nearest.h"

#include <string.h>

/* Levenshtein 1966: insertions, deletions and replacements that turn one word into the other. b is shorter than
 * NEAREST_WORD_MAX. */
static size_t distance(const char *a, const char *b) {
    const size_t a_size = strlen(a), b_size = strlen(b);
    size_t row[NEAREST_WORD_MAX];
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
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

void nearest_try(const char *word, const char *candidate, const char **best) {
    const size_t size = strlen(word);
    if (size > NEAREST_WORD_MAX || strlen(candidate) >= NEAREST_WORD_MAX) return;
    const size_t limit = *best != NULL ? distance(word, *best) : size / 2 + 1;
    if (distance(word, candidate) < limit) *best = candidate;
}
