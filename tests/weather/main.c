/* weather: passes IP packets between network namespaces as bad networks do.
 *
 *   weather [--seed N] NAME=PID=ADDRESS[,ADDRESS] ...
 *
 * Makes a TUN device "wire0" in the namespace of each process PID, says "ready" on standard output, and then does what
 * the lines on standard input say; each is answered with a line that begins with "ok" or "error". The end of the input
 * ends it.
 *
 *   set FROM TO WORD=VALUE ...   from one to another (* for all); what is not named stays. Words: sky.h
 *   clear FROM TO                a perfect cable
 *   counts                       one line of JSON behind the "ok": a list with what happened from each to each
 *   reset                        counts from zero
 *   address NAME ADDRESS         packets to it come to NAME, and to nobody else
 *   nat NAME ADDRESS SHIFT       a router before NAME: it goes out as ADDRESS with ports higher by SHIFT, and only who
 * it has spoken to comes in. Again: the router was restarted, and knows no flow any more
 */
#include "tests/weather/flight.h"
#include "tests/weather/nat.h"
#include "tests/weather/ports.h"
#include "tests/weather/sky.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PACKET_MAX 65536u
#define READS_AT_ONCE 64u /* of one port, then the others have their turn */
#define LINE_MAX_BYTES 4096u

struct weather {
    struct port ports[PORTS_MAX];
    struct nat nats[PORTS_MAX];
    size_t count;
    struct sky skies[PORTS_MAX][PORTS_MAX]; /* from, to */
    struct flight flight;
    uint64_t flight_full;
    char line[LINE_MAX_BYTES];
    size_t line_size;
};

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- packets ---- */

static void send_to(struct weather *weather, size_t from, size_t to, uint8_t *bytes, size_t size,
                    const struct ip_packet *packet, uint64_t now) {
    struct sky *sky = &weather->skies[from][to];
    struct sky_fate fate = sky_pass(sky, now, packet->protocol, size);
    uint8_t answer[IP_TOO_BIG_MAX];
    size_t answer_size = fate.too_big ? ip_too_big(bytes, size, sky->weather.mtu, answer) : 0;
    if (answer_size > 0) flight_add(&weather->flight, now, from, answer, answer_size);
    size_t flipped =
        packet->payload + (size - packet->payload > 0 ? (size_t)(fate.bit / 8) % (size - packet->payload) : 0);
    bool corrupt = fate.corrupt && flipped < size;
    uint8_t mask = (uint8_t)(1u << (fate.bit & 7));
    if (corrupt) bytes[flipped] ^= mask;
    for (uint32_t i = 0; i < fate.copies; i++)
        weather->flight_full += !flight_add(&weather->flight, fate.due_us[i], to, bytes, size);
    if (corrupt) bytes[flipped] ^= mask;
}

static void route(struct weather *weather, size_t from, uint8_t *bytes, size_t size) {
    struct ip_packet packet;
    uint64_t now = now_us();
    struct nat *nats = weather->nats;
    if (nats[from].on && !nat_out(&nats[from], bytes, size, now)) return;
    if (!ip_read(bytes, size, &packet)) return;
    bool many = ip_is_for_many(&packet.to);
    for (size_t to = 0; to < weather->count; to++) {
        if (to == from) continue;
        if (nat_is_outside(&nats[to], &packet.to)) {
            if (nat_in(&nats[to], bytes, size, now)) send_to(weather, from, to, bytes, size, &packet, now);
            return;
        }
        if (!nats[to].on && (many || port_has_address(&weather->ports[to], &packet.to)))
            send_to(weather, from, to, bytes, size, &packet, now);
    }
}

static void read_port(struct weather *weather, size_t from) {
    uint8_t bytes[PACKET_MAX];
    for (size_t i = 0; i < READS_AT_ONCE; i++) {
        ssize_t size = read(weather->ports[from].fd, bytes, sizeof bytes);
        if (size <= 0) return;
        route(weather, from, bytes, (size_t)size);
    }
}

static void land(struct weather *weather) {
    struct flying *flying;
    while ((flying = flight_take(&weather->flight, now_us()))) {
        /* A device that is down or full loses it, as a cable's end would. */
        if (write(weather->ports[flying->port].fd, flying->bytes, flying->size) < 0)
            weather->flight_full += errno == EAGAIN;
        free(flying);
    }
}

