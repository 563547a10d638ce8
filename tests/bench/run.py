#!/usr/bin/python3
"""Measures hobnobd beside Debian's Mosquitto, in turns, and prints tables of medians: run.py [--seconds S] [--rounds N] [PART ...]

Parts: cases (throughput and what a delivery costs), latency, scale (cost of a publication among many subscriptions and retained
topics), memory (idle clients), payloads (CPU per byte), ways (TLS and WebSocket: throughput, handshakes, memory), durable (sessions that last, by
storage.sync), crowd (connections and subscriptions a second), turns (longest turn of the loop under each load). HOBNOB_BUILD is the folder of a release build (default build/release).

Figures of one run may be compared with each other; the machine and whoever else uses it is in all of them.
"""
import argparse
import shutil
import tempfile
from pathlib import Path

from brokers import Ours, Theirs, connected, fence, median, need, number, packet, subscribe_all, table, text
from crowd import crowd, turns
from durable import durable
from listeners import ways

CASES = (
    ("1 to 1", ()),
    ("10 pairs", ("--topics", 10)),
    ("1 to 100", ("--subscribers", 100)),
    ("100 to 1", ("--publishers", 100, "--window", 10000)),  # a hundred of each publisher on their way
    ("10 pairs, QoS 1", ("--topics", 10, "--qos", 1)),
    # Mosquitto 2.0.11 loses publications of QoS 2 beyond its max_inflight_messages, 20.
    ("10 pairs, QoS 2, 20 in flight", ("--topics", 10, "--qos", 2, "--inflight", 20)),
    ("10 pairs, QoS 2", ("--topics", 10, "--qos", 2)),
)


def both(folder, ours="", theirs=""):
    return Ours(folder / "ours", ours), Theirs(folder / "theirs", theirs)


def cases(options, folder):
    rows = []
    brokers = [broker.start() for broker in both(folder)]
    for title, load in CASES:
        found = ([], [])
        for _ in range(options.rounds):
            for broker, results in zip(brokers, found):
                results.append(broker.bench("--seconds", options.seconds, *load))
        per_cpu_s, per_s, lost = [], [], []
        for results in found:
            per_cpu_s.append(median(result["broker"]["work_per_cpu_s"] for result in results))
            per_s.append(median(result["delivered_per_s"] for result in results))
            lost.append(f"{sum(result['lost'] for result in results)}")
        rows.append((title, number(per_cpu_s[0]), number(per_cpu_s[1]), f"{per_cpu_s[0] / per_cpu_s[1]:.1f}", number(per_s[0]), number(per_s[1]), *lost))
    print(f"\nDeliveries of 64 B per CPU second of the broker, and per second; medians of {options.rounds} x {options.seconds:g} s")
    table(("", "hobnobd", "mosquitto", "ratio", "hobnobd/s", "mosquitto/s", "lost", "lost"), rows)
    for broker in brokers:
        broker.stop()


def latency(options, folder):
    rows = []
    brokers = [broker.start() for broker in both(folder)]
    for qos in (0, 1):
        found = ([], [])
        for _ in range(options.rounds):
            for broker, results in zip(brokers, found):
                results.append(broker.bench("--rate", 1000, "--seconds", options.seconds, "--qos", qos)["latency_us"])
        for broker, results in zip(brokers, found):
            rows.append((f"{broker.name}, QoS {qos}", *(f"{median(result[share] for result in results):.1f}" for share in ("p50", "p90", "p99", "max"))))
    print(f"\nLatency at 1,000 messages of 64 B a second, 1 to 1, microseconds; medians of {options.rounds} x {options.seconds:g} s")
    table(("", "p50", "p90", "p99", "max"), rows)
    for broker in brokers:
        broker.stop()


def cost_us(broker, publications, work):
    """Microseconds of the broker's CPU per publication."""
    before = broker.cpu_s()
    work()
    return (broker.cpu_s() - before) / publications * 1e6


def publish_each(publisher, topics, times, retain=False, payload=b"x" * 64):
    """QoS 0 to each topic in turn, so many times, to the end."""
    batch = b"".join(packet(0x31 if retain else 0x30, text(topic) + payload) for topic in topics)
    for _ in range(times):
        publisher.send(batch)
    fence(publisher)


