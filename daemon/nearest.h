/* What a mistyped word was probably meant to be. */
#ifndef DAEMON_NEAREST_H
#define DAEMON_NEAREST_H

#include <stddef.h>

#define NEAREST_WORD_MAX 64u /* bytes; known words are shorter */

/* Keeps in *best the candidate nearest to the word so far (Levenshtein distance), if less than half of it differs.
 * Start with *best NULL. */
void nearest_try(const char *word, const char *candidate, const char **best);

#endif
