/* How the tool says that something went wrong: one line on standard error, "hobnob: what: cause; remedy". */
#ifndef TOOLS_COMPLAIN_H
#define TOOLS_COMPLAIN_H

enum exit_code { EXIT_GOOD = 0, EXIT_NO = 1, EXIT_USAGE = 2 };

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, returning EXIT_USAGE: for wrong words on the command line. */
int complain_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
