"""A broker behind a home router: nobody reaches it but whom it has spoken to, and the router gives it other addresses and ports (P4)."""
import time

from clients import Paho
from harness import PATIENT_SUBACK, Stopwatch, wait_until
from storm import long_only
from weather import WeatherTest

OPEN, HIDDEN = ("edge-1", "edge-2"), "edge-3"


class Nat(WeatherTest):
    def behind_a_router(self, names=(*OPEN, HIDDEN), hidden=(HIDDEN,)):
        fed, sky = self.under_weather(names, limits=PATIENT_SUBACK, delay=5)
        for number, name in enumerate(hidden):
            fed[name].edit(r"^  advertise:.*\n", "")
            sky.nat(name, f"10.99.0.{number + 1}", 20_000)
        for broker in fed:  # nobody knows the hidden ones beforehand
            broker.edit(r"^  bootstrap:.*(\n\s+- .*)*$", "  bootstrap: [" + ", ".join(f"10.77.0.{n + 1}:{fed[name].port('peers')}" for n, name in enumerate(OPEN)) + "]")
        fed.start()
        self.hearers = {name: self.closing(Paho(fed[name])) for name in names}
        self.speakers = {name: self.closing(Paho(fed[name])) for name in names}
        for hearer in self.hearers.values():
            hearer.subscribe("nat/#", qos=1)
        return fed, sky

    def say(self, what, names=None):
        for name in names or self.speakers:
            self.speakers[name].publish(f"nat/{name}", what, 1, wait=False)

    def heard(self, what, speakers=None, hearers=None, **options):
        for at in hearers or self.hearers:
            for name in speakers or self.speakers:
                wait_until(f"{at} hears {what} from {name}", lambda: what in self.hearers[at].payloads(f"nat/{name}"), **options)

    def address(self, broker, name=HIDDEN):
        return next(row["address"] for row in broker.api("members") if row["name"] == name)

    def test_it_is_reached_and_the_router_may_be_restarted(self):
        fed, sky = self.behind_a_router()
        port = fed[HIDDEN].port("peers")
        for name in OPEN:
            self.assertEqual(self.address(fed[name]), f"10.99.0.1:{port + 20_000}")
        self.say(b"first")
        self.heard(b"first")
        epoch = {row["name"]: row["epoch"] for row in fed["edge-1"].api("members")}[HIDDEN]
        sky.nat(HIDDEN, "10.99.0.1", 21_000)
        watch = Stopwatch()
        for name in OPEN:
            wait_until(f"{name} knows its new address", lambda: self.address(fed[name]) == f"10.99.0.1:{port + 21_000}", watch=watch)
        known = watch.seconds()
        took = []
        for turn, (address, shift, speakers) in enumerate((("10.99.0.1", 22_000, self.speakers), ("10.99.0.9", 23_000, OPEN), ("10.99.0.9", 0, [HIDDEN]))):
            sky.nat(HIDDEN, address, shift)
            watch = Stopwatch()
            self.say(b"turn %d" % turn, speakers)
            self.heard(b"turn %d" % turn, speakers, watch=watch)
            took.append(watch.seconds())
        print(f"        a router restarted: new address known after {known:.1f} s; heard everywhere after {took} s", flush=True)
        wait_until("all alive", lambda: all(set(broker.members().values()) == {"alive"} for broker in fed))
        self.assertEqual([line for broker in fed for line in broker.log_lines("member", "is down")], [])
        self.assertEqual({row["name"]: row["epoch"] for row in fed["edge-1"].api("members")}[HIDDEN], epoch)

    @long_only
    def test_nothing_is_lost_while_the_router_is_restarted_again_and_again(self):
        fed, sky = self.behind_a_router()
        self.say(b"first")
        self.heard(b"first")
        for turn in range(6):
            for step in range(10):
                self.say(b"%d" % (turn * 10 + step))
                time.sleep(0.05)  # the speakers' own pace
            sky.nat(HIDDEN, f"10.99.0.{turn % 2 + 1}", 20_000 + turn)
        for number in range(60):
            self.heard(b"%d" % number, timeout_s=30)

    @long_only
    def test_two_behind_routers_of_their_own_are_members_of_one_federation(self):
        """They cannot reach each other by TCP, so nothing passes between their clients (README, Reachability); all else does."""
        hidden = (HIDDEN, "edge-4")
        fed, sky = self.behind_a_router((*OPEN, *hidden), hidden)
        for one in hidden:
            self.say(b"up", [one])
            self.heard(b"up", [one], OPEN)
        self.say(b"down", OPEN)
        self.heard(b"down", OPEN)
        wait_until("one table", lambda: all(set(broker.members().values()) == {"alive"} for broker in fed) and len({broker.api("status")["table_hash"] for broker in fed}) == 1)
