"""What no client should send, over real sockets: what becomes of the sender is what the standard says, and a healthy client beside it
is served as before. A row is one input; its name is the fact. All rows over TCP, and all over WebSocket."""
import base64
import os
import socket
import tempfile
from pathlib import Path

from clients import Raw, packet, text
from harness import PATIENCE_S, Broker, OneBrokerTest
from ports import free_ports

ROWS = {}


def row(name, data, outcome, versions=(4, 5), first=False):
    """name: the fact. data: the bytes, or a function of the version (4 is MQTT 3.1.1, 5 is 5.0). outcome: what comes of it, or that by
    version. first: the data is all that is sent; otherwise a CONNECT that was accepted goes before it."""
    assert name not in ROWS, name
    for version in versions:
        ROWS.setdefault(name, []).append((version, data(version) if callable(data) else data,
                                          outcome[version] if isinstance(outcome, dict) else outcome, first))


# ---- outcomes ----

SILENCE = ("closed", [])  # closed without a word


def connack(code):
    """CONNACK with this code, session present 0; then closed."""
    return "closed", [(0x20, bytes([0, code]))]


def disconnect(code):
    return "closed", [(0xE0, bytes([code]))]


def breaks(code):
    """A breach of the protocol by a client that is connected: 5.0 has a reason for it, 3.1.1 none."""
    return {4: SILENCE, 5: disconnect(code)}


def malformed_connect(code=0x81):
    return {4: SILENCE, 5: connack(code)}


def goes_on(*answers):
    """The connection lives; these packets came, as (first byte, beginning of the body)."""
    return "open", list(answers)


# ---- packets ----

def properties(version, block):
    assert len(block) < 128
    return bytes([len(block)]) + block if version == 5 else b""


def connect(version, payload=text("bad"), flags=2, block=b"", name=b"MQTT", level=None, keep_alive=60, header=0x10):
    return packet(header, text(name) + bytes([version if level is None else level, flags]) + keep_alive.to_bytes(2, "big") +
                  properties(version, block) + payload)


def publish(version, topic="leak/x", flags=0, packet_id=1, block=b"", payload=b"x"):
    has_id = flags & 6
    return packet(0x30 | flags, text(topic) + (packet_id.to_bytes(2, "big") if has_id else b"") + properties(version, block) + payload)


def subscribe(version, payload=text("a") + b"\0", packet_id=1, block=b"", header=0x82):
    return packet(header, packet_id.to_bytes(2, "big") + properties(version, block) + payload)


def unsubscribe(version, payload=text("a"), packet_id=1, block=b""):
    return subscribe(version, payload, packet_id, block, 0xA2)


def with_will(version, block=b"", topic="w", payload=b"x", flags=6):
    return connect(version, text("bad") + properties(version, block) + text(topic) + text(payload), flags)


USER_PROPERTY = b"\x26" + text("k") + text("v")
NUL, SURROGATE, OVERLONG, CUT_UTF8 = b"a\0b", b"\xed\xa0\x80", b"\xc0\xaf", b"\xe2\x82"

# ---- before CONNECT ----

row("http_request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", SILENCE, first=True)
row("tls_hello", bytes.fromhex("16030100dc010000d80303") + bytes(200), SILENCE, first=True)
row("zeroes", bytes(64), SILENCE, first=True)
row("ones", b"\xff" * 64, SILENCE, first=True)
row("publish_before_connect", publish, SILENCE, first=True)
row("subscribe_before_connect", subscribe, SILENCE, first=True)
row("pingreq_before_connect", b"\xc0\0", SILENCE, first=True)
row("disconnect_before_connect", b"\xe0\0", SILENCE, first=True)
row("auth_before_connect", b"\xf0\0", SILENCE, (5,), first=True)
row("connack_before_connect", b"\x20\x02\0\0", SILENCE, first=True)
row("puback_before_connect", b"\x40\x02\0\1", SILENCE, first=True)
row("connect_of_five_length_bytes", b"\x10\xff\xff\xff\xff\x01", SILENCE, first=True)
row("connect_of_padded_length", lambda v: b"\x10" + bytes([connect(v)[1] | 128, 0]) + connect(v)[2:], SILENCE, first=True)
row("connect_announced_as_256_mib", b"\x10\xff\xff\xff\x7f", SILENCE, first=True)
row("connect_of_no_bytes", b"\x10\0", SILENCE, first=True)

