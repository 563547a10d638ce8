"""hobnob bench: what it counts is true, on a broker that behaves and on one that does not."""
import json
import socket
import struct
import threading

from harness import PATIENT, Mosquitto, SystemTest, environment, hobnob, wait_until
from test_daemon import single


class FakeBroker:
    """Passes what one client publishes to the other, as change(number) says: how often each of the publications is delivered."""

    def __init__(self, change):
        self.change, self.number, self.subscriber = change, 0, None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        stream = client.makefile("rb")
        with client, stream:
            while len(head := stream.read(2)) == 2:  # packets of at most 127 bytes
                body = stream.read(head[1])
                kind = head[0] >> 4
                if kind == 1:
                    client.sendall(b"\x20\x02\x00\x00")
                elif kind == 8:
                    self.subscriber = client
                    client.sendall(b"\x90\x03" + body[:2] + bytes([body[-1]]))
                elif kind == 3:
                    qos = head[0] >> 1 & 3
                    if qos:
                        at = 2 + struct.unpack(">H", body[:2])[0]
                        client.sendall(b"\x40\x02" + body[at:at + 2])
                    self.subscriber.sendall((head + body) * self.change(self.number))
                    self.number += 1
                elif kind == 14:
                    return

    def close(self):
        self.listener.close()


def bench(port, *arguments, status=0):
    done = hobnob("bench", "--port", port, "--json", *arguments, status=status, env=environment())
    return json.loads(done.stdout)["bench"]


