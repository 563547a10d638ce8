/* One peer of a broker, played by the fuzzer: the input is a row of frames on a link that is up, each behind two bytes
 * of its size. */
#include "broker/broker.h"
#include "broker/frames.h"
#include "broker/peering.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void who_is(void *context, const uint8_t key_thumbprint[32], const uint8_t *token, size_t token_size,
                   struct peer_answer *answer) {
    (void)context, (void)token, (void)token_size;
    answer->allowed = true;
    answer->valid_for_ms = UINT64_MAX;
    memcpy(answer->id.bytes, key_thumbprint, sizeof answer->id.bytes);
    memcpy(answer->name, "peer", 5);
}

static void collect(struct broker *broker, broker_handle link) {
    struct broker_span span;
    struct broker_row_change change;
    struct peer_id peer;
    while (broker_link_output(broker, 0, link, &span))
        broker_link_written(broker, 0, link);
    while (broker_next_row(broker, &change))
        broker_row_sequenced(broker, 0, change.ticket, change.ticket);
    while (broker_next_dial(broker, 0, &peer))
        broker_dial_failed(broker, 0, &peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t connect[] = {0x10, 13, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, 1, 'c'};
    static const uint8_t subscribe[] = {0x82, 8, 0, 1, 0, 3, 'a', '/', '#', 1};
    static const uint8_t publish[] = {0x31, 6, 0, 3, 'a', '/', 'b', 'x'};
    static const uint8_t key[32] = {9};
    struct broker_options options = {.name = "fuzzed", .id = {1}, .epoch = 1, .seed = 1};
    struct peer_questions questions = {.who_is = who_is};
    struct broker *broker = broker_new(&options, 0);
    if (!broker) return 0;
    broker_set_identity(broker, key, 1, &questions);
    broker_handle client = broker_client_open(broker, 0,
                                              &(struct broker_origin){.from_loopback = true, .address = "fuzzer"}),
                  link = broker_link_open(broker, 0, false, NULL);
    broker_client_input(broker, 0, client, connect, sizeof connect);
    broker_client_input(broker, 0, client, subscribe, sizeof subscribe);
    broker_client_input(broker, 0, client, publish, sizeof publish);
    broker_link_ready(broker, 0, link, key);

    struct frame_out out = {0};
    struct hello hello = {.protocol_min = 1,
                          .protocol_max = 1,
                          .name = "peer",
                          .name_size = 4,
                          .federation = "",
                          .epoch = 1,
                          .token = key,
                          .token_size = 1,
                          .stream = 1,
                          .first = 1,
                          .frame_size_max = 1u << 20};
    memcpy(hello.id, key, sizeof hello.id);
    frame_write_hello(&out, &hello);
    if (!out.failed) broker_link_input(broker, 0, link, out.bytes, out.size, true);
    frame_out_deinit(&out);
    while (size >= 2) {
        size_t frame_size = (size_t)(data[0] << 8 | data[1]);
        data += 2, size -= 2;
        if (frame_size > size) frame_size = size;
        broker_link_input(broker, 0, link, data, frame_size, true);
        data += frame_size, size -= frame_size;
        collect(broker, link);
    }
    broker_client_input(broker, 0, client, publish, sizeof publish);
    collect(broker, link);
    broker_free(broker);
    return 0;
}
