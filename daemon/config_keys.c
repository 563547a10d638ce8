#include "daemon/config_keys.h"

#include <stddef.h>

#define AT(field) offsetof(struct config, field)
#define COUNT(keys) (sizeof(keys) / sizeof((keys)[0]))

#define FILTERS "topic filters in quotes, such as [\"plant/#\"], or [] for no topic at all"
#define LISTEN_ADDRESS "HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\""

static const struct config_key storage_keys[] = {
    {.name = "sync", .read = config_read_sync, .write = "full, normal or off"},
};

static const struct config_key identity_keys[] = {
    {.name = "token",
     .read = config_read_path,
     .offset = AT(identity.token),
     .write = "the path of the broker's token, such as edge-1.jwt"},
    {.name = "key",
     .read = config_read_path,
     .offset = AT(identity.key),
     .write = "the path of the broker's private key, such as edge-1.key"},
    {.name = "issuers",
     .read = config_read_issuers,
     .write = "the paths of the issuers' public keys, such as [issuer.pub]"},
};

static const struct config_key listen_keys[] = {
    {.name = "mqtt", .read = config_read_listeners_or_unix, .offset = AT(listen.mqtt), .write = LISTEN_ADDRESS},
    {.name = "mqtts", .read = config_read_listeners, .offset = AT(listen.mqtts), .write = LISTEN_ADDRESS},
    {.name = "ws", .read = config_read_listeners_or_unix, .offset = AT(listen.ws), .write = LISTEN_ADDRESS},
    {.name = "wss", .read = config_read_listeners, .offset = AT(listen.wss), .write = LISTEN_ADDRESS},
    {.name = "peers", .read = config_read_listeners, .offset = AT(listen.peers), .write = LISTEN_ADDRESS},
    {.name = "admin", .read = config_read_listeners, .offset = AT(listen.admin), .write = LISTEN_ADDRESS},
    {.name = "proxies",
     .read = config_read_proxies,
     .write = "addresses or networks of proxies that send a PROXY header, such as [10.0.0.5, 192.168.0.0/16]"},
    {.name = "unix_mode", .read = config_read_unix_mode, .write = "an octal mode, such as 0660"},
};

static const struct config_key tls_keys[] = {
    {.name = "cert",
     .read = config_read_path,
     .offset = AT(tls.cert),
     .write = "the path of the certificate that clients see, in PEM with those above it, such as fullchain.pem"},
    {.name = "key",
     .read = config_read_path,
     .offset = AT(tls.key),
     .write = "the path of the certificate's private key in PEM, such as privkey.pem"},
    {.name = "client_ca",
     .read = config_read_path,
     .offset = AT(tls.client_ca),
     .write = "the path of the certificates, in PEM, of who signs the clients' certificates"},
    {.name = "require_client_cert", .read = config_read_require_client_cert, .write = "true or false"},
};

static const struct config_key of_a_peer[] = {
    {.name = "export", .read = config_read_export, .write = FILTERS},
    {.name = "import", .read = config_read_import, .write = FILTERS},
};

static const struct config_key peers_by_name[] = {
    {.read = config_read_peer,
     .write = "the name of a broker, such as edge-2",
     .children = of_a_peer,
     .child_count = COUNT(of_a_peer)},
};

static const struct config_key federation_keys[] = {
    {.name = "name",
     .read = config_read_name,
     .offset = AT(federation.name),
     .write = "a name, the same at all brokers of the federation"},
    {.name = "advertise", .read = config_read_advertise, .write = "HOST:PORT by which other brokers reach this one"},
    {.name = "bootstrap",
     .read = config_read_bootstrap,
     .write = "HOST:PORT of other brokers, such as [edge-2.example:7100]"},
    {.name = "multicast", .read = config_read_multicast, .write = "true or false"},
    {.name = "gossip_key",
     .read = config_read_path,
     .offset = AT(federation.gossip_key),
     .write = "the path of the federation's gossip key"},
    {.name = "private_topics",
     .read = config_read_private_topics,
     .write = "topic filters in quotes, such as [\"local/#\"]"},
    {.name = "export", .read = config_read_export, .write = FILTERS},
    {.name = "import", .read = config_read_import, .write = FILTERS},
    {.name = "peers", .read = config_read_mapping, .children = peers_by_name, .child_count = COUNT(peers_by_name)},
};

