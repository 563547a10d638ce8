/* Words that a third one carries: a member's answer to a ping that came by a helper, and an accusation that others pass
 * on. Whoever carries them could say anything, so each is signed by the one whose word it is. They are rare, and
 * checked only when they would change something. */
#include "gossip/verbs.h"

#define ANSWER_WORD 'A'
#define SUSPICION_WORD 'S'
#define BODY_MAX 64u

/* Who asked, and with which number, which only the two and the helper know. */
static size_t write_answer(const struct member_id *answers, const struct member_id *asks, uint64_t number,
                           uint8_t body[BODY_MAX]) {
    struct wire_out out;
    wire_out_init(&out, body, BODY_MAX);
    wire_put_array(&out, 4);
    wire_put_uint(&out, ANSWER_WORD);
    wire_put_id(&out, answers);
    wire_put_id(&out, asks);
    wire_put_uint(&out, number);
    return out.failed ? 0 : out.size;
}

static size_t write_suspicion(const struct member_id *accuser, const struct version *accused, uint8_t body[BODY_MAX]) {
    struct wire_out out;
    wire_out_init(&out, body, BODY_MAX);
    wire_put_array(&out, 5);
    wire_put_uint(&out, SUSPICION_WORD);
    wire_put_id(&out, accuser);
    wire_put_id(&out, &accused->id);
    wire_put_uint(&out, accused->epoch);
    wire_put_uint(&out, accused->incarnation);
    return out.failed ? 0 : out.size;
}

static bool sign(struct gossip *gossip, const uint8_t *body, size_t size, uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    return size > 0 && gossip->crypto.sign(gossip->crypto.context, body, size, signature);
}

static bool check(struct gossip *gossip, const struct member *signer, const uint8_t *body, size_t size,
                  const struct message *message) {
    if (!signer->known || size == 0 || message->size != GOSSIP_SIGNATURE_SIZE || !proof_may_check(gossip)) return false;
    bool good = gossip->crypto.verify(gossip->crypto.context, signer->public_key, body, size, message->bytes);
    gossip->counters.bad_signature += !good;
    return good;
}

bool witness_answer(struct gossip *gossip, const struct member_id *asks, uint64_t number,
                    uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    uint8_t body[BODY_MAX];
    return sign(gossip, body, write_answer(&gossip->self->id, asks, number, body), signature);
}

bool witness_answered(struct gossip *gossip, const struct member *member, const struct message *message) {
    uint8_t body[BODY_MAX];
    return check(gossip, member, body, write_answer(&member->id, &gossip->self->id, message->number, body), message);
}

void witness_accuse(struct gossip *gossip, struct member *member) {
    const struct version accused = {
        .id = member->id, .epoch = member->accused_epoch, .incarnation = member->accused_incarnation};
    uint8_t body[BODY_MAX];
    size_t size = write_suspicion(&gossip->self->id, &accused, body);
    member->trouble->accusation_signed = sign(gossip, body, size, member->trouble->accusation);
}

bool witness_accused(struct gossip *gossip, const struct member *accuser, const struct message *message) {
    uint8_t body[BODY_MAX];
    return check(gossip, accuser, body, write_suspicion(&accuser->id, &message->version, body), message);
}
