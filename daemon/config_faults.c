/* The list of faults: what is wrong, in which line, and what to write. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/config.h"

void config_fault_add(struct config_faults *faults, bool warning, int line, const char *format, ...) {
    if (!warning) faults->errors++;
    if (faults->count == CONFIG_FAULTS_MAX) return;
    struct config_fault *fault = &faults->items[faults->count++];
    fault->warning = warning;
    fault->line = line;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    for (char *c = fault->text; *c != '\0'; c++) /* values from the file may hold anything */
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

/* Insertion keeps equal lines in order, which qsort does not promise. */
void config_faults_sort(struct config_faults *faults) {
    for (size_t i = 1; i < faults->count; i++) {
        const struct config_fault fault = faults->items[i];
        size_t at = i;
        for (; at > 0 && faults->items[at - 1].line > fault.line; at--)
            faults->items[at] = faults->items[at - 1];
        faults->items[at] = fault;
    }
}

void config_fault_format(const struct config_fault *fault, const char *file, char *out, size_t size) {
    const char *kind = fault->warning ? "warning: " : "";
    if (fault->line > 0)
        snprintf(out, size, "%s:%d: %s%s", file, fault->line, kind, fault->text);
    else
        snprintf(out, size, "%s: %s%s", file, kind, fault->text);
}