# ---- CONNECT ----

row("connect_with_header_flags", lambda v: connect(v, header=0x12), SILENCE, first=True)
row("will_to_sys", lambda v: with_will(v, topic="$SYS/x"), {4: connack(5), 5: connack(0x87)}, first=True)
row("protocol_of_another_name", lambda v: connect(v, name=b"AMQP"), SILENCE, first=True)
row("protocol_name_in_small_letters", lambda v: connect(v, name=b"mqtt"), SILENCE, first=True)
row("protocol_name_of_no_letters", lambda v: connect(v, name=b""), SILENCE, first=True)
row("protocol_name_longer_than_the_packet", b"\x10\x06\xff\xffMQTT", SILENCE, first=True)
row("mqtt_3_1", packet(0x10, text("MQIsdp") + b"\3\2\0\x3c" + text("bad")), connack(1), (4,), first=True)
row("level_0", lambda v: connect(4, level=0), connack(1), (4,), first=True)
row("level_3", lambda v: connect(4, level=3), connack(1), (4,), first=True)
row("level_6", lambda v: connect(5, level=6), connack(0x84), (5,), first=True)
row("level_127", lambda v: connect(5, level=127), connack(0x84), (5,), first=True)
row("reserved_connect_flag", lambda v: connect(v, flags=3), malformed_connect(), first=True)
row("will_qos_3", lambda v: with_will(v, flags=0x1E), malformed_connect(), first=True)
row("will_qos_without_will", lambda v: connect(v, flags=0x0A), malformed_connect(), first=True)
row("will_retain_without_will", lambda v: connect(v, flags=0x22), malformed_connect(), first=True)
row("will_that_is_not_there", lambda v: connect(v, flags=6), malformed_connect(), first=True)
row("will_topic_with_a_wildcard", lambda v: with_will(v, topic="w/#"), malformed_connect(0x90), first=True)
row("will_topic_of_no_letters", lambda v: with_will(v, topic=""), malformed_connect(0x90), first=True)
row("will_topic_with_u0000", lambda v: with_will(v, topic=NUL), malformed_connect(), first=True)
row("will_payload_cut_short", lambda v: with_will(v)[:1] + bytes([with_will(v)[1] - 1]) + with_will(v)[2:-1], malformed_connect(), first=True)
row("user_name_that_is_not_there", lambda v: connect(v, flags=0x82), malformed_connect(), first=True)
row("password_that_is_not_there", lambda v: connect(v, text("bad") + text("u"), 0xC2), malformed_connect(), first=True)
row("password_without_user_name", lambda v: connect(v, text("bad") + text("p"), 0x42), SILENCE, (4,), first=True)
row("user_name_of_invalid_utf8", lambda v: connect(v, text("bad") + text(OVERLONG), 0x82), malformed_connect(), first=True)
row("bytes_after_the_connect_payload", lambda v: connect(v, text("bad") + b"\0"), malformed_connect(), first=True)
row("no_client_id", lambda v: connect(v, b""), malformed_connect(), first=True)
row("client_id_longer_than_the_packet", lambda v: connect(v, b"\xff\xffbad"), malformed_connect(), first=True)
row("client_id_with_u0000", lambda v: connect(v, text(NUL)), malformed_connect(), first=True)
row("client_id_with_a_surrogate", lambda v: connect(v, text(SURROGATE)), malformed_connect(), first=True)
row("client_id_cut_in_a_letter", lambda v: connect(v, text(CUT_UTF8)), malformed_connect(), first=True)
row("client_id_of_2000_bytes", lambda v: connect(v, text("i" * 2000)), {4: connack(2), 5: connack(0x85)}, first=True)
row("no_client_id_and_not_clean", lambda v: connect(v, text(""), 0), connack(2), (4,), first=True)
row("connect_properties_longer_than_the_packet", packet(0x10, text("MQTT") + b"\5\2\0\x3c\x7f" + text("bad")), connack(0x81), (5,), first=True)
row("connect_properties_of_padded_length", packet(0x10, text("MQTT") + b"\5\2\0\x3c\x80\0" + text("bad")), connack(0x81), (5,), first=True)
row("connect_property_that_is_unknown", lambda v: connect(v, block=b"\x7f\0"), connack(0x81), (5,), first=True)
row("connect_property_of_publish", lambda v: connect(v, block=b"\x01\0"), connack(0x81), (5,), first=True)
row("connect_property_of_connack", lambda v: connect(v, block=b"\x24\1"), connack(0x81), (5,), first=True)
row("session_expiry_twice", lambda v: connect(v, block=b"\x11\0\0\0\1" * 2), connack(0x82), (5,), first=True)
row("receive_maximum_0", lambda v: connect(v, block=b"\x21\0\0"), connack(0x82), (5,), first=True)
row("maximum_packet_size_0", lambda v: connect(v, block=b"\x27\0\0\0\0"), connack(0x82), (5,), first=True)
row("request_problem_information_2", lambda v: connect(v, block=b"\x17\2"), connack(0x82), (5,), first=True)
row("request_response_information_2", lambda v: connect(v, block=b"\x19\2"), connack(0x82), (5,), first=True)
row("authentication_method_that_is_unknown", lambda v: connect(v, block=b"\x15" + text("NO-SUCH")), connack(0x8C), (5,), first=True)
row("authentication_method_twice", lambda v: connect(v, block=b"\x15" + text("a") + b"\x15" + text("b")), connack(0x82), (5,), first=True)
row("authentication_method_of_64_kib", packet(0x10, text("MQTT") + b"\5\2\0\x3c\x82\x80\x04\x15" + text(b"x" * 65535) + text("bad")), connack(0x8C), (5,), first=True)
row("a_crowd_of_auth_behind_a_method_that_is_unknown",
    lambda v: connect(v, block=b"\x15" + text("NO-SUCH")) + packet(0xF0, b"\x18" + properties(v, b"\x15" + text("NO-SUCH"))) * 1000, connack(0x8C), (5,), first=True)
