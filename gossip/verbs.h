/* What the files of this folder do for one another, by file. */
#ifndef GOSSIP_VERBS_H
#define GOSSIP_VERBS_H

#include "gossip/state.h"

/* ---- digest.c ---- */
void digest_changed(struct gossip *gossip, struct member *member);
void digest_forget(struct gossip *gossip, struct member *member);
const char *digest_fault(const struct gossip *gossip);
struct message digest_of_all(const struct gossip *gossip);
void digest_send(struct gossip *gossip, struct member *member);
void digest_asked(struct gossip *gossip, const struct member *member); /* a DIGEST goes to it */
void digest_again(struct gossip *gossip); /* proofs have gone between us and the sender: now it may count */
void digest_meet(struct gossip *gossip, struct member *member); /* it has just become visible */
void digest_on_digest(struct gossip *gossip, uint64_t hash);
void digest_answer(struct gossip *gossip); /* the sender differs: in which buckets? */
void digest_on_buckets(struct gossip *gossip, const struct message *message);
void digest_on_versions(struct gossip *gossip, const struct message *message);
unsigned digest_bucket_of(const struct member_id *id);
bool digest_lists(const struct member *member);
struct counted digest_counted(const struct member *member); /* as it is now */

/* ---- events.c ---- */
void event_member(struct gossip *gossip, struct member *member);
void event_rows_all(struct gossip *gossip, struct member *member);
void event_knows(struct gossip *gossip, struct member *member); /* if it holds anything of our log */
void event_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size,
               bool active); /* context: struct event_rows */
struct event_rows {
    struct gossip *gossip;
    struct member *member;
};
/* GOSSIP_RING; false when memory is short. */
bool event_ring(struct gossip *gossip, const struct member_id *from);
void event_conduct(struct gossip *gossip, const struct member *member, enum member_trouble trouble, const char *text);
bool event_cloned(struct gossip *gossip, const struct gossip_address *from);
bool event_plain(struct gossip *gossip, enum gossip_event_kind kind, const struct member *member, uint64_t epoch,
                 uint64_t sequence, const char *text);
void events_free(struct gossip *gossip);
void events_resync(struct gossip *gossip);

/* ---- outbox.c ---- */
void packet_begin(struct packet *packet, struct member *member, const struct gossip_address *to);
/* Appends; when full, sends what is there and goes on in a new one. */
void packet_add(struct gossip *gossip, struct packet *packet, const struct message *message);
/* Sends it; without messages too if empty says so (it acknowledges). */
void packet_end(struct gossip *gossip, struct packet *packet, bool empty);
/* One message, one packet, to a member. */
void send_one(struct gossip *gossip, struct member *member, const struct message *message);
void cookie_for(const struct gossip *gossip, const struct gossip_address *address, uint8_t cookie[8]);
void outbox_free(struct gossip *gossip);
/* The reply to the packet in hand. */
void reply_add(struct gossip *gossip, const struct message *message);
void reply_acknowledge(struct gossip *gossip);

/* ---- strangers.c: what may be sent to whoever has not proved where it is; by the cookie of its address ---- */
void strangers_credit(struct gossip *gossip, const uint8_t cookie[8], size_t size); /* so much came from there */
bool strangers_spend(struct gossip *gossip, const uint8_t cookie[8], size_t size);  /* may so much be sent there? */
/* May something be sent there of our own accord? Takes it from the measure if spend. */
bool strangers_dial(struct gossip *gossip, const uint8_t cookie[8], bool spend);
/* May what comes from a member's address, in what says that it is of a new life, be answered in full? Spends it. */
bool strangers_greet(struct gossip *gossip, const uint8_t cookie[8]);
/* Is the packet newer than any that echoed that cookie? */
bool strangers_take(struct gossip *gossip, const uint8_t cookie[8], const struct replay_place *place);

/* ---- receive.c ---- */
void receive_packet(struct gossip *gossip, const uint8_t *plain, size_t size);
/* May the sender of the packet in hand have so much more of it? Always, when there is none. */
bool receive_may(struct gossip *gossip, enum allowance which, uint32_t amount);
/* Counts, against the sender too: what it brought cannot be read; has a wrong signature, which it should have seen. */
void receive_malformed(struct gossip *gossip);
void receive_forged(struct gossip *gossip);

/* ---- witness.c: words that a third one carries, signed by the one whose they are ---- */
/* Ours, for the one who asks by a helper. */
bool witness_answer(struct gossip *gossip, const struct member_id *asks, uint64_t number,
                    uint8_t signature[GOSSIP_SIGNATURE_SIZE]);
