/* What a broker may try that has the gossip key and a valid token of its own. */
#include "tests/hostile/attacks.h"

#include "gossip/inspect.h"

#include <stdio.h>
#include <string.h>

#define FLOOD_AT_ONCE 100u /* packets to each in a round: 5,000 a second */

/* ---- saying ---- */

/* A statement signed by us, whatever it says. */
static void sign(struct gossip *gossip, uint8_t *body, size_t size) {
    gossip->crypto.sign(gossip->crypto.context, body, size, body + size);
}

/* Sealed and sent at once, under this id. */
static void say_as(struct hostile *hostile, const struct member *to, const struct member_id *id,
                   const struct message *message) {
    struct gossip *gossip = hostile->gossip;
    uint8_t plain[SEAL_PLAIN_MAX], sealed[GOSSIP_DATAGRAM_MAX];
    struct packet_header header = {.id = *id,
                                   .epoch = gossip->self->epoch,
                                   .incarnation = gossip->self->incarnation,
                                   .sequence = registry_sequence(gossip->self->registry),
                                   .holds_epoch = to->epoch,
                                   .holds_incarnation = to->incarnation,
                                   .holds_sequence = registry_sequence(to->registry)};
    struct wire_out out;
    memcpy(header.echo, to->echo, sizeof header.echo);
    cookie_for(gossip, &to->path, header.cookie);
    wire_out_init(&out, plain, sizeof plain);
    header_put(&out, &header);
    message_put(&out, message);
    if (out.failed) return;
    size_t size = seal_close(&gossip->seal, &gossip->crypto, plain, out.size, sealed);
    if (size > 0) hostile->send(hostile->context, &to->path, sealed, size);
}

/* By datagram, and over the link, if there is one. */
static void say(struct hostile *hostile, struct member *to, const struct message *message) {
    struct gossip *gossip = hostile->gossip;
    say_as(hostile, to, &gossip->self->id, message);
    if (!to->way.link) return;
    struct packet packet;
    struct gossip_address link = {.family = ADDRESS_LINK};
    memcpy(link.ip, to->id.bytes, sizeof to->id.bytes);
    packet_begin(&packet, to, &link);
    packet_add(gossip, &packet, message);
    packet_end(gossip, &packet, false);
}

static void say_to_all(struct hostile *hostile, const struct message *message) {
    struct member *to;
    for (size_t i = 0; (to = members_visible(hostile->gossip, i)); i++)
        say(hostile, to, message);
}

/* The pair of others with this number; false when there is none. */
static bool pair(struct gossip *gossip, size_t number, struct member **to, struct member **about) {
    size_t count = 0;
    while (members_visible(gossip, count))
        count++;
    if (count == 0) return false;
    *to = members_visible(gossip, number / count);
    *about = members_visible(gossip, number % count);
    return *to && *about;
}

/* ---- what others say ---- */

static size_t write_entry(struct gossip *gossip, const struct member_id *owner, uint64_t epoch, uint64_t sequence,
                          unsigned kind, const char *filter, uint8_t out[MESSAGE_BLOB_MAX]) {
    struct wire_out body;
    wire_out_init(&body, out, ENTRY_BODY_MAX);
    wire_put_array(&body, 6);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, owner);
    wire_put_uint(&body, epoch);
    wire_put_uint(&body, sequence);
    wire_put_uint(&body, kind);
    wire_put_bytes(&body, filter, strlen(filter));
    sign(gossip, out, body.size);
    return body.size + GOSSIP_SIGNATURE_SIZE;
}

