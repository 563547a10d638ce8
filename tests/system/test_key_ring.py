"""The gossip key changes while brokers run, sleep, and are cut off (P22). One broker is given each ring; the others get it over links."""
import re
import shutil
import stat

from clients import MosquittoSub, mosquitto_pub
from harness import HOBNOB, HOBNOBD, PATIENT, Stopwatch, SystemTest, hobnob, run, wait_until
from namespaces import in_namespace
from weather import WeatherTest


class Rings:
    """The rings of a federation, made one after the other as an admin makes them."""

    def __init__(self, fed):
        self.fed, self.number, self.last = fed, 0, fed.made / "gossip.key"

    def make(self, *options, issuer=None, gossip=None, out=None):
        self.number += 1
        ring = out or self.fed.folder / f"gossip-{self.number}.ring"
        hobnob("key", "rotate", "--issuer", issuer or self.fed.made / "issuer.key", "--gossip", gossip or self.last, "--out", ring, *options)
        self.last = ring
        return ring

    def push(self, broker, ring=None, status=0):
        done = run(*in_namespace(broker.namespace, [str(HOBNOB), "key", "push", str(ring or self.last), "--admin", broker.admin]))
        assert status in (None, done.returncode), done.stdout + done.stderr
        return done


def rings(broker):
    """{name: (ring, mark)} as this broker sees it."""
    return {member["name"]: (member["ring"], member["ring_mark"]) for member in broker.api("members")}


def wait_ring(brokers, number, names=None, **options):
    """Until each of these knows of each that it uses this ring, and which it is."""
    names = names or [broker.name for broker in brokers]
    for broker in brokers:
        wait_until(f"{broker.name} sees ring {number} at {names}",
                   lambda: (seen := rings(broker)) and {seen.get(name, (None,))[0] for name in names} == {number}
                   and len({seen[name] for name in names}) == 1, **options)