/* The member has answered us: message is a helper's INDIRECT. */
bool witness_answered(struct gossip *gossip, const struct member *member, const struct message *message);
/* Ours, of this member, as it is accused now; kept in its record. */
void witness_accuse(struct gossip *gossip, struct member *member);
/* The accuser's, that another brings. */
bool witness_accused(struct gossip *gossip, const struct member *accuser, const struct message *message);

/* ---- conduct.c ---- */
/* It is told of, if it has done so often enough. */
void conduct_note(struct gossip *gossip, const struct member *member, enum misdeed misdeed);
/* The same for the sender of the packet in hand, if it is known who that is. */
void conduct_note_sender(struct gossip *gossip, enum misdeed misdeed);

/* ---- proof.c ---- */
void proof_note_path(struct gossip *gossip, struct member *member);
void proof_give(struct gossip *gossip); /* to the sender of the packet in hand, if it is due and it may have it */
void proof_offer(struct gossip *gossip);
void proof_on_proof(struct gossip *gossip, const struct message *message);
void proof_forget(struct member *member);
/* May the packet in hand make us check one more signature? */
bool proof_may_check(struct gossip *gossip);

/* ---- identity.c ---- */
void identity_on_who(struct gossip *gossip, const struct member_id *id);
void identity_on_token(struct gossip *gossip, const struct message *message);
void identity_on_refused(struct gossip *gossip, const struct message *message);
void identity_ask(struct gossip *gossip, struct member *member);
struct message identity_token_of(const struct member *member);
/* Our own, to all; among many to some, and to the others when it is due. */
void identity_tell_token(struct gossip *gossip);
void identity_tell_more(struct gossip *gossip);
void identity_tick(struct gossip *gossip, struct member *member);
uint64_t identity_deadline_ms(const struct member *member);

/* ---- names.c ---- */
/* Under the name it has now, if it is there; nowhere else. */
void names_changed(struct gossip *gossip, struct member *member);
void names_forget(struct gossip *gossip, struct member *member);
bool names_free(const struct gossip *gossip, const char *name, const struct member_id *id);
bool names_check(const struct gossip *gossip, const struct member_id *id, const char *name, char reason[160]);

/* ---- ring.c ---- */
bool ring_init(struct gossip *gossip, const struct gossip_options *options);
void ring_note(struct gossip *gossip, struct member *member, const struct head *head); /* its head says what it uses */
bool ring_is_behind(const struct gossip *gossip, const struct member *member); /* it uses an older one than we do */
/* The packet in hand came from it: over a link it is given the ring, if it has an older one. */
void ring_greet(struct gossip *gossip, struct member *sender);
void ring_link_up(struct gossip *gossip, struct member *member);
void ring_on_ring(struct gossip *gossip, const struct message *message);
void ring_tick(struct gossip *gossip);
uint64_t ring_deadline_ms(const struct gossip *gossip);

/* ---- evidence.c ---- */
void evidence_on_head(struct gossip *gossip, const uint8_t *bytes, size_t size);
void evidence_take_waiting(struct gossip *gossip, struct member *member);
/* It answered: its state follows from all that is known. */
void evidence_consider(struct gossip *gossip, struct member *member);
void evidence_set_state(struct gossip *gossip, struct member *member, enum member_state state);
void evidence_answer_older(struct gossip *gossip, struct member *member);
struct message evidence_head_of(const struct member *member);
/* Hearsay of it may be followed once more: a ping, or another's word for its life. */
bool evidence_may_follow(struct gossip *gossip, struct member *member);
bool evidence_is_idle_talk(const struct member *member);
/* False: the member is to be removed. */
bool evidence_tick(struct gossip *gossip, struct member *member);
uint64_t evidence_deadline_ms(const struct gossip *gossip, const struct member *member);
void evidence_restart_suspicions(struct gossip *gossip);
/* Newer, in the order of all evidence. */
bool evidence_is_above(uint64_t epoch, uint64_t incarnation, uint64_t than_epoch, uint64_t than_incarnation);

