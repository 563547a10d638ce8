"""100,000 retained topics and a link that comes and goes: of them only what has changed crosses, once for each change (G6)."""
from clients import MosquittoSub, Raw, raw_connect, raw_publish
from harness import PATIENT_SUBACK, wait_until
from lan import LanTest

TOPICS = 100_000
CHANGES = 100
BYTES = 300_000  # more than a comparison and what changed need, and a twentieth of all of it


def topic(number):
    return f"site/{number // 1000}/device/{number % 1000}/value"


class Flapping(LanTest):
    def setUp(self):
        self.fed = self.lan(("edge-1", "edge-2"), limits={"suspicion_min_ms": 300, **PATIENT_SUBACK})
        self.plug_all(self.fed)
        self.fed.start()
        self.first, self.second = self.fed["edge-1"], self.fed["edge-2"]
        self.expected = {}

    def retain(self, numbers, payload):
        """At edge-1, all of them in one piece."""
        publisher = Raw(self.first).send(raw_connect("publisher"))
        self.assertEqual(publisher.packet()[0], 0x20)
        publisher.send(b"".join(raw_publish(topic(number), payload, retain=True) for number in numbers) + raw_publish("fence", b"", 1, 1))
        self.assertEqual(publisher.packet()[0], 0x40)
        publisher.close()
        self.expected.update((topic(number), payload) for number in numbers)

    def link(self):
        """As edge-1 counts it."""
        return self.first.links().get("edge-2", {})

    def settled(self):
        """edge-2 has joined, and has what was to be sent on its disk."""
        wait_until("edge-2 has joined and has all", lambda: (link := self.link()) and link["joined_here"] > 0 and link["outbox_messages"] == 0)

    def crossed(self, before):
        """Publications and bytes, from edge-1 to edge-2."""
        link = self.link()
        return link["publications_sent"] - before["publications_sent"], link["bytes_sent"] - before["bytes_sent"]

    def subscribe(self):
        return self.closing(MosquittoSub(self.second, "site/#"))

    def expect_all(self, subscriber, count):
        """What it has got, the last of each topic, is what was retained."""
        subscriber.wait_count(count)
        got = {message.topic: message.payload for message in list(subscriber.messages)}
        wrong = [key for key in {*got, *self.expected} if got.get(key, b"") != self.expected.get(key, b"")]
        self.assertEqual(wrong[:5], [], f"{len(wrong)} topics are not as they were retained")

    def cut(self):
        self.cable("edge-2", "down")
        for broker, other in ((self.first, "edge-2"), (self.second, "edge-1")):
            wait_until(f"{broker.name} holds {other} dead", lambda: broker.members()[other] == "down")

    def heal(self):
        self.cable("edge-2", "up")
        self.fed.wait_alive()

    def test_only_what_changed_crosses(self):
        self.retain(range(TOPICS), b"first")
        subscriber = self.subscribe()
        self.expect_all(subscriber, TOPICS)
        self.settled()
        whole = self.link()["bytes_sent"]
        self.assertGreater(whole, 10 * BYTES)

        for turn in range(2):
            before, seen = self.link(), len(subscriber.messages)
            self.cut()
            if turn > 0:
                self.retain(range(turn, TOPICS, TOPICS // CHANGES), b"changed %d" % turn)
            self.heal()
            self.settled()
            self.expect_all(subscriber, seen + turn * CHANGES)
            publications, size = self.crossed(before)
            print(f"        {turn * CHANGES} changed while the link was cut: {publications} publications, {size} bytes; at first {whole}", flush=True)
            self.assertEqual(publications, turn * CHANGES)
            self.assertLess(size, BYTES)
            self.assertEqual(len(subscriber.messages), seen + turn * CHANGES)

        subscriber.close()
        before = self.link()
        self.second.kill()
        self.retain(range(7, TOPICS, TOPICS // CHANGES), b"")
        self.second.spawn()
        self.second.wait_ready()
        self.fed.wait_alive()
        self.expect_all(self.subscribe(), TOPICS - CHANGES)
        self.settled()
        publications, size = self.crossed(before)
        print(f"        {CHANGES} deleted while edge-2 was dead: {publications} publications, {size} bytes", flush=True)
        self.assertEqual(publications, CHANGES)
        self.assertLess(size, BYTES)
