"""A broker that is killed has each publication of another once when it is back, at QoS 1 and 2 (G5): it acknowledges over a link what is on its disk."""
import os
import random
import time
import unittest

from clients import Paho
from harness import DEADLINE_S, SystemTest, wait_until

ROUNDS = int(os.environ.get("HOBNOB_KILL_ROUNDS", 10))
SEED = int(os.environ.get("HOBNOB_KILL_SEED", random.randrange(1 << 31)))
EACH = 40


class Killed(SystemTest):
    def link(self, broker):
        """Its only one; {} while there is none."""
        return next(iter(broker.api("links")), {})

    def wait_joined(self, publishes):
        """The other has joined again, and nothing is on its way to it."""
        wait_until("edge-2 has joined and all that waited has come", lambda: self.link(publishes).get("joined_here", 0) > 0 and self.link(publishes)["outbox_messages"] == 0)

    def test_the_one_that_hears_at_any_moment(self):
        dice = random.Random(SEED)
        fed = self.federation(("edge-1", "edge-2"))
        fed.start()
        keeper = Paho(fed["edge-2"], "keeper", clean=False, expiry_s=3600)
        keeper.subscribe("crash/#", qos=2)
        keeper.disconnect()
        publisher = self.closing(Paho(fed["edge-1"]))
        publisher.publish("crash/warm", b"0", 1)
        sent = [b"0"]
        for turn in range(ROUNDS):
            self.wait_joined(fed["edge-1"])
            payloads = [f"{turn} {number}".encode() for number in range(EACH)]
            infos = [publisher.publish(f"crash/{turn}", payload, 1 + number % 2, wait=False) for number, payload in enumerate(payloads)]
            time.sleep(dice.random() * 0.15)  # from before the first has crossed to after the last is acknowledged
            fed["edge-2"].kill()
            wait_until("edge-1 has taken all", lambda: all(info.is_published() for info in infos))
            sent += payloads
            fed["edge-2"].spawn()
            fed["edge-2"].wait_ready()
            fed.wait_alive()
        self.wait_joined(fed["edge-1"])
        keeper = self.closing(Paho(fed["edge-2"], "keeper", clean=False, expiry_s=3600))
        publisher.publish("crash/end", b"end", 2)
        keeper.wait_payload(b"end", 2 * DEADLINE_S)
        self.assertEqual(sorted(keeper.payloads()), sorted(sent + [b"end"]), f"seed {SEED}")


if __name__ == "__main__":
    unittest.main()
