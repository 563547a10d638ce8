/* What gossip costs the core alone: many brokers in one process and one thread, on a virtual clock, with crypto that
 * costs nothing much. No faults, no checks: `hobnob simulate` has those.
 *
 *   bench_gossip [--brokers N] [--seconds N] [--changes SECONDS] [--settle SECONDS] [--private] [--loss PERCENT]
 *                [--awake N] [--kinds]
 *
 * --brokers    how many (100)
 * --seconds    how long to measure, simulated, once all know all (60)
 * --changes    each broker changes a row so often (0: never)
 * --settle     how long to wait before that (10): for some minutes pairs that meet prove where they are
 * --private    nothing is shared between them, as if each ran alone
 * --loss       of datagrams
 * --awake      members that a broker keeps in a large record (limits.awake_max)
 * --kinds      counts messages of each kind too
 *
 * It prints CPU time per simulated hour, nanoseconds per datagram (sending, receiving and the event that takes it
 * there), datagrams and bytes per broker and second, and the memory of one member at one broker. Where the time goes
 * says
 *
 *   valgrind --tool=callgrind --collect-atstart=no --toggle-collect=measure bench_gossip --brokers 100 --seconds 10
 */
#include <assert.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gossip/chance.h"
#include "gossip/gossip.h"
#include "gossip/message.h"
#include "gossip/seal.h"
#include "gossip/timers.h"
#include "tools/simulate/standin.h"

enum { SLOTS = 64, DELAY_MIN_MS = 1, DELAY_MAX_MS = 5, CHANGE_ROWS = 16, KINDS = 64 };

struct options {
    uint32_t brokers, seconds, settle_s, change_s, loss, awake_max;
    bool private, kinds;
};

struct packet {
    struct packet *next;
    uint32_t from, to;
    uint32_t size, room;
    uint8_t bytes[];
};

struct broker {
    struct timer timer; /* first: the address of one is that of the other */
    struct gossip *gossip;
    struct standin standin;
    uint64_t next_change_ms;
    uint32_t changes;
};

struct bench {
    struct options options;
    struct standin_world world;
    uint64_t now_ms, now_us;
    struct broker *brokers;
    struct timers timers;
    struct packet *slots[SLOTS], *last[SLOTS], *spare;
    struct chance chance;
    uint64_t packets, bytes, empty, messages[KINDS];
};

