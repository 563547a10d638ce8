"""A broker whose host gets another address while it runs: a new lease, a router that roams (P4). And two brokers of one name."""
import shutil

from clients import MosquittoSub, mosquitto_pub
from harness import PATIENT, Stopwatch, SystemTest, hobnob, wait_until
from namespaces import inside
from weather import WeatherTest


def member(broker, name):
    return next(row for row in broker.api("members") if row["name"] == name)


class Moving(WeatherTest):
    def moved(self, advertise):
        fed, weather = self.under_weather(("edge-1", "edge-2", "edge-3"))
        for broker in fed if not advertise else ():
            broker.edit(r"^  advertise:.*\n", "")
        fed.start()
        epoch = member(fed["edge-1"], "edge-3")["epoch"]
        port = fed["edge-3"].port("peers")
        weather.move("edge-3", "10.77.0.33")
        watch = Stopwatch()
        return fed, epoch, port, watch

    def test_its_new_address_is_known_soon_and_it_is_never_down(self):
        fed, epoch, port, watch = self.moved(advertise=False)
        others = [fed["edge-1"], fed["edge-2"]]
        for broker in others:
            wait_until(f"{broker.name} knows the new address", lambda: member(broker, "edge-3")["address"] == f"10.77.0.33:{port}", watch=watch)
        print(f"known under its new address after {watch.seconds():.2f} s")
        fed.wait_alive()
        for broker in fed:
            self.assertEqual(broker.log_lines("member", "is down"), [])
        self.assertEqual({member(broker, "edge-3")["epoch"] for broker in others}, {epoch})

    def test_one_that_announces_an_address_that_it_lost_is_reached_all_the_same(self):
        fed, epoch, port, watch = self.moved(advertise=True)
        with inside(fed["edge-1"].namespace):
            subscriber = self.closing(MosquittoSub(fed["edge-1"], "moved", qos=1))
        with inside(fed["edge-3"].namespace):
            mosquitto_pub(fed["edge-3"], "moved", b"still here", 1)
        subscriber.wait_payload(b"still here")
        print(f"a publication crossed {watch.seconds():.2f} s after the move")
        fed.wait_alive()
        self.assertEqual(member(fed["edge-1"], "edge-3")["epoch"], epoch)


class OneName(SystemTest):
    def test_the_second_is_refused_and_both_are_named(self):
        fed = self.federation(limits=PATIENT)
        # The folder of edge-3 becomes that of another edge-2: its own key, and a token of that name.
        key = fed["edge-3"].folder / "edge-3.key"
        token = hobnob("token", "mint", "--issuer", fed.made / "issuer.key", "--broker", "edge-2", "--key", key, "--expires", "1d").stdout
        (fed["edge-3"].folder / "edge-3.jwt").write_text(token)
        fed["edge-3"].edit("^name: edge-3", "name: edge-2")
        for name in ("edge-1", "edge-2"):
            fed[name].start()
        fed.wait_alive(("edge-1", "edge-2"))
        fed["edge-3"].start()
        first = member(fed["edge-1"], "edge-2")["id"]
        refused = wait_until("edge-1 names both", lambda: fed["edge-1"].log_lines("refused", "the name edge-2 is that of another key", first[:8]))
        second = next(row for row in fed["edge-3"].api("members") if row["self"])["id"]
        self.assertIn(second[:8], refused[0])
        wait_until("the second says so too", lambda: fed["edge-3"].log_lines("refused_us", "the name edge-2 is that of another key"))
        rows = {row["id"]: row for row in fed["edge-1"].api("members")}
        self.assertEqual((rows[first]["state"], rows[first]["trouble"]), ("alive", None))
        self.assertEqual((rows[second]["name"], rows[second]["trouble"]), ("edge-2", "name taken"))
        self.assertEqual(fed["edge-1"].metric("hobnob_gossip_members_in_trouble"), 1)
        self.assertNotIn(second, [row["id"] for row in fed["edge-1"].api("links") if row["state"] == "up"])


class OneKey(SystemTest):
    def test_a_copied_folder_is_noticed_named_and_shown(self):
        fed = self.federation(limits=PATIENT)
        copy = fed["edge-3"]
        for name in ("edge-2.key", "edge-2.jwt"):
            shutil.copy(fed["edge-2"].folder / name, copy.folder / name)
        copy.edit("^name: edge-3", "name: edge-2")
        copy.edit("edge-3.jwt", "edge-2.jwt")
        copy.edit("edge-3.key", "edge-2.key")
        for broker in fed:
            broker.start()
        pair = [fed["edge-2"], copy]
        lines = wait_until("one of the two says so", lambda: [line for broker in pair for line in broker.log_lines("cloned", "another broker uses our key")])
        self.assertTrue(any(f"127.0.0.1:{broker.port('peers')}" in line for line in lines for broker in pair), lines)
        wait_until("edge-1 shows it", lambda: member(fed["edge-1"], "edge-2")["trouble"] == "key in use by two")
        self.assertTrue(fed["edge-1"].log_lines("another broker uses its key"))
        self.assertGreaterEqual(fed["edge-1"].metric("hobnob_gossip_clones_seen_total"), 1)
