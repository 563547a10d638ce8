"""Shared subscriptions by clients that are not ours."""
import subprocess
import sys
import unittest
from pathlib import Path

from clients import V5, MosquittoSub, Raw, mosquitto_pub, raw_connect, raw_subscribe
from harness import MORTAL, wait_until
from plain import AGAINST_MOSQUITTO, PlainMqtt, both


class Shared(PlainMqtt):
    def numbers(self, count, first=0):
        return [b"%d" % number for number in range(first, first + count)]

    def wait_all(self, receivers, payloads):
        """Returns what came, in no order, once every payload has."""
        def come():
            return [m.payload for receiver in receivers for m in list(receiver.messages)]
        wait_until(f"{len(payloads)} payloads in the group", lambda: set(payloads) <= set(come()), 30)
        return come()

    def test_mosquitto_sub_shares_with_others_of_its_group(self):
        for version in ("mqttv311", "mqttv5"):
            with self.subTest(version=version):
                shared = f"$share/g/{self.topic(version)}/#"
                members = [self.closing(MosquittoSub(self.broker, shared, qos=qos, version=version)) for qos in (0, 1, 2)]
                alone = self.closing(MosquittoSub(self.broker, f"$share/h/{self.topic(version)}/+", version=version))
                for payload in self.numbers(9):
                    mosquitto_pub(self.broker, self.topic(version + "/x"), payload, qos=1)
                self.assertEqual(sorted(self.wait_all(members, self.numbers(9))), self.numbers(9))
                self.assertEqual([len(member.messages) for member in members], [3, 3, 3])
                self.assertEqual(alone.wait_count(9) and alone.payloads(), self.numbers(9))

    @both
    def test_members_come_and_go_while_messages_flow(self, version):
        shared, members = f"$share/g/{self.topic(self.kind)}", []
        publisher = self.paho(version=version)
        for wave in range(4):
            members.append(self.paho(version=version))
            members[-1].subscribe(shared, qos=2)
            for payload in self.numbers(100, wave * 100):
                publisher.publish(self.topic(self.kind), payload, 2, wait=False)
            if wave == 0:  # before it shares with others
                wait_until("some for the first", lambda: len(members[0].messages) > 20, 30)
            if wave == 2:
                members[0].unsubscribe(shared)
        self.assertEqual(sorted(self.wait_all(members, self.numbers(400)), key=int), self.numbers(400))
        # Whoever had not acknowledged enough was passed over. Now nobody is behind, and each has its turn.
        before = [len(member.messages) for member in members]
        for payload in self.numbers(90, 400):
            publisher.publish(self.topic(self.kind), payload, 2)
            self.wait_all(members, [payload])
        if not AGAINST_MOSQUITTO:  # how many is the broker's choice
            self.assertEqual([len(member.messages) - b for member, b in zip(members, before)], [0, 30, 30, 30])
            for member in members:
                self.assertGreater(len(member.messages), 20)

    @unittest.skipIf(AGAINST_MOSQUITTO, "the standard says should (MQTT 5.0 section 4.8.2); we do")
    def test_what_a_killed_member_had_not_acknowledged_goes_to_the_others(self):
        shared = f"$share/g/{self.topic()}"
        silent = self.closing(Raw(self.broker))  # takes its share and acknowledges nothing
        silent.send(raw_connect(self.topic("silent")))
        silent.packet()
        silent.send(raw_subscribe(1, shared, qos=1))
        self.assertEqual(silent.packet(), (0x90, b"\0\1\1"))
        others = [self.paho(), self.paho()]
        for other in others:
            other.subscribe(shared, qos=1)
        publisher = self.paho()
        for payload in self.numbers(600):
            publisher.publish(self.topic(), payload, 1, wait=False)
        took = [silent.packet() for _ in range(100)]
        self.assertTrue(all(first & 0xF0 == 0x30 for first, _ in took))
        silent.close()
        self.assertEqual(sorted(self.wait_all(others, self.numbers(600)), key=int), self.numbers(600))  # each once, none lost

    @unittest.skipIf(AGAINST_MOSQUITTO, "the standard says should (MQTT 5.0 section 4.8.2); we do")
    def test_a_killed_process_loses_nothing_at_qos_1(self):
        shared = f"$share/g/{self.topic()}"
        doomed = subprocess.Popen([*MORTAL, sys.executable, str(Path(__file__).with_name("consumer.py")), str(self.broker.mqtt_port), shared], stdout=subprocess.PIPE)
        self.addCleanup(doomed.stdout.close)
        self.addCleanup(doomed.wait)
        self.addCleanup(doomed.kill)
        self.assertEqual(doomed.stdout.readline(), b"subscribed\n")
        others = [self.paho(), self.paho()]
        for other in others:
            other.subscribe(shared, qos=1)
        publisher = self.paho()
        for payload in self.numbers(1000):
            publisher.publish(self.topic(), payload, 1, wait=False)
        its = [doomed.stdout.readline().strip() for _ in range(50)]
        doomed.kill()
        its += doomed.stdout.read().split()
        come = self.wait_all(others, set(self.numbers(1000)) - set(its))
        self.assertEqual(len(come), len(set(come)))  # what comes twice is at most what the dead one showed and did not acknowledge

    @unittest.skipIf(AGAINST_MOSQUITTO, "Mosquitto 2.0.11 sends them (MQTT 5.0 section 3.8.4: no retained messages), and takes such names")
    def test_retained_messages_and_faulty_shares_are_refused_to_groups(self):
        self.paho().publish(self.topic(), b"kept", 1, retain=True)
        client = self.paho()
        self.assertEqual(client.subscribe(f"$share/g/{self.topic()}", qos=1), [1])
        publisher = self.paho()
        self.fence(publisher, client, self.topic())
        self.assertEqual(client.payloads(), [b"fence 1"])
        self.assertEqual([code for item in ("$share/g", "$share/g/", "$share//a", "$share/+/a") for code in client.subscribe(item)], [0x8F] * 4)

    @unittest.skipIf(AGAINST_MOSQUITTO, "the standard leaves the choice; this is ours")
    def test_a_member_that_is_away_gets_only_what_no_other_can_take(self):
        shared = f"$share/g/{self.topic()}"
        away = self.paho("away", version=V5, expiry_s=60)
        away.subscribe(shared, qos=1)
        away.disconnect()
        away.dropped = True
        present = self.paho()
        present.subscribe(shared, qos=1)
        publisher = self.paho()
        for payload in self.numbers(10):
            publisher.publish(self.topic(), payload, 1)
        self.assertEqual(present.wait_count(10) and present.payloads(), self.numbers(10))
        present.unsubscribe(shared)
        publisher.publish(self.topic(), b"later", 1)
        back = self.paho("away", version=V5, clean=False, expiry_s=60)
        back.wait_payload(b"later")
        self.assertEqual(back.payloads(), [b"later"])
