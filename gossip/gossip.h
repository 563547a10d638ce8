/* Gossip: who is here, and the registry of who publishes and subscribes to what.
 *
 * Sans-IO. The caller gives datagrams and monotonic time and then fetches, until they return false,
 * gossip_next_datagram() and gossip_next_event(). Wire format and rules: PROTOCOL.md.
 * Papers: SWIM (Das, Gupta, Motivala 2002), Lifeguard (Dadgar, Phillips, Currey 2017).
 *
 * Identity is the key: a member's id is the first 16 bytes of the SHA-256 RFC 7638 thumbprint of its P-256 public key.
 * Everything an owner says (head, log entries, checkpoint) is signed by that key and relayed byte for byte. A member is
 * unverified, and its rows are hidden, until its token was checked by the caller's who_is.
 */
#ifndef GOSSIP_GOSSIP_H
#define GOSSIP_GOSSIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gossip;

#define GOSSIP_DATAGRAM_MAX 1200u  /* bytes of one sealed datagram */
#define GOSSIP_NAME_MAX 63u        /* bytes of a broker's name */
#define GOSSIP_PUBLIC_KEY_SIZE 65u /* uncompressed SEC 1 point on P-256 */
#define GOSSIP_SIGNATURE_SIZE 64u  /* ECDSA P-256 with SHA-256, r then s */
#define GOSSIP_KEYS_MAX 4u
#define GOSSIP_RING_SIZE_MAX 500u     /* bytes of a signed key ring */
#define GOSSIP_LINK_PACKET_MAX 16384u /* bytes of one packet over a link, not sealed */

struct member_id {
    uint8_t bytes[16];
};

struct gossip_address {
    uint8_t family; /* 4, 6, or 0 for none */
    uint8_t ip[16]; /* network order; the first 4 bytes for family 4 */
    uint16_t port;  /* host order */
};

/* A key of the ring. */
struct gossip_key {
    uint8_t id[4];
    uint8_t key[32];
};

/* What a signed key ring says. Rings are numbered: a later one takes the place of an earlier one, and of two with one
 * number the one with the higher digest stays. */
struct gossip_ring {
    bool good;                               /* signed by an issuer of ours, for our federation */
    uint64_t number;                         /* at least 1 */
    uint8_t digest[32];                      /* of what is signed */
    struct gossip_key keys[GOSSIP_KEYS_MAX]; /* the first seals, all open */
    size_t key_count;
    char reason[160]; /* when not good: what is wrong and what to do */
};

struct gossip_who {
    bool allowed;
    char name[GOSSIP_NAME_MAX + 1]; /* the token's subject; when not allowed what it is called in listings, if at all */
    uint64_t valid_for_ms;          /* until the token expires; UINT64_MAX never */
    char reason[160];               /* when not allowed: what is wrong and what to do */
};

/* Pure functions the core needs from outside (auth/ in the daemon and in the simulator). All answer at once. */
struct gossip_crypto {
    void *context;
    /* AES-256-GCM. seal writes size + 16 bytes (ciphertext, then tag) to out; open writes size - 16 and returns false
     * if the tag is wrong. */
    bool (*seal)(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                 const uint8_t *plain, size_t size, uint8_t *out);
    bool (*open)(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                 const uint8_t *sealed, size_t size, uint8_t *out);
    void (*sha256)(void *context, const uint8_t *bytes, size_t size, uint8_t digest[32]);
    /* Signs with this broker's own key; verify checks another's. */
    bool (*sign)(void *context, const uint8_t *bytes, size_t size, uint8_t signature[GOSSIP_SIGNATURE_SIZE]);
    bool (*verify)(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *bytes, size_t size,
                   const uint8_t signature[GOSSIP_SIGNATURE_SIZE]);
    /* The id that belongs to a public key; false if it is no point on the curve. */
    bool (*id_of)(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], struct member_id *id);
    /* Does this token make the holder of this key a broker of our federation, now? */
    void (*who_is)(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *token,
                   size_t token_size, struct gossip_who *who);
    /* Reads a signed key ring. NULL: none is ever good. */
    void (*read_ring)(void *context, const uint8_t *bytes, size_t size, struct gossip_ring *ring);
};

