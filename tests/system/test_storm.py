"""Five brokers on bad networks: nobody dies who lives, the registry agrees, and what QoS 1 and 2 promise arrives (G5, G9, G10).

HOBNOB_STORM_S is how long the bad weather of the longest test lasts, in seconds; from a minute on (tools/test --long) there are more losses and more cuts.
"""
import itertools
import os
import time
import unittest

from clients import Paho
from harness import PATIENT_SUBACK, Stopwatch, holds, wait_until
from weather import FIVE, WeatherTest

STORM_S = float(os.environ.get("HOBNOB_STORM_S", 5))
long_only = unittest.skipUnless(STORM_S >= 60, "tools/test --long")
# Dialling takes many round trips, so the first publications wait for the links longer than on a good network.
SLOW_NETWORK = {**PATIENT_SUBACK, "replay_window_ms": 120_000}
HEAL_S = 10.0


class StormTest(WeatherTest):
    def brew(self, **words):
        """Five brokers, known to each other; each with a client that hears everything and one that speaks."""
        self.fed, self.sky = self.under_weather(limits=SLOW_NETWORK)
        self.fed.start()
        self.sky.set(**words)
        self.hearers = {name: self.closing(Paho(self.fed[name])) for name in FIVE}
        self.speakers = {name: self.closing(Paho(self.fed[name])) for name in FIVE}
        for hearer in self.hearers.values():
            hearer.subscribe("storm/#", qos=2)
        self.said = {(name, qos): 0 for name in FIVE for qos in (1, 2)}

    def speak(self, names=FIVE):
        """One publication of each QoS from each of these; nobody waits for the PUBACK."""
        for name, qos in itertools.product(names, (1, 2)):
            self.speakers[name].publish(f"storm/{name}/{qos}", b"%d" % self.said[name, qos], qos, wait=False)
            self.said[name, qos] += 1

    def heard(self, at, name, qos):
        return [int(payload) for payload in self.hearers[at].payloads(f"storm/{name}/{qos}")]

    def missing(self):
        return {(at, name, qos): self.said[name, qos] - len(found) for at in FIVE for name, qos in self.said
                if len(found := set(self.heard(at, name, qos))) < self.said[name, qos]}

    def deaths(self):
        return [line for broker in self.fed for line in broker.log_lines("member", "is down")]

    def agree(self):
        """All alive, with one table."""
        states = [set(broker.members().values()) == {"alive"} for broker in self.fed]
        return all(states) and len({broker.api("status")["table_hash"] for broker in self.fed}) == 1

    def all_pairs(self, timeout_s=HEAL_S, watch=None, names=FIVE):
        """Everybody hears what everybody says from now on."""
        watch = watch or Stopwatch()
        first = {key: count for key, count in self.said.items()}
        open_pairs = {(at, name) for at, name in itertools.product(names, names)}
        while open_pairs:
            self.speak(names)
            pause = time.monotonic() + 0.1
            while open_pairs and time.monotonic() < pause:
                open_pairs = {(at, name) for at, name in open_pairs if max(self.heard(at, name, 1), default=-1) < first[name, 1]}
                time.sleep(0.01)
            self.assertFalse(open_pairs and watch.seconds() > timeout_s, f"still deaf after {timeout_s} s: {sorted(open_pairs)}")
        return watch.seconds()

    def nothing_twice_at_qos_2(self):
        for at, name in itertools.product(FIVE, FIVE):
            found = self.heard(at, name, 2)
            self.assertEqual(len(found), len(set(found)), f"QoS 2 from {name} at {at}")
            self.assertEqual(found, sorted(found), f"order of QoS 2 from {name} at {at}")

    def measure(self, seconds, step_s=0.25):
        """Weather for so long, with everybody speaking; what gossip cost meanwhile, per broker."""
        before = [broker.metrics() for broker in self.fed]
        start, worst = time.monotonic(), 0
        while time.monotonic() - start < seconds:
            self.speak()
            time.sleep(step_s)
        took = time.monotonic() - start
        after = [broker.metrics() for broker in self.fed]
        grown = lambda name: sum(b[name] - a[name] for a, b in zip(before, after)) / len(before)
        return {"kB/s": grown("hobnob_gossip_bytes_sent_total") / took / 1000, "datagrams/s": grown("hobnob_gossip_datagrams_sent_total") / took,
                "probes failed": grown("hobnob_gossip_probes_failed_total"), "suspicions": grown("hobnob_gossip_suspicions_total"),
                "refutations": grown("hobnob_gossip_refutations_total"), "deaths": len(self.deaths())}


