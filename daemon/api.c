#include "daemon/api.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "daemon/rings.h"
#include "daemon/storing.h"
#include "daemon/trouble.h"

/* Rows are made and written one at a time: a table of a large federation is never in memory twice. */
struct table {
    struct text *out;
    size_t rows;
};

static int append(const char *bytes, size_t size, void *out) {
    text_append(out, bytes, size);
    return 0;
}

/* Takes the row over; NULL says that memory was short. */
static void add_json(struct text *out, json_t *json) {
    if (json == NULL || json_dump_callback(json, append, out, JSON_COMPACT | JSON_ENSURE_ASCII) != 0)
        out->failed = true;
    json_decref(json);
}

static void add_row(struct table *table, json_t *row) {
    text_append(table->out, table->rows == 0 ? "\n  " : ",\n  ", table->rows == 0 ? 3 : 4);
    add_json(table->out, row);
    table->rows++;
}

static json_t *number(uint64_t value) {
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* Names and filters are checked where they come in; should one still be no UTF-8, the listing must not fail for it. */
static json_t *string(const char *text, size_t size) {
    json_t *json = json_stringn(text, size);
    return json != NULL ? json : json_string("?");
}

static json_t *id_string(const uint8_t id[16]) {
    char text[33];
    for (size_t i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return json_string(text);
}

/* "ip:port", "[ip]:port", or "" for none. */
static void format_address(const struct gossip_address *address, char out[64]) {
    char ip[INET6_ADDRSTRLEN] = "";
    out[0] = '\0';
    if (address->family == 0 ||
        inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->ip, ip, sizeof ip) == NULL)
        return;
    snprintf(out, 64, address->family == 6 ? "[%s]:%u" : "%s:%u", ip, address->port);
}

static json_t *address_json(const struct gossip_address *address) {
    char text[64];
    format_address(address, text);
    return text[0] == '\0' ? json_null() : json_string(text);
}

static const char *state_name(enum member_state state) {
    static const char *const names[] = {[MEMBER_UNVERIFIED] = "unverified",
                                        [MEMBER_ALIVE] = "alive",
                                        [MEMBER_SUSPECT] = "suspect",
                                        [MEMBER_DOWN] = "down",
                                        [MEMBER_LEFT] = "left"};
    return names[state];
}

/* A broker alone has no gossip; it is a member of itself. */
static void own_member(const struct server *server, struct member_info *info) {
    *info = (struct member_info){.state = MEMBER_ALIVE, .epoch = server->epoch, .self = true};
    snprintf(info->name, sizeof info->name, "%s", server->config->name);
}

static bool member_at(const struct server *server, size_t index, struct member_info *info) {
    const struct gossip *gossip = node_gossip(server->node);
    if (gossip != NULL) return gossip_member_at(gossip, server_now_ms(server), index, info);
    if (index > 0) return false;
    own_member(server, info);
    return true;
}

static json_t *trouble(const struct server *server, const struct member_info *info) {
    const char *name = trouble_of(server, info);
    return name == NULL ? json_null() : json_string(name);
}

/* As hobnob key show prints it; none for the keys of a configuration. */
static json_t *ring_mark(const struct member_info *info) {
    char text[9];
    snprintf(text, sizeof text, "%02x%02x%02x%02x", info->ring_mark[0], info->ring_mark[1], info->ring_mark[2],
             info->ring_mark[3]);
    return info->ring == 0 ? json_null() : json_string(text);
}

/* How it is reached; none for ourselves, and while it is not. */
static json_t *way(const struct member_info *info) {
    bool there = !info->self && (info->state == MEMBER_ALIVE || info->state == MEMBER_SUSPECT);
    return !there ? json_null() : json_string(info->by_link ? "link" : "udp");
}

static void write_members(const struct server *server, struct table *table) {
    struct member_info info;
    for (size_t i = 0; member_at(server, i, &info); i++) {
        bool never = info.heard_ms_ago == UINT64_MAX && !info.self;
        add_row(table,
                json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:b}", "name",
                          string(info.name, strlen(info.name)), "id", id_string(info.id.bytes), "state",
                          state_name(info.state), "address", address_json(&info.address), "way", way(&info), "epoch",
                          number(info.epoch), "rows", (int)info.rows, "heard_ms_ago",
                          never ? json_null() : number(info.self ? 0 : info.heard_ms_ago), "ring", number(info.ring),
                          "ring_mark", ring_mark(&info), "trouble", trouble(server, &info), "self", info.self));
    }
}

