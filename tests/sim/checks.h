/* What must be true of a world: judged from its journal and from what its brokers say of themselves.
 *
 * Each check returns true if it holds; else why gets a line for people.
 */
#ifndef SIM_CHECKS_H
#define SIM_CHECKS_H

#include "tests/sim/world.h"

#define CHECKS_WHY 400u
#define CHECKS_OWNER_BYTES_MAX (4u << 20)

/* Every live broker sees every other live broker alive under its present epoch and nobody else alive, every broker's
 * view of every owner's rows is what the owner itself shows, and all table hashes are equal. For a world
 * without cut paths. Nothing is asked of a hostile broker, nor of what others hold of it. */
bool checks_registry_agrees(const struct world *world, char why[CHECKS_WHY]);
/* All table hashes of honest brokers are equal, and they show the same rows of a hostile one, whatever it told each. */
bool checks_tables_agree(const struct world *world, char why[CHECKS_WHY]);

enum checks_repeats { CHECKS_ONCE, CHECKS_QOS1_MAY_REPEAT };
/* Publications sent at or after from_us: a client that was granted a matching filter before and still has it got
 * exactly one copy (G2, G3, G4, G5), a client with none, or to which it may not cross, got none, anyone between at most
 * one. Whoever calls it has
 * waited until all could arrive. */
bool checks_delivery(const struct world *world, uint64_t from_us, enum checks_repeats repeats, char why[CHECKS_WHY]);
/* The same for groups of shared subscriptions: of all members, wherever they are, one got one copy (G7). (Of one client
 * alone, checks_delivery() only says that it may.) Before quiet_us at most one, as QoS 0 and 2 have it, unless a broker
 * died since. Members must have no other filter that matches. */
bool checks_groups(const struct world *world, uint64_t quiet_us, enum checks_repeats repeats, char why[CHECKS_WHY]);
/* Whatever happened: QoS 0 and 2 never twice in one session (but for what came over a link from a broker that has died
 * since, or to one that lost its disk, and for copies at QoS 0 of a publication at QoS 2 if either broker
 * has died since), nothing to clients that did not ask, payloads whole, no violation of the protocol. */
bool checks_never(const struct world *world, char why[CHECKS_WHY]);
/* Kept sessions are there after every crash, and so is what was acknowledged: a publication of QoS 1 or 2 that its
 * broker acknowledged has reached each kept session, there or at another broker that it was known to have joined from,
 * that was granted a matching filter at QoS 1 or 2 before it was sent, and still has it. Records on the disks fit each
 * other. But for disks that were lost. */
bool checks_survival(const struct world *world, char why[CHECKS_WHY]);
/* First copies of one publisher's messages on one topic with one QoS come in the order in which they were sent;
 * retained ones come again with a subscription or a restarted broker and do not count. Nor do those of members of
 * groups: what another one did not take comes when it comes. */
bool checks_order(const struct world *world, char why[CHECKS_WHY]);
/* All QoS 1 and 2 publications are acknowledged, but those whose broker lost the session. */
bool checks_acknowledged(const struct world *world, char why[CHECKS_WHY]);
/* No broker wants its timer without end: at most this many ticks per second since it started. */
bool checks_calm(const struct world *world, uint64_t ticks_per_s_max, char why[CHECKS_WHY]);

/* No honest broker names an honest one as one that breaks the rules; of accusing others it may be guilty, as a bad
 * cable makes anybody. A world where all keys are in one hand each. */
bool checks_conduct(const struct world *world, char why[CHECKS_WHY]);
/* What honest brokers hold of all others is within its limits, and nobody is a member who never was there. */
bool checks_bounded(const struct world *world, char why[CHECKS_WHY]);
/* Bytes that the process has in use. */
size_t checks_memory(void);

/* Writes into the trace what every live broker holds of every member: for whoever has to find out why they do not
 * agree. */
void checks_trace_members(struct world *world);

/* All clients are connected and have no open wish. */
bool checks_clients_idle(const struct world *world);

/* Of honest brokers nothing is lost or reordered on a link, and what two of them that have run all the time count of
 * each other adds up (struct link_info). */
bool checks_ledgers(const struct world *world, char why[CHECKS_WHY]);
/* Sums over the links of one broker (all peers). */
struct link_info checks_links(const struct world *world, size_t node);
/* May the topic cross from one broker to the other, by all policies that were in force since then, and by any? To
 * itself always. */
struct checks_crossing {
    bool always, ever;
};
struct checks_crossing checks_crossing(const struct world *world, size_t from_host, size_t to_host, const char *topic,
                                       uint64_t since_us);
/* Does the MQTT filter match the topic? (MQTT 5.0 section 4.7; apart from broker/topic.h.) */
bool checks_matches(const char *filter, const char *topic);
/* FILTER of "$share/NAME/FILTER"; NULL for any other. */
const char *checks_inner(const char *filter);

#endif
