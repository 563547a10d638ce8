/* A node that does nothing by itself, behind the real clients and web: tests of these put output into its handles and
 * look at what came in. Include it in one file of a program: it defines the functions of broker.h, peering.h, gossip.h,
 * node.h and server.h that they call.
 */
#ifndef TESTS_FAKE_NODE_H
#define TESTS_FAKE_NODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clients.h"
#include "daemon/rings.h"
#include "daemon/storing.h"
#include "daemon/text.h"
#include "daemon/web.h"

#include "patient_clock.h"

#define FAKE_HANDLES 64u
#define FAKE_FRAMES 64u
#define FAKE_WAIT_MS 60000

/* A client or a link. Its handle is its index. */
struct fake_end {
    bool open, is_link, ready, ended, closed, paused, has_peer;
    uint8_t thumbprint[32];
    struct text input; /* all bytes that came in */
    size_t messages;   /* links: final pieces */
    size_t last_message_size, message_size;
    struct broker_span frames[FAKE_FRAMES]; /* borrowed output */
    size_t frame_count, frames_written;
    size_t written; /* clients: bytes of the first frame not yet written that are gone */
};

struct broker {
    struct fake_end ends[FAKE_HANDLES];
    size_t end_count;
    struct broker_limits limits;
    char last_name[64];         /* of the latest client's certificate */
    uint64_t input_ns_per_byte; /* that a client's input costs, */
    bool costs_in_rows;         /* once gossip is told of it */
    uint64_t owed_ns;           /* then */
    struct fake_why {           /* one question at a time, answered by the test with this step */
        uint64_t number;
        bool open, is_done, is_told;
        char asked[128];
        struct why_step step;
    } why;
};

struct node {
    struct server *server;
    struct broker broker;
    size_t registry_rows; /* that gossip_walk_rows makes up */
    bool alone;           /* no gossip */
    bool refused;         /* by others */
};

static inline struct fake_end *fake_end(struct broker *broker, broker_handle handle) {
    assert_true(handle > 0 && handle <= broker->end_count);
    return &broker->ends[handle - 1];
}

static inline broker_handle fake_open(struct broker *broker, bool is_link) {
    assert_true(broker->end_count < FAKE_HANDLES);
    broker->ends[broker->end_count] = (struct fake_end){.open = true, .is_link = is_link};
    return ++broker->end_count;
}

/* The bytes must live until they are written. */
static inline void fake_send(struct node *node, broker_handle handle, const void *bytes, size_t size) {
    struct fake_end *end = fake_end(&node->broker, handle);
    assert_true(end->frame_count < FAKE_FRAMES);
    end->frames[end->frame_count++] = (struct broker_span){.bytes = bytes, .size = size};
    if (end->is_link)
        web_link_ready(node->server->web, handle);
    else
        clients_ready(node->server->clients, handle);
}

static inline void fake_end_it(struct node *node, broker_handle handle) {
    struct fake_end *end = fake_end(&node->broker, handle);
    end->ended = true;
    if (end->is_link)
        web_link_ready(node->server->web, handle);
    else
        clients_ready(node->server->clients, handle);
}

/* ---- broker.h ---- */

broker_handle broker_client_open(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    (void)now_ms;
    assert_true(origin->from_loopback);
    assert_non_null(origin->address);
    snprintf(broker->last_name, sizeof broker->last_name, "%s",
             origin->certificate_name != NULL ? origin->certificate_name : "");
    return fake_open(broker, false);
}

const struct broker_limits *broker_limits_of(const struct broker *broker) {
    return &broker->limits;
}

void broker_set_memory_short(struct broker *broker, uint64_t now_ms, bool is_short) {
    (void)broker, (void)now_ms, (void)is_short;
}

void broker_set_memory_used(struct broker *broker, uint64_t bytes) {
    (void)broker, (void)bytes;
}

bool broker_client_paused(const struct broker *broker, broker_handle client) {
    return broker->ends[client - 1].paused;
}

static inline void fake_spend(struct broker *broker) {
    for (const uint64_t until_ns = uv_hrtime() + broker->owed_ns; uv_hrtime() < until_ns;)
        continue;
    broker->owed_ns = 0;
}

void broker_client_input(struct broker *broker, uint64_t now_ms, broker_handle client, const uint8_t *bytes,
                         size_t size) {
    (void)now_ms;
    text_append(&fake_end(broker, client)->input, (const char *)bytes, size);
    broker->owed_ns += size * broker->input_ns_per_byte;
    if (!broker->costs_in_rows) fake_spend(broker);
}

