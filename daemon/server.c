#include "daemon/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "daemon/clients.h"
#include "daemon/datagrams.h"
#include "daemon/descriptors.h"
#include "daemon/memory.h"
#include "daemon/multicast.h"
#include "daemon/notify.h"
#include "daemon/peer_cache.h"
#include "daemon/resolver.h"
#include "daemon/rings.h"
#include "daemon/signals.h"
#include "daemon/storing.h"
#include "daemon/web.h"

#define WALL_EVERY_MS 500    /* how stale the node's wall clock may be */
#define EXPIRY_EVERY_MS 1000 /* a look at the dates of the certificate */
#define LEAVE_MAX_MS 6000u   /* from SIGTERM to the end, whatever the others do */
#define LEAVE_CHECK_MS 20u
#define ALONE_MS 10000u    /* after which it is said that nobody has answered */
#define LATE_MS 50u        /* the loop has been away */
#define HOLD_MAX_MS 1000u  /* and the same time between two of them */
#define LOG_RETRY_MS 100u  /* while who reads the log takes nothing */
#define CLOSE_MAX_MS 2000u /* for handles to close; then a DNS lookup hangs in its thread */

uint64_t server_now_ms(const struct server *server) {
    return uv_now(server->loop);
}

int64_t server_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool server_serves(const struct server *server, char text[SERVER_REASON_MAX]) {
    char reason[STORE_ERROR_MAX] = "";
    if (!server->ready || server->leaving) {
        snprintf(text, SERVER_REASON_MAX, "%s", server->leaving ? "leaving" : "starting");
        return false;
    }
    if (storing_serves(server->storing, reason)) return true;
    snprintf(text, SERVER_REASON_MAX, "the store cannot write: %s", reason);
    return false;
}

void server_pump(struct server *server) {
    node_pump(server->node, server_now_ms(server));
}

/* ---- the node's ports ---- */

static void port_send_datagram(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct server *server = context;
    if (server->ended || server->datagrams == NULL || multicast_send(server->multicast, to, bytes, size)) return;
    datagrams_send(server->datagrams, to, bytes, size);
}

static void port_client_ready(void *context, broker_handle client) {
    struct server *server = context;
    if (!server->ended) clients_ready(server->clients, client);
}

static void port_link_ready(void *context, broker_handle link) {
    struct server *server = context;
    if (!server->ended) web_link_ready(server->web, link);
}

static void port_dial(void *context, broker_handle link, const struct gossip_address *to, const char *peer_name) {
    struct server *server = context;
    if (!server->ended) web_dial(server->web, link, to, peer_name);
}

static void port_log(void *context, enum node_log_level level, const char *event, const char *text) {
    static const enum log_level levels[] = {[NODE_LOG_DEBUG] = LOG_LEVEL_DEBUG,
                                            [NODE_LOG_INFO] = LOG_LEVEL_INFO,
                                            [NODE_LOG_WARNING] = LOG_LEVEL_WARNING,
                                            [NODE_LOG_ERROR] = LOG_LEVEL_ERROR};
    struct server *server = context;
    log_text(server->log, levels[level], event, "%s", text);
}

static void port_save_epoch(void *context, uint64_t epoch) {
    struct server *server = context;
    server->epoch = epoch;
    storing_save_epoch(server->storing, epoch);
}

static void port_save_ring(void *context, const char *text, size_t size) {
    struct server *server = context;
    if (!server->ended) rings_save(server->rings, text, size);
}

static void port_store(void *context, const struct broker_journal *journal) {
    struct server *server = context;
    storing_give(server->storing, journal);
}

/* A certificate that was verified is enough. Others are welcome where the configuration says so; a name or password
 * that they show is not looked at, as there is nothing yet to check it by. */
