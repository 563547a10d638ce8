/* Two strangers at the broker's door, and clients that behave beside them. Whatever the strangers send, the others get
 * what they should: each message once, the sleeper what it missed, one of a group, a newcomer the retained message.
 * Inputs of every other pair of sizes have a store, that commits and crashes where they say: what was acknowledged
 * outlives it.
 *
 * The input is a list of chunks of three bytes and some more: the first says which stranger, whether its connection
 * breaks before and whether it stops (or begins again) to read; the second what the others do and how much time
 * passes; the third how many bytes the stranger sends.
 */
#include "tests/fuzz/witness.h"
#include "tests/unit/model_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PUBLISHER, LISTENER, SLEEPER, MEMBER_1, MEMBER_2, NEWCOMER, WITNESSES };

struct stranger {
    broker_handle handle;
    bool is_deaf;
};

struct state {
    struct broker *broker;
    uint64_t now, runs; /* runs: of the broker */
    struct stranger strangers[2];
    struct witness witnesses[WITNESSES];
    char topic[40], kept_topic[40], group[48];
    uint8_t sent; /* messages to topic */
    struct {
        uint8_t qos;
        uint16_t packet_id;
        bool was_awake; /* the sleeper, when it was published */
        bool is_unsure; /* there was a crash before it was acknowledged */
    } messages[WITNESS_MESSAGES_MAX];
    int kept; /* -1: none */
    uint16_t kept_packet_id;
    bool kept_is_unsure;
    bool has_store;
    struct model_store store;
    uint64_t stored; /* record */
};

/* Nobody takes a witness's place. */
static uint8_t may_connect(void *context, const struct broker_applicant *applicant, const char **why) {
    (void)context;
    (void)why;
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

/* The store applies what there is; with tells it says so. */
static void commit(struct state *state, bool tells) {
    struct broker_journal journal;
    if (!state->has_store) return;
    if (broker_take_journal(state->broker, &journal)) {
        model_apply_journal(&state->store, &journal);
        state->stored = journal.last;
        free(journal.bytes);
    }
    if (tells) broker_durable(state->broker, state->now, state->stored);
}

/* Until nobody waits for anything. */
static void settle(struct state *state) {
    for (unsigned i = 0; i < 8; i++) {
        pump(state);
        commit(state, true);
    }
    pump(state);
}

static void connect_stranger(struct state *state, struct stranger *stranger) {
    stranger->handle = broker_client_open(state->broker, state->now,
                                          &(struct broker_origin){.from_loopback = true, .address = "stranger"});
    stranger->is_deaf = false;
}

static void connect_witness(struct state *state, unsigned which) {
    witness_connect(&state->witnesses[which], state->broker, state->now);
    settle(state);
    assert(state->witnesses[which].is_in);
}

static void subscribe_witness(struct state *state, unsigned which, const char *filter, uint8_t qos) {
    witness_subscribe(&state->witnesses[which], state->broker, state->now, filter, qos);
    settle(state);
    assert(state->witnesses[which].granted == qos);
}

/* Topics that no input can name: they depend on all of it. */
static void name_topics(struct state *state, const uint8_t *data, size_t size) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    snprintf(state->topic, sizeof state->topic, "w/%016llx/live", (unsigned long long)hash);
    snprintf(state->group, sizeof state->group, "$share/g/%s", state->topic);
    snprintf(state->kept_topic, sizeof state->kept_topic, "w/%016llx/kept", (unsigned long long)hash);
}

static void start_broker(struct state *state) {
    struct broker_options options = {.name = "fuzz",
                                     .epoch = ++state->runs,
                                     .seed = 1,
                                     .durable = state->has_store,
                                     .questions = {.may_connect = may_connect}};
    options.limits.packet_size_max = 1 << 20;
    options.limits.topic_alias_out_max = 32;
    options.limits.queue_messages_max = WITNESS_MESSAGES_MAX;
    options.limits.output_bytes_max = 1 << 16;
    state->broker = broker_new(&options, state->now);
    assert(state->broker != NULL);
    broker_set_wall_offset(state->broker, 1000000);
    state->stored = 0;
    if (state->has_store) model_restore(&state->store, state->broker, state->now);
    for (unsigned i = 0; i < 2; i++)
        connect_stranger(state, &state->strangers[i]);
    connect_witness(state, PUBLISHER);
    connect_witness(state, LISTENER);
    subscribe_witness(state, LISTENER, state->topic, 2);
    for (unsigned i = MEMBER_1; i <= MEMBER_2; i++) {
        connect_witness(state, i);
        subscribe_witness(state, i, state->group, 2);
    }
}

