/* What a run of hobnob bench found, for people and for programs. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "table.h"

#define UNIT_US 10.0 /* latencies are counted in 100 ns */

static double per_second(uint64_t count, double seconds) {
    return seconds > 0 ? (double)count / seconds : 0;
}

static double latency_us(const struct bench_result *result, double share) {
    return bench_histogram_at(&result->latency, share) / UNIT_US;
}

/* Deliveries; publications when nobody subscribes. */
static uint64_t work(const struct bench_plan *plan, const struct bench_result *result) {
    return plan->subscribers > 0 ? result->delivered : result->published;
}

static void print_load(const struct bench_plan *plan) {
    printf("%u topic%s, of each %u publisher%s and %u subscriber%s; %zu B, QoS %d, MQTT %s", plan->topics,
           plan->topics == 1 ? "" : "s", plan->publishers, plan->publishers == 1 ? "" : "s", plan->subscribers,
           plan->subscribers == 1 ? "" : "s", plan->payload_size, plan->qos, plan->version == 5 ? "5.0" : "3.1.1");
    if (plan->rate > 0) printf(", %.6g publications/s", plan->rate);
    printf("\n");
}

void bench_print(const struct bench_plan *plan, const struct bench_result *result) {
    print_load(plan);
    printf("measured    %.2f s\n", result->seconds);
    printf("published   %llu, %.0f/s\n", (unsigned long long)result->published,
           per_second(result->published, result->seconds));
    printf("delivered   %llu, %.0f/s\n", (unsigned long long)result->delivered,
           per_second(result->delivered, result->seconds));
    printf("lost        %llu of %llu", (unsigned long long)result->lost, (unsigned long long)result->expected);
    if (result->disordered > 0) printf(", %llu again or out of order", (unsigned long long)result->disordered);
    if (result->refused > 0) printf(", %llu publications refused", (unsigned long long)result->refused);
    printf("\n");
    if (result->latency.total > 0)
        printf("latency     p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us\n", latency_us(result, 0.5),
               latency_us(result, 0.9), latency_us(result, 0.99), latency_us(result, 0.999),
               result->latency.max / UNIT_US);
    if (result->has_broker)
        printf("broker      %.2f s CPU (%.0f %%), %.0f %s per CPU second, %.1f MiB resident\n", result->broker.cpu_s,
               100 * result->broker.cpu_s / result->seconds, per_second(work(plan, result), result->broker.cpu_s),
               plan->subscribers > 0 ? "deliveries" : "publications", (double)result->broker.resident_size / (1 << 20));
    printf("bench       %.2f s CPU (%.0f %%)\n", result->own_cpu_s, 100 * result->own_cpu_s / result->seconds);
}

static json_t *latency_json(const struct bench_result *result) {
    if (result->latency.total == 0) return json_null();
    return json_pack("{s:f,s:f,s:f,s:f,s:f}", "p50", latency_us(result, 0.5), "p90", latency_us(result, 0.9), "p99",
                     latency_us(result, 0.99), "p99_9", latency_us(result, 0.999), "max",
                     result->latency.max / UNIT_US);
}

static json_t *broker_json(const struct bench_plan *plan, const struct bench_result *result) {
    if (!result->has_broker) return json_null();
    return json_pack("{s:f,s:f,s:I}", "cpu_s", result->broker.cpu_s, "work_per_cpu_s",
                     per_second(work(plan, result), result->broker.cpu_s), "resident_bytes",
                     (json_int_t)result->broker.resident_size);
}

bool bench_print_json(const struct bench_plan *plan, const struct bench_result *result) {
    json_t *load = json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:f}", "topics", (int)plan->topics, "publishers",
                             (int)plan->publishers, "subscribers", (int)plan->subscribers, "qos", plan->qos, "version",
                             plan->version, "payload_bytes", (int)plan->payload_size, "rate", plan->rate);
    json_t *found =
        json_pack("{s:o,s:f,s:I,s:I,s:f,s:f,s:I,s:I,s:I,s:I,s:I,s:o,s:o,s:f}", "load", load, "seconds", result->seconds,
                  "published", (json_int_t)result->published, "delivered", (json_int_t)result->delivered,
                  "published_per_s", per_second(result->published, result->seconds), "delivered_per_s",
                  per_second(result->delivered, result->seconds), "expected", (json_int_t)result->expected, "arrived",
                  (json_int_t)result->arrived, "lost", (json_int_t)result->lost, "disordered",
                  (json_int_t)result->disordered, "refused", (json_int_t)result->refused, "latency_us",
                  latency_json(result), "broker", broker_json(plan, result), "bench_cpu_s", result->own_cpu_s);
    json_t *answer = json_pack("{s:o}", "bench", found);
    bool good = answer != NULL && json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0;
    if (good) putchar('\n');
    json_decref(answer);
    return good;
}
