#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config.h"

static struct config_faults faults;

static struct config *parse(const char *text) {
    faults = (struct config_faults){0};
    return config_parse(text, strlen(text), "/etc/hobnob", &faults);
}

/* All faults, a line each, as --check prints them. */
static const char *fault_text(void) {
    static char all[65536];
    size_t used = 0;
    all[0] = '\0';
    for (size_t i = 0; i < faults.count; i++) {
        char line[CONFIG_FAULT_LINE_MAX];
        config_fault_format(&faults.items[i], "c.yaml", line, sizeof(line));
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s\n", line);
    }
    return all;
}

#define NEEDS_PEERS "identity: {token: t, key: k, issuers: [i]}\nfederation: {gossip_key: g}\n"
#define FILTERS "topic filters in quotes, such as [\"plant/#\"], or [] for no topic at all\n"

static const struct {
    const char *text, *faults;
} fault_cases[] = {
    /* name */
    {"", "c.yaml:1: name is missing; write name: edge-1, or what else the token's subject is\n"},
    {"name:\n", "c.yaml:1: name is empty; write the token's subject, such as edge-1\n"},
    {"name: [a]\n", "c.yaml:1: name is a list; write the token's subject, such as edge-1\n"},
    {"name: {a: b}\n", "c.yaml:1: name has keys below it; write the token's subject, such as edge-1\n"},
    {"name: a b\n", "c.yaml:1: name: \"a b\" has characters other than letters, digits, '.', '_' and '-'; write the "
                    "token's subject, such as edge-1\n"},
    {"name: a\nname: b\n", "c.yaml:2: name was given before, in line 1; write it once\n"},
    {"name: a234567890123456789012345678901234567890123456789012345678901234\n",
     "c.yaml:1: name: \"a234567890123456789012345678901234567890123456789012345678901234\" is longer than 63 "
     "characters; write the token's subject, such as edge-1\n"},
    /* shape */
    {"- name\n", "c.yaml:1: the configuration has no keys; write it in YAML, one KEY: VALUE a line, such as name: "
                 "edge-1\n"},
    {"listener 1883\nallow_anonymous true\n", "c.yaml:1: the configuration has no keys; write it in YAML, one KEY: "
                                              "VALUE a line, such as name: edge-1\n"},
    {"name: a\nlisten: 1883\n", "c.yaml:2: listen has no keys below it; write one KEY: VALUE a line\n"},
    {"name: a\n[x]: y\n", "c.yaml:2: a key must be a word; write KEY: VALUE\n"},
    {"name: a\n---\nname: b\n", "c.yaml:3: a second document starts here; write one, without --- between\n"},
    /* unknown keys */
    {"name: a\nlissten: {}\n", "c.yaml:2: unknown key \"lissten\"; write \"listen\"\n"},
    {"name: a\nlisten:\n  mqt: 127.0.0.1:1\n", "c.yaml:3: unknown key \"listen.mqt\"; write \"mqtt\"\n"},
    {"name: a\nlimits:\n  client_max: 1\n", "c.yaml:3: unknown key \"limits.client_max\"; write \"clients_max\"\n"},
    {"name: a\nlog: {colour_of_the_lines: red}\n",
     "c.yaml:2: unknown key \"log.colour_of_the_lines\"; write one of: level\n"},
    /* addresses */
    {"name: a\nlisten: {mqtt: 1883}\n",
     "c.yaml:2: listen.mqtt: \"1883\" has no host; write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten: {mqtt: \":1883\"}\n",
     "c.yaml:2: listen.mqtt: \":1883\" has no host; write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:0\n", "c.yaml:3: listen.mqtt: \"0.0.0.0:0\" has a port that is no number from "
                                              "1 to 65535; write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:65536\n",
     "c.yaml:3: listen.mqtt: \"0.0.0.0:65536\" has a port that is no number from 1 to 65535; write HOST:PORT, such as "
     "0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:99999999999999999999\n",
     "c.yaml:3: listen.mqtt: \"0.0.0.0:99999999999999999999\" has a port that is no number from 1 to 65535; write "
     "HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:1x\n",
     "c.yaml:3: listen.mqtt: \"0.0.0.0:1x\" has a port that is no number from 1 to 65535; write HOST:PORT, such as "
     "0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: ::1:1883\n", "c.yaml:3: listen.mqtt: \"::1:1883\" has several colons and no brackets; "
                                             "write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: \"[::1:1883\"\n", "c.yaml:3: listen.mqtt: \"[::1:1883\" has no ] before its port; "
                                                  "write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: a b:1883\n",
     "c.yaml:3: listen.mqtt: \"a b:1883\" has a character that no host has; write "
     "HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt:\n    - 127.0.0.1:1883\n    - 127.0.0.1\n",
     "c.yaml:5: listen.mqtt: \"127.0.0.1\" has no port; write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    {"name: a\nlisten:\n  mqtt: 127.0.0.1:1883\n  ws: 127.0.0.1:1883\n",
     "c.yaml:4: listen.ws: 127.0.0.1:1883 is taken by listen.mqtt in line 3; write another port\n"},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:1883\n  ws: 127.0.0.1:1883\n  peers: \"[::1]:1883\"\n  admin: "
     "\"[::]:1883\"\n" NEEDS_PEERS,
     "c.yaml:4: listen.ws: 127.0.0.1:1883 is taken by listen.mqtt in line 3; write another port\n"
     "c.yaml:6: listen.admin: [::]:1883 is taken by listen.peers in line 5; write another port\n"
     "c.yaml:6: listen.admin: :: can be reached by others, and admin tokens are not available yet in this "
     "version; write 127.0.0.1:1883\n"},
    {"name: a\nlisten:\n  ws: ws://127.0.0.1:8080/mqtt\n",
     "c.yaml:3: listen.ws: \"ws://127.0.0.1:8080/mqtt\" is a URL; write HOST:PORT, such as 0.0.0.0:1883 or "
     "\"[::1]:1883\"\n"},
    {"name: a\nlisten: {admin: 127.0.0.1:9100}\n", "c.yaml:2: warning: no client can connect without listen.mqtt, "
                                                   "mqtts, ws or wss; write mqtt: 127.0.0.1:1883 there\n"},
    {"name: a\nlisten: {peers: 127.0.0.1:7100}\n" NEEDS_PEERS,
     "c.yaml:2: warning: no client can connect without "
     "listen.mqtt, mqtts, ws or wss; write mqtt: 127.0.0.1:1883 "
     "there\n"},
    /* paths */
    {"name: a\ndata_dir: ~/hobnob\nidentity: {key: ~/a.key}\n",
     "c.yaml:2: data_dir: \"~/hobnob\" begins with ~, which only a shell understands; write the path of a folder, such "
     "as data\n"
     "c.yaml:3: identity.key: \"~/a.key\" begins with ~, which only a shell understands; write the path of the "
     "broker's private key, such as edge-1.key\n"},
    {"name: a\nlisten: {admin: 0.0.0.0:9100}\n",
     "c.yaml:2: listen.admin: 0.0.0.0 can be reached by others, and admin tokens are not available yet in this "
     "version; write 127.0.0.1:9100\n"},
    /* not in this version */
    {"name: a\nclients: {password_file: p}\n",
     "c.yaml:2: clients.password_file is not available yet in this version; remove it and write clients: {anonymous: "
     "true} if all who reach the listeners are welcome\n"},
    /* TLS */
    {"name: a\nlisten:\n  mqtts: 0.0.0.0:8883\n",
     "c.yaml:3: listen.mqtts and listen.wss need tls.cert; write tls: {cert: fullchain.pem, key: privkey.pem} with the "
     "paths of the certificate and its private key\n"},
    {"name: a\nlisten:\n  wss: 0.0.0.0:8443\ntls: {cert: c}\n",
     "c.yaml:3: listen.mqtts and listen.wss need tls.key; write tls: {cert: fullchain.pem, key: privkey.pem} with the "
     "paths of the certificate and its private key\n"},
    {"name: a\ntls: {cert: c, key: k}\n", "c.yaml:2: warning: tls has no effect without listen.mqtts or listen.wss; "
                                          "write listen: {mqtts: 0.0.0.0:8883}\n"},
    {"name: a\nlisten: {mqtts: 0.0.0.0:8883}\ntls:\n  cert: c\n  key: k\n  require_client_cert: true\n",
     "c.yaml:6: tls.require_client_cert needs tls.client_ca; write the path of the certificates, in PEM, of who signs "
     "the clients' certificates\n"},
    {"name: a\nlisten: {mqtts: 0.0.0.0:8883}\ntls: {cert: c, key: k, require_client_cert: maybe}\n",
     "c.yaml:3: tls.require_client_cert: \"maybe\" is neither true nor false; write true or false\n"},
    /* unix sockets and proxies */
    {"name: a\nlisten:\n  mqtt: [127.0.0.1:1883, \"unix:\"]\n",
     "c.yaml:3: listen.mqtt: \"unix:\" has no path; write unix:PATH, such as unix:/run/hobnob/mqtt.sock\n"},
    {"name: a\nlisten:\n  mqtt: "
     "unix:/a123456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789i1"
     "23456789j123456789k123456789l12345\n",
     "c.yaml:3: listen.mqtt: \"unix:/a123456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789i1"
     "23456789j123456789k123456789l12345\" has a path longer than 107 bytes, with all folders above it; write "
     "unix:PATH, such as "
     "unix:/run/hobnob/mqtt.sock\n"},
    {"name: a\nlisten: {mqtt: unix:s, ws: unix:./s, unix_mode: 0688}\n",
     "c.yaml:2: listen.unix_mode: \"0688\" is no mode from 0001 to 0777; write an octal mode, such as 0660\n"},
    {"name: a\nlisten: {mqtt: unix:s, ws: unix:s}\n",
     "c.yaml:2: listen.ws: unix:/etc/hobnob/s is taken by listen.mqtt in line 2; write another path\n"},
    {"name: a\nlisten: {mqtts: unix:s}\n",
     "c.yaml:2: listen.mqtts: unix sockets are for mqtt and ws alone; write HOST:PORT, such as 0.0.0.0:1883 or "
     "\"[::1]:1883\"\n"},
    {"name: a\nlisten: {mqtt: []}\n", "c.yaml:2: listen.mqtt is an empty list; write HOST:PORT, such as 0.0.0.0:1883 "
                                      "or \"[::1]:1883\", or leave the key out\n"},
    /* clients that nobody lets in */
    {"name: a\nlisten: {mqtt: [127.0.0.1:1883, 0.0.0.0:1884]}\n",
     "c.yaml:2: warning: listen.mqtt: every client is refused at 0.0.0.0:1884; write clients: {anonymous: true} to let "
     "in all that reach it, or use mqtts or wss with tls.client_ca and certificates for clients\n"},
    {"name: a\nlisten: {ws: localhost:8080}\nclients: {anonymous: false}\n",
     "c.yaml:2: warning: listen.ws: every client is refused at localhost:8080; write clients: {anonymous: true} to let "
     "in all that reach it, or use mqtts or wss with tls.client_ca and certificates for clients\n"},
    {"name: a\nlisten: {mqtts: 0.0.0.0:8883}\ntls: {cert: c, key: k}\n",
     "c.yaml:2: warning: listen.mqtts: every client is refused at 0.0.0.0:8883; write clients: {anonymous: true} to "
     "let in all that reach it, or use mqtts or wss with tls.client_ca and certificates for clients\n"},
    {"name: a\nlisten: {mqtts: 0.0.0.0:8883}\ntls: {cert: c, key: k, client_ca: ca}\n", ""},
    {"name: a\nlisten: {mqtt: [\"unix:s\", localhost:1883]}\n", ""},
    {"name: a\nlisten:\n  mqtt: 0.0.0.0:1883\n  proxies:\n  - proxy.example\n  - 10.0.0.0/33\n  - \"::1/\"\n  - "
     "10.0.0.5\n",
     "c.yaml:5: listen.proxies: \"proxy.example\" is no numeric address; write addresses or networks of proxies that "
     "send a PROXY header, such as [10.0.0.5, 192.168.0.0/16]\n"
     "c.yaml:6: listen.proxies: \"10.0.0.0/33\" has no number of bits from 0 to 32; write addresses or networks of "
     "proxies that send a PROXY header, such as [10.0.0.5, 192.168.0.0/16]\n"
     "c.yaml:7: listen.proxies: \"::1/\" has no number of bits from 0 to 128; write addresses or networks of proxies "
     "that send a PROXY header, such as [10.0.0.5, 192.168.0.0/16]\n"},
    /* federation */
    {"name: a\nlisten: {peers: 0.0.0.0:7100}\n",
     "c.yaml:2: listen.peers needs identity.token; write the path of the broker's token (hobnob token mint makes one)\n"
     "c.yaml:2: listen.peers needs identity.key; write the path of the broker's private key (hobnob key new makes "
     "one)\n"
     "c.yaml:2: listen.peers needs identity.issuers; write the path of the issuer's public key, as in issuers: "
     "[issuer.pub]\n"
     "c.yaml:2: listen.peers needs federation.gossip_key; write the path of the federation's gossip key\n"},
    {"name: a\nfederation: {multicast: yes}\n",
     "c.yaml:2: federation.multicast: \"yes\" is neither true nor false; write true or false\n"},
    {"name: a\nfederation: {multicast: true}\n",
     "c.yaml:2: warning: federation has no effect without listen.peers; write listen: {peers: 0.0.0.0:7100}\n"},
    {"name: a\nfederation: {bootstrap: [b:7100]}\n",
     "c.yaml:2: warning: federation has no effect without listen.peers; write listen: {peers: 0.0.0.0:7100}\n"},
    {"name: a\nlisten: {peers: 0.0.0.0:7100}\nidentity: {token: t, key: k, issuers: [i]}\nfederation:\n  gossip_key: "
     "g\n  advertise: 0.0.0.0:7100\n  bootstrap: [\"[::]:7100\"]\n",
     "c.yaml:6: federation.advertise: \"0.0.0.0\" is an address to listen on and not one that others can reach; write "
     "HOST:PORT by which other brokers reach this one\n"
     "c.yaml:7: federation.bootstrap: \"::\" is an address to listen on and not one that others can reach; write "
     "HOST:PORT of other brokers, such as [edge-2.example:7100]\n"},
    {"name: a\nlisten: {peers: 0.0.0.0:7100}\n" NEEDS_PEERS "federation:\n  private_topics: [a#]\n",
     "c.yaml:5: federation was given before, in line 4; write it once\n"},
    {"name: a\nlisten: {peers: 0.0.0.0:7100}\nidentity: {token: t, key: k, issuers: [i]}\nfederation:\n  gossip_key: "
     "g\n  private_topics: [\"a#\", \"$share/g/t\"]\n",
     "c.yaml:6: federation.private_topics: \"a#\" is no topic filter; write topic filters in quotes, such as "
     "[\"local/#\"]\n"
     "c.yaml:6: federation.private_topics: \"$share/g/t\" names a shared subscription, and the filter behind its name "
     "is enough; write topic filters in quotes, such as [\"local/#\"]\n"},
    {"name: a\nfederation:\n  export: [$SYS/#, \"a/#/b\"]\n  import:\n",
     "c.yaml:3: federation.export: \"$SYS/#\" begins with $, and such topics never leave a broker; write " FILTERS
     "c.yaml:3: federation.export: \"a/#/b\" is no topic filter; write " FILTERS
     "c.yaml:4: federation.import is empty; write " FILTERS},
    {"name: a\nfederation:\n  peers:\n    edge 2:\n      export: [a]\n    b: {exprt: [a]}\n    c: [a]\n    b: {}\n",
     "c.yaml:4: federation.peers: \"edge 2\" has characters other than letters, digits, '.', '_' and '-'; write the "
     "name of a broker, such as edge-2\n"
     "c.yaml:6: unknown key \"federation.peers.b.exprt\"; write \"export\"\n"
     "c.yaml:7: federation.peers.c has no keys below it; write one KEY: VALUE a line\n"
     "c.yaml:8: federation.peers.b was given before, in line 6; write it once\n"},
    {"name: a\nfederation:\n  peers: {b: {import: [\"$share/g/t\"], private_topics: [a]}}\n",
     "c.yaml:3: federation.peers.b.import: \"$share/g/t\" names a shared subscription, and the filter behind its name "
     "is enough; write " FILTERS
     "c.yaml:3: unknown key \"federation.peers.b.private_topics\"; write one of: export, import\n"},
    /* numbers and words */
    {"name: a\nlimits: {clients_max: many}\n",
     "c.yaml:2: limits.clients_max: \"many\" is no whole number from 1 to 4294967295; write a number of connections\n"},
    {"name: a\nlimits: {clients_max: 0}\n",
     "c.yaml:2: limits.clients_max: \"0\" is no whole number from 1 to 4294967295; write a number of connections\n"},
    {"name: a\nlimits: {datagram_bytes_per_s: 16383}\n",
     "c.yaml:2: limits.datagram_bytes_per_s: \"16383\" is no whole number from 16384 to 4294967295; write bytes a "
     "second, such as 524288\n"},
    {"name: a\nlimits: {anti_entropy_ms: 99}\n",
     "c.yaml:2: limits.anti_entropy_ms: \"99\" is no whole number from 100 to 4294967295; write milliseconds, such as "
     "2000\n"},
    {"name: a\nlimits: {clients_max: -1}\n",
     "c.yaml:2: limits.clients_max: \"-1\" is no whole number from 1 to 4294967295; write a number of connections\n"},
    {"name: a\nlimits: {clients_max: 4294967296}\n", "c.yaml:2: limits.clients_max: \"4294967296\" is no whole number "
                                                     "from 1 to 4294967295; write a number of connections\n"},
    {"name: a\nlimits: {queue_bytes_max: 18446744073709551616}\n",
     "c.yaml:2: limits.queue_bytes_max: \"18446744073709551616\" is no whole number from 1 to 18446744073709551615; "
     "write bytes, such as 67108864\n"},
    {"name: a\nlimits: {subscriptions_per_client: 65536}\n",
     "c.yaml:2: limits.subscriptions_per_client: \"65536\" is no whole number from 1 to 65535; write a number of "
     "subscriptions\n"},
    {"name: a\nlimits: {inflight_max: 65536}\n",
     "c.yaml:2: limits.inflight_max: \"65536\" is no whole number from 1 to 65535; write a number of messages\n"},
    {"name: a\nclients: {anonymous: yes}\n",
     "c.yaml:2: clients.anonymous: \"yes\" is neither true nor false; write true or false\n"},
    {"name: a\nstorage: {sync: fast}\n",
     "c.yaml:2: storage.sync: \"fast\" is none of them; write full, normal or off\n"},
    {"name: a\nlog: {level: verbose}\n",
     "c.yaml:2: log.level: \"verbose\" is no level; write error, warning, info or debug\n"},
    /* all at once, in the order of their lines */
    {"nam: a\nlog: {level: loud}\nlisten:\n  mqtt: x\n",
     "c.yaml:1: unknown key \"nam\"; write \"name\"\n"
     "c.yaml:1: name is missing; write name: edge-1, or what else the token's subject is\n"
     "c.yaml:2: log.level: \"loud\" is no level; write error, warning, info or debug\n"
     "c.yaml:4: listen.mqtt: \"x\" has no port; write HOST:PORT, such as 0.0.0.0:1883 or \"[::1]:1883\"\n"},
    /* what comes from the file cannot paint the terminal */
    {"name: \"a\\e[2J\"\n", "c.yaml:1: name: \"a?[2J\" has characters other than letters, digits, '.', '_' and '-'; "
                            "write the token's subject, such as edge-1\n"},
    {"name: \"a\\0b\"\n", "c.yaml:1: name holds a zero character; write the token's subject, such as edge-1\n"},
};

