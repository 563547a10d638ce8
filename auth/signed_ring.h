/* The gossip key ring that an issuer signs: which keys brokers open datagrams with, and with which one they seal. Rings
 * are numbered, and a later one takes the place of an earlier one at every broker. TOKENS.md has the format.
 *
 * A key comes and goes in stages, each a ring of its own, so that at no time anybody seals with a key that another does
 * not open with yet: accept -> send -> old -> not in the ring.
 */
#ifndef AUTH_SIGNED_RING_H
#define AUTH_SIGNED_RING_H

#include "auth/keys.h"

#define AUTH_SIGNED_RING_MAX 500u /* bytes of its text; it must fit into one gossip packet */
#define AUTH_FEDERATION_MAX 63u   /* bytes of a federation's name, which is spelt like a broker's */
#define AUTH_RING_NUMBER_MAX UINT64_C(999999999999)

enum auth_key_stage {
    AUTH_KEY_ACCEPT, /* opens; will seal */
    AUTH_KEY_SEND,   /* opens and seals; exactly one */
    AUTH_KEY_OLD     /* opens; sealed once */
};

struct auth_signed_ring {
    uint64_t number;                          /* 1 to AUTH_RING_NUMBER_MAX */
    char federation[AUTH_FEDERATION_MAX + 1]; /* brokers of others refuse it */
    uint8_t issuer[AUTH_THUMBPRINT_SIZE];     /* thumbprint of the key that signed */
    size_t count;                             /* 1 to AUTH_RING_MAX */
    struct {
        uint8_t id[4];
        uint8_t key[32];
        enum auth_key_stage stage;
    } keys[AUTH_RING_MAX]; /* the one that seals first */
    uint8_t digest[32];    /* SHA-256 of what is signed: two rings of one number differ in it */
};

/* Reads without checking the signature. reason (may be NULL) says in a sentence what is wrong. There is one spelling of
 * a ring, so a text that is read is the one that was signed, byte for byte. */
enum auth_result auth_signed_ring_read(const char *text, size_t size, struct auth_signed_ring *ring, char reason[160]);
/* And checks that it is of this federation and signed by one of the issuers: else AUTH_REFUSED. */
enum auth_result auth_signed_ring_verify(const char *text, size_t size, const struct auth_key *const *issuers,
                                         size_t issuer_count, const char *federation, struct auth_signed_ring *ring,
                                         char reason[160]);
/* A file may begin with lines of # comments, which are not part of the ring. Where the ring begins, and its size; NULL
 * if the text does not go on as one, so that its reader can tell it from a plain file of keys. */
const char *auth_signed_ring_in(const char *text, size_t size, size_t *ring_size);
/* Signs number, federation and keys of the ring (ids, issuer and digest are not looked at); text gets a final zero.
 * AUTH_MALFORMED: a ring that no reader would take. */
enum auth_result auth_signed_ring_sign(const struct auth_signed_ring *ring, const struct auth_key *issuer,
                                       char text[AUTH_SIGNED_RING_MAX + 1], char reason[160]);

/* ---- the steps of a rotation ---- */

enum auth_ring_step {
    AUTH_STEP_ACCEPT, /* a new key is opened with by all, and seals nowhere yet */
    AUTH_STEP_SEND,   /* it seals, and what sealed before opens */
    AUTH_STEP_DROP    /* what sealed before is forgotten */
};
/* The step that comes next for these keys. */
enum auth_ring_step auth_ring_step_after(const struct auth_signed_ring *ring);
/* Makes the ring that follows: number and stages. fresh: 32 random bytes, used by AUTH_STEP_ACCEPT. AUTH_REFUSED: the
 * number has come to its end, or there is no room for one more key. */
enum auth_result auth_ring_advance(struct auth_signed_ring *ring, enum auth_ring_step step, const uint8_t fresh[32],
                                   char reason[160]);
/* The same keys under the next number. */
enum auth_result auth_ring_repeat(struct auth_signed_ring *ring, char reason[160]);
/* A ring with one new key and nothing else, for when the present one is in the wrong hands. */
enum auth_result auth_ring_replace(struct auth_signed_ring *ring, const uint8_t fresh[32], char reason[160]);

#endif