/* Zero means the default written beside it. */
struct gossip_limits {
    uint32_t probe_interval_ms; /* 500 */
    uint32_t probe_timeout_ms;  /* 200, longer where answers are known to take longer: then 3 indirect probes */
    uint32_t rumor_interval_ms; /* 200 */
    uint32_t suspicion_min_ms; /* 1,200: with no independent accuser three times that; the design's bar is death noticed
                                  in 3 s */
    uint32_t anti_entropy_ms;  /* 2,000 (jittered) */
    uint32_t rejoin_ms;   /* 2,000: one address and one member that are not alive are dialled, for ever; the first ten
                             times faster */
    uint32_t members_max; /* 16,384. One takes 1.9 KiB, key, head and a token of 320 bytes included; beyond awake_max
                             1 KiB, of which about 70 bytes are this gossip's own when the rest is shared */
    uint32_t rows_max;    /* rows of each kind per owner, ours and others': 512 */
    uint32_t owner_bytes_max;   /* bytes of the rows of one owner: 1 MiB */
    uint32_t log_entries_max;   /* kept per owner above its checkpoint: 64; no key of the configuration, since a broker
                                   with a lower one would not follow the others */
    uint32_t eager_members_max; /* own entries go to every alive member at once when there are at most this many: 32 */
    uint32_t datagrams_queued_max; /* 4,096; the oldest is dropped and counted */
    uint32_t down_keep_ms;         /* rows of a down member are kept this long for its return: 24 h */
    uint32_t registry_bytes_max;   /* memory of all others' rows, logs and checkpoints: 256 MiB. Over it the rows of
                                      members that are down go, then changes are refused, with a warning */
    uint32_t transfers_max; /* members that are sent large parts of the registry at a time; others are put off: 4,
                               at most 16 */
    uint32_t transfer_bytes_per_s; /* to all of them together: 4 MiB */
    uint32_t datagram_buckets_max; /* of the 64 parts of the table: if more differ, it is compared over a link: 40,
                                      which is of about 60 members */
    uint32_t links_max;            /* links wanted for gossip at a time: 32, at most 64 */
    uint32_t awake_max; /* members with whom nothing is going on, and whose tokens do not end, are kept in a small
                           record beyond so many: 1,024 */
    uint32_t datagram_bytes_per_s; /* of all we send: 512 KiB, at least 16 KiB; a quarter of a second may go at once */
};

/* Several gossips in one process (a simulator) may hold once what they hold alike. It must outlive them, and they must
 * all run in one thread. */
struct gossip_shared;
struct gossip_shared *gossip_shared_new(void); /* NULL when memory is short */
void gossip_shared_free(struct gossip_shared *shared);

struct gossip_options {
    const char *name;
    const char *federation;          /* bound into every datagram as associated data; copied */
    struct gossip_address advertise; /* family 0: let peers tell us (the source address they see) */
    uint64_t epoch;                  /* persisted by the caller, raised at each start; see gossip_epoch() */
    uint64_t seed;
    const uint8_t *public_key; /* GOSSIP_PUBLIC_KEY_SIZE bytes; copied */
    const uint8_t *token;      /* our own; at most 900 bytes; copied */
    size_t token_size;
    const struct gossip_key *keys; /* the first seals, all open; copied */
    size_t key_count;              /* 1 to GOSSIP_KEYS_MAX */
    /* The signed ring that was kept, if any: the keys above are its keys. It is not judged again, as we did that when
     * it came. Copied. */
    const uint8_t *ring;
    size_t ring_size;        /* 0: none; else at most GOSSIP_RING_SIZE_MAX */
    uint64_t ring_number;    /* 0: none */
    uint8_t ring_digest[32]; /* of the ring */
    struct gossip_limits limits;
    struct gossip_crypto crypto;  /* its context must outlive the gossip */
    struct gossip_shared *shared; /* NULL: this gossip keeps all for itself */
};

/* NULL when memory is short or an option is out of its range. */
struct gossip *gossip_new(const struct gossip_options *options, uint64_t now_ms);
void gossip_free(struct gossip *gossip);

/* Replaces the bootstrap addresses (resolved again by the caller from time to time). Our own is noticed and skipped. At
 * most 64 are used. */
void gossip_set_bootstrap(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses, size_t count);
/* Our own address from now on, whatever others see: the configured name has another one, or one at last. An own
 * statement like any other: a new head, the same life. False when memory is short, or nobody could use it: nothing is
 * changed, and what was said before still holds. */
