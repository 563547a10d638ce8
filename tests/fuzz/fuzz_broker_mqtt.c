/* Two strangers at the broker's door, and clients that behave beside them. Whatever the strangers send, the others get
 * what they should: each message once, the sleeper what it missed, a newcomer the retained message.
 *
 * The input is a list of chunks of three bytes and some more: the first says which stranger, whether its connection
 * breaks before and whether it stops (or begins again) to read; the second what the others do and how much time
 * passes; the third how many bytes the stranger sends.
 */
#include "tests/fuzz/witness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PUBLISHER, LISTENER, SLEEPER, NEWCOMER, WITNESSES };

struct stranger {
    broker_handle handle;
    bool is_deaf;
};

struct state {
    struct broker *broker;
    uint64_t now;
    struct stranger strangers[2];
    struct witness witnesses[WITNESSES];
    char topic[40], kept_topic[40];
    uint8_t sent;                         /* messages to topic */
    uint8_t qos[WITNESS_MESSAGES_MAX];    /* of each */
    bool was_awake[WITNESS_MESSAGES_MAX]; /* the sleeper, when it was published */
    int kept;                             /* -1: none */
};

/* Nobody takes a witness's place. */
static uint8_t may_connect(void *context, const struct broker_applicant *applicant) {
    (void)context;
    bool is_witness = strcmp(applicant->origin->address, "witness") == 0;
    bool says_so = applicant->client_id_size >= 2 && memcmp(applicant->client_id, WITNESS_PREFIX, 2) == 0;
    return is_witness == says_so ? 0 : 0x87;
}

static void read_stranger(struct state *state, const struct stranger *stranger) {
    struct broker_span spans[3];
    size_t count;
    while (!stranger->is_deaf && (count = broker_client_output(state->broker, stranger->handle, spans, 3)) > 0) {
        size_t size = 0;
        for (size_t i = 0; i < count; i++)
            size += spans[i].size;
        broker_client_written(state->broker, state->now, stranger->handle, size);
    }
}

/* Until the broker has nothing more to say. */
static void pump(struct state *state) {
    struct broker_note note;
    broker_handle named;
    while (broker_next_client(state->broker, &named)) {
        for (unsigned i = 0; i < 2; i++)
            if (state->strangers[i].handle == named) read_stranger(state, &state->strangers[i]);
        for (unsigned i = 0; i < WITNESSES; i++)
            if (state->witnesses[i].handle == named && named != 0)
                witness_read(&state->witnesses[i], state->broker, state->now);
    }
    while (broker_next_note(state->broker, &note)) {
    }
}

static void connect_stranger(struct state *state, struct stranger *stranger) {
    stranger->handle = broker_client_open(state->broker, state->now,
                                          &(struct broker_origin){.from_loopback = true, .address = "stranger"});
    stranger->is_deaf = false;
}

static void connect_witness(struct state *state, unsigned which) {
    witness_connect(&state->witnesses[which], state->broker, state->now);
    pump(state);
    assert(state->witnesses[which].is_in);
}

static void subscribe_witness(struct state *state, unsigned which, const char *filter, uint8_t qos) {
    witness_subscribe(&state->witnesses[which], state->broker, state->now, filter, qos);
    pump(state);
    assert(state->witnesses[which].granted == qos);
}

/* Topics that no input can name: they depend on all of it. */
static void name_topics(struct state *state, const uint8_t *data, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    snprintf(state->topic, sizeof state->topic, "w/%016llx/live", (unsigned long long)hash);
    snprintf(state->kept_topic, sizeof state->kept_topic, "w/%016llx/kept", (unsigned long long)hash);
}

