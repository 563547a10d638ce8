/* Which known word was meant. */
#ifndef TOOLS_NEAREST_H
#define TOOLS_NEAREST_H

#include <stddef.h>

/* The nearest of the words (a NULL is skipped), or NULL if none is near enough to be worth a suggestion. */
const char *nearest_word(const char *typed, const char *const *words, size_t count);

#endif
