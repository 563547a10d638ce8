/* What is simulated: brokers and sites, the network between them, the load, and what goes wrong when. Read from YAML
 * (plan_read.h) or drawn from a seed (plan_draw.h). Nothing but numbers and names; the world (world.h) makes it happen.
 * All times are in microseconds of simulated time, probabilities from 0 to 1.
 */
#ifndef SIMULATE_PLAN_H
#define SIMULATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gossip/gossip.h"

#define PLAN_SITES_MAX 64u
#define PLAN_BROKERS_MAX 20000u
#define PLAN_NAME_MAX 48u /* of a site, with the zero; brokers are SITE-NUMBER */
#define PLAN_BOOTSTRAP_MAX 8u
#define PLAN_FAULT_SITES_MAX 8u
#define PLAN_ANY UINT32_MAX /* a broker or site that is drawn when it happens */
#define PLAN_NEVER UINT64_MAX

/* What one direction of a path is like. */
struct weather {
    uint32_t delay_us;  /* median; the spread is log-normal, */
    uint32_t jitter_us; /* with about this standard deviation */
    double loss;        /* each datagram alone */
    double burst_share; /* of the time it is bad (Gilbert-Elliott), */
    uint32_t burst_us;  /* for so long at a time on average, */
    double burst_loss;  /* with this loss; 0: 0.9 */
    double duplicate, corrupt;
    double reorder;       /* comes later, */
    uint32_t reorder_us;  /* by up to this */
    uint32_t mtu;         /* bytes of IP; larger datagrams vanish. 0: no limit */
    uint64_t bytes_per_s; /* 0: endless; shared by all of this direction */
    uint32_t queue_us;    /* what may wait for it; the rest is dropped. 0: 200 ms */
};

enum plan_nat { NAT_NONE, NAT_CONE, NAT_SYMMETRIC };

struct plan_site {
    char name[PLAN_NAME_MAX];
    uint32_t brokers;
    enum plan_nat nat;
    int line;
};

/* Between two sites, or within one; each direction has its own weather. */
struct plan_path {
    uint32_t from, to; /* sites */
    struct weather weather;
};

enum fault_kind {
    FAULT_CRASH,     /* no last words; starts again after `for` */
    FAULT_LEAVE,     /* in order; starts again after `for` */
    FAULT_PAUSE,     /* does not run, the socket's buffer fills: SIGSTOP, a suspended machine */
    FAULT_STALL,     /* the event loop is away for `amount` now and then */
    FAULT_SLOW,      /* all input is seen `amount` late */
    FAULT_CLOCK,     /* its wall clock jumps by `jump_ms` */
    FAULT_MOVE,      /* it has another address from now on */
    FAULT_CLONE,     /* a copy with the same key starts elsewhere */
    FAULT_OLD,       /* runs a version that knows only the first kinds of messages, until it is upgraded */
    FAULT_PARTITION, /* by `shape` */
    FAULT_LOSS,      /* everything to, from or between sites is lost with probability `share` */
    FAULT_MTU,       /* large datagrams vanish, one way */
    FAULT_FOREIGN,   /* a broker of another federation with the same key is told our addresses */
    FAULT_HOSTILE,   /* a broker with a valid token that forges, floods and accuses */
    FAULT_BLOCKED,   /* no datagram passes to or from a broker; links do */
    FAULT_ROTATE,    /* the gossip key is changed: a ring is given to a broker, every `amount` the next */
    FAULT_COUNT
};

enum fault_shape { SHAPE_HALF, SHAPE_THIRDS, SHAPE_ONE, SHAPE_RING, SHAPE_SITES };
enum fault_disk { DISK_KEPT, DISK_LOST, DISK_OLD };

struct plan_fault {
    enum fault_kind kind;
    uint64_t at_us, for_us; /* for_us PLAN_NEVER: to the end */
    uint64_t every_us;      /* again and again; 0: once */
    uint32_t broker;        /* PLAN_ANY: drawn; crash, pause and so on */
    uint32_t site;          /* of the drawn broker; PLAN_ANY: any */
    uint32_t count;         /* brokers that it happens to at once; 0 is 1 */
    enum fault_disk disk;
    enum fault_shape shape;
    uint32_t sites[PLAN_FAULT_SITES_MAX], site_count; /* SHAPE_SITES: these against the rest */
    uint64_t flap_us;                                 /* the cut comes and goes with this half period; 0: stays */
    bool at_once;                                     /* of a change of the key: the old one is gone with one step */
    bool one_way;                                     /* only what comes out of the smaller side is lost */
    uint64_t amount_us;
    int64_t jump_ms;
    double share;
};

struct plan_load {
    uint32_t publishers, subscribers; /* of each broker: rows of each kind */
    uint64_t change_us;               /* mean time between two changes of one broker's rows; 0: none */
    uint32_t filter_size;             /* bytes; 0: as short as they come */
};

struct plan {
    char title[128];
    uint64_t seed;
    uint32_t site_count, broker_count;
    struct plan_site sites[PLAN_SITES_MAX];
    struct weather weather; /* where no path says otherwise */
    struct plan_path *paths;
    size_t path_count, path_room;
    struct plan_load load;
    struct plan_fault *faults;
    size_t fault_count, fault_room;
    uint64_t chaos_us[FAULT_COUNT]; /* mean time between two such faults, anywhere; 0: none */
    uint64_t start_us;              /* over which the brokers are started */
    uint64_t duration_us;           /* then everything is healed, and */
    uint64_t settle_us;             /* within this time all must agree */
    bool calms;                     /* the weather turns good with the end of the faults */
    uint64_t idle_us;               /* quiet time at the beginning, to measure what idle brokers send */
    uint64_t token_us;              /* how long tokens are good; 0: for ever */
    uint32_t bootstrap_count;       /* the first so many brokers are everybody's bootstrap */
    double slow_share;              /* of the brokers see all input slow_us late, all the time */
    uint64_t slow_us;
    uint32_t drift_ppm; /* clocks run wrong by up to this */
    bool alone;         /* brokers share no memory, as if each had a process of its own */
    struct gossip_limits limits;
};

void plan_init(struct plan *plan);
void plan_free(struct plan *plan);
struct plan_fault *plan_add_fault(struct plan *plan);
struct plan_path *plan_add_path(struct plan *plan, uint32_t from, uint32_t to);
/* After sites or brokers have changed: broker_count brokers over the sites, in their present proportion. */
void plan_spread(struct plan *plan, uint32_t broker_count);
/* SITE-NUMBER; the number counts from 1 in its site. */
void plan_broker_name(const struct plan *plan, uint32_t broker, char name[GOSSIP_NAME_MAX + 1]);
uint32_t plan_site_of(const struct plan *plan, uint32_t broker);
const char *fault_name(enum fault_kind kind);

#endif
