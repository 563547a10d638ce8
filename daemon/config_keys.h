/* Inside daemon/config*.c: every key that a configuration may have. Not a door. */
#ifndef DAEMON_CONFIG_KEYS_H
#define DAEMON_CONFIG_KEYS_H

#include "daemon/config_values.h"

extern const struct config_key config_top_keys[];
extern const size_t config_top_key_count;

#endif
