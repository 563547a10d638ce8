"""Five brokers on bad networks: nobody dies who lives, the registry agrees, and what QoS 1 and 2 promise arrives (G5, G9, G10).

HOBNOB_STORM_S is how long the bad weather of the longest test lasts, in seconds; from a minute on (tools/test --long) there are more losses and more cuts.
"""
import itertools
import time

from harness import Stopwatch, holds, wait_until
from storm import STORM_S, StormTest, long_only
from weather import FIVE


class BadWeather(StormTest):
    def rain(self, loss, seconds):
        self.brew(loss=loss, delay=200, jitter=20)
        figures = self.measure(seconds)
        watch = Stopwatch()
        wait_until(f"all of QoS 1 and 2 arrives at {loss} % loss", lambda: not self.missing(), 60 + seconds)
        figures["last after s"] = watch.seconds()
        wait_until("one table", self.agree, 30)
        print(f"        {loss} % loss, 200 ms one way, {seconds:g} s, each broker: " + ", ".join(f"{value:.1f} {name}" for name, value in figures.items()), flush=True)
        self.assertEqual(self.deaths(), [], "nobody has died")
        self.nothing_twice_at_qos_2()

    def test_nobody_dies_and_all_arrives_at_20_percent_loss_and_200_ms(self):
        self.rain(20, STORM_S)

    @long_only
    def test_figures_at_other_losses(self):
        for loss in (0, 5, 40):
            with self.subTest(loss=loss):
                self.rain(loss, STORM_S)
                self.doCleanups()


class PartitionInBadWeather(StormTest):
    """The weather stays as it is; TCP itself takes seconds to get through it."""

    def test_cut_and_healed_at_20_percent_loss_and_200_ms(self):
        self.brew(loss=20, delay=200, jitter=20)
        small, large = FIVE[:2], FIVE[2:]
        self.all_pairs(60)
        self.sky.part(small, large)
        wait_until("each side misses the other", lambda: self.gone(small, large) and self.gone(large, small), 30)
        for side in (small, large):
            self.all_pairs(30, names=side)
        self.heal("2 and 3 at 20 % loss and 200 ms", within_s=60)
        for side in (small, large):
            self.assertEqual(self.deaths(side), [], "nobody died but to the other side")


class Partitions(StormTest):
    def setUp(self):
        self.brew(loss=2, delay=10, jitter=5)
        self.all_pairs(30)

    @long_only
    def test_two_and_three(self):
        small, large = FIVE[:2], FIVE[2:]
        self.sky.part(small, large)
        wait_until("each side misses the other", lambda: self.gone(small, large) and self.gone(large, small), 15)
        for side in (small, large):
            self.all_pairs(2, names=side)
        self.heal("2 and 3")

    def test_in_three(self):
        sides = (FIVE[:2], FIVE[2:4], FIVE[4:])
        self.sky.part(*sides)
        wait_until("each side misses the others", lambda: all(self.gone(here, there) for here, there in itertools.permutations(sides, 2)), 15)
        for side in sides:
            self.all_pairs(2, names=side)
        self.heal("in three")

    @long_only
    def test_one_alone(self):
        self.sky.part(FIVE[:1], FIVE[1:])
        wait_until("the others have buried it", lambda: all(self.fed[name].members()["edge-1"] == "down" for name in FIVE[1:]), 15)
        wait_until("it misses the others", lambda: self.gone(FIVE[:1], FIVE[1:]), 15)
        self.all_pairs(2, names=FIVE[1:])
        self.all_pairs(2, names=FIVE[:1])
        self.heal("one alone")

    @long_only
    def test_each_alone(self):
        self.sky.part(*([name] for name in FIVE))
        wait_until("all miss all", lambda: all(self.gone([name], set(FIVE) - {name}) for name in FIVE), 15)
        self.heal("each alone")

    @long_only
    def test_one_direction_is_cut_and_nobody_dies(self):
        """P18, P19: a cable that carries in one direction only."""
        self.sky.set("edge-1", "edge-2", cut="on")
        end = time.monotonic() + 4
        while time.monotonic() < end:
            self.speak()
            time.sleep(0.2)
        self.assertEqual(self.deaths(), [])
        rest = {(at, name) for at, name in itertools.product(FIVE, FIVE) if {at, name} != {"edge-1", "edge-2"}}
        wait_until("all others go on", lambda: not {key for key in self.missing() if key[:2] in rest}, 10)
        self.heal("one direction")

    @long_only
    def test_a_deaf_one_condemns_nobody(self):
        """P18: who hears nobody and is heard accuses all the others, who live."""
        for name in FIVE[1:]:
            self.sky.set(name, "edge-1", cut="on")
        among = lambda: [line for broker in FIVE[1:] for line in self.fed[broker].log_lines("member", "is down") if "edge-1 (" not in line]
        holds("the others do not bury one another", lambda: not among(), 6)
        self.all_pairs(2, names=FIVE[1:])
        self.heal("a deaf one")

    @long_only
    def test_flapping(self):
        for _ in range(5):
            self.sky.part(FIVE[:2], FIVE[2:])
            time.sleep(1)
            self.sky.mend()
            self.speak()
            time.sleep(1)
        self.heal("flapping each second")
