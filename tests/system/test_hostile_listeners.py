"""Every way in, used by somebody who means harm: what a stranger may cost, and that those beside him are served as before."""
import os
import signal
import socket
import ssl
import struct
import subprocess
import time
import unittest

from certificates import Authority
from clients import Paho, Raw, raw_connect
from harness import PATIENCE_S, PATIENT, SLOWER, VALGRIND, Stopwatch, environment, run, wait_until
from test_listeners import ACCEPTED, NOT_AUTHORISED, ListenerTest

SO_TIMESTAMPNS = 35  # of Linux; socket does not name it
PINGREQ, PINGRESP = b"\xc0\0", (0xd0, b"")


def greeting(*options):
    """The first record that openssl s_client sends with these options."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{server.getsockname()[1]}", *options], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection, _ = server.accept()
        with connection:
            bytes_ = b""
            while len(bytes_) < 5 or len(bytes_) < 5 + int.from_bytes(bytes_[3:5], "big"):
                bytes_ += connection.recv(65536)
        client.wait(PATIENCE_S)
        return bytes_


def told_when(one):
    """Reads a byte; when the kernel had it, in seconds."""
    _, extra, _, _ = one.recvmsg(1, socket.CMSG_SPACE(16))
    seconds, nanoseconds = struct.unpack("qq", extra[0][2])
    return seconds + nanoseconds / 1e9


class Handshakes(ListenerTest):
    COSTLY = ["ffdhe2048", "ffdhe8192", "P-521", "X448"]

    def first_record(self, port, first):
        """The type of the first record that answers, 22 for a handshake and 21 for an alert."""
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as raw:
            raw.sendall(first)
            return raw.recv(1)[0]

    def test_who_asks_for_costly_arithmetic_gets_none(self):
        site = self.secure()
        for group in self.COSTLY:
            self.assertEqual(self.first_record(site.ports["a"], greeting("-tls1_3", "-groups", group)), 21, group)
        self.assertEqual(self.first_record(site.ports["a"], greeting("-tls1_2", "-groups", "P-521")), 21)
        wait_until("the log says why", lambda: site.log_lines("client_refused", "none of the groups X25519, P-256 and P-384: let it offer one"))
        for group in ("X25519", "P-256", "P-384"):
            self.assertEqual(self.first_record(site.ports["b"], greeting("-tls1_3", "-groups", group)), 22, group)

    def test_nor_does_another_broker(self):
        federation = self.federation(["one"])
        federation.start()
        port = federation["one"].port("peers")
        for group in self.COSTLY + ["P-384"]:
            self.assertEqual(self.first_record(port, greeting("-tls1_3", "-groups", group)), 21, group)
        for group in ("X25519", "P-256"):
            self.assertEqual(self.first_record(port, greeting("-tls1_3", "-groups", group)), 22, group)

    def test_a_crowd_of_them_is_served_beside_the_others(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}")
        healthy = self.raw(site.ports["a"], raw_connect("healthy"))
        self.assertEqual(healthy.packet(), ACCEPTED)
        crowd = [self.raw(site.ports["b"]).socket for _ in range(600)]
        for one in (healthy.socket, *crowd):
            one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        wait_until("all are in", lambda: site.metric("hobnob_client_connections_arriving") == 600)
        first = greeting("-tls1_3")
        os.kill(site.process.pid, signal.SIGSTOP)  # so that it finds all of it at once
        for one in crowd:
            one.sendall(first)
        healthy.send(PINGREQ)
        os.kill(site.process.pid, signal.SIGCONT)
        healthy_at = told_when(healthy.socket)
        self.assertEqual(self.tls(site, "b").send(raw_connect("late")).packet(), ACCEPTED)
        self.assertLess(sum(told_when(one) < healthy_at for one in crowd), 300)

    def test_who_hangs_up_while_it_waits_costs_nothing(self):
        site = self.secure(listen="mqtts: 127.0.0.1:{a}")
        first = greeting("-tls1_3")
        os.kill(site.process.pid, signal.SIGSTOP)
        for _ in range(500):
            with socket.create_connection(("127.0.0.1", site.ports["a"]), PATIENCE_S) as one:
                one.sendall(first)
        os.kill(site.process.pid, signal.SIGCONT)
        self.assertEqual(self.tls(site).send(raw_connect("late")).packet(), ACCEPTED)
        wait_until("all are gone", lambda: site.metric("hobnob_client_connections_arriving") == 0)


def with_files(daemon, count):
    """The daemon may have so many open files."""
    command = daemon.command
    daemon.command = lambda: ["prlimit", f"--nofile={count}:{count}", *command()]
    return daemon


class Descriptors(ListenerTest):
    def keep_nobody_out(self, letter, first, more=""):
        """300 connections that begin with these bytes and stay, where there are descriptors for about 170."""
        site = with_files(self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}\nws: 127.0.0.1:{c}", more=more, start=False), 256)
        site.start()
        self.addCleanup(self._end, site)
        healthy = self.raw(site.ports["a"], raw_connect("healthy"))
        self.assertEqual(healthy.packet(), ACCEPTED)
        crowd = []
        for i in range(300):
            crowd.append(self.raw(site.ports[letter]))
            try:
                crowd[-1].send(first)
            except ConnectionError:
                pass
            if i % 20 == 19:
                self.assertEqual(self.raw(site.ports["a"], raw_connect(f"plain{i}")).packet(), ACCEPTED)
                self.assertEqual(self.tls(site, "b").send(raw_connect(f"tls{i}")).packet(), ACCEPTED)
        self.assertGreater(site.metric("hobnob_client_connections_displaced_total"), 50)
        self.assertEqual(healthy.send(PINGREQ).packet(), PINGRESP)
        wait_until("the log says what to do", lambda: site.log_lines("descriptors", "was closed", "LimitNOFILE"))
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("files can be read", lambda: site.log_lines("reload", "as they are now"))

    def test_silent_connections_keep_nobody_out(self):
        self.keep_nobody_out("a", b"")

    def test_nor_do_half_handshakes(self):
        self.keep_nobody_out("b", b"\x16\x03\x01")

    def test_nor_do_half_requests(self):
        self.keep_nobody_out("c", b"GET /mqtt HTTP/1.1\r\n")

    def test_nor_does_who_was_refused_and_stays(self):
        self.keep_nobody_out("a", b"\xff" * 20)
        self.keep_nobody_out("c", b"GET / HTTP/1.1\r\n\r\n")

    def test_strangers_at_the_port_of_brokers_leave_them_to_clients_and_links(self):
        federation = self.federation(["one", "two"], limits=PATIENT)
        one = with_files(federation["one"], 256)
        one.start()
        crowd = [self.raw(one.port("peers"), b"\x16\x03\x01") for _ in range(300)]
        wait_until("all have come", lambda: one.metric("hobnob_web_accepted_total") >= 300)
        self.assertLessEqual(one.metrics()['hobnob_web_open{kind="peers"}'], 32)
        for i in range(100):
            self.assertEqual(self.raw(one.mqtt_port, raw_connect(f"c{i}")).packet(), ACCEPTED)
        self.assertEqual(one.get("/readyz")[0], 200)
        federation["two"].start()
        federation.wait_alive()
        subscriber = self.closing(Paho(federation["two"], client_id="far"))
        subscriber.subscribe("t", qos=1)
        publisher = self.closing(Paho(one, client_id="near"))
        publisher.publish("t", b"by a link", qos=1)
        subscriber.wait_payload(b"by a link")
        for stranger in crowd:
            stranger.close()

    def test_silent_connections_to_the_admin_port_keep_no_probe_out(self):
        site = self.secure()
        port = site.port("admin")
        crowd = [self.raw(port, b"GET /re") for _ in range(60)]
        watch = Stopwatch()
        wait_until("it is answered", lambda: site.get("/readyz")[0] == 200)
        self.assertLess(watch.seconds(), 5)
        for one in crowd:
            one.close()

    @unittest.skipIf(VALGRIND, "valgrind has descriptors of its own beyond the limit")
    def test_a_limit_that_cannot_be_kept_is_told_at_the_start(self):
        site = with_files(self.secure(start=False), 80)
        done = run(*site.command(), env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("80 open files are too few", done.stderr)
        self.assertIn("LimitNOFILE", done.stderr)
        site = with_files(self.secure(more="limits: {{clients_max: 500}}\n", start=False), 256)
        site.start()
        self.addCleanup(self._end, site)
        self.assertTrue(site.log_lines("descriptors", "limits.clients_max is 500", "leaves room for 1", "LimitNOFILE"), site.log())


class Tickets(ListenerTest):
    """A session that is resumed has its client's certificate from the ticket."""

    def connect(self, site, context, session=None):
        raw = Raw.__new__(Raw)
        raw.socket, raw.buffer = context.wrap_socket(socket.create_connection(("127.0.0.1", site.ports["a"]), PATIENCE_S), server_hostname="localhost", session=session), b""
        self.addCleanup(raw.close)
        self.assertEqual(raw.send(raw_connect("c")).packet(), ACCEPTED)
        return raw.socket.session, raw.socket.session_reused

    def context(self, version, certificate):
        context = ssl.create_default_context(cafile=self.ca.crt)
        context.minimum_version = context.maximum_version = version
        context.load_cert_chain(*certificate)
        return context

    def test_the_name_stays_until_the_certificate_expires(self):
        site = self.secure(tls=", client_ca: ca.crt", anonymous="false")
        end = time.time() + 12 * SLOWER
        short = self.ca.sign("short", end_s=end)
        kept = []
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context(version, short)
            first, reused = self.connect(site, context)
            self.assertFalse(reused)
            second, reused = self.connect(site, context, first)
            self.assertTrue(reused, version)
            kept.append((context, second))
        wait_until("it has expired", lambda: time.time() > end + 1)
        for context, session in kept:
            with self.assertRaises((ssl.SSLError, ConnectionError, EOFError, AssertionError)):
                self.connect(site, context, session)
        wait_until("the log says why", lambda: len(site.log_lines("client_refused", "certificate has expired")) == 2)

    def test_sighup_makes_them_worthless(self):
        site = self.secure(tls=", client_ca: ca.crt", anonymous="false")
        alice = self.ca.sign("alice")
        contexts = [self.context(version, alice) for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)]
        sessions = [self.connect(site, context)[0] for context in contexts]
        (site.folder / "ca.crt").write_bytes(Authority(self.folder(), "others").crt.read_bytes())
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("it is read", lambda: site.log_lines("reload", "as they are now"))
        for context, session in zip(contexts, sessions):
            with self.assertRaises((ssl.SSLError, ConnectionError, EOFError, AssertionError)):
                self.connect(site, context, session)


