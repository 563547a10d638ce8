/* What a datagram says, in a line: for traces. */
#include "tools/simulate/world.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#include <string.h>

#define ENVELOPE 17u

static const char *kind_name(enum message_kind kind) {
    static const char *const names[] = {"",        "HEAD",     "ENTRY",   "PING",       "PONG",  "PING_REQ", "INDIRECT",
                                        "WHO",     "TOKEN",    "REFUSED", "ACCUSE",     "HAVE",  "HAD",      "DIGEST",
                                        "BUCKETS", "VERSIONS", "WANT",    "WANT_CHUNK", "CHUNK", "SEEN_AT",  "PROOF"};
    return kind < sizeof names / sizeof *names ? names[kind] : "NEWER";
}

static const char *who(const struct world *world, const struct member_id *id) {
    uint32_t identity = world_identity(world, id);
    return identity == UINT32_MAX ? "nobody" : world_owner(world, identity)->name;
}

static bool is_about(enum message_kind kind) {
    return kind == MESSAGE_ACCUSE || kind == MESSAGE_HAVE || kind == MESSAGE_HAD || kind == MESSAGE_WANT ||
           kind == MESSAGE_WHO || kind == MESSAGE_PING_REQ || kind == MESSAGE_WANT_CHUNK || kind == MESSAGE_CHUNK;
}

void explain_datagram(const struct world *world, const struct gossip_datagram *datagram, char *text, size_t room) {
    struct wire_in in;
    struct packet_header header;
    struct message message;
    size_t used = 0;
    text[0] = '\0';
    if (datagram->size < SEAL_OVERHEAD) return;
    wire_in_init(&in, datagram->bytes + ENVELOPE, datagram->size - SEAL_OVERHEAD);
    header_get(&in, &header);
    while (used < room && message_get(&in, &message)) {
        int wrote = is_about(message.kind)
                        ? snprintf(text + used, room - used, " %s(%s %llu/%llu/%llu)", kind_name(message.kind),
                                   who(world, &message.version.id), (unsigned long long)message.version.epoch,
                                   (unsigned long long)message.version.incarnation,
                                   (unsigned long long)message.version.sequence)
                        : snprintf(text + used, room - used, " %s", kind_name(message.kind));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
