/* Two keys with one name: the one that is there stays, and the other is refused until it is gone. Each broker decides
 * by whom it has seen first; all say so, for only an admin can tell which of the two is the right one. */
#include "gossip/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_at(const struct gossip *gossip, uint32_t slot) {
    const struct quiet *quiet = quiet_of(&gossip->members, gossip->names.slots[slot] - 1);
    return quiet->is_awake ? quiet->awake->name_hash : quiet->portrait->who->name_hash;
}

static void put(struct gossip *gossip, uint32_t number, uint32_t hash) {
    struct names *names = &gossip->names;
    uint32_t slot = hash & (names->size - 1);
    while (names->slots[slot] != 0)
        slot = (slot + 1) & (names->size - 1);
    names->slots[slot] = number + 1;
}

static bool reserve(struct gossip *gossip) {
    struct names *names = &gossip->names, before = *names;
    if (names->count < names->size / 4 * 3) return true;
    uint32_t size = names->size ? names->size * 2 : 16;
    uint32_t *slots = calloc(size, sizeof *slots);
    if (!slots) return false;
    *names = (struct names){slots, size, before.count};
    for (uint32_t slot = 0; slot < before.size; slot++) {
        if (before.slots[slot] == 0) continue;
        const struct quiet *quiet = quiet_of(&gossip->members, before.slots[slot] - 1);
        put(gossip, before.slots[slot] - 1,
            quiet->is_awake ? quiet->awake->name_hash : quiet->portrait->who->name_hash);
    }
    free(before.slots);
    return true;
}

void names_forget(struct gossip *gossip, struct member *member) {
    struct names *names = &gossip->names;
    if (member->name_hash == 0) return;
    uint32_t mask = names->size - 1, hole = member->name_hash & mask;
    while (names->slots[hole] != member->number + 1)
        hole = (hole + 1) & mask;
    names->slots[hole] = 0;
    /* Those behind move up, as far as they are not at home. */
    for (uint32_t slot = (hole + 1) & mask; names->slots[slot] != 0; slot = (slot + 1) & mask) {
        uint32_t home = hash_at(gossip, slot) & mask;
        if (((slot - home) & mask) < ((slot - hole) & mask)) continue;
        names->slots[hole] = names->slots[slot];
        names->slots[slot] = 0;
        hole = slot;
    }
    names->count--;
    member->name_hash = 0;
}

void names_changed(struct gossip *gossip, struct member *member) {
    bool there = member->who && (member->self || member_is_visible(member));
    uint32_t hash = there ? member->who->name_hash : 0;
    if (hash == member->name_hash) return;
    names_forget(gossip, member);
    /* Short of memory it is not found by its name, until it changes again. */
    if (hash == 0 || !reserve(gossip)) return;
    put(gossip, member->number, hash);
    gossip->names.count++;
    member->name_hash = hash;
}

static const struct member *namesake(const struct gossip *gossip, const char *name, const struct member_id *except,
                                     struct member *copy) {
    const struct names *names = &gossip->names;
    uint32_t hash = name_hash(name);
    for (uint32_t slot = hash; names->size > 0; slot++) {
        uint32_t at = slot & (names->size - 1);
        if (names->slots[at] == 0) break;
        if (hash_at(gossip, at) != hash) continue;
        const struct member *member = members_look_at(gossip, names->slots[at] - 1, copy);
        if (!id_equal(&member->id, except) && strcmp(member->name, name) == 0) return member;
    }
    return NULL;
}

bool names_free(const struct gossip *gossip, const char *name, const struct member_id *id) {
    struct member copy;
    return namesake(gossip, name, id, &copy) == NULL;
}

static void format(const struct gossip_address *address, char *out, size_t size) {
    const uint8_t *ip = address->ip;
    if (address->family == 4) {
        snprintf(out, size, "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], address->port);
    } else if (address->family == 6) {
        size_t at = 0;
        for (size_t i = 0; i < 16 && at < size; i += 2)
            at += (size_t)snprintf(out + at, size - at, "%s%x", i == 0 ? "[" : ":", ip[i] << 8 | ip[i + 1]);
        if (at < size) snprintf(out + at, size - at, "]:%u", address->port);
    } else {
        snprintf(out, size, "an unknown address");
    }
}

bool names_check(const struct gossip *gossip, const struct member_id *id, const char *name, char reason[160]) {
    struct member copy;
    const struct member *other = namesake(gossip, name, id, &copy);
    if (!other) return true;
    char address[64];
    const uint8_t *bytes = other->id.bytes;
    format(other->address.family ? &other->address : &other->path, address, sizeof address);
    snprintf(reason, 160,
             "the name %.20s is that of another key, %02x%02x%02x%02x at %.47s: stop one, or name it anew (token mint)",
             name, bytes[0], bytes[1], bytes[2], bytes[3], address);
    return false;
}

bool gossip_name_is_free(const struct gossip *gossip, const struct member_id *id, const char *name, char reason[160]) {
    return names_check(gossip, id, name, reason);
}
