"""A broker with the gossip key, a key of its own and a valid token (tests/hostile) that writes, withdraws and revives what others say, accuses
everybody, contradicts itself, repeats and floods: at the others nothing changes but counters and its own rows, and their admins are told who it
is. G11, G12, P7 and P9 with real daemons and clients."""
import os
import re

from clients import MosquittoSub, Paho, mosquitto_pub
from harness import BUILD, PATIENT_SUBACK, Broker, Stopwatch, SystemTest, hobnob, wait_until

HONEST = ("edge-1", "edge-2", "edge-3")
MEMORY_MAX = 48 << 20  # bytes that a broker may grow by, whatever is said to it


class Hostile(Broker):
    """A broker that takes orders: hostile.h."""

    @property
    def orders(self):
        return self.folder / "orders"

    def command(self):
        self.orders.touch()
        return ["env", f"HOSTILE_ORDERS={self.orders}", BUILD / "tests" / "hostile_hobnobd", self.config]

    def begin(self, **rounds):
        """Attacks with so many rounds, all at once."""
        self.ordered, self.begun = list(rounds), len(self.log())
        with open(self.orders, "a") as orders:
            orders.write("".join(f"{word} {count}\n" for word, count in rounds.items()))

    def is_done(self):
        self.check_alive()
        said = self.log()[self.begun:]
        return all(f"hostile: {word} done" in said for word in self.ordered)


class HostileBroker(SystemTest):
    def setUp(self):
        # What was freed is not kept for long by the sanitizer: memory is measured.
        self.addCleanup(os.environ.pop, "ASAN_OPTIONS", None) if "ASAN_OPTIONS" not in os.environ else None
        os.environ.setdefault("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1:quarantine_size_mb=1:malloc_context_size=5")
        self.fed = self.federation((*HONEST, "edge-4"))
        self.honest = [self.fed[name] for name in HONEST]
        self.hostile = self.fed.brokers["edge-4"] = Hostile("edge-4", self.fed["edge-4"].folder)
        for broker in self.honest:
            broker.limit(**PATIENT_SUBACK, suspicion_min_ms=3000)
        self.hostile.limit(datagram_bytes_per_s=1 << 30, datagrams_queued_max=1 << 20)
        self.fed.start()
        self.receivers = {broker.name: self.closing(MosquittoSub(broker, "wanted/#", qos=1)) for broker in self.honest}
        self.publisher = self.closing(Paho(self.fed["edge-1"]))
        gone = self.closing(Paho(self.fed["edge-2"]))
        gone.subscribe("gone/#")
        self.publisher.publish("wanted/here", b"before", 1)
        for receiver in self.receivers.values():
            receiver.wait_payload(b"before")
        gone.unsubscribe("gone/#")
        self.number = 0
        wait_until("all agree, and the withdrawn row is gone", lambda: len({frozenset(self.rows(broker)) for broker in self.honest}) == 1
                   and not any("gone" in row[2] for row in self.rows(self.honest[0])))
        self.rows_before = self.rows(self.honest[0])
        self.assertTrue(self.rows_before)
        self.members_before = {broker.name: self.said(broker) for broker in self.honest}
        self.memory_before = {broker.name: broker.metric("hobnob_memory_bytes") for broker in self.honest}

    def rows(self, broker):
        """Of the honest ones."""
        return {row for row in broker.rows() if row[0] in HONEST}

    def said(self, broker):
        """{name: what it holds of an honest one}"""
        return {member["name"]: (member["id"], member["address"], member["epoch"], member["rows"])
                for member in broker.api("members") if member["name"] in HONEST}

    def cross(self):
        """A publication from edge-1 to the two others, soon."""
        self.number += 1
        payload, watch = f"number {self.number}".encode(), Stopwatch()
        self.publisher.publish("wanted/here", payload, 1)
        for receiver in self.receivers.values():
            receiver.wait_payload(payload)
        self.assertLess(watch.seconds(), 2.0)

    def go_on_until(self, done):
        """Publications cross and nothing of the honest ones changes while it works."""
        while not done():
            self.cross()
            for broker in self.honest:
                self.assertEqual(self.rows(broker), self.rows_before)
        self.cross()

    def unharmed(self):
        for broker in self.honest:
            self.assertEqual(self.rows(broker), self.rows_before)
            self.assertEqual(self.said(broker), self.members_before[broker.name])
            self.assertEqual(broker.metric("hobnob_gossip_deaths_total"), 0)
            self.assertEqual({name: state for name, state in broker.members().items() if name in HONEST and state != "alive"}, {})
            self.assertLess(broker.metric("hobnob_memory_bytes"), self.memory_before[broker.name] + MEMORY_MAX)

    def named(self, trouble, *words):
        """At each of them: the one in trouble is edge-4, by the table, the log, the status and the metrics."""
        for broker in self.honest:
            wait_until(f"{broker.name} names edge-4", lambda: {row["name"]: row["trouble"] for row in broker.api("members")}["edge-4"] == trouble)
            self.assertEqual([row["name"] for row in broker.api("members") if row["trouble"]], ["edge-4"])
            self.assertIn(trouble, hobnob("members", "--admin", broker.admin).stdout)
            self.assertTrue(broker.log_lines("warning conduct", "edge-4", *words), broker.log())
            self.assertLessEqual(len(broker.log_lines("warning conduct")), 6)
            samples = [key for key in broker.metrics() if key.startswith("hobnob_member_in_trouble{")]
            self.assertEqual(len(samples), 1)
            self.assertRegex(samples[0], f'member="edge-4".*trouble="{trouble}"')
            self.assertGreater(broker.metric("hobnob_gossip_misdeeds_total"), 0)

    def attack(self, **rounds):
        self.hostile.begin(**rounds)
        self.go_on_until(self.hostile.is_done)
        wait_until("all hold one another alive", lambda: all(broker.members()[name] == "alive" for broker in self.honest for name in HONEST))
        self.unharmed()

    def test_nothing_changes_but_its_own_rows_and_it_is_named(self):
        self.attack(accuse=150)
        self.named("accuses others", "do not")
        self.attack(advertise=100)  # 100,000 topics, each of them others' too
        self.named("over our limits", "limits.rows_max")
        self.attack(forge=50, behead=50, pretend=50, replay=50)
        self.named("breaks the rules", "forges what other brokers say", "stop it")
        self.attack(equivocate=25)
        self.attack(garbage=25, claim=25)
        self.attack(flood=50, ping=50)
        # Where there is no processor the kernel drops what is too much, and nobody was harmed by it.
        wait_until("the flood is told of", lambda: all(broker.log_lines("warning conduct", "floods us") for broker in self.honest) or self.attack(flood=50, ping=50), 60)
        self.named("breaks the rules", "floods us", "stop it")

    def test_it_cannot_revive_the_dead(self):
        dead = self.fed["edge-3"]
        dead.kill()
        others = self.honest[:2]
        for broker in others:
            wait_until(f"{broker.name} holds edge-3 for dead", lambda: broker.members()["edge-3"] == "down", 60)
        self.hostile.begin(forge=50, behead=50, pretend=50, replay=100)
        while not self.hostile.is_done():
            for broker in others:
                self.assertEqual(broker.members()["edge-3"], "down")
                self.assertEqual([row for row in broker.rows() if row[0] == "edge-3"], [])
        dead.start()
        self.fed.wait_alive(HONEST)
        self.assertEqual([row for broker in self.honest for row in broker.rows() if "forged" in row[2] or "gone" in row[2]], [])