class Certificates(ListenerTest):
    def test_a_name_is_one_and_plain(self):
        site = self.secure(tls=", client_ca: ca.crt")
        for name, subject in (("several", "/CN=alice/CN=admin"), ("control", "/CN=a\u009bb")):
            certificate = self.ca.sign(name, subject=subject)
            with self.subTest(name), self.assertRaises((ssl.SSLError, ConnectionError, EOFError)):
                self.tls(site, certificate=certificate).send(raw_connect("c"))._take(4)
        wait_until("the log says why", lambda: len(site.log_lines("client_refused", "common name (CN) that can be a user name")) == 2)

    def test_one_on_another_curve_is_told_what_to_do(self):
        site = self.secure(tls=", client_ca: ca.crt")
        context = ssl.create_default_context(cafile=self.ca.crt)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.tls(site, certificate=self.ca.sign("p521", curve="P-521"), context=context)
        wait_until("the log says why", lambda: site.log_lines("client_refused", "a curve other than P-256 and P-384"))
        self.assertEqual(self.tls(site, certificate=self.ca.sign("p384", curve="P-384"), context=context).send(raw_connect("c")).packet(), ACCEPTED)

    def test_our_own_is_watched(self):
        site = self.secure(start=False)
        end = time.time() + 8
        self.ca.sign("server", end_s=end)
        site.start()
        self.addCleanup(self._end, site)
        self.assertEqual(site.metric("hobnob_tls_certificate_expires_seconds"), int(end))
        wait_until("it is said, though nothing else happens", lambda: site.log_lines("warning certificate", "has expired", "SIGHUP"), timeout_s=30)
        self.ca.sign("server")
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("it is renewed", lambda: site.metric("hobnob_tls_certificate_expires_seconds") > end + 3600)

    def test_what_is_no_file_keeps_nobody_waiting(self):
        site = self.secure()
        key = site.folder / "server.key"
        good = key.read_bytes()
        for make, words in ((lambda: os.mkfifo(key), "it is no file"), (lambda: key.symlink_to("/dev/zero"), "it is no file"),
                            (lambda: key.symlink_to(key), "symbolic links")):
            key.unlink()
            make()
            before = len(site.log_lines("stay as they were"))
            os.kill(site.process.pid, signal.SIGHUP)
            wait_until("it says so", lambda: len(site.log_lines("stay as they were")) > before)
            self.assertTrue(site.log_lines("reload", "tls.key", words), words)
            self.assertEqual(self.tls(site).send(raw_connect("c")).packet(), ACCEPTED)
        key.unlink()
        key.write_bytes(good)
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("it is read", lambda: site.log_lines("reload", "as they are now"))


