"""Which topics cross from site to site is what the configurations say, for all or for one peer, also after a SIGHUP."""
import os
import signal

from clients import Paho
from harness import PATIENT, THREE, SystemTest, wait_until


class Policy(SystemTest):
    def restrict(self, broker, *lines):
        """These keys of federation, in place of those of an earlier call."""
        kept = [line for line in broker.config.read_text().splitlines() if not line.endswith(" # policy")]
        at = kept.index("federation:") + 1
        kept[at:at] = [f"  {line} # policy" for line in lines]
        broker.config.write_text("\n".join(kept) + "\n")

    def reload(self, broker, *says):
        before = len(broker.log_lines("reload", *says))
        os.kill(broker.process.pid, signal.SIGHUP)
        wait_until("it says so", lambda: len(broker.log_lines("reload", *says)) > before)

    def subscriber(self, broker, *filters):
        client = self.closing(Paho(broker))
        client.subscribe(*(filters or ("#",)), qos=1)
        return client

    def send(self, publisher, *topics):
        """A publication to each topic, with the topic as payload, which is all in the order of one client."""
        for topic in topics:
            publisher.publish(topic, topic.encode(), 1)

    def assert_only(self, client, *topics):
        """The last of the topics is sent last of all: what else came has come by then."""
        client.wait_payload(topics[-1].encode())
        self.assertEqual(sorted(client.payloads()), sorted(topic.encode() for topic in topics), str(client))

    def test_each_peer_gets_what_is_exported_to_it(self):
        fed = self.federation(THREE, limits=PATIENT)
        self.restrict(fed["edge-1"], 'export: ["status/#"]', 'peers: {edge-3: {export: ["#"]}}', 'private_topics: ["local/#"]')
        fed.start()
        guest, own = self.subscriber(fed["edge-2"]), self.subscriber(fed["edge-1"])
        full = self.subscriber(fed["edge-3"])
        self.send(self.closing(Paho(fed["edge-1"])), "local/a", "plan/a", "status/a", "plan/b", "status/end")
        self.assert_only(guest, "status/a", "status/end")
        self.assert_only(full, "plan/a", "status/a", "plan/b", "status/end")
        self.assert_only(own, "local/a", "plan/a", "status/a", "plan/b", "status/end")
        self.assertEqual(fed["edge-1"].links()["edge-2"]["publications_sent"], 2)
        self.assertEqual([row for row in fed["edge-2"].rows() if row[2].startswith("local")], [])
        # The other direction is as open as ever.
        self.send(self.closing(Paho(fed["edge-2"])), "plan/back", "status/back")
        own.wait_payload(b"plan/back")
        own.wait_payload(b"status/back")

    def test_each_peer_gives_what_is_imported_from_it(self):
        fed = self.federation(THREE, limits=PATIENT)
        self.restrict(fed["edge-1"], 'import: ["orders/#"]', 'peers: {edge-3: {import: ["orders/#", "status/#"]}}')
        fed.start()
        here, elsewhere = self.subscriber(fed["edge-1"]), self.subscriber(fed["edge-2"])
        second, third = (self.closing(Paho(fed[name])) for name in ("edge-2", "edge-3"))
        self.send(second, "status/2", "orders/2")
        self.send(third, "status/3", "plan/3", "orders/3")
        here.wait_payload(b"orders/2")
        here.wait_payload(b"orders/3")
        # All joins are made now: what is not imported is sent, as # is joined, and dropped.
        self.send(second, "status/2", "orders/end-2")
        self.send(third, "plan/3", "orders/end-3")
        here.wait_payload(b"orders/end-2")
        here.wait_payload(b"orders/end-3")
        self.assertEqual(sorted(here.payloads()), [b"orders/2", b"orders/3", b"orders/end-2", b"orders/end-3", b"status/3"])
        self.assertGreaterEqual(fed["edge-1"].links()["edge-2"]["refused"], 1)
        self.assertTrue(fed["edge-1"].log_lines("edge-2", "federation.import"))
        # Others take it, and get what is published here.
        self.send(self.closing(Paho(fed["edge-1"])), "status/1")
        for payload in (b"status/2", b"status/3", b"plan/3", b"status/1"):
            elsewhere.wait_payload(payload)

    def test_retained_messages_of_closed_topics_stay(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT)
        self.restrict(fed["edge-1"], 'export: ["open/#"]', 'import: ["open/#"]')
        fed.start()
        here, there = self.closing(Paho(fed["edge-1"])), self.closing(Paho(fed["edge-2"]))
        for publisher, name in ((here, "1"), (there, "2")):
            for topic in (f"shut/{name}", f"open/{name}"):
                publisher.publish(topic, topic.encode(), 1, retain=True)
        wait_until("both adverts are known", lambda: {"open/1"} <= {row[2] for row in fed["edge-2"].rows("newpub")} and {"open/2"} <= {row[2] for row in fed["edge-1"].rows("newpub")})
        self.assertNotIn("shut/1", {row[2] for row in fed["edge-2"].rows("newpub")})
        for publisher, at, own, other in ((here, "edge-1", "1", "2"), (there, "edge-2", "2", "1")):
            late = self.subscriber(fed[at], "shut/#", "open/#")
            late.wait_payload(f"open/{other}".encode())
            publisher.publish("open/end", b"end", 1)
            late.wait_payload(b"end")
            self.assertEqual(sorted(late.payloads()), sorted([b"end", f"shut/{own}".encode(), f"open/{own}".encode(), f"open/{other}".encode()]))

    def test_sighup_opens_and_closes_what_may_cross(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT)
        self.restrict(fed["edge-1"], 'export: ["open/#"]')
        fed.start()
        there, publisher = self.subscriber(fed["edge-2"], "#", "shut/#"), self.closing(Paho(fed["edge-1"]))
        publisher.publish("shut/kept", b"shut/kept", 1, retain=True)
        self.send(publisher, "shut/before", "open/before")
        self.assert_only(there, "open/before")

        self.reload(fed["edge-1"], "as it was")
        self.restrict(fed["edge-1"], 'peers: {edge-2: {export: ["#"]}}', 'export: []')
        self.reload(fed["edge-1"], "other topics may cross")
        there.wait_payload(b"shut/kept")
        self.send(publisher, "shut/opened", "open/opened")
        self.assert_only(there, "open/before", "shut/kept", "shut/opened", "open/opened")

        self.restrict(fed["edge-1"], 'export: ["open/#"]')
        self.reload(fed["edge-1"], "other topics may cross")
        self.send(publisher, "shut/closed", "open/closed")
        self.assert_only(there, "open/before", "shut/kept", "shut/opened", "open/opened", "open/closed")

        self.restrict(fed["edge-2"], 'import: ["shut/#"]')
        self.reload(fed["edge-2"], "other topics may cross")
        self.restrict(fed["edge-1"], "export: [a/#/b]")
        self.reload(fed["edge-1"], "hobnob.yaml:", "federation.export", "no topic filter")
        wait_until("it goes on", lambda: fed["edge-1"].log_lines("reload", "stay as they were"))
        self.restrict(fed["edge-1"])
        self.reload(fed["edge-1"], "other topics may cross")
        self.send(publisher, "open/last", "shut/last")
        self.assert_only(there, "open/before", "shut/kept", "shut/opened", "open/opened", "open/closed", "shut/last")
