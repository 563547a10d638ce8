/* A packet that opened: who speaks, from where, and what it says. */
#include "gossip/verbs.h"

#include <string.h>

#define TELL_HEAD_AGAIN_MS 50u

/* What would tell the speaker about the registry or about other members. */
static bool asks_for_the_table(const struct gossip *gossip, const struct message *message) {
    switch (message->kind) {
    case MESSAGE_WHO: return !id_equal(&message->version.id, &gossip->self->id);
    case MESSAGE_PING_REQ:
    case MESSAGE_HAVE:
    case MESSAGE_HAD:
    case MESSAGE_DIGEST:
    case MESSAGE_BUCKETS:
    case MESSAGE_VERSIONS:
    case MESSAGE_WANT:
    case MESSAGE_PULL:
    case MESSAGE_WANT_CHUNK: return true;
    default: return false;
    }
}

bool receive_may(struct gossip *gossip, enum allowance which, uint32_t amount) {
    const uint32_t sends = gossip->limits.datagram_bytes_per_s;
    const uint32_t member_per_s[ALLOWANCES] = {[ALLOW_CHECKS] = 1000,
                                               [ALLOW_HEARSAY] = 500,
                                               [ALLOW_LISTS] = 500,
                                               [ALLOW_PINGS] = 250,
                                               [ALLOW_BROUGHT] = 200,
                                               [ALLOW_HELP] = 30,
                                               [ALLOW_REFUSED] = 20,
                                               [ALLOW_ANSWERS] = 256u << 10,
                                               [ALLOW_BYTES] = sends < UINT32_MAX / 2 ? 2 * sends : UINT32_MAX};
    /* strangers.c has a measure for each */
    static const uint32_t strangers_per_s[ALLOWANCES] = {
        [ALLOW_CHECKS] = 500,         [ALLOW_HEARSAY] = 500,     [ALLOW_LISTS] = 0,
        [ALLOW_PINGS] = 1000,         [ALLOW_BROUGHT] = 1000,    [ALLOW_REFUSED] = UINT32_MAX,
        [ALLOW_ANSWERS] = UINT32_MAX, [ALLOW_BYTES] = UINT32_MAX};
    if (!gossip->header) return true;
    if (gossip->authentic)
        return allowances_take(&gossip->sender->allowances, which, amount, member_per_s, gossip->now_ms);
    return allowances_take(&gossip->strangers_allowances, which, amount, strangers_per_s, gossip->now_ms);
}

void receive_malformed(struct gossip *gossip) {
    gossip->counters.malformed++;
    conduct_note_sender(gossip, MISDEED_NONSENSE);
}

void receive_forged(struct gossip *gossip) {
    gossip->counters.bad_signature++;
    conduct_note_sender(gossip, MISDEED_FORGES);
}

/* The gossip key alone gives nothing: who has no valid token, or only the id of one who has, learns who we are, to
 * judge us, and no more (G11). */
static bool may_say(struct gossip *gossip, const struct message *message) {
    bool lists = message->kind == MESSAGE_BUCKETS || message->kind == MESSAGE_VERSIONS;
    if (!asks_for_the_table(gossip, message)) return true;
    if (!gossip->authentic || (lists && !receive_may(gossip, ALLOW_LISTS, 1))) return false;
    return gossip->over_link || receive_may(gossip, ALLOW_ANSWERS, 0);
}