class OtherProtocols(ListenerTest):
    def test_the_log_says_what_it_is_and_what_to_do(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}\nws: 127.0.0.1:{c}")
        tls, http, mqtt = greeting("-tls1_3"), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", raw_connect("c")
        for letter, first, words in (("a", tls, ("speaks TLS", "listen.mqtts")), ("a", http, ("speaks HTTP", "listen.ws")),
                                     ("a", b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", ("PROXY header", "listen.proxies")),
                                     ("b", mqtt, ("does not speak TLS", "listen.mqtt")), ("b", http, ("does not speak TLS",)),
                                     ("c", tls, ("speaks TLS", "wss")), ("c", mqtt, ("speaks MQTT without WebSocket", "listen.mqtt"))):
            with self.subTest(words=words, letter=letter):
                raw = self.raw(site.ports[letter], first)
                port = raw.socket.getsockname()[1]
                wait_until(f"the log says {words}", lambda: site.log_lines(f"127.0.0.1:{port}", *words))


class Rights(ListenerTest):
    """Who is welcome without a name, since he is at this host."""

    def test_a_client_of_whom_a_proxy_knows_nothing_is_not_on_loopback(self):
        site = self.site("mqtt: 127.0.0.1:{a}\nproxies: 127.0.0.2")
        start, connect = b"\r\n\r\n\0\r\nQUIT\n", raw_connect("c")
        for header, expected in ((b"PROXY UNKNOWN\r\n", NOT_AUTHORISED), (start + b"\x21\x00\0\0", NOT_AUTHORISED),
                                 (start + b"\x21\x31\0\xd8" + bytes(216), NOT_AUTHORISED), (start + b"\x20\x00\0\0", ACCEPTED)):
            with self.subTest(header):
                self.assertEqual(self.raw(site.ports["a"], header + connect, source=("127.0.0.2", 0)).packet(), expected)

    def test_a_page_of_another_host_is_not_on_loopback(self):
        site = self.site("ws: 127.0.0.1:{a}")
        request = ("GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n")
        connect = raw_connect("c")
        frame = bytes([0x82, 0x80 | len(connect), 0, 0, 0, 0]) + connect
        for origin, expected in (("", ACCEPTED), ("Origin: http://localhost:3000\r\n", ACCEPTED), ("Origin: https://example.org\r\n", NOT_AUTHORISED)):
            raw = self.raw(site.ports["a"], (request + origin + "\r\n").encode() + frame)
            while not raw.buffer.endswith(b"\r\n\r\n"):
                raw.buffer += raw.socket.recv(1)
            raw.buffer = b""
            self.assertEqual(raw._take(6)[2:], bytes([expected[0], 2]) + expected[1], origin)