class Rotation(SystemTest):
    def crosses(self, fed, subscriber, what):
        for broker in fed:
            if broker.wanted:
                mosquitto_pub(broker, "ring/x", f"{what} from {broker.name}".encode(), 1)
                subscriber.wait_payload(f"{what} from {broker.name}".encode())

    def test_all_up_and_nobody_notices(self):
        fed = self.federation(limits=PATIENT).start()
        subscriber = self.closing(MosquittoSub(fed["edge-3"], "ring/#", qos=1))
        made = Rings(fed)
        for step, giver in enumerate(("edge-1", "edge-2", "edge-3"), 1):
            made.make()
            watch = Stopwatch()
            said = made.push(fed[giver]).stdout
            self.assertIn(f"Ring {step} is used there from now on", said)
            wait_ring(fed, step, watch=watch)
            print(f"ring {step} is known to be everywhere after {watch.seconds():.2f} s")
            self.crosses(fed, subscriber, f"ring {step}")
        self.assertIn("Ring 3 is used there already", made.push(fed["edge-1"]).stdout)
        for broker in fed:
            self.assertEqual(broker.log_lines("member", "down"), [])
            self.assertEqual(broker.metric("hobnob_gossip_ring"), 3)
            self.assertEqual(broker.metric("hobnob_gossip_rings_behind"), 0)
            self.assertEqual(broker.api("status")["ring"]["number"], 3)
        # Kept, readable by nobody else, and used after a restart though gossip.key is that of the beginning.
        kept = fed["edge-2"].folder / "data" / "gossip.ring"
        wait_until("it is kept", lambda: kept.exists() and b"number 3\n" in kept.read_bytes())
        self.assertEqual(stat.S_IMODE(kept.stat().st_mode), 0o600)
        checked = run(HOBNOBD, "--check", fed["edge-2"].config)
        self.assertEqual(checked.returncode, 0)
        self.assertRegex(checked.stdout, r"hobnob\.yaml:\d+: warning: federation\.gossip_key: data_dir holds key ring 3 \(gossip\.ring\)")
        for broker in fed:
            broker.stop()
        fed.start()
        wait_ring(fed, 3)
        self.assertTrue(fed["edge-2"].log_lines("gossip key ring 3 is used, kept in data_dir"))

    def test_one_asleep_gets_it_over_a_link_when_it_wakes(self):
        fed = self.federation().start()
        made = Rings(fed)
        fed["edge-3"].kill()
        two = [fed["edge-1"], fed["edge-2"]]
        for step in (1, 2, 3):
            made.make()
            made.push(fed["edge-1"])
            wait_ring(two, step)
        watch = Stopwatch()
        fed["edge-3"].start()
        fed.wait_alive(watch=watch)
        wait_ring(fed, 3, watch=watch)
        seconds = watch.seconds()
        print(f"one that slept through a rotation is back {seconds:.2f} s after its start")
        self.assertLess(seconds, 10)
        self.assertTrue(fed["edge-3"].log_lines("ring", "gossip key ring 3 is used from now on; it came from edge-"))

    def test_a_ring_left_in_the_inbox_is_taken_and_one_that_is_none_is_put_aside(self):
        fed = self.federation(limits=PATIENT).start()
        made, inbox = Rings(fed), fed["edge-2"].folder / "data" / "inbox"
        wait_until("there is an inbox", inbox.is_dir)
        first = made.make()
        shutil.copy(first, inbox / "mine.ring")
        wait_ring(fed, 1)
        wait_until("it is taken away", lambda: not list(inbox.iterdir()))
        made.make()
        made.push(fed["edge-1"])
        wait_ring(fed, 2)
        shutil.copy(first, inbox / "again.ring")
        (inbox / "note.txt").write_text("not a ring\n")
        wait_until("both are put aside", lambda: {path.name for path in inbox.iterdir()} == {"again.ring.refused", "note.txt.refused"})
        self.assertTrue(fed["edge-2"].log_lines("again.ring", "ring 1 is older than ring 2"))
        self.assertTrue(fed["edge-2"].log_lines("note.txt", "is no key ring"))
        wait_ring(fed, 2)

    def test_what_is_refused_is_refused_with_the_reason(self):
        fed = self.federation(limits=PATIENT).start()
        made = Rings(fed)
        other = self.folder() / "other"
        hobnob("init", other, "--brokers", "edge-1")
        forged = made.make(issuer=other / "issuer.key", out=fed.folder / "forged.ring")
        done = made.push(fed["edge-1"], forged, status=1)
        self.assertIn("signed by an issuer that is not in identity.issuers", done.stderr)
        elsewhere = made.make("--federation", "elsewhere", gossip=fed.made / "gossip.key", out=fed.folder / "elsewhere.ring")
        self.assertIn("ring 1 is for federation elsewhere", made.push(fed["edge-1"], elsewhere, status=1).stderr)
        text = forged.read_text()
        changed = fed.folder / "changed.ring"
        changed.write_text(text.replace("number 1\n", "number 2\n"))
        self.assertIn("issuer", made.push(fed["edge-1"], changed, status=1).stderr)
        good = made.make(gossip=fed.made / "gossip.key", out=fed.folder / "good.ring")
        text = good.read_text()
        changed.write_text(text.replace("number 1\n", "number 2\n"))
        self.assertIn("changed after it was signed", made.push(fed["edge-1"], changed, status=1).stderr)
        self.assertEqual({ring for broker in fed for ring, _ in rings(broker).values()}, {0})

    def test_two_rings_with_one_number_end_as_one_and_all_say_so(self):
        fed = self.federation(limits=PATIENT).start()
        made = Rings(fed)
        one = made.make(gossip=fed.made / "gossip.key", out=fed.folder / "one.ring")
        other = made.make(gossip=fed.made / "gossip.key", out=fed.folder / "other.ring")
        marks = sorted(re.search(r"mark ([0-9a-f]{8})", path.read_text()).group(1) for path in (one, other))
        made.push(fed["edge-1"], one, status=None)
        made.push(fed["edge-2"], other, status=None)
        wait_ring(fed, 1)
        self.assertEqual(set(rings(fed["edge-3"]).values()), {(1, marks[1])})
        self.assertTrue([line for broker in fed for line in broker.log_lines("two key rings have the number 1", marks[0], marks[1])])

    def test_a_broker_with_another_gossip_key_is_found_over_links_and_named(self):
        fed = self.federation(limits=PATIENT)
        other = self.folder() / "other"
        hobnob("init", other, "--brokers", "edge-1")
        shutil.copy(other / "gossip.key", fed["edge-3"].folder / "gossip.key")
        fed.start()
        trouble = lambda broker: {member["name"] for member in broker.api("members") if member["trouble"] == "other gossip key"}
        for broker, named in ((fed["edge-1"], {"edge-3"}), (fed["edge-2"], {"edge-3"}), (fed["edge-3"], {"edge-1", "edge-2"})):
            wait_until(f"{broker.name} names {named}", lambda: trouble(broker) == named, 60)
            for name in named:
                self.assertEqual(len(broker.log_lines("gossip", f"{name} seals its datagrams with a gossip key that is not ours")), 1)
        subscriber = self.closing(MosquittoSub(fed["edge-3"], "ring/#", qos=1))
        self.crosses(fed, subscriber, "by link")

    def test_a_broker_may_begin_with_the_present_ring(self):
        fed = self.federation()
        made = Rings(fed)
        made.make(), made.make()
        for broker in fed:
            shutil.copy(made.last, broker.folder / "gossip.key")
        fed.start()
        wait_ring(fed, 2)


class RotationUnderWeather(WeatherTest):
    def test_cut_in_two_and_one_side_rotates(self):
        fed, weather = self.under_weather(("edge-1", "edge-2", "edge-3", "edge-4"))
        fed.start()
        made = Rings(fed)
        here, there = ["edge-1", "edge-2"], ["edge-3", "edge-4"]
        weather.part(here, there)
        wait_until("each side holds the other for gone", lambda: all(fed[a].members()[b] != "alive" for a in here for b in there), 30)
        for step in (1, 2, 3):
            made.make()
            made.push(fed["edge-1"])
            wait_ring([fed[name] for name in here], step, here)
        self.assertEqual({rings(fed["edge-3"])[name][0] for name in there}, {0})
        weather.mend()
        watch = Stopwatch()
        fed.wait_alive(timeout_s=60, watch=watch)
        wait_ring(fed, 3, timeout_s=60, watch=watch)
        print(f"a rotation on one side of a cut: whole again {watch.seconds():.2f} s after it healed")
        self.assertLess(watch.seconds(), 30)
