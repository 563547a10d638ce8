#include "daemon/ring_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT "gossip.ring"
#define KEPT_NEW "gossip.ring.new"
#define INBOX "inbox"

static bool join(char path[PATH_MAX], const char *folder, const char *name) {
    return (size_t)snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* ---- reading ---- */

/* At most RING_FILE_MAX bytes of a plain file; -1 and errno. A link or a pipe that somebody left there is not followed
 * or waited for. */
static long read_small(int folder, const char *path, char text[RING_FILE_MAX + 1], struct stat *status) {
    const int file = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return -1;
    size_t size = 0;
    ssize_t got = -1;
    errno = fstat(file, status) != 0 ? errno : S_ISREG(status->st_mode) ? 0 : EINVAL;
    if (errno == 0) {
        do {
            got = read(file, text + size, RING_FILE_MAX + 1 - size);
            if (got > 0) size += (size_t)got;
        } while ((got > 0 && size <= RING_FILE_MAX) || (got < 0 && errno == EINTR));
        if (got >= 0 && size > RING_FILE_MAX) {
            errno = EFBIG;
            got = -1;
        }
    }
    const int error = errno;
    close(file);
    errno = error;
    if (got < 0) return -1;
    text[size] = '\0';
    return (long)size;
}

enum ring_file_result ring_file_read_kept(const char *data_dir, struct auth_signed_ring *ring,
                                          char text[AUTH_SIGNED_RING_MAX + 1], char error[RING_FILE_ERROR_MAX]) {
    char path[PATH_MAX], file[RING_FILE_MAX + 1], reason[160] = "";
    struct stat status;
    if (data_dir == NULL || !join(path, data_dir, KEPT)) return RING_FILE_NONE;
    const long size = read_small(AT_FDCWD, path, file, &status);
    if (size < 0 && (errno == ENOENT || errno == ENOTDIR)) return RING_FILE_NONE;
    if (size < 0) {
        snprintf(error, RING_FILE_ERROR_MAX, "%.200s cannot be read: %s", path, strerror(errno));
        return RING_FILE_BAD;
    }
    size_t ring_size = 0;
    const char *begin = auth_signed_ring_in(file, (size_t)size, &ring_size);
    if (begin == NULL || auth_signed_ring_read(begin, ring_size, ring, reason) != AUTH_OK) {
        snprintf(error, RING_FILE_ERROR_MAX, "%.200s is damaged", path);
        return RING_FILE_BAD;
    }
    memcpy(text, begin, ring_size);
    text[ring_size] = '\0';
    explicit_bzero(file, sizeof(file));
    return RING_FILE_OK;
}

/* ---- keeping ---- */

static bool write_whole(int folder, const char *name, const char *text, size_t size) {
    const int file = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return false;
    bool good = true;
    while (good && size > 0) {
        const ssize_t put = write(file, text, size);
        if (put < 0 && errno == EINTR) continue;
        good = put > 0;
        if (good) text += put, size -= (size_t)put;
    }
    good = good && fsync(file) == 0;
    const int error = errno;
    close(file);
    errno = error;
    return good;
}

bool ring_file_keep(const char *data_dir, const char *text, size_t size, char error[RING_FILE_ERROR_MAX]) {
    const int folder = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good =
        folder >= 0 && write_whole(folder, KEPT_NEW, text, size) && renameat(folder, KEPT_NEW, folder, KEPT) == 0;
    if (good && fsync(folder) != 0) good = errno == EINVAL; /* some file systems cannot do it for folders */
    if (!good)
        snprintf(error, RING_FILE_ERROR_MAX,
                 "%.200s/" KEPT " cannot be written: %s; make room, or let the user that runs hobnobd write there",
                 data_dir, strerror(errno));
    if (folder >= 0) close(folder);
    return good;
}

/* ---- the inbox ---- */

static bool is_for_us(const char *name) {
    const size_t size = strlen(name), suffix = strlen(RING_INBOX_REFUSED);
    return name[0] != '.' && !(size >= suffix && strcmp(name + size - suffix, RING_INBOX_REFUSED) == 0) &&
           size < sizeof(((struct ring_inbox_file *)0)->name) - suffix;
}

static void read_file(int folder, const char *name, struct ring_inbox_file *file) {
    struct stat status = {0};
    *file = (struct ring_inbox_file){0};
    memcpy(file->name, name, strlen(name));
    file->read = read_small(folder, name, file->text, &status) >= 0;
    if (!file->read)
        snprintf(file->error, sizeof(file->error), "%s",
                 errno == EFBIG    ? "it is larger than any key ring"
                 : errno == EINVAL ? "it is no plain file"
                                   : strerror(errno));
    file->inode = status.st_ino;
    file->size = (uint64_t)status.st_size;
    file->changed_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
}

size_t ring_inbox_read(const char *data_dir, struct ring_inbox_file files[RING_INBOX_FILES_MAX]) {
    char path[PATH_MAX];
    if (!join(path, data_dir, INBOX)) return 0;
    (void)mkdir(path, 0700); /* so that whoever looks for it finds it */
    DIR *folder = opendir(path);
    size_t count = 0;
    for (struct dirent *entry; folder != NULL && count < RING_INBOX_FILES_MAX && (entry = readdir(folder)) != NULL;)
        if (is_for_us(entry->d_name)) read_file(dirfd(folder), entry->d_name, &files[count++]);
    if (folder != NULL) closedir(folder);
    return count;
}

void ring_inbox_remove(const char *data_dir, const struct ring_inbox_file *file) {
    char folder[PATH_MAX], path[PATH_MAX];
    if (join(folder, data_dir, INBOX) && join(path, folder, file->name)) (void)unlink(path);
}

void ring_inbox_refuse(const char *data_dir, const struct ring_inbox_file *file) {
    char folder[PATH_MAX], path[PATH_MAX], aside[PATH_MAX + sizeof(RING_INBOX_REFUSED)];
    if (!join(folder, data_dir, INBOX) || !join(path, folder, file->name)) return;
    snprintf(aside, sizeof(aside), "%s" RING_INBOX_REFUSED, path);
    (void)rename(path, aside);
}
