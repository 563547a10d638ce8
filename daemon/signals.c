#include "daemon/signals.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/memory.h"
#include "daemon/reload.h"
#include "daemon/storing.h"

static void describe_store(const struct server *server, char *out, size_t size) {
    struct store_state state;
    if (!storing_read_state(server->storing, &state))
        snprintf(out, size, "none: all is in memory");
    else if (state.failing)
        snprintf(out, size, "cannot write: %s", state.reason);
    else
        snprintf(out, size, "writes each change as it comes, %" PRIu64 " bytes wait for the disk", state.pending_bytes);
}

static void tell_state(const struct server *server, const char *signal_name) {
    struct broker_counters counters;
    const struct memory_state memory = memory_read(server->memory);
    char store[STORE_ERROR_MAX + 32];
    broker_read_counters(node_broker(server->node), &counters);
    describe_store(server, store, sizeof(store));
    log_text(server->log, LOG_LEVEL_INFO, "state",
             "%s: clients %" PRIu64 ", sessions %" PRIu64 ", subscriptions %" PRIu64 ", queued %" PRIu64
             ", in flight %" PRIu64 ", retained %" PRIu64 ", memory %" PRIu64 " of %" PRIu64 " KiB; store: %s",
             signal_name, counters.clients_connected, counters.sessions, counters.subscriptions,
             counters.queued_messages, counters.inflight_messages, counters.retained_messages, memory.resident / 1024,
             memory.max / 1024, store);
}

static void on_signal(uv_signal_t *handle, int number) {
    struct server *server = handle->data;
    if (number == SIGHUP) {
        reload(server);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
        tell_state(server, number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
    } else if (!server->leaving) {
        server_leave(server, number == SIGTERM ? "SIGTERM" : "SIGINT");
    } else {
        log_text(server->log, LOG_LEVEL_INFO, "ended", "at once, on a second signal");
        server_end(server);
    }
}

void signals_start(struct server *server) {
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < SIGNALS; i++) {
        server->signals[i].data = server;
        uv_signal_init(server->loop, &server->signals[i]);
        uv_signal_start(&server->signals[i], on_signal, numbers[i]);
    }
}

void signals_close(struct server *server) {
    for (size_t i = 0; i < SIGNALS; i++)
        if (!uv_is_closing((uv_handle_t *)&server->signals[i])) uv_close((uv_handle_t *)&server->signals[i], NULL);
}
