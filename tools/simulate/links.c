#include "tools/simulate/links.h"

#include "tools/simulate/memory.h"
#include "tools/simulate/world.h"

#include <stdlib.h>
#include <string.h>

#undef uthash_fatal
#define uthash_fatal(text) memory_is_short()
#include <uthash.h>

#define HANDSHAKES 2u              /* round trips after that of TCP: TLS, and who we are */
#define IDLE_US (60 * AGENDA_S)    /* a link that nobody keeps and nobody uses ends */
#define SILENCE_US (10 * AGENDA_S) /* a path that is cut for so long ends its links */

struct pair {
    uint32_t low, high;
};

struct link {
    struct pair pair;
    bool up;
    size_t place;                      /* among those that are up */
    uint32_t life;                     /* of the link between these two: what is under way of an earlier one is lost */
    uint64_t used_us, kept_us, cut_us; /* cut_us: since when; 0: it is not */
    uint64_t arrived_us[2];            /* the newest of each direction, for the order */
    UT_hash_handle hh;
};

enum parcel_kind { PARCEL_UP, PARCEL_DOWN, PARCEL_PACKET };

/* Something that arrives over a link. */
struct parcel {
    enum parcel_kind kind;
    uint32_t from, to, life, next_free;
    struct gossip_address dialled; /* PARCEL_UP of a dial to an address */
    size_t size;
    uint8_t *bytes;
};

struct links {
    struct link *all;
    struct link **up; /* those alone: in a large federation most pairs have had a link once */
    size_t up_count, up_room;
    struct parcel *parcels;
    size_t count, room;
    uint32_t free; /* the first + 1 */
};

struct links *links_new(void) {
    return memory_new(1, sizeof(struct links));
}

void links_free(struct links *links) {
    struct link *link, *next;
    if (!links) return;
    HASH_ITER(hh, links->all, link, next) {
        HASH_DEL(links->all, link);
        free(link);
    }
    for (size_t i = 0; i < links->count; i++)
        free(links->parcels[i].bytes);
    free(links->parcels);
    free(links->up);
    free(links);
}

static void set_up(struct links *links, struct link *link) {
    if (link->up) return;
    links->up = memory_room(links->up, &links->up_room, links->up_count + 1, sizeof *links->up);
    link->up = true;
    link->place = links->up_count;
    links->up[links->up_count++] = link;
}

static void set_down(struct links *links, struct link *link) {
    if (!link->up) return;
    link->up = false;
    struct link *last = links->up[--links->up_count];
    links->up[link->place] = last;
    last->place = link->place;
}

static struct link *find(struct links *links, uint32_t a, uint32_t b) {
    struct pair pair = {a < b ? a : b, a < b ? b : a};
    struct link *link;
    HASH_FIND(hh, links->all, &pair, sizeof pair, link);
    return link;
}

static struct link *find_or_make(struct links *links, uint32_t a, uint32_t b) {
    struct link *link = find(links, a, b);
    if (link) return link;
    link = memory_new(1, sizeof *link);
    link->pair = (struct pair){a < b ? a : b, a < b ? b : a};
    HASH_ADD(hh, links->all, pair, sizeof link->pair, link);
    return link;
}

static void post(struct world *world, const struct parcel *parcel, uint64_t at_us) {
    struct links *links = world->links;
    uint32_t number;
    if (links->free != 0) {
        number = links->free - 1;
        links->free = links->parcels[number].next_free;
    } else {
        links->parcels = memory_room(links->parcels, &links->room, links->count + 1, sizeof *links->parcels);
        number = (uint32_t)links->count++;
    }
    links->parcels[number] = *parcel;
    agenda_push(&world->agenda, at_us, EVENT_LINK, number);
}

/* Only brokers of this version and federation that are not copies of others make links. */
static bool may_link(const struct broker *broker) {
    return broker->node && broker->strategy->core && !broker->older &&
           (broker->sort == SORT_HONEST || broker->sort == SORT_HOSTILE);
}

static void dial(struct world *world, struct broker *broker, uint32_t to, const struct gossip_address *dialled,
                 uint32_t keep_ms) {
    if (to >= world->broker_max || to == broker->index || !may_link(&world->brokers[to])) return;
    struct link *link = find_or_make(world->links, broker->index, to);
    uint64_t now = world_now_us(world), took, more;
    if (now + keep_ms * AGENDA_MS > link->kept_us) link->kept_us = now + keep_ms * AGENDA_MS;
    if ((link->up && !dialled) || network_is_hidden(world->network, to)) return;
    if (!network_stream(world->network, broker->index, to, 1, true, &took)) return;
    for (uint32_t i = 0; i < HANDSHAKES; i++) {
        if (!network_stream(world->network, broker->index, to, 1, true, &more)) return;
        took += more;
    }
    struct parcel parcel = {.kind = PARCEL_UP, .from = broker->index, .to = to, .life = link->life};
    if (dialled) parcel.dialled = *dialled;
    post(world, &parcel, now + took);
}

static void wish(struct world *world, struct broker *broker, const struct gossip_link_wish *wish) {
    if (wish->kind == GOSSIP_LINK_DIAL) {
        dial(world, broker, network_host_at(world->network, &wish->address), &wish->address, 0);
        return;
    }
    uint32_t identity = world_identity(world, &wish->id);
    if (identity != UINT32_MAX) dial(world, broker, identity, NULL, wish->for_ms);
}

