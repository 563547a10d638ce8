/* What limits.memory_bytes_max is measured by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/memory.h"

static char root[] = "/tmp/hobnob-memory-XXXXXX";

static void make(const char *path, const char *text) {
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    if (text == NULL) {
        assert_int_equal(mkdir(whole, 0700), 0);
        return;
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int begin(void **state) {
    (void)state;
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int end(void **state) {
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static void resident_is_the_second_number_of_statm(void **state) {
    (void)state;
    assert_int_equal(memory_parse_statm("12018 1493 1093 190 0 2401 0\n", 4096), 1493 * 4096);
    assert_int_equal(memory_parse_statm("", 4096), 0);
    assert_int_equal(memory_parse_statm("12018", 4096), 0);
    assert_int_equal(memory_parse_statm("1 18446744073709551615", 4096), 0);
}

static void the_lowest_limit_of_the_group_and_those_above_counts(void **state) {
    (void)state;
    make("/a", NULL);
    make("/a/b", NULL);
    make("/a/memory.max", "4000\n");
    make("/a/b/memory.max", "max\n");
    assert_int_equal(memory_group_max("0::/a/b\n", root), 4000);
    make("/a/b/memory.max", "3000\n");
    assert_int_equal(memory_group_max("0::/a/b\n", root), 3000);
    assert_int_equal(memory_group_max("0::/a\n", root), 4000);
    make("/memory.max", "2000\n"); /* as a container sees its own */
    assert_int_equal(memory_group_max("0::/a/b\n", root), 2000);
    assert_int_equal(memory_group_max("0::/\n", root), 2000);
    assert_int_equal(memory_group_max("0::/../elsewhere\n", root), 2000);
}

static void groups_of_version_1_count_too(void **state) {
    (void)state;
    make("/memory", NULL);
    make("/memory/c", NULL);
    make("/memory/c/memory.limit_in_bytes", "5000\n");
    make("/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_group_max("12:cpu:/x\n4:memory:/c\n0::/\n", root), 5000);
}

static void without_a_group_there_is_no_limit(void **state) {
    (void)state;
    assert_true(memory_group_max("", root) == UINT64_MAX);
    assert_true(memory_group_max("0::/nowhere\n", root) == UINT64_MAX);
    assert_true(memory_group_max("nonsense\n:\n::\n", root) == UINT64_MAX);
}

static void the_default_is_what_a_machine_can_have(void **state) {
    (void)state;
    assert_true(memory_default_max() > 1 << 20);
    assert_true(memory_default_max() <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 2);
}

static void short_does_not_go_to_and_fro(void **state) {
    (void)state;
    assert_false(memory_is_short(1000, 1000, false));
    assert_true(memory_is_short(1001, 1000, false));
    assert_true(memory_is_short(951, 1000, true));
    assert_false(memory_is_short(950, 1000, true));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(resident_is_the_second_number_of_statm), TEST(the_lowest_limit_of_the_group_and_those_above_counts),
        TEST(groups_of_version_1_count_too),          TEST(without_a_group_there_is_no_limit),
        TEST(the_default_is_what_a_machine_can_have), TEST(short_does_not_go_to_and_fro),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