static void begin(struct state *state, uint8_t version) {
    struct broker_options options = {.name = "fuzz", .epoch = 1, .seed = 1, .questions = {.may_connect = may_connect}};
    options.limits.packet_size_max = 1 << 20;
    options.limits.queue_messages_max = WITNESS_MESSAGES_MAX;
    options.limits.output_bytes_max = 1 << 16;
    state->now = 1000;
    state->broker = broker_new(&options, state->now);
    assert(state->broker != NULL);
    static const char *const ids[] = {"w-publisher", "w-listener", "w-sleeper", "w-newcomer"};
    for (unsigned i = 0; i < WITNESSES; i++) {
        struct witness *witness = &state->witnesses[i];
        *witness = (struct witness){.client_id = ids[i], .version = version, .kept = -1};
        witness->keeps_session = i == SLEEPER;
    }
    state->kept = -1;
    for (unsigned i = 0; i < 2; i++)
        connect_stranger(state, &state->strangers[i]);
    connect_witness(state, PUBLISHER);
    connect_witness(state, LISTENER);
    subscribe_witness(state, LISTENER, state->topic, 2);
    connect_witness(state, SLEEPER);
    subscribe_witness(state, SLEEPER, state->topic, 1);
}

static void publish(struct state *state, uint8_t qos, size_t padding) {
    if (state->sent == WITNESS_MESSAGES_MAX) return;
    state->qos[state->sent] = qos;
    state->was_awake[state->sent] = state->witnesses[SLEEPER].handle != 0;
    witness_publish(&state->witnesses[PUBLISHER], state->broker, state->now, state->topic, qos, false, state->sent,
                    padding, false);
    state->sent++;
}

static void keep(struct state *state, int number) {
    witness_publish(&state->witnesses[PUBLISHER], state->broker, state->now, state->kept_topic, 1, true,
                    (uint8_t)(number & 0xFF), 0, number < 0);
    state->kept = number;
}

static void act(struct state *state, uint8_t verb) {
    struct witness *sleeper = &state->witnesses[SLEEPER];
    switch (verb) {
    case 1:
    case 2:
    case 3: publish(state, verb - 1, 0); break;
    case 4:
    case 5: publish(state, verb - 3, 3000); break;
    case 6: keep(state, state->sent); break;
    case 7: keep(state, -1); break;
    case 8: witness_leave(sleeper, state->broker, state->now, false); break;
    case 9: witness_leave(sleeper, state->broker, state->now, true); break;
    case 10:
        if (sleeper->handle == 0) connect_witness(state, SLEEPER);
        break;
    default: break;
    }
    pump(state);
}

static void chunk(struct state *state, const uint8_t *head, const uint8_t *bytes, size_t size) {
    struct stranger *stranger = &state->strangers[head[0] & 1];
    state->now += head[1] >= 16 ? 1u << (head[1] >> 4) : 0;
    if (broker_deadline_ms(state->broker) <= state->now) broker_tick(state->broker, state->now);
    if ((head[0] & 2) != 0) {
        broker_client_closed(state->broker, state->now, stranger->handle);
        connect_stranger(state, stranger);
    }
    if ((head[0] & 4) != 0) {
        stranger->is_deaf = !stranger->is_deaf;
        read_stranger(state, stranger);
    }
    broker_client_input(state->broker, state->now, stranger->handle, bytes, size);
    pump(state);
    act(state, head[1] & 15);
}

static void check(struct state *state) {
    const struct witness *listener = &state->witnesses[LISTENER], *sleeper = &state->witnesses[SLEEPER];
    assert(state->witnesses[PUBLISHER].unacknowledged == 0);
    for (unsigned i = 0; i < state->sent; i++) {
        assert(listener->got[i] == 1);
        if (state->qos[i] > 0 || state->was_awake[i]) assert(sleeper->got[i] == 1);
        assert(sleeper->got[i] <= 1);
    }
    assert(state->witnesses[NEWCOMER].kept == state->kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct state state;
    state = (struct state){.sent = 0};
    name_topics(&state, data, size);
    begin(&state, (size & 1) != 0 ? MQTT_50 : MQTT_311);
    while (size >= 3) {
        size_t length = data[2] < size - 3 ? data[2] : size - 3;
        chunk(&state, data, data + 3, length);
        data += 3 + length, size -= 3 + length;
    }
    act(&state, 10);
    act(&state, 3);
    connect_witness(&state, NEWCOMER);
    subscribe_witness(&state, NEWCOMER, state.kept_topic, 1);
    check(&state);
    broker_free(state.broker);
    for (unsigned i = 0; i < WITNESSES; i++)
        witness_deinit(&state.witnesses[i]);
    return 0;
}