size_t broker_client_output(struct broker *broker, broker_handle client, struct broker_span *spans, size_t span_max) {
    struct fake_end *end = fake_end(broker, client);
    size_t count = 0;
    for (size_t i = end->frames_written; i < end->frame_count && count < span_max; i++) {
        spans[count] = end->frames[i];
        if (count == 0) {
            spans[0].bytes += end->written;
            spans[0].size -= end->written;
        }
        count++;
    }
    return count;
}

void broker_client_written(struct broker *broker, uint64_t now_ms, broker_handle client, size_t size) {
    (void)now_ms;
    struct fake_end *end = fake_end(broker, client);
    end->written += size;
    while (end->frames_written < end->frame_count && end->written >= end->frames[end->frames_written].size)
        end->written -= end->frames[end->frames_written++].size;
}

size_t broker_clients_connecting(const struct broker *broker, broker_handle *longest) {
    (void)broker;
    *longest = 0;
    return 0;
}

bool broker_client_ended(const struct broker *broker, broker_handle client) {
    return broker->ends[client - 1].ended;
}

void broker_client_closed(struct broker *broker, uint64_t now_ms, broker_handle client) {
    (void)now_ms;
    assert_false(fake_end(broker, client)->closed);
    fake_end(broker, client)->closed = true;
}

void broker_read_counters(const struct broker *broker, struct broker_counters *out) {
    *out = (struct broker_counters){.clients_connected = broker->end_count};
}

/* ---- peering.h ---- */

broker_handle broker_link_open(struct broker *broker, uint64_t now_ms, bool dialled, const struct peer_id *peer) {
    (void)now_ms;
    assert_false(dialled);
    assert_null(peer);
    return fake_open(broker, true);
}

void broker_link_ready(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t key_thumbprint[32]) {
    (void)now_ms;
    struct fake_end *end = fake_end(broker, link);
    assert_false(end->ready);
    end->ready = true;
    memcpy(end->thumbprint, key_thumbprint, 32);
}

void broker_link_input(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t *bytes, size_t size,
                       bool final) {
    (void)now_ms;
    struct fake_end *end = fake_end(broker, link);
    text_append(&end->input, (const char *)bytes, size);
    end->message_size += size;
    if (!final) return;
    end->last_message_size = end->message_size;
    end->message_size = 0;
    end->messages++;
}

bool broker_link_output(struct broker *broker, uint64_t now_ms, broker_handle link, struct broker_span *frame) {
    (void)now_ms;
    struct fake_end *end = fake_end(broker, link);
    if (end->frames_written == end->frame_count) return false;
    *frame = end->frames[end->frames_written];
    return true;
}

void broker_link_written(struct broker *broker, uint64_t now_ms, broker_handle link) {
    (void)now_ms;
    fake_end(broker, link)->frames_written++;
}

bool broker_link_has_peer(const struct broker *broker, broker_handle link) {
    return link != 0 && broker->ends[link - 1].has_peer;
}

bool broker_link_ended(const struct broker *broker, broker_handle link) {
    return broker->ends[link - 1].ended;
}

void broker_link_closed(struct broker *broker, uint64_t now_ms, broker_handle link) {
    (void)now_ms;
    assert_false(fake_end(broker, link)->closed);
    fake_end(broker, link)->closed = true;
}

bool broker_link_at(const struct broker *broker, size_t index, struct link_info *info) {
    (void)broker;
    if (index > 0) return false;
    *info = (struct link_info){.name = "edge-2", .state = LINK_UP, .dialled = true, .publications_sent = 5};
    return true;
}

void broker_read_peering_counters(const struct broker *broker, struct peering_counters *out) {
    (void)broker;
    *out = (struct peering_counters){.links_up = 1};
}

/* ---- gossip.h: the pointer is the node itself ---- */

bool gossip_member_at(const struct gossip *gossip, uint64_t now_ms, size_t index, struct member_info *info) {
    (void)gossip;
    (void)now_ms;
    if (index > 1) return false;
    *info = (struct member_info){
        .name = "edge-1", .id.bytes = {0xab}, .state = MEMBER_ALIVE, .epoch = 7, .self = index == 0};
    if (index == 1) snprintf(info->name, sizeof info->name, "edge-2");
    info->address = (struct gossip_address){.family = 4, .ip = {127, 0, 0, 1}, .port = 7100};
    if (index == 1) info->heard_ms_ago = UINT64_MAX;
    return true;
}

