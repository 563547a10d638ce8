#include "daemon/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_system(const char *state) {
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(where.sun_path)) return;
    memcpy(where.sun_path, path, strlen(path));
    if (path[0] == '@') where.sun_path[0] = '\0'; /* an abstract name has no file */
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    const int file = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file < 0) return;
    sendto(file, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&where, size);
    close(file);
}
