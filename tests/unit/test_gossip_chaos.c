/* Kills, restarts, cuts and losses in any order; afterwards all agree, and on what is true. */
#include "gossip_net.h"

enum { NODES = 6, ROWS = 12 };

struct truth {
    bool rows[NODES][ROWS];
};

static void name_row(char out[32], int owner, int row) {
    snprintf(out, 32, "truth/%d/%d", owner, row);
}

static void step(struct net *net, struct truth *truth) {
    int node = (int)(net_random(net) % NODES), other = (int)(net_random(net) % NODES);
    struct net_node *at = &net->nodes[node];
    switch (net_random(net) % 10) {
    case 0:
        if (at->gossip) {
            at->saved_epoch = gossip_epoch(at->gossip);
            net_kill(net, node);
            memset(truth->rows[node], 0, sizeof truth->rows[node]);
        }
        break;
    case 1:
    case 2:
        if (!at->gossip) {
            bool lost_disk = net_random(net) % 4 == 0;
            at->epoch = lost_disk ? 1 : at->saved_epoch + 1;
            at->seed += 1000;
            at->bootstrap[0] = other;
            net_start(net, node);
        }
        break;
    case 3: net->cut[node][other] = true; break; /* one way */
    case 4: memset(net->cut, 0, sizeof net->cut); break;
    case 5: net->loss_percent = (uint32_t)(net_random(net) % 40); break;
    default:
        if (at->gossip) {
            char filter[32];
            int row = (int)(net_random(net) % ROWS);
            bool put = net_random(net) % 3 != 0;
            name_row(filter, node, row);
            net_row(net, node, filter, put);
            truth->rows[node][row] = put;
        }
    }
}

static void check(struct net *net, const struct truth *truth, int seed) {
    for (int at = 0; at < NODES; at++)
        for (int owner = 0; owner < NODES; owner++)
            for (int row = 0; row < ROWS; row++) {
                char filter[32];
                name_row(filter, owner, row);
                if (net_has_row(net, at, owner, filter) != truth->rows[owner][row])
                    fail_msg("seed %d: %s at %d is not as its owner says", seed, filter, at);
            }
}

static void after_any_chaos_all_agree_with_the_owners(void **unused) {
    (void)unused;
    uint64_t worst = 0;
    for (int seed = 1; seed <= 30; seed++) {
        struct net *net = net_new(NODES, (uint64_t)seed);
        struct truth truth = {0};
        for (int i = 0; i < NODES; i++) {
            net->nodes[i].limits.log_entries_max = 8; /* checkpoints all the time */
            net_start(net, i);
        }
        for (int i = 0; i < 250; i++) {
            step(net, &truth);
            net_run(net, net_random(net) % 400);
        }
        memset(net->cut, 0, sizeof net->cut);
        net->loss_percent = 0;
        for (int i = 0; i < NODES; i++) {
            /* Islands that know of no one in another would stay apart, so all get a ring of addresses. */
            net->nodes[i].bootstrap[0] = (i + 1) % NODES;
            if (net->nodes[i].gossip)
                gossip_set_bootstrap(net->nodes[i].gossip, net->now_ms, &net->nodes[(i + 1) % NODES].address, 1);
            if (!net->nodes[i].gossip) {
                net->nodes[i].epoch = net->nodes[i].saved_epoch + 1;
                net->nodes[i].seed += 1000;
                net_start(net, i);
            }
        }
        uint64_t start = net->now_ms;
        if (!net_until(net, net_agreed, 20000)) fail_msg("seed %d: no agreement in 20 s", seed);
        worst = net->now_ms - start > worst ? net->now_ms - start : worst;
        net_run(net, 100);
        check(net, &truth, seed);
        net_free(net);
    }
    print_message("agreed after %llu ms at the latest\n", (unsigned long long)worst);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_any_chaos_all_agree_with_the_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
