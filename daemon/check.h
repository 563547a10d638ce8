/* What a start would meet beyond the files that the configuration names: ports, unix sockets, data_dir. For --check:
 * nothing is made or changed, and a broker that runs meanwhile notices nothing. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "daemon/config.h"

/* listening_resolve() was there before. The database is read as a start reads it. Beside a broker that runs with this
 * data_dir it is not, and one warning says so, with the ports in use; a port that somebody else has is a warning of its
 * own, as data_dir may be what was changed. */
void check_surroundings(const struct config *config, struct config_faults *faults);

#endif
