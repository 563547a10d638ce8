/* How auth/ says why: one sentence that names cause and remedy, into a buffer the caller may not want. */
#ifndef AUTH_REASON_H
#define AUTH_REASON_H

#include <stdint.h>
#include <stdio.h>

#define AUTH_REASON_SIZE 160u

/* A macro so that the compiler checks the format. reason may be NULL. */
#define auth_say(reason, ...)                                                                                          \
    do {                                                                                                               \
        if ((reason) != NULL) (void)snprintf((reason), AUTH_REASON_SIZE, __VA_ARGS__);                                 \
    } while (0)

/* "45 s", "12 min", "3 h", "20 d": a length of time for a sentence. */
struct auth_words {
    char text[24];
};
struct auth_words auth_words_for_seconds(int64_t seconds);

#endif
