/* What a client that takes topic aliases understands, as MQTT 5.0 section 3.3.2.3.4 says: a topic with an alias gives
 * the alias its meaning on this connection, an alias without a topic is looked up. */
#ifndef TESTS_UNIT_ALIAS_READER_H
#define TESTS_UNIT_ALIAS_READER_H

#include "mqtt_client.h"

enum { ALIAS_TOPIC_MAX = 8192, ALIASES_MAX = 64 };

struct alias_reader {
    struct client client;
    unsigned alias_max;     /* none higher may come */
    size_t packet_size_max; /* nothing longer may come; 0: anything */
    char *topics[ALIASES_MAX + 1];
    unsigned set, set_anew, used; /* how often */
};

struct publication {
    char topic[ALIAS_TOPIC_MAX];
    unsigned qos, id, alias; /* 0: none */
    bool without_topic, dup, retain;
    const uint8_t *payload;
    size_t payload_size;
};

HELPER void reader_forget_aliases(struct alias_reader *reader) {
    for (unsigned i = 0; i <= ALIASES_MAX; i++) {
        free(reader->topics[i]);
        reader->topics[i] = NULL;
    }
}

HELPER void reader_cut(struct alias_reader *reader) {
    client_cut(&reader->client);
    reader_forget_aliases(reader);
}

/* The alias among the properties, 0 if there is none. Of the others those with numbers may be there. */
HELPER unsigned read_alias(struct cursor *cursor) {
    size_t length = take_length(cursor);
    const uint8_t *end = cursor->at + length;
    unsigned alias = 0;

    assert_true(end <= cursor->end);
    while (cursor->at < end) {
        unsigned id = take8(cursor);
        switch (id) {
        case 0x02: cursor->at += 4; break;
        case 0x0B: take_length(cursor); break;
        case 0x23:
            assert_int_equal(alias, 0);
            alias = take16(cursor);
            assert_int_not_equal(alias, 0);
            break;
        default: fail_msg("property %02x", id);
        }
    }
    assert_ptr_equal(cursor->at, end);
    return alias;
}

HELPER void learn(struct alias_reader *reader, struct publication *out, const uint8_t *topic, size_t topic_size) {
    char **place = &reader->topics[out->alias];

    assert_true(topic_size < sizeof out->topic && out->alias <= reader->alias_max && out->alias <= ALIASES_MAX);
    out->without_topic = topic_size == 0;
    if (out->without_topic) {
        assert_true(out->alias > 0);
        assert_non_null(*place);
        strcpy(out->topic, *place);
        reader->used++;
        return;
    }
    memcpy(out->topic, topic, topic_size);
    out->topic[topic_size] = '\0';
    if (out->alias == 0) return;
    *(*place == NULL ? &reader->set : &reader->set_anew) += 1;
    free(*place);
    *place = malloc(topic_size + 1);
    assert_non_null(*place);
    strcpy(*place, out->topic);
}

/* The next PUBLISH, which ends with the reader's next look at its output; false if there is none. What is asked for is
 * answered: the flow of QoS 2 goes on by itself. */
HELPER bool reader_next(struct alias_reader *reader, struct publication *out) {
    struct client *client = &reader->client;

    client_read(client);
    while (client->got_at < client->got_size) {
        struct cursor cursor = {client->got + client->got_at, client->got + client->got_size};
        unsigned first = take8(&cursor);
        size_t length = take_length(&cursor), topic_size;
        const uint8_t *topic;

        assert_true(length <= (size_t)(cursor.end - cursor.at));
        cursor.end = cursor.at + length;
        assert_true(reader->packet_size_max == 0 ||
                    (size_t)(cursor.end - (client->got + client->got_at)) <= reader->packet_size_max);
        client->got_at = (size_t)(cursor.end - client->got);
        if (first >> 4 == 6) say_ack(client, 7, take16(&cursor));
        if (first >> 4 == 14) fail_msg("DISCONNECT %02x", take8(&cursor));
        if (first >> 4 != 3) continue;
        *out = (struct publication){.qos = (first >> 1) & 3, .dup = first & 8, .retain = first & 1};
        topic_size = take16(&cursor);
        topic = cursor.at;
        cursor.at += topic_size;
        if (out->qos > 0) out->id = take16(&cursor);
        out->alias = client->version == 5 ? read_alias(&cursor) : 0;
        learn(reader, out, topic, topic_size);
        out->payload = cursor.at;
        out->payload_size = (size_t)(cursor.end - cursor.at);
        return true;
    }
    return false;
}

HELPER void reader_answer(struct alias_reader *reader, const struct publication *publication) {
    if (publication->qos > 0) say_ack(&reader->client, publication->qos == 1 ? 4 : 5, publication->id);
}

#endif
