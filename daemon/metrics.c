#include "daemon/metrics_inside.h"

#include <inttypes.h>
#include <string.h>

#define BROKER(field) offsetof(struct broker_counters, field)
static const struct metrics_row broker_rows[] = {
    {"hobnob_clients", GAUGE, "Clients connected now.", BROKER(clients_connected)},
    {"hobnob_sessions", GAUGE, "Sessions held now, connected or not.", BROKER(sessions)},
    {"hobnob_subscriptions", GAUGE, "Subscriptions of local sessions now.", BROKER(subscriptions)},
    {"hobnob_retained_messages", GAUGE, "Retained messages held now.", BROKER(retained_messages)},
    {"hobnob_shared_subscriptions", GAUGE, "Of these, shared ones.", BROKER(shared_subscriptions)},
    {"hobnob_queued_messages", GAUGE, "Publications at QoS 1 and 2 that wait for clients now.",
     BROKER(queued_messages)},
    {"hobnob_queued_bytes", GAUGE, "Bytes of these.", BROKER(queued_bytes)},
    {"hobnob_held_bytes", GAUGE, "Bytes of publications queued or in flight, each counted once.", BROKER(held_bytes)},
    {"hobnob_inflight_messages", GAUGE, "Publications at QoS 1 and 2 sent to clients and not acknowledged now.",
     BROKER(inflight_messages)},
    {"hobnob_sessions_expired_total", COUNTER, "Sessions whose client did not come back in time.",
     BROKER(sessions_expired)},
    {"hobnob_connects_accepted_total", COUNTER, "CONNECT packets accepted.", BROKER(connects_accepted)},
    {"hobnob_connects_refused_total", COUNTER, "CONNECT packets refused.", BROKER(connects_refused)},
    {"hobnob_protocol_errors_total", COUNTER, "Clients closed for breaking MQTT's rules.", BROKER(protocol_errors)},
    {"hobnob_takeovers_total", COUNTER, "Sessions taken over by a new connection.", BROKER(takeovers)},
    {"hobnob_client_timeouts_total", COUNTER, "Clients closed for silence.", BROKER(client_timeouts)},
    {"hobnob_packets_received_total", COUNTER, "MQTT packets from clients.", BROKER(packets_received)},
    {"hobnob_packets_sent_total", COUNTER, "MQTT packets to clients.", BROKER(packets_sent)},
    {"hobnob_publications_received_total", COUNTER, "Publications from clients.", BROKER(publications_received)},
    {"hobnob_publications_sent_total", COUNTER, "Publications to clients.", BROKER(publications_sent)},
    {"hobnob_publication_bytes_received_total", COUNTER, "Payloads of publications from clients, bytes.",
     BROKER(publication_bytes_received)},
    {"hobnob_publication_bytes_sent_total", COUNTER, "Payloads of publications to clients, bytes.",
     BROKER(publication_bytes_sent)},
    {"hobnob_dropped_qos0_total", COUNTER, "Publications at QoS 0 dropped since a client's output was full.",
     BROKER(dropped_qos0)},
    {"hobnob_dropped_queue_full_total", COUNTER,
     "Publications at QoS 1 and 2 dropped since a session's queue was full.", BROKER(dropped_queue_full)},
    {"hobnob_publications_refused_total", COUNTER,
     "Publications at QoS 1 and 2 refused since the store could not keep them.", BROKER(publications_refused)},
    {"hobnob_publications_denied_total", COUNTER, "Publications to topics that are not for clients: $SYS, $share.",
     BROKER(publications_denied)},
    {"hobnob_not_retained_total", COUNTER, "Publications that the store of retained messages did not take.",
     BROKER(not_retained)},
    {"hobnob_dropped_too_large_total", COUNTER, "Publications dropped for one client, which takes none that large.",
     BROKER(dropped_too_large)},
    {"hobnob_dropped_expired_total", COUNTER, "Queued publications dropped since their expiry interval was over.",
     BROKER(dropped_expired)},
    {"hobnob_reauthentications_refused_total", COUNTER, "Clients closed since they failed to authenticate again.",
     BROKER(reauthentications_refused)},
    {"hobnob_bytes_received_total", COUNTER, "Bytes of MQTT from clients.", BROKER(bytes_received)},
    {"hobnob_bytes_sent_total", COUNTER, "Bytes of MQTT to clients.", BROKER(bytes_sent)},
};