/* ---- commands ---- */

static bool fits(const struct weather *weather, const char *word, size_t port) {
    return strcmp(word, "*") == 0 || strcmp(word, weather->ports[port].name) == 0;
}

static bool names_a_port(const struct weather *weather, const char *word) {
    for (size_t i = 0; i < weather->count; i++)
        if (fits(weather, word, i)) return true;
    return false;
}

static bool read_words(const char *words, struct sky_weather *weather, const char **error) {
    char copy[LINE_MAX_BYTES], *save = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        if (!sky_set(weather, word, error)) return false;
    return true;
}

static const char *set(struct weather *weather, const char *from, const char *to, const char *words, bool clear) {
    const char *error = NULL;
    struct sky_weather trial = {0};
    if (!from || !to || !names_a_port(weather, from) || !names_a_port(weather, to))
        return "two names, or *, are missing";
    if (!read_words(words, &trial, &error)) return error;
    for (size_t i = 0; i < weather->count; i++)
        for (size_t j = 0; j < weather->count; j++) {
            struct sky *sky = &weather->skies[i][j];
            if (i == j || !fits(weather, from, i) || !fits(weather, to, j)) continue;
            if (clear) memset(&sky->weather, 0, sizeof sky->weather);
            read_words(words, &sky->weather, &error);
        }
    return NULL;
}

static const char *give_address(struct weather *weather, const char *name, const char *text) {
    struct ip_address address;
    if (!name || !text || !ip_parse(text, &address)) return "a name and an address are missing";
    if (strcmp(name, "*") == 0 || !names_a_port(weather, name)) return "no such name";
    for (size_t i = 0; i < weather->count; i++) {
        struct port *port = &weather->ports[i];
        for (size_t k = 0; k < PORT_ADDRESSES_MAX; k++)
            if (ip_equal(&port->addresses[k], &address)) memset(&port->addresses[k], 0, sizeof address);
        if (fits(weather, name, i)) port_add_address(port, &address);
    }
    return NULL;
}

static const char *put_behind_nat(struct weather *weather, const char *name, const char *text, const char *number) {
    struct ip_address address;
    char *end = NULL;
    unsigned long shift = number ? strtoul(number, &end, 10) : 0;
    if (!name || !text || !ip_parse(text, &address) || address.family != 4 || !end || *end != '\0' ||
        shift > UINT16_MAX)
        return "a name, an IPv4 address and a number up to 65535 are missing";
    if (strcmp(name, "*") == 0) return "no such name";
    for (size_t i = 0; i < weather->count; i++)
        if (fits(weather, name, i)) {
            nat_set(&weather->nats[i], &weather->ports[i].addresses[0], &address, (uint16_t)shift);
            return NULL;
        }
    return "no such name";
}

static void print_counts(const struct weather *weather) {
    printf("ok [");
    for (size_t i = 0; i < weather->count; i++)
        for (size_t j = 0; j < weather->count; j++) {
            const struct sky_counts *c = &weather->skies[i][j].counts;
            if (i == j) continue;
            printf("%s{\"from\":\"%s\",\"to\":\"%s\",\"sent\":%llu,\"bytes\":%llu,\"udp\":%llu,\"udp_bytes\":%llu,"
                   "\"passed\":%llu,"
                   "\"lost\":%llu,\"cut\":%llu,\"blocked\":%llu,\"queue_dropped\":%llu,\"too_big\":%llu,"
                   "\"duplicated\":%llu,\"reordered\":%llu,\"corrupted\":%llu}",
                   i == 0 && j <= 1 ? "" : ",", weather->ports[i].name, weather->ports[j].name,
                   (unsigned long long)c->sent, (unsigned long long)c->bytes, (unsigned long long)c->udp,
                   (unsigned long long)c->udp_bytes, (unsigned long long)c->passed, (unsigned long long)c->lost,
                   (unsigned long long)c->cut, (unsigned long long)c->blocked, (unsigned long long)c->queue_dropped,
                   (unsigned long long)c->too_big, (unsigned long long)c->duplicated, (unsigned long long)c->reordered,
                   (unsigned long long)c->corrupted);
        }
    printf("]\n");
}

