#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/log.h"

struct paper {
    int64_t now_ms;
    size_t lines;
    size_t size;
    char text[1u << 20];
    char last[LOG_LINE_MAX + 1];
};
static struct paper paper; /* large, and every test starts it anew */

static void on_write(void *context, const char *line, size_t size) {
    struct paper *p = context;
    assert_true(size <= LOG_LINE_MAX);
    assert_int_equal(line[size - 1], '\n');
    assert_null(memchr(line, '\n', size - 1));
    p->lines++;
    memcpy(p->last, line, size);
    p->last[size] = '\0';
    assert_true(p->size + size < sizeof(p->text));
    memcpy(p->text + p->size, line, size);
    p->size += size;
}

static int64_t paper_wall_ms(void *context) {
    return ((struct paper *)context)->now_ms;
}

static struct log *new_log(enum log_level level) {
    memset(&paper, 0, sizeof(paper));
    paper.now_ms = 1795971241123; /* 2026-11-29T16:54:01.123Z */
    const struct log_options options = {.level = level, .context = &paper, .write = on_write, .wall_ms = paper_wall_ms};
    struct log *log = log_new(&options);
    assert_non_null(log);
    return log;
}

static void line_is_time_level_event_pairs(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    log_line(log, LOG_LEVEL_INFO, "listening", "what", "mqtt", "address", "127.0.0.1:1883", NULL);
    assert_string_equal(paper.last,
                        "2026-11-29T16:54:01.123Z info listening what=\"mqtt\" address=\"127.0.0.1:1883\"\n");
    log_text(log, LOG_LEVEL_ERROR, "store", "%d of %d", 1, 2);
    assert_string_equal(paper.last, "2026-11-29T16:54:01.123Z error store text=\"1 of 2\"\n");
    log_free(log);
}

static void strangers_cannot_forge_a_line(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    log_line(log, LOG_LEVEL_INFO, "client", "id", "a\nb\" \\ \x1b[2J\x7f \xc2\x9b[2J \xc3\xa4", NULL);
    assert_string_equal(paper.last,
                        "2026-11-29T16:54:01.123Z info client id=\"a\\nb\\\" \\\\ \\x1b[2J\\x7f \\x9b[2J \xc3\xa4\"\n");
    log_free(log);
}

static void long_value_is_cut_and_closed(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    static char value[3 * LOG_LINE_MAX];
    memset(value, '\x01', sizeof(value) - 1);
    log_line(log, LOG_LEVEL_INFO, "client", "id", value, "never", "shown", NULL);
    const size_t size = strlen(paper.last);
    assert_true(size <= LOG_LINE_MAX);
    assert_string_equal(paper.last + size - 5, "...\"\n");
    assert_null(strstr(paper.last, "never"));
    log_free(log);
}

static void lines_above_the_level_are_not_written(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_WARNING);
    log_text(log, LOG_LEVEL_INFO, "a", "x");
    log_text(log, LOG_LEVEL_DEBUG, "a", "x");
    assert_int_equal(paper.lines, 0);
    log_text(log, LOG_LEVEL_WARNING, "a", "x");
    log_text(log, LOG_LEVEL_ERROR, "a", "x");
    assert_int_equal(paper.lines, 2);
    log_free(log);
}

static void flood_of_one_event_is_held_back_and_counted(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    for (int i = 0; i < 1000; i++)
        log_text(log, LOG_LEVEL_WARNING, "malformed", "x");
    assert_int_equal(paper.lines, LOG_BURST);
    assert_int_equal(log_suppressed(log), 1000 - LOG_BURST);
    log_text(log, LOG_LEVEL_WARNING, "member", "another event has its own allowance");
    assert_int_equal(paper.lines, LOG_BURST + 1);
    paper.now_ms += 1000;
    for (int i = 0; i < 1000; i++)
        log_text(log, LOG_LEVEL_WARNING, "malformed", "x");
    assert_int_equal(paper.lines, LOG_BURST + 1 + LOG_REFILL_PER_S);
    assert_non_null(strstr(paper.text, " malformed text=\"x\" suppressed=\"950\"\n"));
    log_free(log);
}

/* One broker that begins life after life is news without end. */
static void flood_of_news_hides_no_warning(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    for (int i = 0; i < 1000; i++)
        log_text(log, LOG_LEVEL_INFO, "member", "edge-1 is alive, epoch %d", i);
    log_text(log, LOG_LEVEL_WARNING, "member", "edge-2 is down");
    assert_int_equal(paper.lines, LOG_BURST + 1);
    assert_non_null(strstr(paper.last, " warning member text=\"edge-2 is down\"\n"));
    log_free(log);
}

static void clock_that_jumps_back_takes_no_line_away(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    log_text(log, LOG_LEVEL_INFO, "a", "x");
    paper.now_ms -= 86400000;
    for (unsigned i = 1; i < LOG_BURST; i++)
        log_text(log, LOG_LEVEL_INFO, "a", "x");
    assert_int_equal(paper.lines, LOG_BURST);
    paper.now_ms += 1000;
    log_text(log, LOG_LEVEL_INFO, "a", "x");
    assert_int_equal(paper.lines, LOG_BURST + 1);
    log_free(log);
}

static void events_past_the_table_share_one_allowance(void **state) {
    (void)state;
    struct log *log = new_log(LOG_LEVEL_INFO);
    static char names[LOG_EVENTS_MAX + 100][16];
    for (size_t i = 0; i < LOG_EVENTS_MAX + 100; i++) {
        snprintf(names[i], sizeof(names[i]), "event%zu", i);
        log_text(log, LOG_LEVEL_INFO, names[i], "x");
    }
    assert_int_equal(paper.lines, LOG_EVENTS_MAX + LOG_BURST);
    log_free(log);
}

static void level_names_go_both_ways(void **state) {
    (void)state;
    for (enum log_level level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
        enum log_level parsed;
        assert_true(log_level_parse(log_level_name(level), &parsed));
        assert_int_equal(parsed, level);
    }
    enum log_level untouched = LOG_LEVEL_INFO;
    assert_false(log_level_parse("verbose", &untouched));
    assert_int_equal(untouched, LOG_LEVEL_INFO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_is_time_level_event_pairs),
        cmocka_unit_test(strangers_cannot_forge_a_line),
        cmocka_unit_test(long_value_is_cut_and_closed),
        cmocka_unit_test(lines_above_the_level_are_not_written),
        cmocka_unit_test(flood_of_one_event_is_held_back_and_counted),
        cmocka_unit_test(flood_of_news_hides_no_warning),
        cmocka_unit_test(clock_that_jumps_back_takes_no_line_away),
        cmocka_unit_test(events_past_the_table_share_one_allowance),
        cmocka_unit_test(level_names_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