static struct gossip_address address_of(uint32_t number) {
    struct gossip_address address = {.family = 4, .port = 7100};
    address.ip[0] = 10;
    memcpy(address.ip + 1, (uint8_t[]){(uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number}, 3);
    return address;
}

static uint32_t number_of(const struct gossip_address *address) {
    return (uint32_t)address->ip[1] << 16 | (uint32_t)address->ip[2] << 8 | address->ip[3];
}

/* What is said, since nothing hides it: the seal of the bench adds a tag and no more. */
static void count_kinds(struct bench *bench, const struct gossip_datagram *datagram) {
    struct wire_in in;
    struct packet_header header;
    struct message message;
    bool empty = true;
    if (!bench->options.kinds) return;
    wire_in_init(&in, datagram->bytes + 17, datagram->size - SEAL_OVERHEAD);
    header_get(&in, &header);
    while (message_get(&in, &message)) {
        bench->messages[message.kind]++;
        empty = false;
    }
    bench->empty += empty;
}

static void put(struct bench *bench, uint32_t from, const struct gossip_datagram *datagram) {
    uint32_t to = number_of(&datagram->to);
    bench->packets++;
    bench->bytes += datagram->size;
    count_kinds(bench, datagram);
    if (to >= bench->options.brokers) return;
    if (bench->options.loss > 0 && chance_below(&bench->chance, 100) < bench->options.loss) return;
    struct packet *packet = bench->spare;
    if (packet)
        bench->spare = packet->next;
    else
        packet = malloc(sizeof *packet + GOSSIP_DATAGRAM_MAX);
    assert(packet);
    *packet = (struct packet){.from = from, .to = to, .size = (uint32_t)datagram->size};
    memcpy(packet->bytes, datagram->bytes, datagram->size);
    uint64_t at = bench->now_ms + DELAY_MIN_MS + chance_below(&bench->chance, DELAY_MAX_MS - DELAY_MIN_MS + 1);
    struct packet **slot = &bench->slots[at % SLOTS];
    if (*slot)
        bench->last[at % SLOTS]->next = packet;
    else
        *slot = packet;
    bench->last[at % SLOTS] = packet;
}

/* What came to a broker, or was due there, has been done. */
static void touched(struct bench *bench, struct broker *broker) {
    struct gossip_datagram datagram;
    struct gossip_event event;
    while (gossip_next_datagram(broker->gossip, &datagram))
        put(bench, (uint32_t)(broker - bench->brokers), &datagram);
    while (gossip_next_event(broker->gossip, &event))
        ;
    uint64_t deadline = gossip_deadline_ms(broker->gossip);
    if (broker->next_change_ms < deadline) deadline = broker->next_change_ms;
    timers_set(&bench->timers, &broker->timer, deadline);
}

static void change(struct bench *bench, struct broker *broker) {
    char filter[64];
    uint32_t number = broker->changes++;
    int size = snprintf(filter, sizeof filter, "site/%u/device/%u/+", (unsigned)(broker - bench->brokers),
                        number / 2 % CHANGE_ROWS);
    if (number % 2 == 0)
        gossip_row_put(broker->gossip, bench->now_ms, GOSSIP_NEWSUB, filter, (size_t)size);
    else
        gossip_row_delete(broker->gossip, bench->now_ms, GOSSIP_NEWSUB, filter, (size_t)size);
    broker->next_change_ms = bench->now_ms + bench->options.change_s * 1000u;
}

static void deliver(struct bench *bench) {
    struct packet *packet = bench->slots[bench->now_ms % SLOTS];
    bench->slots[bench->now_ms % SLOTS] = NULL;
    while (packet) {
        struct packet *next = packet->next;
        struct broker *broker = &bench->brokers[packet->to];
        if (next) gossip_expect(bench->brokers[next->to].gossip);
        struct gossip_address from = address_of(packet->from);
        gossip_receive(broker->gossip, bench->now_ms, &from, packet->bytes, packet->size);
        packet->next = bench->spare;
        bench->spare = packet;
        packet = next;
        touched(bench, broker);
    }
}

static void run(struct bench *bench, uint64_t until_ms) {
    for (; bench->now_ms < until_ms; bench->now_ms++, bench->now_us += 1000) {
        deliver(bench);
        struct timer *timer;
        while ((timer = timers_due(&bench->timers, bench->now_ms))) {
            struct broker *broker = (struct broker *)timer;
            if (bench->now_ms >= broker->next_change_ms) change(bench, broker);
            if (bench->now_ms >= gossip_deadline_ms(broker->gossip)) gossip_tick(broker->gossip, bench->now_ms);
            touched(bench, broker);
        }
    }
}

/* A function of its own for callgrind. */
__attribute__((noinline)) void measure(struct bench *bench);
void measure(struct bench *bench) {
    run(bench, bench->now_ms + bench->options.seconds * 1000u);
}

static void start(struct bench *bench, struct gossip_shared *shared, uint32_t number) {
    struct broker *broker = &bench->brokers[number];
    char name[32];
    uint8_t token[STANDIN_TOKEN_SIZE];
    struct gossip_key key = standin_key(1);
    snprintf(name, sizeof name, "edge-%u", number + 1);
    standin_init(&broker->standin, &bench->world, number);
    standin_mint(&broker->standin, name, UINT64_MAX, token);
    struct gossip_options options = {.name = name,
                                     .federation = "bench",
                                     .advertise = address_of(number),
                                     .epoch = 1,
                                     .seed = number + 1,
                                     .public_key = broker->standin.public_key,
                                     .token = token,
                                     .token_size = sizeof token,
                                     .keys = &key,
                                     .key_count = 1,
                                     .crypto = standin_crypto(&broker->standin),
                                     .shared = shared};
    options.limits.members_max = bench->options.brokers + 1;
    options.limits.awake_max = bench->options.awake_max;
    broker->gossip = gossip_new(&options, bench->now_ms);
    assert(broker->gossip);
    broker->next_change_ms = UINT64_MAX;
    struct gossip_address bootstrap[2] = {address_of(0), address_of(number / 2)};
    gossip_set_bootstrap(broker->gossip, bench->now_ms, bootstrap, 2);
    touched(bench, broker);
}

static bool all_know_all(const struct bench *bench) {
    for (uint32_t i = 0; i < bench->options.brokers; i++) {
        struct gossip_counters counters;
        gossip_read_counters(bench->brokers[i].gossip, &counters);
        if (counters.members_alive < bench->options.brokers) return false;
    }
    return true;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint32_t number_option(int argc, char **argv, int *at) {
    if (*at + 1 >= argc) {
        fprintf(stderr, "bench_gossip: %s needs a number\n", argv[*at]);
        exit(2);
    }
    return (uint32_t)strtoul(argv[++*at], NULL, 10);
}

static struct options read_options(int argc, char **argv) {
    struct options options = {.brokers = 100, .seconds = 60, .settle_s = 10};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--brokers") == 0) {
            options.brokers = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            options.seconds = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--changes") == 0) {
            options.change_s = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--loss") == 0) {
            options.loss = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--awake") == 0) {
            options.awake_max = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--settle") == 0) {
            options.settle_s = number_option(argc, argv, &i);
        } else if (strcmp(argv[i], "--kinds") == 0) {
            options.kinds = true;
        } else if (strcmp(argv[i], "--private") == 0) {
            options.private = true;
        } else {
            fprintf(stderr, "bench_gossip: no option %s; its source begins with a list\n", argv[i]);
            exit(2);
        }
    }
    return options;
}

