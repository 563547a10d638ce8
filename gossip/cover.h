/* Our filters, as the registry shows them: exact while there is room, otherwise covered by wider ones.
 *
 * Every wanted filter is always covered by a shown one (topic_filter_covers), so a cover costs idle group joins and
 * never a miss. Over budget, siblings become one `a/b/#`, deepest first and the largest family first, down to four
 * fifths of the budget, so that the next filters find room. When the wanted filters are few again everything is shown
 * exactly. Filters that begin with `$` must not be given.
 */
#ifndef GOSSIP_COVER_H
#define GOSSIP_COVER_H

#include "gossip/rows.h"

struct cover {
    enum gossip_row_kind kind;
    uint32_t rows_max;
    bool coarse;       /* something shown is wider than what is wanted, for want of room */
    size_t rebuild_at; /* while coarse: with so few wanted it is worth to look whether narrower ones do */
    struct rows wanted;
    struct rows shown;
};

/* A change of what is shown, in an order in which nothing wanted is uncovered in between. False: no memory. */
typedef bool cover_on_change(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown);

void cover_init(struct cover *cover, enum gossip_row_kind kind, uint32_t rows_max);
void cover_free(struct cover *cover);
/* False when memory is short: a put that failed may be repeated; a delete that failed leaves a row too many. */
bool cover_put(struct cover *cover, const char *filter, size_t size, cover_on_change *on_change, void *context);
bool cover_delete(struct cover *cover, const char *filter, size_t size, cover_on_change *on_change, void *context);

#endif
