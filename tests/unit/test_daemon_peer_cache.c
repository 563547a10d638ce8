/* The file of good peers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/peer_cache.h"

static char folder[64], path[96];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/hobnob-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/peers", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    char beside[128];
    snprintf(beside, sizeof(beside), "%s.new", path);
    unlink(path);
    rmdir(beside);
    unlink(beside);
    rmdir(folder);
    return 0;
}

static struct gossip_address v4(uint8_t last, uint16_t port) {
    return (struct gossip_address){.family = 4, .ip = {192, 168, 0, last}, .port = port};
}

static struct gossip_address v6(uint8_t last, uint16_t port) {
    struct gossip_address address = {.family = 6, .ip = {0x20, 1, 0xd, 0xb8}, .port = port};
    address.ip[15] = last;
    return address;
}

static void assert_same(const struct gossip_address *a, const struct gossip_address *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(a[i].family, b[i].family);
        assert_int_equal(a[i].port, b[i].port);
        assert_memory_equal(a[i].ip, b[i].ip, sizeof(a[i].ip));
    }
}

static void write_text(const char *text, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

/* P3 */
static void what_is_kept_comes_back(void **state) {
    (void)state;
    struct gossip_address kept[PEER_CACHE_MAX], back[PEER_CACHE_MAX];
    size_t count = 99;
    for (uint8_t i = 0; i < PEER_CACHE_MAX; i++)
        kept[i] = i % 2 == 0 ? v4(i, (uint16_t)(i + 1)) : v6(i, (uint16_t)(65535 - i));
    for (size_t size = 0; size <= PEER_CACHE_MAX; size += 16) {
        assert_int_equal(peer_cache_save(path, kept, size), PEER_CACHE_OK);
        assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_OK);
        assert_int_equal(count, size);
        assert_same(back, kept, size);
    }
}

/* Cut short, added to, or with any byte of it another: then nothing is taken from it. Some bytes of an address and its
 * case may change and leave a good one: it is a cache. */
static void a_damaged_file_is_told_from_a_good_one(void **state) {
    (void)state;
    const struct gossip_address two[] = {v4(7, 7100), v6(9, 7101)};
    struct gossip_address back[PEER_CACHE_MAX];
    char good[256], bad[300];
    size_t count;
    assert_int_equal(peer_cache_save(path, two, 2), PEER_CACHE_OK);
    FILE *file = fopen(path, "rb");
    const size_t size = fread(good, 1, sizeof(good), file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut++) {
        write_text(good, cut);
        assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_DAMAGED);
        assert_int_equal(count, 0);
    }
    size_t passed = 0;
    for (size_t at = 0; at < size; at++) {
        for (int value = 0; value < 256; value++) {
            memcpy(bad, good, size);
            bad[at] = (char)value;
            write_text(bad, size);
            const enum peer_cache_result result = peer_cache_load(path, back, &count);
            assert_true(result == PEER_CACHE_OK || result == PEER_CACHE_DAMAGED);
            assert_true(result == PEER_CACHE_OK || count == 0);
            passed += result == PEER_CACHE_OK;
        }
    }
    assert_in_range(passed, size, size * 16);
    memcpy(bad, good, size);
    memcpy(bad + size, "x", 1);
    write_text(bad, size + 1);
    assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_DAMAGED);
}

static void lines_that_are_no_addresses_are_damage(void **state) {
    (void)state;
    static const char *const lines[] = {"192.168.0.1",
                                        "192.168.0.1:",
                                        "192.168.0.1:0",
                                        "192.168.0.1:65536",
                                        "192.168.0.1:7100 ",
                                        "192.168.0:7100",
                                        "[::1]",
                                        "[::1:7100",
                                        "::1:7100",
                                        "[::1]7100",
                                        "[]:7100",
                                        ":7100",
                                        "edge-2.example:7100",
                                        "[fe80::1%eth0]:71",
                                        "192.168.0.1:-7100",
                                        "",
                                        "192.168.0.1:71000000000000000000"};
    struct gossip_address back[PEER_CACHE_MAX];
    size_t count;
    char text[256];
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        snprintf(text, sizeof(text), "hobnob peers 1\n%s\nend\n", lines[i]);
        write_text(text, strlen(text));
        if (peer_cache_load(path, back, &count) != PEER_CACHE_DAMAGED) fail_msg("taken for good: %s", lines[i]);
    }
}

static void more_than_there_is_room_for_is_damage(void **state) {
    (void)state;
    struct gossip_address back[PEER_CACHE_MAX];
    char *text = malloc(200000);
    size_t count, size = (size_t)sprintf(text, "hobnob peers 1\n");
    for (int i = 0; i <= (int)PEER_CACHE_MAX; i++)
        size += (size_t)sprintf(text + size, "1.2.3.4:%d\n", i + 1);
    size += (size_t)sprintf(text + size, "end\n");
    write_text(text, size);
    assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_DAMAGED);
    memset(text, '1', 200000);
    write_text(text, 200000);
    assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_DAMAGED);
    free(text);
}

static void no_file_is_no_fault_and_a_folder_is_one(void **state) {
    (void)state;
    struct gossip_address back[PEER_CACHE_MAX];
    size_t count;
    assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_NO_FILE);
    assert_int_equal(peer_cache_load(folder, back, &count), PEER_CACHE_ERROR);
    assert_int_equal(errno, EISDIR);
}

static void a_write_that_fails_leaves_the_old_file_whole(void **state) {
    (void)state;
    const struct gossip_address one = v4(1, 7100), other = v4(2, 7100);
    struct gossip_address back[PEER_CACHE_MAX];
    size_t count;
    char beside[128];
    assert_int_equal(peer_cache_save(path, &one, 1), PEER_CACHE_OK);
    snprintf(beside, sizeof(beside), "%s.new", path);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(peer_cache_save(path, &other, 1), PEER_CACHE_ERROR);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(peer_cache_load(path, back, &count), PEER_CACHE_OK);
    assert_same(back, &one, 1);
}

static void those_that_are_good_now_come_first_and_those_of_before_fill_the_rest(void **state) {
    (void)state;
    struct gossip_address list[PEER_CACHE_MAX] = {v4(1, 1), v4(2, 1), v4(3, 1)}, many[PEER_CACHE_MAX];
    const struct gossip_address good[] = {v4(3, 1), v4(4, 1), v4(3, 1)};
    size_t count = 3;
    assert_true(peer_cache_merge(list, &count, good, 3));
    const struct gossip_address expected[] = {v4(3, 1), v4(4, 1), v4(1, 1), v4(2, 1)};
    assert_int_equal(count, 4);
    assert_same(list, expected, 4);
    assert_false(peer_cache_merge(list, &count, good, 2));
    assert_false(peer_cache_merge(list, &count, NULL, 0));
    assert_same(list, expected, 4);
    for (uint8_t i = 0; i < PEER_CACHE_MAX; i++)
        many[i] = v6(i, 1);
    assert_true(peer_cache_merge(list, &count, many, PEER_CACHE_MAX - 1));
    assert_int_equal(count, PEER_CACHE_MAX);
    assert_same(&list[PEER_CACHE_MAX - 1], &expected[0], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_kept_comes_back, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_told_from_a_good_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_that_are_no_addresses_are_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(more_than_there_is_room_for_is_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(no_file_is_no_fault_and_a_folder_is_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_the_old_file_whole, make_folder, remove_folder),
        cmocka_unit_test(those_that_are_good_now_come_first_and_those_of_before_fill_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