static bool on_row(void *context, const struct member_info *owner, enum gossip_row_kind kind, const char *filter,
                   size_t size) {
    struct table *table = context;
    add_row(table, json_pack("{s:o, s:s, s:o, s:b}", "owner", string(owner->name, strlen(owner->name)), "kind",
                             kind == GOSSIP_NEWPUB ? "newpub" : "newsub", "filter", string(filter, size), "active", 1));
    return !table->out->failed;
}

static void write_registry(const struct server *server, struct table *table) {
    const struct gossip *gossip = node_gossip(server->node);
    if (gossip != NULL) gossip_walk_rows(gossip, server_now_ms(server), on_row, table);
}

static uint64_t number_at(const void *numbers, size_t offset) {
    uint64_t value;
    memcpy(&value, (const char *)numbers + offset, sizeof value);
    return value;
}

/* Negative when memory is short. */
static int add_counters(json_t *json, const struct link_info *link) {
#define LINK(field)                                                                                                    \
    { #field, offsetof(struct link_info, field) }
    static const struct {
        const char *name;
        size_t offset;
    } counters[] = {
        LINK(publications_sent), LINK(sent_as_nil),
        LINK(sent_again),        LINK(dropped),
        LINK(outbox_messages),   LINK(outbox_bytes),
        LINK(invites_sent),      LINK(frames_sent),
        LINK(bytes_sent),        LINK(gossip_sent),
        LINK(gossip_dropped),    LINK(publications_received),
        LINK(received_as_nil),   LINK(refused),
        LINK(repeated),          LINK(lost),
        LINK(reordered),         LINK(invites_received),
        LINK(frames_received),   LINK(bytes_received),
        LINK(gossip_received),   LINK(subacks_unconfirmed),
    };
#undef LINK
    int result = 0;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        result |= json_object_set_new(json, counters[i].name, number(number_at(link, counters[i].offset)));
    return result;
}

static json_t *whole_or_null(json_t *json, int result) {
    if (result == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *dropped_json(const struct link_info *link) {
    json_t *json = json_object();
    int result = 0;
    for (int i = 0; i < LINK_AT_COUNT; i++)
        result |= json_object_set_new(json, link_limit_name((enum link_at)i), number(link->dropped_at[i]));
    return whole_or_null(json, result);
}

static json_t *given_up_json(const struct link_info *link) {
    json_t *json = json_object();
    int result = 0;
    for (int i = 0; i < GIVEN_UP_COUNT; i++)
        result |= json_object_set_new(json, given_up_name((enum given_up)i), number(link->given_up[i]));
    return whole_or_null(json, result);
}

static json_t *link_json(const struct link_info *link, uint64_t now_ms) {
    static const char *const states[] = {
        [LINK_DIALLING] = "dialling", [LINK_HANDSHAKE] = "handshake", [LINK_UP] = "up", [LINK_CLOSING] = "closing"};
    uint64_t up_ms = link->state == LINK_UP && now_ms > link->up_since_ms ? now_ms - link->up_since_ms : 0;
    json_t *json = json_pack(
        "{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "peer", string(link->name, strlen(link->name)), "id",
        id_string(link->peer.bytes), "state", states[link->state], "direction", link->dialled ? "out" : "in", "up_ms",
        number(up_ms), "joined_here", number(link->joined_here), "joined_there", number(link->joined_there),
        "gossip_wants", link->kept, "dropped_by", dropped_json(link), "given_up", given_up_json(link));
    return whole_or_null(json, add_counters(json, link));
}

static void write_links(const struct server *server, struct table *table) {
    struct link_info link;
    for (size_t i = 0; broker_link_at(node_broker(server->node), i, &link); i++)
        add_row(table, link_json(&link, server_now_ms(server)));
}

/* sync: what is acknowledged outlives; memory: nothing outlives a run. */
static json_t *store_json(const struct server *server) {
    struct store_state state;
    if (!storing_read_state(server->storing, &state)) return json_pack("{s:s}", "sync", "memory");
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o}", "sync", store_sync_name(server->config->storage.sync),
                             "state", state.failing ? "failing" : "good", "commits", number(state.commits), "records",
                             number(state.records), "pending_bytes", number(state.pending_bytes));
    if (json != NULL && state.failing) json_object_set_new(json, "reason", string(state.reason, strlen(state.reason)));
    return json;
}

static void write_status(const struct server *server, struct text *out) {
    const struct gossip *gossip = node_gossip(server->node);
    struct broker_counters broker;
    struct peering_counters peering;
    struct gossip_counters counters = {.members_alive = 1};
    struct member_info self;
    char hash[17] = "", reason[SERVER_REASON_MAX];
    broker_read_counters(node_broker(server->node), &broker);
    broker_read_peering_counters(node_broker(server->node), &peering);
    if (gossip != NULL) {
        gossip_read_counters(gossip, &counters);
        counters.members_in_trouble = trouble_count(server, counters.members_in_trouble);
    }
    if (!member_at(server, 0, &self)) own_member(server, &self);
    snprintf(hash, sizeof hash, "%016" PRIx64, gossip != NULL ? gossip_table_hash(gossip) : 0);
    add_json(out, json_pack("{s:{s:s, s:o, s:s, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, "
                            "s:{s:o, s:o, s:o, s:b}, "
                            "s:o, s:o, s:s}}",
                            "status", "name", server->config->name, "id", id_string(self.id.bytes), "version",
                            HOBNOB_VERSION, "epoch", number(self.epoch), "uptime_s",
                            number((server_now_ms(server) - server->started_ms) / 1000), "ready",
                            server_serves(server, reason), "clients", number(broker.clients_connected), "sessions",
                            number(broker.sessions), "subscriptions", number(broker.subscriptions), "retained",
                            number(broker.retained_messages), "store", store_json(server), "members", "alive",
                            number(counters.members_alive), "suspect", number(counters.members_suspect), "down",
                            number(counters.members_down), "in_trouble", number(counters.members_in_trouble), "ring",
                            "number", number(self.ring), "mark", ring_mark(&self), "brokers_behind",
                            number(counters.rings_behind), "kept", self.ring > 0 && !rings_failing(server->rings),
                            "rows", number(counters.rows_own + counters.rows_others), "links", number(peering.links_up),
                            "table_hash", hash));
    text_append(out, "\n", 1);
}

bool api_write(const struct server *server, const char *name, size_t name_size, struct text *out) {
    static const struct {
        const char *name;
        void (*write)(const struct server *server, struct table *table);
    } tables[] = {{"members", write_members}, {"registry", write_registry}, {"links", write_links}};
    if (name_size == strlen("status") && memcmp(name, "status", name_size) == 0) {
        write_status(server, out);
        return true;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (name_size != strlen(tables[i].name) || memcmp(name, tables[i].name, name_size) != 0) continue;
        struct table table = {.out = out};
        text_add(out, "{\"%s\": [", tables[i].name);
        tables[i].write(server, &table);
        text_add(out, table.rows > 0 ? "\n]}\n" : "]}\n");
        return true;
    }
    return false;
}
