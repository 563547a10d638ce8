/* Names of bootstrap addresses, with a stand-in for the system's resolver: libuv's threads call the getaddrinfo()
 * below, which fails, hangs and changes its mind as a test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/resolver.h"

/* ---- the system's resolver ---- */

struct zone {
    const char *host;
    const char *answer[80]; /* NULL at once: unknown */
    bool hangs;
    unsigned asked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct zone zones[8];
static size_t zone_count;

static struct zone *zone_of(const char *host) {
    for (size_t i = 0; i < zone_count; i++)
        if (strcmp(zones[i].host, host) == 0) return &zones[i];
    return NULL;
}

static struct addrinfo *one(const char *ip) {
    struct addrinfo *info = calloc(1, sizeof(*info));
    struct sockaddr_storage *address = calloc(1, sizeof(*address));
    const bool v6 = strchr(ip, ':') != NULL;
    address->ss_family = v6 ? AF_INET6 : AF_INET;
    void *bytes =
        v6 ? (void *)&((struct sockaddr_in6 *)address)->sin6_addr : (void *)&((struct sockaddr_in *)address)->sin_addr;
    assert_int_equal(inet_pton(address->ss_family, ip, bytes), 1);
    info->ai_family = address->ss_family;
    info->ai_addr = (struct sockaddr *)address;
    return info;
}

int getaddrinfo(const char *restrict host, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict found) {
    (void)service;
    assert_int_equal(hints->ai_family, AF_UNSPEC); /* both families */
    pthread_mutex_lock(&lock);
    struct zone *zone = zone_of(host);
    struct addrinfo **place = found;
    *found = NULL;
    if (zone != NULL) zone->asked++;
    while (zone != NULL && zone->hangs)
        pthread_cond_wait(&changed, &lock);
    for (size_t i = 0; zone != NULL && zone->answer[i] != NULL; i++) {
        *place = one(zone->answer[i]);
        place = &(*place)->ai_next;
    }
    pthread_mutex_unlock(&lock);
    return *found == NULL ? EAI_NONAME : 0;
}

void freeaddrinfo(struct addrinfo *info) {
    while (info != NULL) {
        struct addrinfo *next = info->ai_next;
        free(info->ai_addr);
        free(info);
        info = next;
    }
}

static void set_zone(const char *host, const char *answer, bool hangs) {
    pthread_mutex_lock(&lock);
    struct zone *zone = zone_of(host);
    if (zone == NULL) zone = &zones[zone_count++];
    zone->host = host;
    zone->answer[0] = answer;
    zone->answer[1] = NULL;
    zone->hangs = hangs;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void add_answer(const char *host, const char *answer) {
    pthread_mutex_lock(&lock);
    struct zone *zone = zone_of(host);
    size_t count = 0;
    while (zone->answer[count] != NULL)
        count++;
    zone->answer[count] = answer;
    zone->answer[count + 1] = NULL;
    pthread_mutex_unlock(&lock);
}

static unsigned times_asked(const char *host) {
    pthread_mutex_lock(&lock);
    const unsigned asked = zone_of(host)->asked;
    pthread_mutex_unlock(&lock);
    return asked;
}

/* ---- the rest of the daemon ---- */

static struct {
    struct server server;
    struct config config;
    uv_loop_t loop;
    uint64_t ahead_ms; /* of the loop's clock */
    unsigned others;   /* brokers alive besides us */
    size_t told;       /* how often gossip was told addresses */
    size_t count;
    struct gossip_address addresses[64];
    size_t own_told; /* how often gossip was told our own, */
    struct gossip_address own;
    bool short_of_memory;
    char log[8192];
} world;

uint64_t server_now_ms(const struct server *server) {
    return uv_now(server->loop) + world.ahead_ms;
}

void server_pump(struct server *server) {
    (void)server;
}

void server_tell_wall(struct server *server) {
    (void)server;
}

struct gossip *node_gossip(struct node *node) {
    (void)node;
    return NULL;
}

void node_datagram(struct node *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                   size_t size) {
    (void)node, (void)now_ms, (void)from, (void)bytes, (void)size;
}

void gossip_read_counters(const struct gossip *gossip, struct gossip_counters *out) {
    (void)gossip;
    *out = (struct gossip_counters){.members_alive = 1 + world.others};
}

void gossip_set_bootstrap(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses,
                          size_t count) {
    (void)gossip, (void)now_ms;
    assert_true(count <= 64);
    memcpy(world.addresses, addresses, count * sizeof(*addresses));
    world.count = count;
    world.told++;
}

bool gossip_set_advertise(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *address) {
    (void)gossip, (void)now_ms;
    if (world.short_of_memory || address->ip[0] == 0) return false;
    world.own = *address;
    world.own_told++;
    return true;
}

static void take_line(void *context, const char *line, size_t size) {
    (void)context;
    strncat(world.log, line, size);
}

/* ---- helpers ---- */

static void begin(const char *const *hosts) {
    memset(&world, 0, sizeof(world));
    zone_count = 0;
    memset(zones, 0, sizeof(zones));
    snprintf(world.config.listen.peers.items[0].ip, sizeof(world.config.listen.peers.items[0].ip), "0.0.0.0");
    uv_loop_init(&world.loop);
    world.server.loop = &world.loop;
    world.server.config = &world.config;
    world.server.log = log_new(&(struct log_options){.level = LOG_LEVEL_INFO, .write = take_line});
    for (size_t i = 0; hosts[i] != NULL; i++) {
        struct config_address *address = &world.config.federation.bootstrap[i];
        snprintf(address->host, sizeof(address->host), "%s", hosts[i]);
        if (hosts[i][0] >= '0' && hosts[i][0] <= '9') snprintf(address->ip, sizeof(address->ip), "%s", hosts[i]);
        address->port = 7100;
        world.config.federation.bootstrap_count = i + 1;
    }
}

/* Turns the loop until the condition holds; its timers are brought forward by force, not waited for. */
static void turn(void) {
    log_flush(world.server.log);
    uv_run(&world.loop, UV_RUN_NOWAIT);
    uv_sleep(1);
}

static void until_told(size_t times) {
    for (int i = 0; world.told < times; i++) {
        assert_true(i < 20000);
        turn();
    }
}

static bool has(const char *ip) {
    char text[INET6_ADDRSTRLEN];
    for (size_t i = 0; i < world.count; i++) {
        const struct gossip_address *address = &world.addresses[i];
        assert_int_equal(address->port, 7100);
        inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->ip, text, sizeof(text));
        if (strcmp(text, ip) == 0) return true;
    }
    return false;
}

/* The timer's next call, now. */
static void pass(uint64_t ms) {
    world.ahead_ms += ms;
    resolver_look(world.server.resolver);
}

static void end(void) {
    for (size_t i = 0; i < zone_count; i++)
        set_zone(zones[i].host, NULL, false);
    resolver_close(world.server.resolver);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world.loop), 0);
    log_free(world.server.log);
}