row("authentication_data_without_method", lambda v: connect(v, block=b"\x16" + text("x")), connack(0x82), (5,), first=True)
row("user_property_cut_short_in_connect", lambda v: connect(v, block=USER_PROPERTY[:-1]), connack(0x81), (5,), first=True)
row("will_property_of_connect", lambda v: with_will(v, b"\x11\0\0\0\1"), connack(0x81), (5,), first=True)
row("will_delay_twice", lambda v: with_will(v, b"\x18\0\0\0\1" * 2), connack(0x82), (5,), first=True)
row("will_payload_format_2", lambda v: with_will(v, b"\x01\2"), connack(0x82), (5,), first=True)
row("will_response_topic_with_a_wildcard", lambda v: with_will(v, b"\x08" + text("a/+")), connack(0x82), (5,), first=True)
row("maximum_packet_size_too_small_for_connack", lambda v: connect(v, block=b"\x27\0\0\0\2"), SILENCE, (5,), first=True)
row("publish_after_a_refused_connect", lambda v: connect(v, flags=3) + publish(v), malformed_connect(), first=True)

# ---- any packet, connected ----

row("second_connect", connect, breaks(0x82))
row("packet_type_0", b"\0\0", breaks(0x81))
row("connack_from_a_client", b"\x20\x02\0\0", breaks(0x82))
row("suback_from_a_client", b"\x90\x03\0\1\0", breaks(0x82))
row("unsuback_from_a_client", b"\xb0\x02\0\1", breaks(0x82))
row("pingresp_from_a_client", b"\xd0\0", breaks(0x82))
row("length_of_five_bytes", b"\x30\xff\xff\xff\xff\x01", breaks(0x81))
row("padded_length", b"\xc0\x80\0", breaks(0x81))
row("publish_announced_as_256_mib", b"\x30\xff\xff\xff\x7f", breaks(0x95))
row("subscribe_announced_as_256_mib", b"\x82\xff\xff\xff\x7f", breaks(0x95))
row("pingreq_with_a_body", b"\xc0\1\0", breaks(0x81))
row("pingreq_with_flags", b"\xc1\0", breaks(0x81))

# ---- PUBLISH ----

