"""What a stranger may try against a broker, each as a context: it goes on from the beginning of the block to its end.

Within the block others measure how the rest is served. An attack that turns out to be none (nobody got in, nothing was sent) fails by
itself, so that a good figure means something.
"""
import contextlib
import random
import socket
import subprocess
import threading

from brokers import connected, packet, subscribe_all, text
from clients import raw_connect, raw_publish
from harness import HOBNOB, MORTAL, PATIENCE_S, wait_until


def dial(broker):
    s = socket.create_connection((broker.host, broker.mqtt_port), PATIENCE_S)
    return s


def is_closed(s):
    s.setblocking(False)
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def half_open(broker, count):
    """Connections without a byte."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(dial(broker)) for _ in range(count)]
        wait_until(f"the broker has {count} connections", lambda: broker.open_files() >= count)
        yield sockets


@contextlib.contextmanager
def a_byte_a_minute(broker, count):
    """Half of them dribble a CONNECT; the others are in, and dribble a PUBLISH that promises 16 MB."""
    with contextlib.ExitStack() as stack:
        outside = [stack.enter_context(dial(broker)) for _ in range(count // 2)]
        inside = [connected(broker, f"slow-{i}") for i in range(count // 2)]
        for client in inside:
            stack.callback(client.close)
            client.send(b"\x30\x80\x80\x80\x07\0\1")
        over = threading.Event()
        connect = raw_connect("never")

        def dribble():
            for byte in range(len(connect)):
                for s in [*outside, *(client.socket for client in inside)]:
                    with contextlib.suppress(OSError):
                        s.send(connect[byte:byte + 1])
                if over.wait(60):
                    return
        thread = threading.Thread(target=dribble, daemon=True)
        thread.start()
        yield outside
        over.set()
        thread.join()


@contextlib.contextmanager
def large_packets(broker, clients):
    """Publications of 1 MB, as many as will go."""
    sent = [0] * clients
    over = threading.Event()

    def flood(which):
        client = connected(broker, f"large-{which}")
        data = raw_publish(f"large/{which}", b"x" * 1_000_000)
        client.socket.settimeout(20)
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                client.send(data)
                sent[which] += 1
                continue
            break  # half a packet is out: this connection is of no more use
        client.close()
    threads = [threading.Thread(target=flood, args=(i,), daemon=True) for i in range(clients)]
    for thread in threads:
        thread.start()
    wait_until("a large packet is sent", lambda: sum(sent))
    before = sum(sent)
    yield
    assert sum(sent) > before, "no large packet was sent in that time"
    over.set()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def publishers(broker, qos, count, subscribers):
    """Small publications, as many as will go, to the end of the block."""
    load = subprocess.Popen([*MORTAL, HOBNOB, "bench", "--port", str(broker.mqtt_port), "--topic", f"flood-{random.randrange(1 << 30)}", "--publishers", str(count),
                             "--subscribers", str(subscribers), "--qos", str(qos), "--seconds", "600", "--warmup", "0"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        before = broker.cpu_s()
        wait_until("the flood has begun", lambda: broker.cpu_s() > before + 0.2)
        yield
        assert load.poll() is None, f"the flood ended: {load.stderr.read()}"
    finally:
        load.kill()
        load.wait()
        load.stderr.close()


@contextlib.contextmanager
def deaf_subscriber(broker, size, count):
    """It subscribes at QoS 1 and never reads; another client publishes count messages of this size to it. Yields the publisher's work as
    a function to be called, which returns once all are acknowledged; it calls pace(how many) after each few."""
    deaf = connected(broker, "deaf")
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    subscribe_all(deaf, ["deaf/#"], qos=1)
    publisher = connected(broker, "talker")
    payload = b"x" * size

    def work(pace=lambda acknowledged: None):
        acknowledged = 0
        for first in range(0, count, 50):
            some = min(50, count - first)
            publisher.send(b"".join(raw_publish("deaf/x", payload, 1, 1 + i) for i in range(some)))
            while acknowledged < first + some:
                assert publisher.packet()[0] == 0x40
                acknowledged += 1
            pace(acknowledged)
        return acknowledged
    yield work
    publisher.close()
    deaf.close()


@contextlib.contextmanager
def many_subscriptions(broker, count, per_packet=100):
    """One client subscribes and subscribes, to the end of the block. Yields a list that grows by the reason codes."""
    client = connected(broker, "subscriber-of-all")
    codes = []
    over = threading.Event()

    def subscribe():
        for at in range(0, count, per_packet):
            if over.is_set():
                return
            filters = [f"many/{i % 1000}/{i}/+" for i in range(at, min(at + per_packet, count))]
            client.send(packet(0x82, b"\0\1" + b"".join(text(item) + b"\0" for item in filters)))
            while (answer := client.packet()) is not None and answer[0] != 0x90:
                pass
            if answer is None:
                return
            codes.extend(answer[1][2:])
    thread = threading.Thread(target=subscribe, daemon=True)
    thread.start()
    wait_until("the first subscriptions", lambda: codes)
    yield codes
    over.set()
    thread.join()
    client.close()


class Slow(AssertionError):
    """The broker took much less from the client that behaves than it had."""


def healthy(broker, seconds, rate=500):
    """A client that behaves: publish to receive at QoS 1, and nothing lost. Latencies in microseconds."""
    found = broker.bench("--rate", rate, "--seconds", seconds, "--warmup", 0.2, "--qos", 1, "--topic", f"healthy-{random.randrange(1 << 30)}")
    assert found["lost"] == 0 and found["disordered"] == 0, found
    if found["published"] < rate * seconds * 0.8:
        raise Slow(f"the healthy client could publish {found['published']} of {rate * seconds:g}")
    return found["latency_us"]