static void start(void) {
    world.server.resolver = resolver_new(&world.server);
    assert_non_null(world.server.resolver);
}

static void advertise(const char *host) {
    struct config_address *address = &world.config.federation.advertise;
    world.config.federation.has_advertise = true;
    snprintf(address->host, sizeof(address->host), "%s", host);
    address->port = 7100;
}

static void until_asked(const char *host, unsigned times) {
    while (times_asked(host) < times)
        turn();
    for (int turns = 0; turns < 20; turns++)
        turn();
}

/* ---- the facts ---- */

/* P3, P4 */
static void our_own_name_is_followed_to_another_address(void **state) {
    (void)state;
    begin((const char *const[]){"10.0.0.1", NULL});
    world.others = 2;
    advertise("us.example");
    set_zone("us.example", "10.0.0.7", false);
    start();
    assert_int_equal(resolver_advertise(&world.config).family, 0);
    until_asked("us.example", 1);
    assert_int_equal(world.own_told, 1);
    assert_int_equal(world.own.ip[3], 7);
    assert_int_equal(world.own.port, 7100);
    set_zone("us.example", "10.0.0.8", false);
    pass(RESOLVER_RETRY_MS);
    assert_int_equal(times_asked("us.example"), 1);
    world.short_of_memory = true;
    pass(RESOLVER_AGAIN_MS);
    until_asked("us.example", 2);
    assert_int_equal(world.own_told, 1);
    assert_null(strstr(world.log, "advertise_changed"));
    world.short_of_memory = false;
    pass(RESOLVER_AGAIN_MS);
    until_asked("us.example", 3);
    assert_int_equal(world.own_told, 2);
    assert_int_equal(world.own.ip[3], 8);
    const char *line = strstr(world.log, "advertise_changed");
    assert_non_null(line);
    assert_non_null(strstr(line, "10.0.0.8"));
    assert_int_equal(world.count, 1); /* it is no bootstrap address */
    end();
}