row("qos_3", lambda v: publish(v, flags=6), breaks(0x81))
row("dup_at_qos_0", lambda v: publish(v, flags=8), breaks(0x81))
row("packet_id_0_in_publish", lambda v: publish(v, flags=2, packet_id=0), breaks(0x82))
row("publish_of_no_bytes", b"\x30\0", breaks(0x81))
row("publish_without_its_packet_id", packet(0x32, text("leak/x")), breaks(0x81))
row("empty_topic_name", lambda v: publish(v, ""), {4: SILENCE, 5: disconnect(0x82)})
row("wildcard_in_a_topic_name", lambda v: publish(v, "leak/#"), breaks(0x90))
row("plus_in_a_topic_name", lambda v: publish(v, "leak/+/x"), breaks(0x90))
row("topic_name_of_300_levels", lambda v: publish(v, "leak" + "/" * 300), breaks(0x90))
row("topic_name_with_u0000", lambda v: publish(v, b"leak/\0"), breaks(0x81))
row("topic_name_with_a_surrogate", lambda v: publish(v, b"leak/" + SURROGATE), breaks(0x81))
row("topic_name_that_is_overlong", lambda v: publish(v, b"leak/" + OVERLONG), breaks(0x81))
row("topic_name_cut_in_a_letter", lambda v: publish(v, b"leak/" + CUT_UTF8), breaks(0x81))
row("topic_name_longer_than_the_packet", b"\x30\x03\xff\xffl", breaks(0x81))
row("publish_properties_missing", packet(0x30, text("leak/x")), disconnect(0x81), (5,))
row("publish_properties_longer_than_the_packet", packet(0x30, text("leak/x") + b"\x7f"), disconnect(0x81), (5,))
row("publish_property_that_is_unknown", lambda v: publish(v, block=b"\x7f\0"), disconnect(0x81), (5,))
row("publish_property_of_connect", lambda v: publish(v, block=b"\x11\0\0\0\1"), disconnect(0x81), (5,))
row("publish_property_without_its_value", lambda v: publish(v, block=b"\x02\0"), disconnect(0x81), (5,))
row("topic_alias_0", lambda v: publish(v, block=b"\x23\0\0"), disconnect(0x94), (5,))
row("topic_alias_above_the_maximum", lambda v: publish(v, block=b"\x23\xff\xff"), disconnect(0x94), (5,))
row("topic_alias_that_stands_for_nothing", lambda v: publish(v, "", block=b"\x23\0\1"), disconnect(0x82), (5,))
row("topic_alias_twice", lambda v: publish(v, block=b"\x23\0\1" * 2), disconnect(0x82), (5,))
row("payload_format_2", lambda v: publish(v, block=b"\x01\2"), disconnect(0x82), (5,))
row("payload_format_twice", lambda v: publish(v, block=b"\x01\1" * 2), disconnect(0x82), (5,))
row("message_expiry_twice", lambda v: publish(v, block=b"\x02\0\0\0\1" * 2), disconnect(0x82), (5,))
row("subscription_identifier_from_a_client", lambda v: publish(v, block=b"\x0b\1"), disconnect(0x82), (5,))
row("response_topic_with_a_wildcard", lambda v: publish(v, block=b"\x08" + text("a/#")), disconnect(0x82), (5,))
row("response_topic_of_invalid_utf8", lambda v: publish(v, block=b"\x08" + text(b"\xff")), disconnect(0x81), (5,))
row("content_type_of_invalid_utf8", lambda v: publish(v, block=b"\x03" + text(b"\xff")), disconnect(0x81), (5,))
row("correlation_data_longer_than_its_block", lambda v: publish(v, block=b"\x09\0\x09x"), disconnect(0x81), (5,))
row("user_property_with_u0000", lambda v: publish(v, block=b"\x26" + text("k") + text(NUL)), disconnect(0x81), (5,))
row("more_qos_2_publications_than_receive_maximum", lambda v: b"".join(publish(v, "mine", 4, n) for n in range(1, 102)),
    {4: goes_on(*((0x50, n.to_bytes(2, "big")) for n in range(1, 102))),
     5: ("closed", [(0x50, n.to_bytes(2, "big")) for n in range(1, 101)] + [(0xE0, b"\x93")])})
