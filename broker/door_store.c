/* The door's functions for what must outlive a crash. */
#include "broker/acks.h"
#include "broker/engine.h"

bool broker_take_journal(struct broker *broker, struct broker_journal *journal) {
    if (broker->journal.lost && !broker->journal.failing) dump_all(broker, broker->now_ms);
    if (!journal_take(&broker->journal, journal)) return false;
    journal->wall_ms = clock_wall_of(broker, broker->now_ms, broker->now_ms);
    return true;
}

/* What waited goes on. */
static void go_on(struct broker *broker, uint64_t now_ms) {
    acks_durable(broker, now_ms);
    held_durable(broker);
    pause_release(broker);
    federation_durable(broker->federation, now_ms);
    broker_settle(broker);
}

void broker_durable(struct broker *broker, uint64_t now_ms, uint64_t number) {
    broker->now_ms = now_ms;
    journal_durable(&broker->journal, number);
    go_on(broker, now_ms);
}

void broker_set_store_failing(struct broker *broker, uint64_t now_ms, bool failing) {
    broker->now_ms = now_ms;
    if (!broker->journal.is_on || broker->journal.failing == failing) return;
    broker->journal.failing = failing;
    if (failing) acks_stop_waiting(broker, now_ms);
    go_on(broker, now_ms);
}

bool broker_restart_journal(struct broker *broker, uint64_t now_ms) {
    broker->now_ms = now_ms;
    return dump_all(broker, now_ms);
}

bool broker_client_paused(const struct broker *broker, broker_handle handle) {
    const struct client *client = client_find(broker, handle);

    return client != NULL && client->paused && client->state == CLIENT_CONNECTED;
}
