/* Which way packets take. Datagrams where they pass; the link to a member where they are not answered and the link is
 * (SWIM's fallback: memberlist pings over TCP too before it suspects). Once a member is reached by link only,
 * everything to it goes there, and datagrams are tried from time to time. */
#include "gossip/verbs.h"

#include <stdlib.h>
#include <string.h>

#define TICK_MS 1000u
#define MISSES 2u                   /* pings by datagram in a row without an answer, while the link answers; */
#define MISSES_BY_HELPER 3u         /* while only a helper does: then there is no link yet, and one costs a dial */
#define PASSES 3u                   /* trials in a row that are answered before datagrams are used again */
#define DOUBT_LOSSY (2 * DOUBT_BIT) /* of a ping; less: a quarter or more is lost */
#define TRY_MS 10000u
#define TRY_AGAIN_MS 500u
#define DARK_MS 5000u      /* nothing by datagram from anybody for so long, */
#define DARK_LINK_MS 2000u /* but, for so long at least, by link */
#define STAND_MS 15000u
#define PATIENCE_MS 2000u /* a link that is dialled when it is needed may take so long before a probe counts */
#define TELL_MS 3000u     /* a wish is repeated after this, and holds twice as long */
#define DIAL_FIRST_MS 1000u
#define DIAL_MAX_MS 30000u
#define DIAL_ANSWERED_MS 20000u
#define DIAL_FORGET_MS 60000u

struct gossip_address carrier_address(const struct member_id *id) {
    struct gossip_address address = {.family = ADDRESS_LINK};
    memcpy(address.ip, id->bytes, sizeof address.ip);
    return address;
}

static bool is_recent(const struct gossip *gossip, uint64_t at_ms) {
    return at_ms != NEVER && gossip->now_ms < at_ms + DARK_MS;
}

/* No datagram of anybody reaches us: then those who were never pinged need not be tried one by one. */
static bool is_dark(const struct gossip *gossip) {
    const struct carrier *carrier = &gossip->carrier;
    return is_recent(gossip, carrier->link_ms) && !is_recent(gossip, carrier->datagram_ms) &&
           carrier->link_since_ms != NEVER && gossip->now_ms >= carrier->link_since_ms + DARK_LINK_MS;
}

static bool is_cut(const struct gossip *gossip, const struct member *member) {
    return member->way.by_link || is_dark(gossip);
}

bool carrier_reaches(const struct gossip *gossip, const struct member *member) {
    return member->way.link || !is_cut(gossip, member);
}

static size_t wants_max(const struct gossip *gossip) {
    return gossip->limits.links_max < CARRIER_WANTS_MAX ? gossip->limits.links_max : CARRIER_WANTS_MAX;
}

uint32_t carrier_patience_ms(struct gossip *gossip, const struct member *member) {
    if (carrier_reaches(gossip, member)) return 0;
    carrier_want(gossip, member, CARRIER_NEED_MS);
    /* Where all have a link all the time, that it is missing says something. */
    return members_visible_count(gossip) > wants_max(gossip) ? PATIENCE_MS : 0;
}

static void wake(struct gossip *gossip, uint64_t at_ms) {
    gossip->carrier.next_ms = earlier(gossip->carrier.next_ms, at_ms);
}

static void set_by_link(struct gossip *gossip, struct member *member, bool by_link) {
    struct way *way = &member->way;
    if (way->by_link == by_link) return;
    way->by_link = by_link;
    way->misses = way->passes = way->silences = 0;
    way->doubt = 0;
    gossip->carrier.by_link_count += by_link ? 1u : (size_t)-1;
    if (!by_link) {
        gossip->carrier.try_all = true; /* what came back for one came back for others */
        wake(gossip, gossip->now_ms);
        return;
    }
    way->try_ms = gossip->now_ms + TRY_MS + chance_below(&gossip->chance, TRY_MS / 4);
    carrier_want(gossip, member, STAND_MS);
    stray_tell(gossip, member);
}

static void set_link(struct gossip *gossip, struct member *member, bool link) {
    if (member->way.link == link) return;
    member->way.link = link;
    gossip->carrier.link_count += link ? 1u : (size_t)-1;
    wake(gossip, gossip->now_ms + TICK_MS);
}

