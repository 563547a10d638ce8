/* What the files of the cover share. Nodes of `shown` carry marks; where filters end (here > 0) is a row. The row
 * `a/#` of a node `a` that is merged wholly is its child `#`. */
#ifndef GOSSIP_COVER_INSIDE_H
#define GOSSIP_COVER_INSIDE_H

#include "broker/topic.h"
#include "gossip/cover.h"
#include "gossip/signed.h"

enum {
    MERGED_PLUS = 1, /* all children are one, `+` (but for a child `#`) */
    MERGED_REST = 2, /* this node and all below is one row, its child `#` */
    MERGED = 3,
    TOLD = 4 /* a row that on_change was told */
};

#define PATH_LEVELS_MAX (TOPIC_LEVELS_MAX + 1)
struct path {
    struct level levels[PATH_LEVELS_MAX];
    uint32_t count;
};

static const struct level level_plus = {"+", 1}, level_rest = {"#", 1};

/* ---- cover_path.c ---- */
bool level_is(struct level level, struct level other);
void path_of_filter(const char *filter, size_t size, struct path *path);
/* The bytes that the first levels take at most in a row, however they are merged. */
size_t path_size(const struct path *path, uint32_t levels);
/* Too long for a row becomes `prefix/#`. False if there is none. */
bool path_cut(struct path *path);
/* The levels from below `from` down to the node. */
void path_of_node(const struct levels *levels, uint32_t from, uint32_t at, struct path *path);
uint32_t path_find(const struct levels *levels, const struct path *path);
size_t path_write(const struct path *path, char out[ENTRY_FILTER_MAX]);
/* Begins with `$`: a first level that is never merged. */
bool node_is_pinned(const struct levels *levels, uint32_t at);
/* The row that stands for the path below `from`, by the marks (or, if planned, the plans) there. Without make: 0 if it
 * is not there; else 0 when memory is short. */
uint32_t shown_row(struct levels *shown, uint32_t from, const struct path *path, bool planned, bool make);

/* ---- cover.c ---- */
void shown_count(struct cover *cover, uint32_t at, int64_t more);
void shown_mark(struct cover *cover, uint32_t at, uint8_t merged);
bool shown_tell(struct cover *cover, uint32_t at);
/* Takes away the rows at and below it that stand for nothing, and empty nodes. False: not all, memory is short. */
bool shown_tidy(struct cover *cover, uint32_t at);

/* ---- cover_merge.c ---- */
/* Merges until at most so many rows are needed, but nothing whose score is over score_max. False when memory is short;
 * fewer may be merged than was wanted. */
bool cover_merge(struct cover *cover, uint32_t rows, double score_max);

/* ---- cover_choose.c ---- */
struct choice {
    uint32_t at, index;
    uint8_t merge;
    double score; /* unwanted, as a share of all traffic, for each row that is saved */
};
/* A node of `shown`. */
struct weighed {
    uint32_t at, parent, last;   /* indexes of its parent and of the last node below it: parents come first */
    uint32_t kids, rows;         /* children but `#`; rows at and below it */
    uint32_t kid_rows, suffixes; /* rows below kids; how many different ones there are behind the level of the kid */
    uint32_t fullest_rows;       /* of the kid with most rows */
    double mass, wanted;         /* shares of all traffic: of all that is below it, and of what comes in now */
    double kids_wanted, fullest; /* of what comes in through kids; the largest share of its mass that a kid lets in */
    uint64_t path;               /* hash */
    uint8_t kid_merged;          /* how the widest kid is merged: all of them would be */
    bool touched;
};
struct choices {
    struct weighed *nodes;
    uint32_t node_count;
    struct choice *items; /* the cheapest first */
    uint32_t count;
};
bool choices_make(const struct cover *cover, struct choices *choices);
/* The topmost merged nodes, the costliest first; their score means nothing. */
bool choices_of_merged(const struct cover *cover, struct choices *choices);
void choices_free(struct choices *choices);

/* ---- cover_traffic.c ---- */
uint64_t traffic_hash(uint64_t above, struct level level);
/* What of all that was unwanted lately came in here: 0 to 1. */
double traffic_share(const struct cover *cover, uint64_t path);

#endif
