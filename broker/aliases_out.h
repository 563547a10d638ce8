/* Inside broker/: the topic aliases that one client has from us (MQTT 5.0 section 3.3.2.3.4). The first publication of
 * a topic carries topic and alias, those after it the alias alone.
 *
 * An alias that is free goes to the first topic that comes. Once none is free, only a topic that comes again soon gets
 * one, the least recently used: topics that come once (a store of retained messages), or too many in turn, would push
 * each other out and save nothing.
 *
 * What a client was not sent it does not know: an alias stands for its topic after aliases_out_sent(), not before.
 */
#ifndef BROKER_ALIASES_OUT_H
#define BROKER_ALIASES_OUT_H

#include "broker/reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aliases_out;

struct alias_use {
    uint16_t alias; /* 0: none, the topic as ever */
    bool is_known;  /* the client knows it: the topic is left out */
    uint64_t hash;  /* of the topic */
};

/* alias_max: the highest it may be, at least 1, never above what the client takes (MQTT-3.3.2-11); it stays the same.
 * may_set: false if only what is known may be used, as a new one costs memory. *aliases is NULL until the first;
 * without memory for it there is no alias. The alias that is proposed for a topic goes on to stand for what it stood
 * for until aliases_out_sent(). */
struct alias_use aliases_out_use(struct aliases_out **aliases, uint16_t alias_max, uint64_t seed, bool may_set,
                                 struct mqtt_view topic);
/* A packet with the topic and this alias, not yet known, is in the client's output: from now on the alias stands for
 * this topic, or without memory for nothing. Right after the aliases_out_use() that proposed it. */
void aliases_out_sent(struct aliases_out *aliases, const struct alias_use *use, struct mqtt_view topic);
void aliases_out_free(struct aliases_out *aliases);

#endif
