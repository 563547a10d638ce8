#include "daemon/check.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/listening.h"
#include "daemon/ring_file.h"
#include "daemon/store.h"

#define ROOM_MIN (1024u * 1024u) /* bytes */

/* NULL if files can be made in the folder, else why not. */
static const char *not_writable(const char *folder) {
    struct stat status;
    if (stat(folder, &status) != 0) return strerror(errno);
    if (!S_ISDIR(status.st_mode)) return strerror(ENOTDIR);
    return access(folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

static const char *not_writable_above(const char *path) {
    char *copy = strdup(path);
    const char *why = copy != NULL ? not_writable(dirname(copy)) : strerror(ENOMEM);
    free(copy);
    return why;
}

/* ---- data_dir ---- */

/* What is known of the surroundings, while they are looked at. */
struct check {
    const struct config *config;
    struct config_faults *faults;
    bool runs;       /* a process has the database open: a broker with this data_dir */
    char who[64];    /* "process 4711 (hobnobd)" */
    char ports[400]; /* those in use, if one runs: "listen.mqtt 127.0.0.1:1883, listen.admin ..." */
};

static void name_holder(int process, char *out, size_t size) {
    char path[64], name[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", process);
    FILE *file = process > 0 ? fopen(path, "r") : NULL;
    if (file != NULL && fgets(name, sizeof(name), file) == NULL) name[0] = '\0';
    if (file != NULL) fclose(file);
    name[strcspn(name, "\n")] = '\0';
    if (process > 0)
        snprintf(out, size, "process %d%s%s%s", process, name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "");
    else
        snprintf(out, size, "a process that cannot be seen from here");
}

static void check_database(struct check *check) {
    const struct config *config = check->config;
    char path[4096], error[STORE_ERROR_MAX];
    int holder = 0;
    snprintf(path, sizeof(path), "%s/hobnob.db", config->data_dir);
    if (access(path, R_OK | W_OK) != 0 && errno != ENOENT) {
        config_fault_add(check->faults, false, config->data_dir_line,
                         "%s cannot be used: %s; let the user that runs hobnobd read and write it (chown)", path,
                         strerror(errno));
        return;
    }
    switch (store_inspect(config->data_dir, &holder, error)) {
    case STORE_SOUND: break;
    case STORE_BAD: config_fault_add(check->faults, false, config->data_dir_line, "%s", error); break;
    case STORE_USED:
        check->runs = true;
        name_holder(holder, check->who, sizeof(check->who));
        break;
    }
}

/* A start writes some pages, and needs room for them. */
static void check_room(struct check *check, bool is_there) {
    struct statvfs disk;
    char *path = strdup(check->config->data_dir);
    if (path == NULL) return;
    const bool known = statvfs(is_there ? path : dirname(path), &disk) == 0;
    const unsigned long long left = known ? (unsigned long long)disk.f_bavail * disk.f_frsize : ROOM_MIN;
    if (left < ROOM_MIN)
        config_fault_add(
            check->faults, true, check->config->data_dir_line,
            "data_dir %s is on a disk with %llu KiB left: what a broker keeps, and its start, may not find "
            "room; make some, or write another data_dir",
            check->config->data_dir, left / 1024);
    free(path);
}

static void check_data_dir(struct check *check) {
    const struct config *config = check->config;
    struct config_faults *faults = check->faults;
    struct stat status;
    if (config->data_dir == NULL) return;
    const bool is_there = stat(config->data_dir, &status) == 0;
    const char *why = is_there ? not_writable(config->data_dir) : not_writable_above(config->data_dir);
    if (is_there && !S_ISDIR(status.st_mode))
        config_fault_add(faults, false, config->data_dir_line,
                         "data_dir %s is there and is no folder; write the path of a folder", config->data_dir);
    else if (why != NULL)
        config_fault_add(faults, false, config->data_dir_line,
                         "data_dir %s cannot be %s: %s; %s, or write another data_dir", config->data_dir,
                         is_there ? "written" : "made", why,
                         is_there && store_is_read_only(config->data_dir) ? "mount it for writing"
                         : is_there ? "let the user that runs hobnobd write there (chown)"
                                    : "make the folder above it for the user that runs hobnobd");
    else
        check_room(check, is_there);
    if (is_there && why == NULL) check_database(check);
}

/* ---- listeners ---- */

static void check_unix(const struct config_address *address, const char *what, struct config_faults *faults) {
    struct stat status;
    const bool is_there = lstat(address->host, &status) == 0;
    const char *why = not_writable_above(address->host);
    if (is_there && !S_ISSOCK(status.st_mode))
        config_fault_add(faults, false, address->line, "%s: unix:%s is a file and no socket; write another path", what,
                         address->host);
    else if (why != NULL)
        config_fault_add(faults, false, address->line,
                         "%s: unix:%s cannot be made: %s; write a path in a folder that exists and that hobnobd may "
                         "write to",
                         what, address->host, why);
}

static void note_port(struct check *check, const char *what, const char *address) {
    const size_t size = strlen(check->ports);
    snprintf(check->ports + size, sizeof(check->ports) - size, "%s%s %s", size > 0 ? ", " : "", what, address);
}

static void check_port(struct check *check, const struct config_address *address, bool v6only, int type,
                       const char *what) {
    char text[CONFIG_FAULT_TEXT_MAX], shown[CONFIG_ADDRESS_MAX];
    const int error = address->ip[0] != '\0' ? listening_probe(address, v6only, type) : 0; /* unknown: said already */
    if (error == 0) return;
    config_address_format(address, shown);
    if (error == EADDRINUSE && check->runs) {
        note_port(check, what, shown);
    } else if (error == EADDRINUSE) {
        config_fault_add(check->faults, true, address->line,
                         "%s: %s is in use now, and no hobnobd runs with this data_dir; stop who uses it (ss -lntup "
                         "shows it), or write another port",
                         what, shown);
    } else {
        listening_explain(NULL, what, address, error, text, sizeof(text));
        config_fault_add(check->faults, false, address->line, "%s", text);
    }
}

static void check_listeners(struct check *check) {
    const struct config *config = check->config;
    const struct {
        const char *what;
        const struct config_listeners *listeners;
    } kinds[] = {{"listen.mqtt", &config->listen.mqtt},   {"listen.mqtts", &config->listen.mqtts},
                 {"listen.ws", &config->listen.ws},       {"listen.wss", &config->listen.wss},
                 {"listen.peers", &config->listen.peers}, {"listen.admin", &config->listen.admin}};
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        const struct config_listeners *listeners = kinds[kind].listeners;
        for (size_t i = 0; i < listeners->count; i++) {
            const struct config_address *address = &listeners->items[i];
            const bool v6only = listening_v6only(listeners, address);
            if (address->is_unix)
                check_unix(address, kinds[kind].what, check->faults);
            else
                check_port(check, address, v6only, SOCK_STREAM, kinds[kind].what);
            if (listeners == &config->listen.peers)
                check_port(check, address, v6only, SOCK_DGRAM, "listen.peers (UDP)");
        }
    }
}

/* Its ports are in use, and its database is not read, and neither is a fault. */
static void tell_of_broker(struct check *check) {
    if (!check->runs) return;
    config_fault_add(check->faults, true, check->config->data_dir_line,
                     "a broker with this data_dir runs here now, %s: it has its database, which is not read, and "
                     "%s%s; a start beside it would be refused",
                     check->who, check->ports[0] != '\0' ? "what is in use of its ports: " : "none of these ports",
                     check->ports);
}

/* What is in the file that the configuration names is not what is used: no fault, and a riddle to who looks for it. */
static void tell_of_ring(struct check *check) {
    const struct config *config = check->config;
    struct auth_signed_ring ring;
    char text[AUTH_SIGNED_RING_MAX + 1], error[RING_FILE_ERROR_MAX];
    if (config->federation.gossip_key.line == 0 || config->data_dir == NULL ||
        ring_file_read_kept(config->data_dir, &ring, text, error) != RING_FILE_OK ||
        strcmp(ring.federation, config->federation.name) != 0)
        return;
    config_fault_add(check->faults, true, config->federation.gossip_key.line,
                     "federation.gossip_key: data_dir holds key ring %" PRIu64
                     " (gossip.ring), which takes the place of the keys in this file unless they are a later ring",
                     ring.number);
    explicit_bzero(&ring, sizeof(ring));
    explicit_bzero(text, sizeof(text));
}

void check_surroundings(const struct config *config, struct config_faults *faults) {
    struct check check = {.config = config, .faults = faults};
    check_data_dir(&check);
    tell_of_ring(&check);
    check_listeners(&check);
    tell_of_broker(&check);
}