void gossip_walk_rows(const struct gossip *gossip, uint64_t now_ms, gossip_on_row *on_row, void *context) {
    const struct node *node = (const void *)gossip;
    struct member_info owner = {.name = "edge-1"};
    (void)now_ms;
    for (size_t i = 0; i < node->registry_rows; i++) {
        char filter[32];
        int size = snprintf(filter, sizeof filter, "dev/%zu/\"t\"", i);
        if (!on_row(context, &owner, i % 2 == 0 ? GOSSIP_NEWPUB : GOSSIP_NEWSUB, filter, (size_t)size)) return;
    }
}

uint64_t gossip_table_hash(const struct gossip *gossip) {
    (void)gossip;
    return 0xfedcba9876543210;
}

void gossip_read_counters(const struct gossip *gossip, struct gossip_counters *out) {
    (void)gossip;
    *out = (struct gossip_counters){.members_alive = 2, .rows_own = 3, .rows_others = 4};
}

/* ---- why.h ---- */

uint64_t node_why(struct node *node, uint64_t now_ms, const char *topic, size_t size, const char *from,
                  const char *to) {
    (void)now_ms;
    struct fake_why *why = &node->broker.why;
    if (why->open) return 0;
    why->open = true;
    why->is_done = why->is_told = false;
    snprintf(why->asked, sizeof why->asked, "%.*s from %s to %s", (int)size, topic, from, to);
    return ++why->number;
}

bool broker_next_why(struct broker *broker, uint64_t *question) {
    struct fake_why *why = &broker->why;
    if (!why->open || !why->is_done || why->is_told) return false;
    why->is_told = true;
    *question = why->number;
    return true;
}

const struct why_step *broker_why_steps(const struct broker *broker, uint64_t question, size_t *count) {
    const struct fake_why *why = &broker->why;
    *count = 1;
    return why->open && why->is_done && question == why->number ? &why->step : NULL;
}

void broker_why_end(struct broker *broker, uint64_t question) {
    if (question == broker->why.number) broker->why.open = false;
}

/* ---- node.h and server.h ---- */

struct broker *node_broker(struct node *node) {
    return &node->broker;
}

struct gossip *node_gossip(struct node *node) {
    return node->alone ? NULL : (void *)node;
}

bool node_is_refused(const struct node *node, uint64_t now_ms) {
    (void)now_ms;
    return node->refused;
}

void node_tell_rows(struct node *node, uint64_t now_ms) {
    (void)now_ms;
    fake_spend(&node->broker);
}

uint64_t server_now_ms(const struct server *server) {
    return uv_now(server->loop);
}

void server_pump(struct server *server) {
    assert_non_null(server->node);
}

/* ---- storing.h: the pointer is the state of the store itself; NULL in memory ---- */

bool storing_read_state(struct storing *storing, struct store_state *out) {
    if (storing != NULL) memcpy(out, storing, sizeof *out);
    return storing != NULL;
}

/* ---- rings.h: the last line of a ring says what becomes of it ---- */

enum gossip_ring_verdict rings_post(struct server *server, const char *text, size_t size, char *reason) {
    (void)server;
    snprintf(reason, 160, "of %zu bytes \"%.*s\"", size, (int)(size < 20 ? size : 20), text);
    if (size >= 4 && memcmp(text + size - 4, "good", 4) == 0) return GOSSIP_RING_TAKEN;
    if (size >= 3 && memcmp(text + size - 3, "old", 3) == 0) return GOSSIP_RING_OLDER;
    return GOSSIP_RING_REFUSED;
}

bool rings_failing(const struct rings *rings) {
    return rings != NULL;
}

uint64_t gossip_ring_held(const struct gossip *gossip, const uint8_t **bytes, size_t *size) {
    (void)gossip;
    *bytes = NULL;
    *size = 0;
    return 7;
}

bool server_serves(const struct server *server, char text[SERVER_REASON_MAX]) {
    struct store_state store = {0};
    storing_read_state(server->storing, &store);
    if (server->ready && !server->leaving && !store.failing) return true;
    snprintf(text, SERVER_REASON_MAX, "%s", store.failing ? store.reason : server->leaving ? "leaving" : "starting");
    return false;
}

/* ---- a whole broker of the test ---- */