static void begin(struct state *state, uint8_t version) {
    static const char *const ids[] = {"w-publisher", "w-listener", "w-sleeper", "w-member-1", "w-member-2", "w-new"};
    for (unsigned i = 0; i < WITNESSES; i++) {
        struct witness *witness = &state->witnesses[i];
        *witness = (struct witness){.client_id = ids[i], .version = version, .kept = -1};
        witness->keeps_session = i == SLEEPER;
    }
    state->now = 1000;
    state->kept = -1;
    start_broker(state);
    connect_witness(state, SLEEPER);
    subscribe_witness(state, SLEEPER, state->topic, 1);
}

/* What the store has is all that is left. */
static void crash(struct state *state) {
    const struct witness *publisher = &state->witnesses[PUBLISHER];
    if (!state->has_store) return;
    for (unsigned i = 0; i < state->sent; i++)
        if (state->messages[i].packet_id > 0 && !publisher->taken[state->messages[i].packet_id])
            state->messages[i].is_unsure = true;
    if (state->kept_packet_id > 0 && !publisher->taken[state->kept_packet_id]) state->kept_is_unsure = true;
    broker_free(state->broker);
    for (unsigned i = 0; i < WITNESSES; i++)
        witness_forget(&state->witnesses[i]);
    start_broker(state);
}

static bool has_ids_left(const struct state *state) {
    return state->witnesses[PUBLISHER].packet_id < WITNESS_IDS_MAX - 8;
}

static void publish(struct state *state, uint8_t qos, size_t padding) {
    struct witness *publisher = &state->witnesses[PUBLISHER];
    if (state->sent == WITNESS_MESSAGES_MAX || !has_ids_left(state)) return;
    witness_publish(publisher, state->broker, state->now, state->topic, qos, false, state->sent, padding, false);
    state->messages[state->sent].qos = qos;
    state->messages[state->sent].packet_id = qos > 0 ? publisher->packet_id : 0;
    state->messages[state->sent].was_awake = state->witnesses[SLEEPER].handle != 0;
    state->sent++;
}

static void keep(struct state *state, int number) {
    struct witness *publisher = &state->witnesses[PUBLISHER];
    if (!has_ids_left(state)) return;
    witness_publish(publisher, state->broker, state->now, state->kept_topic, 1, true, (uint8_t)(number & 0xFF), 0,
                    number < 0);
    state->kept = number;
    state->kept_packet_id = publisher->packet_id;
    state->kept_is_unsure = false;
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
    case 11: commit(state, true); break;
    case 12: commit(state, false); break;
    case 13: crash(state); break;
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

static void check_message(const struct state *state, unsigned number) {
    uint8_t qos = state->messages[number].qos, heard = state->witnesses[LISTENER].got[number],
            slept = state->witnesses[SLEEPER].got[number],
            shared = (uint8_t)(state->witnesses[MEMBER_1].got[number] + state->witnesses[MEMBER_2].got[number]);
    assert(heard <= 1 && shared <= 1);
    /* QoS 1 may come again after a crash. */
    assert(slept <= 1 || (qos > 0 && state->runs > 1));
    if (state->messages[number].is_unsure) return;
    assert(heard == 1 && shared == 1);
    if (qos > 0 || state->messages[number].was_awake) assert(slept >= 1);
}

static void check(struct state *state) {
    assert(state->witnesses[PUBLISHER].unacknowledged == 0);
    for (unsigned i = 0; i < state->sent; i++)
        check_message(state, i);
    if (!state->kept_is_unsure) assert(state->witnesses[NEWCOMER].kept == state->kept);
    if (!state->has_store) return;
    commit(state, true);
    struct model_store told = model_of(state->broker, state->now);
    assert(model_same(&told, &state->store));
    model_free(&told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct state state;
    state = (struct state){.has_store = (size & 2) != 0};
    name_topics(&state, data, size);
    begin(&state, (size & 1) != 0 ? MQTT_50 : MQTT_311);
    while (size >= 3) {
        size_t length = data[2] < size - 3 ? data[2] : size - 3;
        chunk(&state, data, data + 3, length);
        data += 3 + length, size -= 3 + length;
    }
    settle(&state);
    act(&state, 10);
    act(&state, 3);
    settle(&state);
    connect_witness(&state, NEWCOMER);
    subscribe_witness(&state, NEWCOMER, state.kept_topic, 1);
    check(&state);
    broker_free(state.broker);
    model_free(&state.store);
    for (unsigned i = 0; i < WITNESSES; i++)
        witness_deinit(&state.witnesses[i]);
    return 0;
}
