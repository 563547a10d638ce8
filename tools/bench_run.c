/* The run of a load: connect all, publish as the plan says, wait for what is on its way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench_inside.h"
#include "complain.h"

#define SECOND_NS 1000000000u
#define EVENTS_MAX 256
#define DIALS_MAX 100u        /* at a time */
#define SETUP_SILENCE_S 30.0  /* connecting is given up after this time without progress */
#define STALL_S 1.0           /* deliveries that do not come for this time are given up */
#define DRAIN_SILENCE_S 2.0   /* and after the end */
#define TURN_MAX_NS 20000000u /* so that the clock is seen */

static double seconds_since(uint64_t start_ns) {
    return (double)(bench_now_ns() - start_ns) / SECOND_NS;
}

/* ---- making and unmaking ---- */

static struct bench_client *init_client(struct bench *bench, struct bench_client *client, struct bench_topic *topic,
                                        bool is_publisher) {
    client->topic = topic;
    client->is_publisher = is_publisher;
    client->inflight_max = bench->plan->inflight;
    return client;
}

static bool init_topic(struct bench *bench, uint32_t position, struct bench_client *publishers,
                       struct bench_client *subscribers) {
    const struct bench_plan *plan = bench->plan;
    struct bench_topic *topic = &bench->topics[position];
    snprintf(topic->name, sizeof topic->name, "%s/%u", plan->prefix, position);
    if (!bench_template_init(&topic->template, plan->version, topic->name, plan->qos, plan->payload_size)) return false;
    topic->publishers = publishers;
    for (uint32_t i = 0; i < plan->publishers; i++)
        init_client(bench, &publishers[i], topic, true)->number = (uint16_t)i;
    for (uint32_t i = 0; i < plan->subscribers; i++) {
        struct bench_client *client = init_client(bench, &subscribers[i], topic, false);
        client->expected = calloc(plan->publishers, sizeof *client->expected);
        if (client->expected == NULL) return false;
    }
    bench->rest_max = topic->template.size > BENCH_READ_SIZE ? topic->template.size : BENCH_READ_SIZE;
    return true;
}

static bool init(struct bench *bench) {
    const struct bench_plan *plan = bench->plan;
    bench->publisher_count = plan->topics * plan->publishers;
    bench->client_count = bench->publisher_count + plan->topics * plan->subscribers;
    bench->topics = calloc(plan->topics, sizeof *bench->topics);
    bench->clients = calloc(bench->client_count, sizeof *bench->clients);
    bench->working = calloc(bench->client_count, sizeof *bench->working);
    bench->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (bench->topics == NULL || bench->clients == NULL || bench->working == NULL || bench->epoll < 0) return false;
    for (uint32_t i = 0; i < bench->client_count; i++)
        bench->clients[i].fd = -1;
    for (uint32_t i = 0; i < plan->topics; i++)
        if (!init_topic(bench, i, bench->clients + i * plan->publishers,
                        bench->clients + bench->publisher_count + i * plan->subscribers))
            return false;
    bench->input = malloc(bench->rest_max + BENCH_READ_SIZE);
    return bench->input != NULL;
}

static void deinit(struct bench *bench) {
    if (bench->clients != NULL)
        for (uint32_t i = 0; i < bench->client_count; i++)
            bench_client_deinit(&bench->clients[i]);
    if (bench->topics != NULL)
        for (uint32_t i = 0; i < bench->plan->topics; i++)
            bench_template_deinit(&bench->topics[i].template);
    if (bench->epoll >= 0) close(bench->epoll);
    free(bench->topics);
    free(bench->clients);
    free(bench->working);
    free(bench->input);
}

/* ---- turns of the loop ---- */

static void flush_all(struct bench *bench) {
    for (uint32_t i = 0; i < bench->working_count; i++)
        bench_client_flush(bench, bench->working[i]);
    bench->working_count = 0;
}

/* Waits at most so long, and serves whoever is ready. */
static void turn(struct bench *bench, uint64_t wait_ns) {
    struct epoll_event events[EVENTS_MAX];
    if (wait_ns > TURN_MAX_NS) wait_ns = TURN_MAX_NS;
    struct timespec wait = {0, (long)wait_ns};
    int count = epoll_pwait2(bench->epoll, events, EVENTS_MAX, &wait, NULL);
    for (int i = 0; i < count && !bench->is_failed; i++)
        bench_client_event(bench, events[i].data.ptr, events[i].events);
    flush_all(bench);
}