/* ---- accusation.c ---- */
void accusation_on_accuse(struct gossip *gossip, const struct message *message);
/* word: the accuser's ACCUSE, checked; NULL: it is our own suspicion. */
bool accusation_may(const struct gossip *gossip);
void accusation_suspect(struct gossip *gossip, struct member *member, const struct message *word);
struct message accusation_of(const struct member *member);
/* It has not refuted the highest that it is accused of; also when it is held dead. */
bool accusation_stands(const struct member *member);
struct trouble *trouble_make(struct member *member); /* NULL: memory is short */
/* It is dead: who accused it was right. */
void accusation_proved(struct gossip *gossip, const struct member *dead);

/* ---- lag.c ---- */
/* gossip_tick() is called at now_ms for what was due at deadline_ms. */
void lag_note_tick(struct gossip *gossip, uint64_t deadline_ms);

/* ---- probe.c ---- */
void probe_member(struct gossip *gossip, struct member *member);
void probe_by(struct gossip *gossip, struct member *member, const struct gossip_address *to);
/* The next of the round; more, which may be NULL, goes in the same packet. False if it did not. */
bool probe_next(struct gossip *gossip, const struct message *more);
void probe_all(struct gossip *gossip);
void probe_add_to_reply(struct gossip *gossip, struct member *member);
void probe_on_ping(struct gossip *gossip, const struct message *message);
void probe_on_pong(struct gossip *gossip, const struct message *message);
void probe_proved(struct gossip *gossip); /* the sender has, with the packet in hand */
void probe_answered(struct gossip *gossip, struct member *member, uint64_t epoch);
/* Its suspicion begins: from now on what it does not answer counts for its eviction. */
void probe_suspect(struct gossip *gossip, struct member *member);
/* From now on what it does not answer counts for its eviction, and nothing before. */
void probe_suspect_anew(struct gossip *gossip, struct member *member);
void probe_stop(struct member *member);            /* nothing is outstanding; the caller says the change */
void probe_note_refutation(struct member *member); /* it lives, and questions to it are lost */
void probe_tick_member(struct gossip *gossip, struct member *member);
uint64_t probe_member_deadline_ms(const struct member *member);
void probe_tick(struct gossip *gossip);
uint64_t probe_deadline_ms(const struct gossip *gossip);
bool probe_in_partition(struct gossip *gossip);
/* May so many more datagrams be spent on who is alive? Takes them. */
bool probe_may(struct gossip *gossip, uint32_t datagrams);
/* Between two regular probes: longer as they take more tries where much is lost, so that there are as many pings a
 * second in any weather. */
uint64_t probe_interval_ms(const struct gossip *gossip);
/* How long an answer may take, on the network that we know the member by; how much longer than the limit. */
uint64_t probe_answer_ms(const struct gossip *gossip, const struct member *member);
uint64_t probe_extra_ms(const struct gossip *gossip, const struct member *member);
void probe_look_well(struct gossip *gossip, bool well); /* Lifeguard's local health, one step */
void probe_delay(struct gossip *gossip, uint64_t ms);   /* outstanding probes have so much longer */
void probe_forget(struct gossip *gossip);               /* outstanding probes neither succeed nor fail */

/* ---- silence.c ---- */
/* The ping before this one had no answer in time; one was answered. */
void silence_note_unanswered(struct gossip *gossip, const struct member *member);
void silence_note_answered(struct gossip *gossip, const struct member *member);
/* The share of pings lost: just now, when that is far more than is usual. */
uint16_t silence_loss(const struct gossip *gossip);

/* ---- watch.c ---- */
void watch_turn(struct gossip *gossip);
void watch_heard(struct gossip *gossip); /* the packet in hand asks us whether we are there */
void watch_tick(struct gossip *gossip);

/* ---- helpers.c ---- */
/* How many were asked to ping it. */
unsigned helpers_ask(struct gossip *gossip, struct member *member);
void helpers_on_request(struct gossip *gossip, const struct message *message);
void helpers_on_indirect(struct gossip *gossip, const struct message *message);
void helpers_on_pong(struct gossip *gossip, const struct message *pong);
void helpers_tick(struct gossip *gossip);
uint64_t helpers_deadline_ms(const struct gossip *gossip);

/* ---- own.c: our log ---- */
bool own_sign_head(struct gossip *gossip);
bool own_checkpoint(struct gossip *gossip);
/* Somebody holds a mixture of two lives of ours: a head of the present state says which is true. Ever more rarely by
 * the word of one, as of all. */