void carrier_forget(struct gossip *gossip, struct member *member) {
    gossip->carrier.by_link_count -= member->way.by_link;
    gossip->carrier.link_count -= member->way.link;
}

/* ---- packets ---- */

static void drop_oldest(struct carrier *carrier) {
    struct queued_datagram *oldest = carrier->packets;
    carrier->packets = oldest->next;
    if (!carrier->packets) carrier->packets_last = NULL;
    carrier->packet_count--;
    free(oldest);
}

void carrier_enqueue(struct gossip *gossip, const struct gossip_address *to, const uint8_t *plain, size_t size) {
    struct carrier *carrier = &gossip->carrier;
    struct queued_datagram *queued = malloc(sizeof *queued + size);
    if (!queued) {
        gossip->counters.queue_dropped++;
        return;
    }
    queued->next = NULL;
    queued->to = *to;
    queued->size = size;
    memcpy(queued->bytes, plain, size);
    if (carrier->packet_count >= gossip->limits.datagrams_queued_max) {
        drop_oldest(carrier);
        gossip->counters.queue_dropped++;
    }
    if (carrier->packets_last)
        carrier->packets_last->next = queued;
    else
        carrier->packets = queued;
    carrier->packets_last = queued;
    carrier->packet_count++;
    gossip->counters.link_packets_sent++;
    gossip->counters.link_bytes_sent += size;
}

bool gossip_next_link_packet(struct gossip *gossip, struct gossip_link_packet *packet) {
    struct queued_datagram *queued = gossip->carrier.packets;
    if (!queued) return false;
    memcpy(packet->to.bytes, queued->to.ip, sizeof packet->to.bytes);
    packet->size = queued->size;
    memcpy(packet->bytes, queued->bytes, queued->size);
    drop_oldest(&gossip->carrier);
    return true;
}

void carrier_free(struct gossip *gossip) {
    while (gossip->carrier.packets)
        drop_oldest(&gossip->carrier);
}

bool carrier_send_one(struct gossip *gossip, struct member *member, const struct message *message) {
    if (!member->way.link) return false;
    struct gossip_address to = carrier_address(&member->id);
    struct packet packet;
    packet_begin(&packet, member, &to);
    packet_add(gossip, &packet, message);
    packet_end(gossip, &packet, false);
    return true;
}

/* ---- links that are wanted ---- */

static void set_due(struct carrier *carrier, bool *due, bool to) {
    if (*due == to) return;
    *due = to;
    carrier->due_count += to ? 1u : (uint32_t)-1;
}

static struct carrier_want *want_of(struct gossip *gossip, const struct member_id *id) {
    for (size_t i = 0; i < CARRIER_WANTS_MAX; i++)
        if (gossip->carrier.wants[i].until_ms != 0 && id_equal(&gossip->carrier.wants[i].id, id))
            return &gossip->carrier.wants[i];
    return NULL;
}

/* A slot that is free, or that of the link whose time ends first. */
static struct carrier_want *want_slot(struct gossip *gossip, uint64_t until_ms) {
    struct carrier_want *first = &gossip->carrier.wants[0];
    for (size_t i = 0; i < wants_max(gossip); i++)
        if (gossip->carrier.wants[i].until_ms < first->until_ms) first = &gossip->carrier.wants[i];
    return first->until_ms < until_ms ? first : NULL;
}

void carrier_want(struct gossip *gossip, const struct member *member, uint32_t for_ms) {
    struct carrier_want *want = want_of(gossip, &member->id);
    uint64_t until_ms = gossip->now_ms + for_ms;
    if (member->self) return;
    if (!want) {
        want = want_slot(gossip, until_ms);
        if (!want) return;
        set_due(&gossip->carrier, &want->due, false);
        *want = (struct carrier_want){.id = member->id, .tell_ms = gossip->now_ms};
        wake(gossip, gossip->now_ms);
    }
    if (until_ms > want->until_ms) want->until_ms = until_ms;
}

