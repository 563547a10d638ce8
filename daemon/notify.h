/* systemd's word for it (sd_notify(3), Type=notify): whoever is started after this broker finds it ready. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

/* Sends "READY=1" or "STOPPING=1" to the socket that NOTIFY_SOCKET names; without one, nothing. Never waits. */
void notify_system(const char *state);

#endif
