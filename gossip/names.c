/* Two keys with one name: the one that is there stays, and the other is refused until it is gone. Each broker decides
 * by whom it has seen first; all say so, for only an admin can tell which of the two is the right one. */
#include "gossip/state.h"

#include <stdio.h>
#include <string.h>

static const struct member *namesake(const struct gossip *gossip, const char *name, const struct member_id *except,
                                     struct member *copy) {
    for (size_t i = 0; i < gossip->members.count; i++) {
        const struct member *member = members_look(gossip, i, copy);
        bool there = member->self || member_is_visible(member);
        if (there && !id_equal(&member->id, except) && strcmp(member->name, name) == 0) return member;
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