static struct carrier_dial *dial_slot(struct gossip *gossip, const struct gossip_address *address) {
    struct carrier *carrier = &gossip->carrier;
    struct carrier_dial *oldest = &carrier->dials[0];
    for (size_t i = 0; i < CARRIER_DIALS_MAX; i++) {
        struct carrier_dial *dial = &carrier->dials[i];
        if (dial->wait_ms != 0 && address_equal(&dial->address, address)) {
            if (gossip->now_ms < dial->asked_ms + DIAL_FORGET_MS) return dial;
            oldest = dial;
            break;
        }
        if (dial->asked_ms < oldest->asked_ms) oldest = dial;
    }
    set_due(carrier, &oldest->due, false);
    if (oldest == &carrier->dials[carrier->dial_count]) carrier->dial_count++; /* else it was used before */
    *oldest =
        (struct carrier_dial){.address = *address, .next_ms = gossip->now_ms + DIAL_FIRST_MS, .wait_ms = DIAL_FIRST_MS};
    return oldest;
}

static void call(struct gossip *gossip, const struct gossip_address *address, bool at_once) {
    if (address->family != 4 && address->family != 6) return;
    struct carrier_dial *dial = dial_slot(gossip, address);
    bool first = dial->asked_ms == 0;
    dial->asked_ms = gossip->now_ms;
    if (gossip->now_ms < dial->next_ms && !(first && at_once)) return;
    dial->next_ms = gossip->now_ms + dial->wait_ms + chance_below(&gossip->chance, dial->wait_ms / 4 + 1);
    dial->wait_ms = dial->wait_ms * 2 < DIAL_MAX_MS ? dial->wait_ms * 2 : DIAL_MAX_MS;
    set_due(&gossip->carrier, &dial->due, true);
}

void carrier_dial(struct gossip *gossip, const struct gossip_address *address) {
    call(gossip, address, false);
}

void carrier_stray(struct gossip *gossip, const struct gossip_address *from) {
    struct carrier *carrier = &gossip->carrier;
    for (size_t i = 0; i < carrier->dial_count; i++) {
        struct carrier_dial *dial = &carrier->dials[i];
        if (dial->wait_ms <= 2 * DIAL_FIRST_MS || !address_equal(&dial->address, from) ||
            gossip->now_ms < dial->stray_ms || gossip->now_ms >= dial->asked_ms + DIAL_FORGET_MS)
            continue;
        dial->stray_ms = gossip->now_ms + DIAL_MAX_MS;
        dial->wait_ms = 2 * DIAL_FIRST_MS;
        dial->next_ms = gossip->now_ms + dial->wait_ms;
        set_due(carrier, &dial->due, true);
    }
}

void carrier_heard(struct gossip *gossip) {
    struct carrier *carrier = &gossip->carrier;
    for (size_t i = 0; !gossip->over_link && i < carrier->dial_count; i++) {
        struct carrier_dial *dial = &carrier->dials[i];
        if (dial->wait_ms == 0 || !address_equal(&dial->address, &gossip->source)) continue;
        dial->next_ms = gossip->now_ms + DIAL_ANSWERED_MS;
        set_due(carrier, &dial->due, false);
    }
}

bool gossip_next_link_wish(struct gossip *gossip, struct gossip_link_wish *wish) {
    struct carrier *carrier = &gossip->carrier;
    for (size_t i = 0; carrier->due_count > 0 && i < CARRIER_WANTS_MAX; i++) {
        struct carrier_want *want = &carrier->wants[i];
        if (!want->due) continue;
        set_due(carrier, &want->due, false);
        *wish = (struct gossip_link_wish){.kind = GOSSIP_LINK_KEEP, .id = want->id, .for_ms = 2 * TELL_MS};
        return true;
    }
    for (size_t i = 0; carrier->due_count > 0 && i < carrier->dial_count; i++) {
        struct carrier_dial *dial = &carrier->dials[i];
        if (!dial->due) continue;
        set_due(carrier, &dial->due, false);
        *wish = (struct gossip_link_wish){.kind = GOSSIP_LINK_DIAL, .address = dial->address};
        return true;
    }
    return false;
}

/* ---- what the caller says of links ---- */

static void enter(struct gossip *gossip, uint64_t now_ms) {
    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;
}

