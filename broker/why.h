/* Why a publication on a topic, made at one broker, would or would not reach clients at another.
 *
 * The rules of broker.h hold. Each of the two brokers knows its own side and is asked for it over a link, which is made
 * if there is none; what comes back are steps on the way of a publication, in its order, up to the first that stops it.
 */
#ifndef BROKER_WHY_H
#define BROKER_WHY_H

#include "broker/peering.h"

enum {
    WHY_OPEN_MAX = 16,  /* questions at a time */
    WHY_WAIT_MS = 2000, /* for the answers of other brokers */
    WHY_STEPS_MAX = 48, /* of an answer, */
    WHY_TOLD_MAX = 16,  /* and of these, told by one broker */
    WHY_TEXT_MAX = 400  /* bytes of a step, with the final zero */
};

/* Where on its way a publication is. Brokers tell them to each other: numbers stay, and new ones go between. */
enum why_stage {
    WHY_TOPIC = 10,        /* it may leave its broker */
    WHY_MEMBER = 20,       /* both brokers are there */
    WHY_SUBSCRIPTION = 30, /* somebody wants it, */
    WHY_CLAIM = 40,        /* the tokens allow it (nobody says so yet), */
    WHY_POLICY = 45,       /* as do the lists of what is exported and imported, */
    WHY_ROW = 50,          /* the publisher's broker knows of the wish, */
    WHY_ADVERT = 60,       /* as the subscribers' knows of the topic, */
    WHY_JOIN = 70,         /* and has joined it */
    WHY_LINK = 80,
    WHY_QUEUE = 90,
    WHY_SILENCE = 100 /* somebody who would know more has not answered */
};

/* "topic", "member" and so on; of a number between two the lower one's. */
const char *why_stage_name(uint8_t stage);

struct why_step {
    uint8_t stage;
    bool stops;      /* it does not get further for now */
    char broker[64]; /* who says so */
    char text[WHY_TEXT_MAX];
};

/* One of the two brokers, as the membership knows it. */
struct why_end {
    struct peer_id id; /* all zero if nobody of that name is known */
    char name[64];
    bool is_there;     /* alive, or still held so: it can be asked */
    char standing[96]; /* what is to be said of that; empty if nothing */
};

/* Asks; both may be the same broker, and either this one. 0 when too many questions are open or memory is short. */
uint64_t broker_why_ask(struct broker *broker, uint64_t now_ms, const char *topic, size_t size,
                        const struct why_end *from, const struct why_end *to);
/* The next question that is answered, each once; false when there is none. */
bool broker_next_why(struct broker *broker, uint64_t *question);
/* Of one that is answered: good until broker_why_end(); at least one, and none behind one that stops. NULL before. */
const struct why_step *broker_why_steps(const struct broker *broker, uint64_t question, size_t *count);
/* Answered or not, nobody waits for it any more. */
void broker_why_end(struct broker *broker, uint64_t question);

#endif
