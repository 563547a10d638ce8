/* What a packet holds: a header, then messages. PROTOCOL.md has the table. */
#ifndef GOSSIP_MESSAGE_H
#define GOSSIP_MESSAGE_H

#include "gossip/wire.h"

#define MESSAGE_PROTOCOL 1u
#define MESSAGE_HEADER_MAX 94u /* bytes of the longest packet header */
#define MESSAGE_TOKEN_MAX 900u
#define MESSAGE_REASON_MAX 160u
#define MESSAGE_CHUNK_SIZE 700u /* of a checkpoint; the last may be shorter */
#define MESSAGE_PROOF_MAX 320u  /* of a chunk: hashes on its way to the root (checkpoint.h) */
#define MESSAGE_ROLL_MAX 920u
#define MESSAGE_FOR_SIZE 24u /* id and number (big-endian) of who has a member pinged by a helper */
#define MESSAGE_BUCKET_COUNT 64u
#define MESSAGE_VERSION_SIZE 48u /* one record of MESSAGE_VERSIONS */
#define MESSAGE_VERSIONS_MAX 20u /* records in one message */
/* The longest entry (body and signature) that fits a packet beside the longest header. */
#define MESSAGE_BLOB_MAX 1020u

/* On every packet: who speaks, and what it holds of the receiver's log, so that any packet acknowledges. */
struct packet_header {
    struct member_id id;
    uint64_t epoch, incarnation, sequence;
    uint64_t holds_epoch, holds_incarnation, holds_sequence; /* zeros when it holds nothing */
    uint8_t cookie[8]; /* to be echoed: proves that the receiver is where it says */
    uint8_t echo[8];   /* the last cookie got from there, zeros if none */
};

enum message_kind {
    MESSAGE_HEAD = 1,        /* bytes: a signed head */
    MESSAGE_ENTRY = 2,       /* bytes: a signed log entry */
    MESSAGE_PING = 3,        /* number; bytes: for whom, MESSAGE_FOR_SIZE, or none */
    MESSAGE_PONG = 4,        /* number; bytes: signed for whom it was asked, or none */
    MESSAGE_PING_REQ = 5,    /* number, version.id: probe it for me */
    MESSAGE_INDIRECT = 6,    /* number, flag: it answered, or not in time; bytes: the answer, signed */
    MESSAGE_WHO = 7,         /* version.id: its key and token, please */
    MESSAGE_TOKEN = 8,       /* key, bytes */
    MESSAGE_REFUSED = 9,     /* bytes: why your token is not good here */
    MESSAGE_ACCUSE = 10,     /* version.{id, epoch, incarnation}, other: the accuser; bytes: signed by it, or none */
    MESSAGE_HAVE = 11,       /* version.{id, epoch, incarnation, sequence}: ask me if you lack it */
    MESSAGE_HAD = 12,        /* the same: what you sent I had already */
    MESSAGE_DIGEST = 13,     /* number: hash of all */
    MESSAGE_BUCKETS = 14,    /* bytes: MESSAGE_BUCKET_COUNT hashes of 8 bytes; number: members listed */
    MESSAGE_VERSIONS = 15,   /* number: bucket; version.id and other: all of (id, other] is listed; bytes: records */
    MESSAGE_WANT = 16,       /* version: what I hold of this owner; send what is newer */
    MESSAGE_WANT_CHUNK = 17, /* version.{id, epoch, sequence}: a checkpoint; number: the chunk */
    MESSAGE_CHUNK = 18,      /* the same, bytes, and the proof that they belong to the checkpoint */
    MESSAGE_SEEN_AT = 19,    /* address: where your packets come from */
    MESSAGE_PROOF = 20,      /* bytes: signature over the cookie that came with your packet (proof.c) */
    MESSAGE_LATER = 21, /* number: milliseconds after which to ask again; version.id: or ask that one (catchup.c) */
    MESSAGE_PULL = 22,  /* over links only: compare your whole table with mine */
    MESSAGE_RING = 26,  /* bytes: a signed key ring; over links only (ring.c) */
    MESSAGE_PROVE = 31, /* prove that you are where your packets come from (proof.c) */
    MESSAGE_VOUCH = 32, /* version.{id, epoch}: it is alive (roll.c) */
    MESSAGE_ROLL = 33,  /* whom I lack of (version.id, other]; roll.c says what is what */
    MESSAGE_SEEK = 34   /* bytes: a signed head; to a multicast group: who is there? (seek.c) */
};

struct version {
    struct member_id id;
    uint64_t epoch, incarnation, sequence;
    uint8_t mark[8]; /* of all that is held of it at that sequence (repair.c) */
};

struct message {
    enum message_kind kind;
    uint64_t number;
    bool flag;
    struct version version;
    struct member_id other;
    struct gossip_address address;
    const uint8_t *key; /* GOSSIP_PUBLIC_KEY_SIZE bytes */
    const uint8_t *bytes;
    size_t size;
    const uint8_t *proof;
    size_t proof_size;
};

void header_put(struct wire_out *out, const struct packet_header *header);
void header_get(struct wire_in *in, struct packet_header *header);

void message_put(struct wire_out *out, const struct message *message);
/* False at the end of the packet or when in->failed. Kinds from the future are passed over. Views end with the packet.
 */
bool message_get(struct wire_in *in, struct message *message);

void version_store(uint8_t out[MESSAGE_VERSION_SIZE], const struct version *version);
void version_load(const uint8_t in[MESSAGE_VERSION_SIZE], struct version *version);

#endif
