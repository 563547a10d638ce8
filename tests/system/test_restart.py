"""What a broker acknowledged is there after a restart, a kill -9 and a full disk; with clients that are not ours."""
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path

from clients import V5, V311, MosquittoSub, Paho, Raw, mosquitto_pub, packet, raw_connect, raw_publish, text
from exact import Exact
from harness import DEADLINE_S, MORTAL, PATIENCE_S, Broker, SystemTest, failed, hobnob, tail, wait_until
from ports import free_ports

ROUND_S = 1  # what is left is told in whole seconds, rounded up, by clocks that are set a little now and then
KILL_ROUNDS = int(os.environ.get("HOBNOB_KILL_ROUNDS", 10))
SEED = int(os.environ.get("HOBNOB_KILL_SEED", random.randrange(1 << 31)))


class RestartTest(SystemTest):
    def broker(self, more="", kind=Broker, **options):
        """A broker alone, running, with a data_dir of its own."""
        broker = kind("solo", self.folder(), **options)
        mqtt, ws, admin = free_ports(1, bases=3)
        broker.config.write_text(f"name: solo\ndata_dir: data\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  ws: 127.0.0.1:{ws}\n  admin: 127.0.0.1:{admin}\n{more}")
        self.addCleanup(self._end, broker)
        return broker.start()

    def _end(self, broker):
        faults = broker.faults()
        if broker.wanted and broker.stop() != 0:
            faults.append(f"exit status {broker.process.returncode} after SIGTERM")
        if faults or failed(self):
            print(f"\n{self.id()}\n{tail(broker.log())}", flush=True)
        self.assertEqual(faults, [])

    def wait_for(self, everything, subscriber, timeout_s=2 * DEADLINE_S):
        """Until all of it, (publisher, number), has come to an Exact subscriber."""
        missing = lambda: everything - {(name, number) for name, number, _, _ in list(subscriber.received)}
        try:
            wait_until(f"all have come to {subscriber.id}", lambda: subscriber.faults or not missing(), timeout_s)
        except AssertionError:
            self.fail(f"{len(missing())} of {len(everything)} have not come to {subscriber.id} (connected {subscriber.connected}, {len(subscriber.held)} QoS 2 ids held): {sorted(missing())[:20]}")

    def again(self, broker, how):
        """Ends it, orderly or not, and starts it anew."""
        if how == "kill":
            broker.kill()
        else:
            self.assertEqual(broker.stop(), 0)
        broker.start()