static uint8_t may_connect(void *context, const struct broker_applicant *applicant, const char **why) {
    const struct server *server = context;
    if (applicant->origin->certificate_name != NULL) return 0x00;
    if (server->config->clients.anonymous_everywhere) return 0x00;
    if (applicant->origin->from_loopback && !server->config->clients.anonymous_nowhere) return 0x00;
    *why = server->config->clients.anonymous_nowhere
               ? "clients.anonymous is false: write true, or use certificates (tls.client_ca)"
               : "only loopback is open to all: write clients: {anonymous: true}, or use certificates (tls.client_ca)";
    return 0x87;
}

/* ---- the turn of the loop ---- */

void server_tell_wall(struct server *server) {
    const int64_t wall_ms = server_wall_ms();
    const int64_t passed = wall_ms - server->wall_told_ms;
    if (passed >= 0 && passed < WALL_EVERY_MS) return;
    /* Both at the same moment: the loop's time is as old as this turn, by which the wall clock would run ahead. */
    uv_update_time(server->loop);
    node_set_wall(server->node, server_now_ms(server), wall_ms);
    server->wall_told_ms = wall_ms;
}

/* After a pause (SIGSTOP, a machine that slept) what came meanwhile is read before anybody's time is over: libuv runs
 * timers first. Not for long, as a loop that is always late must tick all the same. */
static bool is_held(struct server *server) {
    const uint64_t now_ms = server_now_ms(server);
    const uint64_t late_ms = now_ms > server->timer_due_ms ? now_ms - server->timer_due_ms : 0;
    if (late_ms < LATE_MS || now_ms < server->hold_until_ms + HOLD_MAX_MS) return false;
    server->hold_until_ms = now_ms + (late_ms < HOLD_MAX_MS ? late_ms : HOLD_MAX_MS);
    return true;
}

static void on_timer(uv_timer_t *timer) {
    struct server *server = timer->data;
    const bool hold = is_held(server);
    server->timer_due_ms = UINT64_MAX;
    if (hold) return; /* the prepare that follows sets it anew */
    node_tick(server->node, server_now_ms(server));
}

