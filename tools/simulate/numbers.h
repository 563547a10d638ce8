/* hobnob simulate --numbers: the figures by which protocols are compared, each on the same networks. */
#ifndef SIMULATE_NUMBERS_H
#define SIMULATE_NUMBERS_H

/* argv[0] is the command, the rest its options. Returns the exit code. */
int numbers_command(int argc, char **argv);

#endif