bool gossip_set_advertise(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *address);
/* Peers that were good in an earlier run: dialled like bootstrap addresses, beside them. At most 64 are used. */
void gossip_set_remembered(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses,
                           size_t count);
/* Discovery: multicast groups of the local network, at most 4. To them goes a SEEK, several times after this call
 * (again when there is a new interface) and then seldom, and whoever hears one dials the seeker; what comes to a group
 * is given to gossip_receive() like anything else. The address is what we have on that network, for the head, until a
 * peer tells what it sees; family 0: unknown. */
void gossip_set_groups(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *groups, size_t count,
                       const struct gossip_address *own);
/* The addresses of verified members that are alive and have answered, at most max, to be remembered. While the same
 * members are there the same are chosen. */
size_t gossip_good_peers(const struct gossip *gossip, struct gossip_address *out, size_t max);
/* A renewed token of our own. Among many it is told by and by, 320 members in a second; who has not heard of it asks
 * when the old one is about to end. */
int gossip_set_token(struct gossip *gossip, uint64_t now_ms, const uint8_t *token, size_t token_size);

/* A signed key ring, from an admin's hand: it is judged, used from now on, kept (GOSSIP_RING tells what is to be kept)
 * and passed on, over links only: whoever has an old key must not read a new one. reason (160 bytes, may be NULL) says
 * why it was not taken. */
enum gossip_ring_verdict {
    GOSSIP_RING_TAKEN,
    GOSSIP_RING_HELD,    /* it is the one that is used */
    GOSSIP_RING_OLDER,   /* than the one that is used */
    GOSSIP_RING_OUTDONE, /* the one that is used has the same number, other keys, and the higher digest */
    GOSSIP_RING_REFUSED  /* no ring of ours */
};
enum gossip_ring_verdict gossip_take_ring(struct gossip *gossip, uint64_t now_ms, const uint8_t *bytes, size_t size,
                                          char reason[160]);
/* The one that is used, borrowed until the next call; its number, 0 and no bytes if there is none. */
uint64_t gossip_ring_held(const struct gossip *gossip, const uint8_t **bytes, size_t *size);

/* One datagram arrived. Hostile bytes are the normal case. */
void gossip_receive(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                    size_t size);
/* The next time at which gossip_tick() has work. */
uint64_t gossip_deadline_ms(const struct gossip *gossip);
/* One of many in a process will have a call soon: what that needs is brought into the caches while another is at work.
 * Changes nothing. */
void gossip_expect(const struct gossip *gossip);
/* Does what is due. A call that comes late is a lag, see below. */
void gossip_tick(struct gossip *gossip, uint64_t now_ms);
/* We did not listen for so long, and it shows in no late gossip_tick(): the machine slept, and its monotonic clock with
 * it. What others answered meanwhile waits to be read, or is lost: nobody is blamed for it. Beyond two probe intervals
 * running suspicions begin anew and all are asked at once, since they may hold us dead. */
void gossip_note_lag(struct gossip *gossip, uint64_t now_ms, uint64_t lag_ms);

struct gossip_datagram {
    struct gossip_address to;
    size_t size;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};
/* False also when what is left must wait for limits.datagram_bytes_per_s: gossip_deadline_ms() says until when. */
bool gossip_next_datagram(struct gossip *gossip, struct gossip_datagram *datagram);

/* ---- over links ----
 *
 * What cannot go by datagram goes over the links that brokers have with each other. The caller says which are up,
 * carries packets, and is told which links are wanted. A link's far end has proved its key and shown a good token
 * before the caller says that it is up, so what comes over it is its member's own word: no cookie, no proof. */

/* The link to this member is up; is no more. Saying it twice is harmless. */
void gossip_link_up(struct gossip *gossip, uint64_t now_ms, const struct member_id *id);
void gossip_link_down(struct gossip *gossip, uint64_t now_ms, const struct member_id *id);
/* Who answered at an address that was dialled for GOSSIP_LINK_DIAL, as its key shows; ourselves too. */
void gossip_link_found(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *address,
                       const struct member_id *id);
/* A packet came over the link to this member. */
void gossip_link_receive(struct gossip *gossip, uint64_t now_ms, const struct member_id *from, const uint8_t *bytes,
                         size_t size);

struct gossip_link_packet {
    struct member_id to;
    size_t size;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};
/* For a link that is up; else it is lost, as a datagram would be. */
bool gossip_next_link_packet(struct gossip *gossip, struct gossip_link_packet *packet);