static void proxies_are_those_named(void **state) {
    (void)state;
    struct config *config = parse(
        "name: a\nlisten: {mqtt: 127.0.0.1:1883, proxies: [10.0.0.5, 192.168.0.0/20, \"fd00::/9\", 0.0.0.0/32]}\n");
    static const char *const yes[] = {"10.0.0.5", "192.168.0.1", "192.168.15.255",
                                      "fd00::1",  "fd7f::1",     "::ffff:10.0.0.5"};
    static const char *const no[] = {"10.0.0.4", "192.168.16.0", "192.169.0.0", "fd80::1", "fc00::1", "::1",
                                     "",         "10.0.0.5.6"};
    assert_non_null(config);
    assert_string_equal(fault_text(), "");
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (!config_is_proxy(config, yes[i])) fail_msg("%s", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (config_is_proxy(config, no[i])) fail_msg("%s", no[i]);
    config_free(config);
}

static void unix_sockets_have_a_path_and_a_mode(void **state) {
    (void)state;
    struct config *config = parse("name: a\nlisten: {mqtt: [unix:run/m.sock, 127.0.0.1:1883], unix_mode: 0600}\n");
    char shown[CONFIG_ADDRESS_MAX];
    assert_non_null(config);
    assert_string_equal(fault_text(), "");
    assert_int_equal(config->listen.mqtt.count, 2);
    assert_true(config->listen.mqtt.items[0].is_unix);
    assert_string_equal(config->listen.mqtt.items[0].host, "/etc/hobnob/run/m.sock");
    config_address_format(&config->listen.mqtt.items[0], shown);
    assert_string_equal(shown, "unix:/etc/hobnob/run/m.sock");
    assert_false(config->listen.mqtt.items[1].is_unix);
    assert_int_equal(config->listen.unix_mode, 0600);
    config_free(config);
}

static void each_fault_names_its_line_and_the_remedy(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(fault_cases) / sizeof(fault_cases[0]); i++) {
        struct config *config = parse(fault_cases[i].text);
        assert_non_null(config);
        assert_string_equal(fault_text(), fault_cases[i].faults);
        assert_int_equal(faults.errors, strstr(fault_cases[i].faults, "warning: ") != NULL ? 0 : faults.count);
        config_free(config);
    }
}

