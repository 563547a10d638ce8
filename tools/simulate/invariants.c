#include "tools/simulate/world.h"
void invariants_watch(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void invariants_forget(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void invariants_on_datagram(struct world *world, struct broker *broker, const struct gossip_datagram *datagram) {
    (void)world;
    (void)broker;
    (void)datagram;
}
void invariants_on_arrival(struct world *world, struct broker *broker, const struct gossip_address *from, size_t size) {
    (void)world;
    (void)broker;
    (void)from;
    (void)size;
}
void invariants_on_event(struct world *world, struct broker *broker, const struct gossip_event *event) {
    (void)world;
    (void)broker;
    (void)event;
}
void invariants_check(struct world *world, struct broker *broker) {
    (void)world;
    (void)broker;
}
void invariants_poll(struct world *world) {
    (void)world;
}
