#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/token.h"
#include "complain.h"
#include "files.h"
#include "keyfile.h"
#include "site.h"

/* What all brokers get. */
struct shared {
    struct auth_key *issuer;
    char gossip[192];
};

static bool join(char path[PATH_MAX], const char *folder, const char *name, const char *suffix) {
    if (snprintf(path, PATH_MAX, "%s/%s%s", folder, name, suffix) < PATH_MAX) return true;
    complain("%s/%s%s: the path is too long; choose a shorter one", folder, name, suffix);
    return false;
}

static bool make_folder(const char *path) {
    if (mkdir(path, 0777) == 0) return true;
    complain("%s: %s", path, file_remedy(errno));
    return false;
}

static bool write_token(const struct site *site, const struct site_broker *broker, const struct auth_key *key,
                        const struct auth_key *issuer, const char *path) {
    char audience[] = AUTH_AUDIENCE_BROKER, name[64], reason[160] = "", *token = NULL;
    uint8_t entropy[16];
    snprintf(name, sizeof name, "%s", broker->name);
    /* Borrows, so it is never given to auth_claims_deinit(). */
    struct auth_claims claims = {.subject = name,
                                 .audience = audience,
                                 .issued_at_s = site->now_s,
                                 .expires_at_s = site->expires_at_s,
                                 .key_bound = true};
    auth_key_thumbprint(key, claims.key_thumbprint);
    if (!random_bytes(entropy, sizeof entropy)) return false;
    if (auth_token_mint_saying(&claims, issuer, entropy, &token, reason) != AUTH_OK) {
        complain("%s: %s", broker->name, reason);
        return false;
    }
    size_t size = strlen(token);
    char *line = malloc(size + 2);
    bool good = line != NULL;
    if (good) {
        memcpy(line, token, size);
        memcpy(line + size, "\n", 2);
        good = file_write_new(path, line, 0644);
    } else {
        complain("memory is short; try again");
    }
    free(line);
    free(token);
    return good;
}

static bool write_config(const struct site *site, size_t index, const char *path) {
    char *text = site_config_text(site, index);
    if (text == NULL) complain("memory is short; try again");
    bool good = text != NULL && file_write_new(path, text, 0644);
    free(text);
    return good;
}

static bool write_broker(const struct site *site, size_t index, const struct shared *shared, const char *dir) {
    const struct site_broker *broker = &site->brokers[index];
    char folder[PATH_MAX], path[PATH_MAX];
    struct auth_key *key = NULL;
    bool good = join(folder, dir, broker->name, "") && make_folder(folder) && keyfile_make(&key) &&
                join(path, folder, broker->name, ".key") && keyfile_write(key, path, NULL) &&
                join(path, folder, broker->name, ".jwt") && write_token(site, broker, key, shared->issuer, path) &&
                join(path, folder, "issuer.pub", "") && keyfile_write(shared->issuer, NULL, path) &&
                join(path, folder, "gossip.key", "") && file_write_new(path, shared->gossip, 0600) &&
                join(path, folder, "hobnob.yaml", "") && write_config(site, index, path) && folder_sync(folder);
    auth_key_free(key);
    return good;
}

static bool write_all(const struct site *site, const char *dir) {
    struct shared shared = {NULL, ""};
    char path[PATH_MAX], public_path[PATH_MAX];
    bool good = keyfile_make(&shared.issuer) && keyfile_gossip_text(shared.gossip) &&
                join(path, dir, "issuer.key", "") && join(public_path, dir, "issuer.pub", "") &&
                keyfile_write(shared.issuer, path, public_path) && join(path, dir, "gossip.key", "") &&
                file_write_new(path, shared.gossip, 0600);
    for (size_t i = 0; good && i < site->broker_count; i++)
        good = write_broker(site, i, &shared, dir);
    good = good && folder_sync(dir);
    auth_key_free(shared.issuer);
    explicit_bzero(shared.gossip, sizeof shared.gossip);
    return good;
}

static int on_entry(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status, (void)type, (void)place;
    (void)remove(path); /* what stays is named by the complaint about the folder */
    return 0;
}

static void remove_tree(const char *dir) {
    nftw(dir, on_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (access(dir, F_OK) == 0) complain("%s: could not be removed; delete this half-made folder", dir);
}

/* Like rename(), but never onto a folder that exists, not even an empty one. */
static bool move_into_place(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    struct stat status;
    bool unsupported = errno == EINVAL || errno == ENOSYS;
    if (unsupported && lstat(to, &status) == 0)
        errno = EEXIST;
    else if (unsupported && rename(from, to) == 0)
        return true;
    complain("%s: %s", to, file_remedy(errno));
    return false;
}

/* The folder that holds dir, and a name beside dir for the work. */
static bool name_work(const char *dir, char parent[PATH_MAX], char work[PATH_MAX]) {
    const char *slash = strrchr(dir, '/');
    int parent_size = slash == NULL ? 0 : slash == dir ? 1 : (int)(slash - dir);
    snprintf(parent, PATH_MAX, "%.*s", parent_size == 0 ? 1 : parent_size, parent_size == 0 ? "." : dir);
    if (snprintf(work, PATH_MAX, "%s/.hobnob-init-XXXXXX", parent) < PATH_MAX) return true;
    complain("%s: the path is too long; choose a shorter one", dir);
    return false;
}

static bool write_beside(const struct site *site) {
    char parent[PATH_MAX], work[PATH_MAX];
    if (!name_work(site->dir, parent, work)) return false;
    if (mkdtemp(work) == NULL) {
        complain("%s: %s", parent, file_remedy(errno));
        return false;
    }
    mode_t mask = umask(0);
    umask(mask);
    bool good = write_all(site, work);
    if (good && chmod(work, 0777 & ~mask) != 0) {
        complain("%s: %s", work, file_remedy(errno));
        good = false;
    }
    good = good && move_into_place(work, site->dir);
    if (!good) {
        remove_tree(work);
        return false;
    }
    return folder_sync(parent);
}

bool site_write(const struct site *site) {
    struct stat status;
    if (lstat(site->dir, &status) == 0) {
        complain("%s: %s", site->dir, file_remedy(EEXIST));
        return false;
    }
    /* Ctrl-C waits for the moment it takes, so that nothing half-made stays behind. */
    sigset_t held, before;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigprocmask(SIG_BLOCK, &held, &before);
    bool good = write_beside(site);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}