static void broken_yaml_names_its_line(void **state) {
    (void)state;
    const struct {
        const char *text, *start, *remedy;
    } cases[] = {
        {"name: a\nlisten:\n  mqtt: [::1]:1883\n", "c.yaml:3: no YAML: ", "; write KEY: VALUE a line"},
        {"name: a\n\tlisten: b\n", "c.yaml:2: no YAML: the line is indented by a tab", "indented by spaces"},
        {"name: a\nlisten:\n  \tmqtt: b\n", "c.yaml:3: no YAML: the line is indented by a tab", "indented by spaces"},
        {"\n\nname: \"a\nlog:\n", "c.yaml:5: no YAML: ", ", in what begins in line 3; write KEY: VALUE a line"},
        {"name: \xff\xfe\n", "c.yaml:1: no YAML: ", "; write the file as plain text in UTF-8"},
        {"name: a\nlog:\n  level: k\xfchl\n", "c.yaml:3: no YAML: ", "; write the file as plain text in UTF-8"},
        {"name: a\n# \x01\n", "c.yaml:2: no YAML: ", "; write the file as plain text in UTF-8"},
        {"name: *b\n", "c.yaml:1: no YAML: ", "; write KEY: VALUE a line"},
        {"name: a\n---\nx: [\n", "c.yaml:4: no YAML: ", "; write KEY: VALUE a line"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_null(parse(cases[i].text));
        if (strncmp(fault_text(), cases[i].start, strlen(cases[i].start)) != 0)
            fail_msg("%s, and not %s", fault_text(), cases[i].start);
        if (strstr(fault_text(), cases[i].remedy) == NULL) fail_msg("%s, and not %s", fault_text(), cases[i].remedy);
    }
}

static bool lets(const struct policy *policy, const char *peer, enum policy_kind way, const char *topic) {
    struct policy_rules rules = policy_rules_of(policy, peer);
    return policy_lets(&rules, way, topic, strlen(topic));
}

static void assert_topics(const struct policy *policy) {
    assert_true(lets(policy, "any", POLICY_EXPORT, "plant/1"));
    assert_true(lets(policy, "any", POLICY_EXPORT, "status"));
    assert_false(lets(policy, "any", POLICY_EXPORT, "orders/1"));
    assert_false(lets(policy, "any", POLICY_EXPORT, "plant/private"));
    assert_false(lets(policy, "any", POLICY_IMPORT, "plant/1"));
    assert_true(lets(policy, "hq", POLICY_EXPORT, "orders/1"));
    assert_false(lets(policy, "hq", POLICY_EXPORT, "local/1"));
    assert_true(lets(policy, "hq", POLICY_IMPORT, "orders/1"));
    assert_false(lets(policy, "hq", POLICY_IMPORT, "hello"));
    assert_true(lets(policy, "edge-2", POLICY_IMPORT, "hello"));
    assert_false(lets(policy, "edge-2", POLICY_EXPORT, "orders/1"));
}

static void every_key_arrives(void **state) {
    (void)state;
    struct config *config =
        parse("name: edge-1\n"
              "data_dir: /var/lib/hobnob\n"
              "identity: {token: edge-1.jwt, key: /keys/edge-1.key, issuers: [a.pub, b.pub]}\n"
              "listen:\n"
              "  mqtt: [127.0.0.1:1883, \"[::1]:1884\"]\n"
              "  ws: localhost:8080\n"
              "  peers: 0.0.0.0:7100\n"
              "  admin: 127.0.0.1:9100\n"
              "federation:\n"
              "  name: farm\n"
              "  advertise: edge-1.example:7100\n"
              "  bootstrap: [edge-2.example:7101, \"[2001:db8::7]:7102\"]\n"
              "  gossip_key: gossip.key\n"
              "  multicast: true\n"
              "  private_topics: [\"local/#\", +/private]\n"
              "  export: [\"plant/#\", status]\n"
              "  import: []\n"
              "  peers:\n"
              "    hq: {export: \"#\", import: [\"orders/+\"]}\n"
              "    edge-2:\n"
              "      import: [hello]\n"
              "clients: {anonymous: true}\n"
              "limits: {subscribe_barrier_ms: 250, queue_bytes_max: 5000000000, probe_interval_ms: 700,\n"
              "  eager_members_max: 3, datagrams_queued_max: 9, datagram_bytes_per_s: 20000, subscriptions_per_client: "
              "65535}\n"
              "storage: {sync: normal}\nlog: {level: debug}\n");
    assert_string_equal(fault_text(), "");
    assert_string_equal(config->name, "edge-1");
    assert_string_equal(config->data_dir, "/var/lib/hobnob");
    assert_string_equal(config->identity.token.path, "/etc/hobnob/edge-1.jwt");
    assert_int_equal(config->identity.token.line, 3);
    assert_string_equal(config->identity.key.path, "/keys/edge-1.key");
    assert_int_equal(config->identity.issuer_count, 2);
    assert_string_equal(config->identity.issuers[1].path, "/etc/hobnob/b.pub");
    assert_int_equal(config->listen.mqtt.count, 2);
    assert_string_equal(config->listen.mqtt.items[1].host, "::1");
    assert_string_equal(config->listen.mqtt.items[1].ip, "::1");
    assert_int_equal(config->listen.mqtt.items[1].port, 1884);
    assert_string_equal(config->listen.ws.items[0].host, "localhost");
    assert_string_equal(config->listen.ws.items[0].ip, "");
    assert_int_equal(config->listen.peers.items[0].line, 7);
    assert_int_equal(config->listen.admin.items[0].port, 9100);
    assert_string_equal(config->federation.name, "farm");
    assert_true(config->federation.has_advertise);
    assert_string_equal(config->federation.advertise.host, "edge-1.example");
    assert_int_equal(config->federation.bootstrap_count, 2);
    assert_int_equal(config->federation.bootstrap[0].port, 7101);
    assert_true(config->federation.multicast);
    assert_string_equal(config->federation.bootstrap[1].ip, "2001:db8::7");
    assert_string_equal(config->federation.gossip_key.path, "/etc/hobnob/gossip.key");
    assert_topics(config->federation.policy);
    assert_true(config->clients.anonymous_everywhere);
    assert_false(config->clients.anonymous_nowhere);
    assert_int_equal(config->broker_limits.subscribe_barrier_ms, 250);
    assert_int_equal(config->broker_limits.queue_bytes_max, 5000000000u);
    assert_int_equal(config->gossip_limits.probe_interval_ms, 700);
    assert_int_equal(config->gossip_limits.eager_members_max, 3);
    assert_int_equal(config->gossip_limits.datagrams_queued_max, 9);
    assert_int_equal(config->gossip_limits.datagram_bytes_per_s, 20000);
    assert_int_equal(config->broker_limits.subscriptions_per_client, 65535);
    assert_int_equal(config->broker_limits.clients_max, 0);
    assert_int_equal(config->storage.sync, STORE_SYNC_NORMAL);
    assert_int_equal(config->log_level, LOG_LEVEL_DEBUG);
    config_free(config);
}

static void a_name_is_enough(void **state) {
    (void)state;
    struct config *config = parse("name: edge-1\nlimits:\n  # clients_max: 5\n");
    assert_string_equal(fault_text(), "");
    assert_string_equal(config->data_dir, "/etc/hobnob/data");
    assert_int_equal(config->listen.mqtt.count, 1);
    assert_string_equal(config->listen.mqtt.items[0].ip, "127.0.0.1");
    assert_int_equal(config->listen.mqtt.items[0].port, 1883);
    assert_int_equal(config->listen.admin.items[0].port, 9100);
    assert_string_equal(config->listen.admin.items[0].ip, "127.0.0.1");
    assert_int_equal(config->listen.ws.count + config->listen.peers.count, 0);
    assert_string_equal(config->federation.name, "default");
    assert_false(config->clients.anonymous_everywhere || config->clients.anonymous_nowhere);
    assert_int_equal(config->storage.sync, STORE_SYNC_FULL);
    assert_int_equal(config->log_level, LOG_LEVEL_INFO);
    config_free(config);
}

static void no_port_opens_that_a_listen_section_does_not_name(void **state) {
    static const char *const named[] = {"ws: 127.0.0.1:8080", "admin: 127.0.0.1:9100", "peers: 127.0.0.1:7100",
                                        "mqtt: 127.0.0.1:1883"};
    (void)state;
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "name: edge-1\nlisten: {%s}\n" NEEDS_PEERS, named[i]);
        struct config *config = parse(text);
        assert_int_equal(faults.errors, 0);
        assert_int_equal(config->listen.mqtt.count + config->listen.ws.count + config->listen.peers.count +
                             config->listen.admin.count,
                         1);
        config_free(config);
    }
}

