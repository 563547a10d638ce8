"""A broker that was killed, or away for long, has each publication of another once when it is back, at QoS 1 and 2 (G5)."""
import os
import random
import unittest

from clients import Paho
from harness import DEADLINE_S, SystemTest, wait_until

ROUNDS = int(os.environ.get("HOBNOB_KILL_ROUNDS", 10))
SEED = int(os.environ.get("HOBNOB_KILL_SEED", random.randrange(1 << 31)))
EACH = 40


class Links(SystemTest):
    def link(self, broker):
        """Its only one; {} while there is none."""
        return next(iter(broker.api("links")), {})

    def wait_joined(self, publishes):
        """The other has joined again, and nothing is on its way to it."""
        wait_until("edge-2 has joined and all that waited has come", lambda: self.link(publishes).get("joined_here", 0) > 0 and self.link(publishes)["outbox_messages"] == 0)

    def keeper(self, broker, *filters):
        """The client whose session is kept; filters: the first time."""
        client = Paho(broker, "keeper", clean=False, expiry_s=3600)
        if filters:
            client.subscribe(*filters, qos=2)
            client.disconnect()
        return client

    def begin(self, filter):
        """Two brokers; a session is kept at edge-2; who publishes at edge-1; what was sent so far."""
        fed = self.federation(("edge-1", "edge-2"))
        fed.start()
        self.keeper(fed["edge-2"], filter)
        publisher = self.closing(Paho(fed["edge-1"]))
        publisher.publish(filter.replace("#", "first"), b"first", 1)
        return fed, publisher, [b"first"]

    def come_back(self, fed, name="edge-2"):
        fed[name].spawn()
        fed[name].wait_ready()
        fed.wait_alive()

    def end(self, fed, publisher, topic, sent):
        """All that was sent, and the last, has come once, and nothing else."""
        self.wait_joined(fed["edge-1"])
        keeper = self.closing(self.keeper(fed["edge-2"]))
        publisher.publish(topic, b"last", 2)
        keeper.wait_payload(b"last", 2 * DEADLINE_S)
        self.assertEqual(sorted(keeper.payloads()), sorted([*sent, b"last"]), f"seed {SEED}")


class Killed(Links):
    def test_the_one_that_hears_at_any_moment(self):
        dice = random.Random(SEED)
        fed, publisher, sent = self.begin("crash/#")
        for turn in range(ROUNDS):
            self.wait_joined(fed["edge-1"])
            payloads = [f"{turn} {number}".encode() for number in range(EACH)]
            infos = [publisher.publish(f"crash/{turn}", payload, 1 + number % 2, wait=False) for number, payload in enumerate(payloads)]
            moment = dice.randrange(EACH + 1)
            wait_until(f"edge-1 has taken {moment}", lambda: sum(info.is_published() for info in infos) >= moment)
            fed["edge-2"].kill()
            wait_until("edge-1 has taken all", lambda: all(info.is_published() for info in infos))
            sent += payloads
            self.come_back(fed)
        self.end(fed, publisher, "crash/last", sent)

    def test_the_one_where_it_is_published_at_any_moment(self):
        """With the other there, and with the other away for several of its runs."""
        dice = random.Random(SEED)
        fed, publisher, sent = self.begin("crash/#")
        sure = []
        for turn in range(ROUNDS):
            away = turn % 2 == 1
            self.wait_joined(fed["edge-1"])
            if away:
                fed["edge-2"].kill()
            for run in range(1 + away):
                publisher.publish("crash/again", b"told again", 0)  # so that it is asked for in this run too
                payloads = [f"{turn} {run} {number}".encode() for number in range(EACH)]
                infos = [publisher.publish(f"crash/{turn}", payload, 1 + number % 2, wait=False) for number, payload in enumerate(payloads)]
                moment = dice.randrange(EACH + 1)
                wait_until(f"edge-1 has taken {moment}", lambda: sum(info.is_published() for info in infos) >= moment)
                fed["edge-1"].kill()
                publisher.disconnect()
                sure += [payload for info, payload in zip(infos, payloads) if info.is_published()]
                sent += payloads
                fed["edge-1"].spawn()
                fed["edge-1"].wait_ready()
                publisher = self.closing(Paho(fed["edge-1"]))
            if away:
                self.come_back(fed)
            else:
                fed.wait_alive()
            publisher.publish("crash/again", b"told again", 0)
        self.wait_joined(fed["edge-1"])
        keeper = self.closing(self.keeper(fed["edge-2"]))
        publisher.publish("crash/last", b"last", 2)
        keeper.wait_payload(b"last", 2 * DEADLINE_S)
        came = [payload for payload in keeper.payloads() if payload != b"told again"]
        self.assertEqual(sorted(set(came)), sorted(came), f"some came twice, seed {SEED}")
        self.assertEqual(set(sure) - set(came), set(), f"some were acknowledged and never came, seed {SEED}")
        self.assertEqual(set(came) - {*sent, b"last"}, set())


class Away(Links):
    def test_who_is_down_or_has_left_gets_what_was_published_meanwhile(self):
        fed, publisher, sent = self.begin("away/#")
        for turn, (end, state) in enumerate((("kill", "down"), ("stop", "left"))):
            self.wait_joined(fed["edge-1"])
            getattr(fed["edge-2"], end)()
            wait_until(f"edge-1 sees that edge-2 is {state}", lambda: fed["edge-1"].members()["edge-2"] == state)
            publisher.publish("away/0", b"not for who is away", 0)
            for number in range(EACH):
                sent.append(f"{turn} {number}".encode())
                publisher.publish(f"away/{number % 3}", sent[-1], 1 + number % 2)
            self.come_back(fed)
        self.end(fed, publisher, "away/last", sent)


if __name__ == "__main__":
    unittest.main()
