"""A client that behaves is served while strangers try what they can (G12). Smaller attacks than tests/bench/bounds.py has, on a build
that is slower; the bounds on time are wide enough for a busy machine, and narrow enough to fail when somebody waits for an attacker."""
import sys
import threading
from pathlib import Path

from harness import SystemTest, wait_until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import attacks  # noqa: E402
from brokers import Ours, allow_many_files, connected, subscribe_all  # noqa: E402

SECONDS = 1.5
MEDIAN_US, WORST_US = 100_000, 1_500_000


class Bounds(SystemTest):
    def broker(self, more=""):
        allow_many_files()
        broker = Ours(self.folder(), more).start()
        self.addCleanup(self._end, broker)
        return broker

    def _end(self, broker):
        faults = broker.faults()
        status = broker.stop()
        self.assertEqual((faults, status), ([], 0), broker.log()[-4000:])

    def serves(self, broker):
        """At one of three times: who waits for an attacker does so each time, who waits for a busy machine seldom does."""
        slow = []
        while len(slow) < 3:
            try:
                latency = attacks.healthy(broker, SECONDS, rate=200)
            except attacks.Slow as fault:
                slow.append(fault)
                continue
            if latency["p50"] < MEDIAN_US and latency["max"] < WORST_US:
                return
            slow.append(latency)
        self.fail(f"not served in time: {slow}")

    def test_connections_without_a_byte(self):
        broker = self.broker()
        with attacks.half_open(broker, 4000):
            self.serves(broker)

    def test_connections_without_a_byte_are_closed_in_time(self):
        broker = self.broker("limits: {connect_timeout_ms: 3000}\n")
        with attacks.half_open(broker, 200) as sockets:
            self.serves(broker)
            wait_until("all are closed", lambda: all(attacks.is_closed(s) for s in sockets))

    def test_a_byte_now_and_then_does_not_keep_a_connection_without_connect(self):
        broker = self.broker("limits: {connect_timeout_ms: 3000}\n")
        before = broker.resident()
        with attacks.a_byte_a_minute(broker, 400) as outside:
            self.serves(broker)
            wait_until("all without CONNECT are closed", lambda: all(attacks.is_closed(s) for s in outside))
            # The others promised 16 MB each.
            self.assertLess(broker.resident() - before, 100 << 20)

    def test_large_packets(self):
        broker = self.broker()
        with attacks.large_packets(broker, 4):
            self.serves(broker)

    def test_publishers_flooding(self):
        for qos in (0, 1):
            with self.subTest(qos=qos):
                broker = self.broker()
                with attacks.publishers(broker, qos, 5, 5):
                    self.serves(broker)

    def test_more_subscriptions_than_a_client_may_have(self):
        broker = self.broker()
        with attacks.many_subscriptions(broker, 20000) as codes:
            self.serves(broker)
            wait_until("refusals", lambda: any(code >= 0x80 for code in list(codes)))
        self.assertEqual(sum(code < 0x80 for code in codes), 1000)

    def test_a_subscriber_that_never_reads_costs_its_queue_and_no_more(self):
        limits = "limits: {queue_bytes_max: 4000000, output_bytes_max: 1000000}\n"
        broker = self.broker(limits)
        reader = connected(broker, "reader")
        subscribe_all(reader, ["deaf/#"])
        self.addCleanup(reader.close)
        received = []

        def read():
            while len(received) < 20000 and (got := reader.packet()) is not None:
                received.append(len(got[1]))
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        with attacks.deaf_subscriber(broker, 1000, 20000) as work:
            before = broker.resident()
            # The other one keeps up, so that nothing of it is dropped.
            work(lambda sent: wait_until("the other one has most of it", lambda: len(received) >= sent - 500))
            grown = broker.resident() - before
            self.assertLess(grown, 40 << 20, "of 20 MB for it, 5 MB may wait; the sanitizer keeps some freed memory too")
            self.serves(broker)
            wait_until("all that is for the other one", lambda: len(received) == 20000)
            thread.join()
        self.assertGreater(broker.metric("hobnob_dropped_queue_full_total"), 20000 - 4000 - 2000)
