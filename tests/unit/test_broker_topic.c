#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "broker/topic.h"

#define TEXT(literal) (literal), sizeof(literal) - 1

static void utf8_is_well_formed_or_refused(void **state) {
    static const struct {
        const char *text;
        size_t size;
        bool valid;
    } rows[] = {
        {TEXT(""), true},
        {TEXT("abc"), true},
        {TEXT("\xc3\xa9"), true},
        {TEXT("\xe2\x82\xac"), true},
        {TEXT("\xf0\x9f\x98\x80"), true},
        {TEXT("\xf4\x8f\xbf\xbf"), true},
        {TEXT("\xef\xbb\xbf"), true}, /* U+FEFF is kept (MQTT-1.5.4-3) */
        {TEXT("a\0b"), false},
        {TEXT("\x80"), false},
        {TEXT("\xc0\x80"), false},
        {TEXT("\xc1\xbf"), false},
        {TEXT("\xe0\x9f\xbf"), false},
        {TEXT("\xed\xa0\x80"), false}, /* surrogate */
        {TEXT("\xed\x9f\xbf"), true},
        {TEXT("\xf0\x8f\xbf\xbf"), false},
        {TEXT("\xf4\x90\x80\x80"), false},
        {TEXT("\xf5\x80\x80\x80"), false},
        {TEXT("\xe2\x82"), false},
        {TEXT("\xe2\x28\xa1"), false},
        {TEXT("\xc3\x28"), false},
        {TEXT("\xe2\x82\x28"), false},
        {TEXT("\xe2\x82\xc0"), false},
        {TEXT("\xf0\x9f\x28\x80"), false},
        {TEXT("\xf0\x9f\x98\x28"), false},
        {TEXT("\xf0\x9f\xc0\x80"), false},
        {TEXT("\xf0\x9f\x98"), false},
        {TEXT("\xff"), false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *exact = malloc(rows[i].size ? rows[i].size : 1);
        memcpy(exact, rows[i].text, rows[i].size);
        if (topic_utf8_valid(exact, rows[i].size) != rows[i].valid) fail_msg("row %zu", i);
        free(exact);
    }
}

/* As section 1.5.4 of MQTT 5.0 and RFC 3629 have it: each code point but the surrogates in its shortest form, and none
 * in a longer one. */
static size_t encode(char out[4], unsigned code, size_t size) {
    static const unsigned char leads[] = {0x00, 0xC0, 0xE0, 0xF0};

    for (size_t i = size; i > 1; i--, code >>= 6)
        out[i - 1] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(leads[size - 1] | code);
    return size;
}

static void each_code_point_has_one_form(void **state) {
    (void)state;
    for (unsigned code = 0; code <= 0x10FFFF; code++) {
        size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        bool is_text = code != 0 && (code < 0xD800 || code > 0xDFFF);
        for (size_t size = shortest; size <= 4; size++) {
            char text[4];
            encode(text, code, size);
            if (topic_utf8_valid(text, size) != (is_text && size == shortest)) fail_msg("U+%04X in %zu", code, size);
        }
    }
    for (unsigned code = 0x110000; code <= 0x1FFFFF; code += 0x1001) {
        char text[4];
        assert_false(topic_utf8_valid(text, encode(text, code, 4)));
    }
}

static void names_and_filters(void **state) {
    static const struct {
        const char *text;
        bool name, filter;
    } rows[] = {
        {"", false, false},      {"a", true, true},      {"/", true, true},      {"//", true, true},
        {"a/b c/d", true, true}, {"$SYS/x", true, true}, {"#", false, true},     {"+", false, true},
        {"a/#", false, true},    {"/#", false, true},    {"+/+", false, true},   {"/+", false, true},
        {"a/+/b", false, true},  {"+/a/#", false, true}, {"a#", false, false},   {"#/a", false, false},
        {"a/#/b", false, false}, {"a+", false, false},   {"+a", false, false},   {"a/+b/c", false, false},
        {"##", false, false},    {"++", false, false},   {"a/##", false, false}, {"\xff", false, false},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (topic_name_valid(rows[i].text, strlen(rows[i].text)) != rows[i].name) fail_msg("name '%s'", rows[i].text);
        if (topic_filter_valid(rows[i].text, strlen(rows[i].text)) != rows[i].filter)
            fail_msg("filter '%s'", rows[i].text);
    }
}

static void size_and_depth_have_a_limit(void **state) {
    char *text = malloc(TOPIC_SIZE_MAX + 1);
    (void)state;

    memset(text, 'a', TOPIC_SIZE_MAX + 1);
    assert_true(topic_name_valid(text, TOPIC_SIZE_MAX));
    assert_false(topic_name_valid(text, TOPIC_SIZE_MAX + 1));
    assert_true(topic_filter_valid(text, TOPIC_SIZE_MAX));
    assert_false(topic_filter_valid(text, TOPIC_SIZE_MAX + 1));
    memset(text, '/', TOPIC_LEVELS_MAX);
    assert_true(topic_name_valid(text, TOPIC_LEVELS_MAX - 1));
    assert_false(topic_name_valid(text, TOPIC_LEVELS_MAX));
    assert_false(topic_filter_valid(text, TOPIC_LEVELS_MAX));
    free(text);
}

static void shared_and_wildcards_are_recognised(void **state) {
    (void)state;
    assert_true(topic_is_shared(TEXT("$share/g/a")));
    assert_true(topic_is_shared(TEXT("$share/")));
    assert_false(topic_is_shared(TEXT("$share")));
    assert_false(topic_is_shared(TEXT("a/$share/g")));
    assert_true(topic_has_wildcard(TEXT("a/+")));
    assert_true(topic_has_wildcard(TEXT("#")));
    assert_false(topic_has_wildcard(TEXT("a/b")));
    assert_false(topic_has_wildcard(TEXT("")));
}

/* The examples of MQTT 5.0 section 4.7. */
static void the_standards_examples_match(void **state) {
    static const struct {
        const char *filter, *name;
        bool matches;
    } rows[] = {
        {"sport/tennis/player1/#", "sport/tennis/player1", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/ranking", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
        {"sport/#", "sport", true},
        {"sport/tennis/+", "sport/tennis/player1", true},
        {"sport/tennis/+", "sport/tennis/player1/ranking", false},
        {"sport/+", "sport", false},
        {"sport/+", "sport/", true},
        {"+/+", "/finance", true},
        {"/+", "/finance", true},
        {"+", "/finance", false},
        {"#", "$SYS/x", false},
        {"+/monitor/Clients", "$SYS/monitor/Clients", false},
        {"$SYS/#", "$SYS/x", true},
        {"$SYS/monitor/+", "$SYS/monitor/Clients", true},
        {"ACCOUNTS", "Accounts", false},
        {"/a", "a", false},
        {"a/b", "a/b", true},
        {"a/b", "a/bc", false},
        {"a/bc", "a/b", false},
        {"a/$x", "a/$x", true},
        {"a/+", "a/$x", true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (topic_matches(rows[i].filter, strlen(rows[i].filter), rows[i].name, strlen(rows[i].name)) !=
            rows[i].matches)
            fail_msg("'%s' against '%s'", rows[i].filter, rows[i].name);
}

/* A second, slow and plain account of section 4.7, for comparison. */
static bool plainly_matches(const char *filter, const char *name) {
    const char *filter_end = strchr(filter, '/'), *name_end = strchr(name, '/');
    size_t filter_size = filter_end ? (size_t)(filter_end - filter) : strlen(filter);
    size_t name_size = name_end ? (size_t)(name_end - name) : strlen(name);

    if (strcmp(filter, "#") == 0) return true;
    if (!(filter_size == 1 && *filter == '+') && !(filter_size == name_size && memcmp(filter, name, name_size) == 0))
        return false;
    if (filter_end == NULL) return name_end == NULL;
    if (name_end == NULL) return strcmp(filter_end + 1, "#") == 0;
    return plainly_matches(filter_end + 1, name_end + 1);
}

static bool by_the_book(const char *filter, const char *name) {
    if (name[0] == '$' && (filter[0] == '+' || filter[0] == '#')) return false;
    return plainly_matches(filter, name);
}

enum { NAMES_MAX = 4000, FILTERS_MAX = 4000 };
static char names[NAMES_MAX][16], filters[FILTERS_MAX][16];
static size_t name_count, filter_count;

/* All names, or filters, of up to so many levels over the pieces given. */
static void compose(char (*out)[16], size_t *count, size_t max, const char *const *pieces, size_t piece_count,
                    const char *prefix, int levels) {
    for (size_t i = 0; i < piece_count; i++) {
        char text[16];
        strcpy(text, prefix);
        strcat(text, pieces[i]);
        if (text[0] != '\0' && (strchr(text, '#') == NULL || topic_filter_valid(text, strlen(text)))) {
            assert_true(*count < max);
            strcpy(out[(*count)++], text);
        }
        if (levels > 1 && strcmp(pieces[i], "#") != 0) {
            strcat(text, "/");
            compose(out, count, max, pieces, piece_count, text, levels - 1);
        }
    }
}

static int begin_alphabet(void **state) {
    /* "x" stands for every word that is in no filter; one level more than the filters have, for what # lets through. */
    static const char *const name_pieces[] = {"", "a", "$b", "x"};
    static const char *const filter_pieces[] = {"", "a", "$b", "+", "#"};
    (void)state;

    compose(names, &name_count, NAMES_MAX, name_pieces, 4, "", 4);
    compose(filters, &filter_count, FILTERS_MAX, filter_pieces, 5, "", 3);
    return 0;
}

static void match_agrees_with_the_book(void **state) {
    (void)state;
    for (size_t f = 0; f < filter_count; f++)
        for (size_t n = 0; n < name_count; n++)
            if (topic_matches(filters[f], strlen(filters[f]), names[n], strlen(names[n])) !=
                by_the_book(filters[f], names[n]))
                fail_msg("'%s' against '%s'", filters[f], names[n]);
}

static void intersect_and_cover_agree_with_all_names(void **state) {
    static bool hits[FILTERS_MAX][NAMES_MAX];
    (void)state;

    for (size_t f = 0; f < filter_count; f++)
        for (size_t n = 0; n < name_count; n++)
            hits[f][n] = by_the_book(filters[f], names[n]);
    for (size_t a = 0; a < filter_count; a++) {
        for (size_t b = 0; b < filter_count; b++) {
            bool common = false, covered = true;
            for (size_t n = 0; n < name_count; n++) {
                common = common || (hits[a][n] && hits[b][n]);
                covered = covered && (!hits[b][n] || hits[a][n]);
            }
            if (topic_filters_intersect(filters[a], strlen(filters[a]), filters[b], strlen(filters[b])) != common)
                fail_msg("intersection of '%s' and '%s' is %s", filters[a], filters[b], common ? "not empty" : "empty");
            if (topic_filter_covers(filters[a], strlen(filters[a]), filters[b], strlen(filters[b])) != covered)
                fail_msg("'%s' %s '%s'", filters[a], covered ? "covers" : "does not cover", filters[b]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_well_formed_or_refused),
        cmocka_unit_test(each_code_point_has_one_form),
        cmocka_unit_test(names_and_filters),
        cmocka_unit_test(size_and_depth_have_a_limit),
        cmocka_unit_test(shared_and_wildcards_are_recognised),
        cmocka_unit_test(the_standards_examples_match),
        cmocka_unit_test(match_agrees_with_the_book),
        cmocka_unit_test(intersect_and_cover_agree_with_all_names),
    };
    return cmocka_run_group_tests(tests, begin_alphabet, NULL);
}
