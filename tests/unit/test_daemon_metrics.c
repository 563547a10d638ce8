/* Prometheus' text format 0.0.4, as its documentation describes it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/metrics.h"

static const struct gossip_counters gossip = {
    .datagrams_sent = 11, .members_alive = 3, .members_down = 1, .rows_others = 9};
static const struct link_info links[] = {
    {.name = "edge-2",
     .state = LINK_UP,
     .publications_sent = 18446744073709551615u,
     .reordered = 41,
     .dropped_at = {[LINK_AT_QUEUE_BYTES] = 42, [LINK_AT_MEMORY] = 43},
     .given_up = {[GIVEN_UP_AWAY] = 44},
     .subacks_unconfirmed = 45,
     .outbox_bytes = 77},
    {.name = "say \"hi\\\n", .state = LINK_CLOSING, .lost = 4},
    {.peer.bytes = {0xde, 0xad}, .state = LINK_DIALLING},
};

static struct metrics full(void) {
    return (struct metrics){.version = "0.1.0",
                            .name = "edge-1",
                            .uptime_ms = 61005,
                            .ready = true,
                            .log_suppressed = 2,
                            .memory = {.resident = 21, .max = 22, .is_short = true},
                            .turns = {.count = 9, .us = 61005000, .us_max = 60007000, .buckets = {4, 2, 0, 1, 0, 2}},
                            .broker = {.clients_connected = 5,
                                       .bytes_sent = 6,
                                       .at_limit = {[BROKER_AT_CLIENTS_MAX] = 31, [BROKER_AT_MEMORY_BYTES_MAX] = 32}},
                            .peering = {.links_up = 1, .replay_expired = 8},
                            .web = {.accepted = 12, .open = {2, 3}},
                            .clients = {.accepted = {7, 8, 9, 10}, .tls_failed = 11},
                            .gossip = &gossip,
                            .links = links,
                            .link_count = 3};
}

static char *written(const struct metrics *metrics) {
    struct text text = {0};
    metrics_write(metrics, &text);
    text_append(&text, "", 1);
    assert_false(text.failed);
    return text.bytes;
}

/* True if the text has this very line. */
static bool has_line(const char *text, const char *line) {
    size_t size = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && at[size] == '\n') return true;
    return false;
}

static void every_number_stands_under_its_name(void **state) {
    static const char *const lines[] = {
        "hobnob_build_info{version=\"0.1.0\",name=\"edge-1\"} 1",
        "hobnob_uptime_seconds 61.005",
        "hobnob_ready 1",
        "hobnob_log_suppressed_total 2",
        "hobnob_clients 5",
        "hobnob_bytes_sent_total 6",
        "hobnob_memory_bytes 21",
        "hobnob_memory_bytes_max 22",
        "hobnob_memory_short 1",
        "hobnob_turn_seconds_bucket{le=\"0.0050\"} 4",
        "hobnob_turn_seconds_bucket{le=\"0.5000\"} 7",
        "hobnob_turn_seconds_bucket{le=\"2.0000\"} 7",
        "hobnob_turn_seconds_bucket{le=\"+Inf\"} 9",
        "hobnob_turn_seconds_sum 61.005000",
        "hobnob_turn_seconds_count 9",
        "hobnob_turn_seconds_max 60.007000",
        "hobnob_limit_reached_total{limit=\"clients_max\"} 31",
        "hobnob_limit_reached_total{limit=\"memory_bytes_max\"} 32",
        "hobnob_links_up 1",
        "hobnob_replay_expired_total 8",
        "hobnob_client_connections_accepted_total{kind=\"mqtts\"} 8",
        "hobnob_tls_handshakes_failed_total 11",
        "hobnob_members{state=\"alive\"} 3",
        "hobnob_members{state=\"suspect\"} 0",
        "hobnob_members{state=\"down\"} 1",
        "hobnob_gossip_datagrams_sent_total 11",
        "hobnob_registry_rows_others 9",
        "hobnob_web_accepted_total 12",
        "hobnob_web_open{kind=\"admin\"} 3",
        "hobnob_link_up{peer=\"edge-2\"} 1",
        "hobnob_link_publications_sent_total{peer=\"edge-2\",outcome=\"first\"} 18446744073709551615",
        "hobnob_link_publications_received_total{peer=\"edge-2\",outcome=\"reordered\"} 41",
        "hobnob_link_dropped_total{peer=\"edge-2\",limit=\"link_queue_bytes\"} 42",
        "hobnob_link_dropped_total{peer=\"edge-2\",limit=\"memory\"} 43",
        "hobnob_link_given_up_total{peer=\"edge-2\",reason=\"away\"} 44",
        "hobnob_link_subacks_unconfirmed_total{peer=\"edge-2\"} 45",
        "hobnob_link_given_up_total{peer=\"dead0000000000000000000000000000\",reason=\"expired\"} 0",
        "hobnob_link_outbox_bytes{peer=\"edge-2\"} 77",
        "hobnob_link_up{peer=\"say \\\"hi\\\\\\n\"} 0",
        "hobnob_link_lost_total{peer=\"say \\\"hi\\\\\\n\"} 4",
        "hobnob_link_up{peer=\"dead0000000000000000000000000000\"} 0",
    };
    struct metrics metrics = full();
    char *text = written(&metrics);
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!has_line(text, lines[i])) fail_msg("no line %s in\n%s", lines[i], text);
    free(text);
}

