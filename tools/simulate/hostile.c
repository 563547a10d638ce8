/* A broker with a valid token and the gossip key that does harm: it forges what others say, claims what is not so,
 * accuses everybody, floods, sends garbage behind a good seal and forges sources. A real core beside it keeps it a
 * member; the headers of that core's packets are used for the bad ones, so that they count as its own, and all are
 * numbered in one row, as otherwise they would be taken for a replay. */
#include "tools/simulate/world.h"

#include "gossip/message.h"
#include "gossip/seal.h"
#include "gossip/signed.h"
#include "tools/simulate/memory.h"

#include <stdlib.h>
#include <string.h>

#define HEARD_MAX 16u
#define ACT_EVERY_US (50 * AGENDA_MS)
#define PACKETS_AT_ONCE 6u
#define FLOOD_ROWS 20u /* a time; the budget of rows is soon over */

struct hostile {
    struct dice dice;
    struct packet_header *headers; /* by host: the last that went there */
    bool *known;
    struct {
        enum message_kind kind;
        size_t size;
        uint8_t bytes[MESSAGE_BLOB_MAX];
    } heard[HEARD_MAX]; /* signed by others, to be said again later */
    uint32_t heard_count, rows;
    uint8_t prefix[8]; /* of the core's nonces; zero: it has said nothing yet */
    uint32_t counter;  /* the next */
};

void hostile_begin(struct world *world, struct broker *broker) {
    struct hostile *hostile = broker->hostile = memory_new(1, sizeof *hostile);
    dice_init(&hostile->dice, dice_next(&world->chaos_dice), "hostile");
    hostile->headers = memory_new(world->broker_max, sizeof *hostile->headers);
    hostile->known = memory_new(world->broker_max, sizeof *hostile->known);
}

void hostile_end(struct broker *broker) {
    if (!broker->hostile) return;
    free(broker->hostile->headers);
    free(broker->hostile->known);
    free(broker->hostile);
    broker->hostile = NULL;
}

/* ---- sealing ---- */

static void seal(struct world *world, struct broker *broker, const uint8_t *plain, size_t size,
                 struct gossip_datagram *datagram) {
    struct gossip_crypto crypto = standin_crypto(NULL);
    struct gossip_key key = broker_key(world, broker);
    static const char federation[] = WORLD_FEDERATION;
    uint8_t aad[5 + sizeof federation - 1];
    datagram->bytes[0] = SEAL_VERSION;
    memcpy(datagram->bytes + 1, key.id, 4);
    memcpy(datagram->bytes + 5, broker->hostile->prefix, 8);
    uint32_t counter = broker->hostile->counter++;
    for (int i = 0; i < 4; i++)
        datagram->bytes[13 + i] = (uint8_t)(counter >> (24 - 8 * i));
    memcpy(aad, datagram->bytes, 5);
    memcpy(aad + 5, federation, sizeof federation - 1);
    crypto.seal(NULL, key.key, datagram->bytes + 5, aad, sizeof aad, plain, size, datagram->bytes + 17);
    datagram->size = size + SEAL_OVERHEAD;
}

/* A datagram of the core takes its place among the bad ones. */
static void seal_again(struct world *world, struct broker *broker, struct gossip_datagram *datagram) {
    struct hostile *hostile = broker->hostile;
    uint8_t plain[SEAL_PLAIN_MAX];
    size_t size = datagram->size - SEAL_OVERHEAD;
    struct gossip_key key = broker_key(world, broker);
    struct replay_place place;
    seal_place(datagram->bytes, &place);
    if (memcmp(hostile->prefix, datagram->bytes + 5, 8) != 0) { /* its first, or of another life */
        memcpy(hostile->prefix, datagram->bytes + 5, 8);
        hostile->counter = place.counter;
    }
    if (memcmp(key.id, datagram->bytes + 1, 4) != 0) return; /* about to change its key */
    memcpy(plain, datagram->bytes + 17, size);
    seal(world, broker, plain, size, datagram);
}

/* ---- listening ---- */

void hostile_speaks(struct world *world, struct broker *broker, struct gossip_datagram *datagram) {
    uint32_t to = network_host_at(world->network, &datagram->to);
    struct wire_in in;
    struct packet_header header;
    if (datagram->size <= SEAL_OVERHEAD) return;
    seal_again(world, broker, datagram);
    if (to == NETWORK_NOBODY) return;
    wire_in_init(&in, datagram->bytes + 17, datagram->size - SEAL_OVERHEAD);
    header_get(&in, &header);
    if (in.failed) return;
    broker->hostile->headers[to] = header;
    broker->hostile->known[to] = true;
}