#define PEERING(field) offsetof(struct peering_counters, field)
static const struct metrics_row peering_rows[] = {
    {"hobnob_links_up", GAUGE, "Links to peers that are up now.", PEERING(links_up)},
    {"hobnob_links_opened_total", COUNTER, "Links that came up.", PEERING(links_opened)},
    {"hobnob_links_refused_total", COUNTER, "Links refused for their token or key.", PEERING(links_refused)},
    {"hobnob_dials_failed_total", COUNTER, "Dials that did not become links.", PEERING(dials_failed)},
    {"hobnob_frames_malformed_total", COUNTER, "Link frames that were not understood.", PEERING(frames_malformed)},
    {"hobnob_barriers_waited_total", COUNTER, "SUBACKs that waited for other brokers.", PEERING(barriers_waited)},
    {"hobnob_barriers_timed_out_total", COUNTER, "SUBACKs sent though a broker had not confirmed in time.",
     PEERING(barriers_timed_out)},
    {"hobnob_replayed_total", COUNTER, "Publications sent from the replay window to peers that joined late.",
     PEERING(replayed)},
    {"hobnob_replay_expired_total", COUNTER, "Publications that left the replay window without being asked for.",
     PEERING(replay_expired)},
};

#define GOSSIP(field) offsetof(struct gossip_counters, field)
static const struct metrics_row gossip_rows[] = {
    {"hobnob_gossip_datagrams_sent_total", COUNTER, "Gossip datagrams sent.", GOSSIP(datagrams_sent)},
    {"hobnob_gossip_datagrams_received_total", COUNTER, "Gossip datagrams received.", GOSSIP(datagrams_received)},
    {"hobnob_gossip_bytes_sent_total", COUNTER, "Bytes of gossip sent.", GOSSIP(bytes_sent)},
    {"hobnob_gossip_bytes_received_total", COUNTER, "Bytes of gossip received.", GOSSIP(bytes_received)},
    {"hobnob_gossip_link_packets_sent_total", COUNTER, "Packets of gossip sent over links.", GOSSIP(link_packets_sent)},
    {"hobnob_gossip_link_packets_received_total", COUNTER, "Packets of gossip received over links.",
     GOSSIP(link_packets_received)},
    {"hobnob_gossip_link_bytes_sent_total", COUNTER, "Bytes of gossip sent over links.", GOSSIP(link_bytes_sent)},
    {"hobnob_gossip_link_bytes_received_total", COUNTER, "Bytes of gossip received over links.",
     GOSSIP(link_bytes_received)},
    {"hobnob_gossip_transfers_put_off_total", COUNTER, "Brokers told to come again for a large part of the registry.",
     GOSSIP(transfers_put_off)},
    {"hobnob_gossip_members_by_link", GAUGE, "Members to whom datagrams do not pass now.", GOSSIP(members_by_link)},
    {"hobnob_gossip_links_wanted", GAUGE, "Links that gossip wants now.", GOSSIP(links_wanted)},
    {"hobnob_gossip_unsealed_total", COUNTER, "Datagrams that did not open: wrong key, wrong federation, or damage.",
     GOSSIP(unsealed)},
    {"hobnob_gossip_replayed_total", COUNTER, "Datagrams that came before, or are older than what came from there.",
     GOSSIP(replayed)},
    {"hobnob_gossip_malformed_total", COUNTER, "Datagrams that opened and were not understood.", GOSSIP(malformed)},
    {"hobnob_gossip_bad_signature_total", COUNTER, "Statements with a wrong signature.", GOSSIP(bad_signature)},
    {"hobnob_gossip_refused_token_total", COUNTER, "Members refused for their token.", GOSSIP(refused_token)},
    {"hobnob_gossip_queue_dropped_total", COUNTER,
     "Datagrams dropped since too many were queued, or they waited too long.", GOSSIP(queue_dropped)},
    {"hobnob_gossip_probes_sent_total", COUNTER, "Probes sent.", GOSSIP(probes_sent)},
    {"hobnob_gossip_probes_failed_total", COUNTER, "Probes without an answer.", GOSSIP(probes_failed)},
    {"hobnob_gossip_indirect_probes_sent_total", COUNTER, "Probes asked of others.", GOSSIP(indirect_probes_sent)},
    {"hobnob_gossip_suspicions_total", COUNTER, "Members suspected.", GOSSIP(suspicions)},
    {"hobnob_gossip_refutations_total", COUNTER, "Suspicions refuted.", GOSSIP(refutations)},
    {"hobnob_gossip_deaths_total", COUNTER, "Members declared down.", GOSSIP(deaths)},
    {"hobnob_gossip_entries_sent_total", COUNTER, "Registry log entries sent.", GOSSIP(entries_sent)},
    {"hobnob_gossip_entries_received_total", COUNTER, "Registry log entries received.", GOSSIP(entries_received)},
    {"hobnob_gossip_entries_repeated_total", COUNTER, "Registry log entries received again.", GOSSIP(entries_repeated)},
    {"hobnob_gossip_checkpoints_sent_total", COUNTER, "Registry checkpoints sent.", GOSSIP(checkpoints_sent)},
    {"hobnob_gossip_checkpoints_received_total", COUNTER, "Registry checkpoints received.",
     GOSSIP(checkpoints_received)},
    {"hobnob_gossip_members_in_trouble", GAUGE,
     "Members now in trouble, as hobnob members shows it; this broker included.", GOSSIP(members_in_trouble)},
    {"hobnob_gossip_misdeeds_total", COUNTER, "What members did that no honest one does.", GOSSIP(misdeeds)},
    {"hobnob_gossip_names_refused_total", COUNTER, "Tokens refused since another key has their name.",
     GOSSIP(names_refused)},
    {"hobnob_gossip_clones_seen_total", COUNTER, "Times that a key was found in use by two brokers.",
     GOSSIP(clones_seen)},
    {"hobnob_gossip_ring", GAUGE, "Number of the gossip key ring in use; 0 for the keys of the configuration.",
     GOSSIP(ring)},
    {"hobnob_gossip_rings_behind", GAUGE, "Other brokers that are up and use an older key ring now.",
     GOSSIP(rings_behind)},
    {"hobnob_gossip_rings_sent_total", COUNTER, "Key rings given to other brokers.", GOSSIP(rings_sent)},
    {"hobnob_gossip_rings_refused_total", COUNTER, "Key rings refused: forged, of another federation, or by datagram.",
     GOSSIP(rings_refused)},
    {"hobnob_gossip_rings_conflicting_total", COUNTER, "Key rings seen that have the number of another.",
     GOSSIP(rings_conflicting)},
    {"hobnob_registry_rows_own", GAUGE, "Registry rows of this broker now.", GOSSIP(rows_own)},
    {"hobnob_registry_rows_others", GAUGE, "Registry rows of other brokers now.", GOSSIP(rows_others)},
    {"hobnob_registry_bytes", GAUGE, "Memory for the registry rows of other brokers.", GOSSIP(registry_bytes)},
    {"hobnob_registry_graves", GAUGE, "Brokers of which only how far they came is remembered.", GOSSIP(graves)},
    {"hobnob_registry_filters", GAUGE, "Topics and subscriptions that this broker's rows stand for.",
     GOSSIP(filters_own)},
    {"hobnob_registry_filter_bytes", GAUGE, "Memory for them.", GOSSIP(filter_bytes)},
    {"hobnob_registry_rows_merged", GAUGE, "Places where this broker's rows are wider than what they stand for.",
     GOSSIP(rows_merged)},
    {"hobnob_registry_merges_total", COUNTER, "Times that rows became one for want of room.", GOSSIP(merges)},
    {"hobnob_registry_splits_total", COUNTER, "Times that such a row was split again.", GOSSIP(splits)},
    {"hobnob_registry_unwanted_total", COUNTER,
     "Topics and joins that other brokers asked for because of a wider row, in vain.", GOSSIP(unwanted)},
    {"hobnob_registry_over_covered", GAUGE,
     "Kinds of rows (0 to 2) of which over 1 % of what came in the last minute was in vain.", GOSSIP(over_covered)},
};

