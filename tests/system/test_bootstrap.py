"""How real daemons find each other: by names that change, by what they remember, by multicast. The ways themselves are tested with
tests/unit/test_gossip_bootstrap.c and test_daemon_resolver.c; here is the system's part: resolver, files, sockets, interfaces."""
import os
import socket

from clients import MosquittoSub, Paho, mosquitto_pub
from harness import PATIENT_SUBACK, THREE, Stopwatch, SystemTest, holds, wait_until
from lan import LanTest
from namespaces import inside
from storm import long_only
from weather import FIVE, WeatherTest

GROUP, GROUP_V6, PORT = "239.255.71.17", "ff15::4871:17", 7117


def lines_of(fed, **federation):
    """Writes the section federation of each broker anew: what it is to know of the others."""
    for broker in fed:
        text = "federation:\n  gossip_key: gossip.key\n" + "".join(f"  {key}: {value}\n" for key, value in federation.items())
        broker.edit(r"^federation:\n(?:[ ].*\n|\n)*?(?=\S|\Z)", text)


class Lan(LanTest):
    def lan_of_strangers(self, names=THREE, files=None):
        """A federation whose brokers know nobody; its cables are not connected yet."""
        fed = self.lan(names, files)
        lines_of(fed)
        return fed

    def crosses(self, fed, topic):
        subscriber = self.closing(MosquittoSub(fed["edge-1"], topic, qos=1))
        mosquitto_pub(fed["edge-2"], topic, b"hello", 1)
        subscriber.wait_payload(b"hello")


class Multicast(Lan):
    """P3: not one address is configured."""

    def test_brokers_without_any_address_find_each_other(self):
        fed = self.lan_of_strangers()
        self.plug_all(fed)
        lines_of(fed, multicast="true")
        fed.start()
        self.crosses(fed, "found")
        fed["edge-3"].kill()
        wait_until("its death is noticed", lambda: fed["edge-1"].members().get("edge-3") == "down")
        (fed["edge-3"].folder / "data" / "peers").unlink(missing_ok=True)
        fed["edge-3"].start()
        fed.wait_alive()

    def test_by_ipv6_alone(self):
        fed = self.lan_of_strangers(("edge-1", "edge-2"))
        for number, broker in enumerate(fed, 1):
            self.plug(broker, f"fd77::{number}/64")
            broker.edit(r"peers: 0\.0\.0\.0:(\d+)", r'peers: "[::]:\1"')
            broker.edit(r"mqtt: 0\.0\.0\.0:(\d+)", r"mqtt: 127.0.0.1:\1")
        lines_of(fed, multicast="true")
        fed.start()
        self.assertTrue(all("fd77::" in member["address"] for member in fed["edge-1"].api("members")), fed["edge-1"].api("members"))

    def test_an_interface_that_comes_later_is_used(self):
        fed = self.lan_of_strangers(("edge-1", "edge-2"))
        lines_of(fed, multicast="true")
        for broker in fed:
            broker.start()
        self.assertTrue(fed["edge-1"].log_lines("multicast", "no interface"))
        self.plug_all(fed)
        fed.wait_alive()
        self.crosses(fed, "later")

    def test_every_interface_is_used(self):
        """edge-2 has one cable to edge-1 and another to edge-3, which see it and not one another's SEEKs."""
        fed = self.lan_of_strangers()
        self.hub.run("ip", "link", "add", "other", "type", "bridge")
        self.hub.run("ip", "link", "set", "other", "up")
        self.plug(fed["edge-1"], "10.77.0.1/24")
        self.plug(fed["edge-2"], "10.77.0.2/24")
        self.plug(fed["edge-2"], "10.88.0.2/24", "eth1")
        self.plug(fed["edge-3"], "10.88.0.3/24")
        for port in ("edge-2-eth1", "edge-3-eth0"):
            self.hub.run("ip", "link", "set", port, "nomaster")
            self.hub.run("ip", "link", "set", port, "master", "other")
        lines_of(fed, multicast="true")
        for broker in fed:
            broker.start()
        wait_until("edge-2 has found one on each side", lambda: [fed["edge-2"].members().get(name) for name in ("edge-1", "edge-3")] == ["alive"] * 2)

    def test_who_listens_without_the_key_learns_nothing(self):
        fed = self.lan_of_strangers(("edge-1", "edge-2"))
        self.plug_all(fed)
        lines_of(fed, multicast="true")
        with inside(fed["edge-2"].namespace):
            ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.addCleanup(ear.close)
            ear.bind((GROUP, PORT))
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton("10.77.0.2"))
        ear.settimeout(20)
        fed["edge-1"].start()
        heard = [ear.recvfrom(2048) for _ in range(2)]
        for data, source in heard:
            self.assertEqual(source, ("10.77.0.1", fed["edge-1"].port("peers")))
            self.assertLessEqual(len(data), 1200)
            for word in (b"edge-1", b"default", b"7100"):
                self.assertNotIn(word, data)
        self.assertNotEqual(heard[0][0][17:], heard[1][0][17:])

    def test_two_on_one_host_by_loopback(self):
        fed = self.federation(("edge-1", "edge-2"))
        lines_of(fed, multicast="true")
        fed.start()


