/* A router that gives one broker an address: a mapping lives for 30 s after the last datagram out, and lets in only who
 * was spoken to. Cone: one port for all while any mapping lives. Symmetric: a port for each partner. */
#ifndef SIMULATE_NAT_H
#define SIMULATE_NAT_H

#include <stdbool.h>
#include <stdint.h>

#define NAT_INSIDE_PORT 7100u
#define NAT_KEEP_US 30000000u

struct nat;

struct nat *nat_new(bool symmetric, uint32_t host_max);
void nat_free(struct nat *nat);
void nat_forget(struct nat *nat); /* the router has restarted */
/* The port that the partner sees. */
uint16_t nat_let_out(struct nat *nat, uint64_t now_us, uint32_t to);
bool nat_lets_in(const struct nat *nat, uint64_t now_us, uint32_t from, uint16_t port);

#endif
