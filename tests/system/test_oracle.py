"""Random conversations of three clients, held with hobnobd and with Debian's Mosquitto in step: after each word all clients must have got the
same from both. Only what the standard leaves no choice in is said or compared, and nothing that Mosquitto 2.0 is known to do otherwise:

- publications at QoS 2 are whole exchanges: Mosquitto routes them at PUBREL, we at PUBLISH (methods A and B of section 4.3.3);
- filters do not overlap (it may send several copies), and each has the same options always (it keeps No Local and Retain As Published of the
  first SUBSCRIBE); No Local stands in none (it is not held for retained messages);
- who takes over a connection starts clean: else Mosquitto sends no will for the old one (section 3.1.4 of MQTT 5.0 says when it is sent);
- the codes of UNSUBACK, 0x10 of PUBACK and PUBREC, 0x92 of PUBCOMP and PUBREL and the last words to a connection that ends are left out, and
  the order in which retained messages come.
"""
import random

from clients import Raw, packet, text
from harness import Broker, Mosquitto, SystemTest
from ports import free_ports

SEEDS, WORDS = 12, 60
TOPICS = ["a", "a/b", "a/c", "b", "b/c", "$x/y", "a/b/c", "/", "a//b", "\ufefft"]
FILTERS = [["a", "a/+", "b/#", "/+", "$x/#", "a//b", "a/b/c", "\ufefft"], ["#", "$x/y"], ["+", "+/+", "a/b/c", "a//b", "$x/#"]]
USER_PROPERTY = b"\x26" + text("k") + text("v")
PROPERTIES = [USER_PROPERTY + b"\x26" + text("k") + text("w"), b"\x01\x01", b"\x03" + text("type"), b"\x08" + text("re/sponse"), b"\x09" + text(b"\0\xff")]
GOOD_OR_LEFT_OUT = b"\x00\x10\x92"
PUBACK, PUBREC, PUBREL, PUBCOMP, PINGREQ = 0x40, 0x50, 0x62, 0x70, b"\xc0\0"


def properties(version, block=b""):
    return packet(0, block)[1:] if version == 5 else b""