static void handle(struct gossip *gossip, const struct message *message) {
    if (!may_say(gossip, message)) return;
    switch (message->kind) {
    case MESSAGE_HEAD: evidence_on_head(gossip, message->bytes, message->size); break;
    case MESSAGE_ENTRY: repair_on_entry(gossip, message); break;
    case MESSAGE_PING: probe_on_ping(gossip, message); break;
    case MESSAGE_PONG:
        rejoin_on_pong(gossip, message->number);
        probe_on_pong(gossip, message);
        break;
    case MESSAGE_PING_REQ: helpers_on_request(gossip, message); break;
    case MESSAGE_INDIRECT: helpers_on_indirect(gossip, message); break;
    case MESSAGE_WHO: identity_on_who(gossip, &message->version.id); break;
    case MESSAGE_TOKEN: identity_on_token(gossip, message); break;
    case MESSAGE_REFUSED: identity_on_refused(gossip, message); break;
    case MESSAGE_ACCUSE: accusation_on_accuse(gossip, message); break;
    case MESSAGE_HAVE: repair_on_have(gossip, message); break;
    case MESSAGE_HAD: rumors_on_had(gossip, message); break;
    case MESSAGE_DIGEST: digest_on_digest(gossip, message->number); break;
    case MESSAGE_BUCKETS:
        if (message->size == MESSAGE_BUCKET_COUNT * 8) digest_on_buckets(gossip, message);
        break;
    case MESSAGE_VERSIONS: digest_on_versions(gossip, message); break;
    case MESSAGE_WANT: repair_on_want(gossip, message); break;
    case MESSAGE_LATER: catchup_on_later(gossip, message); break;
    case MESSAGE_PULL: catchup_on_pull(gossip); break;
    case MESSAGE_WANT_CHUNK: repair_on_want_chunk(gossip, message); break;
    case MESSAGE_CHUNK: repair_on_chunk(gossip, message); break;
    case MESSAGE_SEEN_AT:
        if (gossip->authentic) own_seen_at(gossip, &message->address);
        break;
    case MESSAGE_PROOF: proof_on_proof(gossip, message); break;
    case MESSAGE_RING: ring_on_ring(gossip, message); break;
    case MESSAGE_PROVE: gossip->proof_due = true; break;
    case MESSAGE_VOUCH: vouch_on_vouch(gossip, message); break;
    case MESSAGE_ROLL: roll_on_roll(gossip, message); break;
    case MESSAGE_SEEK: break; /* not first in its packet: ill made */
    }
}

static void note_sender(struct gossip *gossip) {
    const struct packet_header *header = gossip->header;
    gossip->sender = members_make(gossip, &header->id);
    struct member *sender = gossip->sender;
    if (!sender) return;
    if (gossip->over_link)
        carrier_note(gossip, sender);
    else
        proof_note_path(gossip, sender);
    if (gossip->authentic && header->epoch == sender->epoch) own_heard(gossip, sender);
}

/* After its messages: what we still need from it, and what it needs to hear from us. */
static void complete(struct gossip *gossip) {
    struct member *sender = gossip->sender;
    const struct packet_header *header = gossip->header;
    if (!sender) return;
    proof_give(gossip);
    if (!gossip->authentic) identity_ask(gossip, sender);
    if (header->epoch < sender->epoch || (header->epoch == sender->epoch && header->incarnation < sender->incarnation))
        evidence_answer_older(gossip, sender);
    bool lags = header->epoch > sender->epoch ||
                (header->epoch == sender->epoch &&
                 (header->incarnation > sender->incarnation || header->sequence > registry_sequence(sender->registry)));
    const struct version there = {
        .id = header->id, .epoch = header->epoch, .incarnation = header->incarnation, .sequence = header->sequence};
    if (gossip->authentic && lags) wants_newer(gossip, sender, sender, &there);
    ring_greet(gossip, sender);
    if (gossip->authentic) own_answered(gossip);
    if (gossip->reply_open) {
        bool holds_old =
            header->holds_epoch != gossip->self->epoch || header->holds_incarnation < gossip->self->incarnation;
        /* Two that have not accepted each other would answer heads with heads for ever. */
        if (holds_old && gossip->now_ms >= sender->head_told_ms) {
            sender->head_told_ms = gossip->now_ms + TELL_HEAD_AGAIN_MS;
            struct message head = evidence_head_of(gossip->self);
            reply_add(gossip, &head);
        }
        if (!member_is_visible(sender) &&
            !sender->refused) /* an answer would not make a refused one visible, only beget the next question */
            probe_add_to_reply(gossip, sender);
    }
}

/* A packet under our own id that we did not send: our key has another holder, or it is what we said in an earlier life.
 */
static void receive_from_namesake(struct gossip *gossip, struct wire_in *in) {
    struct message message;
    while (message_get(in, &message))
        if (message.kind == MESSAGE_HEAD) evidence_on_head(gossip, message.bytes, message.size);
    /* Whoever it is gets our head, so that both learn of each other. */
    evidence_answer_older(gossip, gossip->self);
}

static void credit_stranger(struct gossip *gossip, size_t plain_size) {
    if (!gossip->over_link) strangers_credit(gossip, gossip->source_cookie, plain_size + SEAL_OVERHEAD);
}

