#!/usr/bin/python3
"""How a client that behaves is served while strangers try what they can: bounds.py [--seconds S] [--against mosquitto] [NAME ...]

Its latency from publish to receive, at 500 messages a second of QoS 1, before and under each attack; and the broker's memory.
HOBNOB_BUILD is the folder of a release build (default build/release).
"""
import argparse
import shutil
import tempfile
import threading
from pathlib import Path

from brokers import Ours, Theirs, need, table

import attacks

ATTACKS = {
    "half-open": ("10,000 connections without a byte", lambda broker: attacks.half_open(broker, 10000)),
    "slow": ("1,000 with a byte a minute", lambda broker: attacks.a_byte_a_minute(broker, 1000)),
    "large": ("4 sending 1 MB packets", lambda broker: attacks.large_packets(broker, 4)),
    "flood-0": ("10 publishers flooding, QoS 0, 10 subscribers", lambda broker: attacks.publishers(broker, 0, 10, 10)),
    "flood-1": ("10 publishers flooding, QoS 1, 10 subscribers", lambda broker: attacks.publishers(broker, 1, 10, 10)),
    "subscriptions": ("one client subscribing 100,000 times", lambda broker: attacks.many_subscriptions(broker, 100000)),
}


def row(title, before, under, memory):
    return (title, *(f"{latency[share]:,.0f}" for latency in (before, under) for share in ("p50", "p99", "max")), memory)


def failed(title, before, fault):
    return (title, *(f"{before[share]:,.0f}" for share in ("p50", "p99", "max")), "-", "-", str(fault)[:60], "")


def deaf(kind, folder, seconds):
    """The subscriber that never reads, with 200 MB for it; the healthy client is measured meanwhile."""
    broker = kind(folder / "deaf").start()
    before = attacks.healthy(broker, seconds)
    empty = broker.resident()
    with attacks.deaf_subscriber(broker, 1000, 200000) as work:
        thread = threading.Thread(target=work)
        thread.start()
        under = attacks.healthy(broker, seconds)
        thread.join()
        full = broker.resident()
    broker.stop()
    return row("a subscriber that never reads, 200 MB for it", before, under, f"{empty / 2**20:.0f} -> {full / 2**20:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5, help="measured each time (default 5)")
    parser.add_argument("--against", choices=["mosquitto"], help="another broker instead of hobnobd")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join([*ATTACKS, "deaf"]))
    options = parser.parse_args()
    need()
    kind = Theirs if options.against else Ours
    more = "" if options.against else "limits: {subscriptions_per_client: 65535}\n"
    folder = Path(tempfile.mkdtemp(prefix="hobnob-bench-"))
    rows = []
    try:
        for name in options.names or [*ATTACKS, "deaf"]:
            if name == "deaf":
                rows.append(deaf(kind, folder, options.seconds))
                continue
            title, attack = ATTACKS[name]
            broker = kind(folder / name, more).start()
            before = attacks.healthy(broker, options.seconds)
            empty = broker.resident()
            try:
                with attack(broker):
                    under = attacks.healthy(broker, options.seconds)
                    full = broker.resident()
                rows.append(row(title, before, under, f"{empty / 2**20:.0f} -> {full / 2**20:.0f}"))
            except AssertionError as fault:
                rows.append(failed(title, before, fault))
            broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"Latency of a client that behaves, microseconds, before and under attack; MiB resident of {'mosquitto' if options.against else 'hobnobd'}")
    table(("", "p50", "p99", "max", "p50", "p99", "max", "MiB"), rows)


if __name__ == "__main__":
    main()