/* Rows of others: put, withdrawn, in this life and in the next; the owner itself is told too. */
static void forge(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t bytes[MESSAGE_BLOB_MAX];
    struct member *to, *about;
    for (size_t i = 0; pair(gossip, i, &to, &about); i++) {
        const struct {
            unsigned kind;
            const char *filter;
        } changes[] = {{GOSSIP_NEWSUB, "forged/#"},
                       {GOSSIP_NEWPUB, "forged/topic"},
                       {GOSSIP_NEWSUB | ENTRY_DELETE, "wanted/#"},
                       {GOSSIP_NEWPUB | ENTRY_DELETE, "wanted/here"},
                       {GOSSIP_NEWSUB, "gone/#"}};
        uint64_t sequence = registry_sequence(about->registry) + 1 + round % 2;
        size_t size = write_entry(gossip, &about->id, about->epoch + round % 3, sequence, changes[round % 5].kind,
                                  changes[round % 5].filter, bytes);
        say(hostile, to, &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
    }
}

/* Heads of others: that they leave, that they are elsewhere, that they live again, that their rows are others. */
static void behead(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t bytes[HEAD_SIZE_MAX];
    struct member *to, *about;
    for (size_t i = 0; pair(gossip, i, &to, &about); i++) {
        struct head head = {.id = about->id,
                            .epoch = about->epoch + round % 3,
                            .incarnation = about->incarnation + 1 + round,
                            .sequence = registry_sequence(about->registry) + 5,
                            .checkpoint_sequence = round % 4 ? 0 : registry_sequence(about->registry) + 5,
                            .checkpoint_size = round % 4 ? 0 : 700,
                            .leaving = round % 2,
                            .cloned = round % 5 == 0,
                            .address = round % 3 ? gossip->self->address : about->address};
        memcpy(head.name, about->name, sizeof head.name);
        size_t size = head_sign(&head, &gossip->crypto, bytes);
        if (size > 0) say(hostile, to, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
    }
}

/* In the name of others, from our own address. */
static void pretend(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    struct member *to, *about;
    for (size_t i = 0; pair(gossip, i, &to, &about); i++) {
        const struct message messages[] = {
            {.kind = MESSAGE_PONG, .number = round},
            {.kind = MESSAGE_WHO, .version.id = to->id},
            {.kind = MESSAGE_HAD,
             .version = {.id = to->id, .epoch = to->epoch, .incarnation = to->incarnation, .sequence = UINT64_MAX}},
            {.kind = MESSAGE_ACCUSE,
             .version = {.id = gossip->self->id, .epoch = gossip->self->epoch, .incarnation = UINT64_MAX},
             .other = about->id},
            {.kind = MESSAGE_SEEN_AT, .address = {.family = 4, .ip = {203, 0, 113, 9}, .port = 7}},
        };
        say_as(hostile, to, &about->id, &messages[round % 5]);
    }
}

/* ---- what was said before ---- */

/* NULL past the end. */
static const struct gossip_datagram *heard_at(const struct hostile *hostile, size_t index) {
    return index < HOSTILE_HEARD_MAX && index < hostile->heard_count ? &hostile->heard[index] : NULL;
}

struct repetition {
    struct hostile *hostile;
    enum message_kind kind;
};

static void repeat(void *context, const uint8_t *public_key, const uint8_t *bytes, size_t size) {
    const struct repetition *repetition = context;
    (void)public_key;
    say_to_all(repetition->hostile, &(struct message){.kind = repetition->kind, .bytes = bytes, .size = size});
}

/* All that is held of all owners, the dead too, and all datagrams that came, to where they came from and elsewhere. */
static void replay(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    struct gossip_inspected held;
    struct member *to;
    const struct gossip_datagram *heard;
    struct repetition repetition = {hostile, round % 2 ? MESSAGE_HEAD : MESSAGE_ENTRY};
    for (size_t i = 0; gossip_inspect_at(gossip, i, &held); i++)
        gossip_inspect_signed(gossip, &held.id, 64, repeat, &repetition);
    for (size_t i = round % 16; (heard = heard_at(hostile, i)); i += 16)
        for (size_t k = 0; (to = members_visible(gossip, k)); k++)
            hostile->send(hostile->context, &to->path, heard->bytes, heard->size);
}

/* ---- words about others ---- */

static void accuse(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    struct member *to, *about;
    for (size_t i = 0; pair(gossip, i, &to, &about); i++) {
        struct message accusation = {
            .kind = MESSAGE_ACCUSE,
            .version = {.id = about->id, .epoch = about->epoch, .incarnation = about->incarnation},
            .other = round % 4 ? gossip->self->id : to->id};
        say(hostile, to, &accusation);
    }
}

/* Thousands of brokers that nobody has ever seen, and what they publish. */
static void claim(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t records[MESSAGE_VERSIONS_MAX * MESSAGE_VERSION_SIZE];
    struct version version = {.epoch = 1, .incarnation = 1 + round, .sequence = UINT64_MAX};
    for (size_t i = 0; i < 10; i++) {
        for (size_t k = 0; k < MESSAGE_VERSIONS_MAX; k++) {
            wire_store_u64(version.id.bytes, chance_next(&gossip->chance));
            wire_store_u64(version.id.bytes + 8, chance_next(&gossip->chance));
            version.id.bytes[0] = 7;
            version_store(records + k * MESSAGE_VERSION_SIZE, &version);
        }
        say_to_all(
            hostile,
            &(struct message){
                .kind = MESSAGE_VERSIONS, .number = 7, .other = {{255}}, .bytes = records, .size = sizeof records});
        say_to_all(hostile, &(struct message){.kind = MESSAGE_HAVE, .version = version});
    }
}

/* ---- what it says of itself ---- */

/* Its own log without end: everybody's topics as its own. Each entry is told twice, as some come late and are beyond
 * the window; every 16 rounds it goes on behind what its core has made of it meanwhile. */
static void advertise(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t bytes[MESSAGE_BLOB_MAX];
    uint64_t first = registry_sequence(gossip->self->registry) + 1 + round % 16 * 4;
    for (uint64_t sequence = first; sequence < first + 8; sequence++) {
        struct wire_out body;
        wire_out_init(&body, bytes, ENTRY_BODY_MAX);
        wire_put_array(&body, 4 + 2 * 50);
        wire_put_uint(&body, 'E');
        wire_put_id(&body, &gossip->self->id);
        wire_put_uint(&body, gossip->self->epoch);
        wire_put_uint(&body, sequence);
        for (uint64_t k = 0; k < 50; k++) {
            char filter[32];
            int size = snprintf(filter, sizeof filter, "dev/%llu", (unsigned long long)(sequence * 50 + k));
            wire_put_uint(&body, k % 2 ? GOSSIP_NEWPUB : GOSSIP_NEWSUB);
            wire_put_bytes(&body, filter, (size_t)size);
        }
        if (body.failed) return;
        sign(gossip, bytes, body.size);
        say_to_all(hostile,
                   &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = body.size + GOSSIP_SIGNATURE_SIZE});
    }
}

/* One thing to one, and another to the next. */
static void equivocate(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t bytes[MESSAGE_BLOB_MAX];
    struct member *to;
    uint64_t sequence = registry_sequence(gossip->self->registry) + 1;
    for (size_t i = 0; (to = members_visible(gossip, i)); i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "tale/%zu", i);
        size_t size =
            write_entry(gossip, &gossip->self->id, gossip->self->epoch, sequence, GOSSIP_NEWSUB, filter, bytes);
        say(hostile, to, &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        struct head head = {.id = gossip->self->id,
                            .epoch = gossip->self->epoch,
                            .incarnation = gossip->self->incarnation + 1 + round,
                            .sequence = sequence + i,
                            .checkpoint_sequence = sequence + i,
                            .checkpoint_size = 700 * i,
                            .address = gossip->self->address};
        memset(head.checkpoint_root, (int)i, sizeof head.checkpoint_root);
        size = head_sign(&head, &gossip->crypto, bytes);
        if (size > 0) say(hostile, to, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
    }
}

/* ---- much of it ---- */

static void flood(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    uint8_t buckets[MESSAGE_BUCKET_COUNT * 8] = {(uint8_t)round};
    struct member *to, *about;
    for (size_t i = 0; pair(gossip, i, &to, &about); i++)
        for (uint64_t k = 0; k < FLOOD_AT_ONCE; k++) {
            const struct message questions[] = {
                {.kind = MESSAGE_WHO, .version.id = about->id},
                {.kind = MESSAGE_WANT, .version.id = about->id},
                {.kind = MESSAGE_PING_REQ, .number = 1 + k, .version.id = about->id},
                {.kind = MESSAGE_DIGEST, .number = k},
                {.kind = MESSAGE_PING, .number = 1 + k},
                {.kind = MESSAGE_WANT_CHUNK, .version = {.id = about->id, .epoch = about->epoch}, .number = k},
            };
            const struct message list = {
                .kind = MESSAGE_BUCKETS, .number = 1u << 30, .bytes = buckets, .size = sizeof buckets};
            say(hostile, to, k % 2 ? &list : &questions[k / 2 % 6]);
        }
}

/* Questions that have to be answered, since whoever does not is dead. */
static void ping(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    struct member *to;
    for (size_t i = 0; (to = members_visible(gossip, i)); i++)
        for (uint64_t k = 0; k < 2 * FLOOD_AT_ONCE; k++)
            say_as(hostile, to, &gossip->self->id,
                   &(struct message){.kind = MESSAGE_PING, .number = 1 + round * FLOOD_AT_ONCE + k});
}

/* Nothing that opens, and what opens and is nothing. */
static void garbage(struct hostile *hostile, uint64_t round) {
    struct gossip *gossip = hostile->gossip;
    struct member *to;
    for (size_t i = 0; (to = members_visible(gossip, i)); i++)
        for (uint64_t k = 0; k < 20; k++) {
            uint8_t bytes[GOSSIP_DATAGRAM_MAX];
            size_t size = 1 + chance_below(&gossip->chance, sizeof bytes);
            for (size_t b = 0; b < size; b++)
                bytes[b] = (uint8_t)chance_next(&gossip->chance);
            hostile->send(hostile->context, &to->path, bytes, size);
            size = 1 + size % MESSAGE_REASON_MAX;
            bytes[0] = (uint8_t)(0x90 + round % 16);
            say(hostile, to, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
            say(hostile, to, &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        }
}

/* ---- the door ---- */

static const struct {
    const char *word;
    hostile_attack *attack;
} attacks[] = {
    {"ping", ping},     {"forge", forge},           {"behead", behead},   {"pretend", pretend},
    {"replay", replay}, {"accuse", accuse},         {"claim", claim},     {"advertise", advertise},
    {"flood", flood},   {"equivocate", equivocate}, {"garbage", garbage},
};

const char *hostile_word_at(size_t index) {
    return index < sizeof attacks / sizeof *attacks ? attacks[index].word : NULL;
}

hostile_attack *hostile_attack_named(const char *word) {
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++)
        if (strcmp(attacks[i].word, word) == 0) return attacks[i].attack;
    return NULL;
}

void hostile_hear(struct hostile *hostile, const struct gossip_address *from, const uint8_t *bytes, size_t size) {
    if (size > GOSSIP_DATAGRAM_MAX) return;
    struct gossip_datagram *heard = &hostile->heard[hostile->heard_count++ % HOSTILE_HEARD_MAX];
    heard->to = *from;
    heard->size = size;
    memcpy(heard->bytes, bytes, size);
}
