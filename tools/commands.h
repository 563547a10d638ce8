/* The commands of hobnob, one file each. argv[0] is the command's whole name; the result is an exit code. */
#ifndef TOOLS_COMMANDS_H
#define TOOLS_COMMANDS_H

int command_init(int argc, char **argv);
int command_key(int argc, char **argv);
int command_key_rotate(int argc, char **argv);
int command_key_show(int argc, char **argv);
int command_key_push(int argc, char **argv);
int command_token(int argc, char **argv);
int command_token_mint(int argc, char **argv);
int command_token_show(int argc, char **argv);
int command_token_verify(int argc, char **argv);
int command_status(int argc, char **argv);
int command_members(int argc, char **argv);
int command_registry(int argc, char **argv);
int command_links(int argc, char **argv);
int command_why(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_simulate(int argc, char **argv); /* tools/simulate */

#endif