void gossip_link_up(struct gossip *gossip, uint64_t now_ms, const struct member_id *id) {
    enter(gossip, now_ms);
    struct member *member = members_make(gossip, id);
    if (!member || member->self) return;
    set_link(gossip, member, true);
    catchup_on_link(gossip, member);
    ring_link_up(gossip, member);
    if (member_is_visible(member) && member->state == MEMBER_ALIVE && !is_cut(gossip, member) &&
        member->probe.deadline_ms == NEVER)
        return;
    struct gossip_address to = carrier_address(id);
    probe_by(gossip, member, &to);
    if (!member->known) identity_ask(gossip, member);
    rumors_wake(gossip);
}

void gossip_link_down(struct gossip *gossip, uint64_t now_ms, const struct member_id *id) {
    enter(gossip, now_ms);
    struct member *member = members_find(gossip, id);
    if (!member || !member->way.link) return;
    set_link(gossip, member, false);
    if (is_cut(gossip, member)) carrier_want(gossip, member, STAND_MS);
}

void gossip_link_found(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *address,
                       const struct member_id *id) {
    enter(gossip, now_ms);
    rejoin_on_link(gossip, address, id);
}

void gossip_link_receive(struct gossip *gossip, uint64_t now_ms, const struct member_id *from, const uint8_t *bytes,
                         size_t size) {
    enter(gossip, now_ms);
    gossip->counters.link_packets_received++;
    gossip->counters.link_bytes_received += size;
    if (size > GOSSIP_LINK_PACKET_MAX || id_equal(from, &gossip->self->id)) {
        gossip->counters.malformed++;
        return;
    }
    if (gossip->carrier.link_since_ms == NEVER) gossip->carrier.link_since_ms = gossip->now_ms;
    gossip->carrier.link_ms = gossip->now_ms;
    gossip->source = carrier_address(from);
    gossip->over_link = true;
    receive_packet(gossip, bytes, size);
    gossip->over_link = false;
    quiet_settle(gossip);
}

void carrier_note(struct gossip *gossip, struct member *sender) {
    set_link(gossip, sender, true); /* also if it was forgotten in the meantime */
    gossip->authentic = sender->known;
}

/* ---- what pings say of the ways ---- */

void carrier_asked(struct member *member) {
    member->way.asked = member->probe.number;
}

void carrier_unanswered(struct gossip *gossip, struct member *member) {
    struct way *way = &member->way;
    struct gossip_address link = carrier_address(&member->id);
    way->silent = !(way->by_link && way->link);
    if (way->silent && way->silences < UINT8_MAX) way->silences++;
    if (way->silent && way->doubt < UINT16_MAX / 2) way->doubt = (uint16_t)(way->doubt + member->probe.doubt);
    if (way->link)
        probe_by(gossip, member, &link);
    else if (way->silences >= MISSES)
        carrier_want(gossip, member, CARRIER_NEED_MS);
}

/* Another way was answered while a datagram was not. */
static void miss(struct gossip *gossip, struct member *member, uint8_t enough) {
    struct way *way = &member->way;
    if (way->silent && way->misses < UINT8_MAX) way->misses++;
    way->silent = false;
    if (enough == 0 || (way->misses >= enough && way->doubt >= DOUBT_DOWN)) set_by_link(gossip, member, true);
}

void carrier_answered(struct gossip *gossip, struct member *member, uint64_t number) {
    struct way *way = &member->way;
    if (gossip->over_link) {
        if (number == member->probe.number) miss(gossip, member, is_dark(gossip) ? 0 : MISSES);
        return;
    }
    if (number != way->asked) return;
    way->asked = 0;
    way->silent = way->other_key = false;
    way->silences = way->misses = 0;
    way->doubt = 0;
    if (!way->by_link) return;
    /* Where much is lost for all, three in a row would not come for long. */
    if (++way->passes >= (doubt_of_ping(gossip->loss) > DOUBT_LOSSY ? PASSES : 1)) {
        set_by_link(gossip, member, false);
        return;
    }
    way->try_ms = gossip->now_ms + TRY_AGAIN_MS;
    wake(gossip, way->try_ms);
}

void carrier_answered_helper(struct gossip *gossip, struct member *member) {
    miss(gossip, member, MISSES_BY_HELPER);
}

/* ---- time ---- */