#define WEB(field) offsetof(struct web_counters, field)
static const struct metrics_row web_rows[] = {
    {"hobnob_web_accepted_total", COUNTER, "Connections accepted for links and admin.", WEB(accepted)},
    {"hobnob_web_refused_full_total", COUNTER, "Of these, closed at once since too many were open.", WEB(refused_full)},
    {"hobnob_web_handshakes_failed_total", COUNTER, "Connections and dials that ended before their handshake did.",
     WEB(handshakes_failed)},
};

#define CLIENTS(field) offsetof(struct clients_counters, field)
static const struct metrics_row client_rows[] = {
    {"hobnob_client_connections", GAUGE, "Connections of clients open now, those included that have not said CONNECT.",
     CLIENTS(open)},
    {"hobnob_client_connections_arriving", GAUGE, "Of these, with PROXY header, TLS or WebSocket handshake under way.",
     CLIENTS(arriving)},
    {"hobnob_client_connections_refused_total", COUNTER,
     "Connections closed at once: a limit was reached, or memory or file descriptors were short.", CLIENTS(refused)},
    {"hobnob_tls_handshakes_failed_total", COUNTER, "Clients that failed at TLS, their certificates included.",
     CLIENTS(tls_failed)},
    {"hobnob_proxy_headers_failed_total", COUNTER, "Connections of listen.proxies without a good PROXY header.",
     CLIENTS(proxy_failed)},
    {"hobnob_websocket_failed_total", COUNTER, "Clients that broke the rules of WebSocket.", CLIENTS(websocket_failed)},
    {"hobnob_client_handshakes_timed_out_total", COUNTER,
     "Handshakes ended since they took longer than limits.connect_timeout_ms.", CLIENTS(arrivals_timed_out)},
    {"hobnob_client_handshakes_displaced_total", COUNTER,
     "Handshakes ended since there were limits.connecting_max newer ones.", CLIENTS(arrivals_displaced)},
    {"hobnob_client_connections_displaced_total", COUNTER,
     "Connections without CONNECT, or at their end, closed for others since file descriptors were short.",
     CLIENTS(displaced)},
};

