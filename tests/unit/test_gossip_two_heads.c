/* An honest owner that has signed two heads with one incarnation, as one does whose key another used for a moment: it
 * is asked until it says something newer, and nobody says that it does harm. */
#include "gossip_packet.h"

struct twin {
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size;
};

/* The head that node 0 has, under another name. */
static struct twin twin_of(struct net *net, char last_letter) {
    struct gossip *owner = net->nodes[0].gossip;
    struct twin twin;
    struct head head;
    assert_true(head_read(owner->self->head, owner->self->head_size, &head));
    head.name[strlen(head.name) - 1] = last_letter;
    twin.size = head_sign(&head, &owner->crypto, twin.bytes);
    assert_true(twin.size > 0);
    return twin;
}

/* What is said of it at once does not reach the owner. */
static void bring(struct net *net, int to, const struct twin *twin) {
    evidence_on_head(net->nodes[to].gossip, twin->bytes, twin->size);
    net->cut[to][0] = true;
    net_touched(net, to);
    net_drain(net, to);
    net->cut[to][0] = false;
}

static void assert_asked_and_answered(char last_letter, bool says_no_new_life) {
    struct net *net = net_new_running(5, 81);
    net_run(net, 2000);
    struct gossip *owner = net->nodes[0].gossip;
    if (says_no_new_life) owner->own.cloned_until_ms = net->now_ms + 60000;
    struct twin twin = twin_of(net, last_letter);
    uint64_t epoch = owner->self->epoch, incarnation = owner->self->incarnation;
    for (int i = 1; i < net->count; i++)
        bring(net, i, &twin);
    net_run(net, 15000);
    struct member_id id = net_id(net, 0);
    for (int i = 1; i < net->count; i++) {
        struct member_info info;
        struct member *held = members_find(net->nodes[i].gossip, &id);
        assert_true(gossip_member_find(net->nodes[i].gossip, net->now_ms, &id, &info));
        assert_int_equal(info.trouble, MEMBER_TROUBLE_NONE);
        assert_true(held->epoch > epoch || held->incarnation > incarnation);
        assert_null(strstr(net->nodes[i].last_text, "one thing for some brokers"));
    }
    net_free(net);
}

static void it_is_asked_by_the_one_that_it_does_not_know(void **state) {
    (void)state;
    assert_asked_and_answered('~', false); /* believed by all, */
    assert_asked_and_answered('!', false); /* or by nobody */
}

static void it_says_a_newer_one_while_it_begins_no_new_life(void **state) {
    (void)state;
    assert_asked_and_answered('~', true);
    assert_asked_and_answered('!', true);
}

/* What node 1 says of the owner. */
static bool loses_the_question(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    (void)to;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(net, datagram, plain, &header);
    struct member_id owner = net_id(net, 0);
    struct message message;
    struct head head;
    while (from == 1 && message_get(&in, &message))
        if (message.kind == MESSAGE_HEAD && head_read(message.bytes, message.size, &head) && id_equal(&head.id, &owner))
            return true;
    return false;
}

/* By helpers alone it is known to live, and it may know nothing of the question. */
static void who_does_not_answer_us_itself_is_not_blamed(void **state) {
    (void)state;
    struct net *net = net_new_running(5, 82);
    net_run(net, 2000);
    struct twin twin = twin_of(net, '~');
    net->cut[0][1] = net->cut[1][0] = true;
    net->loses = loses_the_question;
    evidence_on_head(net->nodes[1].gossip, twin.bytes, twin.size);
    net_touched(net, 1);
    net_drain(net, 1);
    struct member_id id = net_id(net, 0);
    struct member *held = members_find(net->nodes[1].gossip, &id);
    assert_true(two_states_are_known(held));
    net_run(net, 60000);
    assert_true(two_states_are_known(held));
    assert_int_equal(net->nodes[1].sees[0], MEMBER_ALIVE);
    assert_null(strstr(net->nodes[1].last_text, "one thing for some brokers"));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_asked_by_the_one_that_it_does_not_know),
        cmocka_unit_test(it_says_a_newer_one_while_it_begins_no_new_life),
        cmocka_unit_test(who_does_not_answer_us_itself_is_not_blamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