static const struct config_key client_keys[] = {
    {.name = "anonymous", .read = config_read_anonymous, .write = "true or false"},
    {.name = "password_file",
     .read = config_read_unavailable,
     .write = "clients: {anonymous: true} if all who reach the listeners are welcome"},
};

/* Every limit bears the name that it has in broker/broker.h or gossip/gossip.h, where its meaning and default are
 * written. */
#define BROKER_LIMIT(field, most, what)                                                                                \
    { .name = #field, .read = config_read_number, .offset = AT(broker_limits.field), .max = (most), .write = what }
#define GOSSIP_LIMIT_FROM(field, least, most, what)                                                                    \
    {                                                                                                                  \
        .name = #field, .read = config_read_number, .offset = AT(gossip_limits.field), .min = (least), .max = (most),  \
        .write = what                                                                                                  \
    }
#define GOSSIP_LIMIT(field, most, what) GOSSIP_LIMIT_FROM(field, 1, most, what)

static const struct config_key limit_keys[] = {
    BROKER_LIMIT(packet_size_max, 268435460u, "bytes, such as 16777216"),
    BROKER_LIMIT(partial_bytes_max, UINT64_MAX, "bytes, such as 268435456"),
    BROKER_LIMIT(clients_max, UINT32_MAX, "a number of connections"),
    BROKER_LIMIT(connecting_max, UINT32_MAX, "a number of connections"),
    BROKER_LIMIT(sessions_max, UINT32_MAX, "a number of sessions"),
    BROKER_LIMIT(subscriptions_per_client, 65535u, "a number of subscriptions"),
    BROKER_LIMIT(inflight_max, 65535u, "a number of messages"),
    BROKER_LIMIT(queue_messages_max, UINT32_MAX, "a number of messages"),
    BROKER_LIMIT(queue_bytes_max, UINT64_MAX, "bytes, such as 67108864"),
    BROKER_LIMIT(queues_bytes_max, UINT64_MAX, "bytes, such as 1073741824"),
    BROKER_LIMIT(output_bytes_max, UINT64_MAX, "bytes, such as 4194304"),
    BROKER_LIMIT(topic_alias_max, 65535u, "a number of topic aliases"),
    BROKER_LIMIT(topic_alias_out_max, 65535u, "a number of topic aliases, such as 32"),
    BROKER_LIMIT(topic_size_max, 65535u, "bytes, such as 1024"),
    BROKER_LIMIT(topic_levels_max, 128u, "a number of levels"),
    BROKER_LIMIT(publish_rate_max, 1000000000u, "publications a second, such as 1000"),
    BROKER_LIMIT(journal_bytes_max, UINT64_MAX, "bytes, such as 67108864"),
    BROKER_LIMIT(sys_interval_s, UINT32_MAX, "seconds, such as 10"),
    BROKER_LIMIT(connect_timeout_ms, UINT32_MAX, "milliseconds, such as 10000"),
    BROKER_LIMIT(session_expiry_max_s, UINT32_MAX, "seconds, such as 604800"),
    BROKER_LIMIT(keep_alive_max_s, 65535u, "seconds, such as 300"),
    BROKER_LIMIT(retained_bytes_max, UINT64_MAX, "bytes, such as 268435456"),
    BROKER_LIMIT(retained_messages_max, UINT32_MAX, "a number of messages"),
    {.name = "memory_bytes_max",
     .read = config_read_number,
     .offset = AT(memory_bytes_max),
     .max = UINT64_MAX,
     .write = "bytes, such as 1073741824"},
    BROKER_LIMIT(subscribe_barrier_ms, UINT32_MAX, "milliseconds, such as 300"),
    BROKER_LIMIT(replay_window_ms, UINT32_MAX, "milliseconds, such as 5000"),
    BROKER_LIMIT(replay_bytes_max, UINT64_MAX, "bytes, such as 4194304"),
    BROKER_LIMIT(leave_linger_ms, UINT32_MAX, "milliseconds, such as 5000"),
    BROKER_LIMIT(peers_max, UINT32_MAX, "a number of brokers"),
    BROKER_LIMIT(link_queue_bytes, UINT64_MAX, "bytes, such as 67108864"),
    BROKER_LIMIT(link_queues_bytes, UINT64_MAX, "bytes, such as 268435456"),
    BROKER_LIMIT(link_queue_age_h, UINT32_MAX, "hours, such as 24"),
    BROKER_LIMIT(link_frame_bytes, UINT32_MAX, "bytes, such as 65536"),
    BROKER_LIMIT(idle_links_max, UINT32_MAX, "a number of links"),
    BROKER_LIMIT(link_idle_ms, UINT32_MAX, "milliseconds, such as 5000"),
    BROKER_LIMIT(advert_idle_s, UINT32_MAX, "seconds, such as 3600"),
    GOSSIP_LIMIT(probe_interval_ms, UINT32_MAX, "milliseconds, such as 500"),
    GOSSIP_LIMIT(probe_timeout_ms, UINT32_MAX, "milliseconds, such as 200"),
    GOSSIP_LIMIT(rumor_interval_ms, UINT32_MAX, "milliseconds, such as 200"),
    GOSSIP_LIMIT(suspicion_min_ms, UINT32_MAX, "milliseconds, such as 1200"),
    GOSSIP_LIMIT_FROM(anti_entropy_ms, 100, UINT32_MAX, "milliseconds, such as 2000"),
    GOSSIP_LIMIT(rejoin_ms, UINT32_MAX, "milliseconds, such as 2000"),
    GOSSIP_LIMIT(members_max, UINT32_MAX, "a number of brokers"),
    GOSSIP_LIMIT(rows_max, UINT32_MAX, "a number of registry rows"),
    GOSSIP_LIMIT(owner_bytes_max, UINT32_MAX, "bytes, such as 1048576"),
    GOSSIP_LIMIT(eager_members_max, UINT32_MAX, "a number of brokers"),
    GOSSIP_LIMIT(datagrams_queued_max, UINT32_MAX, "a number of datagrams"),
    GOSSIP_LIMIT_FROM(datagram_bytes_per_s, 16384, UINT32_MAX, "bytes a second, such as 524288"),
    GOSSIP_LIMIT(transfers_max, 16u, "a number of brokers, at most 16"),
    GOSSIP_LIMIT(transfer_bytes_per_s, UINT32_MAX, "bytes a second, such as 4194304"),
    GOSSIP_LIMIT(datagram_buckets_max, 64u, "a number of the 64 parts of the registry"),
    GOSSIP_LIMIT(links_max, 64u, "a number of links, at most 64"),
    GOSSIP_LIMIT(down_keep_ms, UINT32_MAX, "milliseconds, such as 86400000"),
    GOSSIP_LIMIT(registry_bytes_max, UINT32_MAX, "bytes, such as 268435456"),
};

static const struct config_key log_keys[] = {
    {.name = "level", .read = config_read_level, .write = "error, warning, info or debug"},
};

#define MAPPING(key, keys)                                                                                             \
    { .name = key, .read = config_read_mapping, .children = keys, .child_count = COUNT(keys) }

const struct config_key config_top_keys[] = {
    {.name = "name", .read = config_read_name, .offset = AT(name), .write = "the token's subject, such as edge-1"},
    {.name = "data_dir",
     .read = config_read_data_dir,
     .offset = AT(data_dir),
     .write = "the path of a folder, such as data"},
    MAPPING("storage", storage_keys),
    MAPPING("identity", identity_keys),
    MAPPING("listen", listen_keys),
    MAPPING("tls", tls_keys),
    MAPPING("federation", federation_keys),
    MAPPING("clients", client_keys),
    MAPPING("limits", limit_keys),
    MAPPING("log", log_keys),
};
const size_t config_top_key_count = COUNT(config_top_keys);