static void carry(struct world *world, struct broker *broker, const struct gossip_link_packet *packet) {
    uint32_t to = world_identity(world, &packet->to);
    struct link *link = to < world->broker_max ? find(world->links, broker->index, to) : NULL;
    uint64_t now = world_now_us(world), took, *arrived;
    if (!link || !link->up) return;
    if (!network_stream(world->network, broker->index, to, packet->size, false, &took))
        took = SILENCE_US; /* TCP goes on trying: it comes when the path is back, or the link ends */
    arrived = &link->arrived_us[broker->index < to];
    uint64_t at = now + took > *arrived ? now + took : *arrived;
    *arrived = at;
    link->used_us = now;
    uint8_t *bytes = memory_new(1, packet->size);
    memcpy(bytes, packet->bytes, packet->size);
    post(world,
         &(struct parcel){.kind = PARCEL_PACKET,
                          .from = broker->index,
                          .to = to,
                          .life = link->life,
                          .size = packet->size,
                          .bytes = bytes},
         at + world->brokers[to].slow_us);
}

void links_fetch(struct world *world, struct broker *broker) {
    struct gossip_link_packet packet;
    struct gossip_link_wish wished;
    if (!broker->strategy->core) return;
    struct gossip *core = broker->strategy->core(broker->node);
    while (gossip_next_link_packet(core, &packet))
        carry(world, broker, &packet);
    while (gossip_next_link_wish(core, &wished))
        if (may_link(broker)) wish(world, broker, &wished);
}

/* ---- ends ---- */

static void cut(struct world *world, struct link *link) {
    if (link->up)
        world_trace(world, &world->brokers[link->pair.low], "has no link to %s any more",
                    world->brokers[link->pair.high].name);
    set_down(world->links, link);
    link->life++;
    uint64_t now = world_now_us(world);
    uint32_t ends[2] = {link->pair.low, link->pair.high};
    for (int i = 0; i < 2; i++)
        post(world, &(struct parcel){.kind = PARCEL_DOWN, .from = ends[1 - i], .to = ends[i], .life = link->life}, now);
}

void links_end(struct world *world, struct broker *broker) {
    struct link *link, *next;
    HASH_ITER(hh, world->links->all, link, next)
    if (link->pair.low == broker->index || link->pair.high == broker->index) cut(world, link);
}

void links_poll(struct world *world) {
    struct links *links = world->links;
    uint64_t now = world_now_us(world);
    for (size_t i = links->up_count; i-- > 0;) {
        struct link *link = links->up[i];
        bool reaches = network_reaches(world->network, link->pair.low, link->pair.high) &&
                       network_reaches(world->network, link->pair.high, link->pair.low);
        link->cut_us = reaches ? 0 : link->cut_us > 0 ? link->cut_us : now;
        bool silent = !reaches && now - link->cut_us > SILENCE_US;
        bool idle = now > link->kept_us && now > link->used_us + IDLE_US;
        if (silent || idle) cut(world, link);
    }
}

/* ---- arrivals ---- */

static void come_up(struct world *world, const struct parcel *parcel, struct link *link) {
    struct broker *dialler = &world->brokers[parcel->from], *other = &world->brokers[parcel->to];
    if (!may_link(dialler) || !may_link(other)) return;
    struct gossip *core = dialler->strategy->core(dialler->node);
    const struct member_id *dialler_id = &world->id_of[dialler->identity], *other_id = &world->id_of[other->identity];
    if (parcel->dialled.family != 0) gossip_link_found(core, broker_now_ms(world, dialler), &parcel->dialled, other_id);
    bool new = !link->up;
    set_up(world->links, link);
    link->used_us = world_now_us(world);
    gossip_link_up(core, broker_now_ms(world, dialler), other_id);
    broker_touched(world, dialler);
    if (!new) return;
    world_trace(world, dialler, "has a link to %s", other->name);
    gossip_link_up(other->strategy->core(other->node), broker_now_ms(world, other), dialler_id);
    broker_touched(world, other);
}

static void go_down(struct world *world, const struct parcel *parcel, const struct link *link) {
    struct broker *broker = &world->brokers[parcel->to];
    if (!broker->node || !broker->strategy->core || link->up) return;
    gossip_link_down(broker->strategy->core(broker->node), broker_now_ms(world, broker),
                     &world->id_of[world->brokers[parcel->from].identity]);
    broker_touched(world, broker);
}

static void come_in(struct world *world, const struct parcel *parcel) {
    struct broker *broker = &world->brokers[parcel->to];
    if (!broker->node || !broker->strategy->core) return;
    gossip_link_receive(broker->strategy->core(broker->node), broker_now_ms(world, broker),
                        &world->id_of[world->brokers[parcel->from].identity], parcel->bytes, parcel->size);
    broker_touched(world, broker);
}

void links_on_event(struct world *world, uint32_t number) {
    struct links *links = world->links;
    struct parcel parcel = links->parcels[number];
    if (world->brokers[parcel.to].frozen_us > world_now_us(world)) {
        agenda_push(&world->agenda, world->brokers[parcel.to].frozen_us, EVENT_LINK, number);
        return;
    }
    links->parcels[number] = (struct parcel){.next_free = links->free};
    links->free = number + 1;
    struct link *link = find(links, parcel.from, parcel.to);
    if (link && link->life == parcel.life) {
        if (parcel.kind == PARCEL_UP) come_up(world, &parcel, link);
        if (parcel.kind == PARCEL_DOWN) go_down(world, &parcel, link);
        if (parcel.kind == PARCEL_PACKET && link->up) come_in(world, &parcel);
    }
    free(parcel.bytes);
}
