"""MQTT clients that are not ours: Mosquitto's programs, paho, MQTT.js; and a bare socket for what no client would send."""
import collections
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from harness import DEADLINE_S, MORTAL, PATIENCE_S, wait_until
from namespaces import in_namespace, inside

Message = collections.namedtuple("Message", "topic payload qos retain properties", defaults=(None,))
V311, V5 = paho.MQTTv311, paho.MQTTv5


class Receiver:
    """What has arrived, and waiting for it."""

    def __init__(self):
        self.messages = []

    def payloads(self, topic=None):
        return [message.payload for message in list(self.messages) if topic is None or message.topic == topic]

    def wait_payload(self, payload, timeout_s=DEADLINE_S):
        return wait_until(f"the payload {payload[:60]!r} at {self}",
                          lambda: next((m for m in list(self.messages) if m.payload == payload), None), timeout_s)

    def wait_count(self, count, timeout_s=DEADLINE_S):
        wait_until(f"{count} messages at {self}", lambda: len(self.messages) >= count, timeout_s)
        return list(self.messages)


class MosquittoSub(Receiver):
    """mosquitto_sub; the constructor returns once its SUBACK is here."""

    def __init__(self, broker, *filters, qos=0, version="mqttv311", options=()):
        super().__init__()
        self.name = f"mosquitto_sub at {broker.name}"
        command = [*MORTAL, "stdbuf", "-oL", "mosquitto_sub", "-h", broker.host, "-p", str(broker.mqtt_port), "-q", str(qos), "-V", version, "-d",
                   "-F", "MSG %q %r %t\t%x", *options]
        for item in filters:
            command += ["-t", item]
        self.process = subprocess.Popen(in_namespace(broker.namespace, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.subscribed = threading.Event()
        self.noise = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            wait_until(f"SUBACK for {self.name}", lambda: self.subscribed.is_set() or self._alive())
        except AssertionError as error:
            self.close()
            raise AssertionError(f"{error}; it said: {self.noise[-5:]}") from None

    def _read(self):
        for raw in self.process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            if line.startswith("MSG "):
                head, _, payload = line.partition("\t")
                _, qos, retain, topic = head.split(" ", 3)
                self.messages.append(Message(topic, bytes.fromhex(payload), int(qos), retain == "1"))
            else:
                self.noise.append(line)
                if re.match(r"Subscribed \(mid", line):
                    self.subscribed.set()

    def __str__(self):
        return self.name

    def _alive(self):
        assert self.process.poll() is None or self.reader.is_alive(), f"{self.name} ended with status {self.process.returncode}"

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        self.process.stdout.close()


def mosquitto_pub(broker, topic, payload, qos=0, retain=False, version="mqttv311", options=()):
    command = ["mosquitto_pub", "-h", broker.host, "-p", str(broker.mqtt_port), "-t", topic, "-q", str(qos), "-V", version, *map(str, options)]
    command += ["-r"] if retain else []
    command += ["-s"] if payload else ["-n"]
    done = subprocess.run(in_namespace(broker.namespace, command), input=payload, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode()}"


def properties(packet, **values):
    made = Properties(packet)
    for key, value in values.items():
        setattr(made, key, value)
    return made


class Paho(Receiver):
    """A paho client on its own thread, connected once the constructor returns (unless connect=False)."""

    def __init__(self, broker, client_id="", version=V5, clean=True, expiry_s=0, will=None, will_delay_s=0, keep_alive_s=60, websocket=False,
                 connect=True, follow=None, connect_properties=None, tls=None):
        super().__init__()
        self.broker, self.version, self.dropped = broker, version, False
        self.connacks, self.subacks, self.disconnects, self.unsubacks = [], {}, [], set()
        self.suback_properties = {}  # of the last SUBACK, in MQTT 5.0
        # follow: a list of (filter, qos) that this client subscribes to again by itself whenever it gets a connection.
        self.follow, self.follow_acks = follow, 0
        options = {} if version == V5 else {"clean_session": clean}
        self.client = paho.Client(client_id, protocol=version, transport="websockets" if websocket else "tcp",
                                  reconnect_on_failure=follow is not None, **options)
        if websocket:
            self.client.ws_set_options(path="/mqtt")
        if tls:  # the arguments of tls_set(): ca_certs, certfile, keyfile
            self.client.tls_set(**{key: str(value) for key, value in tls.items()})
        self.client.reconnect_delay_set(0.1, 0.2)
        if will:
            topic, payload, qos, retain = will
            extra = {"properties": properties(PacketTypes.WILLMESSAGE, WillDelayInterval=will_delay_s)} if version == V5 else {}
            self.client.will_set(topic, payload, qos, retain, **extra)
        self.client.on_connect = self._on_connect
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe
        self.client.on_unsubscribe = lambda c, u, mid, *rest: self.unsubacks.add(mid)
        self.client.on_disconnect = lambda c, u, code, *rest: self.disconnects.append(getattr(code, "value", code))
        self.connect_options = {"keepalive": keep_alive_s}
        if version == V5:
            values = dict(connect_properties or {})
            if expiry_s:
                values["SessionExpiryInterval"] = expiry_s
            self.connect_options.update(clean_start=clean, properties=properties(PacketTypes.CONNECT, **values))
        if connect:
            self.connect()

    def __str__(self):
        return f"paho client at {self.broker.name}"

    def connect(self):
        port = self.broker.ws_port if self.client._transport == "websockets" else self.broker.mqtt_port
        if self.follow is not None:
            self.client.connect_async(self.broker.host, port, **self.connect_options)
            self.client.loop_start()
            return self
        with inside(self.broker.namespace):
            self.client.connect(self.broker.host, port, **self.connect_options)
        self.client.loop_start()
        wait_until(f"CONNACK for {self}", lambda: self.connacks)
        return self

    def _on_connect(self, client, userdata, flags, code, *rest):
        self.connacks.append((flags["session present"], getattr(code, "value", code)))
        if self.follow:
            client.subscribe([(item, qos) if self.version != V5 else (item, SubscribeOptions(qos)) for item, qos in self.follow])

    def _on_message(self, client, userdata, message):
        self.messages.append(Message(message.topic, bytes(message.payload), message.qos, bool(message.retain), getattr(message, "properties", None)))

    @property
    def session_present(self):
        return bool(self.connacks[-1][0])

    def following(self):
        """True once the subscriptions of follow are granted on the present connection."""
        return self.client.is_connected() and len(self.subacks) >= len(self.connacks) > 0

    def _on_subscribe(self, client, userdata, mid, granted, *properties):
        self.suback_properties = properties[0].json() if properties else {}
        self.subacks[mid] = [getattr(code, "value", code) for code in granted]

    def subscribe(self, *filters, qos=0, identifier=None, **options):
        """Returns the reason codes of the SUBACK."""
        if self.version == V5:
            extra = {"properties": properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=identifier)} if identifier else {}
            _, mid = self.client.subscribe([(item, SubscribeOptions(qos, **options)) for item in filters], **extra)
        else:
            _, mid = self.client.subscribe([(item, qos) for item in filters])
        return wait_until(f"SUBACK for {filters} at {self}", lambda: self.subacks.get(mid))

    def unsubscribe(self, *filters):
        _, mid = self.client.unsubscribe(list(filters))
        wait_until(f"UNSUBACK for {filters} at {self}", lambda: mid in self.unsubacks)

    def publish(self, topic, payload=b"", qos=0, retain=False, wait=True, **values):
        """Returns once acknowledged (QoS 0: once written)."""
        extra = {"properties": properties(PacketTypes.PUBLISH, **values)} if values else {}
        info = self.client.publish(topic, payload, qos, retain, **extra)
        assert info.rc == paho.MQTT_ERR_SUCCESS, f"publish to {self.broker.name}: {paho.error_string(info.rc)}"
        if wait:
            wait_until(f"acknowledgement of {topic} at {self}", info.is_published)
        return info

    def disconnect(self, **options):
        self.client.disconnect(**options)
        self.client.loop_stop()

    def drop(self):
        """Ends the connection without DISCONNECT."""
        self.dropped = True
        self.client.loop_stop()
        self.client.socket().close()

    def close(self):
        if not self.dropped:
            self.client.disconnect()
            self.client.loop_stop()


class MqttJs(Receiver):
    """MQTT.js in Node over WebSocket: subscribed once the constructor returns; publish() goes through the same connection."""

    def __init__(self, broker, *filters, qos=0, version=5, ca=None):
        super().__init__()
        self.name = f"MQTT.js at {broker.name}"
        url = f"{'wss' if ca else 'ws'}://{broker.host}:{broker.ws_port}/mqtt"
        self.process = subprocess.Popen([shutil.which("node"), str(Path(__file__).with_name("mqttjs.js")), url, str(version), str(qos), *filters],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, 
                                        # where Debian's node-mqtt is, and whom it believes besides the system's authorities
                                        env=dict(os.environ, NODE_PATH="/usr/share/nodejs", **({"NODE_EXTRA_CA_CERTS": str(ca)} if ca else {})))
        self.events = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            self._wait("subscribed")
        except AssertionError:
            self.close()
            raise

    def __str__(self):
        return self.name

    def _read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "message":
                self.messages.append(Message(event["topic"], bytes.fromhex(event["payload"]), event["qos"], event["retain"]))
            else:
                self.events.append(event)

    def _wait(self, name):
        wait_until(f"{name} from {self}", lambda: next((e for e in list(self.events) if e["event"] == name), None) or self._alive())

    def _alive(self):
        assert self.process.poll() is None, f"{self} ended with status {self.process.returncode}: {self.events}"
        return None

    def publish(self, topic, payload, qos=0):
        before = sum(event["event"] == "published" for event in self.events)
        self.process.stdin.write(json.dumps({"topic": topic, "payload": payload.hex(), "qos": qos}) + "\n")
        self.process.stdin.flush()
        wait_until(f"acknowledgement at {self}", lambda: sum(e["event"] == "published" for e in list(self.events)) > before)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        self.process.stdout.close()


class Raw:
    """A socket and MQTT bytes written by hand."""

    def __init__(self, broker):
        with inside(broker.namespace):
            self.socket = socket.create_connection((broker.host, broker.mqtt_port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE_S)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)
        return self

    def _take(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError
            self.buffer += more
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def packet(self):
        """(first byte, body) of the next packet; None when the broker has closed the connection."""
        try:
            first = self._take(1)[0]
            size, shift = 0, 0
            while True:
                digit = self._take(1)[0]
                size |= (digit & 127) << shift
                shift += 7
                if digit < 128:
                    return first, self._take(size)
        except (EOFError, ConnectionResetError):
            return None

    def close(self):
        self.socket.close()


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return len(raw).to_bytes(2, "big") + raw


def packet(first, body):
    size, digits = len(body), b""
    while True:
        size, digit = size >> 7, size & 127
        digits += bytes([digit | (128 if size else 0)])
        if not size:
            return bytes([first]) + digits + body


def raw_connect(client_id, keep_alive_s=60, clean=True, will=None, version=4):
    flags = (2 if clean else 0) | (4 if will else 0)
    body = text("MQTT") + bytes([version, flags]) + keep_alive_s.to_bytes(2, "big") + (b"\0" if version == 5 else b"") + text(client_id)
    if will:
        body += (b"\0" if version == 5 else b"") + text(will[0]) + text(will[1])
    return packet(0x10, body)


def raw_subscribe(packet_id, *filters, qos=0):
    return packet(0x82, packet_id.to_bytes(2, "big") + b"".join(text(item) + bytes([qos]) for item in filters))


def raw_publish(topic, payload, qos=0, packet_id=0, dup=False, retain=False):
    return packet(0x30 | dup << 3 | qos << 1 | retain, text(topic) + (packet_id.to_bytes(2, "big") if qos else b"") + payload)