/* Its first packet, while others of its like keep us busy. */
static bool comes_too_early(struct gossip *gossip) {
    return !gossip->source_proven && !members_find(gossip, &gossip->header->id) && !roll_may_welcome(gossip);
}

/* A member that has started anew where it was does not know our cookie yet. Its first packet is answered in full, as it
 * has more to learn than three times of what it says. Anybody may write a higher epoch: so not often, and a false one
 * does not take the place of a true one that is lower. */
static void greet(struct gossip *gossip, struct member *member) {
    uint64_t epoch = gossip->header->epoch;
    if (!member || !member->path_proven || !address_equal(&member->path, &gossip->source)) return;
    if (epoch <= member->epoch || epoch == member->greeted_epoch) return;
    if (!strangers_greet(gossip, gossip->source_cookie)) return;
    member->greeted_epoch = epoch;
    gossip->greeted = true;
}

/* The cookie in it says that its sender hears us there, or that somebody has seen a packet of one who did, and sends it
 * again. False: it came before. */
static bool prove_source(struct gossip *gossip) {
    const struct packet_header *header = gossip->header;
    gossip->source_proven = gossip->over_link;
    gossip->greeted = false;
    if (gossip->over_link) return true;
    struct member *member = members_find(gossip, &header->id);
    if (memcmp(gossip->source_cookie, header->echo, sizeof header->echo) != 0) {
        greet(gossip, member);
        return true;
    }
    enum replay_result result = REPLAY_NEW;
    gossip->place.epoch = header->epoch;
    if (member && member->known && address_equal(&member->path, &gossip->source))
        result =
            header->epoch < member->epoch ? REPLAY_OTHER : replay_take(&member->replay, &gossip->place, gossip->now_ms);
    else if (!strangers_take(gossip, gossip->source_cookie, &gossip->place))
        result = REPLAY_OTHER;
    gossip->source_proven = result == REPLAY_NEW;
    gossip->counters.replayed += result != REPLAY_NEW;
    return result != REPLAY_AGAIN;
}

void receive_packet(struct gossip *gossip, const uint8_t *plain, size_t size) {
    struct wire_in in;
    struct packet_header header;
    wire_in_init(&in, plain, size);
    header_get(&in, &header);
    if (in.failed) {
        gossip->counters.malformed++;
        return;
    }
    if (gossip->over_link && memcmp(header.id.bytes, gossip->source.ip, sizeof header.id.bytes) != 0) {
        gossip->counters.malformed++; /* nobody speaks for another there */
        return;
    }
    if (gossip->over_link && memcmp(header.cookie, gossip->federation_mark, sizeof header.cookie) != 0) {
        gossip->counters.unsealed++; /* of another federation, whose issuer we believe too */
        return;
    }
    if (!gossip->over_link) cookie_for(gossip, &gossip->source, gossip->source_cookie);
    gossip->header = &header;
    gossip->sender = NULL;
    gossip->authentic = gossip->proof_due = false;
    gossip->reply_open = gossip->catchup.told = gossip->introduced = false;
    gossip->unproven_pong = 0;
    if (!prove_source(gossip)) {
        gossip->header = NULL;
        return;
    }
    if (seek_hear(gossip, &in)) {
        credit_stranger(gossip, size);
        /* Nothing else is in it, and a thousand who seek at once do not take the places of those who join. */
    } else if (id_equal(&header.id, &gossip->self->id)) {
        credit_stranger(gossip, size);
        receive_from_namesake(gossip, &in);
    } else if (!comes_too_early(gossip)) {
        note_sender(gossip);
        if (!gossip->authentic)
            credit_stranger(gossip, size);
        else if (!gossip->over_link && !receive_may(gossip, ALLOW_BYTES, (uint32_t)(size + SEAL_OVERHEAD)))
            conduct_note_sender(gossip, MISDEED_FLOODS);
        struct message message;
        while (message_get(&in, &message))
            handle(gossip, &message);
        complete(gossip);
    }
    if (in.failed) receive_malformed(gossip);
    if (gossip->sender) members_changed(gossip, gossip->sender);
    if (gossip->reply_open) {
        gossip->reply.member = gossip->sender;
        packet_end(gossip, &gossip->reply, true);
    }
    gossip->reply_open = false;
    gossip->header = NULL;
    gossip->sender = NULL;
    gossip->source_proven = gossip->authentic = false;
}