row("publish_to_sys", lambda v: publish(v, "$SYS/broker/uptime", 2), {4: goes_on((0x40, b"\0\1")), 5: goes_on((0x40, b"\0\1\x87"))})
row("publish_to_share", lambda v: publish(v, "$share/g/leak", 4), {4: goes_on((0x50, b"\0\1")), 5: goes_on((0x50, b"\0\1\x87"))})
row("publish_after_disconnect", lambda v: b"\xe0\0" + publish(v), SILENCE)
row("publish_after_what_was_malformed", lambda v: b"\0\0" + publish(v), breaks(0x81))

# ---- acknowledgements ----

for number, kind in ((4, "puback"), (5, "pubrec"), (6, "pubrel"), (7, "pubcomp")):
    right = number << 4 | (2 if kind == "pubrel" else 0)
    row(f"{kind}_with_wrong_flags", bytes([right ^ 2, 2, 0, 1]), breaks(0x81))
    row(f"{kind}_of_one_byte", bytes([right, 1, 0]), breaks(0x81))
    row(f"{kind}_of_packet_id_0", bytes([right, 2, 0, 0]), breaks(0x82))
    row(f"{kind}_with_a_code_of_another_packet", bytes([right, 3, 0, 1, 0x8E]), {4: SILENCE, 5: disconnect(0x82)})
    row(f"{kind}_with_properties_longer_than_itself", bytes([right, 4, 0, 1, 0, 9]), breaks(0x81))
row("puback_of_nothing", b"\x40\x02\0\x4d", goes_on())
row("pubcomp_of_nothing", b"\x70\x02\0\x4d", goes_on())
row("pubrec_of_nothing", b"\x50\x02\0\x4d", {4: goes_on((0x62, b"\0\x4d")), 5: goes_on((0x62, b"\0\x4d\x92"))})
row("pubrel_of_nothing", b"\x62\x02\0\x4d", {4: goes_on((0x70, b"\0\x4d")), 5: goes_on((0x70, b"\0\x4d\x92"))})

# ---- SUBSCRIBE, UNSUBSCRIBE ----

row("subscribe_without_filters", lambda v: subscribe(v, b""), breaks(0x82))
row("packet_id_0_in_subscribe", lambda v: subscribe(v, packet_id=0), breaks(0x82))
row("subscribe_with_wrong_flags", lambda v: subscribe(v, header=0x80), breaks(0x81))
row("subscribe_with_qos_3", lambda v: subscribe(v, text("a") + b"\3"), breaks(0x81))
row("subscribe_with_reserved_options", lambda v: subscribe(v, text("a") + b"\xc0"), breaks(0x81))
row("subscribe_of_311_with_options_of_5", lambda v: subscribe(v, text("a") + b"\4"), SILENCE, (4,))
row("retain_handling_3", lambda v: subscribe(v, text("a") + b"\x30"), disconnect(0x82), (5,))
row("subscribe_without_options", lambda v: subscribe(v, text("a")), breaks(0x81))
row("second_filter_cut_short", lambda v: subscribe(v, text("a") + b"\0\0\5b"), breaks(0x81))
row("filter_with_u0000", lambda v: subscribe(v, text(NUL) + b"\0"), breaks(0x81))
row("filter_with_a_surrogate", lambda v: subscribe(v, text(SURROGATE) + b"\0"), breaks(0x81))
row("empty_filter", lambda v: subscribe(v, text("") + b"\0"), breaks(0x81))
row("misplaced_hash_in_a_filter", lambda v: subscribe(v, text("a/#/b") + b"\0"), breaks(0x81))
row("hash_in_a_level", lambda v: subscribe(v, text("a#") + b"\0"), breaks(0x81))
row("misplaced_plus_in_a_filter", lambda v: subscribe(v, text("a+/b") + b"\0"), breaks(0x81))
row("filter_of_300_levels", lambda v: subscribe(v, text("a" + "/" * 300) + b"\0"), {4: goes_on((0x90, b"\0\1\x80")), 5: goes_on((0x90, b"\0\1\0\x8f"))})
for number, name in enumerate(("$share/", "$share/g", "$share/g/", "$share//a", "$share/+/a", "$share/g#/a", "$share/g/a#")):
    row(f"ill_formed_share_{number + 1}", lambda v, name=name: subscribe(v, text(name) + b"\0"),
        {4: goes_on((0x90, b"\0\1\x80")), 5: goes_on((0x90, b"\0\1\0\x8f"))})
    row(f"unsubscribe_of_ill_formed_share_{number + 1}", lambda v, name=name: unsubscribe(v, text(name)),
        {4: goes_on((0xB0, b"\0\1")), 5: goes_on((0xB0, b"\0\1\0\x8f"))})
