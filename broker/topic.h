/* Topic names and topic filters: what is valid, what matches what.
 *
 * Source: MQTT 5.0 section 4.7 (the same rules as MQTT 3.1.1 section 4.7). Strings are UTF-8 with
 * an explicit size in bytes and need no final zero. This is the one header of broker/ that the
 * other cores may include.
 */
#ifndef BROKER_TOPIC_H
#define BROKER_TOPIC_H

#include <stdbool.h>
#include <stddef.h>

/* The longest name or filter, in bytes (MQTT-4.7.3-3). */
#define TOPIC_SIZE_MAX 65535u
/* Our own bound on levels: deeper is refused as invalid, so that every walk has a known depth. */
#define TOPIC_LEVELS_MAX 128u

/* Well-formed UTF-8 by MQTT 5.0 section 1.5.4: no surrogates, no U+0000, shortest form only. */
bool topic_utf8_valid(const char *text, size_t size);

/* How many levels a name or filter has; at least 1. */
size_t topic_levels(const char *text, size_t size);

/* A name to publish to: 1 to TOPIC_SIZE_MAX bytes of valid UTF-8 without + and # (MQTT-3.3.2-2). */
bool topic_name_valid(const char *name, size_t size);

/* A filter to subscribe with: + and # only as whole levels, # only last (MQTT-4.7.1-1 to -3).
 * Says nothing about $share; see topic_share_split. */
bool topic_filter_valid(const char *filter, size_t size);

/* True if the valid filter matches the valid name. A wildcard in the first level does not match
 * a name that starts with $ (MQTT-4.7.2-1). */
bool topic_matches(const char *filter, size_t filter_size, const char *name, size_t name_size);

/* True if some topic name is matched by both filters ($ rule included). Symmetric. */
bool topic_filters_intersect(const char *a, size_t a_size, const char *b, size_t b_size);

/* True if every topic name matched by inner is matched by outer ($ rule included). */
bool topic_filter_covers(const char *outer, size_t outer_size, const char *inner, size_t inner_size);

/* True if the filter has a + or # level. */
bool topic_has_wildcard(const char *filter, size_t size);

/* True if the filter is "$share/..." (MQTT 5.0 section 4.8.2), well-formed or not. */
bool topic_is_shared(const char *filter, size_t size);
/* Where FILTER begins in "$share/NAME/FILTER"; 0 for what is not that, or has no NAME, one with a wildcard, or no valid
 * FILTER (MQTT-4.8.2-1, MQTT-4.8.2-2). */
size_t topic_share_split(const char *filter, size_t size);

#endif
