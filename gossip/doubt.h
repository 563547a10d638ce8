/* What silence says of the one who was asked. A question, or its answer, may have been lost as others were: how often
 * that happens is measured, and every further unanswered question makes it less likely that the asked one lives. So
 * judgement needs as many questions as the weather asks for: two and three helpers where little is lost, dozens where
 * most is.
 *
 * Shares are in 65,536ths, doubt is in sixteenths of a bit: after b bits of it one of 2^b that live would be silent. */
#ifndef GOSSIP_DOUBT_H
#define GOSSIP_DOUBT_H

#include <stdbool.h>
#include <stdint.h>

#define DOUBT_BIT 16u
#define DOUBT_HELPERS (4 * DOUBT_BIT)  /* others are asked to ask: they cost several datagrams each */
#define DOUBT_SUSPECT (17 * DOUBT_BIT) /* it is suspected: one false suspicion in 130,000 probes */
#define DOUBT_DOWN (24 * DOUBT_BIT)    /* after the suspicion began: then it may be held dead */

/* The share of lost questions after one more, as a moving mean over about 2^slowness of them. */
uint16_t doubt_note_loss(uint16_t loss, bool lost, unsigned slowness);
/* Of one unanswered ping where so many are lost; never more than four bits, nor less than a quarter. */
unsigned doubt_of_ping(uint16_t loss);
/* Of one helper that had no answer for us: two ways, each as good as ours; never more than three bits. */
unsigned doubt_of_helper(uint16_t loss);

#endif