/* A name with two addresses is answered in any order, and what nobody can use is passed over. */
static void of_several_own_addresses_the_one_in_use_stays(void **state) {
    (void)state;
    begin((const char *const[]){NULL});
    world.others = 2;
    advertise("us.example");
    set_zone("us.example", "0.0.0.0", false);
    add_answer("us.example", "10.0.0.7");
    start();
    until_asked("us.example", 1);
    set_zone("us.example", "10.0.0.9", false);
    add_answer("us.example", "10.0.0.7");
    pass(RESOLVER_AGAIN_MS);
    until_asked("us.example", 2);
    assert_int_equal(world.own_told, 1);
    assert_int_equal(world.own.ip[3], 7);
    end();
}

static void our_own_name_keeps_its_address_while_it_is_unknown_and_is_asked_soon_again(void **state) {
    (void)state;
    begin((const char *const[]){NULL});
    world.others = 2;
    advertise("us.example");
    set_zone("us.example", NULL, false);
    start();
    until_asked("us.example", 1);
    assert_int_equal(world.own_told, 0);
    assert_non_null(strstr(world.log, "advertise_unknown"));
    assert_non_null(strstr(world.log, "mend federation.advertise"));
    set_zone("us.example", "10.0.0.7", false);
    pass(RESOLVER_RETRY_MS);
    until_asked("us.example", 2);
    assert_int_equal(world.own_told, 1);
    assert_non_null(strstr(world.log, "advertise_found"));
    set_zone("us.example", NULL, false);
    pass(RESOLVER_AGAIN_MS);
    until_asked("us.example", 3);
    assert_int_equal(world.own_told, 1);
    /* Nor does an end wait for one that hangs. */
    set_zone("us.example", "10.0.0.8", true);
    pass(RESOLVER_RETRY_MS);
    while (times_asked("us.example") < 4)
        turn();
    end();
    assert_int_equal(world.own_told, 1);
}

/* P3 */
static void all_addresses_of_all_names_are_given_and_numbers_at_once(void **state) {
    (void)state;
    begin((const char *const[]){"peers.example", "10.0.0.1", "other.example", NULL});
    set_zone("peers.example", "10.0.0.2", false);
    add_answer("peers.example", "2001:db8::2");
    add_answer("peers.example", "10.0.0.3");
    set_zone("other.example", "2001:db8::9", false);
    start();
    assert_int_equal(world.told, 1);
    assert_true(has("10.0.0.1"));
    until_told(3);
    assert_int_equal(world.count, 5);
    assert_true(has("10.0.0.1") && has("10.0.0.2") && has("2001:db8::2") && has("10.0.0.3") && has("2001:db8::9"));
    end();
}

/* P3: where a service has more than there is room for, the other names keep their places. */
static void each_name_has_its_share_of_the_room(void **state) {
    (void)state;
    static char ips[79][24];
    begin((const char *const[]){"many.example", "one.example", NULL});
    set_zone("many.example", "10.1.0.200", false);
    for (int i = 0; i < 70; i++) {
        snprintf(ips[i], sizeof(ips[i]), "10.1.0.%d", i);
        add_answer("many.example", ips[i]);
    }
    set_zone("one.example", "10.2.0.1", false);
    start();
    until_told(3);
    assert_int_equal(world.count, 64);
    assert_true(has("10.2.0.1"));
    end();
}

/* P3 */
static void names_are_asked_again_each_minute_and_new_addresses_take_the_place_of_the_old(void **state) {
    (void)state;
    begin((const char *const[]){"peers.example", NULL});
    world.others = 2;
    set_zone("peers.example", "10.0.0.2", false);
    start();
    until_told(2);
    set_zone("peers.example", "10.0.0.3", false);
    for (int i = 0; i < 11; i++)
        pass(RESOLVER_RETRY_MS);
    assert_int_equal(times_asked("peers.example"), 1);
    pass(RESOLVER_RETRY_MS);
    until_told(3);
    assert_int_equal(times_asked("peers.example"), 2);
    assert_true(has("10.0.0.3") && !has("10.0.0.2"));
    end();
}

