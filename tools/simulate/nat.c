#include "tools/simulate/nat.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 20000u

struct mapping {
    uint64_t until_us;
    uint16_t port;
};

struct nat {
    bool symmetric;
    uint32_t host_max, given; /* ports so far */
    struct mapping any;       /* cone */
    struct mapping partners[];
};

struct nat *nat_new(bool symmetric, uint32_t host_max) {
    struct nat *nat = memory_new(1, sizeof *nat + host_max * sizeof *nat->partners);
    nat->symmetric = symmetric;
    nat->host_max = host_max;
    return nat;
}

void nat_free(struct nat *nat) {
    free(nat);
}

void nat_forget(struct nat *nat) {
    memset(nat->partners, 0, nat->host_max * sizeof *nat->partners);
    nat->any = (struct mapping){0};
}

static void keep(struct nat *nat, struct mapping *mapping, uint64_t now_us) {
    if (mapping->until_us <= now_us) mapping->port = (uint16_t)(FIRST_PORT + nat->given++ % 40000);
    mapping->until_us = now_us + NAT_KEEP_US;
}

uint16_t nat_let_out(struct nat *nat, uint64_t now_us, uint32_t to) {
    struct mapping *partner = &nat->partners[to];
    if (nat->symmetric) {
        keep(nat, partner, now_us);
        return partner->port;
    }
    keep(nat, &nat->any, now_us);
    partner->port = nat->any.port;
    partner->until_us = now_us + NAT_KEEP_US;
    return nat->any.port;
}

bool nat_lets_in(const struct nat *nat, uint64_t now_us, uint32_t from, uint16_t port) {
    const struct mapping *partner = &nat->partners[from];
    return partner->until_us > now_us && partner->port == port;
}