void own_say_again(struct gossip *gossip);
void own_init(struct gossip *gossip);
struct cover *own_cover(struct gossip *gossip, enum gossip_row_kind kind);
uint64_t own_change(struct gossip *gossip, enum gossip_row_kind kind, const char *filter, size_t size, bool put);
void own_tick(struct gossip *gossip);
uint64_t own_deadline_ms(const struct gossip *gossip);
void own_resend(struct gossip *gossip, struct member *member);
void own_resend_soon(struct gossip *gossip, struct member *member);
void own_heard(struct gossip *gossip, struct member *member); /* the header of its packet says what it holds of us */
void own_refute(struct gossip *gossip, const struct message *accusation);
/* from: where the other holder of our key is, family 0 if it is not known. */
void own_raise_epoch(struct gossip *gossip, uint64_t above, const struct gossip_address *from);
/* Another life under our key has left in order, in this epoch: to the others we have gone with it, and nobody takes the
 * next epoch from us. */
void own_follow(struct gossip *gossip, uint64_t left);
void own_answered(struct gossip *gossip); /* somebody who knows us has said what he holds of us */
/* The sender's bare word for a later epoch of ours, or a later incarnation, may count. */
bool own_believes(struct gossip *gossip, uint64_t ahead);
bool own_is_cloned(const struct gossip *gossip);
void own_life_tick(struct gossip *gossip);
uint64_t own_life_deadline_ms(const struct gossip *gossip);
bool address_is_loopback(const struct gossip_address *address);
/* May be told to others: no unspecified address, multicast, or port 0. */
bool address_is_usable(const struct gossip_address *address);
/* By a member that has forgotten all of us but our grave, and so cannot show what we signed. */
void own_told_epoch(struct gossip *gossip, uint64_t epoch);
void own_tell_head(struct gossip *gossip);
void own_seen_at(struct gossip *gossip, const struct gossip_address *address);
void own_free(struct gossip *gossip);
void own_leave(struct gossip *gossip);

/* ---- rumors.c ---- */
void rumors_head(struct gossip *gossip, struct member *member);
void rumors_entry(struct gossip *gossip, struct member *member, bool known_widely);
void rumors_accusation(struct gossip *gossip, struct member *member);
void rumors_wake(struct gossip *gossip); /* somebody can be told again */
void rumors_say_had(struct gossip *gossip, const struct member *member);
void rumors_on_had(struct gossip *gossip, const struct message *message);
void rumors_tick(struct gossip *gossip);
uint64_t rumors_deadline_ms(const struct gossip *gossip);

/* ---- repair.c ---- */
#define REPAIR_ENTRIES_PER_WANT 8u /* that an answer brings at most */
struct version repair_version_of(const struct member *member);
/* Of this one, unless it was asked for just now, or is known and was not found worth asking. False: so it was not. */
bool repair_want(struct gossip *gossip, struct member *member, struct member *from);
void repair_ask(struct gossip *gossip, struct member *member, struct member *from); /* in any case */
bool repair_is_newer(const struct version *a, const struct version *b);
void repair_on_have(struct gossip *gossip, const struct message *message);
void repair_on_entry(struct gossip *gossip, const struct message *message);
/* One version that the sender holds. *served counts those answered in full. False: we have not met its owner. */
bool repair_compare(struct gossip *gossip, const struct version *theirs, size_t *served);
void repair_on_want(struct gossip *gossip, const struct message *message);
void repair_on_want_chunk(struct gossip *gossip, const struct message *message);
void repair_on_chunk(struct gossip *gossip, const struct message *message);
void repair_head(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                 size_t size);
/* A head that names it, in answer to the packet in hand; NULL: there is none. */
void repair_tell_base(struct gossip *gossip, const struct checkpoint *base);
void repair_tick(struct gossip *gossip);
/* There may be others that we have never heard of: comparisons now, and for a while more often. */
void repair_hurry(struct gossip *gossip);
/* Asks for no chunk of the large checkpoints that were asked of this one before that. */
void repair_put_off(struct gossip *gossip, const struct member *from, uint64_t until_ms);
uint64_t repair_deadline_ms(const struct gossip *gossip);

/* ---- wants.c ---- */
void wants_init(struct gossip *gossip);
/* `from` says in the packet in hand that this is there of the member, and we lack it: it is wanted until it comes. */
void wants_newer(struct gossip *gossip, struct member *member, struct member *from, const struct version *there);
void wants_tick(struct gossip *gossip);
uint64_t wants_deadline_ms(const struct gossip *gossip);

