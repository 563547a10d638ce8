/* The gossip key ring on the disk: kept whole or not at all, and the inbox that an admin leaves one in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/ring_file.h"

static char dir[64];
static char ring_text[AUTH_SIGNED_RING_MAX + 1];

static const char *at(const char *name) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void put(const char *name, const char *text) {
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool is_there(const char *name) {
    return access(at(name), F_OK) == 0;
}

static int make_dir(void **state) {
    (void)state;
    const uint8_t entropy[AUTH_ENTROPY_SIZE] = {1};
    struct auth_key *issuer = NULL;
    struct auth_signed_ring ring = {.number = 4, .federation = "home", .count = 1};
    ring.keys[0].stage = AUTH_KEY_SEND;
    if (auth_key_new(entropy, &issuer) != AUTH_OK || auth_signed_ring_sign(&ring, issuer, ring_text, NULL) != AUTH_OK)
        return -1;
    auth_key_free(issuer);
    strcpy(dir, "/tmp/hobnob-ring-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static enum ring_file_result read_kept(struct auth_signed_ring *ring, char error[RING_FILE_ERROR_MAX]) {
    char text[AUTH_SIGNED_RING_MAX + 1];
    const enum ring_file_result result = ring_file_read_kept(dir, ring, text, error);
    if (result == RING_FILE_OK) assert_string_equal(text, ring_text);
    return result;
}

static void what_is_kept_is_read_and_nobody_else_may(void **state) {
    (void)state;
    struct auth_signed_ring ring;
    struct stat status;
    char error[RING_FILE_ERROR_MAX] = "";
    assert_int_equal(read_kept(&ring, error), RING_FILE_NONE);
    assert_true(ring_file_keep(dir, "of another time", 15, error));
    assert_int_equal(read_kept(&ring, error), RING_FILE_BAD);
    assert_non_null(strstr(error, "gossip.ring is damaged"));
    assert_true(ring_file_keep(dir, ring_text, strlen(ring_text), error));
    assert_int_equal(read_kept(&ring, error), RING_FILE_OK);
    assert_int_equal(ring.number, 4);
    assert_int_equal(stat(at("gossip.ring"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_false(is_there("gossip.ring.new"));
}

/* The moment between two files is one in which a power cut may come. */
static void a_half_written_file_is_not_taken_for_the_ring(void **state) {
    (void)state;
    struct auth_signed_ring ring;
    char error[RING_FILE_ERROR_MAX] = "";
    assert_true(ring_file_keep(dir, ring_text, strlen(ring_text), error));
    put("gossip.ring.new", "hobnob gossip ri");
    assert_int_equal(read_kept(&ring, error), RING_FILE_OK);
    assert_true(ring_file_keep(dir, ring_text, strlen(ring_text), error));
    assert_int_equal(read_kept(&ring, error), RING_FILE_OK);
}

static void a_folder_that_cannot_be_written_is_named_with_a_remedy(void **state) {
    (void)state;
    char error[RING_FILE_ERROR_MAX] = "";
    assert_false(ring_file_keep(at("missing"), ring_text, strlen(ring_text), error));
    assert_non_null(strstr(error, "missing/gossip.ring cannot be written"));
    assert_int_equal(mkdir(at("gossip.ring"), 0700), 0); /* in its place */
    assert_false(ring_file_keep(dir, ring_text, strlen(ring_text), error));
    struct auth_signed_ring ring;
    assert_int_equal(read_kept(&ring, error), RING_FILE_BAD);
}

static void the_inbox_is_made_and_what_is_left_there_is_read(void **state) {
    (void)state;
    static struct ring_inbox_file files[RING_INBOX_FILES_MAX];
    assert_int_equal(ring_inbox_read(dir, files), 0);
    put("inbox/a.ring", ring_text);
    put("inbox/.hidden", ring_text);
    put("inbox/b.ring.refused", ring_text);
    assert_int_equal(ring_inbox_read(dir, files), 1);
    assert_string_equal(files[0].name, "a.ring");
    assert_true(files[0].read);
    assert_string_equal(files[0].text, ring_text);
    const struct ring_inbox_file before = files[0];
    assert_int_equal(ring_inbox_read(dir, files), 1);
    assert_true(before.inode == files[0].inode && before.size == files[0].size &&
                before.changed_ns == files[0].changed_ns);
    put("inbox/a.ring", "more");
    assert_int_equal(ring_inbox_read(dir, files), 1);
    assert_true(before.size != files[0].size); /* it was still being copied */
    ring_inbox_refuse(dir, &files[0]);
    assert_true(is_there("inbox/a.ring.refused"));
    assert_int_equal(ring_inbox_read(dir, files), 0);
    put("inbox/c.ring", ring_text);
    assert_int_equal(ring_inbox_read(dir, files), 1);
    ring_inbox_remove(dir, &files[0]);
    assert_int_equal(ring_inbox_read(dir, files), 0);
}

/* Nothing that lies there makes hobnobd read for ever, wait, or read what it should not. */
static void links_pipes_folders_and_large_files_are_not_read(void **state) {
    (void)state;
    static struct ring_inbox_file files[RING_INBOX_FILES_MAX];
    char large[RING_FILE_MAX + 2];
    assert_int_equal(ring_inbox_read(dir, files), 0);
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    put("inbox/large", large);
    put("outside", ring_text);
    char outside[256];
    snprintf(outside, sizeof(outside), "%s", at("outside"));
    assert_int_equal(symlink(outside, at("inbox/link")), 0);
    assert_int_equal(mkfifo(at("inbox/pipe"), 0600), 0);
    assert_int_equal(mkdir(at("inbox/folder"), 0700), 0);
    const size_t count = ring_inbox_read(dir, files);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        assert_false(files[i].read);
        assert_true(files[i].error[0] != '\0');
    }
}

static void more_files_than_are_looked_at_wait_for_their_turn(void **state) {
    (void)state;
    static struct ring_inbox_file files[RING_INBOX_FILES_MAX];
    char name[32];
    assert_int_equal(ring_inbox_read(dir, files), 0);
    for (unsigned i = 0; i < RING_INBOX_FILES_MAX + 3; i++) {
        snprintf(name, sizeof(name), "inbox/%u", i);
        put(name, "x");
    }
    assert_int_equal(ring_inbox_read(dir, files), RING_INBOX_FILES_MAX);
    for (size_t i = 0; i < RING_INBOX_FILES_MAX; i++)
        ring_inbox_refuse(dir, &files[i]);
    assert_int_equal(ring_inbox_read(dir, files), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_kept_is_read_and_nobody_else_may, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_half_written_file_is_not_taken_for_the_ring, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_is_named_with_a_remedy, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(the_inbox_is_made_and_what_is_left_there_is_read, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(links_pipes_folders_and_large_files_are_not_read, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(more_files_than_are_looked_at_wait_for_their_turn, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