static bool connect_all(struct bench *bench) {
    uint32_t dialled = 0, ready = 0;
    uint64_t progress_ns = bench_now_ns();
    while (!bench->is_failed && bench->ready_count < bench->client_count) {
        /* Subscribers, who come last, are dialled first. */
        while (!bench->is_failed && dialled < bench->client_count && dialled - bench->ready_count < DIALS_MAX)
            bench_client_dial(bench, &bench->clients[bench->client_count - ++dialled]);
        turn(bench, TURN_MAX_NS);
        if (bench->ready_count != ready) {
            ready = bench->ready_count;
            progress_ns = bench_now_ns();
        } else if (!bench->is_failed && seconds_since(progress_ns) > SETUP_SILENCE_S) {
            complain(
                "%s:%s: %u of %u clients are connected, and no other within %.0f s; see the broker's log and limits",
                bench->plan->host, bench->plan->port, ready, bench->client_count, SETUP_SILENCE_S);
            bench->is_failed = true;
        }
    }
    return !bench->is_failed;
}

/* ---- pace ---- */

/* Deliveries still waited for. */
static uint64_t outstanding(const struct bench *bench, const struct bench_client *publisher) {
    uint64_t expected = publisher->published * bench->plan->subscribers;
    uint64_t settled = publisher->delivered + publisher->written_off;
    return expected > settled ? expected - settled : 0;
}

/* How many more publications it may make now. */
static uint32_t room(const struct bench *bench, const struct bench_client *publisher) {
    const struct bench_plan *plan = bench->plan;
    size_t packet_size = publisher->topic->template.size;
    if (publisher->is_blocked || publisher->output.size >= BENCH_OUTPUT_MAX) return 0;
    uint64_t window = plan->window / plan->publishers,
             found = (BENCH_OUTPUT_MAX - publisher->output.size) / packet_size;
    if (found == 0) found = 1;
    if (window == 0) window = 1;
    if (plan->subscribers > 0) {
        uint64_t waiting = (outstanding(bench, publisher) + plan->subscribers - 1) / plan->subscribers;
        uint64_t left = waiting < window ? window - waiting : 0;
        if (left < found) found = left;
    }
    if (plan->qos > 0 && publisher->inflight_max - publisher->inflight < found)
        found = publisher->inflight_max - publisher->inflight;
    return (uint32_t)found;
}

struct pace {
    uint64_t start_ns;
    uint64_t published; /* since then */
    uint64_t skipped;   /* that were due at a rate and could not be made */
    uint32_t first;     /* publisher whose turn it is */
};

/* The time at which the next publication is due; 0: now. */
static uint64_t next_due_ns(const struct bench *bench, const struct pace *pace) {
    if (bench->plan->rate <= 0) return 0;
    return pace->start_ns + (uint64_t)((double)(pace->published + pace->skipped) / bench->plan->rate * SECOND_NS);
}

static uint64_t due(const struct bench *bench, struct pace *pace, uint64_t now_ns) {
    uint64_t found = UINT64_MAX;
    const struct bench_plan *plan = bench->plan;
    if (plan->rate > 0) {
        uint64_t all = (uint64_t)((double)(now_ns - pace->start_ns) / SECOND_NS * plan->rate) + 1;
        uint64_t done = pace->published + pace->skipped;
        found = all > done ? all - done : 0;
        /* Who was held up does not make up for more than a tenth of a second. */
        uint64_t burst_max = 1 + (uint64_t)(plan->rate / 10);
        if (found > burst_max) {
            pace->skipped += found - burst_max;
            found = burst_max;
        }
    }
    if (plan->messages > 0 && plan->messages - pace->published < found) found = plan->messages - pace->published;
    return found;
}

/* Publishes what is due and has room; true if that was all that is due, so that there is time to wait. */
static void publish_due(struct bench *bench, struct pace *pace) {
    uint64_t now_ns = bench_now_ns(), left = due(bench, pace, now_ns);
    bench->time_100ns = (uint32_t)(now_ns / 100);
    bool is_paced = bench->plan->rate > 0;
    for (uint32_t i = 0; i < bench->publisher_count && left > 0; i++) {
        struct bench_client *publisher = &bench->clients[pace->first];
        pace->first = (pace->first + 1) % bench->publisher_count;
        uint32_t count = room(bench, publisher);
        /* A rate is shared out evenly. */
        if (is_paced && count > left / bench->publisher_count + 1)
            count = (uint32_t)(left / bench->publisher_count) + 1;
        if (count > left) count = (uint32_t)left;
        if (count == 0) continue;
        bench_client_publish(bench, publisher, count);
        pace->published += count;
        left -= count;
    }
    flush_all(bench);
}

static uint64_t wait_ns(const struct bench *bench, const struct pace *pace) {
    if (bench->plan->messages > 0 && pace->published >= bench->plan->messages) return TURN_MAX_NS;
    bool has_room = false;
    for (uint32_t i = 0; i < bench->publisher_count && !has_room; i++)
        has_room = room(bench, &bench->clients[i]) > 0;
    if (!has_room) return TURN_MAX_NS;
    uint64_t due_ns = next_due_ns(bench, pace), now_ns = bench_now_ns();
    return due_ns > now_ns ? due_ns - now_ns : 0;
}

/* ---- deliveries that do not come ---- */

struct progress {
    uint64_t seen, since_ns;
};

