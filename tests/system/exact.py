"""An MQTT client that keeps exact books: it publishes numbers and repeats what is not acknowledged by the rules of a kept session
(MQTT 4.4), and takes QoS 2 by packet id (4.3.3), over any number of connections. What it was promised and what it got is what a
test compares."""
import socket
import threading
import time

from clients import packet, text
from harness import PATIENCE_S, wait_until
from namespaces import inside

WINDOW = 20  # publications under way


class Exact:
    """Connects, and connects again, until closed. publish: (topic, QoS list) that it publishes to in turn, as fast as its window allows
    while publishing is set; follow: (filter, QoS) that it subscribes to once."""

    def __init__(self, broker, client_id, version=4, publish=None, follow=None, retain_every=0):
        self.broker, self.id, self.version = broker, client_id, version
        self.publish, self.follow, self.retain_every = publish, follow, retain_every
        self.publishing = threading.Event()
        self.faults = []
        self.sessions = 0  # that the broker did not know
        self.connected = self.connects = 0
        self.granted = False
        # As publisher: what is under way, in order: packet id -> [number, qos, retain, released]. Acknowledged: number -> qos.
        self.flight, self.acked, self.next_number, self.next_id = {}, {}, 0, 0
        self.last_retained = None
        # As subscriber: (publisher, number) in order of arrival, and the QoS 2 packet ids that wait for PUBREL.
        self.received, self.held = [], set()
        self.closing = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # ---- connection ----

    def _run(self):
        while not self.closing:
            try:
                self._connection()
            except (OSError, EOFError):
                time.sleep(0.02)
            except Exception as error:  # a fault of the broker, or of this client: the test must see it
                self.faults.append(f"{self.id}: {error!r}")
                return
            finally:
                self.connected = 0

    def _connection(self):
        with inside(self.broker.namespace):
            self.socket = socket.create_connection((self.broker.host, self.broker.mqtt_port), 5)
        with self.socket:
            self.socket.settimeout(0.02)
            self.buffer = b""
            body = text("MQTT") + bytes([self.version, 0, 0, 60])
            if self.version == 5:
                body += bytes([5, 0x11]) + (3600).to_bytes(4, "big")
            self.socket.sendall(packet(0x10, body + text(self.id)))
            self._on_connack(*self._packet(5))
            while not self.closing:
                if self.publish and self.publishing.is_set():
                    self._fill_window()
                got = self._packet()
                while got:
                    self._on_packet(*got)
                    got = self._packet()

    def _packet(self, wait_s=0):
        """(first byte, body), or None if there is no whole one now."""
        end = time.monotonic() + wait_s
        while True:
            found = self._cut()
            if found:
                return found
            try:
                more = self.socket.recv(65536)
                if not more:
                    raise EOFError
                self.buffer += more
            except socket.timeout:
                if time.monotonic() >= end:
                    if wait_s:
                        raise EOFError
                    return None

    def _cut(self):
        size = shift = 0
        for at in range(1, min(5, len(self.buffer))):
            size |= (self.buffer[at] & 127) << shift
            shift += 7
            if self.buffer[at] < 128:
                if len(self.buffer) < at + 1 + size:
                    return None
                found = self.buffer[0], self.buffer[at + 1:at + 1 + size]
                self.buffer = self.buffer[at + 1 + size:]
                return found
        return None

    def _on_connack(self, first, body):
        assert first == 0x20 and body[1] == 0, f"CONNACK {first:#x} {body.hex()}"
        self.connects += 1
        if not body[0] & 1:
            self.sessions += 1
            assert self.sessions == 1, "the session is gone"
        if body[0] & 1:
            for packet_id, (number, qos, retain, released) in list(self.flight.items()):
                self._send_pubrel(packet_id) if released else self._send_publish(packet_id, number, qos, retain, dup=True)
        if self.follow and not self.granted:
            item, qos = self.follow
            self.socket.sendall(packet(0x82, (0xFFFF).to_bytes(2, "big") + (b"\0" if self.version == 5 else b"") + text(item) + bytes([qos])))
        self.connected = 1

    # ---- publishing ----

    def _fill_window(self):
        while len(self.flight) < WINDOW:
            topic, qualities = self.publish
            self.next_number += 1
            self.next_id = self.next_id % 1000 + 1
            while self.next_id in self.flight:
                self.next_id = self.next_id % 1000 + 1
            retain = bool(self.retain_every) and self.next_number % self.retain_every == 0
            entry = [self.next_number, qualities[self.next_number % len(qualities)], retain, False]
            self.flight[self.next_id] = entry  # before it is sent: who knows what of it arrives
            self._send_publish(self.next_id, *entry[:3], dup=False)

    def _send_publish(self, packet_id, number, qos, retain, dup):
        topic = self.publish[0]
        body = text(topic) + packet_id.to_bytes(2, "big") + (b"\0" if self.version == 5 else b"") + f"{self.id} {number} {qos}".encode()
        self.socket.sendall(packet(0x30 | dup << 3 | qos << 1 | retain, body))

    def _send_pubrel(self, packet_id):
        self.socket.sendall(packet(0x62, packet_id.to_bytes(2, "big")))

    def _on_packet(self, first, body):
        kind, packet_id = first >> 4, int.from_bytes(body[:2], "big")
        if kind == 3:
            self._on_publish(first, body)
        elif kind == 6:  # PUBREL
            self.held.discard(packet_id)
            self.socket.sendall(packet(0x70, packet_id.to_bytes(2, "big")))
        elif kind in (4, 5, 7):
            self._on_ack(kind, packet_id, body[2] if len(body) > 2 else 0)
        elif kind == 9:
            assert body[-1] <= 2, f"SUBACK {body.hex()}"
            self.granted = True
        elif kind == 14:
            raise EOFError
        else:
            raise AssertionError(f"packet {first:#x} {body.hex()}")

    def _on_ack(self, kind, packet_id, reason):
        entry = self.flight.get(packet_id)
        assert entry, f"acknowledgement {kind} of {packet_id}, which is not under way"
        number, qos, retain, released = entry
        assert kind == (4 if qos == 1 else 7 if released else 5), f"acknowledgement {kind} of {number} at QoS {qos}, released {released}"
        if reason >= 0x80:
            assert reason == 0x97 or (kind == 7 and reason == 0x92), f"reason {reason:#x} for {number}"
            if kind != 7:
                del self.flight[packet_id]
                return
        if kind == 5:
            entry[3] = True
            self._send_pubrel(packet_id)
            return
        del self.flight[packet_id]
        self.acked[number] = qos
        if retain:
            self.last_retained = number

    # ---- receiving ----

    def _on_publish(self, first, body):
        qos, size = first >> 1 & 3, int.from_bytes(body[:2], "big")
        at = 2 + size
        packet_id = int.from_bytes(body[at:at + 2], "big")
        at += 2 if qos else 0
        if self.version == 5:
            at += 1 + body[at]
        if qos != 2 or packet_id not in self.held:
            publisher, number, published = body[at:].decode().split()
            self.received.append((publisher, int(number), min(qos, int(published)), bool(first & 8)))
        if qos == 2:
            self.held.add(packet_id)
        if qos:
            self.socket.sendall(packet(0x40 if qos == 1 else 0x50, packet_id.to_bytes(2, "big")))

    # ---- for tests ----

    def drain(self, timeout_s):
        """Publishes no more, and waits until all is acknowledged."""
        self.publishing.clear()
        wait_until(f"the last acknowledgement for {self.id}", lambda: self.faults or not self.flight, timeout_s)

    def close(self):
        self.closing = True
        self.thread.join(PATIENCE_S)
