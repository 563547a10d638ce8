"""A Mosquitto that stays where it is, bridged to us both ways: nothing comes twice, and nothing goes round."""
from clients import V5, Paho
from harness import Broker, Mosquitto, SystemTest, free_ports, holds, wait_until


class MosquittoBridge(SystemTest):
    def start(self, options):
        folder = self.folder()
        mqtt, admin = free_ports(1, bases=2)
        ours, theirs = Broker("solo", folder), Mosquitto("mosquitto", folder)
        (folder / "hobnob.yaml").write_text(f"name: solo\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  admin: 127.0.0.1:{admin}\n")
        with open(folder / "mosquitto.conf", "a") as config:
            config.write(f"connection ours\naddress 127.0.0.1:{mqtt}\ntopic # both 1\n{options}\n")
        for broker in (ours, theirs):
            broker.start()
            self.addCleanup(broker.stop if broker is ours else broker.kill)
        wait_until("the bridge's connection", lambda: ours.metric("hobnob_clients") == 1)
        return ours, theirs

    def exchange(self, options):
        ours, theirs = self.start(options)
        at_ours, at_theirs = self.closing(Paho(ours, version=V5)), self.closing(Paho(theirs, version=V5))
        for client in (at_ours, at_theirs):
            client.subscribe("site/#", qos=1)
        publishers = [self.closing(Paho(broker, version=V5)) for broker in (ours, theirs)]

        def arrived():  # its SUBSCRIBE may be on its way yet
            publishers[0].publish("site/probe", b"probe", 1)
            return at_theirs.payloads("site/probe")
        wait_until("the bridge's subscription", arrived)
        for number in range(20):
            publishers[0].publish("site/ours", b"%d" % number, 1)
            publishers[1].publish("site/theirs", b"%d" % number, 1)
        publishers[0].publish("site/retained", b"kept", 1, retain=True)
        publishers[1].publish("site/end", b"end", 1)
        publishers[0].publish("site/end", b"end", 1)
        wait_until("both ends", lambda: all(len(client.payloads("site/end")) >= 2 for client in (at_ours, at_theirs)))
        holds("nothing goes round", lambda: all(len(client.payloads("site/end")) == 2 for client in (at_ours, at_theirs)), 0.3)
        for client in (at_ours, at_theirs):
            for topic in ("site/ours", "site/theirs"):
                self.assertEqual(client.payloads(topic), [b"%d" % number for number in range(20)])
            self.assertEqual(client.payloads("site/retained"), [b"kept"])
        later = self.closing(Paho(theirs, version=V5))  # it was kept there too
        later.subscribe("site/retained")
        self.assertTrue(later.wait_payload(b"kept").retain)

    def test_3_1_1_both_ways(self):
        self.exchange("bridge_protocol_version mqttv311")

    def test_5_0_both_ways(self):
        self.exchange("bridge_protocol_version mqttv50")
