/* What each link counts: a sample for each peer, and for each outcome, limit or reason. */
#include "daemon/metrics_inside.h"

#include <inttypes.h>

#define LINK(field) offsetof(struct link_info, field)
static const struct metrics_row link_rows[] = {
    {"hobnob_link_frames_sent_total", COUNTER, "Frames sent to the peer.", LINK(frames_sent)},
    {"hobnob_link_frames_received_total", COUNTER, "Frames received from the peer.", LINK(frames_received)},
    {"hobnob_link_bytes_sent_total", COUNTER, "Bytes of frames sent to the peer.", LINK(bytes_sent)},
    {"hobnob_link_bytes_received_total", COUNTER, "Bytes of frames received from the peer.", LINK(bytes_received)},
    {"hobnob_link_invites_sent_total", COUNTER, "Invitations sent to the peer.", LINK(invites_sent)},
    {"hobnob_link_invites_received_total", COUNTER, "Invitations received from the peer.", LINK(invites_received)},
    {"hobnob_link_lost_total", COUNTER, "Numbers of publications that the peer's sequence passed over.", LINK(lost)},
    {"hobnob_link_subacks_unconfirmed_total", COUNTER,
     "Subscriptions here that the peer had not confirmed when their SUBACK was due.", LINK(subacks_unconfirmed)},
    {"hobnob_link_gossip_sent_total", COUNTER, "Packets of gossip sent to the peer.", LINK(gossip_sent)},
    {"hobnob_link_gossip_received_total", COUNTER, "Packets of gossip received from the peer.", LINK(gossip_received)},
    {"hobnob_link_gossip_dropped_total", COUNTER, "Packets of gossip that newer ones replaced.", LINK(gossip_dropped)},
    {"hobnob_link_outbox_messages", GAUGE, "Publications waiting for the peer now.", LINK(outbox_messages)},
    {"hobnob_link_outbox_bytes", GAUGE, "Bytes waiting for the peer now.", LINK(outbox_bytes)},
};

/* The samples of one metric of a peer, told apart by one more label. */
static const struct metrics_row sent_rows[] = {
    {.name = "first", .offset = LINK(publications_sent)},
    {.name = "nil", .offset = LINK(sent_as_nil)},
    {.name = "again", .offset = LINK(sent_again)},
};
static const struct metrics_row received_rows[] = {
    {.name = "taken", .offset = LINK(publications_received)},
    {.name = "nil", .offset = LINK(received_as_nil)},
    {.name = "refused", .offset = LINK(refused)},
    {.name = "repeated", .offset = LINK(repeated)},
    {.name = "reordered", .offset = LINK(reordered)},
};

/* {peer="NAME", or the id of a peer that has not said its name; without the brace that closes it. */
static void write_peer(const struct link_info *link, struct text *out) {
    text_add(out, "{peer=\"");
    if (link->name[0] != '\0')
        metrics_label(link->name, out);
    else
        for (size_t i = 0; i < sizeof link->peer.bytes; i++)
            text_add(out, "%02x", link->peer.bytes[i]);
    text_append(out, "\"", 1);
}

/* Has rows[].name as the label's value. */
static void write_labelled(const struct metrics *metrics, const char *name, const char *help, const char *label,
                           const struct metrics_row *rows, size_t count, struct text *out) {
    metrics_head(out, name, COUNTER, help);
    for (size_t i = 0; i < metrics->link_count; i++)
        for (size_t row = 0; row < count; row++) {
            text_add(out, "%s", name);
            write_peer(&metrics->links[i], out);
            text_add(out, ",%s=\"%s\"} %" PRIu64 "\n", label, rows[row].name,
                     metrics_number(&metrics->links[i], rows[row].offset));
        }
}

static void write_publications(const struct metrics *metrics, struct text *out) {
    struct metrics_row limits[LINK_AT_COUNT], reasons[GIVEN_UP_COUNT];
    for (size_t i = 0; i < LINK_AT_COUNT; i++)
        limits[i] = (struct metrics_row){.name = link_limit_name((enum link_at)i), .offset = LINK(dropped_at[i])};
    for (size_t i = 0; i < GIVEN_UP_COUNT; i++)
        reasons[i] = (struct metrics_row){.name = given_up_name((enum given_up)i), .offset = LINK(given_up[i])};
    write_labelled(metrics, "hobnob_link_publications_sent_total",
                   "Numbers of publications sent to the peer: for the first time, without their publication, again.",
                   "outcome", sent_rows, COUNT(sent_rows), out);
    write_labelled(metrics, "hobnob_link_publications_received_total",
                   "Numbers of publications that came from the peer, by what became of them.", "outcome", received_rows,
                   COUNT(received_rows), out);
    write_labelled(metrics, "hobnob_link_dropped_total", "Publications that a limit kept from the peer.", "limit",
                   limits, COUNT(limits), out);
    write_labelled(metrics, "hobnob_link_given_up_total", "Publications that the peer needs no more, or cannot get.",
                   "reason", reasons, COUNT(reasons), out);
}

/* All samples of a metric stand together, as the format demands. */
void metrics_write_links(const struct metrics *metrics, struct text *out) {
    if (metrics->link_count == 0) return;
    metrics_head(out, "hobnob_link_up", GAUGE, "1 while the link to the peer is up.");
    for (size_t i = 0; i < metrics->link_count; i++) {
        text_add(out, "hobnob_link_up");
        write_peer(&metrics->links[i], out);
        text_add(out, "} %d\n", metrics->links[i].state == LINK_UP ? 1 : 0);
    }
    write_publications(metrics, out);
    for (size_t row = 0; row < COUNT(link_rows); row++) {
        metrics_head(out, link_rows[row].name, link_rows[row].type, link_rows[row].help);
        for (size_t i = 0; i < metrics->link_count; i++) {
            text_add(out, "%s", link_rows[row].name);
            write_peer(&metrics->links[i], out);
            text_add(out, "} %" PRIu64 "\n", metrics_number(&metrics->links[i], link_rows[row].offset));
        }
    }
}
