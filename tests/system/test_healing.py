"""Brokers killed, restarted, cut off: the others go on, and what comes back is part of it again within 5 s (G9, G10)."""
import itertools
import shutil
import threading
import time

from clients import MosquittoSub, Paho, mosquitto_pub
from harness import PATIENT_SUBACK, THREE, Stopwatch, SystemTest, wait_until
from lan import LanTest

HEAL_S = 5.0


class Healing(SystemTest):
    def follower(self, broker, *filters):
        """A subscriber that connects and subscribes again by itself whenever its broker is there."""
        client = self.closing(Paho(broker, follow=[(item, 1) for item in filters]))
        return client

    def crosses(self, publisher_broker, receiver, what, watch):
        """Publishes a fresh message every 50 ms until one has arrived, before the watch shows HEAL_S."""
        sent = []
        while True:
            payload = f"{what} {len(sent)}".encode()
            try:
                mosquitto_pub(publisher_broker, f"heal/{publisher_broker.name}", payload, 1)
                sent.append(payload)
            except AssertionError:  # the broker does not listen yet
                publisher_broker.check_alive()
            end = time.monotonic() + 0.05
            while time.monotonic() < end:
                if any(payload in sent for payload in receiver.payloads()):
                    return
                time.sleep(0.005)
            self.assertLess(watch.seconds(), HEAL_S, f"{what}: nothing from {publisher_broker.name} reached {receiver} in time ({len(sent)} sent)")

    def all_pairs(self, fed, receivers, what, watch):
        """Every broker gets from and sends to every other before the watch shows HEAL_S."""
        threads, faults = [], []

        def one(here, there):
            try:
                self.crosses(fed[here], receivers[there], f"{what} {here} to {there}", watch)
            except BaseException as fault:
                faults.append(fault)

        for here, there in itertools.permutations(THREE, 2):
            threads.append(threading.Thread(target=one, args=(here, there)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if faults:
            raise faults[0]

    def test_one_killed_and_the_others_go_on(self):
        fed = self.federation(limits=PATIENT_SUBACK).start()
        receivers = {name: self.closing(MosquittoSub(fed[name], "go/#", qos=1)) for name in ("edge-1", "edge-3")}
        self.closing(MosquittoSub(fed["edge-2"], "go/#", qos=1))
        publishers = {name: self.closing(Paho(fed[name])) for name in ("edge-1", "edge-3")}
        worst = 0.0

        def round_trip(number):
            nonlocal worst
            for here, there in (("edge-1", "edge-3"), ("edge-3", "edge-1")):
                payload = f"{here} {number}".encode()
                watch = Stopwatch()
                publishers[here].publish(f"go/{here}", payload, 1)
                receivers[there].wait_payload(payload)
                worst = max(worst, watch.seconds())

        for number in range(20):
            round_trip(number)
        fed["edge-2"].kill()
        number = 20
        # From the kill until both have noticed it, and a while after.
        while any(fed[name].members()["edge-2"] != "down" for name in ("edge-1", "edge-3")):
            round_trip(number)
            number += 1
            self.assertLess(number, 5000, "the death is not noticed")
        for number in range(number, number + 20):
            round_trip(number)
        self.assertLess(worst, 1.0, "seconds for the slowest message")
        for name in ("edge-1", "edge-3"):
            self.assertEqual(len(receivers[name].payloads()), 2 * (number + 1), "each message once, also to its own broker's subscriber")
            self.assertEqual({row[0] for row in fed[name].rows()} & {"edge-2"}, set(), "rows of the dead broker are hidden")
            self.assertNotEqual(fed[name].links().get("edge-2", {"state": "none"})["state"], "up")

    def test_a_death_is_noticed_in_3_seconds(self):
        fed = self.federation().start()
        fed["edge-2"].kill()
        watch = Stopwatch()
        for name in ("edge-1", "edge-3"):
            wait_until(f"{name} says that edge-2 is down", lambda: fed[name].members()["edge-2"] == "down", 3.0, watch)

    def test_back_with_one_bootstrap_peer(self):
        fed = self.federation().start()
        receivers = {name: self.follower(fed[name], "heal/#") for name in THREE}
        wait_until("all follow", lambda: all(r.following() for r in receivers.values()))
        for only in ("edge-1", "edge-3"):
            with self.subTest(bootstrap=only):
                fed["edge-2"].kill()
                fed["edge-2"].edit(r"^(\s+bootstrap:).*(\n\s+- .*)*$", rf"\1 [127.0.0.1:{fed[only].port('peers')}]")
                watch = Stopwatch()
                fed["edge-2"].spawn()
                self.all_pairs(fed, receivers, f"only {only}", watch)

    def test_back_at_once_and_after_it_was_declared_down(self):
        fed = self.federation().start()
        receivers = {name: self.follower(fed[name], "heal/#") for name in THREE}
        wait_until("all follow", lambda: all(r.following() for r in receivers.values()))
        for declared in (False, True):
            with self.subTest(declared_down=declared):
                fed["edge-2"].kill()
                if declared:
                    wait_until("edge-2 is down", lambda: fed["edge-1"].members()["edge-2"] == "down" and fed["edge-3"].members()["edge-2"] == "down")
                watch = Stopwatch()
                fed["edge-2"].spawn()
                self.all_pairs(fed, receivers, f"down {declared}", watch)

    def test_all_killed_and_restarted_in_any_order(self):
        fed = self.federation().start()
        receivers = {name: self.follower(fed[name], "heal/#") for name in THREE}
        wait_until("all follow", lambda: all(r.following() for r in receivers.values()))
        for order in itertools.permutations(THREE):
            with self.subTest(order=order):
                for broker in fed:
                    broker.kill()
                for name in order:
                    fed[name].spawn()
                self.all_pairs(fed, receivers, "-".join(order), Stopwatch())

    def test_all_left_in_order_and_restarted(self):
        fed = self.federation().start()
        receivers = {name: self.follower(fed[name], "heal/#") for name in THREE}
        wait_until("all follow", lambda: all(r.following() for r in receivers.values()))
        for broker in fed:
            self.assertEqual(broker.stop(), 0)
        for broker in fed:
            broker.spawn()
        self.all_pairs(fed, receivers, "left", Stopwatch())

    def test_a_broker_with_a_lost_disk_is_welcome_again(self):
        """Without its data folder it starts with an epoch that the others have seen already."""
        fed = self.federation().start()
        receivers = {name: self.follower(fed[name], "heal/#") for name in THREE}
        wait_until("all follow", lambda: all(r.following() for r in receivers.values()))
        for turn in range(2):
            fed["edge-2"].kill()
            fed["edge-2"].spawn()
            fed["edge-2"].wait_ready()
            fed.wait_alive()
        fed["edge-2"].kill()
        shutil.rmtree(fed["edge-2"].folder / "data")
        watch = Stopwatch()
        fed["edge-2"].spawn()
        self.all_pairs(fed, receivers, "lost disk", watch)


class Partition(LanTest):
    """Three brokers whose cables can be pulled."""

    def setUp(self):
        self.fed = self.lan(limits=PATIENT_SUBACK)
        self.plug_all(self.fed)
        self.fed.start()

    def test_cut_and_healed(self):
        fed = self.fed
        receivers = {name: self.closing(MosquittoSub(fed[name], "net/#", qos=1)) for name in THREE}
        publishers = {name: self.closing(Paho(fed[name])) for name in THREE}
        for name in THREE:
            publishers[name].publish(f"net/{name}", f"before from {name}".encode(), 1)
        for receiver in receivers.values():
            for name in THREE:
                receiver.wait_payload(f"before from {name}".encode())

        self.cable("edge-3", "down")
        # Each side serves itself, at once and after it noticed.
        for turn in ("cut", "noticed"):
            for name in THREE:
                publishers[name].publish(f"net/{name}", f"{turn} from {name}".encode(), 1)
            for there, here in (("edge-1", "edge-1"), ("edge-1", "edge-2"), ("edge-2", "edge-1"), ("edge-2", "edge-2"), ("edge-3", "edge-3")):
                receivers[there].wait_payload(f"{turn} from {here}".encode(), 2)
            if turn == "cut":
                wait_until("both sides notice", lambda: fed["edge-1"].members()["edge-3"] == "down" and fed["edge-2"].members()["edge-3"] == "down"
                           and {fed["edge-3"].members()[n] for n in ("edge-1", "edge-2")} <= {"down", "suspect"})

        self.cable("edge-3", "up")
        watch = Stopwatch()
        fed.wait_alive(timeout_s=10, watch=watch)
        number = 0
        while True:
            for name in THREE:
                publishers[name].publish(f"net/{name}", f"healed {number} from {name}".encode(), 1)
            number += 1
            got = {(there, here) for there in THREE for here in THREE if any(p.startswith(b"healed") and p.endswith(here.encode()) for p in receivers[there].payloads())}
            if len(got) == 9:
                break
            self.assertLess(watch.seconds(), 10, f"still missing: {set(itertools.product(THREE, THREE)) - got}")
            time.sleep(0.05)
        wait_until("all have the same registry", lambda: len({fed[name].api("status")["table_hash"] for name in THREE}) == 1)
        for name in THREE:
            payloads = receivers[name].payloads()
            self.assertEqual(len(payloads), len(set(payloads)), f"no message twice at {name}")

    def test_a_short_cut_loses_nothing_at_qos_1_and_2(self):
        """Too short for anybody to be declared down: the link goes on where it was, or the next one does."""
        fed = self.fed
        receiver = self.closing(Paho(fed["edge-3"]))
        receiver.subscribe("cut/#", qos=2)
        publisher = self.closing(Paho(fed["edge-1"]))
        deaths = lambda: sum(len(broker.log_lines("member", "is down")) for broker in fed)
        for turn in range(5):
            before = deaths()
            for number in range(30):
                if number in (10, 20):
                    self.cable("edge-3", "down" if number == 10 else "up")
                for qos in (1, 2):
                    publisher.publish(f"cut/{turn}/{qos}", b"%d" % number, qos)
                time.sleep(0.05)  # the publisher's own pace: the cut lasts half a second
            got = lambda qos: [int(p) for p in receiver.payloads(f"cut/{turn}/{qos}")]
            wait_until("all have come", lambda: deaths() > before or len(got(1)) + len(got(2)) >= 60)
            if deaths() == before:
                self.assertEqual((got(1), got(2)), (list(range(30)), list(range(30))))
                return
            fed.wait_alive()  # a busy machine has made the cut a long one: once more
        self.fail("each cut was long enough for a death")

    def test_cables_pulled_one_after_the_other(self):
        fed = self.fed
        for name in THREE:
            self.cable(name, "down")
        for name in THREE:
            others = [other for other in THREE if other != name]
            wait_until(f"{name} is alone", lambda: all(fed[name].members()[other] != "alive" for other in others), 30)
        for name in reversed(THREE):
            self.cable(name, "up")
        fed.wait_alive(timeout_s=15)
        receiver = self.closing(MosquittoSub(fed["edge-3"], "again", qos=1))
        mosquitto_pub(fed["edge-1"], "again", b"whole again", 1)
        receiver.wait_payload(b"whole again")