#define STORE(field) offsetof(struct store_state, field)
static const struct metrics_row store_rows[] = {
    {"hobnob_store_commits_total", COUNTER, "Transactions committed.", STORE(commits)},
    {"hobnob_store_records_total", COUNTER, "Records of what must outlive a crash, committed.", STORE(records)},
    {"hobnob_store_records_saved_total", COUNTER, "Of these, not written since they ended within their commit.",
     STORE(records_saved)},
    {"hobnob_store_bytes_total", COUNTER, "Bytes of these records.", STORE(bytes)},
    {"hobnob_store_failures_total", COUNTER, "Attempts to commit that failed; what they held is kept and tried again.",
     STORE(failures)},
    {"hobnob_store_restarts_total", COUNTER, "Times at which all had to be written anew, since the file was another.",
     STORE(losses)},
    {"hobnob_store_pending_bytes", GAUGE, "Bytes of records that wait for their commit.", STORE(pending_bytes)},
    {"hobnob_store_log_bytes", GAUGE, "Size of the write-ahead log in use.", STORE(wal_bytes)},
};

void metrics_head(struct text *out, const char *name, const char *type, const char *help) {
    text_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

uint64_t metrics_number(const void *numbers, size_t offset) {
    uint64_t number;
    memcpy(&number, (const char *)numbers + offset, sizeof number);
    return number;
}

static void write_rows(const struct metrics_row *rows, size_t count, const void *numbers, struct text *out) {
    for (size_t i = 0; i < count; i++) {
        metrics_head(out, rows[i].name, rows[i].type, rows[i].help);
        text_add(out, "%s %" PRIu64 "\n", rows[i].name, metrics_number(numbers, rows[i].offset));
    }
}

void metrics_label(const char *value, struct text *out) {
    for (; *value != '\0'; value++) {
        if (*value == '\\' || *value == '"') text_append(out, "\\", 1);
        if (*value == '\n')
            text_append(out, "\\n", 2);
        else
            text_append(out, value, 1);
    }
}

/* Who an alarm is about. */
static void write_troubled(const struct metrics *metrics, struct text *out) {
    if (metrics->troubled_count == 0) return;
    metrics_head(out, "hobnob_member_in_trouble", GAUGE, "Always 1; a member in trouble, as hobnob members shows it.");
    for (size_t i = 0; i < metrics->troubled_count; i++) {
        const struct member_info *member = &metrics->troubled[i].member;
        text_add(out, "hobnob_member_in_trouble{member=\"");
        metrics_label(member->name, out);
        text_add(out, "\",id=\"");
        for (size_t k = 0; k < sizeof member->id.bytes; k++)
            text_add(out, "%02x", member->id.bytes[k]);
        text_add(out, "\",trouble=\"%s\"} 1\n", metrics->troubled[i].trouble);
    }
}

static void write_members(const struct gossip_counters *gossip, struct text *out) {
    metrics_head(out, "hobnob_members", GAUGE, "Members of the federation by state, this broker included.");
    text_add(out, "hobnob_members{state=\"alive\"} %" PRIu64 "\n", gossip->members_alive);
    text_add(out, "hobnob_members{state=\"suspect\"} %" PRIu64 "\n", gossip->members_suspect);
    text_add(out, "hobnob_members{state=\"down\"} %" PRIu64 "\n", gossip->members_down);
}

static void write_open(const struct web_counters *web, struct text *out) {
    metrics_head(out, "hobnob_web_open", GAUGE, "Connections open now for links and admin.");
    text_add(out, "hobnob_web_open{kind=\"peers\"} %" PRIu64 "\n", web->open[WEB_PEERS]);
    text_add(out, "hobnob_web_open{kind=\"admin\"} %" PRIu64 "\n", web->open[WEB_ADMIN]);
}

static void write_accepted(const struct clients_counters *clients, struct text *out) {
    static const char *const kinds[CLIENTS_KINDS] = {
        [CLIENTS_MQTT] = "mqtt", [CLIENTS_MQTTS] = "mqtts", [CLIENTS_WS] = "ws", [CLIENTS_WSS] = "wss"};
    metrics_head(out, "hobnob_client_connections_accepted_total", COUNTER,
                 "Connections accepted from clients, by listener.");
    for (size_t i = 0; i < CLIENTS_KINDS; i++)
        text_add(out, "hobnob_client_connections_accepted_total{kind=\"%s\"} %" PRIu64 "\n", kinds[i],
                 clients->accepted[i]);
}

/* What happens at each limit stands in README. */
static void write_limits(const struct broker_counters *broker, struct text *out) {
    metrics_head(out, "hobnob_limit_reached_total", COUNTER,
                 "How often a limit refused, dropped or closed something, by limit.");
    for (int i = 0; i < BROKER_AT_COUNT; i++)
        text_add(out, "hobnob_limit_reached_total{limit=\"%s\"} %" PRIu64 "\n", broker_limit_name((enum broker_at)i),
                 broker->at_limit[i]);
}

static void write_memory(const struct memory_state *memory, struct text *out) {
    metrics_head(out, "hobnob_memory_bytes", GAUGE, "Memory of the process, resident.");
    text_add(out, "hobnob_memory_bytes %" PRIu64 "\n", memory->resident);
    metrics_head(out, "hobnob_memory_bytes_max", GAUGE, "limits.memory_bytes_max.");
    text_add(out, "hobnob_memory_bytes_max %" PRIu64 "\n", memory->max);
    metrics_head(out, "hobnob_memory_short", GAUGE,
                 "1 while nothing that lasts is taken, since memory is at its limit.");
    text_add(out, "hobnob_memory_short %d\n", memory->is_short ? 1 : 0);
}

static void write_seconds(const char *name, const char *suffix, uint64_t us, struct text *out) {
    text_add(out, "%s%s %" PRIu64 ".%06" PRIu64 "\n", name, suffix, us / 1000000, us % 1000000);
}

struct histogram {
    const char *name, *help;
    const uint32_t *bounds_us; /* bucket_count of them, the last for all above */
    const uint64_t *buckets;
    size_t bucket_count;
    uint64_t count, sum_us, max_us;
    const char *max_name, *max_help;
};

static void write_histogram(const struct histogram *histogram, struct text *out) {
    uint64_t count = 0;
    metrics_head(out, histogram->name, "histogram", histogram->help);
    for (size_t i = 0; i < histogram->bucket_count - 1; i++) {
        const uint32_t bound_us = histogram->bounds_us[i];
        count += histogram->buckets[i];
        text_add(out, "%s_bucket{le=\"%" PRIu32 ".%04" PRIu32 "\"} %" PRIu64 "\n", histogram->name, bound_us / 1000000,
                 bound_us % 1000000 / 100, count);
    }
    text_add(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", histogram->name, histogram->count);
    write_seconds(histogram->name, "_sum", histogram->sum_us, out);
    text_add(out, "%s_count %" PRIu64 "\n", histogram->name, histogram->count);
    metrics_head(out, histogram->max_name, GAUGE, histogram->max_help);
    write_seconds(histogram->max_name, "", histogram->max_us, out);
}

static void write_turns(const struct turns_counters *turns, struct text *out) {
    write_histogram(&(struct histogram){.name = "hobnob_turn_seconds",
                                        .help = "How long turns of the loop took, in which nobody else is served.",
                                        .bounds_us = turns_bucket_us,
                                        .buckets = turns->buckets,
                                        .bucket_count = TURNS_BUCKETS,
                                        .count = turns->count,
                                        .sum_us = turns->us,
                                        .max_us = turns->us_max,
                                        .max_name = "hobnob_turn_seconds_max",
                                        .max_help = "The longest turn since the start."},
                    out);
}

static void write_store(const struct store_state *store, struct text *out) {
    metrics_head(out, "hobnob_store_failing", GAUGE, "1 while the store cannot write.");
    text_add(out, "hobnob_store_failing %d\n", store->failing ? 1 : 0);
    write_rows(store_rows, COUNT(store_rows), store, out);
    write_histogram(&(struct histogram){.name = "hobnob_store_commit_seconds",
                                        .help = "How long commits took.",
                                        .bounds_us = store_bucket_us,
                                        .buckets = store->commit_buckets,
                                        .bucket_count = STORE_BUCKETS,
                                        .count = store->commits,
                                        .sum_us = store->commit_us,
                                        .max_us = store->commit_us_max,
                                        .max_name = "hobnob_store_commit_seconds_max",
                                        .max_help = "The longest commit since the start."},
                    out);
}

void metrics_write(const struct metrics *metrics, struct text *out) {
    metrics_head(out, "hobnob_build_info", GAUGE, "Always 1; the version and the broker's name are in the labels.");
    text_add(out, "hobnob_build_info{version=\"");
    metrics_label(metrics->version, out);
    text_add(out, "\",name=\"");
    metrics_label(metrics->name, out);
    text_add(out, "\"} 1\n");
    metrics_head(out, "hobnob_uptime_seconds", GAUGE, "Seconds since the start.");
    text_add(out, "hobnob_uptime_seconds %" PRIu64 ".%03" PRIu64 "\n", metrics->uptime_ms / 1000,
             metrics->uptime_ms % 1000);
    metrics_head(out, "hobnob_ready", GAUGE, "1 while listeners and store serve.");
    text_add(out, "hobnob_ready %d\n", metrics->ready ? 1 : 0);
    if (metrics->certificate_ends_s != 0) {
        metrics_head(out, "hobnob_tls_certificate_expires_seconds", GAUGE,
                     "When tls.cert expires, in seconds since 1970.");
        text_add(out, "hobnob_tls_certificate_expires_seconds %" PRIi64 "\n", metrics->certificate_ends_s);
    }
    if (metrics->token_ends_s != 0) {
        metrics_head(out, "hobnob_token_expires_seconds", GAUGE,
                     "When this broker's token expires, in seconds since 1970.");
        text_add(out, "hobnob_token_expires_seconds %" PRIi64 "\n", metrics->token_ends_s);
    }
    metrics_head(out, "hobnob_log_suppressed_total", COUNTER,
                 "Log lines left out since their event had used up its allowance.");
    text_add(out, "hobnob_log_suppressed_total %" PRIu64 "\n", metrics->log_suppressed);
    write_memory(&metrics->memory, out);
    write_turns(&metrics->turns, out);
    write_rows(broker_rows, COUNT(broker_rows), &metrics->broker, out);
    write_limits(&metrics->broker, out);
    write_rows(peering_rows, COUNT(peering_rows), &metrics->peering, out);
    metrics_write_links(metrics, out);
    if (metrics->store != NULL) write_store(metrics->store, out);
    if (metrics->gossip != NULL) {
        write_members(metrics->gossip, out);
        write_troubled(metrics, out);
        write_rows(gossip_rows, COUNT(gossip_rows), metrics->gossip, out);
    }
    write_rows(client_rows, COUNT(client_rows), &metrics->clients, out);
    write_accepted(&metrics->clients, out);
    write_rows(web_rows, COUNT(web_rows), &metrics->web, out);
    write_open(&metrics->web, out);
}
