#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

static void print_line(const char *format, va_list arguments) {
    fputs("hobnob: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
}

int complain_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
    return EXIT_USAGE;
}
