/* What the process's signals do: SIGTERM and SIGINT end it in order and the second of them at once, SIGHUP reads
 * anew what can be (reload.h), SIGUSR1 and SIGUSR2 put a line with the state into the log. Mosquitto saves its database
 * on SIGUSR1, for which there is no need here, and shows its subscriptions on SIGUSR2; scripts that send either must
 * not end the broker.
 */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

struct server;

void signals_start(struct server *server);
void signals_close(struct server *server);

#endif
