/* Which topics may go to other brokers, and which may come from them: lists of filters that an operator writes, and the
 * one question that is asked of them.
 *
 * A topic stays here if it is private or starts with $. Any other goes to a peer if a filter of the export list matches
 * it, and is taken from a peer if one of the import list does. The list of a peer takes the place of the list of all:
 * so a broker that lets little out can let one peer have more, and need not know the names of all others. A list that
 * is not there lets everything pass, an empty one nothing.
 *
 * Made by the caller, list by list, then given to a broker, which only asks it (broker_options.policy,
 * broker_set_policy()).
 */
#ifndef BROKER_POLICY_H
#define BROKER_POLICY_H

#include <stdbool.h>
#include <stddef.h>

struct policy;
struct policy_list;
enum policy_kind { POLICY_EXPORT, POLICY_IMPORT, POLICY_PRIVATE, POLICY_KINDS };

struct policy *policy_new(void); /* everything may pass; NULL when memory is short */
void policy_free(struct policy *policy);

/* The list of the peer with this name, or with "" the one for all that have none; it is there, and empty, from the
 * first call on. What is private is so for all: peer "" alone. NULL when memory is short. Borrowed. */
struct policy_list *policy_list(struct policy *policy, const char *peer, enum policy_kind kind);
/* One more filter, which must be valid. -1 when memory is short. */
int policy_list_add(struct policy_list *list, const char *filter, size_t size);

/* The lists that count for one peer, borrowed from the policy; NULL where there is none. Zero: everything may pass. */
struct policy_rules {
    const struct policy_list *lists[POLICY_KINDS];
};
/* Of a peer by its name; NULL of one whose name is not known yet: all that is not private. The policy may be NULL. */
struct policy_rules policy_rules_of(const struct policy *policy, const char *peer);

/* May anything that this filter matches go to the peer (POLICY_EXPORT), or be taken from it (POLICY_IMPORT)? A topic is
 * a filter too. Certain of topics; of a filter with wildcards, that it may is said also where the lists together leave
 * nothing of it, if no single pair of filters shows that. */
bool policy_lets(const struct policy_rules *rules, enum policy_kind way, const char *filter, size_t size);
/* The same for any peer, whatever its name. The policy may be NULL. */
bool policy_lets_some_peer(const struct policy *policy, enum policy_kind way, const char *filter, size_t size);

/* What keeps this topic from crossing to or from a peer of this name, or from being told to anybody. */
enum policy_verdict {
    POLICY_LETS,
    POLICY_STAYS,         /* it starts with $ */
    POLICY_IS_PRIVATE,    /* by the list of what is private */
    POLICY_NOT_FOR_PEER,  /* not in the list that this peer has of its own */
    POLICY_NOT_FOR_OTHERS /* not in the list of all that have none */
};
enum policy_verdict policy_verdict(const struct policy *policy, const char *peer, enum policy_kind way,
                                   const char *topic, size_t size);

/* The same filters in the same order, so that the answers are the same. */
bool policy_rules_equal(const struct policy_rules *a, const struct policy_rules *b, enum policy_kind way);
bool policy_equal(const struct policy *a, const struct policy *b); /* either may be NULL */

#endif