static void set_timer(struct server *server) {
    const uint64_t now_ms = server_now_ms(server);
    uint64_t due_ms = node_deadline_ms(server->node);
    if (due_ms < server->hold_until_ms) due_ms = server->hold_until_ms;
    if (log_waits(server->log) && due_ms > now_ms + LOG_RETRY_MS) due_ms = now_ms + LOG_RETRY_MS;
    if (due_ms == server->timer_due_ms) return;
    server->timer_due_ms = due_ms;
    if (due_ms == UINT64_MAX)
        uv_timer_stop(&server->timer);
    else
        uv_timer_start(&server->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static bool knows_where_to_ask(const struct server *server) {
    return server->config->federation.bootstrap_count > 0 || server->config->federation.multicast ||
           peer_cache_count(server->peers) > 0;
}

/* A wrong gossip key or federation name makes no noise: others cannot open what we send, and so nobody answers. */
static void tell_if_alone(struct server *server) {
    struct gossip_counters counters;
    const struct gossip *gossip = node_gossip(server->node);
    if (server->alone_told || server->leaving || gossip == NULL || !knows_where_to_ask(server) ||
        server_now_ms(server) - server->started_ms < ALONE_MS)
        return;
    server->alone_told = true;
    gossip_read_counters(gossip, &counters);
    if (counters.members_alive + counters.members_suspect + counters.members_down > 1) return;
    log_text(server->log, LOG_LEVEL_WARNING, "alone",
             "no other broker has answered in %u s, and %" PRIu64
             " datagrams could not be opened: start one of federation.bootstrap, open its peers port for UDP, or give "
             "all the same federation.gossip_key and federation.name; asking goes on",
             ALONE_MS / 1000, counters.unsealed);
}

/* Of the certificate and of our token: nobody who is connected notices. */
static void tell_if_expiring(struct server *server) {
    const int64_t passed_ms = server->wall_told_ms - server->looked_ms;
    const struct identity *identity = server->identity;
    char text[EXPIRY_TEXT_MAX];
    int64_t from_s, to_s;
    if (identity->token_fault[0] == '\0' && /* else it was said at the start */
        expiry_due(&server->token_expiry, EXPIRY_TOKEN, identity->token_from_s, identity->token_ends_s,
                   server->wall_told_ms / 1000, text))
        log_text(server->log, LOG_LEVEL_WARNING, "token", "%s", text);
    if (server->certificates == NULL || (passed_ms >= 0 && passed_ms < EXPIRY_EVERY_MS)) return;
    server->looked_ms = server->wall_told_ms;
    tls_certificates_dates(server->certificates, &from_s, &to_s);
    if (expiry_due(&server->expiry, EXPIRY_CERTIFICATE, from_s, to_s, server->wall_told_ms / 1000, text))
        log_text(server->log, LOG_LEVEL_WARNING, "certificate", "%s", text);
}

/* All input of this turn is in: now everything goes out, and then the loop may sleep. */
static void on_prepare(uv_prepare_t *prepare) {
    struct server *server = prepare->data;
    const uint64_t suspended_ms = turns_suspended_ms(&server->turns);
    if (suspended_ms > 0) {
        log_text(server->log, LOG_LEVEL_INFO, "suspended", "the machine slept %" PRIu64 " ms", suspended_ms);
        node_note_lag(server->node, server_now_ms(server), suspended_ms);
    }
    server_tell_wall(server);
    tell_if_alone(server);
    tell_if_expiring(server);
    if (!server->ended) memory_turn(server->memory);
    server_pump(server);
    web_turn(server->web);
    do {
        storing_turn(server->storing); /* first, so that the disk works while we write */
        clients_flush(server->clients);
    } while (storing_turn(server->storing));
    log_flush(server->log);
    set_timer(server);
    turns_end(&server->turns);
}

/* ---- the end ---- */

static void close_handle(void *handle) {
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void server_end(struct server *server) {
    if (server->ended) return;
    server->ended = true;
    server->ready = false;
    clients_close(server->clients);
    memory_close(server->memory);
    datagrams_close(server->datagrams);
    resolver_close(server->resolver);
    multicast_close(server->multicast);
    peer_cache_close(server->peers);
    rings_close(server->rings);
    if (server->web != NULL) web_stop(server->web);
    turns_close(&server->turns);
    close_handle(&server->prepare);
    close_handle(&server->timer);
    close_handle(&server->leave_timer);
    signals_close(server);
}

static void on_leave_timer(uv_timer_t *timer) {
    struct server *server = timer->data;
    const uint64_t passed_ms = server_now_ms(server) - server->leave_since_ms;
    const bool all_done = node_left(server->node) && clients_count(server->clients) == 0;
    if (!all_done && passed_ms < LEAVE_MAX_MS) return;
    log_text(server->log, LOG_LEVEL_INFO, "ended", "%s",
             all_done ? "left in order" : "not everything was told in time");
    server_end(server);
}

void server_leave(struct server *server, const char *signal_name) {
    log_text(server->log, LOG_LEVEL_INFO, "leaving", "%s: clients are told, and the federation; once more ends at once",
             signal_name);
    notify_system("STOPPING=1");
    server->leaving = true;
    server->ready = false;
    server->leave_since_ms = server_now_ms(server);
    clients_stop_listening(server->clients);
    web_stop_listening(server->web);
    node_leave(server->node, server_now_ms(server));
    uv_timer_start(&server->leave_timer, on_leave_timer, LEAVE_CHECK_MS, LEAVE_CHECK_MS);
}

/* ---- the start ---- */

static bool make_node(struct server *server, char error[SERVER_ERROR_MAX]) {
    const struct config *config = server->config;
    const bool federated = config->listen.peers.count > 0;
    struct node_options options = {
        .name = config->name,
        .federation = config->federation.name,
        .epoch = server->epoch,
        .durable = server->storing != NULL,
        .debug_notes = log_wants(server->log, LOG_LEVEL_DEBUG),
        .policy = config->federation.policy,
        .broker_limits = config->broker_limits,
        .gossip_limits = config->gossip_limits,
        .questions = {.context = server, .may_connect = may_connect},
        .ports = {.context = server,
                  .send_datagram = port_send_datagram,
                  .client_ready = port_client_ready,
                  .link_ready = port_link_ready,
                  .dial = port_dial,
                  .log = port_log,
                  .save_epoch = port_save_epoch,
                  .save_ring = port_save_ring,
                  .store = port_store},
    };
    if (federated) {
        options.key = server->identity->key;
        options.issuers = (const struct auth_key *const *)server->identity->issuers;
        options.issuer_count = server->identity->issuer_count;
        options.token = server->identity->token;
        options.token_size = server->identity->token_size;
        options.ring = &server->identity->ring;
        if (server->identity->ring_number > 0) {
            options.ring_text = server->identity->ring_text;
            options.ring_size = strlen(server->identity->ring_text);
            options.ring_number = server->identity->ring_number;
            memcpy(options.ring_digest, server->identity->ring_digest, sizeof(options.ring_digest));
        }
        options.advertise = resolver_advertise(config);
    }
    if (getrandom(&options.seed, sizeof(options.seed), 0) != (ssize_t)sizeof(options.seed)) {
        snprintf(error, SERVER_ERROR_MAX, "the system gives no random numbers: start hobnobd later in the boot");
        return false;
    }
    server->wall_told_ms = server_wall_ms();
    uv_update_time(server->loop); /* as in server_tell_wall() */
    server->node = node_new(&options, server_now_ms(server), server->wall_told_ms);
    if (server->node == NULL)
        snprintf(
            error, SERVER_ERROR_MAX,
            "memory is short, or a limit is out of its range: write smaller limits, or give the machine more memory");
    return server->node != NULL;
}

static void start_handles(struct server *server) {
    server->prepare.data = server->timer.data = server->leave_timer.data = server;
    server->timer_due_ms = UINT64_MAX;
    turns_start(&server->turns, server->loop);
    uv_prepare_init(server->loop, &server->prepare);
    uv_timer_init(server->loop, &server->timer);
    uv_timer_init(server->loop, &server->leave_timer);
    signals_start(server);
}

static bool start_federation(struct server *server, char error[SERVER_ERROR_MAX]) {
    if (server->config->listen.peers.count == 0) return true;
    server->datagrams = datagrams_new(server, error);
    if (server->datagrams == NULL) return false;
    const bool seeks = server->config->federation.multicast;
    server->resolver = resolver_new(server);
    server->peers = peer_cache_new(server);
    const bool keeps = server->config->data_dir != NULL;
    if (seeks) server->multicast = multicast_new(server);
    if (keeps) server->rings = rings_new(server);
    const bool all = server->resolver != NULL && server->peers != NULL && (server->multicast != NULL || !seeks) &&
                     (server->rings != NULL || !keeps);
    if (!all) snprintf(error, SERVER_ERROR_MAX, "memory is short: give the machine more");
    return all;
}

/* What was kept is there before the first client is. */
static bool start_node(struct server *server, char error[SERVER_ERROR_MAX]) {
    server->epoch = 1;
    if (server->config->data_dir != NULL) {
        server->storing = storing_new(server, error);
        if (server->storing == NULL) return false;
    }
    return make_node(server, error) && storing_start(server->storing, error);
}

/* A limit that cannot be kept is told before it matters. */
static bool check_descriptors(const struct server *server, char error[SERVER_ERROR_MAX]) {
    const uint64_t room = descriptors_for_clients(), wanted = server->config->broker_limits.clients_max;
    if (room == 0) {
        snprintf(error, SERVER_ERROR_MAX,
                 "%" PRIu64
                 " open files are too few for even one client, as hobnobd needs some itself: " DESCRIPTORS_REMEDY,
                 descriptors_max());
        return false;
    }
    if (wanted > room)
        log_text(server->log, LOG_LEVEL_WARNING, "descriptors",
                 "limits.clients_max is %" PRIu64 ", and the limit of open files leaves room for %" PRIu64
                 " clients: write a lower clients_max, or " DESCRIPTORS_REMEDY,
                 wanted, room);
    return true;
}

static bool start(struct server *server, char error[SERVER_ERROR_MAX]) {
    if (!start_node(server, error)) return false;
    server->memory = memory_new(server, server->config->memory_bytes_max);
    if (server->memory == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "memory is short: give the machine more");
        return false;
    }
    server->clients = clients_new(server, error);
    if (server->clients == NULL) return false;
    server->web = web_new(server, error);
    if (server->web == NULL || !start_federation(server, error)) return false;
    uv_prepare_start(&server->prepare, on_prepare);
    return check_descriptors(server, error);
}

static void log_start(struct server *server) {
    const struct config *config = server->config;
    char epoch[24];
    snprintf(epoch, sizeof(epoch), "%" PRIu64, server->epoch);
    if (server->identity->token_fault[0] != '\0')
        log_text(server->log, LOG_LEVEL_ERROR, "token",
                 "other brokers will refuse us, and only our own clients are served: %s",
                 server->identity->token_fault);
    if (server->identity->ring_number > 0)
        log_text(server->log, LOG_LEVEL_INFO, "ring", "gossip key ring %" PRIu64 " is used, %s",
                 server->identity->ring_number,
                 server->identity->ring_is_kept ? "kept in data_dir, and not the keys of federation.gossip_key"
                                                : "of federation.gossip_key");
    if (server->storing == NULL)
        log_text(server->log, LOG_LEVEL_INFO, "store",
                 "all is in memory and lost at the end; write a configuration to keep it");
    log_line(server->log, LOG_LEVEL_INFO, "ready", "name", config->name, "version", HOBNOB_VERSION, "epoch", epoch,
             NULL);
}

static void on_close_late(uv_timer_t *timer) {
    uv_stop(timer->loop);
}

/* Runs the closing of all handles to its end. A lookup that hangs in the system's resolver cannot be called off; then
 * the process must end under it, for even a return from main would wait for its thread. */
static void drain(struct server *server) {
    uv_timer_t guard;
    server_end(server);
    uv_timer_init(server->loop, &guard);
    uv_timer_start(&guard, on_close_late, CLOSE_MAX_MS, 0);
    uv_unref((uv_handle_t *)&guard);
    uv_run(server->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(server->loop, UV_RUN_NOWAIT);
}

bool server_run(const struct config *config, const struct identity *identity, struct tls_certificates *certificates,
                struct log *log, char error[SERVER_ERROR_MAX]) {
    uv_loop_t loop;
    struct server server = {
        .loop = &loop, .config = config, .identity = identity, .certificates = certificates, .log = log};
    if (uv_loop_init(&loop) != 0) {
        snprintf(error, SERVER_ERROR_MAX, "the event loop cannot be made: raise the limit of open files (ulimit -n)");
        return false;
    }
    start_handles(&server);
    server.started_ms = server_now_ms(&server);
    const bool started = start(&server, error);
    if (started) {
        server.ready = true;
        log_start(&server);
        notify_system("READY=1");
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    drain(&server);
    storing_stop(server.storing);
    web_free(server.web);
    node_free(server.node);
    policy_free(server.policy);
    storing_free(server.storing);
    if (uv_loop_close(&loop) != 0) {
        log_text(log, LOG_LEVEL_WARNING, "ended", "with work still under way");
        log_free(log);
        _exit(started ? 0 : 1);
    }
    return started;
}
