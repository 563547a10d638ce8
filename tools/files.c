#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "complain.h"

const char *file_remedy(int error) {
    static char other[128];
    switch (error) {
    case ENOENT: return "no such file or folder; check the path";
    case EACCES:
    case EPERM: return "permission denied; run as the user who owns it, or change its mode";
    case EROFS: return "the file system is read-only; choose another place";
    case ENOSPC: return "the disk is full; free some space or choose another place";
    case EDQUOT: return "the disk quota is used up; free some space or choose another place";
    case EEXIST: return "exists already, and nothing is overwritten; choose another name or move it away";
    case EISDIR: return "is a folder; name a file";
    case ENOTDIR: return "a part of the path is not a folder; check the path";
    case ENAMETOOLONG: return "the name is too long; choose a shorter one";
    default: snprintf(other, sizeof other, "%s; check the path and the disk", strerror(error)); return other;
    }
}

bool file_read(const char *path, char **text, size_t *size) {
    int file = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        complain("%s: %s", path, file_remedy(errno));
        return false;
    }
    char *bytes = malloc(FILE_READ_MAX + 1);
    size_t held = 0;
    ssize_t got = bytes != NULL ? 1 : -1;
    while (got > 0 && held < FILE_READ_MAX) {
        got = read(file, bytes + held, FILE_READ_MAX - held);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            held += (size_t)got;
    }
    int error = bytes == NULL ? ENOMEM : errno;
    if (file != STDIN_FILENO) close(file);
    if (got < 0 || held == FILE_READ_MAX) {
        if (got < 0)
            complain("%s: %s", path, file_remedy(error));
        else
            complain("%s: is larger than any key or token; check the path", path);
        free(bytes);
        return false;
    }
    bytes[held] = '\0';
    *text = bytes;
    *size = held;
    return true;
}

static bool write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        ssize_t put = write(file, text, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        text += put;
        size -= (size_t)put;
    }
    return true;
}

bool file_write_new(const char *path, const char *text, mode_t mode) {
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (file < 0) {
        complain("%s: %s", path, file_remedy(errno));
        return false;
    }
    /* fchmod, because the umask may have taken bits of a file that others are meant to read. */
    bool good = write_all(file, text, strlen(text)) && fchmod(file, mode) == 0 && fsync(file) == 0;
    int error = errno;
    if (close(file) != 0 && good) {
        good = false;
        error = errno;
    }
    if (!good) {
        complain("%s: %s", path, file_remedy(error));
        unlink(path);
    }
    return good;
}

bool folder_sync(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = folder >= 0 && fsync(folder) == 0;
    int error = errno;
    if (folder >= 0) close(folder);
    /* Some file systems cannot do it for folders; that is no fault of the user's. */
    if (!good && error != EINVAL) complain("%s: %s", path, file_remedy(error));
    return good || error == EINVAL;
}

bool random_bytes(uint8_t *bytes, size_t size) {
    /* Up to 256 bytes are never split (getrandom(2)); before that it may be interrupted while the pool fills. */
    ssize_t got;
    do
        got = getrandom(bytes, size, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)size) return true;
    complain("randomness: the system gives none (%s); try again when it has started up", strerror(errno));
    return false;
}
