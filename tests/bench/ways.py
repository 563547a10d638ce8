"""Clients of every way in, for loads that hobnob bench does not make: TCP, TLS, WebSocket and both, with packets made beforehand so that the client's
own work is small and the broker's is what is measured."""
import os
import socket
import ssl
import time

from brokers import packet, raw_connect, text

KINDS = ("mqtt", "mqtts", "ws", "wss")
MARK = b"<the last of a batch>"
REQUEST = b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
          b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"


def frame(payload):
    """A binary message of a client."""
    mask = os.urandom(4)
    size = len(payload)
    head = bytes([0x82, 0x80 | size]) if size < 126 else b"\x82\xfe" + size.to_bytes(2, "big") if size < 65536 else b"\x82\xff" + size.to_bytes(8, "big")
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


def publications(topic, count, size, qos=0):
    """Packets of 3.1.1; the payload of the last begins with MARK."""
    filler = bytes(i & 0x3F for i in range(size))
    return [packet(0x30 | qos << 1, text(topic) + (b"\0\1" if qos else b"") + (MARK + filler[len(MARK):] if i == count - 1 else filler)) for i in range(count)]


class Client:
    """Connected and accepted. address: of the listener. context: for TLS."""

    def __init__(self, address, kind, client_id, context=None, session=None):
        self.socket = socket.create_connection(address, 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = None
        self.is_websocket = kind in ("ws", "wss")
        self.left = 0        # of the WebSocket frame's payload
        self.raw = b""       # of WebSocket frames, not whole
        self.tail = b""      # of MQTT, where a mark may have begun
        self.marks = 0       # that came and were not waited for yet
        if kind in ("mqtts", "wss"):
            self._secure(context, session)
        if self.is_websocket:
            self.write([REQUEST])
            while b"\r\n\r\n" not in self.raw:
                self.raw += self.read()
            if not self.raw.startswith(b"HTTP/1.1 101"):
                raise RuntimeError(f"refused: {self.raw[:200]}")
            self.raw = self.raw.split(b"\r\n\r\n", 1)[1]
        self.write(self.packets(raw_connect(client_id, keep_alive_s=0)))
        answer = self.mqtt()
        if answer[:1] != b"\x20" or answer[3] != 0:
            raise RuntimeError(f"refused: {answer}")

    def _secure(self, context, session):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost", session=session)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_sealed()
                self.incoming.write(self._receive())
        self._send_sealed()

    def _send_sealed(self):
        if self.outgoing.pending:
            self.socket.sendall(self.outgoing.read())

    def _receive(self):
        got = self.socket.recv(1 << 18)
        if not got:
            raise RuntimeError("the broker has closed the connection")
        return got

    def packets(self, *packets):
        """As they go on the wire, but for TLS."""
        return [frame(each) for each in packets] if self.is_websocket else list(packets)

    def write(self, pieces):
        """With TLS, each piece becomes a record of its own. All of them are one write."""
        if self.tls is None:
            self.socket.sendall(b"".join(pieces))
            return
        for piece in pieces:
            self.tls.write(piece)
        self._send_sealed()

    def read(self):
        """What comes next, decrypted."""
        if self.tls is None:
            return self._receive()
        found = []
        while True:
            try:
                while got := self.tls.read(1 << 16):
                    found.append(got)
            except ssl.SSLWantReadError:
                if found:
                    return b"".join(found)
                self.incoming.write(self._receive())

    def mqtt(self):
        """The same without WebSocket frames: at least one byte."""
        if not self.is_websocket:
            return self.read()
        found = []
        while not found:
            if self.left == 0 or not self.raw:
                self.raw += self.read() if not self._has_head() else b""
            at = 0
            while at < len(self.raw):
                if self.left == 0:
                    head = self._head(at)
                    if head is None:
                        break
                    at, self.left = head
                part = self.raw[at:at + self.left]
                found.append(part)
                at += len(part)
                self.left -= len(part)
            self.raw = self.raw[at:]
        return b"".join(found)

    def _head(self, at):
        """(where the payload begins, its size)"""
        if len(self.raw) < at + 2:
            return None
        size = self.raw[at + 1]
        more = {126: 2, 127: 8}.get(size, 0)
        if len(self.raw) < at + 2 + more:
            return None
        return at + 2 + more, int.from_bytes(self.raw[at + 2:at + 2 + more], "big") if more else size

    def _has_head(self):
        return self.left == 0 and self._head(0) is not None

    def wait_marks(self, count):
        """Reads until the ends of so many more batches have come."""
        while self.marks < count:
            got = self.tail + self.mqtt()
            self.marks += got.count(MARK)
            self.tail = got[-len(MARK) + 1:]
        self.marks -= count

    def subscribe(self, topic, qos=0):
        self.write(self.packets(packet(0x82, b"\0\1" + text(topic) + bytes([qos]))))
        got = b""
        while len(got) < 5:
            got += self.mqtt()

    def close(self):
        self.socket.close()


class Pair:
    """A publisher and those who listen to it."""

    def __init__(self, dial, number, batch, size, subscribers=1):
        topic = f"ways/{number}"
        self.subscribers = [dial(f"subscriber-{number}-{i}") for i in range(subscribers)]
        for subscriber in self.subscribers:
            subscriber.subscribe(topic)
        self.publisher = dial(f"publisher-{number}")
        self.batch = self.publisher.packets(*publications(topic, batch, size))

    def close(self):
        for client in (self.publisher, *self.subscribers):
            client.close()


def load(broker, pairs, seconds, batch, ahead=2):
    """Batches to all pairs in turn, so many of them ahead of what has arrived. Returns deliveries and the broker's CPU seconds."""
    deliveries = sent = 0
    for pair in pairs:
        for _ in range(ahead):
            pair.publisher.write(pair.batch)
    before, end = broker.cpu_s(), time.monotonic() + seconds
    while time.monotonic() < end:
        for pair in pairs:
            for subscriber in pair.subscribers:
                subscriber.wait_marks(1)
            deliveries += batch * len(pair.subscribers)
            pair.publisher.write(pair.batch)
        sent += 1
    used = broker.cpu_s() - before
    for pair in pairs:
        for subscriber in pair.subscribers:
            subscriber.wait_marks(ahead)
    return deliveries, used
