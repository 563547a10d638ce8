"""Tokens end, and brokers are put out by a change of issuers: what an admin sees, at the broker that it is about and at the others (G11)."""
import re
import time

from clients import MosquittoSub, mosquitto_pub
from harness import PATIENT, SystemTest, hobnob, wait_until

LEFT_S = 20  # of the token when it is minted: the brokers have started by then


def stamp(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


class Tokens(SystemTest):
    def mint(self, broker, *options, issuer=None):
        token = hobnob("token", "mint", "--issuer", issuer or self.fed.made / "issuer.key", "--broker", broker.name, "--key", broker.folder / f"{broker.name}.key",
                       *(options or ("--expires", "90d"))).stdout
        (broker.folder / f"{broker.name}.jwt").write_text(token)

    def troubles(self, broker):
        """{name: trouble} of those that are in one."""
        return {member["name"]: member["trouble"] for member in broker.api("members") if member["trouble"]}

    def shown(self, broker, name, trouble):
        """By the table, the status and the metrics of this broker."""
        try:
            wait_until(f"{broker.name} shows that {name} is in trouble: {trouble}", lambda: self.troubles(broker) == {name: trouble}, 30)
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows {self.troubles(broker)}") from None
        row = next(line for line in hobnob("members", "--admin", broker.admin).stdout.splitlines() if trouble in line)
        self.assertTrue(row.startswith(name + " "), row)
        self.assertRegex(hobnob("status", "--admin", broker.admin).stdout, r"members in trouble +1\b")
        self.assertEqual(broker.metric("hobnob_gossip_members_in_trouble"), 1)
        samples = [key for key in broker.metrics() if key.startswith("hobnob_member_in_trouble{")]
        self.assertEqual(len(samples), 1)
        self.assertRegex(samples[0], f'member="{re.escape(name)}".*trouble="{trouble}"')

    def test_its_end_is_told_before_and_after_and_a_new_one_mends_it(self):
        self.fed = self.federation(limits=PATIENT)
        ending, others = self.fed["edge-2"], [self.fed["edge-1"], self.fed["edge-3"]]
        now = int(time.time())
        self.mint(ending, "--at", stamp(now - 7200), "--expires", stamp(now + LEFT_S))
        self.fed.start()
        self.assertTrue(ending.log_lines("warning token", "expires in", "hobnob token mint"), ending.log())
        self.assertEqual(ending.metric("hobnob_token_expires_seconds"), now + LEFT_S)
        self.shown(ending, "edge-2", "token ends soon")
        for broker in others:
            self.assertEqual(self.troubles(broker), {})
            self.assertFalse(broker.log_lines("warning token"))
        self.shown(ending, "edge-2", "token expired")
        wait_until("its log says so too", lambda: ending.log_lines("warning token", "has expired", "hobnob token mint"))
        for broker in others:
            self.shown(broker, "edge-2", "token refused")
        # Whoever has not known it before names it too: it has the key, and a token that was good once.
        self.assertEqual(others[0].stop(), 0)
        others[0].start()
        self.shown(others[0], "edge-2", "token refused")
        self.assertTrue(others[0].log_lines("warning refused", "edge-2 (", "expired"), others[0].log())
        self.assertEqual(len(ending.log_lines("warning token")), 2)
        self.mint(ending)
        self.assertEqual(ending.stop(), 0)
        ending.start()
        self.fed.wait_alive()
        for broker in self.fed:
            wait_until(f"nobody is in trouble at {broker.name}", lambda: self.troubles(broker) == {})
        self.assertGreater(ending.metric("hobnob_token_expires_seconds"), now + 89 * 86400)

    def restarted(self, broker):
        self.assertEqual(broker.stop(), 0)
        broker.start()

    def crosses(self, what):
        """Between those that stay, each way."""
        for broker, receiver in self.receivers.items():
            for sender in self.stay:
                payload = f"{what} from {sender.name} to {broker}".encode()
                mosquitto_pub(sender, "work/x", payload, 1)
                receiver.wait_payload(payload)

    def each_restarted(self, what, change):
        """One after the other, as an admin does."""
        for broker in self.stay:
            change(broker)
            self.receivers.pop(broker.name).close()
            self.restarted(broker)
            self.fed.wait_alive([other.name for other in self.stay])
            self.receivers[broker.name] = self.closing(MosquittoSub(broker, "work/#", qos=1))
            self.crosses(what)

    def test_a_change_of_issuers_puts_a_broker_out(self):
        """As README tells it. The one that is put out goes on with what it has."""
        self.fed = self.federation(("edge-1", "edge-2", "edge-3", "edge-4"), limits=PATIENT)
        out = self.fed["edge-4"]
        self.stay = [broker for broker in self.fed if broker is not out]
        issuer = self.fed.folder / "issuer-2"
        hobnob("key", "new", "--out", issuer, "--kind", "issuer")
        for broker in self.fed:
            (broker.folder / "issuer-2.pub").write_bytes(issuer.with_suffix(".pub").read_bytes())
        self.fed.start()
        self.receivers = {broker.name: self.closing(MosquittoSub(broker, "work/#", qos=1)) for broker in self.stay}
        inside = self.closing(MosquittoSub(out, "#", qos=1))
        self.fed.wait_row(("edge-4", "newsub", "#"))
        self.crosses("before")
        inside.wait_payload(b"before from edge-1 to edge-2")
        self.each_restarted("with both issuers", lambda broker: broker.edit(r"issuers: .*", "issuers: [issuer.pub, issuer-2.pub]"))
        self.each_restarted("with new tokens", lambda broker: self.mint(broker, issuer=issuer.with_suffix(".key")))
        self.each_restarted("without the old issuer", lambda broker: broker.edit(r"issuers: .*", "issuers: [issuer-2.pub]"))
        for broker in self.stay:
            wait_until(f"{broker.name} has no row of edge-4", lambda: not [row for row in broker.rows() if row[0].startswith("edge-4")])
            wait_until(f"{broker.name} has no link with it", lambda: not [peer for peer, link in broker.links().items() if peer.startswith("edge-4") and link["state"] == "up"])
            self.shown(broker, "edge-4?", "token refused")
            self.assertTrue(broker.log_lines("warning refused", "edge-4? (", "issuer"), broker.log())
        wait_until("edge-4 is told why", lambda: out.log_lines("refused_us", "issuer"))
        wait_until("edge-4 shows that it is refused", lambda: self.troubles(out).get("edge-4") == "refused by others")
        said = len(inside.payloads())
        self.crosses("afterwards")
        mosquitto_pub(out, "work/x", b"from outside", 1)
        inside.wait_payload(b"from outside")  # its own site is served all the same (G9)
        self.crosses("at the end")
        self.assertEqual([payload for payload in inside.payloads()[said:] if payload != b"from outside"], [])
        for receiver in self.receivers.values():
            self.assertNotIn(b"from outside", receiver.payloads())
