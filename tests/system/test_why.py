"""`hobnob why` names what keeps a publication from getting from one broker to another, asked at any of them."""
import json
import os
import signal

from clients import Paho
from harness import PATIENCE_S, PATIENT, THREE, hobnob, run, wait_until
from namespaces import inside
from weather import WeatherTest

TWO = ("edge-1", "edge-2")


class Why(WeatherTest):
    def why(self, at, topic, source="edge-1", target="edge-2", status=None):
        """The answer as programs get it; the exit status must be what it says."""
        with inside(at.namespace):
            done = hobnob("why", topic, "--from", source, "--to", target, "--admin", at.admin, "--json", status=status)
        answer = json.loads(done.stdout)["why"]
        self.assertEqual(done.returncode, {True: 0, False: 1, None: 2}[answer["arrives"]], answer)
        self.assertEqual((answer["topic"], answer["from"], answer["to"]), (topic, source, target))
        self.assertTrue(answer["steps"])
        return answer

    def assert_stops(self, at, topic, stage, broker, *words, **options):
        answer = self.why(at, topic, **options)
        self.assertEqual((answer["arrives"], answer["stage"], answer["broker"]), (None if stage == "silence" else False, stage, broker), answer)
        for word in words:
            self.assertIn(word, answer["reason"], answer)
        return answer

    def assert_arrives(self, at, topic, *words, **options):
        answer = self.why(at, topic, status=0, **options)
        told = "\n".join(step["text"] for step in answer["steps"])
        for word in words:
            self.assertIn(word, told)
        return answer

    def subscriber(self, broker, *filters):
        client = self.closing(Paho(broker))
        client.subscribe(*filters, qos=1)
        return client

    def until_stops(self, at, topic, stage):
        """What spreads from broker to broker takes its time."""
        wait_until(f"it stops at {stage}", lambda: self.why(at, topic)["stage"] == stage)

    def test_what_arrives_and_what_nobody_wants(self):
        fed = self.federation(THREE, limits=PATIENT).start()
        there, here = self.subscriber(fed["edge-2"], "plant/+/temp", "grün/&=%/#"), self.closing(Paho(fed["edge-1"]))
        for topic in ("plant/1/temp", "grün/&=%/x y"):
            here.publish(topic, topic.encode(), 1)
            there.wait_payload(topic.encode())
            wait_until("it is acknowledged", lambda: fed["edge-1"].links()["edge-2"]["outbox_messages"] == 0)
            for at in fed:
                self.assert_arrives(at, topic, "1 subscription matches, at QoS 1; 0 of clients not connected", "confirmed", "edge-2 last acknowledged something")
        for at in fed:
            self.assert_stops(at, "plant/1/2/temp", "subscription", "edge-2", "plant/+/temp matches no plant/1/2/temp: one level more at level 3")
            self.assert_stops(at, "garden/1", "subscription", "edge-2", "nobody subscribes to it")
            self.assert_stops(at, "plant/1/temp", "subscription", "edge-1", "nobody subscribes to it", source="edge-2", target="edge-1")
            self.assert_stops(at, "$SYS/broker/uptime", "topic", "edge-1", "start with $")
            self.assert_stops(at, "plant/#", "topic", at.name, "this is no topic")
            self.assert_arrives(at, "plant/1/temp", "1 subscription matches", source="edge-2", target="edge-2")
            self.assert_stops(at, "plant/1/temp", "member", at.name, "edge-22 is not known here", target="edge-22")
        # Nobody has published here yet, and a publication would still arrive.
        self.assert_arrives(fed["edge-1"], "plant/2/temp", source="edge-3")

    def test_the_tool_says_it_to_people(self):
        fed = self.federation(TWO, limits=PATIENT).start()
        self.subscriber(fed["edge-2"], "a")
        done = hobnob("why", "b", "--from", "edge-1", "--to", "edge-2", "--admin", fed["edge-1"].admin, status=1)
        self.assertEqual(done.stdout.splitlines()[:2], ["From edge-1 to edge-2: would not arrive", "edge-2: no subscription matches; nearest: a matches no b: another word at level 1"])
        self.assertRegex(done.stdout, "\nSTOP +subscription +edge-2 +no subscription")
        self.assertEqual(done.stderr, "")
        for wrong, says in ((("b", "--from", "edge-1"), "--to is missing"), (("b", "--to", "edge-1"), "--from is missing"),
                            (("--from", "edge-1", "--to", "edge-2"), "the topic is missing"), (("a", "b"), "b: one word too many"),
                            (("a", "--from", "edge-1", "--to", "edge-2", "--admin", "http://127.0.0.1:9"), "nothing answers there"),
                            (("x" * 5000, "--from", "edge-1", "--to", "edge-2"), "too long")):
            self.assertIn(says, hobnob("why", *wrong, status=2).stderr)
        for query in ("", "?topic=a", "?topic=a&from=edge-1", "?topic=a&from=edge-1&to=", "?topic=%ff&from=edge-1&to=edge-2"):
            status, body = fed["edge-1"].get("/api/v1/why" + query)
            self.assertEqual(status, 400, query)
            self.assertIn("/api/v1/why?topic=TOPIC", json.loads(body)["error"])

    def test_the_policy_that_keeps_it_is_named(self):
        fed = self.federation(TWO, limits=PATIENT)
        fed["edge-1"].edit("^federation:\n", 'federation:\n  private_topics: ["local/#"]\n  export: ["open/#", "half/#"]\n')
        fed["edge-2"].edit("^federation:\n", 'federation:\n  peers: {edge-1: {import: ["open/#"]}}\n')
        fed.start()
        there, here = self.subscriber(fed["edge-2"], "#"), self.closing(Paho(fed["edge-1"]))
        here.publish("open/a", b"a", 1)
        there.wait_payload(b"a")
        for at in fed:
            self.assert_arrives(at, "open/a")
            self.assert_stops(at, "shut/a", "policy", "edge-1", "federation.export")
            self.assert_stops(at, "half/a", "policy", "edge-2", "federation.peers.edge-1.import")
            self.assert_stops(at, "local/a", "topic", "edge-1", "federation.private_topics")

    def test_a_broker_that_hangs_or_is_down_or_has_left_is_named(self):
        fed = self.federation(THREE).start()
        there, here = self.subscriber(fed["edge-2"], "a"), self.closing(Paho(fed["edge-1"]))
        here.publish("a", b"a", 1)
        there.wait_payload(b"a")
        os.kill(fed["edge-2"].process.pid, signal.SIGSTOP)
        try:
            here.publish("a", b"b", 1)
            # It hangs: it is not heard, first in two seconds, then by what it should have acknowledged or by its link, until it is down.
            answer = self.why(fed["edge-1"], "a")
            self.assertIn(answer["stage"], ("silence", "queue", "link", "member"), answer)
            self.assertNotEqual(answer["arrives"], True)
            self.until_stops(fed["edge-1"], "a", "member")
            self.assert_stops(fed["edge-1"], "a", "member", "edge-1", "edge-2 is down; it was last heard")
        finally:
            os.kill(fed["edge-2"].process.pid, signal.SIGCONT)
        wait_until("it is back", lambda: fed["edge-1"].members()["edge-2"] == "alive")
        wait_until("it arrives", lambda: self.why(fed["edge-1"], "a")["arrives"])
        fed["edge-2"].stop()
        for name in ("edge-1", "edge-3"):
            wait_until("it has left", lambda: fed[name].members()["edge-2"] == "left")
            self.assert_stops(fed[name], "a", "member", name, "edge-2 has left the federation")

    def test_a_link_that_is_cut_is_named_with_the_cause(self):
        """TCP is cut between two brokers, that go on to hear each other's gossip; a third can ask both."""
        fed, weather = self.under_weather(THREE, limits={**PATIENT, "link_idle_ms": 1000})
        fed.start()
        there, here = self.subscriber(fed["edge-2"], "a"), self.closing(Paho(fed["edge-1"]))
        here.publish("a", b"a", 1)
        there.wait_payload(b"a")
        self.assert_arrives(fed["edge-3"], "a")
        weather.between("edge-1", "edge-2", no_tcp="on")
        here.publish("a", b"b", 1)
        for name in ("edge-1", "edge-3"):
            wait_until("the link is down, and dialled in vain", lambda: (seen := self.why(fed[name], "a"))["stage"] == "link" and "the last dial:" in seen["reason"], PATIENCE_S)
            self.assert_stops(fed[name], "a", "link", "edge-1", "the link with edge-2 has been down for", "silent for too long", "the last dial:")
        weather.clear()
        there.wait_payload(b"b", PATIENCE_S)
        for at in fed:
            self.assert_arrives(at, "a")

    def test_a_broker_alone_answers_for_itself(self):
        fed = self.federation(TWO, limits=PATIENT)
        fed["edge-1"].edit(r"^\s+peers: .*\n", "")
        fed["edge-1"].edit(r"(?s)^federation:.*?(?=^\w|\Z)", "")
        fed["edge-1"].start()
        self.subscriber(fed["edge-1"], "a")
        self.assert_arrives(fed["edge-1"], "a", source="edge-1", target="edge-1")
        self.assert_stops(fed["edge-1"], "a", "member", "edge-1", "edge-1 is alone")

    def test_so_many_ask_at_once_and_no_more(self):
        fed = self.federation(TWO, limits=PATIENT).start()
        self.subscriber(fed["edge-2"], "a")
        os.kill(fed["edge-2"].process.pid, signal.SIGSTOP)
        query = "/api/v1/why?topic=a&from=edge-1&to=edge-2"
        try:
            parallel = run("curl", "-s", "--parallel", "--parallel-immediate", "--parallel-max", "24", "-o", "/dev/null", "-w", "%{http_code}\n", f"{fed['edge-1'].admin}{query}&n=[1-24]")
            counts = parallel.stdout.split()
            self.assertEqual(len(counts), 24, parallel)
            self.assertEqual(set(counts), {"200", "503"})
            self.assertEqual(counts.count("200"), 16)
        finally:
            os.kill(fed["edge-2"].process.pid, signal.SIGCONT)
        wait_until("it answers", lambda: fed["edge-1"].get(query)[0] == 200 and self.why(fed["edge-1"], "a")["arrives"] is not None)
