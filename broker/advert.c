#include "broker/advert.h"

#include <stdlib.h>
#include <string.h>

/* Adverts are in the order of their publications, but for this part of their time. */
enum { ORDER_SLACK = 16 };

static void withdraw(struct federation *federation, struct advert *advert) {
    federation->adverts_withdrawn++;
    federation->advert_bytes -= advert->row.named.size;
    names_remove(&federation->adverts, &advert->row.named);
    row_orphan(federation, &advert->row);
}

static uint64_t idle_ms(const struct federation *federation) {
    return (uint64_t)federation->limits.advert_idle_s * 1000;
}

static struct advert *oldest(const struct federation *federation) {
    return (struct advert *)(void *)federation->adverts.first;
}

static void set_timer(struct federation *federation) {
    struct advert *first = oldest(federation);
    uint64_t due = first ? first->published_ms + idle_ms(federation) : UINT64_MAX;
    timer_set(&federation->advert_timers, &federation->advert_timer, due);
}

static void move_last(struct federation *federation, struct advert *advert) {
    advert->published_ms = advert->moved_ms = federation->now_ms;
    names_move_last(&federation->adverts, &advert->row.named);
}

void advert_touch(struct federation *federation, struct advert *advert) {
    advert->published_ms = federation->now_ms;
    if (advert->published_ms - advert->moved_ms > idle_ms(federation) / ORDER_SLACK) move_last(federation, advert);
}

struct advert *advert_of(struct federation *federation, const char *topic, size_t size) {
    struct advert *advert = (struct advert *)(void *)names_find(&federation->adverts, topic, size);
    if (advert) {
        advert_touch(federation, advert);
        return advert;
    }
    advert = named_new(sizeof *advert, topic, size);
    if (!advert) return NULL;
    row_init(&advert->row, ROW_NEWPUB);
    advert->published_ms = advert->moved_ms = federation->now_ms;
    if (names_add(&federation->adverts, &advert->row.named)) {
        free(advert);
        return NULL;
    }
    federation->advert_bytes += size;
    row_want(federation, &advert->row, true);
    while (federation->adverts.count > ADVERTS_MAX || federation->advert_bytes > ADVERT_BYTES_MAX)
        withdraw(federation, oldest(federation));
    if (!timer_is_set(&federation->advert_timer)) set_timer(federation);
    return advert;
}

/* Others may ask for what a local client has retained; for what came from a broker they ask that one. */
static bool advert_retained(void *context, struct message *message) {
    struct federation *federation = context;
    if (memcmp(message->stamp.origin, federation->id.bytes, sizeof message->stamp.origin) == 0)
        federation_retains(federation, federation->now_ms, message);
    return true;
}

void adverts_tell(struct federation *federation) {
    struct named *next;
    for (struct named *named = federation->adverts.first; named; named = next) {
        next = named->next;
        if (!policy_lets_some_peer(federation->policy, POLICY_EXPORT, named->text, named->size))
            withdraw(federation, (struct advert *)(void *)named);
    }
    retained_each(federation->retained, advert_retained, federation);
}

void adverts_tick(struct federation *federation) {
    if (!timers_take(&federation->advert_timers, federation->now_ms)) return;
    for (;;) {
        struct advert *advert = oldest(federation);
        if (!advert || advert->published_ms + idle_ms(federation) > federation->now_ms) break;
        if (retained_has(federation->retained, advert->row.named.text, advert->row.named.size)) {
            /* It retains something: looked at again after another idle time. */
            move_last(federation, advert);
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
