#include "auth/reason.h"

struct auth_words auth_words_for_seconds(int64_t seconds) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}};
    struct auth_words words;
    if (seconds < 0) seconds = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        /* Two of the unit at least: "90 min" says more than "1 h". */
        if (seconds < 2 * units[i].seconds) continue;
        (void)snprintf(words.text, sizeof words.text, "%lld %s", (long long)(seconds / units[i].seconds),
                       units[i].unit);
        return words;
    }
    (void)snprintf(words.text, sizeof words.text, "%lld s", (long long)seconds);
    return words;
}
