#include "broker/unwanted.h"

#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

struct unwanted {
    enum row_kind kind;
    size_t size;
    char name[];
};

void unwanted_note(struct federation *federation, enum row_kind kind, const char *name, size_t size) {
    if (federation->unwanted_count == UNWANTED_MAX) return;
    struct unwanted *unwanted = malloc(sizeof *unwanted + size);
    if (!unwanted) return;
    unwanted->kind = kind;
    unwanted->size = size;
    memcpy(unwanted->name, name, size);
    federation->unwanted[federation->unwanted_count++] = unwanted;
}

void wanted_note(struct federation *federation, enum row_kind kind) {
    federation->wanted[kind == ROW_NEWPUB ? 0 : 1]++;
}

void unwanted_note_join(struct federation *federation, const char *filter, size_t size) {
    if (topic_has_wildcard(filter, size) || names_find(&federation->adverts, filter, size))
        wanted_note(federation, ROW_NEWPUB);
    else
        unwanted_note(federation, ROW_NEWPUB, filter, size);
}

bool unwanted_next(struct federation *federation, struct broker_unwanted *out) {
    free(federation->unwanted_given);
    federation->unwanted_given = NULL;
    if (federation->unwanted_count == 0) return false;
    struct unwanted *unwanted = federation->unwanted[--federation->unwanted_count];
    federation->unwanted_given = unwanted;
    *out = (struct broker_unwanted){.kind = unwanted->kind, .name = unwanted->name, .size = unwanted->size};
    return true;
}

void unwanted_deinit(struct federation *federation) {
    struct broker_unwanted last;
    while (unwanted_next(federation, &last))
        continue;
}