class Names(Lan):
    """P3"""

    def hosts(self, *lines):
        self.path.write_text("127.0.0.1 localhost\n" + "\n".join(lines) + "\n")  # in place: it is mounted

    def setUp(self):
        self.path = self.folder() / "hosts"
        self.hosts()

    def named(self):
        fed = self.lan_of_strangers(files={"/etc/hosts": self.path})
        self.plug_all(fed)
        lines_of(fed, bootstrap=f"[peers.example:{fed['edge-1'].port('peers')}]")
        return fed

    def test_a_name_of_all_brokers_ourselves_included_and_of_the_dead(self):
        fed = self.named()
        self.hosts(*(f"10.77.0.{number} peers.example" for number in (99, 1, 98, 2, 97, 3)))
        fed.start()
        self.crosses(fed, "names")

    def test_a_name_that_changes_is_followed(self):
        """First it is unknown, then it stands for nobody, then for one of the others; nobody is restarted."""
        fed = self.named()
        for broker in fed:
            broker.start()
        wait_until("they say that it is unknown", lambda: all(broker.log_lines("bootstrap_unknown") for broker in fed))
        self.hosts("10.77.0.99 peers.example")
        wait_until("they have found it", lambda: all(broker.log_lines("bootstrap_found") for broker in fed))
        self.assertEqual(fed["edge-1"].members(), {"edge-1": "alive"})
        self.hosts("10.77.0.2 peers.example")
        fed.wait_alive()

    def test_our_own_name_that_changes_is_told_to_all(self):
        """P4: federation.advertise is first unknown, which holds nobody up, then stands for another host, then for ours."""
        fed = self.lan_of_strangers(("edge-1", "edge-2"), files={"/etc/hosts": self.path})
        self.plug_all(fed)
        port = fed["edge-1"].port("peers")
        lines_of(fed, bootstrap=f"[10.77.0.1:{port}]")
        fed["edge-1"].edit("gossip_key: gossip.key", f"gossip_key: gossip.key\n  advertise: us.example:{port}")
        fed["edge-1"].start()
        wait_until("it is unknown", lambda: fed["edge-1"].log_lines("advertise_unknown", "mend federation.advertise"))
        self.hosts("10.77.0.99 us.example")
        wait_until("it is told", lambda: fed["edge-1"].api("members")[0]["address"] == f"10.77.0.99:{port}")
        self.hosts("10.77.0.1 us.example")
        wait_until("the change is told", lambda: fed["edge-1"].log_lines("advertise_changed", "10.77.0.1"))
        fed["edge-2"].start()
        fed.wait_alive()
        seen = {member["name"]: member["address"] for member in fed["edge-2"].api("members")}
        self.assertEqual(seen["edge-1"], f"10.77.0.1:{port}")


