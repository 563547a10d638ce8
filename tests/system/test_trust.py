"""A token is all it takes, and all it gives (G11): brokers without a valid one get nothing, one line in the log at both ends says why, and the
others do not notice. The forged tokens are made here by hand, as an attacker would."""
import base64
import hashlib
import hmac
import json
import re
import shutil

from clients import Paho
from harness import PATIENT_SUBACK, Stopwatch, SystemTest, hobnob, holds, wait_until


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Trust(SystemTest):
    """edge-1 and edge-3 are well and have a subscriber each; edge-2 gets the bad token and starts after them."""

    def setUp(self):
        self.fed = self.federation()
        self.bad = self.fed["edge-2"]
        self.token = self.bad.folder / "edge-2.jwt"
        self.good_token = self.token.read_text().strip()
        for name in ("edge-1", "edge-3"):
            self.fed[name].limit(**PATIENT_SUBACK)
            self.fed[name].spawn()
        for name in ("edge-1", "edge-3"):
            self.fed[name].wait_ready()
        self.fed.wait_alive(("edge-1", "edge-3"))
        self.receivers = {name: self.closing(Paho(self.fed[name])) for name in ("edge-1", "edge-3")}
        for receiver in self.receivers.values():
            receiver.subscribe("#", qos=1)
        self.publishers = {name: self.closing(Paho(self.fed[name])) for name in ("edge-1", "edge-3")}
        self.number = 0

    def undisturbed(self):
        """A message each way between the good ones, without delay."""
        for here, there in (("edge-1", "edge-3"), ("edge-3", "edge-1")):
            self.number += 1
            payload = f"good {self.number}".encode()
            watch = Stopwatch()
            self.publishers[here].publish("good", payload, 1)
            self.receivers[there].wait_payload(payload)
            self.assertLess(watch.seconds(), 1.0)
        return True

    def outside(self):
        """edge-2 is no member, owns no row, has no link; nor does it see anything of the others."""
        for name in ("edge-1", "edge-3"):
            broker = self.fed[name]
            if broker.members().get("edge-2") in ("alive", "suspect") or any(row[0] == "edge-2" for row in broker.rows()):
                return False
            if any(link["state"] == "up" for peer, link in broker.links().items() if peer not in ("edge-1", "edge-3")):
                return False
        return not any(row[0] != "edge-2" for row in self.bad.rows() if self.refused_by_both) and not any(
            link["state"] == "up" for link in self.bad.links().values())

    def refused(self, *words, refused_by_both=False, restore=lambda: None):
        """Starts edge-2 and shows that it stays outside, with a line about it at each end."""
        self.refused_by_both = refused_by_both
        self.bad.start()
        inner = self.closing(Paho(self.bad))
        inner.subscribe("#", qos=1)
        inner.publish("from/edge-2", b"smuggled", 1, retain=True)
        inner.wait_payload(b"smuggled")  # its own site is served all the same (G9)
        for name in ("edge-1", "edge-3"):
            wait_until(f"{name} says why it refuses edge-2", lambda: self.fed[name].log_lines("refus", *words))
        wait_until("edge-2 says why it is refused", lambda: self.bad.log_lines("token", *words))
        holds("edge-2 stays outside, the others go on", lambda: self.outside() and self.undisturbed(), 2.0)
        for name in ("edge-1", "edge-3"):
            # One from the gossip, one more if it tried to make a link all the same, and what it says of us; not one for every attempt.
            self.assertEqual(len(self.fed[name].log_lines("warning refused ", *words)), 1, f"one line at {name}:\n{self.fed[name].log()}")
            self.assertLessEqual(len(self.fed[name].log_lines("refus", *words)), 2 + refused_by_both, f"one line more at {name}:\n{self.fed[name].log()}")
            self.assertNotIn(b"smuggled", self.receivers[name].payloads())
        self.assertLessEqual(len(self.bad.log_lines("refuse", *words)), 4, f"no more for each that refuses:\n{self.bad.log()}")
        self.assertEqual([p for p in inner.payloads() if p.startswith(b"good")], [])
        # With its right token it is one of them again.
        self.bad.kill()
        self.token.write_text(self.good_token + "\n")
        restore()
        self.bad.start()
        self.fed.wait_alive(timeout_s=5)

    def test_an_expired_token(self):
        self.token.write_text(hobnob("token", "mint", "--issuer", self.fed.made / "issuer.key", "--broker", "edge-2", "--key",
                                     self.bad.folder / "edge-2.key", "--expires", "1s").stdout)
        verify = ("token", "verify", "--issuer", self.fed.made / "issuer.pub", self.token)
        wait_until("the token has expired a second ago", lambda: re.search(r"expired [1-9]\d* s ago", (done := hobnob(*verify, status=None)).stdout + done.stderr))
        self.refused("expired")

    def test_another_issuer(self):
        other = self.folder()
        hobnob("key", "new", "--out", other / "issuer", "--kind", "issuer")
        self.token.write_text(hobnob("token", "mint", "--issuer", other / "issuer.key", "--broker", "edge-2", "--key",
                                     self.bad.folder / "edge-2.key", "--expires", "90d").stdout)
        self.refused("issuer")

    def test_another_issuer_that_edge_2_itself_believes(self):
        """A foreign federation with our gossip key: refused from both sides."""
        other = self.folder()
        hobnob("key", "new", "--out", other / "issuer", "--kind", "issuer")
        self.token.write_text(hobnob("token", "mint", "--issuer", other / "issuer.key", "--broker", "edge-2", "--key",
                                     self.bad.folder / "edge-2.key", "--expires", "90d").stdout)
        right = (self.bad.folder / "issuer.pub").read_bytes()
        shutil.copy(other / "issuer.pub", self.bad.folder / "issuer.pub")
        self.refused("issuer", refused_by_both=True, restore=lambda: (self.bad.folder / "issuer.pub").write_bytes(right))

    def test_bound_to_another_key(self):
        """edge-3's token was stolen; the thief has only his own key."""
        other = self.folder()
        hobnob("key", "new", "--out", other / "thief", "--kind", "broker")
        self.token.write_text(hobnob("token", "mint", "--issuer", self.fed.made / "issuer.key", "--broker", "edge-2", "--key", other / "thief.key",
                                     "--expires", "90d").stdout)
        self.refused("key")

    def claims(self):
        return self.good_token.split(".")[1]

    def test_hs256_with_the_issuers_public_key_as_secret(self):
        secret = (self.fed.made / "issuer.pub").read_bytes()
        head = b64(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()) + "." + self.claims()
        self.token.write_text(head + "." + b64(hmac.new(secret, head.encode(), hashlib.sha256).digest()))
        self.refused("HS256")

    def test_alg_none(self):
        self.token.write_text(b64(json.dumps({"alg": "none", "typ": "JWT"}).encode()) + "." + self.claims() + ".")
        self.refused("the token")

    def test_alg_none_with_a_signature(self):
        self.token.write_text(b64(json.dumps({"alg": "none", "typ": "JWT"}).encode()) + "." + self.claims() + "." + self.good_token.split(".")[2])
        self.refused("none")

    def test_changed_claims_under_the_old_signature(self):
        claims = json.loads(unb64(self.claims()))
        claims["exp"] += 1000
        head, _, signature = self.good_token.split(".")
        self.token.write_text(".".join([head, b64(json.dumps(claims).encode()), signature]))
        self.refused("changed after it was signed")

    def test_a_wrong_gossip_key_is_counted_and_a_good_token_comes_in_over_a_link(self):
        other = self.folder()
        hobnob("key", "new", "--out", other / "gossip", "--kind", "gossip")
        right = (self.bad.folder / "gossip.key").read_bytes()
        shutil.copy(other / "gossip.key", self.bad.folder / "gossip.key")
        before = {name: self.fed[name].metric("hobnob_gossip_unsealed_total") for name in ("edge-1", "edge-3")}
        self.bad.start()
        for name in ("edge-1", "edge-3"):
            wait_until(f"{name} counts what it cannot open", lambda: self.fed[name].metric("hobnob_gossip_unsealed_total") >= before[name] + 3)
        self.assertEqual(self.fed["edge-1"].metric("hobnob_gossip_malformed_total"), 0)
        self.fed.wait_alive()  # by link: as a broker that slept through a change of the key
        self.bad.stop()
        (self.bad.folder / "gossip.key").write_bytes(right)
        self.bad.start()
        self.fed.wait_alive()