enum gossip_link_wish_kind {
    GOSSIP_LINK_KEEP, /* a link to this member, which is alive or suspect, for the next for_ms: dial it, and do not
                         close it as idle; said again while it is wanted */
    GOSSIP_LINK_DIAL  /* a link to whoever is at this address, once */
};
struct gossip_link_wish {
    enum gossip_link_wish_kind kind;
    struct member_id id;
    uint32_t for_ms;
    struct gossip_address address;
};
bool gossip_next_link_wish(struct gossip *gossip, struct gossip_link_wish *wish);

/* ---- our own rows ---- */

enum gossip_row_kind { GOSSIP_NEWPUB = 1, GOSSIP_NEWSUB = 2 };

/* Puts or deletes a filter of ours. The registry shows covers of these within rows_max (cover.h). Returns the sequence
 * of the log entry that makes it (or a cover of it) visible to others, which may be still to come, or the current one
 * if nothing had to change; 0 when memory is short. Idempotent. */
uint64_t gossip_row_put(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *filter,
                        size_t size);
uint64_t gossip_row_delete(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *filter,
                           size_t size);

/* What covers let through, for the choice of which filters to merge: this topic (GOSSIP_NEWSUB) or filter
 * (GOSSIP_NEWPUB) was asked for by another broker because of a row of ours, and nobody here wanted or had it; and so
 * many were asked for and wanted. When over 1 % of a minute's were unwanted, a GOSSIP_WARNING says so. */
void gossip_note_unwanted(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, const char *name,
                          size_t size);
void gossip_note_wanted(struct gossip *gossip, uint64_t now_ms, enum gossip_row_kind kind, uint64_t count);

/* Leaves in order: signs a last entry, tells it, and is done (gossip_left) when 3 alive members (or all, if fewer) have
 * acknowledged it, or 5 s have passed. */
void gossip_leave(struct gossip *gossip, uint64_t now_ms);
bool gossip_left(const struct gossip *gossip);

/* ---- what happened ---- */

enum member_state { MEMBER_UNVERIFIED, MEMBER_ALIVE, MEMBER_SUSPECT, MEMBER_DOWN, MEMBER_LEFT };

enum member_trouble {
    MEMBER_TROUBLE_NONE,
    MEMBER_TROUBLE_TOKEN,  /* its token is refused */
    MEMBER_TROUBLE_NAME,   /* refused, as another key has its name and was there first */
    MEMBER_TROUBLE_CLONED, /* two brokers use its key, or did in the last ten minutes; it says so itself */
    MEMBER_TROUBLE_SEALED, /* its datagrams are sealed with a gossip key that is not ours; links reach it */
    /* In the last ten minutes: */
    MEMBER_TROUBLE_RULES,  /* it forged what others say, contradicted itself, sent nonsense or too many datagrams */
    MEMBER_TROUBLE_LIMITS, /* it published more than our limits take of one */
    MEMBER_TROUBLE_ACCUSES /* it said of brokers that answer us that they do not, again and again */
};

enum gossip_event_kind {
    GOSSIP_MEMBER, /* a member became alive (also: new epoch, new address), suspect, down or left */
    GOSSIP_ROW, /* a row of a visible (alive or suspect) member appeared or disappeared. When a member becomes alive its
                   rows follow its GOSSIP_MEMBER event; when it goes down or leaves no GOSSIP_ROW events come: all its
                   rows are hidden at once */
    GOSSIP_KNOWS,      /* the member holds our log up to sequence */
    GOSSIP_REFUSED,    /* a member's token was refused (at most once per member and minute): text says why */
    GOSSIP_REFUSED_US, /* a member said that it refuses our token: text says why (same rate) */
    GOSSIP_EPOCH,      /* our epoch had to be raised to this value: persist it */
    GOSSIP_CLONED,     /* another holder of our key speaks: address is its, as far as it is known */
    GOSSIP_WARNING,    /* text */
    GOSSIP_CONDUCT,    /* a member breaks the rules: text says which (at most once in ten minutes for each) */
    GOSSIP_RING /* a newer key ring is used from now on: keep the bytes of gossip_ring_held(). sequence is its number;
                   id and name are of who brought it, our own if that was gossip_take_ring() */
};
struct gossip_event {
    enum gossip_event_kind kind;
    struct member_id id;
    enum member_state state;
    uint64_t epoch;
    uint64_t sequence;
    char name[GOSSIP_NAME_MAX + 1];
    struct gossip_address address;
    enum gossip_row_kind row_kind;
    bool active;
    const char *filter; /* borrowed until the next call of any function of this gossip */
    size_t filter_size;
    enum member_trouble trouble; /* GOSSIP_CONDUCT: what it comes to */
    char text[200];
};
bool gossip_next_event(struct gossip *gossip, struct gossip_event *event);

