#include "tools/simulate/world.h"
void faults_begin(struct world *world) {
    (void)world;
}
void faults_on_event(struct world *world, const struct agenda_entry *entry) {
    (void)world;
    (void)entry;
}
void faults_end_all(struct world *world) {
    (void)world;
}
