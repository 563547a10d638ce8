/* Lines for the log from what the cores say happened. */
#include "daemon/node_inside.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void address_format(const struct gossip_address *address, char *out, size_t size) {
    char ip[INET6_ADDRSTRLEN] = "";
    if (address->family == 4) {
        inet_ntop(AF_INET, address->ip, ip, sizeof(ip));
        snprintf(out, size, "%s:%u", ip, address->port);
    } else if (address->family == 6) {
        inet_ntop(AF_INET6, address->ip, ip, sizeof(ip));
        snprintf(out, size, "[%s]:%u", ip, address->port);
    } else {
        snprintf(out, size, "an unknown address");
    }
}

/* "edge-2 (3f0a91c2) at 10.0.0.7:7100": eight digits of the id tell brokers of one name apart. */
static void who_format(const struct gossip_event *event, char *out, size_t size) {
    char address[64];
    address_format(&event->address, address, sizeof(address));
    const uint8_t *id = event->id.bytes;
    snprintf(out, size, "%s (%02x%02x%02x%02x) at %s", event->name[0] != '\0' ? event->name : "a broker", id[0], id[1],
             id[2], id[3], address);
}

static const char *state_text(enum member_state state) {
    switch (state) {
    case MEMBER_UNVERIFIED: return "not verified yet";
    case MEMBER_ALIVE: return "alive";
    case MEMBER_SUSPECT: return "suspected to be down";
    case MEMBER_DOWN: return "down";
    case MEMBER_LEFT: return "gone: it left in order";
    }
    return "in an unknown state";
}

void node_log_gossip_event(const struct node *node, const struct gossip_event *event) {
    char who[160], text[400];
    enum node_log_level level = NODE_LOG_INFO;
    const char *name = "member";
    who_format(event, who, sizeof(who));
    switch (event->kind) {
    case GOSSIP_MEMBER:
        snprintf(text, sizeof(text), "%s is %s, epoch %" PRIu64, who, state_text(event->state), event->epoch);
        if (event->state == MEMBER_SUSPECT || event->state == MEMBER_DOWN) level = NODE_LOG_WARNING;
        break;
    case GOSSIP_ROW:
        name = "row";
        level = NODE_LOG_DEBUG;
        snprintf(text, sizeof(text), "%s %s %s %.*s", who, event->active ? "has" : "no longer has",
                 event->row_kind == GOSSIP_NEWPUB ? "newpub" : "newsub",
                 (int)(event->filter_size < 200 ? event->filter_size : 200), event->filter);
        break;
    case GOSSIP_KNOWS: return;
    case GOSSIP_REFUSED:
        name = "refused";
        level = NODE_LOG_WARNING;
        snprintf(text, sizeof(text), "%s is refused: %s", who, event->text);
        break;
    case GOSSIP_REFUSED_US:
        name = "refused_us";
        level = NODE_LOG_ERROR;
        snprintf(text, sizeof(text), "%s refuses us: %s", who, event->text);
        break;
    case GOSSIP_EPOCH:
        name = "epoch";
        snprintf(text, sizeof(text),
                 "raised to %" PRIu64 ": others remember a later run of this broker than its data_dir does",
                 event->epoch);
        break;
    case GOSSIP_CLONED:
        name = "cloned";
        level = NODE_LOG_ERROR;
        snprintf(text, sizeof(text),
                 "another broker uses our key, from %s: stop one of the two, or give it a key and token of its own "
                 "(hobnob key new, hobnob token mint)",
                 who);
        break;
    case GOSSIP_CONDUCT:
        name = "conduct";
        level = NODE_LOG_WARNING;
        snprintf(text, sizeof(text), "%s: %s", who, event->text);
        break;
    case GOSSIP_RING:
        name = "ring";
        snprintf(text, sizeof(text), "gossip key ring %" PRIu64 " is used from now on; it came from %s",
                 event->sequence, memcmp(&event->id, &node->id, sizeof(event->id)) == 0 ? "an admin" : who);
        break;
    case GOSSIP_WARNING:
        name = "gossip";
        level = NODE_LOG_WARNING;
        snprintf(text, sizeof(text), "%s", event->text);
        break;
    default: return;
    }
    node->ports.log(node->ports.context, level, name, text);
}

/* Each event has its own allowance in the log: clients that come and go, or break rules, cannot hide anything else. */
static const char *event_of(const struct broker_note *note) {
    static const struct {
        const char *begins, *event;
    } events[] = {
        {"link ", "link"}, {"limits.", "limit"}, {"CONNECT ", "client_refused"}, {"client ", "client_closed"}};

    if (note->level == BROKER_NOTE_DEBUG && strncmp(note->text, "client ", 7) == 0) return "client";
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strncmp(note->text, events[i].begins, strlen(events[i].begins)) == 0) return events[i].event;
    return "broker";
}

void node_log_broker_note(const struct node *node, const struct broker_note *note) {
    const enum node_log_level level = note->level == BROKER_NOTE_WARNING ? NODE_LOG_WARNING
                                      : note->level == BROKER_NOTE_INFO  ? NODE_LOG_INFO
                                                                         : NODE_LOG_DEBUG;
    node->ports.log(node->ports.context, level, event_of(note), note->text);
}