class BadWeather(StormTest):
    def rain(self, loss, seconds):
        self.brew(loss=loss, delay=200, jitter=20)
        figures = self.measure(seconds)
        watch = Stopwatch()
        wait_until(f"all of QoS 1 and 2 arrives at {loss} % loss", lambda: not self.missing(), 60 + seconds)
        figures["last after s"] = watch.seconds()
        wait_until("one table", self.agree, 30)
        print(f"        {loss} % loss, 200 ms one way, {seconds:g} s, each broker: " + ", ".join(f"{value:.1f} {name}" for name, value in figures.items()), flush=True)
        self.assertEqual(self.deaths(), [], "nobody has died")
        self.nothing_twice_at_qos_2()

    def test_nobody_dies_and_all_arrives_at_20_percent_loss_and_200_ms(self):
        self.rain(20, STORM_S)

    @long_only
    def test_figures_at_other_losses(self):
        for loss in (0, 5, 40):
            with self.subTest(loss=loss):
                self.rain(loss, STORM_S)
                self.doCleanups()


class Partitions(StormTest):
    def setUp(self):
        self.brew(loss=2, delay=10, jitter=5)
        self.all_pairs(30)

    def heal(self, what):
        self.sky.mend()
        watch = Stopwatch()
        spoke = self.all_pairs(HEAL_S, watch)
        wait_until("one table", self.agree, HEAL_S, watch)
        print(f"        {what}: all hear all {spoke:.1f} s after the heal, one table after {watch.seconds():.1f} s", flush=True)
        self.nothing_twice_at_qos_2()

    def gone(self, here, there):
        """here says that there are down; of the smaller part's own view only that they are not alive."""
        return all(self.fed[name].members()[other] != "alive" for name in here for other in there)

    def test_two_and_three(self):
        small, large = FIVE[:2], FIVE[2:]
        self.sky.part(small, large)
        wait_until("each side misses the other", lambda: self.gone(small, large) and self.gone(large, small), 15)
        for side in (small, large):
            self.all_pairs(2, names=side)
        self.heal("2 and 3")

    @long_only
    def test_one_alone(self):
        self.sky.part(FIVE[:1], FIVE[1:])
        wait_until("the others have buried it", lambda: all(self.fed[name].members()["edge-1"] == "down" for name in FIVE[1:]), 15)
        wait_until("it misses the others", lambda: self.gone(FIVE[:1], FIVE[1:]), 15)
        self.all_pairs(2, names=FIVE[1:])
        self.all_pairs(2, names=FIVE[:1])
        self.heal("one alone")

    @long_only
    def test_each_alone(self):
        self.sky.part(*([name] for name in FIVE))
        wait_until("all miss all", lambda: all(self.gone([name], set(FIVE) - {name}) for name in FIVE), 15)
        self.heal("each alone")

    @long_only
    def test_one_direction_is_cut_and_nobody_dies(self):
        """P18, P19: a cable that carries in one direction only."""
        self.sky.set("edge-1", "edge-2", cut="on")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            self.speak()
            time.sleep(0.2)
        self.assertEqual(self.deaths(), [])
        rest = {(at, name) for at, name in itertools.product(FIVE, FIVE) if {at, name} != {"edge-1", "edge-2"}}
        wait_until("all others go on", lambda: not {key for key in self.missing() if key[:2] in rest}, 10)
        self.heal("one direction")

    @long_only
    def test_a_deaf_one_condemns_nobody(self):
        """P18: who hears nobody and is heard accuses all the others, who live."""
        for name in FIVE[1:]:
            self.sky.set(name, "edge-1", cut="on")
        among = lambda: [line for broker in FIVE[1:] for line in self.fed[broker].log_lines("member", "is down") if "edge-1 (" not in line]
        holds("the others do not bury one another", lambda: not among(), 6)
        self.all_pairs(2, names=FIVE[1:])
        self.heal("a deaf one")

    @long_only
    def test_flapping(self):
        for _ in range(5):
            self.sky.part(FIVE[:2], FIVE[2:])
            time.sleep(1)
            self.sky.mend()
            self.speak()
            time.sleep(1)
        self.heal("flapping each second")
