#include "daemon/check.h"

#include <errno.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/listening.h"
#include "daemon/store.h"

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

/* The first 100 bytes are SQLite's header: a name of 16 bytes, and at 60 the version of the schema, big-endian
 * (https://www.sqlite.org/fileformat.html section 1.3). */
static void check_database(const struct config *config, struct config_faults *faults) {
    char path[4096], log_path[4104];
    struct stat log_status;
    uint8_t header[100];
    snprintf(path, sizeof(path), "%s/hobnob.db", config->data_dir);
    FILE *file = access(path, R_OK | W_OK) == 0 ? fopen(path, "rb") : NULL;
    if (file == NULL && errno != ENOENT)
        config_fault_add(faults, false, config->data_dir_line,
                         "%s cannot be used: %s; let the user that runs hobnobd read and write it (chown)", path,
                         strerror(errno));
    if (file == NULL && errno != ENOENT) return;
    const size_t size = file != NULL ? fread(header, 1, sizeof(header), file) : 0;
    if (file != NULL) fclose(file);
    snprintf(log_path, sizeof(log_path), "%s-wal", path);
    if (size == 0 && stat(log_path, &log_status) == 0 && log_status.st_size > 0)
        config_fault_add(faults, false, config->data_dir_line,
                         "%s is there, and hobnob.db is missing or empty; put that one back, or both from a backup, or "
                         "move hobnob.db-wal away and start empty",
                         log_path);
    if (size == 0) return; /* begun, and never written */
    const uint32_t version = size == sizeof(header) ? (uint32_t)header[60] << 24 | (uint32_t)header[61] << 16 |
                                                          (uint32_t)header[62] << 8 | header[63]
                                                    : 0;
    if (size < sizeof(header) || memcmp(header, "SQLite format 3", 16) != 0)
        config_fault_add(
            faults, false, config->data_dir_line,
            "%s is damaged; move it and hobnob.db-wal away, then put back all from a backup, or start empty", path);
    else if (version > STORE_SCHEMA_VERSION)
        config_fault_add(faults, false, config->data_dir_line,
                         "%s was written by a newer hobnobd (schema %u, this one knows %d); run that one, or write "
                         "another data_dir",
                         path, (unsigned)version, STORE_SCHEMA_VERSION);
}

static void check_data_dir(const struct config *config, struct config_faults *faults) {
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
                         is_there ? "let the user that runs hobnobd write there (chown)"
                                  : "make the folder above it for the user that runs hobnobd");
    else if (is_there)
        check_database(config, faults);
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

static void check_port(const struct config_address *address, bool v6only, int type, const char *what,
                       struct config_faults *faults) {
    char text[CONFIG_FAULT_TEXT_MAX], shown[CONFIG_ADDRESS_MAX];
    const int error = address->ip[0] != '\0' ? listening_probe(address, v6only, type) : 0; /* unknown: said already */
    if (error == 0) return;
    if (error == EADDRINUSE) {
        config_address_format(address, shown);
        config_fault_add(faults, true, address->line,
                         "%s: %s is in use now; if that is not this broker itself, stop who uses it (ss -lntup shows "
                         "it), or write another port",
                         what, shown);
        return;
    }
    listening_explain(NULL, what, address, error, text, sizeof(text));
    config_fault_add(faults, false, address->line, "%s", text);
}

static void check_listeners(const struct config *config, struct config_faults *faults) {
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
                check_unix(address, kinds[kind].what, faults);
            else
                check_port(address, v6only, SOCK_STREAM, kinds[kind].what, faults);
            if (listeners == &config->listen.peers)
                check_port(address, v6only, SOCK_DGRAM, "listen.peers (UDP)", faults);
        }
    }
}

void check_surroundings(const struct config *config, struct config_faults *faults) {
    check_data_dir(config, faults);
    check_listeners(config, faults);
}
