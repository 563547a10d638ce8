"""Networks that pass TCP and drop UDP: brokers find each other, stay together, and go back to datagrams (P19)."""
from clients import Paho
from harness import PATIENCE_S, PATIENT_SUBACK, holds, wait_until
from weather import WeatherTest

THREE = ("edge-1", "edge-2", "edge-3")


class NoUdp(WeatherTest):
    def ways(self, broker):
        return {row["name"]: row["way"] for row in broker.api("members") if not row["self"]}

    def all_by(self, fed, way):
        return all(set(self.ways(broker).values()) == {way} for broker in fed)

    def agree(self, fed):
        states = [broker.members() for broker in fed]
        return all(len(seen) == len(states) and set(seen.values()) == {"alive"} for seen in states) and \
            len({broker.api("status")["table_hash"] for broker in fed}) == 1

    def deaths(self, fed):
        return [line for broker in fed for line in broker.log_lines("member", "is down")]

    def heard_everywhere(self, fed, hearers, payload):
        for name in THREE:
            speaker = self.closing(Paho(fed[name]))
            speaker.publish("word", payload + name.encode(), qos=1)
        wanted = {payload + name.encode() for name in THREE}
        wait_until(f"{wanted} everywhere", lambda: all(wanted <= {bytes(p) for p in hearer.payloads("word")} for hearer in hearers))

    def subscribe_everywhere(self, fed):
        hearers = [self.closing(Paho(fed[name])) for name in THREE]
        for hearer in hearers:
            hearer.subscribe("word", qos=1)
        return hearers

    def test_a_federation_forms_without_udp_and_takes_it_when_it_comes(self):
        fed, weather = self.under_weather(THREE, limits=PATIENT_SUBACK, no_udp="on")
        for broker in fed:
            broker.start()
        wait_until("all agree", lambda: self.agree(fed), timeout_s=PATIENCE_S)
        hearers = self.subscribe_everywhere(fed)
        self.heard_everywhere(fed, hearers, b"by link ")
        self.assertTrue(wait_until("all by link", lambda: self.all_by(fed, "link")))
        self.assertTrue(all(row["state"] == "up" for broker in fed for row in broker.api("links")))
        self.assertEqual(self.deaths(fed), [])
        weather.set(no_udp="off")
        wait_until("datagrams again", lambda: self.all_by(fed, "udp"), timeout_s=PATIENCE_S)
        self.heard_everywhere(fed, hearers, b"by udp ")
        self.assertEqual(self.deaths(fed), [])

    def test_udp_that_ceases_is_no_death(self):
        fed, weather = self.under_weather(THREE, limits=PATIENT_SUBACK)
        fed.start()
        hearers = self.subscribe_everywhere(fed)
        self.heard_everywhere(fed, hearers, b"before ")
        weather.set(no_udp="on")
        wait_until("all by link", lambda: self.all_by(fed, "link"), timeout_s=PATIENCE_S)
        holds("nobody is held dead", lambda: self.deaths(fed) == [], 5)  # longer than a suspicion lasts
        self.heard_everywhere(fed, hearers, b"after ")
        self.assertEqual(self.deaths(fed), [])
        self.assertTrue(self.agree(fed))
        metrics = fed["edge-1"].metrics()
        self.assertEqual(metrics["hobnob_gossip_members_by_link"], 2)
        self.assertGreater(metrics["hobnob_gossip_link_packets_sent_total"], 10)