/* ---- catchup.c ---- */
/* May this chunk of so many go to the sender of the packet in hand? If not, it has been told to come again. */
bool catchup_serves_chunk(struct gossip *gossip, uint64_t chunks);
/* It is the sender's turn, so that an owner of whom it lacks about so many bytes is told in full. */
bool catchup_serves_owner(struct gossip *gossip, size_t size);
void catchup_on_pull(struct gossip *gossip);
/* A link to it is up: it may be what a comparison waited for. */
void catchup_on_link(struct gossip *gossip, struct member *member);
void catchup_on_later(struct gossip *gossip, const struct message *message);
/* Chunks that may be under way, asked of *from, which may become another, at *to; 0: not now. */
uint32_t catchup_way(struct gossip *gossip, const struct staging *staging, struct member **from,
                     struct gossip_address *to);
/* How many of the buckets in which we differ from the sender may be compared now. */
unsigned catchup_buckets(struct gossip *gossip, unsigned differing);

/* ---- carrier.c ---- */
struct gossip_address carrier_address(const struct member_id *id); /* of the link to it */
/* Datagrams pass, as far as we know, or its link is up. */
bool carrier_reaches(const struct gossip *gossip, const struct member *member);
/* How much longer a probe of it may take, as a link has to be dialled first. */
uint32_t carrier_patience_ms(struct gossip *gossip, const struct member *member);
/* One message over the link to it, never by datagram; false if there is none. */
bool carrier_send_one(struct gossip *gossip, struct member *member, const struct message *message);
void carrier_enqueue(struct gossip *gossip, const struct gossip_address *to, const uint8_t *plain, size_t size);
/* A link to it is wanted for so long, whatever its state; one to whoever is at the address: at the earliest a second
 * after the first call, so that datagrams can be answered, then ever more rarely while the calls go on. */
void carrier_want(struct gossip *gossip, const struct member *member, uint32_t for_ms);
void carrier_dial(struct gossip *gossip, const struct gossip_address *address);
/* What does not open came from there: somebody is there, perhaps with another key, and only a link will tell. An
 * address that is called is dialled now, but seldom for this, as anybody can send that. */
void carrier_stray(struct gossip *gossip, const struct gossip_address *from);
/* The packet in hand answers us: if it is a datagram, its source needs no link, whatever else is wrong with it. */
void carrier_heard(struct gossip *gossip);
/* The packet in hand came over the sender's link. */
void carrier_note(struct gossip *gossip, struct member *sender);
/* A ping went by datagram; no answer in time; an answer came, by the way of the packet in hand; a helper has it. */
void carrier_asked(struct member *member);
void carrier_unanswered(struct gossip *gossip, struct member *member);
void carrier_answered(struct gossip *gossip, struct member *member, uint64_t number);
void carrier_answered_helper(struct gossip *gossip, struct member *member);
void carrier_forget(struct gossip *gossip, struct member *member); /* it is removed */
void carrier_tick(struct gossip *gossip);
uint64_t carrier_deadline_ms(const struct gossip *gossip);
void carrier_free(struct gossip *gossip);

/* ---- stray.c ---- */
/* What came from there does not open. */
void stray_received(struct gossip *gossip, const struct gossip_address *from);
/* It is reached by link alone, as its key is another. */
bool stray_other_key(const struct member *member);
void stray_tell(struct gossip *gossip, const struct member *member); /* a warning, if it is so */

/* ---- two_states.c ---- */
/* Does this head, not checked yet, take the place of the one with the same incarnation? */
bool two_states_head_wins(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                          size_t size);
/* An entry, not checked yet, of a sequence that we have. */
void two_states_on_entry(struct gossip *gossip, struct member *member, const struct entry *entry,
                         const struct message *message);
/* Has it not said since which one counts? */
void two_states_tick(struct gossip *gossip, struct member *member);
/* It has answered our ping, by itself. */
void two_states_answered(struct gossip *gossip, struct member *member);
void trouble_free(struct trouble *trouble); /* NULL is nothing */
uint64_t two_states_deadline_ms(const struct member *member);
/* Has it signed two of anything in this epoch? */
bool two_states_are_known(const struct member *member);
/* With the sender of the packet in hand, who says that it holds as much of it as we or more, and perhaps something
 * else: which counts? */
void two_states_compare(struct gossip *gossip, const struct member *member, uint64_t their_sequence);
/* Does our checkpoint of it give way to that of this head, which is not its newest? */
bool two_states_base_yields(const struct member *member, const struct head *newest, const struct head *head,
                            const uint8_t *bytes, size_t size);