static void an_unknown_key_is_answered_with_all_that_there_are(void **state) {
    (void)state;
    struct config *config = parse("name: a\nlimits: {zzzzzzzzzzzz: 1}\n");
    assert_non_null(strstr(fault_text(), "write one of: packet_size_max, "));
    assert_non_null(strstr(fault_text(), ", registry_bytes_max\n"));
    config_free(config);
}

static void without_a_file_all_is_in_memory_on_loopback(void **state) {
    (void)state;
    struct config *config = config_default();
    assert_null(config->file);
    assert_null(config->data_dir);
    assert_string_equal(config->listen.mqtt.items[0].ip, "127.0.0.1");
    assert_string_equal(config->listen.admin.items[0].ip, "127.0.0.1");
    assert_int_equal(config->listen.peers.count, 0);
    config_free(config);
}

static void faults_past_the_list_are_counted(void **state) {
    (void)state;
    char text[16384] = "name: a\nlimits:\n";
    for (int i = 0; i < 300; i++)
        snprintf(text + strlen(text), 32, "  nonsense_%d: 1\n", i);
    struct config *config = parse(text);
    assert_int_equal(faults.count, CONFIG_FAULTS_MAX);
    assert_int_equal(faults.errors, 300);
    config_free(config);
}

static void too_many_of_a_list_is_a_fault_and_no_overflow(void **state) {
    (void)state;
    char text[16384] = "name: a\nlisten:\n  mqtt:\n";
    for (int i = 0; i < 300; i++)
        snprintf(text + strlen(text), 40, "    - 127.0.0.1:%d\n", 2000 + i);
    struct config *config = parse(text);
    assert_string_equal(fault_text(), "c.yaml:4: listen.mqtt has 300 entries; write at most 16\n");
    assert_int_equal(config->listen.mqtt.count, CONFIG_LISTENERS_MAX);
    config_free(config);
}

