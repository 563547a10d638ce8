/* A token from a file: its bytes without the white space around them. */
#ifndef TOOLS_TOKENFILE_H
#define TOOLS_TOKENFILE_H

#include <stdbool.h>
#include <stddef.h>

/* path may be "-". Complains itself. The text is freed by the caller. */
bool tokenfile_read(const char *path, char **token, size_t *size);

#endif
