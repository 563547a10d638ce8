#!/usr/bin/python3
"""A broker under mixed load for a long time: soak.py [--minutes M] [--sample S]

Clients come and go, some with wills; durable sessions sleep and fetch what they missed; QoS 0 to 2; retained messages are set and deleted;
groups share; WebSocket; subscriptions without end. Memory and open files are sampled and printed; they must be flat once all the state
that the load keeps is there. What a worker should get and does not is a fault too. Exit status 0 if all held.

HOBNOB_BUILD is the build (default build/release).
"""
import argparse
import itertools
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
import urllib.error
from pathlib import Path

from brokers import Ours, connected, need, packet, subscribe_all, table, text
from clients import V5, Paho, Raw, raw_connect, raw_publish
from harness import HOBNOB, run

WARM_UP = 0.25         # of the time
GROWTH_MAX = 1.03      # of memory, from the quarter after the warm-up to the last
GROWTH_MIN = 1 << 20   # bytes that are no growth

RETAINED_TOPICS = 500
SLEEPERS = 40
FILTERS = 3000


class Load:
    """Workers on threads of their own until over is set. Each counts what it does."""

    def __init__(self, broker):
        self.broker, self.over = broker, threading.Event()
        self.done, self.faults, self.threads = {}, [], []

    def start(self, *workers):
        for worker in workers:
            thread = threading.Thread(target=self._run, args=(worker,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _run(self, worker):
        name = worker.__name__
        dice = random.Random(name)
        try:
            for turn in itertools.count():
                if self.over.is_set():
                    return
                worker(self.broker, dice, turn)
                self.done[name] = turn + 1
        except Exception as error:
            self.faults.append(f"{name}: {type(error).__name__}: {error}")
            self.over.set()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(120)


def expect(seen, wanted, what):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r}, not {wanted!r}")


def answer(client, first):
    """The next packet of this type; what is published meanwhile is acknowledged and returned too."""
    published = []
    while (got := client.packet()) is not None:
        if got[0] & 0xf0 == first & 0xf0:
            return got[1], published
        if got[0] >> 4 == 3:
            published.append(got)
            acknowledge(client, got)
        elif got[0] >> 4 == 6:
            client.send(packet(0x70, got[1][:2]))
    raise AssertionError("the broker has closed the connection")


def acknowledge(client, got):
    qos = got[0] >> 1 & 3
    if qos:
        at = 2 + int.from_bytes(got[1][:2], "big")
        client.send(packet(0x40 if qos == 1 else 0x50, got[1][at:at + 2]))


def comes_and_goes(broker, dice, turn):
    """A client with a will; every second one is cut off, and its will goes out."""
    version = dice.choice((4, 5))
    client = Raw(broker).send(raw_connect(f"churn-{turn}", version=version, will=("soak/will", "gone")))
    expect(client.packet()[1][1], 0, "CONNACK")
    client.send(packet(0x82, b"\0\1" + (b"\0" if version == 5 else b"") + text(f"soak/{dice.randrange(20)}/+") + b"\1"))
    answer(client, 0x90)
    for i in range(5):
        client.send(packet(0x32, text(f"soak/{dice.randrange(20)}/{i}") + bytes([0, i + 1]) + (b"\0" if version == 5 else b"") + b"x" * dice.randrange(500)))
    if turn % 2:
        client.send(b"\xe0\0")
    client.close()


def sleeps_and_wakes(broker, dice, turn):
    """A durable session misses ten messages and gets them all. Now and then it is ended for good."""
    name = f"sleeper-{dice.randrange(SLEEPERS)}"
    if turn % 10 == 9:
        connected(broker, name).send(b"\xe0\0").close()
    client = connected(broker, name, clean=False)
    client.send(packet(0x82, b"\0\1" + text(f"sleep/{name}") + b"\2"))
    answer(client, 0x90)
    client.send(b"\xe0\0").close()
    publisher = connected(broker, "sleep-publisher")
    for i in range(10):
        publisher.send(raw_publish(f"sleep/{name}", f"{turn} {i}".encode(), 1 + i % 2, i + 1))
        if i % 2:
            answer(publisher, 0x50)
            publisher.send(packet(0x62, bytes([0, i + 1])))
            answer(publisher, 0x70)
        else:
            answer(publisher, 0x40)
    publisher.send(b"\xe0\0").close()
    client = connected(broker, name, clean=False)
    seen = set()
    while len(seen) < 10:
        got = client.packet()
        if got[0] >> 4 == 3:
            acknowledge(client, got)
            seen.add(got[1].rsplit(b" ", 1)[1])
        elif got[0] >> 4 == 6:
            client.send(packet(0x70, got[1][:2]))
    client.send(b"\xc0\0")
    answer(client, 0xd0)
    client.send(b"\xe0\0").close()


def retains_and_deletes(broker, dice, turn):
    client = connected(broker, "retainer")
    for i in range(50):
        payload = b"" if dice.random() < 0.5 else b"x" * dice.randrange(1, 300)
        client.send(raw_publish(f"kept/{dice.randrange(RETAINED_TOPICS)}", payload, retain=True))
    subscribe_all(client, [f"kept/{dice.randrange(RETAINED_TOPICS)}", "kept/+"])
    client.send(b"\xc0\0")
    answer(client, 0xd0)
    client.send(b"\xe0\0").close()


def shares(broker, dice, turn):
    """Each message reaches one of three members."""
    members = [connected(broker, f"member-{i}") for i in range(3)]
    for member in members:
        subscribe_all(member, ["$share/group/shared/+"], qos=1)
    publisher = connected(broker, "share-publisher")
    for i in range(60):
        publisher.send(raw_publish("shared/x", b"%d" % i, 1, i + 1))
        answer(publisher, 0x40)
    seen = []
    for member in members:
        member.send(b"\xc0\0")
        seen += [got[1][-2:] for got in answer(member, 0xd0)[1]]
        member.send(b"\xe0\0").close()
    publisher.send(b"\xe0\0").close()
    expect(len(seen), 60, "messages to the group")


def subscribes(broker, dice, turn):
    """A connection that only subscribes and unsubscribes."""
    client = connected(broker, "subscriber")
    for _ in range(20):
        some = [f"many/{dice.randrange(FILTERS)}/{dice.choice('+#')}" for _ in range(20)]
        subscribe_all(client, some)
        client.send(packet(0xa2, b"\0\2" + b"".join(text(item) for item in some)))
        answer(client, 0xb0)
    client.send(b"\xe0\0").close()


def comes_by_websocket(broker, dice, turn):
    client = Paho(broker, f"web-{turn}", version=V5, websocket=True)
    client.subscribe(f"web/{turn}", qos=1)
    for i in range(10):
        client.publish(f"web/{turn}", b"%d" % i + b"x" * dice.randrange(2000), 1)
    client.wait_count(10)
    client.close()


def flows(broker, dice, turn):
    """A steady stream at each QoS, none lost."""
    done = run(HOBNOB, "bench", "--port", broker.mqtt_port, "--topics", 3, "--rate", 600, "--seconds", 5, "--qos", turn % 3, "--mqtt", "5" if turn % 2 else "3.1.1", "--json", timeout_s=120)
    if done.returncode != 0 or '"lost": 0' not in done.stdout:
        raise AssertionError(f"hobnob bench: {done.stdout}{done.stderr}")


WORKERS = (comes_and_goes, sleeps_and_wakes, retains_and_deletes, shares, subscribes, comes_by_websocket, flows)


def sample(broker, start):
    numbers = broker.metrics()
    data = sum(path.stat().st_size for path in broker.folder.rglob("*") if path.is_file() and path.suffix != ".log")
    return {"s": time.monotonic() - start, "resident": broker.resident(), "files": broker.open_files(), "sessions": numbers.get("hobnob_sessions", 0),
            "subscriptions": numbers.get("hobnob_subscriptions", 0), "retained": numbers.get("hobnob_retained_messages", 0), "disk": data, "cpu": broker.cpu_s()}


def judge(samples, end_s):
    """What is not flat, from the quarter after the warm-up to the last quarter of the time."""
    faults = []
    early = [s for s in samples if WARM_UP * end_s <= s["s"] < 2 * WARM_UP * end_s]
    late = [s for s in samples if s["s"] >= 0.75 * end_s]
    for what, least in (("resident", GROWTH_MIN), ("files", 12), ("disk", 4 * GROWTH_MIN)):
        before, after = (statistics.median(s[what] for s in part) for part in (early, late))
        if after > before * GROWTH_MAX + least:
            faults.append(f"{what} grows: {before:,.0f} after the warm-up, {after:,.0f} at the end")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--sample", type=float, metavar="S", help="seconds between two samples (default: a hundredth of the time, at least 1)")
    options = parser.parse_args()
    need()
    end_s = options.minutes * 60
    every_s = options.sample or max(1, end_s / 100)
    folder = Path(tempfile.mkdtemp(prefix="hobnob-soak-"))
    broker = Ours(folder / "broker").start()
    load = Load(broker)
    start, samples = time.monotonic(), []
    load.start(*WORKERS)
    titles = ("minute", "resident KiB", "files", "sessions", "subscriptions", "retained", "disk KiB", "CPU s")
    print("  ".join(titles), flush=True)
    try:
        while (passed := time.monotonic() - start) < end_s and not load.over.is_set():
            load.over.wait(min(every_s, max(0.01, end_s - passed)))
            try:
                samples.append(now := sample(broker, start))
            except (OSError, urllib.error.URLError, AssertionError) as error:
                load.faults.append(f"sampling: {error}")
                break
            cells = (f"{now['s'] / 60:.2f}", f"{now['resident'] / 1024:.0f}", now["files"], *(f"{now[key]:.0f}" for key in ("sessions", "subscriptions", "retained")),
                     f"{now['disk'] / 1024:.0f}", f"{now['cpu']:.1f}")
            print("  ".join(str(cell).rjust(len(title)) for cell, title in zip(cells, titles)), flush=True)
        load.stop()
        faults = load.faults + broker.faults()
        if not faults:
            faults += judge(samples, end_s)
        status = broker.stop()
        if status != 0:
            faults.append(f"exit status {status} after SIGTERM")
        if faults:
            print(broker.log()[-4000:])
        print()
        table(("worker", "turns"), sorted(load.done.items()))
        for fault in faults:
            print(f"FAILED  {fault}")
        print("flat" if not faults else f"{len(faults)} faults")
        return 1 if faults else 0
    finally:
        broker.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
