/* A virtual disk: what a broker's records (broker/record.h) make of a store, as daemon/store.h does it with SQLite. A
 * transaction is on it wholly or not at all. It also watches the records: each must fit what is there. */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include "broker/record.h"

struct disk;

struct disk *disk_new(void);
void disk_free(struct disk *disk);

/* One transaction. */
void disk_commit(struct disk *disk, const uint8_t *bytes, size_t size);

typedef void disk_on_record(void *context, const struct record *record);
/* All records in the order that broker_restore() wants; returns first_number. */
uint64_t disk_read(const struct disk *disk, disk_on_record *on_record, void *context);

/* Records of a type on it now. */
size_t disk_count(const struct disk *disk, enum record_type type);

/* False and a line if a record ever referred to what was not there, or something was left without a holder. */
#define DISK_WHY 200u
bool disk_is_sound(const struct disk *disk, char why[DISK_WHY]);

#endif