static size_t name_size(const char *at) {
    size_t size = 0;
    while (isalnum((unsigned char)at[size]) || at[size] == '_')
        size++;
    return size;
}

/* The sample's name, without what those of a histogram end in. */
static size_t family_size(const char *line, const char *name) {
    static const char *const ends[] = {"_bucket{le=", "_sum ", "_count "};
    size_t size = strlen(name);
    for (size_t i = 0; i < 3; i++)
        if (strncmp(line + size, ends[i], strlen(ends[i])) == 0) return name_size(line) - name_size(ends[i]);
    return name_size(line);
}

/* Each sample follows HELP and TYPE of its own name, no name has two such heads, and _total stands for counters alone.
 */
static void every_metric_has_one_head_and_its_samples_together(void **state) {
    struct metrics metrics = full();
    char *text = written(&metrics), *end = text + strlen(text);
    char name[128] = "", seen[16384] = " ";
    size_t heads = 0;
    bool is_histogram = false;
    (void)state;
    assert_int_equal(end[-1], '\n');
    for (char *line = text, *next; line < end; line = next) {
        next = strchr(line, '\n') + 1;
        if (strncmp(line, "# HELP ", 7) == 0) {
            size_t size = name_size(line + 7);
            char needle[132];
            snprintf(name, sizeof name, "%.*s", (int)size, line + 7);
            snprintf(needle, sizeof needle, " %s ", name);
            assert_null(strstr(seen, needle));
            strcat(seen, needle + 1);
            assert_true(strncmp(name, "hobnob_", 7) == 0);
            assert_true(next - line > (long)(7 + size + 10)); /* it does say something */
            heads++;
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            bool total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
            char expected[160];
            is_histogram = strncmp(next - strlen(" histogram\n"), " histogram\n", strlen(" histogram\n")) == 0;
            snprintf(expected, sizeof expected, "# TYPE %s %s\n", name,
                     total          ? "counter"
                     : is_histogram ? "histogram"
                                    : "gauge");
            assert_memory_equal(line, expected, strlen(expected));
        } else {
            assert_int_equal(is_histogram ? family_size(line, name) : name_size(line), strlen(name));
            assert_memory_equal(line, name, strlen(name));
            assert_true(line[name_size(line)] == ' ' || line[name_size(line)] == '{');
            assert_true(isdigit((unsigned char)next[-2]));
        }
    }
    assert_true(heads > 60);
    free(text);
}

static void broker_alone_has_no_gossip_and_no_links(void **state) {
    struct metrics metrics = full();
    metrics.gossip = NULL;
    metrics.links = NULL;
    metrics.link_count = 0;
    char *text = written(&metrics);
    (void)state;
    assert_null(strstr(text, "hobnob_gossip_"));
    assert_null(strstr(text, "hobnob_members"));
    assert_null(strstr(text, "hobnob_link_"));
    assert_true(has_line(text, "hobnob_clients 5"));
    free(text);
}

static void text_that_failed_stays_failed(void **state) {
    struct text text = {0};
    struct metrics metrics = full();
    (void)state;
    text_append(&text, "x", SIZE_MAX); /* more than there is */
    assert_true(text.failed);
    metrics_write(&metrics, &text);
    assert_true(text.failed);
    assert_int_equal(text.size, 0);
    text_deinit(&text);
    assert_false(text.failed);
}

static void text_grows_by_exactly_what_is_added(void **state) {
    struct text text = {0};
    (void)state;
    for (int i = 0; i < 3000; i++) {
        text_add(&text, "%04d", i);
        text_append(&text, ";", 1);
    }
    assert_int_equal(text.size, 15000);
    assert_memory_equal(text.bytes, "0000;0001;", 10);
    assert_memory_equal(text.bytes + 14990, "2998;2999;", 10);
    text_deinit(&text);
    assert_null(text.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_stands_under_its_name),
        cmocka_unit_test(every_metric_has_one_head_and_its_samples_together),
        cmocka_unit_test(broker_alone_has_no_gossip_and_no_links),
        cmocka_unit_test(text_that_failed_stays_failed),
        cmocka_unit_test(text_grows_by_exactly_what_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
