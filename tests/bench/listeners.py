"""Part ways of run.py: what each way in costs."""
import re
import socket
import ssl

from brokers import Ours, Theirs, free_ports, median, number, table
from ways import KINDS, Client, Pair, load

from certificates import Authority  # of tests/system

LOADS = ((64, 1, 100), (64, 10, 10), (1024, 10, 10), (16384, 1, 4))  # bytes, pairs, publications of a write
SUBSCRIBERS = 100
HANDSHAKES = 200
IDLE = 300  # Mosquitto takes a quarter of a second to accept a WebSocket


class OursEverywhere(Ours):
    def __init__(self, folder, crt, key):
        super().__init__(folder, f"tls: {{cert: {crt}, key: {key}}}\n")
        mqtts, wss = free_ports(1, bases=2)
        lines = self.config.read_text().replace("listen:\n", f"listen:\n  mqtts: 127.0.0.1:{mqtts}\n  wss: 127.0.0.1:{wss}\n")
        self.config.write_text(lines)
        self.ports = {kind: int(re.search(rf"^  {kind}: .*:(\d+)$", lines, re.MULTILINE)[1]) for kind in KINDS}


class TheirsEverywhere(Theirs):
    def __init__(self, folder, ca, crt, key):
        mqtts, ws, wss = free_ports(1, bases=3)
        files = f"cafile {ca}\ncertfile {crt}\nkeyfile {key}\n"
        listener = "listener {} 127.0.0.1\n".format
        super().__init__(folder, f"{listener(mqtts)}{files}{listener(ws)}protocol websockets\n{listener(wss)}protocol websockets\n{files}user root\n")
        self.ports = dict(zip(KINDS, (self.mqtt_port, mqtts, ws, wss)))

    def ready(self):
        for port in self.ports.values():
            socket.create_connection(("127.0.0.1", port), 10).close()
        return True


def dialler(broker, kind, context):
    return lambda client_id, session=None: Client(("127.0.0.1", broker.ports[kind]), kind, client_id, context, session)


def throughput(options, brokers, context):
    rows = []
    for kind in KINDS:
        for size, count, batch in LOADS:
            found = ([], [])
            for _ in range(options.rounds):
                for broker, results in zip(brokers, found):
                    pairs = [Pair(dialler(broker, kind, context), i, batch, size) for i in range(count)]
                    deliveries, used = load(broker, pairs, options.seconds, batch)
                    results.append(used / deliveries * 1e9)
                    for pair in pairs:
                        pair.close()
            ours, theirs = map(median, found)
            rows.append((f"{kind}, {size} B, {count} to {count}", number(ours), number(theirs), f"{theirs / ours:.1f}"))
    print("\nNanoseconds of the broker's CPU per publication, QoS 0, in and out by the same way; each packet in a TLS record or WebSocket frame of\n"
          "its own, so many of them in a write: " + ", ".join(f"{batch} of {size} B" for size, _, batch in LOADS))
    table(("", "hobnobd", "mosquitto", "ratio"), rows)


def handshake(broker, kind, context, resumed):
    """(microseconds of the broker's CPU, the cipher) of connecting and leaving."""
    dial = dialler(broker, kind, context)
    first = dial("first")
    cipher, session = first.tls.cipher()[0] if first.tls else "", first.tls.session if resumed else None
    before = broker.cpu_s()
    for i in range(HANDSHAKES):
        client = dial(f"client-{i}", session)
        if resumed and not client.tls.session_reused:
            raise RuntimeError(f"{broker.name} resumed no session")
        client.close()
    first.close()
    broker.settle()
    return (broker.cpu_s() - before) / HANDSHAKES * 1e6, cipher


def handshakes(options, brokers, ca):
    rows = []
    for title, kind, version, resumed in (("mqtt", "mqtt", None, False), ("ws", "ws", None, False), ("mqtts, TLS 1.3", "mqtts", ssl.TLSVersion.TLSv1_3, False),
                                          ("mqtts, TLS 1.3 resumed", "mqtts", ssl.TLSVersion.TLSv1_3, True),
                                          ("mqtts, TLS 1.2", "mqtts", ssl.TLSVersion.TLSv1_2, False),
                                          ("mqtts, TLS 1.2 resumed", "mqtts", ssl.TLSVersion.TLSv1_2, True)):
        context = ssl.create_default_context(cafile=ca)
        if version:
            context.minimum_version = context.maximum_version = version
        found, ciphers = ([], []), set()
        for _ in range(options.rounds):
            for broker, results in zip(brokers, found):
                used, cipher = handshake(broker, kind, context, resumed)
                results.append(used)
                ciphers.add(cipher)
        ours, theirs = map(median, found)
        rows.append((title, number(ours), number(theirs), f"{theirs / ours:.1f}", " ".join(sorted(ciphers))))
    print(f"\nMicroseconds of the broker's CPU for a client that connects, is accepted and leaves; certificate ECDSA P-256; medians of {options.rounds} x {HANDSHAKES}")
    table(("", "hobnobd", "mosquitto", "ratio", "cipher"), rows)


def idle(brokers, context):
    rows = []
    for kind in KINDS:
        each = []
        for broker in brokers:
            broker.stop()
            broker.start()  # or it would use what others have left free
            before = broker.resident()
            clients = [dialler(broker, kind, context)(f"idle-{i}") for i in range(IDLE)]
            each.append((broker.resident() - before) / IDLE)
            for client in clients:
                client.close()
        rows.append((kind, *map(number, each)))
    print(f"\nBytes resident for each of {IDLE:,} idle clients")
    table(("", "hobnobd", "mosquitto"), rows)


def ways(options, folder):
    folder.mkdir(parents=True, exist_ok=True)
    ca = Authority(folder)
    crt, key = ca.sign("server")
    brokers = [OursEverywhere(folder / "ours", crt, key).start(), TheirsEverywhere(folder / "theirs", ca.crt, crt, key).start()]
    context = ssl.create_default_context(cafile=ca.crt)
    throughput(options, brokers, context)
    handshakes(options, brokers, ca.crt)
    idle(brokers, context)
    for broker in brokers:
        broker.stop()
