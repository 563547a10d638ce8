"""Parts crowd and turns of run.py: many clients and many subscriptions, and how long the others wait for them."""
import time

from brokers import Ours, Raw, Theirs, connected, fence, packet, raw_connect, subscribe_all, table, text

CROWD = 3000
IDLE = 10000
SUBSCRIPTIONS = 100000
WIDE = "limits: {subscriptions_per_client: 65535}\n"
GOODBYE = b"\xe0\0"


def come_and_go(broker, connect, count=CROWD):
    """A hundred at a time."""
    for at in range(0, count, 100):
        clients = [Raw(broker) for _ in range(100)]
        for i, client in enumerate(clients):
            client.send(connect(f"crowd-{at + i}"))
        for client in clients:
            if client.packet()[1][1] != 0:
                raise RuntimeError(f"{broker.name} refuses clients")
        for client in clients:
            client.send(GOODBYE).close()
    broker.settle()


def clean(client_id):
    return raw_connect(client_id)


def lasting(client_id):
    return raw_connect(client_id, clean=False)


def filters(holders, wildcard):
    return [[f"site/{'+' if wildcard else k % 100}/device/{k}/of/{i}" for k in range(SUBSCRIPTIONS // holders)] for i in range(holders)]


def subscribe_everywhere(clients, wildcard):
    for client, some in zip(clients, filters(len(clients), wildcard)):
        subscribe_all(client, some)


def one_by_one(client, count=2000):
    for i in range(count):
        client.send(packet(0x82, b"\0\1" + text(f"single/{i}/state") + b"\0"))
        client.packet()


def leave(broker, clients):
    for client in clients:
        client.send(GOODBYE).close()
    broker.settle()


class Meter:
    """Microseconds of the broker's CPU for each of count things that work() does; and how many of these a second."""

    def __init__(self, broker):
        self.broker, self.cells = broker, []

    def measure(self, count, work):
        cpu_s, begun = self.broker.cpu_s(), time.monotonic()
        work()
        took_s = time.monotonic() - begun
        self.cells.append(f"{(self.broker.cpu_s() - cpu_s) / count * 1e6:.1f}")
        return took_s


def measured(broker):
    meter = Meter(broker)
    meter.measure(CROWD, lambda: come_and_go(broker, clean))
    meter.measure(CROWD, lambda: come_and_go(broker, lasting))
    meter.measure(CROWD, lambda: come_and_go(broker, lasting))
    for is_clean in (True, False):
        holders = [connected(broker, f"holder-{is_clean}-{i}", clean=is_clean) for i in range(10)]
        meter.measure(SUBSCRIPTIONS, lambda: subscribe_everywhere(holders, False))
        if is_clean:
            meter.measure(SUBSCRIPTIONS, lambda: subscribe_everywhere(holders, True))
            meter.measure(2 * SUBSCRIPTIONS, lambda: leave(broker, holders))
        else:
            meter.measure(2000, lambda: one_by_one(holders[0]))
            leave(broker, holders)
    idle = [connected(broker, f"idle-{i}") for i in range(IDLE)]
    meter.measure(5, lambda: time.sleep(5))
    meter.measure(IDLE, lambda: [fence(client) for client in idle])
    for client in idle:
        client.close()
    return meter.cells


def crowd(options, folder):
    del options
    titles = ("a client comes and goes, session of its own time", "the same, session lasts, first time", "and again, session found", "a subscription, exact",
              "a subscription, one level +", "its end with its client", "a subscription that lasts", "the same, one in a packet", f"a second with {IDLE:,} idle clients",
              "a PINGREQ of one of them")
    columns = []
    for broker in (Ours(folder / "ours", WIDE), Theirs(folder / "theirs")):
        broker.start()
        columns.append(measured(broker))
        broker.stop()
    print(f"\nMicroseconds of the broker's CPU, the system's part included. {CROWD:,} clients, {SUBSCRIPTIONS:,} subscriptions of ten clients, a hundred in a packet.\n"
          "What lasts is committed to the disk by hobnobd, with an fsync, and kept in memory by mosquitto.")
    table(("", "hobnobd", "mosquitto"), list(zip(titles, *columns)))


# ---- turns ----

def bench(*load):
    return lambda broker: broker.bench("--seconds", 2, *load)


def all_subscribe_and_leave(broker):
    clients = [connected(broker, f"holder-{i}") for i in range(10)]
    subscribe_everywhere(clients, False)
    leave(broker, clients)


def all_retained_to_one(broker):
    publisher = connected(broker, "publisher")
    for at in range(0, SUBSCRIPTIONS, 1000):
        publisher.send(b"".join(packet(0x31, text(f"kept/{i % 100}/{i}") + b"x" * 64) for i in range(at, at + 1000)))
    fence(publisher)
    reader = connected(broker, "reader")
    reader.send(packet(0x82, b"\0\1" + text("#") + b"\0"))
    for _ in range(SUBSCRIPTIONS + 1):
        reader.packet()


def all_go_at_once(broker):
    clients = [connected(broker, f"idle-{i}") for i in range(IDLE)]
    for client in clients:
        client.close()
    broker.settle()


TURNS = (
    ("nothing", lambda broker: time.sleep(0.5)),
    ("1 to 1", bench()),
    ("1 to 100", bench("--subscribers", 100)),
    ("1 to 1,000", bench("--subscribers", 1000)),
    ("100 to 1", bench("--publishers", 100, "--window", 10000)),
    ("10 pairs, QoS 2, sessions that last", bench("--topics", 10, "--qos", 2, "--mqtt", 5, "--durable")),
    ("1 MB, 1 to 1", bench("--size", 1 << 20, "--window", 4)),
    ("1 MB, 1 to 100", bench("--size", 1 << 20, "--window", 2, "--subscribers", 100)),
    ("3,000 clients come and go", lambda broker: come_and_go(broker, clean)),
    ("10 clients subscribe to 10,000 each, and leave", all_subscribe_and_leave),
    ("100,000 retained messages to one client", all_retained_to_one),
    ("10,000 clients go at once", all_go_at_once),
)


def turns(options, folder):
    rows = []
    for i, (title, work) in enumerate(TURNS):
        longest = []
        for turn in range(options.rounds):
            broker = Ours(folder / f"{i}-{turn}", WIDE).start()
            work(broker)
            longest.append(broker.metric("hobnob_turn_seconds_max") * 1e3)
            broker.stop()
        rows.append((title, f"{min(longest):.0f}", f"{max(longest):.0f}"))
    print(f"\nMilliseconds of hobnobd's longest turn of the loop, in which nobody else is served: the best and the worst of {options.rounds} runs. On a busy\n"
          "machine whatever else ran meanwhile is in it.")
    table(("", "best", "worst"), rows)
