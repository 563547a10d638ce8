"""Bad networks for real daemons: each broker in a network namespace of its own, with a TUN device as its only way out; one process
(tests/weather) passes the packets on, late, lost, twice or not at all. Needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN) and /dev/net/tun.

    class Rain(WeatherTest):
        def test_something(self):
            fed, weather = self.under_weather(("edge-1", "edge-2", "edge-3"))
            fed.start()
            weather.set(loss=20, delay=200)             # everywhere
            weather.set("edge-1", "edge-2", cut="on")   # one way
            weather.part(["edge-1"], ["edge-2", "edge-3"])
            weather.mend()

Words are those of tests/weather/sky.h: shares in percent, times in milliseconds and one way, rates in kB/s.
"""
import itertools
import json
import subprocess
import threading

from harness import BUILD, MORTAL, PATIENCE_S, SystemTest
from namespaces import Namespace

ROUTER = BUILD / "tests" / "weather"
FIVE = ("edge-1", "edge-2", "edge-3", "edge-4", "edge-5")


class Weather:
    """The router between rooms: {name: (namespace, address)}."""

    def __init__(self, rooms, seed=1):
        self.rooms, self.lock = rooms, threading.Lock()
        assert ROUTER.exists(), f"there is no {ROUTER}: build the target weather (it is part of all_tests)"
        self.process = subprocess.Popen([*MORTAL, ROUTER, "--seed", str(seed), *(f"{name}={room.pid}={address}" for name, (room, address) in rooms.items())],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            said = self.process.communicate(timeout=PATIENCE_S)[1]
            raise OSError(said.strip())
        for room, address in rooms.values():
            room.run("ip", "address", "add", f"{address}/24", "dev", "wire0")
            room.run("ip", "link", "set", "wire0", "up", "multicast", "on", "addrgenmode", "none")  # nothing is sent but what we send
            room.run("ip", "route", "add", "default", "dev", "wire0")

    def tell(self, line):
        """What the router answers, without its ok."""
        with self.lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        assert answer.startswith("ok"), f"weather: {line}: {answer.strip() or 'it has ended'}"
        return answer[2:].strip()

    def set(self, source="*", target="*", **words):
        """Changes these words from source to target; the others stay as they are."""
        self.tell(f"set {source} {target} " + " ".join(f"{word}={value}" for word, value in words.items()))

    def between(self, one, other, **words):
        self.set(one, other, **words)
        self.set(other, one, **words)

    def clear(self):
        """Perfect cables everywhere."""
        self.tell("clear * *")

    def part(self, *sides):
        """Nothing passes from one side to another any more; within a side, what has been cut is whole."""
        self.mend()
        for here, there in itertools.permutations(sides, 2):
            for source, target in itertools.product(here, there):
                self.set(source, target, cut="on")

    def mend(self):
        """All cuts; the weather stays."""
        self.set(cut="off")

    def counts(self):
        """{(source, target): {"sent": packets, "lost": ..., ...}}"""
        return {(row["from"], row["to"]): row for row in json.loads(self.tell("counts"))}

    def reset_counts(self):
        self.tell("reset")

    def total(self, what, source=None):
        return sum(row[what] for (sender, _), row in self.counts().items() if source in (None, sender))

    def move(self, name, address):
        """The broker's host gets another address, and loses the one it had."""
        room, before = self.rooms[name]
        self.tell(f"address {name} {address}")
        room.run("ip", "address", "del", f"{before}/24", "dev", "wire0")
        room.run("ip", "address", "add", f"{address}/24", "dev", "wire0")
        room.run("ip", "route", "replace", "default", "dev", "wire0")
        self.rooms[name] = (room, address)

    def nat(self, name, address, shift=0):
        """A router before the broker's host: it goes out under this address, with ports higher by shift, and only who it has spoken to
        comes in. Again: the router was restarted, with another address or other ports."""
        self.tell(f"nat {name} {address} {shift}")

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()


class WeatherTest(SystemTest):
    """Tests are skipped where no namespaces or TUN devices are to be had."""

    def weather(self, names, seed=1):
        rooms = {}
        try:
            for number, name in enumerate(names, 1):
                rooms[name] = (Namespace(), f"10.77.0.{number}")
                self.addCleanup(rooms[name][0].close)
            made = Weather(rooms, seed)
        except OSError as error:
            self.skipTest(f"no network of our own: {error}")
        self.addCleanup(made.close)
        return made

    def under_weather(self, names=FIVE, limits=None, seed=1, **words):
        """A federation that is not started yet, and the weather it will have."""
        weather = self.weather(names, seed)
        fed = self.federation(names, hosts={name: address for name, (_, address) in weather.rooms.items()}, limits=limits)
        for broker in fed:
            broker.edit("anonymous: false", "anonymous: true")
            broker.namespace = weather.rooms[broker.name][0]
        if words:
            weather.set(**words)
        return fed, weather
