/* One connection of the load generator: bytes in, counts and acknowledgements out. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench_inside.h"
#include "complain.h"

#define NOT_OURS "a message came that is not of this run; choose another --topic, or see who publishes there"

uint64_t bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *host_of(const struct bench_plan *plan, const struct bench_client *client) {
    return client->is_publisher || plan->subscriber_host == NULL ? plan->host : plan->subscriber_host;
}

static const char *port_of(const struct bench_plan *plan, const struct bench_client *client) {
    return client->is_publisher || plan->subscriber_port == NULL ? plan->port : plan->subscriber_port;
}

static void fail(struct bench *bench, const struct bench_client *client, const char *what) {
    if (!bench->is_failed)
        complain("%s:%s: %s (%s of %s)", host_of(bench->plan, client), port_of(bench->plan, client), what,
                 client->is_publisher ? "a publisher" : "a subscriber", client->topic->name);
    bench->is_failed = true;
}

/* ---- output ---- */

/* Room for size bytes more at the end; NULL when memory is short. */
static uint8_t *reserve(struct bench *bench, struct bench_client *client, size_t size) {
    struct bench_bytes *output = &client->output;
    if (output->size + size > output->capacity) {
        size_t capacity = (output->size + size) * 2;
        uint8_t *grown = realloc(output->bytes, capacity);
        if (grown == NULL) {
            fail(bench, client, "memory is short; ask for fewer clients or a smaller window");
            return NULL;
        }
        output->bytes = grown;
        output->capacity = capacity;
    }
    if (!client->has_work) {
        client->has_work = true;
        bench->working[bench->working_count++] = client;
    }
    output->size += size;
    return output->bytes + output->size - size;
}

static void watch(struct bench *bench, struct bench_client *client, bool is_blocked) {
    if (client->is_blocked == is_blocked) return;
    client->is_blocked = is_blocked;
    struct epoll_event event = {.events = EPOLLIN | (is_blocked ? EPOLLOUT : 0u), .data.ptr = client};
    epoll_ctl(bench->epoll, EPOLL_CTL_MOD, client->fd, &event);
}

void bench_client_flush(struct bench *bench, struct bench_client *client) {
    struct bench_bytes *output = &client->output;
    client->has_work = false;
    if (client->state == BENCH_CLOSED || client->state == BENCH_DIALLING || output->size == 0) return;
    ssize_t size = send(client->fd, output->bytes, output->size, MSG_NOSIGNAL);
    if (size < 0 && errno != EAGAIN && errno != EINTR) {
        /* Why comes with what is read: a refusal may stand there. */
        if (errno != EPIPE && errno != ECONNRESET) fail(bench, client, strerror(errno));
        return;
    }
    size_t written = size > 0 ? (size_t)size : 0;
    output->size -= written;
    if (output->size > 0 && written > 0) memmove(output->bytes, output->bytes + written, output->size);
    watch(bench, client, output->size > 0);
}

static void append(struct bench *bench, struct bench_client *client, const uint8_t *bytes, size_t size) {
    uint8_t *at = reserve(bench, client, size);
    if (at != NULL) memcpy(at, bytes, size);
}

static void send_ack(struct bench *bench, struct bench_client *client, enum bench_type type, uint16_t packet_id) {
    uint8_t *at = reserve(bench, client, BENCH_ACK_SIZE);
    if (at != NULL) bench_write_ack(at, type, packet_id);
}

void bench_client_publish(struct bench *bench, struct bench_client *client, uint32_t count) {
    const struct bench_template *template = &client->topic->template;
    uint8_t *at = reserve(bench, client, template->size * count);
    if (at == NULL) return;
    struct bench_stamp stamp = {bench->time_100ns, client->number, (uint16_t)client->published};
    for (uint32_t i = 0; i < count; i++, at += template->size, stamp.number++) {
        if (++client->packet_id == 0) client->packet_id = 1;
        bench_write_publish(at, template, client->packet_id, &stamp);
    }
    client->published += count;
    if (template->qos > 0) client->inflight += count;
    if (bench->is_measuring) bench->result->published += count;
}

/* ---- input ---- */

/* Numbers run on per publisher; one that jumps ahead misses some, one from behind is a repetition or late. */
static void check_number(struct bench *bench, struct bench_client *client, const struct bench_stamp *stamp) {
    int16_t ahead = (int16_t)(stamp->number - client->expected[stamp->publisher]);
    if (ahead < 0) {
        bench->result->disordered++;
        return;
    }
    client->expected[stamp->publisher] = (uint16_t)(stamp->number + 1);
}

