/* What we say in a second: a bound in bytes, shared by weight between classes of packets, so that no class starves
 * another whoever asks for it (deficit round robin, Shreedhar and Varghese 1995). A class that has nothing to say
 * leaves its share to the others. */
#ifndef GOSSIP_BUDGET_H
#define GOSSIP_BUDGET_H

#include "gossip/gossip.h"

#define BUDGET_BYTES_PER_S_MIN 16384u

enum budget_class {
    BUDGET_PROBES,   /* pings and answers: a late one costs a false suspicion; 10 of 25 parts */
    BUDGET_OWN,      /* what we say of ourselves: head and entries; 3 */
    BUDGET_RUMORS,   /* entries of others: 2 */
    BUDGET_REPAIR,   /* digests, and what is fetched after them: 3 */
    BUDGET_MEMBERS,  /* heads of others, tokens, accusations: 2 */
    BUDGET_NEWCOMERS /* pings, answers and what we are, for those we do not see yet, who may be many at once: 5 */
};
#define BUDGET_CLASSES 6u

struct queued_datagram {
    struct queued_datagram *next;
    struct gossip_address to;
    uint64_t queued_ms;
    size_t size;
    uint8_t bytes[];
};

struct budget {
    uint32_t bytes_per_s;
    uint64_t credit;    /* thousandths of a byte */
    uint64_t filled_ms; /* until when it was added */
    enum budget_class turn;
    size_t count; /* of all classes */
    struct {
        struct queued_datagram *first, *last;
        size_t count, bytes;
        size_t deficit; /* bytes it may still send in its turn */
    } queues[BUDGET_CLASSES];
};

void budget_init(struct budget *budget, uint32_t bytes_per_s, uint64_t now_ms);
/* Takes it over. */
void budget_add(struct budget *budget, enum budget_class class, struct queued_datagram *datagram);
/* The next that may go now; NULL if there is none, or the bound says later. */
struct queued_datagram *budget_take(struct budget *budget, uint64_t now_ms);
/* One that waited so long that whoever it was for has given up or asked again; NULL if there is none. To answer those
 * who ask now is better than to answer all too late. */
struct queued_datagram *budget_take_stale(struct budget *budget, uint64_t now_ms);
/* The oldest of the class that has most in its queue; NULL if all are empty. */
struct queued_datagram *budget_take_back(struct budget *budget);
/* When the next may go: UINT64_MAX if nothing waits for the bound (what may go now waits for the caller alone). */
uint64_t budget_deadline_ms(const struct budget *budget, uint64_t now_ms);
/* Bytes of the class that wait. */
size_t budget_waiting(const struct budget *budget, enum budget_class class);

#endif