class OneAddress(WeatherTest):
    """P3: five brokers that have never met and know one address, that of edge-1, which is one of them."""

    def strangers(self):
        fed, sky = self.under_weather(FIVE, limits=PATIENT_SUBACK, delay=5)
        lines_of(fed, bootstrap=f"[10.77.0.1:{fed['edge-1'].port('peers')}]")
        return fed

    def all_hear_all(self, fed):
        hearers = {name: self.closing(Paho(fed[name])) for name in FIVE}
        for hearer in hearers.values():
            hearer.subscribe("met/#", qos=1)
        for name in FIVE:
            self.closing(Paho(fed[name])).publish(f"met/{name}", name.encode(), 1)
        wait_until("all hear all", lambda: all({bytes(p) for p in hearer.payloads()} == {name.encode() for name in FIVE} for hearer in hearers.values()))
        wait_until("one table", lambda: len({broker.api("status")["table_hash"] for broker in fed}) == 1)

    def test_all_start_at_the_same_moment(self):
        fed = self.strangers()
        watch = Stopwatch()
        for broker in fed:
            broker.spawn()
        for broker in fed:
            broker.wait_ready()
        fed.wait_alive(timeout_s=5, watch=watch)
        self.all_hear_all(fed)

    @long_only
    def test_the_address_is_dead_for_the_first_minute(self):
        fed = self.strangers()
        for name in FIVE[1:]:
            fed[name].start()
        holds("nobody is found", lambda: all(set(fed[name].members()) == {name} for name in FIVE[1:]), 60)
        watch = Stopwatch()
        fed["edge-1"].start()
        fed.wait_alive(timeout_s=5, watch=watch)
        print(f"        the address all waited for was dead for a minute: all have met {watch.seconds():.1f} s after it lived", flush=True)
        self.all_hear_all(fed)


class Remembered(SystemTest):
    """P3: the peer cache."""

    def kept(self, broker):
        path = broker.folder / "data" / "peers"
        return path.read_text(errors="replace") if path.exists() else ""

    def start_and_stop(self):
        fed = self.federation(THREE).start()
        for broker in fed:
            wait_until(f"{broker.name} has kept its peers", lambda: self.kept(broker).count(":") == 2)
        for broker in fed:
            self.assertEqual(broker.stop(), 0)
        return fed

    def test_back_without_any_bootstrap_address(self):
        """The names are gone at two of them, and the third never had one."""
        fed = self.start_and_stop()
        lines_of(fed, bootstrap="[gone.invalid:7100, 127.0.0.1:1]")
        fed["edge-3"].edit(r"^  bootstrap: .*\n", "  bootstrap: []\n")
        for broker in fed:
            self.assertNotIn("default", self.kept(broker))
        fed.start(order=("edge-3", "edge-1", "edge-2"))

    def test_a_damaged_cache_is_a_warning_and_is_mended(self):
        fed = self.federation(("edge-1", "edge-2"))
        path = fed["edge-1"].folder / "data" / "peers"
        path.parent.mkdir()
        path.write_bytes(os.urandom(300))
        fed.start()
        self.assertEqual(len(fed["edge-1"].log_lines("peer_cache", "damaged")), 1)
        wait_until("it is written anew", lambda: self.kept(fed["edge-1"]).count(":") == 1)

    def test_a_cache_that_cannot_be_written_is_one_warning(self):
        fed = self.federation(("edge-1", "edge-2"))
        for broker in fed:
            (broker.folder / "data" / "peers.new").mkdir(parents=True)
        fed.start()
        line = wait_until("the log says so", lambda: fed["edge-1"].log_lines("peer_cache"))
        self.assertIn("mend data_dir", line[0])
