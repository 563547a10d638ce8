"""Limits that need the whole daemon: memory in total, what is counted in /metrics, and $SYS as a stock client reads it."""
import os
import unittest.mock

from clients import MosquittoSub, Raw, mosquitto_pub, packet, raw_connect, raw_publish, text
from harness import Mosquitto, SystemTest, wait_until
from test_daemon import single

MB = 1 << 20
# A sanitizer keeps what is freed for a while; here it has to be given back.
GIVES_BACK = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + \
    ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0:allocator_release_to_os_interval_ms=50"


def connected(test, broker, client_id, version=5):
    client = test.closing(Raw(broker))
    client.send(raw_connect(client_id, version=version))
    first, body = client.packet()
    test.assertEqual((first, body[1]), (0x20, 0))
    return client


def publish5(topic, payload, qos=1, packet_id=1, retain=False):
    return packet(0x30 | qos << 1 | retain, text(topic) + (packet_id.to_bytes(2, "big") if qos else b"") + b"\0" + payload)


def reason(answer):
    """Of a PUBACK."""
    return answer[1][2] if len(answer[1]) > 2 else 0


def reached(broker, limit):
    return broker.metrics()[f'hobnob_limit_reached_total{{limit="{limit}"}}']


class Limits(SystemTest):
    def broker(self, limits=""):
        broker = single(self, more=f"limits: {{{limits}}}\n" if limits else "")
        self.addCleanup(self._end, broker)
        return broker.start()

    def _end(self, broker):
        broker.stop()
        self.assertEqual(broker.faults(), [])

    def test_memory_in_total_is_held_and_given_back(self):
        with unittest.mock.patch.dict(os.environ, ASAN_OPTIONS=GIVES_BACK):
            empty = self.broker()
            rest = int(empty.metric("hobnob_memory_bytes"))
            self.assertGreater(empty.metric("hobnob_memory_bytes_max"), MB)
            broker = self.broker(f"memory_bytes_max: {rest + 48 * MB}")
        watcher = self.closing(MosquittoSub(broker, "live"))
        client = connected(self, broker, "filler")
        answers = []
        for i in range(2000):
            client.send(publish5(f"keep/{i}", b"x" * 100_000, retain=True))
            answers.append(reason(client.packet()))
            if answers[-1] != 0:
                break
        self.assertEqual(answers[-1], 0x97)
        self.assertGreater(len(answers), 100, "refused long before memory was used up")
        self.assertEqual(broker.metric("hobnob_memory_short"), 1)
        self.assertLess(broker.metric("hobnob_memory_bytes"), rest + 64 * MB)
        self.assertGreater(reached(broker, "memory_bytes_max"), 0)
        self.assertTrue(broker.log_lines("limits.memory_bytes_max"))
        client.send(b"\xc0\0")  # those who are there are served on
        self.assertEqual(client.packet(), (0xD0, b""))
        refused = self.closing(Raw(broker))
        refused.send(raw_connect("new", version=5))
        self.assertEqual(refused.packet()[1][1], 0x97)
        for i in range(len(answers)):
            client.send(publish5(f"keep/{i}", b"", retain=True))
            self.assertEqual(reason(client.packet()), 0)

        def taken_again():
            client.send(publish5("live", b"again"))
            return reason(client.packet()) == 0
        wait_until("publications are taken again", taken_again)
        self.assertEqual(broker.metric("hobnob_memory_short"), 0)
        wait_until("and delivered", lambda: [m.payload for m in watcher.messages][-1:] == [b"again"])

    def test_who_publishes_too_fast_is_told_and_closed(self):
        broker = self.broker("publish_rate_max: 50")
        client = connected(self, broker, "fast")
        client.send(publish5("t", b"x", qos=0) * 60)
        first, body = client.packet()
        self.assertEqual((first, body[0]), (0xE0, 0x96))
        self.assertIn(b"publish_rate_max", body)
        self.assertIsNone(client.packet())
        client = connected(self, broker, "fast-4", version=4)
        client.send(raw_publish("t", b"x") * 60)
        self.assertIsNone(client.packet())
        self.assertEqual(reached(broker, "publish_rate_max"), 2)
        self.assertEqual(len(broker.log_lines("limits.publish_rate_max is reached")), 1)

    def test_silent_connections_make_room(self):
        broker = self.broker("connecting_max: 5")
        silent = [self.closing(Raw(broker)) for _ in range(20)]
        client = connected(self, broker, "speaks")
        wait_until("the first ones are closed", lambda: reached(broker, "connecting_max") >= 15)
        self.assertIsNone(silent[0].packet())
        client.send(b"\xc0\0")
        self.assertEqual(client.packet(), (0xD0, b""))

    def test_sys_has_all_topics_that_mosquitto_has(self):
        theirs = Mosquitto("mosquitto", self.folder())
        with open(theirs.folder / "mosquitto.conf", "a") as conf:
            conf.write("sys_interval 1\n")
        theirs.start()
        self.addCleanup(theirs.stop)
        watcher = self.closing(MosquittoSub(theirs, "$SYS/#"))
        # It says the time first in each turn: at the second time all of a turn, or of what is retained, has come.
        wait_until("Mosquitto has told all", lambda: len(watcher.payloads("$SYS/broker/uptime")) >= 2)
        wanted = {m.topic for m in list(watcher.messages)}
        self.assertGreater(len(wanted), 40)
        watcher = self.closing(MosquittoSub(self.broker("sys_interval_s: 1"), "$SYS/#"))
        missing = lambda: wanted - {m.topic for m in list(watcher.messages)}
        try:
            wait_until("ours has told all of them", lambda: not missing())
        except AssertionError as error:
            self.fail(f"{error}: {sorted(missing())}")

    def test_sys_as_a_stock_client_reads_it(self):
        broker = self.broker("sys_interval_s: 1")
        everything = self.closing(MosquittoSub(broker, "$SYS/#"))
        seen = {}

        def told(*topics):
            seen.update({m.topic: m.payload.decode() for m in list(everything.messages)})
            return all(f"$SYS/broker/{topic}" in seen for topic in topics)
        wait_until("the usual topics", lambda: told("version", "uptime", "clients/connected", "messages/received", "heap/current size",
                                                    "load/bytes/received/1min", "store/messages/count"))
        self.assertRegex(seen["$SYS/broker/version"], r"^hobnob version \d+\.\d+\.\d+$")
        wait_until("time passes", lambda: told() and int(seen["$SYS/broker/uptime"].removesuffix(" seconds")) >= 2)
        mosquitto_pub(broker, "kept", b"12345", qos=1, retain=True)
        for topic, value in (("retained messages/count", "1"), ("publish/messages/received", "1"), ("publish/bytes/received", "5"), ("clients/connected", "1")):
            wait_until(f"{topic} is {value}", lambda: told(topic) and seen[f"$SYS/broker/{topic}"] == value)
        self.assertGreater(int(seen["$SYS/broker/heap/current size"]), 100_000)
        mosquitto_pub(broker, "$SYS/broker/uptime", b"a lie", retain=True)
        wait_until("it was denied", lambda: broker.metric("hobnob_publications_denied_total") == 1)
        told()
        self.assertNotEqual(seen["$SYS/broker/uptime"], "a lie")