row("subscription_identifier_0", lambda v: subscribe(v, block=b"\x0b\0"), disconnect(0x82), (5,))
row("subscription_identifier_twice", lambda v: subscribe(v, block=b"\x0b\1\x0b\2"), disconnect(0x82), (5,))
row("subscription_identifier_of_five_bytes", lambda v: subscribe(v, block=b"\x0b\xff\xff\xff\xff\1"), disconnect(0x81), (5,))
row("no_local_on_a_shared_subscription", lambda v: subscribe(v, text("$share/g/a") + b"\4"), disconnect(0x82), (5,))
row("unsubscribe_without_filters", lambda v: unsubscribe(v, b""), breaks(0x82))
row("packet_id_0_in_unsubscribe", lambda v: unsubscribe(v, packet_id=0), breaks(0x82))
row("unsubscribe_with_wrong_flags", lambda v: subscribe(v, text("a"), header=0xA0), breaks(0x81))
row("unsubscribe_of_invalid_utf8", lambda v: unsubscribe(v, text(b"\xff")), breaks(0x81))
row("unsubscribe_of_an_empty_filter", lambda v: unsubscribe(v, text("a") + text("")), breaks(0x81))
row("unsubscribe_of_a_misplaced_hash", lambda v: unsubscribe(v, text("a") + text("a/#/b")), breaks(0x81))
row("unsubscribe_of_a_misplaced_plus", lambda v: unsubscribe(v, text("a") + text("a+/b")), breaks(0x81))
row("unsubscribe_of_300_levels", lambda v: unsubscribe(v, text("a" + "/" * 300)), {4: goes_on((0xB0, b"\0\1")), 5: goes_on((0xB0, b"\0\1\0\x8f"))})
row("unsubscribe_cut_short", lambda v: unsubscribe(v, b"\0\5a"), breaks(0x81))
row("unsubscribe_with_a_subscription_identifier", lambda v: unsubscribe(v, block=b"\x0b\1"), disconnect(0x81), (5,))
row("unsubscribe_of_what_was_not_there", unsubscribe, {4: goes_on((0xB0, b"\0\1")), 5: goes_on((0xB0, b"\0\1\0\x11"))})

# ---- DISCONNECT, AUTH ----

row("disconnect_with_flags", b"\xe1\0", breaks(0x81))
row("disconnect_of_311_with_a_body", b"\xe0\1\0", SILENCE, (4,))
row("disconnect_with_a_code_of_servers", b"\xe0\1\x8e", disconnect(0x82), (5,))
row("disconnect_with_a_code_that_is_unknown", b"\xe0\1\x05", disconnect(0x82), (5,))
row("disconnect_that_prolongs_a_session_of_0", b"\xe0\x07\0\x05\x11\0\0\0\x0a", disconnect(0x82), (5,))
row("disconnect_with_session_expiry_twice", b"\xe0\x0c\0\x0a" + b"\x11\0\0\0\0" * 2, disconnect(0x82), (5,))
row("disconnect_with_a_property_of_connack", b"\xe0\x05\0\x03\x13\0\x01", disconnect(0x81), (5,))
row("auth_in_311", b"\xf0\0", SILENCE, (4,))
row("auth_of_no_bytes", packet(0xF0, b""), disconnect(0x82), (5,))
row("auth_with_flags", packet(0xF1, b""), disconnect(0x81), (5,))
row("auth_with_a_code_that_is_none", packet(0xF0, b"\x01" + properties(5, b"\x15" + text("NO-SUCH"))), disconnect(0x82), (5,))
row("auth_without_a_method_agreed_on", packet(0xF0, b"\x19" + properties(5, b"\x15" + text("NO-SUCH"))), disconnect(0x82), (5,))