class Bench(SystemTest):
    LOADS = ((), ("--topics", 10), ("--subscribers", 20), ("--publishers", 20), ("--topics", 3, "--publishers", 2, "--subscribers", 2, "--size", 3000))

    def all_arrive_at(self, broker, loads=LOADS):
        for load in loads:
            for qos in (0, 1, 2):
                for version in ("3.1.1", "5"):
                    with self.subTest(load=load, qos=qos, version=version):
                        found = bench(broker.mqtt_port, *load, "--qos", qos, "--mqtt", version, "--messages", 600, "--inflight", 20, "--broker-pid", broker.process.pid)
                        copies = found["load"]["subscribers"]
                        self.assertEqual((found["published"], found["delivered"], found["arrived"], found["expected"], found["lost"], found["disordered"]),
                                         (600, 600 * copies, 600 * copies, 600 * copies, 0, 0))
                        self.assertGreater(found["broker"]["resident_bytes"], 100_000)
                        latency = found["latency_us"]
                        self.assertGreater(latency["p50"], 0)
                        self.assertLessEqual(latency["p50"], latency["p99"])
                        self.assertLessEqual(latency["p99"], latency["max"])

    def test_all_arrives_at_ours(self):
        broker = single(self).start()
        self.addCleanup(broker.stop)
        self.all_arrive_at(broker)

    def test_all_arrives_at_mosquitto(self):
        broker = Mosquitto("mosquitto", self.folder()).start()
        self.addCleanup(broker.stop)
        self.all_arrive_at(broker, self.LOADS[1:3])

    def test_a_rate_is_kept_and_time_too(self):
        broker = single(self).start()
        self.addCleanup(broker.stop)

        def kept():  # what a busy machine held up is not made up for
            found = bench(broker.mqtt_port, "--rate", 500, "--seconds", 1, "--warmup", 0.2, "--topics", 2)
            self.assertEqual(found["lost"], 0)
            self.assertGreater(found["seconds"], 0.5)
            self.assertLess(found["published_per_s"], 650)
            return found["seconds"] < 1.5 and found["published_per_s"] > 350
        wait_until("a rate is kept", kept)

    def test_subscribers_may_be_at_another_broker(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT).start()
        here, there = fed["edge-1"], fed["edge-2"]
        before = there.metric("hobnob_publications_sent_total")
        found = bench(here.mqtt_port, "--subscriber-port", there.mqtt_port, "--messages", 300, "--topics", 3, "--rate", 600, "--qos", 1)
        self.assertEqual((found["arrived"], found["lost"], found["disordered"]), (300, 0, 0))
        self.assertEqual(there.metric("hobnob_publications_sent_total") - before, 300)
        done = hobnob("bench", "--port", here.mqtt_port, "--subscriber-host", "127.0.0.2", "--subscriber-port", 1, status=1, env=environment())
        self.one_line(done, "127.0.0.2:1", "a subscriber")

    def test_nobody_need_subscribe(self):
        broker = single(self).start()
        self.addCleanup(broker.stop)
        found = bench(broker.mqtt_port, "--subscribers", 0, "--messages", 1000, "--qos", 1)
        self.assertEqual((found["published"], found["expected"], found["latency_us"]), (1000, 0, None))

    def fake(self, change):
        broker = FakeBroker(change)
        self.addCleanup(broker.close)
        return broker.port

    def test_losses_are_counted_and_at_qos_1_the_answer_is_no(self):
        every_tenth_is_lost = self.fake(lambda number: 0 if number % 10 == 3 else 1)
        self.assertEqual(bench(every_tenth_is_lost, "--messages", 500, "--window", 30)["lost"], 50)
        every_tenth_is_lost = self.fake(lambda number: 0 if number % 10 == 3 else 1)
        self.assertEqual(bench(every_tenth_is_lost, "--messages", 500, "--qos", 1, status=1)["lost"], 50)

    def test_repetitions_are_counted(self):
        found = bench(self.fake(lambda number: 2 if number % 10 == 3 else 1), "--messages", 500)
        self.assertEqual((found["disordered"], found["arrived"]), (50, 550))

    def one_line(self, done, *words):
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def test_what_goes_wrong_is_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        self.one_line(hobnob("bench", "--port", port, status=1, env=environment()), "refused", "running")

        def answering(answer):
            listener = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(listener.close)

            def serve():
                while True:
                    try:
                        client, _ = listener.accept()
                    except OSError:
                        return
                    client.recv(1000)
                    client.sendall(answer)
                    client.close()
            threading.Thread(target=serve, daemon=True).start()
            return listener.getsockname()[1]

        self.one_line(hobnob("bench", "--port", answering(b""), status=1, env=environment()), "CONNACK")
        self.one_line(hobnob("bench", "--port", answering(b"\x20\x02\x00\x05"), status=1, env=environment()), "0x05")
        self.one_line(hobnob("bench", "--port", answering(b"HTTP/1.1 400 Bad Request\r\n\r\n"), status=1, env=environment()), "CONNACK")

    def test_wrong_words_are_one_line_and_status_2(self):
        for arguments, words in ((("--qos", "3"), ("--qos 3", "0 to 2")), (("--size", "7"), ("from 8",)), (("--durable",), ("--mqtt 5",)),
                                 (("--mqtt", "3"), ("3.1.1 or 5",)), (("--topic", "a/#"), ("without + and #",)), (("--publishers", "0"), ("from 1",)),
                                 (("--topics", "60000"), ("too many",)), (("--broker-pid", "2147483647"), ("no such process",)),
                                 (("--rat", "0"), ("--rate",)), (("--subscribers", "x"), ("whole number",)), (("extra",), ("options only",)),
                                 (("--bench",), ("no such option",))):
            with self.subTest(arguments=arguments):
                self.one_line(hobnob("bench", *arguments, status=2, env=environment()), *words)

    def test_a_message_of_somebody_else_is_named(self):
        broker = single(self).start()
        self.addCleanup(broker.stop)
        stranger = socket.create_connection(("127.0.0.1", broker.mqtt_port))
        self.addCleanup(stranger.close)
        stranger.sendall(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01s")
        stranger.recv(4)
        stranger.sendall(b"\x31\x0b\x00\x07other/0hi")
        done = hobnob("bench", "--port", broker.mqtt_port, "--topic", "other", status=1, env=environment())
        self.one_line(done, "not of this run", "--topic")
