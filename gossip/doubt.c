#include "gossip/doubt.h"

#define WHOLE 65536u
#define STEP (WHOLE / 16)

uint16_t doubt_note_loss(uint16_t loss, bool lost, unsigned slowness) {
    if (lost) return (uint16_t)(loss + ((WHOLE - 1 - loss) >> slowness));
    uint32_t less = ((uint32_t)loss + (1u << slowness) - 1) >> slowness;
    return (uint16_t)(loss - less);
}

/* -log2 of the share, rounded up to a sixteenth: what is not known exactly counts as less doubt. */
static unsigned doubt_at(uint32_t share, uint32_t least) {
    static const uint8_t doubt[] = {64, 48, 38, 32, 26, 22, 19, 16, 13, 10, 8, 6, 4};
    uint32_t sixteenths = (share + STEP - 1) / STEP;
    if (sixteenths < least) sixteenths = least;
    return doubt[(sixteenths < sizeof doubt ? sixteenths : sizeof doubt) - 1];
}

unsigned doubt_of_ping(uint16_t loss) {
    return doubt_at(loss, 1);
}

unsigned doubt_of_helper(uint16_t loss) {
    uint32_t passes = WHOLE - loss;
    return doubt_at(WHOLE - (uint32_t)((uint64_t)passes * passes / WHOLE), 2);
}