class Restart(RestartTest):
    def test_queue_of_an_absent_client_survives(self):
        for sync in ("full", "normal", "off"):
            broker = self.broker(f"storage: {{sync: {sync}}}\n")
            for version, how in ((V311, "stop"), (V5, "stop")) + (((V311, "kill"), (V5, "kill")) if sync != "off" else ()):
                with self.subTest(sync=sync, version=version, how=how):
                    client_id = f"absent-{version}-{how}"
                    first = Paho(broker, client_id, version=version, clean=False, expiry_s=3600)
                    first.subscribe(f"{client_id}/#", qos=2)
                    first.disconnect()
                    sent = [(f"{client_id}/{i % 3}", f"message {i}".encode(), 1 + i % 2) for i in range(20)]
                    publisher = Paho(broker)
                    for topic, payload, qos in sent:
                        publisher.publish(topic, payload, qos)
                    publisher.close()
                    self.again(broker, how)
                    second = self.closing(Paho(broker, client_id, version=version, clean=False, expiry_s=3600))
                    self.assertTrue(second.session_present)
                    got = second.wait_count(len(sent))
                    for qos in (1, 2):  # paho shows QoS 2 at its PUBREL, so the two are not in one order
                        self.assertEqual([(m.topic, m.payload, m.qos) for m in got if m.qos == qos], [item for item in sent if item[2] == qos])
                    mosquitto_pub(broker, f"{client_id}/more", b"and the subscription too", 1)
                    second.wait_payload(b"and the subscription too")
                    second.close()

    def test_mosquitto_sub_finds_its_session(self):
        broker = self.broker()
        keeps = ("-c", "-i", "keeper")
        MosquittoSub(broker, "post/#", qos=1, options=keeps).close()
        mosquitto_pub(broker, "post/1", b"while you were away", 1)
        self.again(broker, "kill")
        subscriber = self.closing(MosquittoSub(broker, "post/#", qos=1, options=keeps))
        subscriber.wait_payload(b"while you were away")

    def test_retained_messages_survive_and_deleted_ones_do_not_come_back(self):
        broker = self.broker()
        for how in ("kill", "stop"):
            for i in range(10):
                mosquitto_pub(broker, f"sign/{i}", f"{how} {i}".encode(), 1, retain=True)
            mosquitto_pub(broker, "sign/3", b"", 1, retain=True)
            self.again(broker, how)
            late = Paho(broker)
            late.subscribe("sign/#", qos=1)
            late.wait_count(9)
            self.assertEqual(sorted(late.payloads()), sorted(f"{how} {i}".encode() for i in range(10) if i != 3))
            self.assertTrue(all(message.retain for message in late.messages))
            late.close()

    def test_properties_and_subscription_options_survive(self):
        broker = self.broker()
        client = Paho(broker, "exact", clean=False, expiry_s=3600)
        client.subscribe("p/#", qos=1, identifier=4711, noLocal=True, retainAsPublished=True)
        client.disconnect()
        publisher = Paho(broker)
        publisher.publish("p/x", b"\0\xff", 1, retain=True, UserProperty=[("b", "2"), ("a", "1"), ("b", "2")], ContentType="text/\u00e9", MessageExpiryInterval=10_000,
                          CorrelationData=b"\x01\x02", ResponseTopic="answer/here", PayloadFormatIndicator=0)
        publisher.close()
        self.again(broker, "kill")
        client = self.closing(Paho(broker, "exact", clean=False, expiry_s=3600))
        message = client.wait_payload(b"\0\xff")
        told = message.properties
        self.assertEqual((told.UserProperty, told.ContentType, told.CorrelationData, told.ResponseTopic), ([("b", "2"), ("a", "1"), ("b", "2")], "text/\u00e9", b"\x01\x02", "answer/here"))
        self.assertEqual(told.SubscriptionIdentifier, [4711])
        self.assertTrue(9000 <= told.MessageExpiryInterval <= 10_000, told.MessageExpiryInterval)
        self.assertTrue(message.retain)
        client.publish("p/mine", b"not for me", 1)
        other = Paho(broker)
        other.publish("p/other", b"for you", 1)
        other.close()
        client.wait_payload(b"for you")
        self.assertNotIn(b"not for me", client.payloads())

    def test_the_will_of_who_does_not_come_back_is_sent_after_the_next_start(self):
        for how in ("stop", "kill"):
            with self.subTest(how=how):
                broker = self.broker()
                watcher = Paho(broker, "watcher", clean=False, expiry_s=3600)
                watcher.subscribe("status", qos=1)
                watcher.disconnect()
                gone = Paho(broker, "gone", version=V311, clean=False, will=("status", b"gone", 1, True))
                delayed = Paho(broker, "back", clean=False, expiry_s=3600, will=("status", b"not yet", 1, False), will_delay_s=600)
                self.again(broker, how)
                gone.close()
                delayed.close()
                self.assertTrue(self.closing(Paho(broker, "back", clean=False, expiry_s=3600)).session_present)
                watcher = self.closing(Paho(broker, "watcher", clean=False, expiry_s=3600))
                self.assertEqual([(m.topic, m.payload, m.qos) for m in watcher.wait_count(1)], [("status", b"gone", 1)])
                self.assertEqual(broker.stop(), 0)

    def test_sessions_that_end_with_their_connection_are_not_kept(self):
        broker = self.broker()
        client = self.closing(Paho(broker, "passing"))
        client.subscribe("x", qos=1)
        client.drop()
        broker.kill()
        broker.start()
        self.assertEqual(broker.api("status")["sessions"], 0)

    def connect(self, broker, client_id):
        """A bare 3.1.1 client with a kept session, and whether the broker knew it."""
        client = self.closing(Raw(broker))
        first, body = client.send(raw_connect(client_id, clean=False)).packet()
        self.assertEqual((first, body[1]), (0x20, 0))
        return client, bool(body[0] & 1)

    def test_qos_2_from_a_client_goes_on_where_it_was(self):
        broker = self.broker()
        watcher = Paho(broker, "watcher", clean=False, expiry_s=3600)
        watcher.subscribe("two", qos=2)
        watcher.disconnect()
        client, _ = self.connect(broker, "sender")
        self.assertEqual(client.send(raw_publish("two", b"once", 2, 77)).packet(), (0x50, b"\0\x4d"))  # PUBREC
        self.again(broker, "kill")
        client, present = self.connect(broker, "sender")
        self.assertTrue(present)
        self.assertEqual(client.send(raw_publish("two", b"once", 2, 77, dup=True)).packet(), (0x50, b"\0\x4d"))
        self.assertEqual(client.send(packet(0x62, b"\0\x4d")).packet(), (0x70, b"\0\x4d"))  # PUBREL, PUBCOMP
        self.again(broker, "kill")
        client, _ = self.connect(broker, "sender")
        self.assertEqual(client.send(raw_publish("two", b"another", 2, 77)).packet(), (0x50, b"\0\x4d"))
        watcher = self.closing(Paho(broker, "watcher", clean=False, expiry_s=3600))
        watcher.wait_payload(b"another")
        self.assertEqual(watcher.payloads(), [b"once", b"another"])

    def test_qos_2_to_a_client_goes_on_where_it_was(self):
        broker = self.broker()
        client, _ = self.connect(broker, "taker")
        self.assertEqual(client.send(packet(0x82, b"\0\1" + text("two") + b"\2")).packet(), (0x90, b"\0\1\2"))
        mosquitto_pub(broker, "two", b"once", 2)
        first, body = client.packet()
        packet_id = body[5:7]
        self.assertEqual((first, body[7:]), (0x34, b"once"))
        self.again(broker, "kill")
        client, present = self.connect(broker, "taker")
        self.assertTrue(present)
        self.assertEqual(client.packet(), (0x3c, body))  # the same once more: DUP, same packet id
        self.assertEqual(client.send(packet(0x50, packet_id)).packet(), (0x62, packet_id))  # PUBREC, PUBREL
        self.again(broker, "kill")
        client, _ = self.connect(broker, "taker")
        self.assertEqual(client.packet(), (0x62, packet_id))  # PUBREL again, and not the publication
        client.send(packet(0x70, packet_id))
        mosquitto_pub(broker, "two", b"next", 2)
        self.assertTrue(client.packet()[1].endswith(b"next"))

    def test_a_clock_in_the_past_gives_what_is_kept_no_longer_life(self):
        """What the store knows is moved ahead, which is the same as a clock that is behind."""
        broker = self.broker()
        absent = Paho(broker, "absent", clean=False, expiry_s=7200)
        absent.subscribe("q", qos=1)
        absent.drop()
        Paho(broker, "brief", clean=False, expiry_s=100).drop()
        publisher = self.closing(Paho(broker))
        publisher.publish("r", b"retained", 1, retain=True, MessageExpiryInterval=3600)
        publisher.publish("q", b"queued", 1, MessageExpiryInterval=3600)
        wait_until("both are gone", lambda: broker.api("status")["clients"] == 1)
        self.assertEqual(broker.stop(), 0)
        days_ms = 10 * 24 * 3600 * 1000
        with contextlib.closing(sqlite3.connect(broker.folder / "data" / "hobnob.db")) as database, database:
            known, = database.execute("SELECT value FROM numbers WHERE name = 'wall_ms'").fetchone()
            self.assertLess(abs(known - time.time() * 1000), DEADLINE_S * 1000)  # the orderly end kept it
            for table, column in (("numbers", "value"), ("retained", "expires_wall_ms"), ("messages", "expires_wall_ms"), ("sessions", "ends_wall_ms")):
                where = " WHERE name = 'wall_ms'" if table == "numbers" else ""
                self.assertGreater(database.execute(f"UPDATE {table} SET {column} = {column} + {days_ms}{where}").rowcount, 0, table)
        for how in ("kill", "stop", "kill"):
            broker.start()
            self.assertEqual(len(broker.log_lines("warning clock", "behind the last time that the store knows")), 1)  # and once more it is right
            reader = self.closing(Paho(broker))
            reader.subscribe("r", qos=1)
            reader.wait_payload(b"retained")
            self.assertLessEqual(reader.messages[0].properties.MessageExpiryInterval, 3600 + ROUND_S)
            wait_until("all is on the disk", lambda: broker.metric("hobnob_store_pending_bytes") == 0)
            if how == "kill":
                broker.kill()
            else:
                self.assertEqual(broker.stop(), 0)
            with contextlib.closing(sqlite3.connect(broker.folder / "data" / "hobnob.db")) as database:
                for name, most_s, ends in (("retained", 3600, "SELECT expires_wall_ms FROM retained"), ("queued", 3600, "SELECT expires_wall_ms FROM messages"),
                                           ("absent", 7200, "SELECT ends_wall_ms FROM sessions WHERE client_id = 'absent'"),
                                           ("brief", 100, "SELECT ends_wall_ms FROM sessions WHERE client_id = 'brief'")):
                    row = database.execute(ends).fetchone()
                    if row is not None or name != "brief":  # a busy machine may take longer than it has to live
                        self.assertLessEqual(row[0] / 1000 - time.time(), most_s + ROUND_S, name)
        broker.start()
        again = self.closing(Paho(broker, "absent", clean=False, expiry_s=7200))
        again.wait_payload(b"queued")
        self.assertLessEqual(again.messages[0].properties.MessageExpiryInterval, 3600 + ROUND_S)

    def test_in_memory_nothing_is_kept_and_status_says_so(self):
        broker = self.broker()
        self.assertEqual(broker.api("status")["store"]["sync"], "full")
        self.assertEqual(broker.api("status")["store"]["state"], "good")
        mosquitto_pub(broker, "x", b"1", 1, retain=True)
        wait_until("a commit is counted", lambda: broker.metric("hobnob_store_commits_total") > 0)
        self.assertEqual(broker.metric("hobnob_store_failing"), 0)
        self.assertIn("store sync", hobnob("status", "--admin", broker.admin).stdout)


