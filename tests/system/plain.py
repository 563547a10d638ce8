"""What the tests of plain MQTT on one broker share. All of them must hold on Debian's Mosquitto too (run.py --against mosquitto), but
what is marked as ours: there the standard leaves a choice, and this is the one we made."""
import functools
import os
import tempfile
from pathlib import Path

from clients import V311, V5, Paho
from harness import Broker, Mosquitto, OneBrokerTest
from ports import free_ports

AGAINST_MOSQUITTO = os.environ.get("HOBNOB_SYSTEM_AGAINST") == "mosquitto"


def both(test):
    """Runs the test for MQTT 3.1.1 and for 5.0; self.kind is the name of the version, for topics and client ids."""
    @functools.wraps(test)
    def for_each(self):
        for version, self.kind in ((V311, "3.1.1"), (V5, "5.0")):
            with self.subTest(mqtt=self.kind):
                test(self, version)
    return for_each


class PlainMqtt(OneBrokerTest):
    """One broker for the class; topics and client ids carry the test's name."""
    settings = ""  # more of its configuration

    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory(prefix="hobnob-test-")
        if AGAINST_MOSQUITTO:
            cls.broker = Mosquitto("mosquitto", cls.room.name)
        else:
            cls.broker = Broker("solo", cls.room.name)
            mqtt, ws, admin = free_ports(1, bases=3)
            Path(cls.room.name, "hobnob.yaml").write_text(
                f"name: solo\nlisten:\n  mqtt: [127.0.0.1:{mqtt}, 'unix:mqtt.sock']\n  ws: 127.0.0.1:{ws}\n  admin: 127.0.0.1:{admin}\n{cls.settings}")
        cls.unix = Path(cls.room.name, "mqtt.sock")
        cls.broker.start()

    def topic(self, rest="t"):
        return f"{self._testMethodName}/{rest}"

    def paho(self, suffix="", **options):
        return self.closing(Paho(self.broker, f"{self._testMethodName}{suffix}" if suffix else "", **options))

    def fence(self, publisher, receiver, topic):
        """Returns once all that the publisher sent before has had its turn at the receiver."""
        self.fences = getattr(self, "fences", 0) + 1
        mark = f"fence {self.fences}".encode()
        publisher.publish(topic, mark, 1)
        receiver.wait_payload(mark)
