"""Five brokers of which some are killed under load, stand still, or are reached by half: the others notice nothing but that (G5, G9, G10)."""
import contextlib
import os
import shutil
import signal
import threading
import time

from harness import Stopwatch, holds, wait_until
from storm import HEAL_S, STORM_S, StormTest, long_only
from weather import FIVE

STAY, GO = FIVE[:3], FIVE[3:]


class Outage(StormTest):
    @contextlib.contextmanager
    def load(self, names, each_s=0.05):
        """These speak all the while."""
        end, faults = threading.Event(), []

        def talk():
            try:
                while not end.wait(each_s):
                    self.speak(names)
            except BaseException as fault:
                faults.append(fault)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        self.assertEqual(faults, [])

    def all_whole(self, what, among=STAY):
        """All hear all, the registry agrees; and those that stayed have lost nothing of one another, nor held one another dead."""
        watch = Stopwatch()
        self.all_pairs(HEAL_S, watch)
        wait_until("one table", self.agree, HEAL_S, watch)
        print(f"        {what}: all hear all and have one table after {watch.seconds():.1f} s", flush=True)
        wait_until("nothing is missing among those that stayed", lambda: not self.missing(among))
        self.nothing_twice_at_qos_2()
        self.assertEqual(self.deaths(among), [])


class Killed(Outage):
    def test_two_of_five_under_load_and_back_one_of_them_without_its_disk(self):
        self.brew(delay=5, loss=1)
        self.all_pairs(30)
        epochs = {row["name"]: row["epoch"] for row in self.fed["edge-1"].api("members")}
        with self.load(STAY):
            for name in GO:
                self.fed[name].kill()
            watch = Stopwatch()
            for name in STAY:
                wait_until(f"{name} holds both dead", lambda: all(self.fed[name].members()[other] == "down" for other in GO), 10, watch)
            shutil.rmtree(self.fed["edge-5"].folder / "data")
            for name in GO:
                self.fed[name].spawn()
            for name in GO:
                self.fed[name].wait_ready()
            self.fed.wait_alive()
        self.attend(GO)
        self.all_whole("two killed and back")
        for row in self.fed["edge-1"].api("members"):
            if row["name"] in GO:
                self.assertGreater(row["epoch"], epochs[row["name"]])

    @long_only
    def test_the_same_before_anybody_has_noticed(self):
        """They are back at once, again and again, while those that stay speak."""
        self.brew(delay=5, loss=1)
        self.all_pairs(30)
        with self.load(STAY):
            for turn in range(3):
                for name in GO:
                    self.fed[name].kill()
                    if turn == 2:
                        shutil.rmtree(self.fed[name].folder / "data")
                    self.fed[name].spawn()
                for name in GO:
                    self.fed[name].wait_ready()
        self.fed.wait_alive()
        self.attend(GO)
        self.all_whole("two killed three times")


class StandsStill(Outage):
    @long_only
    def test_one_and_a_half_minutes_and_back(self):
        """Longer than any link or suspicion lasts, and all its timers are due at once (P24)."""
        self.brew(delay=5, loss=1)
        self.all_pairs(30)
        stopped, others = self.fed["edge-5"], FIVE[:4]
        before = self.deaths()
        os.kill(stopped.process.pid, signal.SIGSTOP)
        end = time.monotonic() + 90
        try:
            with self.load(others, 0.25):
                wait_until("the others hold it dead", lambda: all(self.fed[name].members()["edge-5"] == "down" for name in others))
                time.sleep(max(0, end - time.monotonic()))
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)
        watch = Stopwatch()
        self.fed.wait_alive(timeout_s=HEAL_S, watch=watch)
        self.all_whole("90 s without a turn", others)
        self.assertEqual([line for line in self.deaths() if line.startswith("edge-5")], [line for line in before if line.startswith("edge-5")])


class HalfOfTheWay(Outage):
    """P19: what passes in one direction only."""

    @long_only
    def test_udp_is_blocked_from_one_to_another_and_nobody_dies(self):
        self.brew(delay=5)
        self.all_pairs(30)
        self.sky.set("edge-1", "edge-2", no_udp="on")
        with self.load(FIVE, 0.1):
            holds("nobody is held dead", lambda: not self.deaths(), max(6, STORM_S))
        self.all_whole("UDP blocked one way", FIVE)

    def test_udp_is_blocked_from_one_to_everybody_and_nobody_dies(self):
        """A firewall that lets datagrams in and none out: it hears all, and nobody hears it but over links."""
        self.brew(delay=5)
        self.all_pairs(30)
        for name in FIVE[1:]:
            self.sky.set("edge-1", name, no_udp="on")
        with self.load(FIVE, 0.1):
            holds("nobody is held dead", lambda: not self.deaths(), max(6, STORM_S))
        self.all_whole("no UDP from one", FIVE)