class WebSocket(Raw):
    """A Raw whose bytes travel in WebSocket frames, seven at a time."""

    def __init__(self, broker):
        self.socket = socket.create_connection((broker.host, broker.ws_port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE_S)
        self.buffer = self.wire = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET /mqtt HTTP/1.1\r\nHost: {broker.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.wire:
            self.wire += self.socket.recv(4096)
        head, self.wire = self.wire.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101") and b"mqtt" in head, head

    def frame(self, opcode, data, first=0x80, mask=b"mask"):
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        return bytes([first | opcode]) + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))

    def send(self, data):
        size = 7 if len(data) < 500 else 60_000
        try:
            self.socket.sendall(b"".join(self.frame(2, data[at:at + size]) for at in range(0, len(data), size)))
        except (BrokenPipeError, ConnectionResetError):
            pass  # closed in the midst of it; what the broker said of that is read all the same
        return self

    def _take(self, size):
        while len(self.buffer) < size:
            while len(self.wire) < 2 or len(self.wire) < self._frame_size():
                more = self.socket.recv(65536)
                if not more:
                    raise EOFError
                self.wire += more
            at, end = (4 if self.wire[1] == 126 else 2), self._frame_size()
            opcode, data, self.wire = self.wire[0] & 15, self.wire[at:end], self.wire[end:]
            if opcode == 8:
                raise EOFError
            assert opcode in (0, 2), f"frame of type {opcode} from the broker"
            self.buffer += data
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def _frame_size(self):
        assert self.wire[1] < 127
        if self.wire[1] < 126:
            return 2 + self.wire[1]
        return 4 + int.from_bytes(self.wire[2:4], "big") if len(self.wire) >= 4 else 4


