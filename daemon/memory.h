/* Memory of the whole process against limits.memory_bytes_max: measured before the loop sleeps, at most every
 * MEMORY_EVERY_MS, and told to the broker, which takes nothing that lasts while it is short.
 */
#ifndef DAEMON_MEMORY_H
#define DAEMON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_EVERY_MS 10u

/* Resident bytes from the text of /proc/self/statm; 0 if it is not understood. */
uint64_t memory_parse_statm(const char *text, uint64_t page_size);
/* The lowest memory.max (cgroup v2) or memory.limit_in_bytes (v1) of the group that the text of /proc/self/cgroup
 * names, and of those above it, under root ("/sys/fs/cgroup"). UINT64_MAX if there is none. */
uint64_t memory_group_max(const char *text, const char *root);
/* Half of what the machine or the group has. */
uint64_t memory_default_max(void);

/* Before there are threads: what is freed stays in the heap up to the size of a large packet. The system would take it
 * back, and give it anew page by page, with each of them. */
void memory_keep_freed(void);

/* Short from max on, and again in order once it is a twentieth below it, so that it does not go to and fro. */
bool memory_is_short(uint64_t resident, uint64_t max, bool was_short);

struct memory;
struct server;

/* max: bytes; 0: memory_default_max(). NULL when memory is short. */
struct memory *memory_new(struct server *server, uint64_t max);
/* Measures if it is time, and tells the broker. Call server_pump() after it. */
void memory_turn(struct memory *memory);
void memory_close(struct memory *memory); /* begins to close its handle; it is freed with it */

struct memory_state {
    uint64_t resident, max; /* bytes */
    bool is_short;
};
struct memory_state memory_read(const struct memory *memory);

#endif