/* ---- listings ---- */

struct member_info {
    struct member_id id;
    char name[GOSSIP_NAME_MAX + 1];
    enum member_state state;
    struct gossip_address address;
    uint64_t epoch;
    uint64_t sequence;
    uint64_t heard_ms_ago; /* UINT64_MAX for never */
    uint32_t rows;
    uint64_t ring; /* number of the key ring it uses; 0 for the keys of its configuration */
    enum member_trouble trouble;
    uint8_t ring_mark[8]; /* first bytes of its digest: tells two of one number apart */
    bool self;
    bool by_link; /* datagrams to it are not answered: it is reached over the link, */
    bool link;    /* which is up */
};
/* Ourselves first, the others in no order that means anything; false past the end. */
bool gossip_member_at(const struct gossip *gossip, uint64_t now_ms, size_t index, struct member_info *info);
bool gossip_member_find(const struct gossip *gossip, uint64_t now_ms, const struct member_id *id,
                        struct member_info *info);

/* False if another broker that is here, or we ourselves, have this name with another key: reason says who. */
bool gossip_name_is_free(const struct gossip *gossip, const struct member_id *id, const char *name, char reason[160]);

/* All rows of visible owners and of ourselves. on_row must not call the gossip; returning false ends the walk. */
typedef bool gossip_on_row(void *context, const struct member_info *owner, enum gossip_row_kind kind,
                           const char *filter, size_t size);
void gossip_walk_rows(const struct gossip *gossip, uint64_t now_ms, gossip_on_row *on_row, void *context);

uint64_t gossip_epoch(const struct gossip *gossip);
/* Hash of the table (all owners' visible state): equal tables have equal hashes. */
uint64_t gossip_table_hash(const struct gossip *gossip);

struct gossip_counters {
    uint64_t datagrams_sent, datagrams_received, bytes_sent, bytes_received;
    uint64_t replayed;  /* received and the same as, or older than, what came before from there */
    uint64_t unsealed;  /* received and not opened: wrong key, wrong federation, or damage */
    uint64_t malformed; /* opened and not understood */
    uint64_t bad_signature;
    uint64_t refused_token;
    uint64_t names_refused;      /* tokens refused since another key has the name */
    uint64_t clones_seen;        /* times that a key was found to be used by two, ours or another's */
    uint64_t misdeeds;           /* what no honest broker does (MEMBER_TROUBLE_RULES and below) */
    uint64_t members_in_trouble; /* now: those with a member_trouble; ourselves included */
    uint64_t rings_refused, rings_conflicting, rings_sent;
    uint64_t ring;         /* number of the one that is used */
    uint64_t rings_behind; /* other brokers, alive or suspect, with an older one */
    uint64_t queue_dropped;
    uint64_t probes_sent, probes_failed, indirect_probes_sent, suspicions, refutations, deaths;
    uint64_t entries_sent, entries_received, entries_repeated, checkpoints_sent, checkpoints_received;
    uint64_t link_packets_sent, link_packets_received, link_bytes_sent, link_bytes_received;
    uint64_t transfers_put_off; /* who asked for a large part of the registry and was told to come again */
    uint64_t members_by_link, links_wanted;
    uint64_t members_alive, members_suspect, members_down; /* ourselves included */
    uint64_t rows_own, rows_others;
    uint64_t filters_own;  /* adverts and interests that the rows stand for, */
    uint64_t filter_bytes; /* and the memory they take */
    uint64_t rows_merged;  /* rows wider than what is wanted */
    uint64_t merges, splits, unwanted;
    uint64_t over_covered;   /* kinds of which over 1 % was unwanted in the last minute: 0 to 2 */
    uint64_t registry_bytes; /* of all others' rows, logs and checkpoints, and of what is on its way */
    uint64_t graves;
};
void gossip_read_counters(const struct gossip *gossip, struct gossip_counters *out);

#endif
