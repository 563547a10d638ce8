/* One conversation that passes through every packet a client may send, as bytes: for tests that cut it, spoil it or let
 * it run short of memory.
 */
#ifndef TESTS_UNIT_CONVERSATION_H
#define TESTS_UNIT_CONVERSATION_H

#include "mqtt_client.h"

HELPER void add(struct packet *to, const struct packet *packet) {
    put(to, packet->bytes, packet->size);
}

HELPER struct packet conversation(int version) {
    struct packet all = {.size = 0}, packet;
    char large[1501];

    packet =
        connect_packet(version, &(struct connect){.id = "talker",
                                                  .resume = true,
                                                  .keep_alive = 60,
                                                  .properties = "11 00000064 21 0003 26 0001 6b 0001 76",
                                                  .user = "user",
                                                  .password = "password",
                                                  .will_topic = "will",
                                                  .will_payload = "gone",
                                                  .will_qos = 1,
                                                  .will_retain = true,
                                                  .will_properties = "18 00000002 02 0000000a 26 0001 6b 0001 76"});
    add(&all, &packet);
    put_hex(&all, version == 5 ? "82 0c 0001 02 0b05 0004 6d792f23 02" : "82 09 0001 0004 6d792f23 02"); /* my/# */
    put_hex(&all, version == 5 ? "82 0b 0002 00 0001 61 01 0001 62 28" : "82 0a 0002 0001 61 01 0001 62 00");
    packet = publish_packet(version, &(struct publish){.topic = "my/0",
                                                       .payload = "zero",
                                                       .retain = true,
                                                       .properties = "23 0001 01 01 26 0001 6b 0001 76"});
    add(&all, &packet);
    packet = publish_packet(
        version, &(struct publish){.topic = version == 5 ? "" : "my/0", .payload = "alias", .properties = "23 0001"});
    add(&all, &packet);
    packet = publish_packet(
        version,
        &(struct publish){
            .topic = "my/1", .payload = "one", .qos = 1, .id = 11, .properties = "02 0000003c 08 0001 72 09 0001 64"});
    add(&all, &packet);
    put_hex(&all, "40 02 0001");
    packet = publish_packet(version, &(struct publish){.topic = "my/2", .payload = "two", .qos = 2, .id = 12});
    add(&all, &packet);
    add(&all, &packet);
    put_hex(&all, "62 02 000c 50 02 0002 70 02 0002");
    memset(large, 'L', 1500);
    large[1500] = '\0';
    packet = publish_packet(version, &(struct publish){.topic = "a", .payload = large, .qos = 1, .id = 13});
    add(&all, &packet);
    put_hex(&all, "c0 00");
    put_hex(&all, version == 5 ? "a2 09 0003 00 0001 61 0001 7a" : "a2 08 0003 0001 61 0001 7a");
    put_hex(&all, version == 5 ? "e0 01 04" : "e0 00");
    return all;
}

#endif