def scale(options, folder):
    """What nobody else's subscriptions and retained messages may cost: a publication on a topic of its own with one subscriber; and one
    on each of the many topics."""
    rows = []
    ours = "limits: {subscriptions_per_client: 65535}\n"
    theirs = "max_queued_messages 0\n"
    for count in (10, 1000, 100000):
        topics = [f"load/{i % 100}/{i}/state" for i in range(count)]
        times = max(1, 200000 // count)
        for kind in (Ours, Theirs):
            broker = kind(folder / f"{kind.__name__}-{count}", ours if kind is Ours else theirs).start()
            pair = median(1e6 / broker.bench("--seconds", options.seconds)["broker"]["work_per_cpu_s"] for _ in range(options.rounds))
            publisher = connected(broker, "publisher")
            holders = [connected(broker, f"holder-{i}") for i in range(10)]
            for i, holder in enumerate(holders):
                subscribe_all(holder, topics[i::10])
            among = median(1e6 / broker.bench("--seconds", options.seconds)["broker"]["work_per_cpu_s"] for _ in range(options.rounds))
            # Nobody matches: the search alone.
            search = cost_us(broker, count * times, lambda: publish_each(publisher, [topic + "x" for topic in topics], times))
            for holder in holders:
                holder.close()
            retained = cost_us(broker, count, lambda: publish_each(publisher, topics, 1, True))
            replaced = cost_us(broker, count * times, lambda: publish_each(publisher, topics, times, True))
            kept = median(1e6 / broker.bench("--seconds", options.seconds)["broker"]["work_per_cpu_s"] for _ in range(options.rounds))
            rows.append((f"{broker.name}, {count:,}", *(f"{value:.2f}" for value in (pair, among, search, kept, retained, replaced)), f"{broker.resident() / 2**20:.1f}"))
            publisher.close()
            broker.stop()
    print(f"\nMicroseconds of the broker's CPU per publication: 1 to 1 on a topic of its own, alone, among N other subscriptions, and among N retained\n"
          f"topics; and to N topics in turn: nobody subscribed among N subscriptions, retained the first time, and replaced; MiB resident after that.\n"
          "hobnobd brings retained messages to the disk, mosquitto keeps them in memory here.")
    table(("N", "alone", "subscribed", "no match", "retained", "retain first", "replace", "MiB"), rows)


def memory(options, folder):
    rows = []
    for broker in both(folder):
        broker.start()
        idle = broker.resident()
        clients = [connected(broker, f"idle-{i}") for i in range(10000)]
        full = broker.resident()
        rows.append((broker.name, f"{idle / 2**20:.1f}", f"{full / 2**20:.1f}", number((full - idle) / len(clients))))
        for client in clients:
            client.close()
        broker.stop()
    print("\nMemory resident: MiB with no client, MiB with 10,000 idle ones, bytes for each of these")
    table(("", "empty", "10,000", "each"), rows)


def payloads(options, folder):
    rows = []
    brokers = [broker.start() for broker in both(folder)]
    for size, window in ((64, 1000), (1 << 10, 500), (16 << 10, 50), (256 << 10, 4), (1 << 20, 2), (4 << 20, 1)):
        for subscribers in (1, 10):
            found = ([], [])
            for _ in range(options.rounds):
                for broker, results in zip(brokers, found):
                    cpu_s = broker.cpu_s()
                    result = broker.bench("--seconds", options.seconds, "--size", size, "--window", window, "--subscribers", subscribers)
                    results.append((broker.cpu_s() - cpu_s) / (result["arrived"] * size) * 1e9)
            ours, theirs = map(median, found)
            rows.append((f"{size:,} B, 1 to {subscribers}", f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.1f}"))
    print(f"\nNanoseconds of the broker's CPU per byte delivered, QoS 0; medians of {options.rounds} x {options.seconds:g} s")
    table(("", "hobnobd", "mosquitto", "ratio"), rows)
    for broker in brokers:
        broker.stop()


PARTS = {"cases": cases, "latency": latency, "scale": scale, "memory": memory, "payloads": payloads, "ways": ways, "durable": durable, "crowd": crowd,
         "turns": turns}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3, help="measured each time (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is taken (default 3)")
    parser.add_argument("parts", nargs="*", metavar="PART", help=" ".join(PARTS))
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    need()
    folder = Path(tempfile.mkdtemp(prefix="hobnob-bench-"))
    try:
        for name in options.parts or PARTS:
            PARTS[name](options, folder / name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
