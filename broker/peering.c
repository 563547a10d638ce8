#include "broker/federation.h"

#include <string.h>

void broker_peer_alive(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, const char *name, uint64_t epoch)
{
    (void)broker, (void)now_ms, (void)peer, (void)name, (void)epoch;
}

void broker_peer_gone(struct broker *broker, uint64_t now_ms, const struct peer_id *peer)
{
    (void)broker, (void)now_ms, (void)peer;
}

void broker_peer_row(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, enum row_kind kind,
                     const char *filter, size_t filter_size, bool active)
{
    (void)broker, (void)now_ms, (void)peer, (void)kind, (void)filter, (void)filter_size, (void)active;
}

void broker_peer_knows(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, uint64_t sequence)
{
    (void)broker, (void)now_ms, (void)peer, (void)sequence;
}

bool broker_next_row(struct broker *broker, struct broker_row_change *change)
{
    (void)broker, (void)change;
    return false;
}

void broker_row_sequenced(struct broker *broker, uint64_t now_ms, uint64_t ticket, uint64_t sequence)
{
    (void)broker, (void)now_ms, (void)ticket, (void)sequence;
}

bool broker_next_dial(struct broker *broker, uint64_t now_ms, struct peer_id *peer)
{
    (void)broker, (void)now_ms, (void)peer;
    return false;
}

void broker_dial_failed(struct broker *broker, uint64_t now_ms, const struct peer_id *peer)
{
    (void)broker, (void)now_ms, (void)peer;
}

broker_handle broker_link_open(struct broker *broker, uint64_t now_ms, bool dialled, const struct peer_id *peer)
{
    (void)broker, (void)now_ms, (void)dialled, (void)peer;
    return 0;
}

void broker_link_ready(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t key_thumbprint[32])
{
    (void)broker, (void)now_ms, (void)link, (void)key_thumbprint;
}

void broker_link_input(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t *bytes, size_t size, bool final)
{
    (void)broker, (void)now_ms, (void)link, (void)bytes, (void)size, (void)final;
}

void broker_link_closed(struct broker *broker, uint64_t now_ms, broker_handle link)
{
    (void)broker, (void)now_ms, (void)link;
}

bool broker_next_link(struct broker *broker, broker_handle *link)
{
    (void)broker, (void)link;
    return false;
}

bool broker_link_output(struct broker *broker, uint64_t now_ms, broker_handle link, struct broker_span *frame)
{
    (void)broker, (void)now_ms, (void)link, (void)frame;
    return false;
}

void broker_link_written(struct broker *broker, uint64_t now_ms, broker_handle link)
{
    (void)broker, (void)now_ms, (void)link;
}

bool broker_link_ended(const struct broker *broker, broker_handle link)
{
    (void)broker, (void)link;
    return true;
}

int broker_set_identity(struct broker *broker, const uint8_t *token, size_t token_size, const struct peer_questions *questions)
{
    (void)broker, (void)token, (void)token_size, (void)questions;
    return 0;
}

bool broker_link_at(const struct broker *broker, size_t index, struct link_info *info)
{
    (void)broker, (void)index, (void)info;
    return false;
}

void broker_read_peering_counters(const struct broker *broker, struct peering_counters *out)
{
    (void)broker;
    memset(out, 0, sizeof *out);
}
