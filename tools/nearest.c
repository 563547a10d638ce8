#include "nearest.h"

#include <string.h>

#define WORD_MAX 40u

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Levenshtein's distance with neighbours swapped counted once, on three rows. */
static size_t distance(const char *a, const char *b) {
    size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > WORD_MAX || b_size > WORD_MAX) return WORD_MAX;
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_size % 3][b_size];
}

const char *nearest_word(const char *typed, const char *const *words, size_t count) {
    const char *best = NULL;
    size_t best_distance = 1 + (strlen(typed) + 1) / 3;
    for (size_t i = 0; i < count; i++) {
        if (words[i] == NULL) continue;
        size_t far = distance(typed, words[i]);
        /* What is typed as a beginning of a word, or a word with something behind, is near too. */
        if (strlen(typed) >= 3 &&
            (strncmp(words[i], typed, strlen(typed)) == 0 || strncmp(words[i], typed, strlen(words[i])) == 0))
            far = least(far, 1);
        if (far >= best_distance) continue;
        best = words[i];
        best_distance = far;
    }
    return best;
}
