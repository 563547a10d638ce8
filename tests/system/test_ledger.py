"""What happens to a link, and what a limit drops on its way over one, is told: to clients, to Prometheus and to who asks (G13)."""
from clients import MosquittoSub, Paho
from harness import SystemTest, hobnob, wait_until

EACH = 100
PAYLOAD = b"x" * 1000


class Ledger(SystemTest):
    def test_a_broker_that_is_away_and_a_queue_that_is_full(self):
        fed = self.federation(("edge-1", "edge-2"), limits={"link_queue_bytes": 20_000}).start()
        first, second = fed["edge-1"], fed["edge-2"]
        keeper = Paho(second, "keeper", clean=False, expiry_s=3600)
        keeper.subscribe("ledger/#", qos=1)
        publisher = self.closing(Paho(first))
        publisher.publish("ledger/t", b"first", 1)
        keeper.wait_payload(b"first")
        keeper.disconnect()
        watcher = self.closing(MosquittoSub(first, "$SYS/federation/#"))
        wait_until("up", lambda: watcher.payloads("$SYS/federation/links/edge-2/state") == [b"up"])
        wait_until("nothing is on its way", lambda: first.links()["edge-2"]["outbox_messages"] == 0)
        second.kill()
        wait_until("why it is not", lambda: watcher.payloads("$SYS/federation/links/edge-2/state") == [b"up", b"lost: its connection has ended"])
        for _ in range(EACH):
            publisher.publish("ledger/t", PAYLOAD, 1)
        link = first.links()["edge-2"]
        dropped = EACH - link["outbox_messages"]
        self.assertGreater(dropped, EACH // 2)
        self.assertEqual((link["dropped"], link["dropped_by"]["link_queue_bytes"]), (dropped, dropped))
        self.assertEqual(first.metrics()['hobnob_link_dropped_total{peer="edge-2",limit="link_queue_bytes"}'], dropped)
        wait_until("the last count is told", lambda: str(dropped).encode() in watcher.payloads("$SYS/federation/links/edge-2/dropped/link_queue_bytes"))
        table = hobnob("links", "--admin", first.admin).stdout
        self.assertIn("link_queue_bytes", table)
        self.assertLessEqual(max(map(len, table.splitlines())), 100, table)

        second.spawn()
        second.wait_ready()
        fed.wait_alive()
        keeper = self.closing(Paho(second, "keeper", clean=False, expiry_s=3600))
        wait_until("the rest has come", lambda: keeper.payloads().count(PAYLOAD) == EACH - dropped)
        got = second.links()["edge-1"]
        self.assertEqual((got["publications_received"], got["lost"], got["reordered"]), (EACH - dropped, 0, 0))
        wait_until("up again", lambda: watcher.payloads("$SYS/federation/links/edge-2/state")[-1] == b"up")
