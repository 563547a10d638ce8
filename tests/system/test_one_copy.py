"""A publication crosses a link once and reaches each client once; who is not interested gets nothing (G2)."""
import itertools

from clients import Paho
from harness import PATIENT, THREE, SystemTest, holds, wait_until


class OneCopy(SystemTest):
    def fences(self, fed, receivers, topic):
        """A mark from every broker to every receiver, behind all that was sent before: what comes twice has come by then."""
        for broker in fed:
            sender = self.closing(Paho(broker))
            sender.publish(topic, b"fence of " + broker.name.encode(), 1)
        for receiver in receivers:
            for broker in fed:
                receiver.wait_payload(b"fence of " + broker.name.encode())

    def exactly_once(self, fed):
        """Three brokers with a # subscriber each, two more clients with overlapping filters, one publication at each broker."""
        receivers = []
        for broker in fed:
            receivers.append(self.closing(Paho(broker)))
            receivers[-1].subscribe("#", qos=2)
        for broker in fed:
            receivers.append(self.closing(Paho(broker)))
            receivers[-1].subscribe("once/+", "once/#", "+/x", qos=1)
            receivers[-1].subscribe("#", qos=0)
        for broker in fed:
            sender = self.closing(Paho(broker))
            for qos in (0, 1, 2):
                sender.publish("once/x", f"{broker.name} {qos}".encode(), qos)
        for receiver in receivers:
            for broker in fed:
                for qos in (0, 1, 2):
                    receiver.wait_payload(f"{broker.name} {qos}".encode())
        self.fences(fed, receivers, "once/fence")
        expected = sorted([f"{broker.name} {qos}".encode() for broker in fed for qos in (0, 1, 2)] + [b"fence of " + broker.name.encode() for broker in fed])
        for receiver in receivers:
            self.assertEqual(sorted(receiver.payloads()), expected, str(receiver))

    def test_every_start_order(self):
        fed = self.federation(limits=PATIENT)
        for order in itertools.permutations(THREE):
            with self.subTest(order=order):
                for broker in fed:
                    broker.kill()  # what a failure before this left running
                for name in order:
                    fed[name].start()
                fed.wait_alive()
                self.exactly_once(fed)
                self.doCleanups_of_clients()
                for broker in fed:
                    self.assertEqual(broker.stop(), 0)

    def doCleanups_of_clients(self):
        """Ends the clients made so far; the federation itself, the oldest clean-up, stays."""
        while len(self._cleanups) > 1:
            function, arguments, options = self._cleanups.pop()
            function(*arguments, **options)

    def test_subscribers_that_were_there_before_the_others_started(self):
        fed = self.federation(limits=PATIENT)
        receivers = {}
        for name in THREE:
            fed[name].start()
            receivers[name] = self.closing(Paho(fed[name]))
            receivers[name].subscribe("#", qos=1)
        fed.wait_alive()
        for owner in THREE:
            fed.wait_row((owner, "newsub", "#"))
        for name in THREE:
            self.closing(Paho(fed[name])).publish(f"from/{name}", name.encode(), 1)
        for receiver in receivers.values():
            for name in THREE:
                receiver.wait_payload(name.encode())
        self.fences(fed, receivers.values(), "fence")
        for receiver in receivers.values():
            self.assertEqual(sorted(p for p in receiver.payloads() if not p.startswith(b"fence")), sorted(name.encode() for name in THREE))

    def test_a_broker_without_interest_receives_nothing(self):
        fed = self.federation(limits=PATIENT).start()
        subscriber = self.closing(Paho(fed["edge-3"]))
        subscriber.subscribe("wanted/#", qos=1)
        elsewhere = self.closing(Paho(fed["edge-2"]))
        elsewhere.subscribe("other/#", qos=1)  # edge-2 has a link and a client, but no interest in this
        publisher = self.closing(Paho(fed["edge-1"]))
        publisher.publish("other/x", b"for edge-2", 1)
        elsewhere.wait_payload(b"for edge-2")
        for number in range(100):
            publisher.publish(f"wanted/{number}", b"%d" % number, number % 3)
        subscriber.wait_count(100)
        self.assertEqual(fed["edge-2"].links()["edge-1"]["publications_received"], 1)
        self.assertEqual(fed["edge-1"].links()["edge-2"]["publications_sent"], 1)
        self.assertEqual(fed["edge-1"].links()["edge-3"]["publications_sent"], 100)
        self.assertEqual(fed["edge-3"].links()["edge-1"]["publications_received"], 100)
        for broker in fed:
            for peer, link in broker.links().items():
                self.assertEqual((link["lost"], link["repeated"], link["dropped"]), (0, 0, 0), f"{broker.name} to {peer}")
        self.assertEqual(elsewhere.payloads(), [b"for edge-2"])

    def test_many_clients_and_filters_at_one_broker_cost_one_copy_on_the_link(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT).start()
        receivers = [self.closing(Paho(fed["edge-2"])) for _ in range(5)]
        for receiver in receivers:
            receiver.subscribe("many/#", "many/+", "many/x", "#", qos=1)
        publisher = self.closing(Paho(fed["edge-1"]))
        for number in range(50):
            publisher.publish("many/x", b"%d" % number, 1)
        for receiver in receivers:
            self.assertEqual([int(m.payload) for m in receiver.wait_count(50)], list(range(50)))
        self.assertEqual(fed["edge-1"].links()["edge-2"]["publications_sent"], 50)

    def test_private_topics_never_leave(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT)
        fed["edge-1"].edit(r"^federation:.*$", r'\g<0>\n  private_topics: ["local/#"]')
        fed.start()
        there, here = self.closing(Paho(fed["edge-2"])), self.closing(Paho(fed["edge-1"]))
        there.subscribe("#", qos=1)
        here.subscribe("#", qos=1)
        publisher = self.closing(Paho(fed["edge-1"]))
        publisher.publish("local/secret", b"stays", 1, retain=True)
        publisher.publish("public", b"goes", 1)
        there.wait_payload(b"goes")
        here.wait_payload(b"stays")
        late = self.closing(Paho(fed["edge-2"]))
        late.subscribe("local/#", "public/#", qos=1)
        publisher.publish("public/fence", b"fence", 1)
        late.wait_payload(b"fence")
        self.assertEqual(late.payloads(), [b"fence"])
        self.assertNotIn(b"stays", there.payloads())
        self.assertEqual([row for row in fed["edge-2"].rows() if row[2].startswith("local") and row[0] == "edge-1"], [])

    def test_an_unsubscribed_topic_stops_crossing_after_the_linger(self):
        fed = self.federation(("edge-1", "edge-2"), limits={"leave_linger_ms": 200, **PATIENT})
        fed.start()
        subscriber, publisher = self.closing(Paho(fed["edge-2"])), self.closing(Paho(fed["edge-1"]))
        subscriber.subscribe("a/#", qos=1)
        publisher.publish("a/b", b"one", 1)
        subscriber.wait_payload(b"one")
        subscriber.unsubscribe("a/#")
        wait_until("edge-2 has left the group", lambda: fed["edge-1"].links()["edge-2"]["joined_here"] == 0)
        wait_until("the interest is withdrawn", lambda: ("edge-2", "newsub", "a/#") not in fed["edge-1"].rows())
        publisher.publish("a/b", b"two", 1)
        holds("nothing more crosses", lambda: fed["edge-1"].links()["edge-2"]["publications_sent"] == 1, 0.5)