int main(int argc, char **argv) {
    struct bench bench = {.options = read_options(argc, argv), .now_ms = 1000, .now_us = 1000000, .chance = {7}};
    uint32_t brokers = bench.options.brokers;
    bench.world = (struct standin_world){.salt = 1, .now_us = &bench.now_us};
    bench.brokers = calloc(brokers, sizeof *bench.brokers);
    struct gossip_shared *shared = bench.options.private ? NULL : gossip_shared_new();
    assert(bench.brokers && timers_reserve(&bench.timers, brokers));
    double began = seconds_now();
    for (uint32_t i = 0; i < brokers; i++)
        start(&bench, shared, i);
    size_t alone = mallinfo2().uordblks;
    uint64_t started_ms = bench.now_ms;
    while (!all_know_all(&bench))
        run(&bench, bench.now_ms + 1000);
    printf("%u brokers know one another after %.0f s simulated, %.1f s of CPU, %.0f KiB sent by each\n", brokers,
           (double)(bench.now_ms - started_ms) / 1000, seconds_now() - began, (double)bench.bytes / brokers / 1024);
    run(&bench, bench.now_ms + bench.options.settle_s * 1000u);
    for (uint32_t i = 0; i < brokers && bench.options.change_s > 0; i++) {
        bench.brokers[i].next_change_ms = bench.now_ms + chance_below(&bench.chance, bench.options.change_s * 1000);
        touched(&bench, &bench.brokers[i]);
    }
    bench.packets = bench.bytes = 0;
    memset(bench.messages, 0, sizeof bench.messages);
    bench.empty = 0;
    began = seconds_now();
    measure(&bench);
    double real = seconds_now() - began, broker_seconds = (double)brokers * bench.options.seconds;
    double members = (double)brokers * (brokers - 1);
    printf("%.1f s of CPU for a simulated hour; %.0f ns per datagram\n", real * 3600 / bench.options.seconds,
           real * 1e9 / (double)bench.packets);
    printf("per broker and second: %.1f datagrams, %.0f bytes\n", (double)bench.packets / broker_seconds,
           (double)bench.bytes / broker_seconds);
    for (int kind = 0; kind < KINDS; kind++)
        if (bench.messages[kind] > 0) printf("  kind %d: %.2f\n", kind, (double)bench.messages[kind] / broker_seconds);
    if (bench.empty > 0) printf("  empty: %.2f\n", (double)bench.empty / broker_seconds);
    printf("%.0f bytes of memory for one member at one broker\n", (double)(mallinfo2().uordblks - alone) / members);
    for (uint32_t i = 0; i < brokers; i++)
        gossip_free(bench.brokers[i].gossip);
    gossip_shared_free(shared);
    return 0;
}
