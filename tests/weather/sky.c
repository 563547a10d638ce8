#include "tests/weather/sky.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PPM 1000000u
#define COPY_AFTER_US 1000u
#define LATE_US 20000u
#define QUEUE_US 200000u
#define TCP 6u
#define UDP 17u

void sky_init(struct sky *sky, uint64_t seed, const char *name) {
    memset(sky, 0, sizeof *sky);
    dice_init(&sky->dice, seed, name);
}

/* Gilbert and Elliott: in a burst all is lost, and bursts begin as often as makes the share of losses right. */
static bool is_lost(struct sky *sky) {
    const struct sky_weather *weather = &sky->weather;
    if (weather->burst <= 1 || weather->loss_ppm >= PPM) return dice_ppm(&sky->dice, weather->loss_ppm);
    uint64_t begins = (uint64_t)weather->loss_ppm * PPM / ((uint64_t)weather->burst * (PPM - weather->loss_ppm));
    if (sky->in_burst)
        sky->in_burst = !dice_ppm(&sky->dice, PPM / weather->burst);
    else
        sky->in_burst = dice_ppm(&sky->dice, begins < PPM ? (uint32_t)begins : PPM);
    return sky->in_burst;
}

static bool is_blocked(const struct sky_weather *weather, uint8_t protocol) {
    return (weather->no_udp && protocol == UDP) || (weather->no_tcp && protocol == TCP);
}

/* When the wire has taken it; false if it would have to wait too long. */
static bool queue(struct sky *sky, uint64_t now_us, size_t size, uint64_t *begin_us) {
    const struct sky_weather *weather = &sky->weather;
    *begin_us = now_us;
    if (weather->rate_bytes_s == 0) return true;
    uint64_t queue_us = weather->queue_us > 0 ? weather->queue_us : QUEUE_US;
    uint64_t free_us = sky->busy_until_us > now_us ? sky->busy_until_us : now_us;
    if (free_us - now_us > queue_us) return false;
    *begin_us = sky->busy_until_us = free_us + (uint64_t)size * 1000000 / weather->rate_bytes_s;
    return true;
}

static void travel(struct sky *sky, uint64_t begin_us, struct sky_fate *fate) {
    const struct sky_weather *weather = &sky->weather;
    uint64_t due = begin_us + weather->delay_us + dice_below(&sky->dice, (uint64_t)weather->jitter_us + 1);
    if (dice_ppm(&sky->dice, weather->reorder_ppm)) {
        due += LATE_US;
        sky->counts.reordered++;
    } else {
        due = due > sky->last_due_us ? due : sky->last_due_us;
        sky->last_due_us = due;
    }
    fate->copies = 1;
    fate->due_us[0] = due;
    if (dice_ppm(&sky->dice, weather->duplicate_ppm)) {
        fate->copies = 2;
        fate->due_us[1] = due + COPY_AFTER_US;
        sky->counts.duplicated++;
    }
    fate->corrupt = dice_ppm(&sky->dice, weather->corrupt_ppm);
    fate->bit = fate->corrupt ? dice_next(&sky->dice) : 0;
    sky->counts.corrupted += fate->corrupt;
    sky->counts.passed++;
}

struct sky_fate sky_pass(struct sky *sky, uint64_t now_us, uint8_t protocol, size_t size) {
    const struct sky_weather *weather = &sky->weather;
    struct sky_fate fate = {0};
    sky->counts.sent++;
    sky->counts.bytes += size;
    if (protocol == UDP) {
        sky->counts.udp++;
        sky->counts.udp_bytes += size;
    }
    if (weather->cut) {
        sky->counts.cut++;
        return fate;
    }
    if (is_blocked(weather, protocol)) {
        sky->counts.blocked++;
        return fate;
    }
    if (weather->mtu > 0 && size > weather->mtu) {
        sky->counts.too_big++;
        fate.too_big = !weather->hole;
        return fate;
    }
    uint64_t begin_us;
    if (!queue(sky, now_us, size, &begin_us)) {
        sky->counts.queue_dropped++;
        return fate;
    }
    if (is_lost(sky)) {
        sky->counts.lost++;
        return fate;
    }
    travel(sky, begin_us, &fate);
    return fate;
}

/* ---- words ---- */

enum unit { SHARE, MILLISECONDS, COUNT, KILOBYTES, SWITCH };

static const struct {
    const char *name;
    enum unit unit;
    size_t offset;
} words[] = {
    {"delay", MILLISECONDS, offsetof(struct sky_weather, delay_us)},
    {"jitter", MILLISECONDS, offsetof(struct sky_weather, jitter_us)},
    {"loss", SHARE, offsetof(struct sky_weather, loss_ppm)},
    {"burst", COUNT, offsetof(struct sky_weather, burst)},
    {"duplicate", SHARE, offsetof(struct sky_weather, duplicate_ppm)},
    {"reorder", SHARE, offsetof(struct sky_weather, reorder_ppm)},
    {"corrupt", SHARE, offsetof(struct sky_weather, corrupt_ppm)},
    {"rate", KILOBYTES, offsetof(struct sky_weather, rate_bytes_s)},
    {"queue", MILLISECONDS, offsetof(struct sky_weather, queue_us)},
    {"mtu", COUNT, offsetof(struct sky_weather, mtu)},
    {"hole", SWITCH, offsetof(struct sky_weather, hole)},
    {"cut", SWITCH, offsetof(struct sky_weather, cut)},
    {"no_udp", SWITCH, offsetof(struct sky_weather, no_udp)},
    {"no_tcp", SWITCH, offsetof(struct sky_weather, no_tcp)},
};

static bool set_number(uint32_t *to, enum unit unit, const char *text, const char **error) {
    static const double factor[] = {[SHARE] = 10000, [MILLISECONDS] = 1000, [COUNT] = 1, [KILOBYTES] = 1000};
    char *end;
    double value = strtod(text, &end), most = unit == SHARE ? 100 : UINT32_MAX / factor[unit];
    if (end == text || *end != '\0' || !(value >= 0) || value > most) {
        *error = unit == SHARE ? "a share is a number from 0 to 100" : "a number, 0 or more, is missing";
        return false;
    }
    *to = (uint32_t)lround(value * factor[unit]);
    return true;
}

static bool set_switch(bool *to, const char *text, const char **error) {
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0) {
        *error = "a switch is on or off";
        return false;
    }
    *to = strcmp(text, "on") == 0;
    return true;
}

bool sky_set(struct sky_weather *weather, const char *word, const char **error) {
    const char *equals = strchr(word, '=');
    for (size_t i = 0; equals && i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i].name);
        if ((size_t)(equals - word) != size || memcmp(word, words[i].name, size) != 0) continue;
        void *field = (char *)weather + words[i].offset;
        return words[i].unit == SWITCH ? set_switch(field, equals + 1, error)
                                       : set_number(field, words[i].unit, equals + 1, error);
    }
    *error = "there are delay, jitter, loss, burst, duplicate, reorder, corrupt, rate, queue, mtu, hole, cut, no_udp "
             "and no_tcp, each with = and a value";
    return false;
}