class KillNine(RestartTest):
    """kill -9 at random moments under load: nothing acknowledged is lost, nothing of QoS 2 comes twice."""

    def load(self, broker):
        publishers = [Exact(broker, "p1", 4, publish=("kill/1", [1, 2])), Exact(broker, "p2", 5, publish=("kill/2", [2])),
                      Exact(broker, "p3", 5, publish=("kill/3", [1]), retain_every=7)]
        subscribers = [Exact(broker, "s1", 4, follow=("kill/#", 2)), Exact(broker, "s2", 5, follow=("kill/+", 2)), Exact(broker, "s3", 5, follow=("kill/#", 1))]
        for client in publishers + subscribers:
            self.closing(client)
        wait_until("all are connected and subscribed", lambda: any(c.faults for c in publishers + subscribers) or all(c.connected for c in publishers) and all(c.granted for c in subscribers))
        return publishers, subscribers

    def check(self, publishers, subscriber):
        for publisher in publishers:
            numbers = [number for name, number, _, _ in subscriber.received if name == publisher.id]
            lost = sorted(set(publisher.acked) - set(numbers))
            self.assertEqual(lost, [], f"acknowledged to {publisher.id} and lost for {subscriber.id}")
            exact = [number for name, number, qos, _ in subscriber.received if name == publisher.id and qos == 2]
            twice = sorted({number for number in exact if exact.count(number) > 1}) if len(set(exact)) < len(exact) else []
            self.assertEqual(twice, [], f"QoS 2 by {publisher.id} came twice to {subscriber.id}")
            for qos in (1, 2):
                firsts = list(dict.fromkeys(number for name, number, at, _ in subscriber.received if name == publisher.id and at == qos))
                self.assertEqual(firsts, sorted(firsts), f"order of {publisher.id} at {subscriber.id}, QoS {qos}")

    def test_random_kill_nine_under_load(self):
        self.hammer("full", KILL_ROUNDS)

    def test_random_kill_nine_under_load_without_fsync(self):
        self.hammer("normal", KILL_ROUNDS // 3)

    def test_random_kill_nine_amid_the_start(self):
        def die(broker, dice):
            broker.kill()
            for _ in range(dice.randrange(4)):
                broker.spawn()
                time.sleep(dice.random() ** 2 * 0.15)
                broker.kill()
        self.hammer("full", KILL_ROUNDS // 3, die)

    def test_random_kill_nine_amid_an_orderly_end(self):
        def die(broker, dice):
            broker.process.terminate()
            time.sleep(dice.random() ** 2 * 0.15)
            broker.kill()
        self.hammer("full", KILL_ROUNDS // 3, die)

    def test_random_kill_nine_while_the_disk_is_full(self):
        def die(broker, dice):
            broker.disk.fill()
            time.sleep(dice.random() * 0.3)
            broker.kill()
            broker.disk.make_room()
        self.hammer("full", KILL_ROUNDS // 3, die, kind=OnSmallDisk, size="4m")

    def hammer(self, sync, rounds, die=lambda broker, dice: broker.kill(), **options):
        dice = random.Random(SEED)
        print(f"        HOBNOB_KILL_SEED={SEED}, {rounds} rounds, sync {sync}", flush=True)
        broker = self.broker(f"storage: {{sync: {sync}}}\n", **options)
        if "size" in options:
            self.addCleanup(broker.disk.close)
        publishers, subscribers = self.load(broker)
        everyone = publishers + subscribers
        pahos = [self.closing(Paho(broker, f"paho-{version}", version=version, clean=False, expiry_s=3600, follow=[("kill/#", 2)])) for version in (V311, V5)]
        faults = lambda: [fault for client in everyone for fault in client.faults]
        wait_until("paho is subscribed", lambda: all(p.following() for p in pahos))
        for publisher in publishers:
            publisher.publishing.set()
        for _ in range(rounds):
            before = [(len(p.acked), p.connects) for p in publishers]
            wait_until("publishers are served again", lambda: faults() or all(len(p.acked) > acked for p, (acked, _) in zip(publishers, before)), 30)
            self.assertEqual(faults(), [])
            time.sleep(dice.random() ** 2 * 0.6)  # the random moment
            die(broker, dice)
            broker.start()
        for publisher in publishers:
            publisher.drain(60)
        broker.kill()  # what was acknowledged last, too
        broker.start()
        everything = {(p.id, number) for p in publishers for number in p.acked}
        for subscriber in subscribers:
            self.wait_for(everything, subscriber)
        self.assertEqual(faults(), [])
        for subscriber in subscribers:
            self.check(publishers, subscriber)
        for client in pahos:
            wait_until(f"all have come to {client}", lambda: everything <= {(n, int(i)) for n, i, _ in (m.payload.decode().split() for m in list(client.messages))}, 60)
        late = self.closing(Paho(broker))
        late.subscribe("kill/3", qos=1)
        late.wait_count(1)
        self.assertEqual(late.payloads(), [f"p3 {publishers[2].last_retained} 1".encode()])
        print(f"        {len(everything)} acknowledged, {sum(len(s.received) for s in subscribers)} received, {publishers[0].connects} connections", flush=True)


class SmallDisk:
    """A mount namespace that has a small tmpfs in place of a folder, as long as this object is open."""

    def __init__(self, folder, size):
        script = f'mount -t tmpfs -o size={size} tmpfs "{folder}" && echo made; read line'
        self.folder = folder
        self.process = subprocess.Popen([*MORTAL, "unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.process.stdout.readline() != b"made\n":
            self.close()
            raise unittest.SkipTest(f"no mount namespace to be had: {self.why}")

    def path(self, name):
        """Where the rest of the system sees a file of it."""
        return Path(f"/proc/{self.process.pid}/root{self.folder}/{name}")

    def fill(self):
        with open(self.path("fill"), "wb", buffering=0) as out:
            for size in (65536, 4096, 512, 1):
                try:
                    while out.write(b"\0" * size):
                        pass
                except OSError:
                    pass

    def make_room(self):
        self.path("fill").unlink()

    def close(self):
        self.process.stdin.close()
        self.why = self.process.stderr.read().decode().strip()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        self.process.stderr.close()


class OnSmallDisk(Broker):
    def __init__(self, name, folder, size):
        super().__init__(name, folder)
        data = self.folder / "data"
        data.mkdir()
        self.disk = SmallDisk(data, size)

    def command(self):
        return ["nsenter", "-t", str(self.disk.process.pid), "-m", *super().command()]


class FullDisk(RestartTest):
    def small(self):
        broker = self.broker(kind=OnSmallDisk, size="2m")
        self.addCleanup(broker.disk.close)
        return broker

    def test_full_disk_refuses_what_it_cannot_keep_and_recovers(self):
        broker = self.small()
        absent = Paho(broker, "absent", clean=False, expiry_s=3600)
        absent.subscribe("kept/#", qos=2)
        absent.disconnect()
        watcher = self.closing(Paho(broker))
        watcher.subscribe("live/#", qos=1)
        publisher = self.closing(Paho(broker))
        publisher.publish("kept/before", b"before", 1)
        broker.disk.fill()
        held = publisher.publish("kept/held", b"h" * 20000, 1, wait=False)  # the disk's answer to this one is not known before
        wait_until("/readyz says 503", lambda: broker.get("/readyz")[0] == 503)
        self.assertIn("full disk: make room", broker.get("/readyz")[1])
        self.assertEqual(broker.get("/healthz")[0], 200)
        self.assertEqual(broker.metric("hobnob_store_failing"), 1)
        self.assertFalse(held.is_published())
        status = json.loads(hobnob("status", "--admin", broker.admin, "--json").stdout)["status"]
        self.assertEqual((status["ready"], status["store"]["state"]), (False, "failing"))
        self.assertIn("full disk", status["store"]["reason"])

        raw = self.closing(Raw(broker))
        raw.send(raw_connect("five", version=5))
        self.assertEqual(raw.packet()[0], 0x20)
        refused = packet(0x32, text("kept/refused") + b"\0\x09\0" + b"no")
        first, body = raw.send(refused).packet()
        self.assertEqual((first, body[:3]), (0x40, b"\0\x09\x97"))
        old = self.closing(Raw(broker))
        old.send(raw_connect("three"))
        self.assertEqual(old.packet()[0], 0x20)
        self.assertIsNone(old.send(raw_publish("kept/refused", b"no", 1, 9)).packet(), "a 3.1.1 client is closed")
        mosquitto_pub(broker, "live/zero", b"goes on", 0)
        watcher.wait_payload(b"goes on")
        mosquitto_pub(broker, "live/one", b"needs no disk", 1)
        watcher.wait_payload(b"needs no disk")
        wait_until("more attempts", lambda: broker.metric("hobnob_store_failures_total") >= 3)
        self.assertEqual(len(broker.log_lines("cannot write")), 1, broker.log())

        broker.disk.make_room()
        wait_until("/readyz says 200", lambda: broker.get("/readyz")[0] == 200)
        wait_until("what was held is acknowledged", held.is_published)
        publisher.publish("kept/after", b"after", 2)
        self.assertEqual(len(broker.log_lines("writes again")), 1, broker.log())
        self.again(broker, "kill")
        absent = self.closing(Paho(broker, "absent", clean=False, expiry_s=3600))
        absent.wait_payload(b"after")
        self.assertEqual(absent.payloads(), [b"before", b"h" * 20000, b"after"])

    def test_what_the_log_takes_of_a_small_disk_is_used_again(self):
        broker = self.small()
        publisher = self.closing(Paho(broker))
        for i in range(60):  # three times the disk, to a few topics
            publisher.publish(f"kept/{i % 3}", bytes([i]) * 100000, 1, retain=True)
        self.assertEqual(broker.metric("hobnob_store_failures_total"), 0)
        self.assertEqual(broker.log_lines("cannot write"), [], broker.log())
        broker.kill()
        broker.disk.fill()
        broker.start()  # nothing is left but what the log of the run before takes
        late = self.closing(Paho(broker))
        late.subscribe("kept/#", qos=1)
        late.wait_count(3)
        self.assertEqual(sorted(late.payloads()), [bytes([i]) * 100000 for i in (57, 58, 59)])

    def test_full_disk_and_back_under_load_loses_nothing_acknowledged(self):
        broker = self.small()
        subscriber = self.closing(Exact(broker, "s", 5, follow=("load/#", 2)))
        wait_until("subscribed", lambda: subscriber.granted)
        publishers = [self.closing(Exact(broker, f"p{i}", version, publish=(f"load/{i}", [1, 2]))) for i, version in enumerate((4, 5, 5))]
        for publisher in publishers:
            publisher.publishing.set()
        grower, grown = self.closing(Paho(broker)), []

        def failing():
            """The load alone may go on in what the log has of the disk already: something new has to be kept."""
            grown.append(f"grown/{len(grown)}")
            grower.publish(grown[-1], b"x" * 10_000, 0, retain=True)
            return broker.get("/readyz")[0] == 503
        for _ in range(3):
            before = [len(p.acked) for p in publishers]
            wait_until("all are served", lambda: all(len(p.acked) > n for p, n in zip(publishers, before)))
            broker.disk.fill()
            wait_until("/readyz says 503", failing)
            broker.disk.make_room()
            wait_until("/readyz says 200", lambda: broker.get("/readyz")[0] == 200)
            for topic in grown:
                grower.publish(topic, b"", 0, retain=True)
            grown.clear()
        for publisher in publishers:
            publisher.drain(30)
        self.again(broker, "kill")
        everything = {(p.id, number) for p in publishers for number in p.acked}
        self.wait_for(everything, subscriber)
        self.assertEqual([fault for client in publishers + [subscriber] for fault in client.faults], [])
        exact = [(n, i) for n, i, qos, _ in subscriber.received if qos == 2]
        self.assertEqual(len(exact), len(set(exact)))
