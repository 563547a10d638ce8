/* File descriptors, of which a process may have so many (RLIMIT_NOFILE).
 *
 * A new one gets the lowest free number, so that its number says how many there are. Whoever accepts a connection
 * leaves some of the last ones unused: clients most of them, so that links, the admin port, the store and the files
 * that are read anew have theirs. */
#ifndef DAEMON_DESCRIPTORS_H
#define DAEMON_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#define DESCRIPTORS_LEFT_BY_CLIENTS 64u
#define DESCRIPTORS_LEFT_BY_PEERS 32u /* of those who connect and may be other brokers */
#define DESCRIPTORS_LEFT_BY_ADMIN 12u

/* What to do when they run out. */
#define DESCRIPTORS_REMEDY "raise the limit of open files (LimitNOFILE= in a systemd unit, ulimit -n in a shell)"

/* UINT64_MAX if there is no limit. */
uint64_t descriptors_max(void);
/* How many clients there is room for, beside what is open now; 0: none. */
uint64_t descriptors_for_clients(void);

#endif
