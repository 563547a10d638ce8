/* What else is spoken to a port of MQTT, for the log: mostly by clients that are set up for another port. */
#ifndef BROKER_FOREIGN_H
#define BROKER_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

/* What a connection is, whose first bytes these are, in a line that names the remedy; NULL if it is not known. */
const char *foreign_protocol(const uint8_t *bytes, size_t size);

#endif