def cut_properties(body):
    """The property block at the begin of body, and what follows it."""
    size = shift = at = 0
    while True:
        size |= (body[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if body[at - 1] < 128:
            return body[at:at + size], body[at + size:]


class Side:
    """One of the two brokers, with its clients by name."""

    def __init__(self, broker):
        self.broker, self.links, self.versions, self.open_messages = broker, {}, {}, {}

    def connect(self, name, version, data):
        before = self.links.pop(name, None)
        self.versions[name], self.open_messages[name] = version, {}
        link = Raw(self.broker).send(data)
        heard = [self.describe(name, link.packet())]
        self.links[name] = link
        if before:
            self.end(before)
        return heard

    def end(self, link):
        """Returns once the broker has closed it; last words are not compared."""
        while link.packet() is not None:
            pass
        link.close()

    def leave(self, name, data):
        self.end(self.links.pop(name).send(data))

    def publish(self, name, data, qos, packet_id):
        self.links[name].send(data)
        if qos == 2:
            self.links[name].send(bytes([PUBREL, 2]) + packet_id)

    def answer(self, name):
        """The next step of one publication that it has got: of several the same one on both sides."""
        waiting = self.open_messages[name]
        if not waiting:
            return
        packet_id = min(waiting, key=lambda known: waiting[known])
        content, step = waiting[packet_id][:-1], waiting[packet_id][-1]
        if content[0] == 2 and step == 0:
            self.links[name].send(bytes([PUBREC, 2]) + packet_id)
            return
        del waiting[packet_id]
        self.links[name].send(bytes([PUBACK if content[0] == 1 else PUBCOMP, 2]) + packet_id)

    def heard_by_all(self):
        """What each has got. The second ping of each follows the first ones of all others, so that what these brought about is there."""
        heard = {name: [] for name in self.links}
        for name, link in [*sorted(self.links.items())] * 2:
            link.send(PINGREQ)
            while (got := link.packet()) is not None and got[0] != 0xD0:
                heard[name].append(self.describe(name, got))
            if got is None:
                return {name: "closed"}
        return {name: sorted(words) for name, words in heard.items()}

    def describe(self, name, got):
        if got is None:
            return "closed"
        (first, body), version, kind = got, self.versions[name], got[0] & 0xF0
        if kind == 0x20:
            return f"CONNACK {body[:2].hex()}"
        if kind == 0x30:
            return self.describe_publish(name, first, body)
        if kind in (PUBACK, PUBREC, 0x60, PUBCOMP):
            if kind == 0x60 and body[:2] in self.open_messages[name]:
                known = self.open_messages[name][body[:2]]
                self.open_messages[name][body[:2]] = (*known[:-1], 1)
                return f"PUBREL of {known[:-1]}"
            if kind == 0x60:
                self.open_messages[name][body[:2]] = (2, "", b"", 1)  # of an earlier connection
                return "PUBREL"
            return f"{first:02x} {body[:2].hex()} {body[2:3].strip(GOOD_OR_LEFT_OUT).hex()}"
        if kind in (0x90, 0xB0):
            codes = cut_properties(body[2:])[1] if version == 5 else body[2:]
            return f"{first:02x} {body[:2].hex()} {codes.hex() if kind == 0x90 else ''}"
        return f"{first:02x} {body[:1].hex()}"

    def describe_publish(self, name, first, body):
        qos, size = first >> 1 & 3, int.from_bytes(body[:2], "big")
        topic, rest, block = body[2:2 + size].decode(), body[2 + size:], b""
        packet_id, rest = (rest[:2], rest[2:]) if qos else (b"", rest)
        if self.versions[name] == 5:
            block, rest = cut_properties(rest)
        if qos:
            self.open_messages[name][packet_id] = (qos, topic, rest, 0)
        parts = sorted(part for part in PROPERTIES + [b"\x0b\x07"] if part in block)
        return f"PUBLISH {first & 0xF9:02x} q{qos} {topic} {rest} {parts} {len(block)}"


class Conversation:
    """What is said, word by word, to both sides."""

    def __init__(self, seed, sides):
        self.random, self.sides = random.Random(seed), sides
        self.filters = self.random.choice(FILTERS)
        self.versions = {"one": 4, "two": 5, "three": self.random.choice([4, 5])}

    def both(self, deed, *parts):
        return [getattr(side, deed)(*parts) for side in self.sides]

    def word(self):
        """Says something; returns it, and what the two answered at once if anything."""
        name = self.random.choice(list(self.versions))
        if name not in self.sides[0].links:
            return self.connect(name)
        deed = self.random.choices([self.publish, self.answer, self.subscribe, self.unsubscribe, self.release, self.end, self.connect],
                                   [35, 30, 20, 5, 3, 4, 3])[0]
        return deed(name)

    def connect(self, name):
        draw, version, will = self.random.random, self.versions[name], b""
        flags = 2 if name in self.sides[0].links else self.random.choice([0, 2])
        if draw() < 0.4:
            qos = self.random.randrange(3)
            flags |= 4 | qos << 3 | (32 if draw() < 0.4 else 0)
            will = properties(version, self.random.choice([b"", USER_PROPERTY])) + text(self.random.choice(TOPICS)) + text(self.random.choice(["", "will"]))
        lasts = properties(version, self.random.choice([b"", b"\x11\0\0\0\0", b"\x11\0\0\x03\xe8"]))
        data = packet(0x10, text("MQTT") + bytes([version, flags, 0, 0]) + lasts + text(name) + will)
        return f"{name} connects: {data.hex()}", self.both("connect", name, version, data)

    def subscribe(self, name):
        version, wanted = self.versions[name], self.random.sample(self.filters, self.random.choice([1, 2]))
        data = self.random.choice([b"\0\1", b"\xff\xff"]) + properties(version, self.random.choice([b"", b"\x0b\x07"]))
        for item in wanted:
            as_published = 8 * (len(item) % 2)
            data += text(item) + bytes([self.random.randrange(3) | (as_published | self.random.choice([0, 0, 0x10, 0x20]) if version == 5 else 0)])
        self.both_send(name, packet(0x82, data))
        return f"{name} subscribes to {wanted}: {data.hex()}", None

    def unsubscribe(self, name):
        wanted = self.random.sample(self.filters, self.random.choice([1, 2]))
        self.both_send(name, packet(0xA2, b"\0\2" + properties(self.versions[name]) + b"".join(text(item) for item in wanted)))
        return f"{name} unsubscribes from {wanted}", None

    def publish(self, name):
        version, qos, topic = self.versions[name], self.random.randrange(3), self.random.choice(TOPICS)
        packet_id = self.random.choice([b"\0\1", b"\0\2", b"\xff\xff"]) if qos else b""
        block = b"".join(self.random.sample(PROPERTIES, self.random.randrange(4))) if version == 5 else b""
        payload = self.random.choice([b"", b"x", str(self.random.random()).encode()])
        first = 0x30 | qos << 1 | (1 if self.random.random() < 0.3 else 0) | (8 if qos and self.random.random() < 0.1 else 0)
        self.both("publish", name, packet(first, text(topic) + packet_id + properties(version, block) + payload), qos, packet_id)
        return f"{name} publishes {first:02x} {topic} {payload} {block.hex()}", None

    def answer(self, name):
        self.both("answer", name)
        return f"{name} answers", None

    def release(self, name):
        self.both_send(name, bytes([PUBREL, 2, 0, 9]))
        return f"{name} releases what it never published", None

    def end(self, name):
        ways = [b"\xe0\0", b"\0\0"]  # in order, and not
        if self.versions[name] == 5:
            ways += [b"\xe0\1\4", packet(0xE0, b"\0" + properties(5, b"\x11\0\0\0\0"))]
        way = self.random.choice(ways)
        self.both("leave", name, way)
        return f"{name} ends: {way.hex()}", None

    def both_send(self, name, data):
        for side in self.sides:
            side.links[name].send(data)


class Oracle(SystemTest):
    def test_random_conversations_bring_what_they_bring_at_mosquitto(self):
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                ours, mosquitto = Broker("ours", self.folder()), Mosquitto("mosquitto", self.folder())
                ours.config.write_text(f"name: ours\nstorage: {{sync: 'off'}}\nlisten:\n  mqtt: 127.0.0.1:{free_ports(1)[0]}\n  admin: 127.0.0.1:{free_ports(1)[0]}\n")
                try:
                    self.converse(Conversation(seed, [Side(ours.start()), Side(mosquitto.start())]))
                finally:
                    faults = ours.faults()
                    ours.stop()
                    mosquitto.stop()
                self.assertEqual(faults, [])

    def converse(self, conversation):
        said = []
        for _ in range(WORDS):
            what, answers = conversation.word()
            said.append(what)
            if answers:
                self.assertEqual(*answers, "\n".join(said))
            self.assertEqual(*(side.heard_by_all() for side in conversation.sides), "\n".join(said))
