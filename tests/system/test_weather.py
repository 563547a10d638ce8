"""The router itself: the weather it makes is the weather asked for."""
import socket
import statistics
import struct
import time

from harness import PATIENCE_S, wait_until
from namespaces import inside
from weather import WeatherTest

SO_TIMESTAMPNS = 35


class Router(WeatherTest):
    def setUp(self):
        self.sky = self.weather(("a", "b"))
        self.ends = {}
        for name, (room, address) in self.sky.rooms.items():
            with inside(room):
                end = self.ends[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.addCleanup(end.close)
            end.bind((address, 7000))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            end.setblocking(False)

    def send(self, count, source="a", target="b", size=8, first=0):
        """Numbered datagrams; returns when each was sent, in seconds."""
        sent = []
        for number in range(first, first + count):
            sent.append(time.time())
            self.ends[source].sendto(number.to_bytes(4, "big").ljust(size, b"."), (self.sky.rooms[target][1], 7000))
            if number % 50 == 49:
                time.sleep(0.002)  # no queue of the kernel's is to lose what the weather would not
        return sent

    def received(self, at="b"):
        """[(number, when the kernel had it in seconds)] of what is here."""
        found = []
        while True:
            try:
                data, ancillary, _, _ = self.ends[at].recvmsg(2048, 128)
            except BlockingIOError:
                return found
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            found.append((int.from_bytes(data[:4], "big"), seconds + nanoseconds / 1e9))

    def gather(self, count, at="b"):
        found = []
        wait_until(f"{count} datagrams", lambda: found.extend(self.received(at)) or len(found) >= count)
        return found

    def test_a_fifth_is_lost_if_asked_for(self):
        self.sky.set(loss=20)
        self.send(4000)
        wait_until("all have passed the router", lambda: self.sky.counts()["a", "b"]["udp"] == 4000)
        self.sky.set(loss=0)
        self.send(1, first=4000)  # comes behind them all
        found = []
        wait_until("the last one", lambda: found.extend(self.received()) or 4000 in (number for number, _ in found))
        self.assertLess(abs(len(found) - 1 - 4000 * 0.8), 130)  # five times the standard deviation
        self.assertEqual(self.sky.counts()["b", "a"]["udp"], 0)

    def test_delay_is_what_was_asked_for(self):
        self.sky.set("a", "b", delay=200)
        sent = self.send(200)
        late = [at - sent[number] for number, at in self.gather(200)]
        self.assertGreaterEqual(min(late), 0.2)
        self.assertLess(statistics.median(late), 0.25)
        back = self.send(50, "b", "a")
        self.assertLess(statistics.median(at - back[number] for number, at in self.gather(50, "a")), 0.05)

    def test_jitter_overtakes_nobody_and_reordering_does(self):
        self.sky.set(delay=5, jitter=20)
        self.send(300)
        numbers = [number for number, _ in self.gather(300)]
        self.assertEqual(numbers, sorted(numbers))
        self.sky.set(jitter=0, reorder=10, duplicate=10)
        for number in range(100):
            self.send(1, size=8 + number)
            time.sleep(0.001)
        wait_until("all are counted", lambda: self.sky.counts()["a", "b"]["udp"] == 400)
        counts = self.sky.counts()["a", "b"]
        self.assertGreater(counts["reordered"], 0)
        self.gather(100 + counts["duplicated"])

    def test_a_cut_has_a_direction_and_ends(self):
        self.sky.set("a", "b", cut="on")
        self.send(10)
        self.send(10, "b", "a")
        self.gather(10, "a")
        self.assertEqual(self.received("b"), [])
        self.assertEqual(self.sky.counts()["a", "b"]["cut"], 10)
        self.sky.mend()
        self.send(10)
        self.gather(10)
        self.sky.part(["a"], ["b"])
        self.send(10)
        self.send(10, "b", "a")
        wait_until("both are cut", lambda: self.sky.counts()["a", "b"]["cut"] == self.sky.counts()["b", "a"]["cut"] + 10 == 20)

    def test_without_udp_there_is_still_tcp(self):
        self.sky.set(no_udp="on", delay=1)
        self.send(10)
        room, address = self.sky.rooms["b"]
        with inside(room):
            listener = socket.create_server((address, 7001))
        self.addCleanup(listener.close)
        with inside(self.sky.rooms["a"][0]):
            client = socket.create_connection((address, 7001), PATIENCE_S)
        self.addCleanup(client.close)
        client.sendall(b"x" * 100_000)
        server, _ = listener.accept()
        self.addCleanup(server.close)
        server.settimeout(None)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", int(PATIENCE_S), 0))
        self.assertEqual(len(server.recv(100_000, socket.MSG_WAITALL)), 100_000)
        self.assertEqual(self.received("b"), [])
        self.assertEqual(self.sky.counts()["a", "b"]["blocked"], 10)

    def test_a_narrow_wire_says_so_or_swallows(self):
        self.sky.set(mtu=1000, hole="on")
        self.send(5, size=1200)
        wait_until("swallowed", lambda: self.sky.counts()["a", "b"]["too_big"] == 5)
        self.assertEqual(self.received(), [])
        self.sky.set(hole="off")

        def through():
            try:
                self.send(1, size=1200)  # cut into pieces as soon as the kernel has been told
            except OSError:
                pass  # it tells the next who sends, too
            return self.received()

        wait_until("the sender's kernel has learnt of it", through)

    def test_a_rate_is_kept_and_its_queue_has_an_end(self):
        self.sky.set(rate=100, queue=100)
        began = self.send(60, size=972)[0]  # 1,000 bytes with their headers
        counts = lambda: self.sky.counts()["a", "b"]
        wait_until("all are counted", lambda: counts()["udp"] == 60)
        most = 2 + (time.time() - began + 0.1) / 0.01  # what left the queue while they came, and what it holds
        dropped = counts()["queue_dropped"]
        self.assertGreaterEqual(dropped, 60 - most)
        found = self.gather(60 - dropped)
        time.sleep(0.3)  # longer than the queue
        self.assertEqual(self.received(), [])
        took = max(at for _, at in found) - min(at for _, at in found)
        self.assertGreater(took, 0.8 * 0.01 * (len(found) - 1))  # the first may be late by what the machine was busy

    def test_an_address_moves(self):
        self.sky.move("b", "10.77.0.99")
        end = self.ends["b"]
        with inside(self.sky.rooms["b"][0]):
            moved = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(moved.close)
        moved.bind(("10.77.0.99", 7000))
        moved.settimeout(PATIENCE_S)
        self.send(1)
        self.assertEqual(moved.recv(100)[:4], bytes(4))
        self.assertRaises(BlockingIOError, end.recv, 100)

    def test_what_it_does_not_understand_it_refuses(self):
        for line in ("set a b", "rain", "set a nobody loss=1", "set a b loss=101", "set a b loss=x", "set a b hail=1", "set a b cut=1", "address a", "address * 10.0.0.1"):
            with self.subTest(line=line):
                if line == "set a b":
                    self.assertEqual(self.sky.tell(line), "")
                else:
                    self.assertRaisesRegex(AssertionError, "error", self.sky.tell, line)