static void try_datagrams(struct gossip *gossip, struct member *member, bool at_once) {
    struct way *way = &member->way;
    struct gossip_address to = member->path_proven || member->address.family == 0 ? member->path : member->address;
    if (gossip->now_ms < way->try_ms && !at_once) {
        wake(gossip, way->try_ms);
        return;
    }
    if (way->asked != 0) way->passes = 0; /* the last one was not answered */
    way->try_ms = gossip->now_ms + (way->passes > 0 ? TRY_AGAIN_MS : TRY_MS);
    way->asked = chance_next(&gossip->chance) | 1;
    wake(gossip, way->try_ms);
    struct packet packet;
    struct message ping = {.kind = MESSAGE_PING, .number = way->asked};
    packet_begin(&packet, member, &to);
    packet.dial = member->known && address_equal(&to, &member->address);
    packet_add(gossip, &packet, &ping);
    packet_end(gossip, &packet, false);
}

/* All who are reached by link only, if they are few. Of many: our successor, whom we ask most, those with whom there is
 * a link already, and, one more at each tick, some others, so that news has many ways to go; half of the links at most,
 * so that the other half is there for whoever has to be asked. */
static void stand(struct gossip *gossip) {
    size_t few = wants_max(gossip) / 2, linked = 0, cut = 0, others = 0;
    struct member_id other, next, after = {{0}};
    struct member copy;
    const struct member *member;
    bool passed = false, has_next = false;
    for (; (member = members_look_after(gossip, &after, &copy)); after = member->id) {
        passed = passed || member->self;
        if (!member_is_visible(member) || !is_cut(gossip, member)) continue;
        if (cut++ == 0 || (passed && !has_next)) next = member->id; /* the first of all, if none comes behind us */
        has_next = has_next || passed;
        if (!member->way.link && chance_below(&gossip->chance, (uint32_t)++others) == 0) other = member->id;
    }
    bool all = cut <= wants_max(gossip);
    for (size_t i = 0; cut > 0 && i + 1 < members_visible_count(gossip); i++) {
        member = members_look(gossip, i, &copy);
        if (!is_cut(gossip, member)) continue;
        if (all || (member->way.link && linked++ < few)) carrier_want(gossip, member, STAND_MS);
    }
    if (all || cut == 0) return;
    if ((member = members_look_for(gossip, &next, &copy))) carrier_want(gossip, member, STAND_MS);
    if (linked < few && others > 0 && (member = members_look_for(gossip, &other, &copy)))
        carrier_want(gossip, member, STAND_MS);
}

static void tend_want(struct gossip *gossip, struct carrier_want *want) {
    const struct member *member = members_find(gossip, &want->id);
    if (!member || gossip->now_ms >= want->until_ms) {
        set_due(&gossip->carrier, &want->due, false);
        want->until_ms = 0;
        return;
    }
    if (gossip->now_ms >= want->tell_ms) {
        want->tell_ms = gossip->now_ms + TELL_MS;
        set_due(&gossip->carrier, &want->due, true);
    }
    if (!member->way.link && !member_is_visible(member)) call(gossip, &member->address, true);
}

void carrier_tick(struct gossip *gossip) {
    struct carrier *carrier = &gossip->carrier;
    if (gossip->now_ms < carrier->next_ms) return;
    carrier->next_ms = NEVER;
    if (carrier->by_link_count > 0 || (carrier->link_count > 0 && is_dark(gossip))) {
        stand(gossip);
        bool all = carrier->try_all;
        carrier->try_all = false;
        for (size_t i = 0; i < gossip->members.awake_count; i++)
            if (members_awake(gossip, i)->way.by_link) try_datagrams(gossip, members_awake(gossip, i), all);
    }
    bool any = carrier->link_count > 0 || carrier->by_link_count > 0;
    for (size_t i = 0; i < CARRIER_WANTS_MAX; i++) {
        if (carrier->wants[i].until_ms != 0) tend_want(gossip, &carrier->wants[i]);
        any = any || carrier->wants[i].until_ms != 0;
    }
    if (any) wake(gossip, gossip->now_ms + TICK_MS);
    /* What was wished for just now has been tended to as well. */
    if (carrier->next_ms <= gossip->now_ms) carrier->next_ms = gossip->now_ms + TICK_MS;
}

uint64_t carrier_deadline_ms(const struct gossip *gossip) {
    return gossip->carrier.next_ms;
}
