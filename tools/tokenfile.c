#include "tokenfile.h"

#include <string.h>

#include "files.h"

bool tokenfile_read(const char *path, char **token, size_t *size) {
    if (!file_read(path, token, size)) return false;
    size_t before = strspn(*token, " \t\r\n");
    *size -= before;
    memmove(*token, *token + before, *size + 1);
    while (*size > 0 && strchr(" \t\r\n", (*token)[*size - 1]) != NULL)
        (*token)[--*size] = '\0';
    return true;
}