/* That head names another, which does not count: tells the sender ours. */
void two_states_answer_base(struct gossip *gossip, const struct member *member, const struct head *head);

/* ---- sweep.c ---- */
/* Is the sender to be believed that it holds something else, and is there room? */
bool sweep_may_begin(struct gossip *gossip);
/* If it is: its log of a member, behind this sequence and up to the end. */
void sweep_begin(struct gossip *gossip, const struct member *member, uint64_t after, uint64_t end);
/* The same where something that differs was found. */
void sweep_go_on(struct gossip *gossip, const struct member *member, uint64_t after, uint64_t end);
/* The sender has signed by the owner what differs from ours. */
void sweep_differs(struct gossip *gossip, const struct member *member);
/* The entry with this sequence is as the sender has it. */
void sweep_follow(struct gossip *gossip, const struct member *member, uint64_t sequence);
void sweep_tick(struct gossip *gossip);

/* ---- holdings.c ---- */
/* Around every change of a member's registry. It may come out of its grave by it, and its rows are told then. */
void holdings_begin(struct gossip *gossip, const struct member *member);
void holdings_end(struct gossip *gossip, struct member *member);
/* Is there room for more? Hidden owners' registries go first, the longest hidden ones before others. */
bool holdings_have_room(struct gossip *gossip);
/* And may this owner have it? The last quarter is for those with less than half of an even part. */
bool holdings_are_fair(struct gossip *gossip, const struct member *member);
/* Lets go of a hidden member's registry; a grave stays. */
void holdings_bury(struct gossip *gossip, struct member *member);
/* Lets go of it without one: another epoch begins, or the member itself goes. */
void holdings_free(struct gossip *gossip, struct member *member);
/* May this verified head make a new member of it? False: older than its grave; who brought it is told. */
bool holdings_let_pass(struct gossip *gossip, const struct member *member, const struct head *head);
/* Are its rows shown? */
bool holdings_show(const struct member *member);

/* ---- rejoin.c ---- */
void rejoin_on_link(struct gossip *gossip, const struct gossip_address *address, const struct member_id *id);
void rejoin_hurry(struct gossip *gossip); /* for some seconds those who are away are called often */
void rejoin_on_pong(struct gossip *gossip, uint64_t number);
void rejoin_on_own_packet(struct gossip *gossip, const uint8_t *plain, size_t size);
void rejoin_tick(struct gossip *gossip);
uint64_t rejoin_deadline_ms(const struct gossip *gossip);
bool rejoin_is_answered(struct gossip *gossip, struct bootstrap *contact);
/* Somebody at one of the addresses we were given: so it can be reached. */
bool rejoin_is_contact(const struct gossip *gossip, const struct member_id *id);
void rejoin_dial(struct gossip *gossip, struct bootstrap *contact);

/* ---- roll.c ---- */
bool roll_is_called(const struct gossip *gossip);
/* Of whom the packet in hand speaks: as members_meet(), but what answers us may come in any order, before the token
 * too. */
struct member *roll_brings(struct gossip *gossip, const struct member_id *id);
/* There are many that we lack. False if the last one was not long ago and found nobody. */
bool roll_start(struct gossip *gossip, uint64_t listed); /* by who has so many */
/* The packet in hand is from the one who is asked: with each member comes the word that it lives. */
bool roll_answers(const struct gossip *gossip);
/* The entries of a member that the packet in hand brought are asked for when the answer has come to its end. False: it
 * is not one, or there is no room. */
bool roll_want(struct gossip *gossip, const struct member *member);
void roll_found(struct gossip *gossip); /* somebody was verified */
/* So many tokens wait to be sent that another would come too late: who asks will ask again, or somebody else. */
bool roll_is_busy(const struct gossip *gossip);
/* May the sender of the packet in hand, who is unknown and has not proved its address, begin to join us now? */
bool roll_may_welcome(struct gossip *gossip);
void roll_on_roll(struct gossip *gossip, const struct message *message);
void roll_tick(struct gossip *gossip);
uint64_t roll_deadline_ms(const struct gossip *gossip);
struct message vouch_for(const struct member *member);
void vouch_on_vouch(struct gossip *gossip, const struct message *message);

/* ---- seek.c ---- */
/* True if the packet in hand (its header is read) is a SEEK, which says nothing else. */
bool seek_hear(struct gossip *gossip, const struct wire_in *messages);
void seek_tick(struct gossip *gossip);
uint64_t seek_deadline_ms(const struct gossip *gossip);

static inline uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

#endif
