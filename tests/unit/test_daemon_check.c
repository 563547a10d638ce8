/* What --check finds around the configuration, and that it leaves everything as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/check.h"

static char dir[64];
static struct config_faults faults;

static int begin(void **state) {
    (void)state;
    strcpy(dir, "/tmp/hobnob-check-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(path_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static int end(void **state) {
    (void)state;
    unlink(path_of("data/hobnob.db"));
    rmdir(path_of("data"));
    unlink(path_of("file"));
    return rmdir(dir);
}

/* The first fault for this text; "" if there is none. */
static const char *first_fault(const char *text) {
    faults = (struct config_faults){0};
    struct config *config = config_parse(text, strlen(text), dir, &faults);
    assert_non_null(config);
    assert_int_equal(faults.errors, 0);
    faults = (struct config_faults){0};
    check_surroundings(config, &faults);
    config_free(config);
    return faults.count > 0 ? faults.items[0].text : "";
}

#define QUIET "name: a\nlisten: {mqtt: \"unix:s\"}\n" /* no port that another program might have */

static void expect_error(const char *text, const char *what, const char *write) {
    const char *fault = first_fault(text);
    if (strstr(fault, what) == NULL || strstr(fault, write) == NULL) fail_msg("%s: \"%s\"", text, fault);
    assert_int_equal(faults.errors, 1);
}

static void what_is_good_has_no_fault_and_nothing_is_made(void **state) {
    struct stat status;
    (void)state;
    assert_string_equal(first_fault(QUIET), "");
    assert_int_not_equal(stat(path_of("data"), &status), 0);
    assert_int_not_equal(stat(path_of("s"), &status), 0);
}

static void a_data_dir_that_cannot_be_used(void **state) {
    uint8_t header[100] = "SQLite format 3";
    (void)state;
    write_file("file", "x", 1);
    expect_error(QUIET "data_dir: file\n", "is there and is no folder", "write the path of a folder");
    expect_error(QUIET "data_dir: no/such\n", "cannot be made: No such file or directory", "make the folder above it");
    expect_error(QUIET "data_dir: file/data\n", "cannot be made: Not a directory", "write another data_dir");
    assert_int_equal(mkdir(path_of("data"), 0700), 0);
    assert_string_equal(first_fault(QUIET), "");
    write_file("data/hobnob.db", "", 0);
    assert_string_equal(first_fault(QUIET), "");
    write_file("data/hobnob.db-wal", "log", 3);
    expect_error(QUIET, "hobnob.db-wal is there, and hobnob.db is missing or empty", "put that one back");
    unlink(path_of("data/hobnob.db"));
    expect_error(QUIET, "hobnob.db-wal is there, and hobnob.db is missing or empty", "put that one back");
    unlink(path_of("data/hobnob.db-wal"));
    write_file("data/hobnob.db", "torn", 4);
    expect_error(QUIET, "hobnob.db is damaged", "start empty");
    header[63] = 99;
    write_file("data/hobnob.db", header, sizeof(header));
    expect_error(QUIET, "written by a newer hobnobd (schema 99,", "run that one");
    header[63] = 1;
    write_file("data/hobnob.db", header, sizeof(header));
    assert_string_equal(first_fault(QUIET), "");
}

static void a_listener_that_cannot_be_had(void **state) {
    (void)state;
    write_file("file", "x", 1);
    expect_error("name: a\nlisten: {mqtt: \"unix:file\"}\n", "is a file and no socket", "write another path");
    expect_error("name: a\nlisten: {ws: \"unix:no/such\"}\n", "listen.ws: unix:", "in a folder that exists");
    expect_error("name: a\nlisten: {mqtt: 192.0.2.1:1883}\n", "is no address of this host", "or 0.0.0.0:1883");
}

static void a_port_in_use_is_a_warning(void **state) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(where);
    char text[64];
    (void)state;
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&where, sizeof(where)), 0);
    assert_int_equal(listen(file, 1), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&where, &size), 0);
    snprintf(text, sizeof(text), "name: a\nlisten: {mqtt: 127.0.0.1:%d}\n", ntohs(where.sin_port));
    assert_non_null(strstr(first_fault(text), "is in use now; if that is not this broker itself"));
    assert_int_equal(faults.errors, 0);
    close(file);
    assert_string_equal(first_fault(text), "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_good_has_no_fault_and_nothing_is_made),
        TEST(a_data_dir_that_cannot_be_used),
        TEST(a_listener_that_cannot_be_had),
        TEST(a_port_in_use_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
