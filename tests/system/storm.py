"""Five brokers on bad networks, each with a client that hears everything and one that speaks: what test_storm and test_outages share.

HOBNOB_STORM_S is how long the bad weather of the longest test lasts, in seconds; from a minute on (tools/test --long) there are more tests.
"""
import itertools
import os
import re
import time
import unittest

from clients import Paho
from harness import PATIENT_SUBACK, Stopwatch, wait_until
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
        self.hearers, self.speakers = {}, {}
        self.said = {(name, qos): 0 for name in FIVE for qos in (1, 2)}
        self.attend(FIVE)

    def attend(self, names):
        """Clients for these brokers, in the place of those that were there."""
        for name in names:
            self.hearers[name] = self.closing(Paho(self.fed[name]))
            self.speakers[name] = self.closing(Paho(self.fed[name]))
        for name in names:
            self.hearers[name].subscribe("storm/#", qos=2)

    def speak(self, names=FIVE):
        """One publication of each QoS from each of these; nobody waits for the PUBACK."""
        for name, qos in itertools.product(names, (1, 2)):
            self.speakers[name].publish(f"storm/{name}/{qos}", b"%d" % self.said[name, qos], qos, wait=False)
            self.said[name, qos] += 1

    def heard(self, at, name, qos):
        return [int(payload) for payload in self.hearers[at].payloads(f"storm/{name}/{qos}")]

    def missing(self, among=FIVE):
        return {(at, name, qos): self.said[name, qos] - len(found) for at in among for name, qos in self.said
                if name in among and len(found := set(self.heard(at, name, qos))) < self.said[name, qos]}

    def deaths(self, among=FIVE):
        """What the logs of these say of the death of these."""
        return [f"{name}: {line}" for name in among for line in self.fed[name].log_lines("member", "is down") if re.search(r"[\w-]+(?= \()", line)[0] in among]

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

    def heal(self, what, within_s=HEAL_S):
        self.sky.mend()
        watch = Stopwatch()
        spoke = self.all_pairs(within_s, watch)
        wait_until("one table", self.agree, within_s, watch)
        print(f"        {what}: all hear all {spoke:.1f} s after the heal, one table after {watch.seconds():.1f} s", flush=True)
        self.nothing_twice_at_qos_2()

    def gone(self, here, there):
        """here says that there are down; of the smaller part's own view only that they are not alive."""
        return all(self.fed[name].members()[other] != "alive" for name in here for other in there)
