/* A disk that fails where a test says: a SQLite VFS in front of the usual one, which counts what changes files. */
#ifndef UNIT_FAILING_DISK_H
#define UNIT_FAILING_DISK_H

#include <assert.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

struct failing_disk {
    pthread_mutex_t mutex;
    unsigned long operations;                /* writes, syncs and truncations so far */
    unsigned long fail_from, fail_to;        /* those from this number to below that one fail */
    int result;                              /* with this */
    void (*before)(unsigned long operation); /* may be NULL */
};
static struct failing_disk failing_disk = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct failing_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static sqlite3_file *failing_real(sqlite3_file *file) {
    return ((struct failing_file *)file)->real;
}

static int failing_result(void) {
    struct failing_disk *disk = &failing_disk;
    pthread_mutex_lock(&disk->mutex);
    const unsigned long operation = disk->operations++;
    const bool fails = operation >= disk->fail_from && operation < disk->fail_to;
    const int result = fails ? disk->result : SQLITE_OK;
    if (disk->before != NULL) disk->before(operation);
    pthread_mutex_unlock(&disk->mutex);
    return result;
}

/* From now on operations count from 0, and those from `from` to below `to` fail. */
static inline void failing_disk_set(unsigned long from, unsigned long to, int result) {
    pthread_mutex_lock(&failing_disk.mutex);
    failing_disk.operations = 0;
    failing_disk.fail_from = from;
    failing_disk.fail_to = to;
    failing_disk.result = result;
    pthread_mutex_unlock(&failing_disk.mutex);
}

static inline unsigned long failing_disk_operations(void) {
    pthread_mutex_lock(&failing_disk.mutex);
    const unsigned long operations = failing_disk.operations;
    pthread_mutex_unlock(&failing_disk.mutex);
    return operations;
}

static int failing_close(sqlite3_file *file) {
    return failing_real(file)->pMethods->xClose(failing_real(file));
}
static int failing_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 at) {
    return failing_real(file)->pMethods->xRead(failing_real(file), bytes, size, at);
}
static int failing_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at) {
    const int result = failing_result();
    return result != SQLITE_OK ? result : failing_real(file)->pMethods->xWrite(failing_real(file), bytes, size, at);
}
static int failing_truncate(sqlite3_file *file, sqlite3_int64 size) {
    const int result = failing_result();
    return result != SQLITE_OK ? result : failing_real(file)->pMethods->xTruncate(failing_real(file), size);
}
static int failing_sync(sqlite3_file *file, int flags) {
    const int result = failing_result();
    return result != SQLITE_OK ? result : failing_real(file)->pMethods->xSync(failing_real(file), flags);
}
static int failing_size(sqlite3_file *file, sqlite3_int64 *size) {
    return failing_real(file)->pMethods->xFileSize(failing_real(file), size);
}
static int failing_lock(sqlite3_file *file, int lock) {
    return failing_real(file)->pMethods->xLock(failing_real(file), lock);
}
static int failing_unlock(sqlite3_file *file, int lock) {
    return failing_real(file)->pMethods->xUnlock(failing_real(file), lock);
}
static int failing_check_lock(sqlite3_file *file, int *reserved) {
    return failing_real(file)->pMethods->xCheckReservedLock(failing_real(file), reserved);
}
static int failing_control(sqlite3_file *file, int operation, void *argument) {
    return failing_real(file)->pMethods->xFileControl(failing_real(file), operation, argument);
}
static int failing_sector(sqlite3_file *file) {
    return failing_real(file)->pMethods->xSectorSize(failing_real(file));
}
static int failing_character(sqlite3_file *file) {
    return failing_real(file)->pMethods->xDeviceCharacteristics(failing_real(file));
}

/* Version 1: without shared memory, which an exclusive connection does not need. */
static const sqlite3_io_methods failing_methods = {.iVersion = 1,
                                                   .xClose = failing_close,
                                                   .xRead = failing_read,
                                                   .xWrite = failing_write,
                                                   .xTruncate = failing_truncate,
                                                   .xSync = failing_sync,
                                                   .xFileSize = failing_size,
                                                   .xLock = failing_lock,
                                                   .xUnlock = failing_unlock,
                                                   .xCheckReservedLock = failing_check_lock,
                                                   .xFileControl = failing_control,
                                                   .xSectorSize = failing_sector,
                                                   .xDeviceCharacteristics = failing_character};

static int failing_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    sqlite3_vfs *real = vfs->pAppData;
    struct failing_file *own = (struct failing_file *)file;
    own->real = (sqlite3_file *)(own + 1);
    own->base.pMethods = NULL;
    const int result = real->xOpen(real, name, own->real, flags, out_flags);
    if (own->real->pMethods != NULL) own->base.pMethods = &failing_methods;
    return result;
}

/* For all connections opened from now on, in this program. */
static inline void failing_disk_install(void) {
    static sqlite3_vfs vfs;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    assert(real != NULL && vfs.zName == NULL);
    vfs = *real;
    vfs.szOsFile = (int)sizeof(struct failing_file) + real->szOsFile;
    vfs.pNext = NULL;
    vfs.zName = "failing";
    vfs.pAppData = real;
    vfs.xOpen = failing_open;
    sqlite3_vfs_register(&vfs, 1);
}

#endif
