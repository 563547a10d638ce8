"""A publication at one broker reaches the clients of another, by clients that are not ours, and they cannot tell the difference (G1, G3, G4)."""
import os

from clients import V311, V5, MosquittoSub, MqttJs, Paho, mosquitto_pub
from harness import FederationTest, wait_until


class Crossing(FederationTest):
    def paho(self, broker, **options):
        return self.closing(Paho(self.fed[broker], **options))

    def test_mosquitto_programs_at_each_qos(self):
        for version in ("mqttv311", "mqttv5"):
            for qos in (0, 1, 2):
                with self.subTest(version=version, qos=qos):
                    topic = self.topic(f"{version}/{qos}")
                    subscriber = self.closing(MosquittoSub(self.fed["edge-3"], topic, qos=qos, version=version))
                    mosquitto_pub(self.fed["edge-1"], topic, b"across", qos, version=version)
                    seen = subscriber.wait_payload(b"across")
                    self.assertEqual((seen.topic, seen.qos, seen.retain), (topic, qos, False))
                    self.assertEqual(subscriber.payloads(), [b"across"])

    def test_every_pair_of_qos_gives_the_lower(self):
        for version in (V311, V5):
            publisher = self.paho("edge-2", version=version)
            for granted in (0, 1, 2):
                with self.subTest(version=version, granted=granted):
                    topic = self.topic(f"{version}/{granted}")
                    subscriber = self.paho("edge-1", version=version)
                    subscriber.subscribe(topic, qos=granted)
                    for qos in (0, 1, 2):
                        publisher.publish(topic, b"%d" % qos, qos)
                    self.assertEqual(sorted((m.payload, m.qos) for m in subscriber.wait_count(3)), [(b"%d" % qos, min(qos, granted)) for qos in (0, 1, 2)])

    def test_every_pair_of_brokers_both_ways(self):
        for there in self.fed:
            subscriber = self.paho(there.name)
            subscriber.subscribe(self.topic(f"{there.name}/#"), qos=1)
            for here in self.fed:
                if here is not there:
                    self.paho(here.name).publish(self.topic(f"{there.name}/x"), here.name.encode(), 1)
            self.assertEqual(sorted(m.payload for m in subscriber.wait_count(2)), sorted(b.name.encode() for b in self.fed if b is not there))

    def test_wildcards(self):
        table = {
            "#": [1, 1, 1, 1], "+/b": [1, 0, 0, 0], "a/+": [1, 0, 0, 0], "a/#": [1, 1, 1, 0], "+/+/c": [0, 1, 1, 0],
            "a/b": [1, 0, 0, 0], "a/b/#": [1, 1, 0, 0], "+": [0, 0, 0, 1], "+/#": [1, 1, 1, 1], "a//+": [0, 0, 1, 0],
        }
        names = ["a/b", "a/b/c", "a//c", "z"]
        publisher = self.paho("edge-1")
        for number, (item, expected) in enumerate(table.items()):
            with self.subTest(filter=item):
                root = self.topic(str(number))
                subscriber = self.paho("edge-3")
                subscriber.subscribe(f"{root}/{item}", qos=1)
                subscriber.subscribe(f"fence/{root}", qos=1)
                for name in names:
                    publisher.publish(f"{root}/{name}", name.encode(), 1)
                publisher.publish(f"fence/{root}", b"fence", 1)
                subscriber.wait_payload(b"fence")
                got = sorted(m.payload.decode() for m in subscriber.messages if m.payload != b"fence")
                self.assertEqual(got, sorted(name for name, wanted in zip(names, expected) if wanted))

    def test_payloads_of_every_size(self):
        for version in ("mqttv311", "mqttv5"):
            subscriber = self.closing(MosquittoSub(self.fed["edge-3"], self.topic(version), qos=2, version=version))
            sizes = (0, 1, 1000, 1_000_000)
            expected = []
            for size in sizes:
                for qos in (0, 1, 2):
                    expected.append(os.urandom(size))
                    mosquitto_pub(self.fed["edge-1"], self.topic(version), expected[-1], qos, version=version)
            subscriber.wait_count(len(expected), 30)
            self.assertEqual(sorted(subscriber.payloads()), sorted(expected))

    def test_a_stream_of_large_and_small_keeps_its_order(self):
        subscriber = self.paho("edge-3")
        subscriber.subscribe(self.topic(), qos=1)
        publisher = self.paho("edge-1")
        sizes = [200_000 if number % 10 == 0 else number % 50 for number in range(200)]
        for number, size in enumerate(sizes):
            publisher.publish(self.topic(), b"%d " % number + b"x" * size, 1, wait=False)
        got = subscriber.wait_count(len(sizes), 30)
        self.assertEqual([int(m.payload.split()[0]) for m in got], list(range(len(sizes))))
        self.assertEqual([len(m.payload) for m in got], [len(b"%d " % number) + size for number, size in enumerate(sizes)])

    def test_order_is_kept_per_publisher(self):
        for qos in (0, 1, 2):
            with self.subTest(qos=qos):
                subscriber = self.paho("edge-3")
                subscriber.subscribe(self.topic(f"{qos}/#"), qos=qos)
                publishers = [self.paho(name) for name in ("edge-1", "edge-1", "edge-2")]
                for number in range(200):
                    for who, publisher in enumerate(publishers):
                        publisher.publish(self.topic(f"{qos}/{who}"), b"%d" % number, qos, wait=False)
                subscriber.wait_count(600, 30)
                for who in range(3):
                    self.assertEqual([int(p) for p in subscriber.payloads(self.topic(f"{qos}/{who}"))], list(range(200)))

    def test_properties_cross(self):
        subscriber = self.paho("edge-3")
        subscriber.subscribe(self.topic(), qos=1, identifier=5)
        self.paho("edge-1").publish(self.topic(), b"with properties", 1, PayloadFormatIndicator=1, MessageExpiryInterval=1000, ContentType="text/plain",
                                    ResponseTopic="answers/here", CorrelationData=b"\0\1\2", UserProperty=[("a", "1"), ("a", "2"), ("b", "")])
        seen = subscriber.wait_payload(b"with properties").properties
        self.assertEqual((seen.PayloadFormatIndicator, seen.ContentType, seen.ResponseTopic, seen.CorrelationData), (1, "text/plain", "answers/here", b"\0\1\2"))
        self.assertEqual(seen.UserProperty, [("a", "1"), ("a", "2"), ("b", "")])
        self.assertEqual(seen.SubscriptionIdentifier, [5])
        self.assertTrue(900 <= seen.MessageExpiryInterval <= 1000, seen.MessageExpiryInterval)

    def test_the_first_message_ever_on_a_topic_arrives(self):
        subscriber = self.paho("edge-3")
        subscriber.subscribe(self.topic("#"), qos=1)
        publisher = self.paho("edge-1")
        for number in range(50):
            publisher.publish(self.topic(f"never/before/{number}"), b"%d" % number, number % 3)
        subscriber.wait_count(50)
        self.assertEqual(sorted(int(p) for p in subscriber.payloads()), list(range(50)))

    def test_a_message_right_after_suback_at_another_broker_arrives(self):
        subscriber, publisher = self.paho("edge-3"), self.paho("edge-1")
        for number in range(60):
            topic = self.topic(str(number))
            if number % 2:
                publisher.publish(topic, b"before: somebody publishes here already")
            subscriber.subscribe(topic, qos=number % 3)
            publisher.publish(topic, b"%d" % number, number % 3)
        wait_until("all of them arrive", lambda: sum(p.isdigit() for p in subscriber.payloads()) >= 60)
        self.assertEqual(sorted(int(p) for p in subscriber.payloads() if p.isdigit()), list(range(60)))
        self.assertEqual(subscriber.payloads(self.topic("0")), [b"0"])

    def test_subscribing_again_and_again_loses_nothing(self):
        subscriber, publisher = self.paho("edge-2"), self.paho("edge-3")
        for number in range(20):
            subscriber.subscribe(self.topic(), qos=1)
            publisher.publish(self.topic(), b"%d" % number, 1)
            subscriber.wait_payload(b"%d" % number)
            subscriber.unsubscribe(self.topic())
        self.assertEqual([int(p) for p in subscriber.payloads()], list(range(20)))

    def test_a_will_crosses(self):
        subscriber = self.paho("edge-3")
        subscriber.subscribe(self.topic("will"), qos=2)
        leaving = self.paho("edge-1", will=(self.topic("will"), b"gone", 2, False))
        leaving.drop()
        self.assertEqual(subscriber.wait_payload(b"gone").qos, 2)

    def test_the_latest_retained_message_meets_a_subscriber_anywhere(self):
        publisher = self.paho("edge-1")
        for number in range(3):
            publisher.publish(self.topic("kept"), b"%d" % number, 1, retain=True)
        for name in ("edge-1", "edge-2", "edge-3"):
            with self.subTest(at=name):
                late = self.paho(name)
                late.subscribe(self.topic("+"), qos=1)
                self.assertTrue(late.wait_payload(b"2").retain)
                self.assertEqual(late.payloads(), [b"2"])

    def test_retained_written_elsewhere_replaces_and_an_empty_one_deletes(self):
        watcher = self.paho("edge-3")
        watcher.subscribe(self.topic("#"), qos=1)
        self.paho("edge-1").publish(self.topic("kept"), b"one", 1, retain=True)
        watcher.wait_payload(b"one")
        self.paho("edge-2").publish(self.topic("kept"), b"two", 1, retain=True)
        watcher.wait_payload(b"two")
        late = self.paho("edge-3")
        late.subscribe(self.topic("kept"), qos=1)
        self.assertTrue(late.wait_payload(b"two").retain)
        self.paho("edge-2").publish(self.topic("kept"), b"", 1, retain=True)
        watcher.wait_payload(b"")
        later = self.paho("edge-3")
        later.subscribe(self.topic("kept"), qos=1)
        self.paho("edge-1").publish(self.topic("kept"), b"live", 1)
        later.wait_payload(b"live")
        self.assertEqual(later.payloads(), [b"live"])

    def test_websocket_clients_at_both_ends(self):
        there = self.closing(MqttJs(self.fed["edge-3"], self.topic("#"), qos=2))
        here = self.closing(MqttJs(self.fed["edge-1"]))
        paho = self.paho("edge-2", websocket=True)
        big = os.urandom(1_000_000)
        for qos in (0, 1, 2):
            here.publish(self.topic("js"), b"js %d" % qos, qos)
            paho.publish(self.topic("paho"), b"paho %d" % qos, qos)
        here.publish(self.topic("big"), big, 2)
        there.wait_count(7)
        self.assertEqual(sorted(there.payloads()), sorted([b"js 0", b"js 1", b"js 2", b"paho 0", b"paho 1", b"paho 2", big]))

    def test_a_group_of_a_shared_subscription_is_one_over_all_sites(self):
        members = [self.paho(name) for name in ("edge-1", "edge-2", "edge-2", "edge-3")]
        for member in members:
            member.subscribe(f"$share/g/{self.topic('#')}", qos=2)
        watcher = self.paho("edge-2")
        watcher.subscribe(self.topic("#"), qos=1)
        publisher = self.paho("edge-1")
        warm = 0

        def all_have_joined():
            nonlocal warm
            publisher.publish(self.topic("x"), b"warm", 1)
            warm += 1
            return all(member.messages for member in members)

        wait_until("each member has got one", all_have_joined)
        wait_until("all of these", lambda: sum(len(member.messages) for member in members) >= warm)
        for member in members:
            member.messages.clear()
        payloads = [b"%d" % number for number in range(40)]
        for number, payload in enumerate(payloads):
            publisher.publish(self.topic("x"), payload, number % 3)
        watcher.wait_count(warm + 40)
        wait_until("each at one member", lambda: sum(len(member.messages) for member in members) >= 40)
        self.assertEqual(sorted((m.payload for member in members for m in member.messages), key=int), payloads)
        for member in members:
            self.assertEqual(len(member.messages), 10, "each has its part")