void hostile_hears(struct broker *broker, const struct network_packet *packet) {
    struct hostile *hostile = broker->hostile;
    struct wire_in in;
    struct packet_header header;
    struct message message;
    if (packet->size <= SEAL_OVERHEAD) return;
    wire_in_init(&in, packet->bytes + 17, packet->size - SEAL_OVERHEAD);
    header_get(&in, &header);
    while (message_get(&in, &message)) {
        if ((message.kind != MESSAGE_HEAD && message.kind != MESSAGE_ENTRY) || message.size > MESSAGE_BLOB_MAX)
            continue;
        uint32_t slot = (uint32_t)dice_below(&hostile->dice, HEARD_MAX);
        if (hostile->heard_count < HEARD_MAX) slot = hostile->heard_count++;
        hostile->heard[slot].kind = message.kind;
        hostile->heard[slot].size = message.size;
        memcpy(hostile->heard[slot].bytes, message.bytes, message.size);
    }
}

/* ---- speaking ---- */

static void emit(struct world *world, struct broker *broker, uint32_t to, const struct gossip_address *source,
                 const uint8_t *plain, size_t size) {
    struct gossip_datagram datagram = {.to = network_address(world->network, to)};
    seal(world, broker, plain, size, &datagram);
    if (source)
        network_forge(world->network, broker->index, source, &datagram);
    else
        network_send(world->network, broker->index, &datagram);
}

/* Signed by its own key, whatever it says; the truth hears nothing of it. */
static bool sign_quietly(struct broker *broker, const uint8_t *bytes, size_t size, uint8_t *signature) {
    struct gossip_crypto crypto = standin_crypto(&broker->crypto);
    void (*listens)(void *, const uint8_t *, size_t) = broker->crypto.on_signed;
    broker->crypto.on_signed = NULL;
    bool good = crypto.sign(crypto.context, bytes, size, signature);
    broker->crypto.on_signed = listens;
    return good;
}

static void forge_entry(struct world *world, struct broker *broker, const struct broker *owner, struct message *message,
                        uint8_t *bytes) {
    static const char filter[] = "forged/by/a/hostile/broker";
    struct wire_out out;
    wire_out_init(&out, bytes, ENTRY_BODY_MAX);
    wire_put_array(&out, 6);
    wire_put_uint(&out, 'E');
    wire_put_id(&out, &world->id_of[owner->identity]);
    wire_put_uint(&out, owner->author ? author_epoch(owner->author) : 1);
    wire_put_uint(&out, (owner->author ? author_sequence(owner->author) : 0) + 1);
    wire_put_uint(&out, dice_below(&broker->hostile->dice, 2) ? 2 : 0x12);
    wire_put_bytes(&out, filter, sizeof filter - 1);
    sign_quietly(broker, bytes, out.size, bytes + out.size);
    *message = (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = out.size + GOSSIP_SIGNATURE_SIZE};
}

static void forge_head(struct world *world, struct broker *broker, const struct broker *owner, struct message *message,
                       uint8_t *bytes) {
    struct dice *dice = &broker->hostile->dice;
    struct gossip_crypto crypto = standin_crypto(&broker->crypto);
    void (*listens)(void *, const uint8_t *, size_t) = broker->crypto.on_signed;
    struct head head = {.id = world->id_of[owner->identity],
                        .epoch = (owner->author ? author_epoch(owner->author) : 1) + dice_below(dice, 3),
                        .incarnation = 1000 + dice_below(dice, 1000),
                        .sequence = dice_below(dice, 1000),
                        .address = network_address(world->network, broker->index),
                        .leaving = dice_below(dice, 2) != 0};
    memcpy(head.name, owner->name, sizeof head.name);
    broker->crypto.on_signed = NULL;
    size_t size = head_sign(&head, &crypto, bytes);
    broker->crypto.on_signed = listens;
    *message = (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size};
}

static void random_id(struct dice *dice, struct member_id *id) {
    for (size_t i = 0; i < sizeof id->bytes; i++)
        id->bytes[i] = (uint8_t)dice_next(dice);
}

