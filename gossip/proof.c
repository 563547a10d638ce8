/* Whoever has the gossip key can write any id into a header. A member is believed to be where a packet comes from once
 * its key has signed the cookie of that address; until then the packet may bring signed objects, and that is all.
 *
 * The signature is given only to a broker that is where its owner says: else somebody between two brokers could pass
 * the cookie of an address of his own to the one and its signature to the other. */
#include "gossip/verbs.h"

#include <string.h>

#define PROOF_WORD 'P'
#define PROOF_AGAIN_MS 20u

/* What is signed: by whom, for whom, and the cookie that the one for whom gave to the signer's address. */
static size_t write_proof(const struct member_id *signer, const struct member_id *receiver, const uint8_t cookie[8],
                          uint8_t body[64]) {
    struct wire_out out;
    wire_out_init(&out, body, 64);
    wire_put_array(&out, 4);
    wire_put_uint(&out, PROOF_WORD);
    wire_put_id(&out, signer);
    wire_put_id(&out, receiver);
    wire_put_bytes(&out, cookie, 8);
    return out.failed ? 0 : out.size;
}

void proof_note_path(struct gossip *gossip, struct member *member) {
    bool same = address_equal(&member->path, &gossip->source);
    if (!member->known) {
        /* Any address will do to ask who it is, within the allowance of strangers. */
        if (!gossip->source_proven && member->path_proven) return;
        member->path_proven = gossip->source_proven;
    } else if (member->path_proven && !(same && gossip->source_proven)) {
        return;
    }
    member->path = gossip->source;
    memcpy(member->echo, gossip->header->cookie, sizeof member->echo);
    gossip->authentic = member->known && member->path_proven;
}

static bool is_bootstrap(const struct gossip *gossip, const struct gossip_address *address) {
    for (size_t i = 0; i < gossip->bootstrap_count; i++)
        if (address_equal(&gossip->bootstrap[i].address, address)) return true;
    return false;
}

/* Is the one who asks where its owner, or our configuration, says? */
static bool may_be_told(const struct gossip *gossip) {
    const struct member *sender = gossip->sender;
    if (!sender || !gossip->source_proven) return false;
    return gossip->authentic || is_bootstrap(gossip, &gossip->source) ||
           (sender->known && address_equal(&sender->address, &gossip->source));
}

/* It may have it now. Who does not know us yet could not check it, and will ask. */
void proof_offer(struct gossip *gossip) {
    gossip->proof_due = gossip->proof_due || gossip->header->holds_epoch != 0;
}

void proof_give(struct gossip *gossip) {
    struct member *sender = gossip->sender;
    if (!gossip->proof_due || gossip->over_link || !may_be_told(gossip) || gossip->now_ms < sender->prove_ms) return;
    sender->prove_ms = gossip->now_ms + PROOF_AGAIN_MS;
    uint8_t body[64], signature[GOSSIP_SIGNATURE_SIZE];
    size_t size = write_proof(&gossip->self->id, &sender->id, gossip->header->cookie, body);
    if (size == 0 || !gossip->crypto.sign(gossip->crypto.context, body, size, signature)) return;
    struct message proof = {.kind = MESSAGE_PROOF, .bytes = signature, .size = sizeof signature};
    reply_add(gossip, &proof);
    digest_again(gossip);
}

void proof_on_proof(struct gossip *gossip, const struct message *message) {
    struct member *sender = gossip->sender;
    if (!sender || !sender->known || !gossip->source_proven || gossip->authentic || gossip->over_link ||
        message->size != GOSSIP_SIGNATURE_SIZE || !proof_may_check(gossip))
        return;
    uint8_t body[64];
    size_t size = write_proof(&sender->id, &gossip->self->id, gossip->source_cookie, body);
    if (!gossip->crypto.verify(gossip->crypto.context, sender->public_key, body, size, message->bytes)) {
        gossip->counters.bad_signature++;
        return;
    }
    sender->path = gossip->source;
    sender->path_proven = true;
    memcpy(sender->echo, gossip->header->cookie, sizeof sender->echo);
    gossip->authentic = true;
    proof_offer(gossip);
    digest_again(gossip);
    probe_proved(gossip);
    if (member_is_visible(sender) && sender->probe.deadline_ms == NEVER) return;
    sender->probe.sent_ms = 0; /* an answer to what was asked before would have counted as nothing */
    probe_add_to_reply(gossip, sender);
}

void proof_forget(struct member *member) {
    member->path_proven = false;
}

bool proof_may_check(struct gossip *gossip) {
    return receive_may(gossip, ALLOW_CHECKS, 1);
}
