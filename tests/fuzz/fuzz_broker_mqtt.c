/* Two strangers and one honest client at the broker's door. The input is a list of chunks: one byte says who speaks,
 * how long time passes and whether the connection breaks first, one how many bytes follow. The honest client must be
 * served at the end.
 */
#include "broker/broker.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The strangers may be anyone but the honest client, who comes first. */
static uint8_t may_connect(void *context, const struct broker_applicant *applicant) {
    bool *honest_is_in = context;

    if (applicant->client_id_size != 6 || memcmp(applicant->client_id, "honest", 6) != 0) return 0;
    if (*honest_is_in) return 0x87;
    *honest_is_in = true;
    return 0;
}

static size_t drain(struct broker *broker, uint64_t now, broker_handle client) {
    struct broker_span spans[3];
    size_t total = 0, count;

    while ((count = broker_client_output(broker, client, spans, 3)) > 0) {
        size_t size = 0;
        for (size_t i = 0; i < count; i++)
            size += spans[i].size;
        broker_client_written(broker, now, client, size);
        total += size;
    }
    return total;
}

static void pump(struct broker *broker, uint64_t now) {
    struct broker_note note;
    broker_handle named;

    while (broker_next_client(broker, &named))
        drain(broker, now, named);
    while (broker_next_note(broker, &note)) {
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t hello[] = "\x10\x12\x00\x04MQTT\x04\x02\x00\x00\x00\x06honest\x82\x07\x00\x01\x00\x02ok\x01";
    static const uint8_t word[] = "\x32\x06\x00\x02ok\x00\x07";
    bool honest_is_in = false;
    struct broker_options options = {
        .name = "fuzz", .epoch = 1, .questions = {.context = &honest_is_in, .may_connect = may_connect}};
    broker_handle strangers[2], honest;
    uint64_t now = 1000;
    struct broker *broker;

    options.limits.packet_size_max = 1 << 20;
    options.limits.queue_messages_max = 50;
    options.limits.output_bytes_max = 1 << 16;
    broker = broker_new(&options, now);
    if (broker == NULL) abort();
    strangers[0] = broker_client_open(broker, now, &(struct broker_origin){.from_loopback = true, .address = "1"});
    strangers[1] = broker_client_open(broker, now, &(struct broker_origin){.from_loopback = true, .address = "2"});
    honest = broker_client_open(broker, now, &(struct broker_origin){.from_loopback = true, .address = "3"});
    broker_client_input(broker, now, honest, hello, sizeof hello - 1);
    if (drain(broker, now, honest) != 4 + 5) abort();

    while (size >= 2) {
        size_t length = data[1] < size - 2 ? data[1] : size - 2;
        broker_handle *speaker = &strangers[data[0] & 1];
        now += (uint64_t)(data[0] >> 4) << (data[0] >> 2 & 3) * 4;
        if (broker_deadline_ms(broker) <= now) broker_tick(broker, now);
        if (data[0] & 2) {
            broker_client_closed(broker, now, *speaker);
            *speaker =
                broker_client_open(broker, now, &(struct broker_origin){.from_loopback = true, .address = "again"});
        }
        broker_client_input(broker, now, *speaker, data + 2, length);
        pump(broker, now);
        data += 2 + length;
        size -= 2 + length;
    }
    broker_client_input(broker, now, honest, word, sizeof word - 1);
    /* PUBACK and, the topic being its own, the publication. */
    if (broker_client_ended(broker, honest) || drain(broker, now, honest) < 4) abort();
    broker_free(broker);
    return 0;
}