static void on_publish(struct bench *bench, struct bench_client *client, const struct bench_packet *packet) {
    struct bench_stamp stamp;
    stamp.publisher = UINT16_MAX;
    if (!client->is_publisher && packet->payload_size == bench->plan->payload_size)
        memcpy(&stamp, packet->payload, sizeof stamp);
    if (stamp.publisher >= bench->plan->publishers) {
        fail(bench, client, NOT_OURS);
        return;
    }
    client->arrived++;
    client->topic->publishers[stamp.publisher].delivered++;
    check_number(bench, client, &stamp);
    if (bench->is_measuring) {
        bench->result->delivered++;
        bench_histogram_add(&bench->result->latency, bench->time_100ns - stamp.time_100ns);
    }
    if (packet->qos == 1) send_ack(bench, client, BENCH_PUBACK, packet->packet_id);
    if (packet->qos == 2) send_ack(bench, client, BENCH_PUBREC, packet->packet_id);
}

static void on_acknowledged(struct bench *bench, struct bench_client *client, uint8_t reason) {
    if (client->inflight > 0) client->inflight--;
    /* 0x10: nobody subscribes. */
    if (reason < 0x80) return;
    bench->result->refused++;
    client->written_off += bench->plan->subscribers;
}

static void become_ready(struct bench *bench, struct bench_client *client) {
    client->state = BENCH_READY;
    bench->ready_count++;
}

static void on_connack(struct bench *bench, struct bench_client *client, const struct bench_packet *packet) {
    char why[96];
    if (packet->reason != 0) {
        snprintf(why, sizeof why, "refuses the connection with 0x%02x; check --user, and the broker's log and limits",
                 packet->reason);
        fail(bench, client, why);
        return;
    }
    if (packet->receive_max > 0 && packet->receive_max < client->inflight_max)
        client->inflight_max = packet->receive_max;
    if (client->is_publisher) {
        become_ready(bench, client);
        return;
    }
    uint8_t greeting[BENCH_GREETING_MAX];
    append(
        bench, client, greeting,
        bench_write_subscribe(greeting, sizeof greeting, bench->plan->version, client->topic->name, bench->plan->qos));
    client->state = BENCH_SUBSCRIBING;
}

static void on_suback(struct bench *bench, struct bench_client *client, const struct bench_packet *packet) {
    char why[96];
    if (client->state != BENCH_SUBSCRIBING) return;
    if (packet->reason == bench->plan->qos) {
        become_ready(bench, client);
        return;
    }
    snprintf(why, sizeof why, "answers the subscription with 0x%02x; check the broker's access rules", packet->reason);
    fail(bench, client, why);
}

static void on_disconnect(struct bench *bench, struct bench_client *client, const struct bench_packet *packet) {
    char why[96];
    snprintf(why, sizeof why, "ends the connection with 0x%02x; see the broker's log", packet->reason);
    fail(bench, client, why);
}

static void on_packet(struct bench *bench, struct bench_client *client, const struct bench_packet *packet) {
    switch (packet->type) {
    case BENCH_PUBLISH: on_publish(bench, client, packet); return;
    case BENCH_PUBACK:
    case BENCH_PUBCOMP: on_acknowledged(bench, client, packet->reason); return;
    case BENCH_PUBREC:
        if (packet->reason < 0x80)
            send_ack(bench, client, BENCH_PUBREL, packet->packet_id);
        else
            on_acknowledged(bench, client, packet->reason);
        return;
    case BENCH_PUBREL: send_ack(bench, client, BENCH_PUBCOMP, packet->packet_id); return;
    case BENCH_CONNACK: on_connack(bench, client, packet); return;
    case BENCH_SUBACK: on_suback(bench, client, packet); return;
    case BENCH_DISCONNECT: on_disconnect(bench, client, packet); return;
    default: return;
    }
}

/* Keeps the beginning of a packet for the next read. */
static void keep_rest(struct bench *bench, struct bench_client *client, const uint8_t *bytes, size_t size) {
    struct bench_bytes *rest = &client->rest;
    if (size > bench->rest_max) {
        fail(bench, client, NOT_OURS);
        return;
    }
    if (size > rest->capacity) {
        uint8_t *grown = realloc(rest->bytes, size);
        if (grown == NULL) {
            fail(bench, client, "memory is short; ask for fewer clients");
            return;
        }
        rest->bytes = grown;
        rest->capacity = size;
    }
    rest->size = size;
    if (size > 0) memcpy(rest->bytes, bytes, size);
}