static void loopback_is_told_from_the_rest(void **state) {
    (void)state;
    const char *const loopback[] = {"127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"};
    const char *const other[] = {"",          "0.0.0.0",         "::",          "10.0.0.1",
                                 "128.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "localhost"};
    for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
        assert_true(config_ip_is_loopback(loopback[i]));
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        assert_false(config_ip_is_loopback(other[i]));
}

/* Reads the same text from a file, with the paths that a file brings. */
static void file_is_read_and_paths_are_relative_to_it(void **state) {
    (void)state;
    char dir[] = "/tmp/hobnob-config-XXXXXX", path[64], expected[96], here[4096];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/hobnob.yaml", dir);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs("name: edge-1\n", file);
    fclose(file);
    assert_non_null(getcwd(here, sizeof(here)));
    assert_int_equal(chdir("/tmp"), 0);
    faults = (struct config_faults){0};
    struct config *config = config_read(path + strlen("/tmp/"), &faults);
    assert_int_equal(chdir(here), 0);
    assert_non_null(config);
    assert_string_equal(config->file, path);
    snprintf(expected, sizeof(expected), "%s/data", dir);
    assert_string_equal(config->data_dir, expected);
    config_free(config);

    faults = (struct config_faults){0};
    assert_null(config_read(dir, &faults));
    assert_non_null(strstr(fault_text(), "c.yaml: is a folder; write the path of a configuration"));
    unlink(path);
    rmdir(dir);
    faults = (struct config_faults){0};
    assert_null(config_read(path, &faults));
    assert_string_equal(fault_text(), "c.yaml: cannot be read: No such file or directory; write hobnobd CONFIG.yaml "
                                      "with the path of a configuration (hobnob init makes them)\n");
}

/* Whatever the file holds, reading it ends without a fault of ours. */
static void damaged_files_do_no_harm(void **state) {
    (void)state;
    static const char good[] =
        "name: edge-1\nidentity: &x {token: t, key: k, issuers: [i]}\nlisten:\n  mqtt: "
        "[127.0.0.1:1883, \"[::1]:1884\"]\n  peers: 0.0.0.0:7100\n"
        "federation:\n  bootstrap: [edge-2.example:7101]\n  gossip_key: g\n  private_topics: "
        "[\"local/#\"]\n  export: []\n  peers: {b: {import: [a]}}\nlimits: {clients_max: 250}\nlog: {level: debug}\n";
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (int run = 0; run < 20000; run++) {
        char text[sizeof(good)];
        memcpy(text, good, sizeof(good));
        for (int i = 0; i < 1 + run % 4; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            static const char letters[] = "\n \t:[]{}&*#\"'-,?|>%@\\\x01\xff"
                                          "az09";
            text[random % (sizeof(good) - 1)] = letters[(random >> 32) % (sizeof(letters) - 1)];
        }
        faults = (struct config_faults){0};
        config_free(config_parse(text, sizeof(good) - 1, "/etc/hobnob", &faults));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_names_its_line_and_the_remedy),
        cmocka_unit_test(proxies_are_those_named),
        cmocka_unit_test(unix_sockets_have_a_path_and_a_mode),
        cmocka_unit_test(broken_yaml_names_its_line),
        cmocka_unit_test(every_key_arrives),
        cmocka_unit_test(a_name_is_enough),
        cmocka_unit_test(no_port_opens_that_a_listen_section_does_not_name),
        cmocka_unit_test(without_a_file_all_is_in_memory_on_loopback),
        cmocka_unit_test(an_unknown_key_is_answered_with_all_that_there_are),
        cmocka_unit_test(faults_past_the_list_are_counted),
        cmocka_unit_test(too_many_of_a_list_is_a_fault_and_no_overflow),
        cmocka_unit_test(loopback_is_told_from_the_rest),
        cmocka_unit_test(file_is_read_and_paths_are_relative_to_it),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