class Hostile(OneBrokerTest):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory(prefix="hobnob-test-")
        cls.broker = Broker("solo", cls.room.name)
        mqtt, ws, admin = free_ports(1, bases=3)
        Path(cls.room.name, "hobnob.yaml").write_text(
            f"name: solo\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  ws: 127.0.0.1:{ws}\n  admin: 127.0.0.1:{admin}\n")
        cls.broker.start()
        cls.healthy = Raw(cls.broker)
        cls.healthy.send(connect(4, text("healthy"), keep_alive=0) + subscribe(4, text("healthy") + b"\1" + text("leak/#") + b"\0"))
        assert cls.healthy.packet() == (0x20, b"\0\0") and cls.healthy.packet() == (0x90, b"\0\1\1\0")
        cls.turn = 0

    @classmethod
    def tearDownClass(cls):
        cls.healthy.close()
        super().tearDownClass()

    def others_are_served(self):
        """What the healthy client publishes comes back to it, and nothing else has come."""
        Hostile.turn += 1
        self.healthy.send(publish(4, "healthy", 2, self.turn, payload=b"%d" % self.turn))
        got = sorted(self.healthy.packet() for _ in range(2))
        self.assertEqual(got[1], (0x40, self.turn.to_bytes(2, "big")))
        self.assertEqual((got[0][0], got[0][1][11:]), (0x32, b"%d" % self.turn))
        self.healthy.send(b"\x40\2" + got[0][1][9:11])

    def play(self, kind, version, data, outcome, first):
        end, answers = outcome
        raw = kind(self.broker)
        try:
            if not first:
                raw.send(connect(version))
                self.assertEqual(raw.packet()[1][:2], b"\0\0")
            raw.send(data + (b"\xc0\0" if end == "open" else b""))
            for header, body in answers:
                got = raw.packet()
                self.assertIsNotNone(got, f"closed, without the answer {header:02x} {body.hex()}")
                self.assertEqual((f"{got[0]:02x}", got[1][:len(body)].hex()), (f"{header:02x}", body.hex()))
            self.assertEqual(raw.packet(), (0xD0, b"") if end == "open" else None)
        finally:
            raw.close()

    def play_all(self, kind):
        self.assertGreater(sum(map(len, ROWS.values())), 250)
        for name, variants in ROWS.items():
            for version, data, outcome, first in variants:
                with self.subTest(name, mqtt="3.1.1" if version == 4 else "5.0"):
                    self.play(kind, version, data, outcome, first)
                    self.others_are_served()

    def test_every_row_over_tcp(self):
        self.play_all(Raw)

    def test_every_row_over_websocket(self):
        self.play_all(WebSocket)

    def test_frames_that_are_none(self):
        """What breaks RFC 6455 ends the connection, whatever it carries."""
        hello = connect(5)
        frames = {
            "text": lambda ws: ws.frame(1, hello),
            "unmasked": lambda ws: bytes([0x82, len(hello)]) + hello,
            "reserved type": lambda ws: ws.frame(3, hello),
            "reserved bit": lambda ws: ws.frame(2, hello, 0xC0),
            "continuation of nothing": lambda ws: ws.frame(0, hello),
            "ping of 126 bytes": lambda ws: ws.frame(9, bytes(126)),
            "ping in pieces": lambda ws: ws.frame(9, b"x", 0),
            "continuation of binary by binary": lambda ws: ws.frame(2, hello[:3], 0) + ws.frame(2, hello[3:]),
            "length of 8 bytes for few": lambda ws: b"\x82\xff" + len(hello).to_bytes(8, "big") + bytes(4) + hello,
            "length of 2 bytes for few": lambda ws: b"\x82\xfe" + len(hello).to_bytes(2, "big") + bytes(4) + hello,
            "close of 1 byte": lambda ws: ws.frame(8, b"x"),
            "close that says there is no code": lambda ws: ws.frame(8, (1005).to_bytes(2, "big")),
            "close with a code that is none": lambda ws: ws.frame(8, (999).to_bytes(2, "big")),
            "frame of 2^63 bytes": lambda ws: b"\x82\xff" + b"\xff" * 8 + b"mask",
        }
        for name, data in frames.items():
            with self.subTest(name):
                ws = WebSocket(self.broker)
                ws.socket.sendall(data(ws))
                with self.assertRaises((EOFError, ConnectionResetError)):
                    ws._take(1)
                ws.close()
                self.others_are_served()

    def test_what_came_before_a_wrong_frame_counts(self):
        """In one read: packets in frames of their own, in pieces of different sizes, a ping amid them, and the end."""
        watcher = Raw(self.broker).send(connect(4, text("watcher")) + subscribe(4, text("frames") + b"\0"))
        self.assertEqual([watcher.packet()[0] for _ in range(2)], [0x20, 0x90])
        for name, last in (("text", lambda ws: ws.frame(1, b"x")), ("close", lambda ws: ws.frame(8, b"\x03\xe8"))):
            with self.subTest(name):
                ws = WebSocket(self.broker).send(connect(4))
                self.assertEqual(ws.packet()[0], 0x20)
                bodies = [text("frames") + bytes([65 + i]) * size for i, size in enumerate((1, 3, 200, 20_000, 2, 300))]
                packets = [packet(0x30, body) for body in bodies]
                wire = [ws.frame(2, each) for each in packets]
                wire[3:4] = [ws.frame(2, packets[3][:9], 0), ws.frame(9, b"ping"), ws.frame(0, packets[3][9:500], 0), ws.frame(0, packets[3][500:])]
                ws.socket.sendall(b"".join(wire) + last(ws))
                self.assertEqual([watcher.packet()[1] for _ in bodies], bodies)
                ws.close()
        watcher.close()

    def test_acknowledgements_of_what_has_not_been_sent(self):
        """All in one read, so that the publication still waits for the disk when its packet id is acknowledged."""
        for header in (0x40, 0x50, 0x70):
            raw = Raw(self.broker)
            raw.send(connect(5, block=b"\x11\0\0\0\x3c") + subscribe(5, text("mine") + b"\2"))
            self.assertEqual([raw.packet()[0] for _ in range(2)], [0x20, 0x90])
            raw.send(publish(5, "mine", 4) + bytes([header, 2, 0, 1]))
            got = []
            while 0x34 not in got:
                got.append(raw.packet()[0])
            self.assertEqual(sorted(got), [0x34, 0x50] + [0x62] * (header == 0x50))
            raw.close()
            self.others_are_served()

    def test_connections_that_end_anywhere(self):
        """A conversation that breaks off after any of its bytes."""
        whole = connect(5) + subscribe(5) + publish(5, "mine", 4, 7) + b"\x62\2\0\7" + b"\xe0\0"
        for kind in (Raw, WebSocket):
            for size in range(len(whole)):
                raw = kind(self.broker)
                raw.send(whole[:size])
                raw.close()
            self.others_are_served()
