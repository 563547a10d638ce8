/* Inside plan_*.c: the schedule of faults, and faults by rate. Not a door. */
#ifndef SIMULATE_PLAN_FAULTS_H
#define SIMULATE_PLAN_FAULTS_H

#include "tools/simulate/plan_values.h"

void plan_read_faults(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);
void plan_read_chaos(struct plan_reader *reader, const struct plan_key *key, yaml_node_t *value);
/* What can be said only when all of the file is read. */
void plan_check_faults(struct plan_reader *reader);
bool plan_find_site(struct plan_reader *reader, const yaml_node_t *node, const char *name, uint32_t *site);

#endif