/* bytes: MESSAGE_BLOB_MAX, for what the message points at. */
static void draw_message(struct world *world, struct broker *broker, struct message *message, uint8_t *bytes) {
    struct hostile *hostile = broker->hostile;
    struct dice *dice = &hostile->dice;
    const struct broker *owner = &world->brokers[dice_below(dice, world->broker_count)];
    struct version claim = {.id = world->id_of[owner->identity],
                            .epoch = (owner->author ? author_epoch(owner->author) : 1) + dice_below(dice, 2),
                            .incarnation = dice_below(dice, 40),
                            .sequence = dice_below(dice, 60)};
    *message = (struct message){.version = claim, .number = dice_next(dice), .bytes = bytes};
    switch (dice_below(dice, 13)) {
    case 0: forge_entry(world, broker, owner, message, bytes); break;
    case 1: forge_head(world, broker, owner, message, bytes); break;
    case 2:
    case 3:
    case 4:
        message->kind = MESSAGE_ACCUSE;
        message->other = world->id_of[dice_below(dice, 2) ? broker->identity : dice_below(dice, world->broker_count)];
        break;
    case 5: message->kind = MESSAGE_HAVE; break;
    case 6:
        message->kind = MESSAGE_HAVE;
        random_id(dice, &message->version.id);
        break;
    case 7:
        message->kind = MESSAGE_VERSIONS;
        message->number = claim.id.bytes[0] % MESSAGE_BUCKET_COUNT;
        memset(&message->version.id, 0, sizeof message->version.id);
        memset(&message->other, 0xff, sizeof message->other);
        version_store(bytes, &claim);
        message->size = MESSAGE_VERSION_SIZE;
        break;
    case 8:
        message->kind = MESSAGE_CHUNK;
        message->number = dice_below(dice, 2);
        memset(bytes, (int)dice_below(dice, 256), MESSAGE_CHUNK_SIZE);
        message->size = MESSAGE_CHUNK_SIZE;
        break;
    case 9:
        message->kind = MESSAGE_WANT;
        message->version.sequence = 0;
        break;
    case 10: message->kind = MESSAGE_PING_REQ; break;
    case 11:
        message->kind = MESSAGE_INDIRECT;
        message->flag = dice_below(dice, 2) != 0;
        break;
    default:
        message->kind = MESSAGE_HAD;
        if (hostile->heard_count == 0) break;
        uint64_t at = dice_below(dice, hostile->heard_count);
        message->kind = hostile->heard[at].kind;
        message->size = hostile->heard[at].size;
        memcpy(bytes, hostile->heard[at].bytes, message->size);
    }
}

static void put_garbage(struct dice *dice, struct wire_out *out) {
    uint8_t garbage[64];
    size_t size = 1 + dice_below(dice, sizeof garbage);
    for (size_t i = 0; i < size; i++)
        garbage[i] = dice_below(dice, 3) ? 0x91 : (uint8_t)dice_next(dice); /* arrays in arrays, and anything */
    wire_put_raw(out, garbage, size);
}

static void attack(struct world *world, struct broker *broker, uint32_t to) {
    struct hostile *hostile = broker->hostile;
    struct dice *dice = &hostile->dice;
    uint8_t plain[SEAL_PLAIN_MAX], bytes[MESSAGE_BLOB_MAX];
    struct wire_out out;
    struct message message;
    struct packet_header header = hostile->headers[to];
    wire_out_init(&out, plain, sizeof plain);
    bool pretends = dice_below(dice, 8) == 0; /* to be another, from its own address */
    if (pretends) header.id = world->id_of[dice_below(dice, world->broker_count)];
    header_put(&out, &header);
    for (uint64_t count = 1 + dice_below(dice, 3); count > 0; count--) {
        size_t good = out.size;
        draw_message(world, broker, &message, bytes);
        message_put(&out, &message);
        if (out.failed) wire_rewind(&out, good);
    }
    if (dice_below(dice, 6) == 0 && out.size + 64 < sizeof plain) put_garbage(dice, &out);
    emit(world, broker, to, NULL, plain, out.size);
}

/* A question from an address that never asked. */
static void amplify(struct world *world, struct broker *broker, uint32_t to) {
    struct dice *dice = &broker->hostile->dice;
    struct gossip_address victim = network_victim((uint32_t)dice_below(dice, 4));
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header = {.epoch = 1, .incarnation = 1};
    struct wire_out out;
    random_id(dice, &header.id);
    if (dice_below(dice, 2)) header.id = world->id_of[dice_below(dice, world->broker_count)];
    wire_out_init(&out, plain, sizeof plain);
    header_put(&out, &header);
    struct message ping = {.kind = MESSAGE_PING, .number = 1}, who = {.kind = MESSAGE_WHO};
    who.version.id = world->id_of[world->brokers[to].identity];
    message_put(&out, dice_below(dice, 2) ? &ping : &who);
    emit(world, broker, to, &victim, plain, out.size);
}

static void flood_rows(struct world *world, struct broker *broker) {
    for (uint32_t i = 0; i < FLOOD_ROWS; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "flood/%u/%u", broker->hostile->rows % 40, broker->hostile->rows);
        broker->hostile->rows++;
        broker->strategy->row(broker->node, broker_now_ms(world, broker), GOSSIP_NEWPUB, filter, strlen(filter), true);
    }
    broker_touched(world, broker);
}

void hostile_act(struct world *world, struct broker *broker) {
    struct hostile *hostile = broker->hostile;
    static const uint8_t none[8] = {0};
    if (!hostile || !broker->node) return;
    bool has_spoken = memcmp(hostile->prefix, none, sizeof none) != 0;
    for (uint32_t i = 0; i < PACKETS_AT_ONCE && has_spoken; i++) {
        uint32_t to = (uint32_t)dice_below(&hostile->dice, world->broker_count);
        if (!world->brokers[to].node) continue;
        if (hostile->known[to] && dice_below(&hostile->dice, 4) != 0)
            attack(world, broker, to);
        else
            amplify(world, broker, to);
    }
    if (dice_below(&hostile->dice, 20) == 0) flood_rows(world, broker);
    agenda_push(&world->agenda, world_now_us(world) + ACT_EVERY_US, EVENT_HOSTILE, broker->index);
}
