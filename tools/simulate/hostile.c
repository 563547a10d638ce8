#include "tools/simulate/world.h"
void hostile_begin(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void hostile_end(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void hostile_act(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void hostile_hear(struct world *world, struct broker *broker, const struct network_packet *packet) {
    (void)world;
    (void)broker;
    (void)packet;
}
size_t older_filter(const struct world *world, uint8_t *bytes, size_t size, const struct gossip_key *key,
                    const char *federation) {
    (void)world;
    (void)bytes;
    (void)key;
    (void)federation;
    return size;
}
