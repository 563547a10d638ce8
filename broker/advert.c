#include "broker/advert.h"

#include <stdlib.h>

static void withdraw(struct federation *federation, struct advert *advert) {
    names_remove(&federation->adverts, &advert->row.named);
    row_orphan(federation, &advert->row);
}

static struct advert *oldest(const struct federation *federation) {
    return (struct advert *)(void *)federation->adverts.first;
}

static void set_timer(struct federation *federation) {
    struct advert *first = oldest(federation);
    uint64_t due = first ? first->published_ms + (uint64_t)federation->limits.advert_idle_s * 1000 : UINT64_MAX;
    timer_set(&federation->advert_timers, &federation->advert_timer, due);
}

struct advert *advert_touch(struct federation *federation, const char *topic, size_t size) {
    struct advert *advert = (struct advert *)(void *)names_find(&federation->adverts, topic, size);
    if (advert) {
        advert->published_ms = federation->now_ms;
        names_move_last(&federation->adverts, &advert->row.named);
        return advert;
    }
    advert = named_new(sizeof *advert, topic, size);
    if (!advert) return NULL;
    row_init(&advert->row, ROW_NEWPUB);
    advert->published_ms = federation->now_ms;
    if (names_add(&federation->adverts, &advert->row.named)) {
        free(advert);
        return NULL;
    }
    row_want(federation, &advert->row, true);
    if (federation->adverts.count > ADVERTS_MAX) withdraw(federation, oldest(federation));
    if (!timer_is_set(&federation->advert_timer)) set_timer(federation);
    return advert;
}

void adverts_tick(struct federation *federation) {
    uint64_t idle_ms = (uint64_t)federation->limits.advert_idle_s * 1000;
    if (!timers_take(&federation->advert_timers, federation->now_ms)) return;
    for (;;) {
        struct advert *advert = oldest(federation);
        if (!advert || advert->published_ms + idle_ms > federation->now_ms) break;
        if (retained_has(federation->retained, advert->row.named.text, advert->row.named.size)) {
            /* It retains something: looked at again after another idle time. */
            advert->published_ms = federation->now_ms;
            names_move_last(&federation->adverts, &advert->row.named);
        } else {
            withdraw(federation, advert);
        }
    }
    set_timer(federation);
}

void adverts_deinit(struct federation *federation) {
    while (federation->adverts.first)
        withdraw(federation, oldest(federation));
    names_deinit(&federation->adverts);
}
