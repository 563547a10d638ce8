/* Files of keys, tokens and settings. Every failure is complained about here, with a remedy; callers only pass it on.
 */
#ifndef TOOLS_FILES_H
#define TOOLS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FILE_READ_MAX 65536u /* bytes; no key or token is larger */

/* The whole file, or standard input for "-", with a final zero; freed by the caller. */
bool file_read(const char *path, char **text, size_t *size);
/* Makes a file that did not exist, with exactly this mode, and brings it to the disk. */
bool file_write_new(const char *path, const char *text, mode_t mode);
/* Brings a folder's entries to the disk. */
bool folder_sync(const char *path);
/* What errno means and what to do about it: "cause; remedy". */
const char *file_remedy(int error);
/* size bytes of the system's randomness, at most 256. */
bool random_bytes(uint8_t *bytes, size_t size);

#endif
