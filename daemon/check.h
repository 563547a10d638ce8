/* What a start would meet beyond the files that the configuration names: ports, unix sockets, data_dir. For --check:
 * nothing is made or changed, and a broker that runs meanwhile notices nothing. */
#ifndef DAEMON_CHECK_H
#define DAEMON_CHECK_H

#include "daemon/config.h"

/* listening_resolve() was there before. A port that is taken is a warning, as the broker whose configuration is checked
 * may run already. Of the database only the header is read: that a page further on is damaged shows at the start. */
void check_surroundings(const struct config *config, struct config_faults *faults);

#endif