static const char *obey(struct weather *weather, char *line) {
    char *save = NULL, *verb = strtok_r(line, " ", &save);
    if (!verb) return "an empty line";
    if (strcmp(verb, "counts") == 0) {
        print_counts(weather);
        return "";
    }
    if (strcmp(verb, "reset") == 0) {
        for (size_t i = 0; i < weather->count; i++)
            for (size_t j = 0; j < weather->count; j++)
                memset(&weather->skies[i][j].counts, 0, sizeof weather->skies[i][j].counts);
        return NULL;
    }
    char *first = strtok_r(NULL, " ", &save), *second = strtok_r(NULL, " ", &save);
    if (strcmp(verb, "set") == 0) return set(weather, first, second, save ? save : "", false);
    if (strcmp(verb, "clear") == 0) return set(weather, first, second, "", true);
    if (strcmp(verb, "address") == 0) return give_address(weather, first, second);
    if (strcmp(verb, "nat") == 0) return put_behind_nat(weather, first, second, save ? save : "");
    return "there are set, clear, counts, reset, address and nat";
}

/* False at the end of the input. */
static bool read_commands(struct weather *weather) {
    ssize_t size =
        read(STDIN_FILENO, weather->line + weather->line_size, sizeof weather->line - 1 - weather->line_size);
    if (size <= 0) return size < 0 && errno == EINTR;
    weather->line_size += (size_t)size;
    weather->line[weather->line_size] = '\0';
    char *line = weather->line, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        const char *error = obey(weather, line);
        if (!error || *error) printf("%s%s\n", error ? "error: " : "ok", error ? error : "");
        fflush(stdout);
    }
    weather->line_size = strlen(line);
    memmove(weather->line, line, weather->line_size + 1);
    return weather->line_size < sizeof weather->line - 1;
}

/* ---- life ---- */

static bool add_port(struct weather *weather, char *argument, uint64_t seed) {
    char *save = NULL, *name = strtok_r(argument, "=", &save), *pid = strtok_r(NULL, "=", &save);
    if (weather->count == PORTS_MAX || !name || !pid || !save || *save == '\0') {
        fprintf(stderr, "weather: write NAME=PID=ADDRESS, at most %u times\n", PORTS_MAX);
        return false;
    }
    struct port *port = &weather->ports[weather->count];
    if (!port_open(port, name, strtol(pid, NULL, 10))) {
        fprintf(stderr, "weather: no TUN device in the network namespace of process %s: %s\n", pid, strerror(errno));
        return false;
    }
    weather->count++;
    for (char *text = strtok_r(NULL, ",", &save); text; text = strtok_r(NULL, ",", &save)) {
        struct ip_address address;
        if (!ip_parse(text, &address)) {
            fprintf(stderr, "weather: %s is no IP address\n", text);
            return false;
        }
        port_add_address(port, &address);
    }
    for (size_t i = 0; i < PORTS_MAX; i++) {
        char stream[2 * PORT_NAME_MAX + 32];
        snprintf(stream, sizeof stream, "%zu to %zu", weather->count - 1, i);
        sky_init(&weather->skies[weather->count - 1][i], seed, stream);
    }
    return true;
}

static void run(struct weather *weather) {
    struct pollfd polled[PORTS_MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    for (size_t i = 0; i < weather->count; i++)
        polled[i + 1] = (struct pollfd){.fd = weather->ports[i].fd, .events = POLLIN};
    for (;;) {
        uint64_t next = flight_next_us(&weather->flight), now = now_us(), wait = next > now ? next - now : 0;
        struct timespec timeout = {(time_t)(wait / 1000000), (long)(wait % 1000000) * 1000};
        ppoll(polled, weather->count + 1, next == UINT64_MAX ? NULL : &timeout, NULL);
        land(weather);
        if (polled[0].revents && !read_commands(weather)) return;
        for (size_t i = 0; i < weather->count; i++)
            if (polled[i + 1].revents & POLLIN) read_port(weather, i);
    }
}

int main(int argc, char **argv) {
    static struct weather weather;
    uint64_t seed = 1;
    int i = 1;
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 10);
        i = 3;
    }
    for (; i < argc; i++)
        if (!add_port(&weather, argv[i], seed)) return 1;
    setpriority(PRIO_PROCESS, 0,
                -10); /* delays are to be right on a busy machine too; without the right to it they are less so */
    printf("ready\n");
    fflush(stdout);
    run(&weather);
    flight_free(&weather.flight);
    return 0;
}