/* P3: nobody answers at the addresses we have, so they may be old. */
static void names_are_asked_again_soon_while_nobody_is_known(void **state) {
    (void)state;
    begin((const char *const[]){"peers.example", NULL});
    set_zone("peers.example", "10.0.0.2", false);
    start();
    until_told(2);
    set_zone("peers.example", "10.0.0.3", false);
    pass(RESOLVER_RETRY_MS);
    until_told(3);
    assert_true(has("10.0.0.3"));
    end();
}

/* P3 */
static void old_addresses_are_kept_while_the_name_is_unknown_and_it_is_said_once(void **state) {
    (void)state;
    begin((const char *const[]){"peers.example", "other.example", NULL});
    world.others = 1;
    set_zone("peers.example", "10.0.0.2", false);
    set_zone("other.example", "10.0.0.9", false);
    start();
    until_told(3);
    set_zone("peers.example", NULL, false);
    pass(RESOLVER_AGAIN_MS);
    until_told(4); /* by the other */
    for (int i = 0; i < 5; i++) {
        const unsigned asked = times_asked("peers.example");
        pass(RESOLVER_RETRY_MS);
        while (times_asked("peers.example") == asked)
            turn();
        for (int turns = 0; turns < 20; turns++)
            turn();
    }
    assert_true(has("10.0.0.2") && has("10.0.0.9"));
    char *line = strstr(world.log, "bootstrap_unknown");
    assert_non_null(line);
    assert_null(strstr(line + 1, "bootstrap_unknown"));
    set_zone("peers.example", "10.0.0.4", false);
    pass(RESOLVER_RETRY_MS);
    until_told(world.told + 1);
    for (int turns = 0; turns < 20; turns++)
        turn();
    assert_true(has("10.0.0.4") && !has("10.0.0.2"));
    assert_non_null(strstr(world.log, "bootstrap_found"));
    end();
}

/* P3: the loop turns, the other name is found, and the one that hangs is not asked a second time meanwhile. */
static void a_lookup_that_hangs_keeps_back_only_its_own_name(void **state) {
    (void)state;
    begin((const char *const[]){"hangs.example", "peers.example", NULL});
    set_zone("hangs.example", "10.0.0.8", true);
    set_zone("peers.example", "10.0.0.2", false);
    start();
    until_told(2);
    for (int i = 0; i < 5; i++) {
        pass(RESOLVER_AGAIN_MS);
        until_told(world.told + 1);
    }
    assert_true(has("10.0.0.2"));
    assert_int_equal(times_asked("hangs.example"), 1);
    set_zone("hangs.example", "10.0.0.8", false);
    while (!has("10.0.0.8"))
        turn();
    end();
}

static void an_end_while_a_lookup_is_under_way_frees_all(void **state) {
    (void)state;
    begin((const char *const[]){"hangs.example", NULL});
    set_zone("hangs.example", "10.0.0.8", true);
    start();
    while (times_asked("hangs.example") == 0)
        turn();
    const size_t told = world.told;
    end();
    assert_int_equal(world.told, told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_addresses_of_all_names_are_given_and_numbers_at_once),
        cmocka_unit_test(each_name_has_its_share_of_the_room),
        cmocka_unit_test(names_are_asked_again_each_minute_and_new_addresses_take_the_place_of_the_old),
        cmocka_unit_test(names_are_asked_again_soon_while_nobody_is_known),
        cmocka_unit_test(old_addresses_are_kept_while_the_name_is_unknown_and_it_is_said_once),
        cmocka_unit_test(a_lookup_that_hangs_keeps_back_only_its_own_name),
        cmocka_unit_test(our_own_name_is_followed_to_another_address),
        cmocka_unit_test(of_several_own_addresses_the_one_in_use_stays),
        cmocka_unit_test(our_own_name_keeps_its_address_while_it_is_unknown_and_is_asked_soon_again),
        cmocka_unit_test(an_end_while_a_lookup_is_under_way_frees_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
