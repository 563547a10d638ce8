"""A Mosquitto whose bridge connects to us, as one who moves site by site would have: `topic # both`, in both versions."""
import tempfile
from pathlib import Path

from clients import V311, V5, Paho
from harness import Broker, Mosquitto, SystemTest, failed, holds, wait_until
from ports import free_ports


class Bridge(SystemTest):
    def setUp(self):
        room = tempfile.TemporaryDirectory(prefix="hobnob-test-")
        self.addCleanup(room.cleanup)
        self.room = Path(room.name)
        mqtt, admin = free_ports(1, bases=2)
        self.here = Broker("here", self.room)
        self.here.config.write_text(f"name: here\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  admin: 127.0.0.1:{admin}\n")
        self.here.start()
        self.addCleanup(self.end, self.here)

    def end(self, daemon):
        if failed(self):
            print(f"\n{self.id()}: {daemon.name}\n{daemon.log()[-6000:]}", flush=True)
        faults = daemon.faults()
        daemon.stop()
        self.assertEqual(faults, [])

    def bridge(self, version, *lines):
        """The far Mosquitto, its bridge at work."""
        there = Mosquitto("there", self.room)
        with open(there.folder / "mosquitto.conf", "a") as config:
            config.write(f"connection hobnob\naddress {self.here.host}:{self.here.mqtt_port}\nremote_clientid bridge-{version}\nbridge_protocol_version {version}\n"
                         "restart_timeout 1\n" + "".join(f"{line}\n" for line in lines))
        there.start()
        self.addCleanup(self.end, there)
        self.wait_bridge(version)
        return there

    def wait_bridge(self, version):
        """Until what the bridge says of itself is here: then its subscription is too, or follows on the same connection."""
        probe = Paho(self.here, version=V5)
        probe.subscribe("$SYS/broker/connection/+/state", qos=1)
        wait_until("the bridge is up", lambda: any(m.payload == b"1" for m in probe.messages))
        probe.close()

    def client(self, broker, version=V5, **options):
        return self.closing(Paho(broker, version=version, **options))

    def crossing(self, sender, receiver, topic, timeout_s=15):
        """Returns once something published at the one comes to the other."""
        def try_once():
            sender.publish(topic, b"probe", 1)
            return b"probe" in receiver.payloads(topic)
        receiver.subscribe(topic, qos=1)
        wait_until(f"{topic} crosses the bridge", try_once, timeout_s)

    def both_ways(self, version):
        there = self.bridge(version, "topic # both 2")
        near, far = self.client(self.here), self.client(there)
        self.crossing(near, far, "probe/out")
        self.crossing(far, near, "probe/in")
        for client in (near, far):
            client.subscribe("t/#", qos=2)
        for qos in (0, 1, 2):
            near.publish(f"t/near/{qos}", b"from here", qos)
            far.publish(f"t/far/{qos}", b"from there", qos)
        for number in range(20):
            near.publish("t/near/order", b"%d" % number, 1)
            far.publish("t/far/order", b"%d" % number, 1)
        near.publish("t/fence/near", b"fence", 2)
        far.publish("t/fence/far", b"fence", 2)
        for client in (near, far):
            wait_until("both fences", lambda: client.payloads().count(b"fence") >= 2)
            got = sorted((m.topic, m.qos) for m in client.messages if m.payload.startswith(b"from "))
            self.assertEqual(got, [(f"t/{side}/{qos}", qos) for side in ("far", "near") for qos in (0, 1, 2)], f"at {client}: each once")
            for topic in ("t/near/order", "t/far/order"):
                self.assertEqual(client.payloads(topic), [b"%d" % number for number in range(20)])
        before = [len(client.messages) for client in (near, far)]
        holds("nothing goes round", lambda: [len(client.messages) for client in (near, far)] == before, 0.3)

    def test_topic_both_in_311(self):
        self.both_ways("mqttv311")

    def test_topic_both_in_5(self):
        self.both_ways("mqttv50")

    def test_retained_messages_cross(self):
        for version in ("mqttv311", "mqttv50"):
            with self.subTest(version):
                before = self.client(self.here)
                before.publish(f"kept/{version}", b"here before", 1, retain=True)
                there = self.bridge(version, "topic # both 1")
                far = self.client(there, version=V311)
                wait_until("the retained message is there", lambda: self.late(there, f"kept/{version}") == b"here before")
                far.publish(f"back/{version}", b"from there", 1, retain=True)
                wait_until("and one from there is here", lambda: self.late(self.here, f"back/{version}") == b"from there")
                far.publish(f"back/{version}", b"", 1, retain=True)
                wait_until("and is deleted here too", lambda: self.late(self.here, f"back/{version}") is None)
                there.stop()

    def late(self, broker, topic):
        """What a new subscriber gets of what is retained, None if nothing."""
        client = self.client(broker)
        client.subscribe(topic, "fence/" + topic, qos=1)
        client.publish("fence/" + topic, b"fence", 1)
        wait_until("the fence", lambda: b"fence" in client.payloads("fence/" + topic))
        kept = [m.payload for m in client.messages if m.topic == topic and m.retain]
        client.close()
        return kept[0] if kept else None

    def test_what_is_published_while_the_bridge_is_down_waits_for_it(self):
        there = self.bridge("mqttv311", "topic up/# out 1", "topic down/# in 1", "cleansession false")
        near, far = self.client(self.here), self.client(there)
        self.crossing(near, far, "down/probe")
        there.kill()
        for number in range(10):
            near.publish(f"down/{number}", b"x", 1)
        there.start()
        for number in range(10):
            wait_until(f"down/{number} is there", lambda: there.log_lines("received publish from local.bridge", f"'down/{number}'"))
        self.crossing(self.client(there), near, "up/probe")
