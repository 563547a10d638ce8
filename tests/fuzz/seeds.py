#!/usr/bin/python3
"""Writes the inputs that fuzzing starts from into tests/fuzz/NAME/: whole packets of every type and version, and for the others what
takes them past their first checks. Run it again after a change here; inputs that once crashed something lie there too and stay.
"""
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return len(raw).to_bytes(2, "big") + raw


def varint(value):
    out = b""
    while True:
        value, digit = value >> 7, value & 127
        out += bytes([digit | (128 if value else 0)])
        if not value:
            return out


def packet(first, *parts):
    body = b"".join(parts)
    return bytes([first]) + varint(len(body)) + body


def props(*parts):
    body = b"".join(parts)
    return varint(len(body)) + body


USER = b"\x26" + text("name") + text("value")
OF_PUBLISH = [b"\x01\x01", b"\x02\0\0\0\x3c", b"\x23\0\x01", b"\x08" + text("answer/here"), b"\x09" + text(b"\0\xff"), USER, USER, b"\x03" + text("text/plain")]
OF_WILL = [b"\x18\0\0\0\x05", b"\x01\x01", b"\x02\0\0\0\x3c", b"\x03" + text("text/plain"), b"\x08" + text("answer"), b"\x09" + text(b"\1"), USER]
OF_CONNECT = [b"\x11\0\0\0\x3c", b"\x21\0\x14", b"\x27\0\1\0\0", b"\x22\0\x05", b"\x19\x01", b"\x17\0", USER, b"\x15" + text("JWT"), b"\x16" + text("token")]


def connect(client_id, version=4, flags=2, rest=(), properties=b"\0", keep_alive=0):
    return packet(0x10, text("MQTT"), bytes([version, flags]), keep_alive.to_bytes(2, "big"), properties if version == 5 else b"", text(client_id), *rest)


def publish(version, topic, payload, flags=0, packet_id=1, properties=()):
    return packet(0x30 | flags, text(topic), packet_id.to_bytes(2, "big") if flags & 6 else b"", props(*properties) if version == 5 else b"", payload)


def subscribe(version, *filters, packet_id=2, properties=()):
    return packet(0x82, packet_id.to_bytes(2, "big"), props(*properties) if version == 5 else b"", *(text(item) + bytes([options]) for item, options in filters))


def packets(version):
    """A packet of each type that a client may send."""
    will = (props(*OF_WILL) if version == 5 else b"", text("will/topic"), text("gone"))
    yield connect("plain", version)
    yield connect("full", version, 0xf6, (*will, text("user"), text("secret")), props(*OF_CONNECT), 60)
    yield publish(version, "a/b", b"word")
    yield publish(version, "a/b", b"word", 0x3, 7, OF_PUBLISH)
    yield publish(version, "a/b", b"word", 0xd, 8, OF_PUBLISH[:2])
    yield publish(version, "", b"alias", 0, 0, [b"\x23\0\x01"])
    for first in (0x40, 0x50, 0x62, 0x70):
        yield packet(first, b"\0\7")
        if version == 5:
            yield packet(first, b"\0\7\x92" + props(b"\x1f" + text("why"), USER))
    yield subscribe(version, ("a/+", 1), ("b/#", 2), ("$share/g/c", 0), properties=[b"\x0b\x05", USER])
    yield packet(0xa2, b"\0\3", b"\0" if version == 5 else b"", text("a/+"), text("b/#"))
    yield packet(0xc0)
    yield packet(0xe0) if version == 4 else packet(0xe0, b"\x04" + props(b"\x11\0\0\0\0", USER))
    if version == 5:
        yield packet(0xf0, b"\x18" + props(b"\x15" + text("JWT"), b"\x16" + text("more")))


def broker_packets():
    for version in (4, 5):
        each = list(packets(version))
        yield from (bytes([version & 1]) + item for item in each)
        yield bytes([version & 1]) + b"".join(each)
        yield bytes([(version & 1) | 2]) + each[1]


def broker_props():
    yield b"\3" + b"".join(OF_PUBLISH)
    yield b"\0" + b"".join(OF_WILL)
    yield b"\1" + b"".join(OF_CONNECT)
    yield b"\x08\x0b\x05" + USER
    yield b"\x0e\x11\0\0\0\1\x1f" + text("bye")
    yield b"\x0f\x15" + text("JWT") + b"\x16" + text("x")
    yield b"\x04\x1f" + text("why") + USER


def broker_topics():
    yield b"a/b/c\na/+/c\na/#\n#\n+/b/+\na/b/c/d\n$SYS/x\n$SYS/#\na\n"
    yield b"/\n//\n+/+\n/#\n+\n+/#\n\xc3\xa9/x\n\xc3\xa9/+\n"
    yield b"$share/g/a\n$a/b\n+/b\n$a/+\na/+/+/d/#\na/b/c/d/e/f\n"


def broker_trees():
    def step(verb, who, detail, value):
        return bytes([verb | who << 3, detail, len(value)]) + value.encode()
    yield b"".join((step(0, 0, 1, "a/+"), step(0, 1, 2, "a/#"), step(0, 2, 0, "+/b"), step(3, 0, 0, "a/b"), step(2, 1, 0, "a/#"), step(3, 0, 0, "a/b"), step(3, 0, 0, "a")))
    yield b"".join((step(4, 0, 7, "a/b"), step(4, 0, 8, "a/c"), step(4, 0, 9, "$x/c"), step(7, 0, 0, "#"), step(6, 0, 0, "a/b"), step(7, 0, 2, "a/+"), step(7, 0, 1, "a/#")))