/* Seconds without a delivery or an acknowledgement. */
static double silence(const struct bench *bench, struct progress *progress) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < bench->publisher_count; i++)
        sum += bench->clients[i].delivered + bench->clients[i].published - bench->clients[i].inflight;
    if (sum != progress->seen || progress->since_ns == 0) {
        progress->seen = sum;
        progress->since_ns = bench_now_ns();
    }
    return seconds_since(progress->since_ns);
}

static bool is_waiting(const struct bench *bench) {
    for (uint32_t i = 0; i < bench->publisher_count; i++)
        if (outstanding(bench, &bench->clients[i]) > 0 || bench->clients[i].inflight > 0 ||
            bench->clients[i].output.size > 0)
            return true;
    return false;
}

static void write_off(struct bench *bench) {
    for (uint32_t i = 0; i < bench->publisher_count; i++)
        bench->clients[i].written_off += outstanding(bench, &bench->clients[i]);
}

/* ---- the run ---- */

static double own_cpu_s(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / SECOND_NS;
}

static bool read_broker(const struct bench *bench, struct bench_process *process) {
    return bench->plan->broker_pid != 0 && bench_process_read(bench->plan->broker_pid, process);
}

struct measured {
    uint64_t start_ns;
    double own_cpu_s;
    struct bench_process broker;
};

static void begin_measuring(struct bench *bench, struct measured *measured) {
    bench->result->has_broker = read_broker(bench, &measured->broker);
    measured->own_cpu_s = own_cpu_s();
    measured->start_ns = bench_now_ns();
    bench->is_measuring = true;
}

static void end_measuring(struct bench *bench, const struct measured *measured) {
    struct bench_result *result = bench->result;
    bench->is_measuring = false;
    result->seconds = seconds_since(measured->start_ns);
    result->own_cpu_s = own_cpu_s() - measured->own_cpu_s;
    result->has_broker = result->has_broker && read_broker(bench, &result->broker);
    result->broker.cpu_s -= measured->broker.cpu_s;
}

/* True when a run of a number of messages has nothing more to wait for. */
static bool is_over(struct bench *bench, const struct pace *pace, struct progress *progress) {
    if (bench->plan->messages == 0 || pace->published < bench->plan->messages) return false;
    return !is_waiting(bench) || silence(bench, progress) > DRAIN_SILENCE_S;
}

/* Warm-up and measured time; or the number of messages, all of it measured. */
static void publish_all(struct bench *bench) {
    const struct bench_plan *plan = bench->plan;
    struct pace pace = {.start_ns = bench_now_ns()};
    struct progress progress = {0, 0};
    struct measured measured = {0, 0, {0, 0}};
    uint32_t turns = 0;
    for (;;) {
        double passed_s = seconds_since(pace.start_ns);
        if (!bench->is_measuring && (plan->messages > 0 || passed_s >= plan->warmup_s))
            begin_measuring(bench, &measured);
        if (plan->messages == 0 && passed_s >= plan->warmup_s + plan->seconds) break;
        if (bench->is_failed || is_over(bench, &pace, &progress)) break;
        publish_due(bench, &pace);
        turn(bench, wait_ns(bench, &pace));
        if (++turns % 64 == 0 && silence(bench, &progress) > STALL_S) write_off(bench);
    }
    end_measuring(bench, &measured);
}

static void drain(struct bench *bench) {
    struct progress progress = {0, 0};
    while (!bench->is_failed && is_waiting(bench) && silence(bench, &progress) <= DRAIN_SILENCE_S)
        turn(bench, TURN_MAX_NS);
}

static void count(struct bench *bench) {
    struct bench_result *result = bench->result;
    for (uint32_t i = 0; i < bench->publisher_count; i++) {
        const struct bench_client *publisher = &bench->clients[i];
        uint64_t expected = publisher->published * bench->plan->subscribers;
        result->expected += expected;
        result->arrived += publisher->delivered;
        result->lost += expected > publisher->delivered ? expected - publisher->delivered : 0;
    }
    uint64_t refused = result->refused * bench->plan->subscribers;
    result->lost -= refused < result->lost ? refused : result->lost;
}

bool bench_run(const struct bench_plan *plan, struct bench_result *result) {
    struct bench bench = {.plan = plan, .result = result, .epoll = -1};
    *result = (struct bench_result){0};
    prctl(PR_SET_TIMERSLACK, 1); /* a rate is kept to the microsecond */
    if (!init(&bench)) {
        complain("memory is short; ask for fewer clients");
        bench.is_failed = true;
    }
    if (!bench.is_failed && connect_all(&bench)) {
        publish_all(&bench);
        drain(&bench);
        count(&bench);
        for (uint32_t i = 0; i < bench.client_count && !bench.is_failed; i++)
            bench_client_leave(&bench, &bench.clients[i]);
    }
    deinit(&bench);
    return !bench.is_failed;
}
