/* What a datagram says, in a line: for traces. */
#include "tools/simulate/world.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#include <string.h>

#define ENVELOPE 17u

static const char *kind_name(enum message_kind kind) {
    static const char *const names[] = {[MESSAGE_HEAD] = "HEAD",
                                        [MESSAGE_ENTRY] = "ENTRY",
                                        [MESSAGE_PING] = "PING",
                                        [MESSAGE_PONG] = "PONG",
                                        [MESSAGE_PING_REQ] = "PING_REQ",
                                        [MESSAGE_INDIRECT] = "INDIRECT",
                                        [MESSAGE_WHO] = "WHO",
                                        [MESSAGE_TOKEN] = "TOKEN",
                                        [MESSAGE_REFUSED] = "REFUSED",
                                        [MESSAGE_ACCUSE] = "ACCUSE",
                                        [MESSAGE_HAVE] = "HAVE",
                                        [MESSAGE_HAD] = "HAD",
                                        [MESSAGE_DIGEST] = "DIGEST",
                                        [MESSAGE_BUCKETS] = "BUCKETS",
                                        [MESSAGE_VERSIONS] = "VERSIONS",
                                        [MESSAGE_WANT] = "WANT",
                                        [MESSAGE_WANT_CHUNK] = "WANT_CHUNK",
                                        [MESSAGE_CHUNK] = "CHUNK",
                                        [MESSAGE_SEEN_AT] = "SEEN_AT",
                                        [MESSAGE_PROOF] = "PROOF",
                                        [MESSAGE_LATER] = "LATER",
                                        [MESSAGE_PULL] = "PULL",
                                        [MESSAGE_RING] = "RING",
                                        [MESSAGE_PROVE] = "PROVE",
                                        [MESSAGE_VOUCH] = "VOUCH",
                                        [MESSAGE_ROLL] = "ROLL",
                                        [MESSAGE_SEEK] = "SEEK"};
    return kind < sizeof names / sizeof *names && names[kind] ? names[kind] : "NEWER";
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
    for (size_t at = in.at; used < room && message_get(&in, &message); at = in.at) {
        int wrote = snprintf(text + used, room - used, " %s:%zu", kind_name(message.kind), in.at - at);
        used += wrote > 0 ? (size_t)wrote : 0;
        if (used >= room || !is_about(message.kind)) continue;
        wrote = snprintf(text + used, room - used, "(%s %llu/%llu/%llu)", who(world, &message.version.id),
                         (unsigned long long)message.version.epoch, (unsigned long long)message.version.incarnation,
                         (unsigned long long)message.version.sequence);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