struct fake_server {
    struct server server;
    struct config config;
    struct identity identity;
    struct node node;
    uv_prepare_t prepare;
    char name[16];
};

static inline void fake_flush(uv_prepare_t *prepare) {
    const struct server *server = prepare->data;
    web_turn(server->web);
    clients_flush(server->clients);
}

static inline void discard_line(void *context, const char *line, size_t size) {
    (void)context;
    if (getenv("HOBNOB_TEST_LOG") != NULL) fwrite(line, 1, size, stderr);
}

static inline int64_t no_wall(void *context) {
    (void)context;
    return 0;
}

static inline void fake_listen(struct config_listeners *listeners, uint16_t port) {
    struct config_address *address = &listeners->items[listeners->count++];
    snprintf(address->host, sizeof address->host, "127.0.0.1");
    snprintf(address->ip, sizeof address->ip, "127.0.0.1");
    address->port = port;
}

/* Listens on free ports of loopback. seed 0: a broker alone, without key, peers and gossip. */
static inline void fake_server_init(struct fake_server *fake, uv_loop_t *loop, uint8_t seed) {
    struct log_options log = {.level = LOG_LEVEL_DEBUG, .write = discard_line, .wall_ms = no_wall};
    memset(fake, 0, sizeof *fake);
    snprintf(fake->name, sizeof fake->name, "edge-%u", seed);
    fake->config.name = fake->name;
    fake->node.server = &fake->server;
    fake->server = (struct server){
        .loop = loop, .config = &fake->config, .identity = &fake->identity, .node = &fake->node, .ready = true};
    fake->server.log = log_new(&log);
    assert_non_null(fake->server.log);
    fake->server.started_ms = uv_now(loop);
    fake->node.alone = seed == 0;
    if (seed != 0) {
        uint8_t entropy[AUTH_ENTROPY_SIZE];
        memset(entropy, seed, sizeof entropy);
        assert_int_equal(auth_key_new(entropy, &fake->identity.key), AUTH_OK);
        fake_listen(&fake->config.listen.peers, 0);
    }
    fake->node.broker.limits = (struct broker_limits){.connect_timeout_ms = 10000, .connecting_max = 1000};
    fake_listen(&fake->config.listen.mqtt, 0);
    fake_listen(&fake->config.listen.ws, 0);
    fake_listen(&fake->config.listen.admin, 0);
    char error[SERVER_ERROR_MAX] = "";
    fake->server.clients = clients_new(&fake->server, error);
    assert_string_equal(error, "");
    fake->prepare.data = &fake->server;
    uv_prepare_init(loop, &fake->prepare);
    uv_prepare_start(&fake->prepare, fake_flush);
    fake->server.web = web_new(&fake->server, error);
    assert_string_equal(error, "");
    assert_non_null(fake->server.web);
}

static inline void fake_server_stop(struct fake_server *fake) {
    if (uv_is_closing((uv_handle_t *)&fake->prepare)) return;
    clients_close(fake->server.clients);
    uv_close((uv_handle_t *)&fake->prepare, NULL);
    web_stop(fake->server.web);
}

/* After the loop has drained. */
static inline void fake_server_free(struct fake_server *fake) {
    web_free(fake->server.web);
    for (size_t i = 0; i < fake->node.broker.end_count; i++)
        text_deinit(&fake->node.broker.ends[i].input);
    auth_key_free(fake->identity.key);
    log_free(fake->server.log);
}

static inline void fake_nothing(uv_timer_t *timer) {
    (void)timer;
}

/* Turns the loop until the condition holds; false after FAKE_WAIT_MS. */
static inline bool fake_wait(uv_loop_t *loop, bool (*holds)(void *context), void *context) {
    uint64_t until_ms = patient_clock_ms() + FAKE_WAIT_MS;
    uv_timer_t beat; /* a turn never blocks for longer than this */
    uv_timer_init(loop, &beat);
    uv_timer_start(&beat, fake_nothing, 5, 5);
    bool held = false;
    while (!(held = holds(context)) && patient_clock_ms() < until_ms)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&beat, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return held;
}

/* Turns the loop until nothing is left on it; false after FAKE_WAIT_MS. */
static inline bool fake_drain(uv_loop_t *loop) {
    uint64_t until_ms = patient_clock_ms() + FAKE_WAIT_MS;
    while (uv_run(loop, UV_RUN_NOWAIT) != 0)
        if (patient_clock_ms() >= until_ms) return false;
    return true;
}

#endif
