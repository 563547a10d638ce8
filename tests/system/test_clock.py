"""The clock by which brokers agree on the latest retained message (G6)."""
import contextlib
import sqlite3
import time

from clients import Raw, raw_connect, raw_publish, raw_subscribe
from harness import SystemTest
from test_daemon import single


class Clock(SystemTest):
    def connected(self, broker, name, more=b""):
        client = self.closing(Raw(broker)).send(raw_connect(name) + more)
        self.assertEqual(client.packet(), (0x20, b"\0\0"))
        return client

    def test_a_busy_broker_does_not_stamp_ahead_of_time(self):
        """Else what another broker takes a moment later would be the older one."""
        broker = single(self, more="data_dir: data\nstorage: {sync: off}\n").start()
        talkers = [self.connected(broker, f"talker-{i}") for i in range(8)]
        for i in range(8):
            self.assertEqual(self.connected(broker, f"listener-{i}", raw_subscribe(1, "+/+")).packet()[0], 0x90)
        publisher = self.connected(broker, "publisher")
        acknowledged_ms = {}
        for turn in range(10):
            for talker in talkers:
                talker.send(raw_publish("much/talk", b"x") * 2000)
            for talker in talkers:
                talker.send(b"\xc0\0")
                self.assertEqual(talker.packet(), (0xD0, b""))
            topic = f"kept/{turn}"
            publisher.send(raw_publish(topic, b"x", 1, 1, retain=True))
            self.assertEqual(publisher.packet()[0], 0x40)
            acknowledged_ms[topic] = time.time() * 1000
        self.assertEqual(broker.stop(), 0)
        with contextlib.closing(sqlite3.connect(broker.folder / "data" / "hobnob.db")) as kept:
            stamps = dict(kept.execute("SELECT topic, stamp_wall_ms FROM retained"))
        ahead = {topic: stamps[topic] - acknowledged for topic, acknowledged in acknowledged_ms.items()}
        self.assertLess(max(ahead.values()), 2, ahead)