def broker_splits():
    """Steps of tests/unit/tree_model.h: what to do, with which entry, how many of its levels to keep, how many of which to add, the last."""
    a, plus = 0, 128
    deep = [(i << 3, max(i - 1, 0), 40, (plus if i % 2 else a) | (60 if i == 0 else 9), 5) for i in range(12)]
    dropped = [(4, i, 0, 0, 0) for i in (5, 0, 11, 3)]
    asked = [(6, 0, 0, a | 60, 5), (6, 0, 0, a | 9, 0)]
    yield b"\0" + b"".join(bytes(step) for step in deep + asked + dropped + asked)
    names = [(i << 3, max(i - 1, 0), 50 - 4 * i, 3, 5 + i % 3) for i in range(12)]
    walked = [(6, 0, 0, plus | 5, 192 + 2), (6, 2, 0, 0, 0), (4, 4, 0, 0, 0), (6, 1, 0, 0, 0), (0x68, 2, 9, 1, 1), (6, 15, 0, 0, 0)]
    yield b"\1" + b"".join(bytes(step) for step in names + walked + dropped)


def broker_mqtt():
    """Chunks of the conversation that fuzz_broker_mqtt reads: flags, what the witnesses do, size, bytes."""
    def say(who, data, verb=0, flags=0, wait=0):
        out = b""
        for at in range(0, max(len(data), 1), 255):
            some = data[at:at + 255]
            out += bytes([who | flags, verb | wait << 4, len(some)]) + some
            verb = flags = 0
        return out
    for version in (4, 5):
        yield say(0, connect("one", version)) + say(0, subscribe(version, ("#", 2), ("+/+", 1))) + b"".join(say(1, connect("two", version) if i == 0 else b"\xc0\0", i) for i in range(16))
        yield b"".join(say(i & 1, item, i & 15, wait=i & 3) for i, item in enumerate(packets(version)))
        yield (say(0, connect("slow", version, 0)) + say(0, subscribe(version, ("#", 2))) + b"".join(say(0, b"", verb, 4) for verb in range(16)) + say(0, b"", 0, 2)
               + say(0, connect("slow", version, 0)))
        # The sleeper sleeps through messages of all kinds, and comes back.
        asleep = (9, 2, 3, 1, 4, 5, 6, 2, 3, 2, 3, 10, 2, 8, 2, 7, 3, 10, 6)
        yield b"".join(say(0, b"", verb, wait=verb & 1) for verb in asleep)
        # With commits and crashes in between; a byte more or less chooses version and store.
        crashing = (9, 2, 3, 11, 13, 6, 2, 12, 13, 10, 11, 3, 13, 2, 4, 11, 7, 8, 3, 13, 10, 11, 13)
        for more in range(4):
            yield b"".join(say(0, b"", verb) for verb in crashing) + b"\0" * more


def broker_link():
    """Frames of a peer that is up (broker/PROTOCOL.md), each behind its size: one of each type, and a whole conversation."""
    def names(*items):
        return [0xdd, 0, 0, 0, len(items), *(byte for item in items for byte in [0xa0 | len(item), *item.encode()])]
    ids = [0xc4, 16, *[9] * 16], [0xc4, 16, 1, *[0] * 15]
    frames = [
        [0x93, 2, 1, *names("done")[5:]],
        [0x92, 3, *names("a/#", "b")], [0x92, 4, *names("b")], [0x93, 5, 0, *names("a/#")], [0x91, 6],
        [0x93, 7, 1, 0x92, 0xc0, 0x93, 1, *names("a/b")[5:], 0xc4, 2, 104, 105],
        [0x92, 8, 2], [0x92, 9, *names("a/b")], [0x93, 10, 0xcd, 0x75, 0x30, *names("a/b")], [0x91, 11], [0x91, 12],
        [0x92, 13, 0x91, 0xc4, 1, 7], [0x93, 14, 2, *names("a/#")],
        [0x95, 15, 7, *names("a/b")[5:], *ids[1], *ids[0]], [0x95, 15, 8, *names("a/b")[5:], *ids[0], *ids[1]],
        [0x93, 16, 1, 0x91, 0x93, 30, 1, *names("no")[5:]],
    ]
    told = [len(frame).to_bytes(2, "big") + bytes(frame) for frame in frames]
    yield from told
    yield b"".join(told[1:])


def gossip_traitor():
    """Messages of each kind, some of one after another: what is left out by the kind is passed over. As fuzz_gossip_traitor.c reads them."""
    dice = random.Random(4)
    for kind in range(34):
        yield b"".join(bytes([to | way, kind]) + bytes(dice.randrange(256) for _ in range(24)) for way in (0, 0x40, 0x80) for to in range(3))
    for number in range(8):
        yield bytes(dice.randrange(256) for _ in range(400))


def main():
    for name in ("broker_packets", "broker_props", "broker_topics", "broker_trees", "broker_splits", "broker_mqtt", "broker_link", "gossip_traitor"):
        folder = HERE / f"fuzz_{name}"
        folder.mkdir(exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        for number, data in enumerate(globals()[name]()):
            (folder / f"seed-{number:02}").write_bytes(data)


if __name__ == "__main__":
    main()