static void take_input(struct bench *bench, struct bench_client *client, size_t size) {
    const uint8_t *at = bench->input, *end = at + size;
    struct bench_packet packet;
    int found = 0;
    while (!bench->is_failed && at < end &&
           (found = bench_read_packet(bench->plan->version, at, (size_t)(end - at), &packet)) > 0) {
        on_packet(bench, client, &packet);
        at += packet.size;
    }
    if (found < 0) fail(bench, client, "what it sends is not MQTT; is that the broker's MQTT port?");
    if (!bench->is_failed) keep_rest(bench, client, at, (size_t)(end - at));
}

/* True if the socket may hold more. */
static bool read_once(struct bench *bench, struct bench_client *client) {
    size_t kept = client->rest.size;
    if (kept > 0) memcpy(bench->input, client->rest.bytes, kept);
    ssize_t size = recv(client->fd, bench->input + kept, BENCH_READ_SIZE, 0);
    if (size > 0) {
        bench->time_100ns = (uint32_t)(bench_now_ns() / 100);
        take_input(bench, client, kept + (size_t)size);
        return size == BENCH_READ_SIZE;
    }
    if (size == 0)
        fail(bench, client,
             client->state == BENCH_GREETING ? "closes instead of a CONNACK; is that its MQTT port?"
                                             : "closed the connection; see the broker's log");
    else if (errno != EAGAIN && errno != EINTR)
        fail(bench, client, strerror(errno));
    return false;
}

/* ---- beginning and end ---- */

static void on_dialled(struct bench *bench, struct bench_client *client) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        char why[128];
        snprintf(why, sizeof why, "%s; is the broker running there?", strerror(error));
        fail(bench, client, why);
        return;
    }
    char client_id[64];
    snprintf(client_id, sizeof client_id, "bench-%ld-%td", (long)getpid(), client - bench->clients);
    const struct bench_plan *plan = bench->plan;
    struct bench_login login = {plan->version, client_id, plan->user, plan->password,
                                plan->durable && !client->is_publisher ? BENCH_SESSION_EXPIRY_S : 0};
    uint8_t greeting[BENCH_GREETING_MAX];
    size_t greeting_size = bench_write_connect(greeting, sizeof greeting, &login);
    if (greeting_size == 0) {
        fail(bench, client, "the user name or the password is too long");
        return;
    }
    append(bench, client, greeting, greeting_size);
    client->state = BENCH_GREETING;
    watch(bench, client, false);
}

void bench_client_dial(struct bench *bench, struct bench_client *client) {
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(host_of(bench->plan, client), port_of(bench->plan, client), &wanted, &found);
    if (error != 0) {
        fail(bench, client, gai_strerror(error));
        return;
    }
    int one = 1;
    client->fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = client};
    client->is_blocked = true;
    if (client->fd < 0 || setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        (connect(client->fd, found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(bench->epoll, EPOLL_CTL_ADD, client->fd, &event) != 0)
        fail(bench, client,
             errno == EMFILE ? "too many open files; raise \"ulimit -n\" or ask for fewer clients" : strerror(errno));
    freeaddrinfo(found);
}

void bench_client_event(struct bench *bench, struct bench_client *client, uint32_t events) {
    if (client->state == BENCH_CLOSED) return;
    if (client->state == BENCH_DIALLING) {
        on_dialled(bench, client);
        return;
    }
    if ((events & EPOLLOUT) != 0) bench_client_flush(bench, client);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        while (!bench->is_failed && read_once(bench, client)) {
        }
}

void bench_client_leave(struct bench *bench, struct bench_client *client) {
    if (client->fd < 0) return;
    uint8_t goodbye[BENCH_DISCONNECT_MAX];
    size_t size = bench_write_disconnect(goodbye, bench->plan->version);
    if (client->state == BENCH_READY && client->output.size == 0 && send(client->fd, goodbye, size, MSG_NOSIGNAL) < 0) {
        /* The broker sees the end all the same. */
    }
    close(client->fd);
    client->fd = -1;
    client->state = BENCH_CLOSED;
}

void bench_client_deinit(struct bench_client *client) {
    if (client->fd >= 0) close(client->fd);
    free(client->output.bytes);
    free(client->rest.bytes);
    free(client->expected);
}
