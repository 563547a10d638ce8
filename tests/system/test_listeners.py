"""Every way in: TLS, WebSocket, client certificates, proxies, unix sockets, IPv6, several at once."""
import collections
import os
import signal
import socket
import ssl
import stat
import struct
import subprocess

from certificates import Authority
from clients import MosquittoSub, MqttJs, Paho, Raw, mosquitto_pub, packet, raw_connect, raw_publish, raw_subscribe
from harness import HOBNOBD, PATIENCE_S, Broker, Daemon, SystemTest, environment, run, wait_until
from ports import free_ports

ACCEPTED = (0x20, b"\0\0")
NOT_AUTHORISED = (0x20, b"\0\5")
UNKNOWN_VERSION = raw_connect("c", version=9)  # the answer to it names the far end's address in the log

# What the clients of clients.py want to know of a broker: the listener to use.
Way = collections.namedtuple("Way", "name host mqtt_port ws_port namespace", defaults=(None, None, None))


class Site(Broker):
    """A broker alone: listen and more are lines of its configuration, in which {a}, {b} ... are free ports."""

    def __init__(self, folder, listen, more="", anonymous=None):
        super().__init__("solo", folder)
        admin, *ports = free_ports(1, bases=9)
        self.ports = dict(zip("abcdefgh", ports))
        fill = dict(self.ports, folder=folder)
        lines = "".join(f"  {line}\n" for line in listen.format(**fill).splitlines())
        rights = "" if anonymous is None else f"clients: {{anonymous: {anonymous}}}\n"
        self.config.write_text(f"name: solo\nlisten:\n  admin: 127.0.0.1:{admin}\n{lines}{rights}{more.format(**fill)}")

    def way(self, letter, host="127.0.0.1"):
        return Way(self.name, host, self.ports[letter], self.ports[letter])


class ListenerTest(SystemTest):
    def site(self, *arguments, start=True, folder=None, **options):
        site = Site(folder or self.folder(), *arguments, **options)
        if start:
            site.start()
            self.addCleanup(self._end, site)
        return site

    def _end(self, site):
        status = site.stop() if site.wanted else 0
        if status or site.faults():
            print(site.log(), flush=True)
        self.assertEqual((status, site.faults()), (0, []))

    def secure(self, listen="mqtts: 127.0.0.1:{a}\nwss: 127.0.0.1:{b}", tls="", more="", **options):
        """A site with a certificate; self.ca signed it, and those of clients too."""
        folder = self.folder()
        self.ca = Authority(folder)
        self.ca.sign("server")
        return self.site(listen, f"tls: {{{{cert: server.crt, key: server.key{tls}}}}}\n{more}", folder=folder, **options)

    def raw(self, port, first=b"", host="127.0.0.1", source=None):
        raw = Raw.__new__(Raw)
        raw.socket, raw.buffer = socket.create_connection((host, port), PATIENCE_S, source_address=source), b""
        self.addCleanup(raw.close)
        return raw.send(first)

    @staticmethod
    def hung_up(raw):
        raw.socket.settimeout(PATIENCE_S)
        try:
            return raw.socket.recv(1) == b""
        except ConnectionResetError:  # what we sent was not read any more
            return True

    def tls(self, site, letter="a", certificate=None, context=None):
        """A connection by Python's own TLS."""
        context = context or ssl.create_default_context(cafile=self.ca.crt)
        if certificate:
            context.load_cert_chain(*certificate)
        raw = Raw.__new__(Raw)
        raw.socket, raw.buffer = context.wrap_socket(socket.create_connection(("127.0.0.1", site.ports[letter]), PATIENCE_S), server_hostname="localhost"), b""
        self.addCleanup(raw.close)
        return raw


class Tls(ListenerTest):
    def test_mosquitto_over_tls(self):
        site = self.secure()
        options = ["--cafile", str(self.ca.crt)]
        sub = self.closing(MosquittoSub(site.way("a"), "t/#", qos=1, options=options))
        for size in (0, 1, 1000, 16384, 100_000, 3_000_000):  # also larger than any record, and than the socket holds
            payload = bytes(i * 7 % 256 for i in range(size))
            mosquitto_pub(site.way("a"), f"t/{size}", payload, qos=1, options=options)
            self.assertEqual(sub.wait_payload(payload).topic, f"t/{size}")

    def test_paho_over_websocket_over_tls(self):
        site = self.secure()
        client = self.closing(Paho(site.way("b"), websocket=True, tls={"ca_certs": self.ca.crt}))
        client.subscribe("t", qos=2)
        for size in (1, 125, 126, 65535, 65536, 1_000_000):
            client.publish("t", b"x" * size, qos=2)
            client.wait_payload(b"x" * size)

    def test_mqttjs_over_websocket_over_tls(self):
        site = self.secure()
        client = self.closing(MqttJs(site.way("b"), "t", qos=1, ca=self.ca.crt))
        client.publish("t", b"hello", qos=1)
        client.wait_payload(b"hello")

    def test_versions_and_ciphers(self):
        site = self.secure()

        def s_client(*options):
            return run("openssl", "s_client", "-connect", f"127.0.0.1:{site.ports['a']}", "-CAfile", self.ca.crt, *options).stdout

        self.assertIn("New, TLSv1.2, Cipher is ECDHE-ECDSA", s_client("-tls1_2"))
        self.assertIn("New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384", s_client("-tls1_3"))
        self.assertIn("Cipher is (NONE)", s_client("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"))
        self.assertIn("Cipher is (NONE)", s_client("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"))  # not authenticated as one
        wait_until("the log says why", lambda: site.log_lines("client_refused", "127.0.0.1:", "nothing newer than TLS 1.1"))
        wait_until("the log says why", lambda: site.log_lines("client_refused", "no cipher that is secure enough"))
        self.assertEqual(site.metric("hobnob_tls_handshakes_failed_total"), 2)

    def test_a_session_is_resumed_by_its_ticket(self):
        site = self.secure()
        for version in ("-tls1_2", "-tls1_3"):
            with self.subTest(version):
                ticket = site.folder / f"ticket{version}"
                # the ticket of TLS 1.3 comes with the first answer
                command = ["openssl", "s_client", "-connect", f"127.0.0.1:{site.ports['a']}", "-CAfile", self.ca.crt, version, "-quiet"]
                first = subprocess.run([*command, "-sess_out", ticket], input=raw_connect("c") + b"\xe0\0", capture_output=True, timeout=PATIENCE_S)
                self.assertIn(b"\x20\x02\0\0", first.stdout, first.stderr)
                again = run("openssl", "s_client", "-connect", f"127.0.0.1:{site.ports['a']}", "-CAfile", self.ca.crt, version, "-sess_in", ticket)
                self.assertIn("Reused, ", again.stdout)

    def test_the_end_is_said(self):
        site = self.secure()
        raw = self.tls(site).send(raw_connect("c"))
        self.assertEqual(raw.packet(), ACCEPTED)
        raw.send(packet(0xe0, b""))
        self.assertEqual(raw.socket.recv(1), b"")  # an end without close_notify would be an error here

    def test_who_speaks_something_else_is_told_in_the_log(self):
        site = self.secure()
        raw = self.raw(site.ports["a"], raw_connect("plain"))
        raw.socket.settimeout(PATIENCE_S)
        while raw.socket.recv(100):
            pass
        wait_until("the log says why", lambda: site.log_lines("client_refused", "does not speak TLS"))

    def test_bytes_may_come_one_by_one(self):
        site = self.secure()
        context = ssl.create_default_context(cafile=self.ca.crt)
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(into, out, server_hostname="localhost")
        raw = self.raw(site.ports["a"])
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def step(action):
            while True:
                try:
                    result = action()
                    break
                except ssl.SSLWantReadError:
                    for byte in out.read():
                        raw.send(bytes([byte]))
                    into.write(raw.socket.recv(65536))
            for byte in out.read():
                raw.send(bytes([byte]))
            return result

        step(tls.do_handshake)
        step(lambda: tls.write(raw_connect("slow")))
        self.assertEqual(step(lambda: tls.read(4)), b"\x20\x02\0\0")

    def test_a_handshake_has_a_deadline_and_others_are_served_meanwhile(self):
        site = self.secure(more="limits: {{connect_timeout_ms: 3000}}\n")
        silent = [self.raw(site.ports[letter], first) for letter in "ab" for first in (b"", b"\x16\x03\x01\x02\x00\x01", b"\x16\x03\x01")]
        raw = self.tls(site).send(raw_connect("c"))
        self.assertEqual(raw.packet(), ACCEPTED)
        for one in silent:
            self.assertEqual(one.socket.recv(100), b"")
        self.assertEqual(site.metric("hobnob_client_handshakes_timed_out_total"), len(silent))
        raw.send(b"\xc0\0")
        self.assertEqual(raw.packet(), (0xd0, b""))

    def test_certificates_are_read_anew_on_sighup(self):
        site = self.secure()
        old = self.tls(site).send(raw_connect("old"))
        self.assertEqual(old.packet(), ACCEPTED)
        serial = lambda: self.tls(site).socket.getpeercert()["serialNumber"]
        before = serial()
        self.ca.sign("server")
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("it says so", lambda: site.log_lines("reload", "as they are now"))
        self.assertNotEqual(serial(), before)
        good = serial()
        (site.folder / "server.key").write_text("nonsense\n")
        os.kill(site.process.pid, signal.SIGHUP)
        wait_until("it says what is wrong", lambda: site.log_lines("reload", "hobnob.yaml:", "tls.key", "no private key"))
        wait_until("it goes on", lambda: site.log_lines("reload", "stay as they were"))
        self.assertEqual(serial(), good)
        old.send(b"\xc0\0")
        self.assertEqual(old.packet(), (0xd0, b""))


class ClientCertificates(ListenerTest):
    def test_a_certificate_is_enough_and_its_name_is_the_user(self):
        site = self.secure(tls=", client_ca: ca.crt", anonymous="false")
        alice = self.ca.sign("alice")
        self.assertEqual(self.tls(site).send(raw_connect("c")).packet(), NOT_AUTHORISED)
        wait_until("the log says why", lambda: site.log_lines("client_refused", "clients.anonymous is false: write true, or use certificates"))
        self.assertEqual(self.tls(site, certificate=alice).send(raw_connect("c")).packet(), ACCEPTED)
        options = ["--cafile", str(self.ca.crt), "--cert", str(alice[0]), "--key", str(alice[1])]
        sub = self.closing(MosquittoSub(site.way("a"), "t", options=options))
        web = self.closing(Paho(site.way("b"), websocket=True, tls={"ca_certs": self.ca.crt, "certfile": alice[0], "keyfile": alice[1]}))
        web.publish("t", b"hello", qos=1)
        sub.wait_payload(b"hello")

    def test_one_that_is_not_valid_is_refused_in_the_handshake(self):
        site = self.secure(tls=", client_ca: ca.crt")
        stranger = Authority(self.folder(), "stranger")
        cases = {"unable to get local issuer": stranger.sign("mallory"), "certificate has expired": self.ca.sign("late", days=-1),
                 "no common name": self.ca.sign("nameless", subject="/O=nobody"),
                 "unsuitable certificate purpose": self.ca.sign("server2", extensions="extendedKeyUsage=serverAuth"),
                 "common name (CN) that can be a user name": self.ca.sign("control", subject="/CN=a\tb")}
        for why, certificate in cases.items():
            with self.subTest(why), self.assertRaises((ssl.SSLError, ConnectionError, EOFError)):
                raw = self.tls(site, certificate=certificate).send(raw_connect("c"))
                raw.socket.settimeout(PATIENCE_S)
                raw._take(4)  # with TLS 1.3 the client hears of it after its handshake
            wait_until(f"the log says {why}", lambda: site.log_lines("client_refused", "127.0.0.1:", why))
        self.assertEqual(self.tls(site).send(raw_connect("c")).packet(), ACCEPTED)  # it is optional

    def test_it_may_be_required(self):
        site = self.secure(tls=", client_ca: ca.crt, require_client_cert: true")
        with self.assertRaises((ssl.SSLError, ConnectionError, EOFError)):
            self.tls(site).send(raw_connect("c"))._take(4)
        wait_until("the log says why", lambda: site.log_lines("client_refused", "no client certificate was shown"))
        self.assertEqual(self.tls(site, certificate=self.ca.sign("alice")).send(raw_connect("c")).packet(), ACCEPTED)


class Faults(ListenerTest):
    """hobnobd --check names what is wrong with the files, and in which line."""

    def check(self, folder, *words, status=1, tls="cert: server.crt\n  key: server.key"):
        site = self.site("mqtts: 127.0.0.1:{a}", f"tls:\n  {tls}\n", folder=folder, start=False)
        done = run(HOBNOBD, "--check", site.config, env=environment())
        self.assertEqual(done.returncode, status, done.stdout)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1 if status else 2, done.stdout)
        for word in words:
            self.assertIn(word, lines[0])

    def test_each_names_its_line_and_the_remedy(self):
        folder = self.folder()
        ca = Authority(folder)
        crt, key = ca.sign("server")
        ca.sign("other")
        ca.sign("weak", kind="rsa:1024")
        ca.sign("late", days=-1)
        encrypted = folder / "locked.key"
        run("openssl", "pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", encrypted)
        (folder / "empty").write_text("")
        both = "cert: {}\n  key: {}".format
        self.check(folder, "hobnob.yaml:6: tls.cert:", "missing.crt cannot be read: No such file", "write", tls=both("missing.crt", "server.key"))
        self.check(folder, "hobnob.yaml:7: tls.key:", "cannot be read: Is a directory", tls=both("server.crt", "."))
        self.check(folder, "hobnob.yaml:6: tls.cert:", "holds no certificate in PEM", tls=both("server.key", "server.key"))
        self.check(folder, "hobnob.yaml:7: tls.key:", "holds no private key in PEM", tls=both("server.crt", "server.crt"))
        self.check(folder, "hobnob.yaml:7: tls.key:", "does not belong to the certificate", tls=both("server.crt", "other.key"))
        self.check(folder, "hobnob.yaml:7: tls.key:", "passphrase", "openssl pkey", tls=both("server.crt", "locked.key"))
        self.check(folder, "hobnob.yaml:6: tls.cert:", "ee key too small", "2,048 bits", tls=both("weak.crt", "weak.key"))
        self.check(folder, "hobnob.yaml:8: tls.client_ca:", "holds no certificate", tls=both("server.crt", "server.key") + "\n  client_ca: empty")
        self.check(folder, "hobnob.yaml:6: warning: tls.cert:", "has expired", "SIGHUP", status=0, tls=both("late.crt", "late.key"))
        key.chmod(0o644)
        self.check(folder, "hobnob.yaml:7: warning: tls.key:", "chmod 600", status=0)


class Haproxy(Daemon):
    """With the configuration that stands in its folder, once it listens on these ports."""

    def __init__(self, folder, ports):
        super().__init__("haproxy", folder)
        self.ports = ports

    def command(self):
        return ["/usr/sbin/haproxy", "-db", "-f", self.folder / "haproxy.cfg"]

    def ready(self):
        for port in self.ports:
            socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
        return True


class Proxies(ListenerTest):
    LISTEN = "mqtt: 0.0.0.0:{a}\nws: 0.0.0.0:{b}\nproxies: [127.0.0.2, 127.0.7.0/24]"

    @staticmethod
    def v2(address, port, command=1, more=b""):
        body = socket.inet_aton(address) + socket.inet_aton("127.0.0.1") + struct.pack("!HH", port, 1883) + more
        return b"\r\n\r\n\0\r\nQUIT\n" + bytes([0x20 | command, 0x11]) + struct.pack("!H", len(body)) + body

    def known_as(self, site, raw, address):
        """The broker knows this client by that address."""
        self.assertEqual(raw.packet()[0], 0x20)
        wait_until(f"the log names {address}", lambda: site.log_lines(f"CONNECT from {address}", "refused"))

    def test_the_address_in_the_header_is_the_clients(self):
        site = self.site(self.LISTEN, anonymous="false")
        for source, header, expected in (("127.0.0.2", b"PROXY TCP4 192.0.2.7 127.0.0.1 5001 1883\r\n", "192.0.2.7:5001"),
                                         ("127.0.7.9", b"PROXY TCP6 2001:db8::9 ::1 5002 1883\r\n", "[2001:db8::9]:5002"),
                                         ("127.0.0.2", self.v2("192.0.2.8", 5003), "192.0.2.8:5003"),
                                         ("127.0.0.2", b"PROXY UNKNOWN\r\n", "127.0.0.2:"), ("127.0.7.200", self.v2("192.0.2.9", 5, 0), "127.0.7.200:")):
            with self.subTest(header):
                self.known_as(site, self.raw(site.ports["a"], header + UNKNOWN_VERSION, source=(source, 0)), expected)
                slow = self.raw(site.ports["a"], source=(source, 0))
                slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for byte in header + raw_connect("c"):
                    slow.send(bytes([byte]))
                self.assertEqual(slow.packet(), NOT_AUTHORISED)

    def test_only_those_named_may_and_they_must(self):
        site = self.site(self.LISTEN, anonymous="true")
        self.assertIsNone(self.raw(site.ports["a"], b"PROXY TCP4 192.0.2.7 127.0.0.1 5001 1883\r\n" + raw_connect("c"), source=("127.0.0.3", 0)).packet())
        self.assertEqual(self.raw(site.ports["a"], raw_connect("c"), source=("127.0.0.3", 0)).packet(), ACCEPTED)
        self.assertIsNone(self.raw(site.ports["a"], raw_connect("d"), source=("127.0.0.2", 0)).packet())
        wait_until("the log says why", lambda: site.log_lines("client_refused", "127.0.0.2:", "does not begin with a PROXY header"))
        self.assertIsNone(self.raw(site.ports["a"], b"PROXY TCP4 here there 1 2\r\n" + raw_connect("d"), source=("127.0.0.2", 0)).packet())
        self.assertEqual(site.metric("hobnob_proxy_headers_failed_total"), 2)

    def test_a_client_at_a_proxy_is_not_on_loopback(self):
        site = self.site("mqtt: 127.0.0.1:{a}\nproxies: 127.0.0.2")
        connect = raw_connect("c")
        self.assertEqual(self.raw(site.ports["a"], connect).packet(), ACCEPTED)
        self.assertEqual(self.raw(site.ports["a"], self.v2("192.0.2.8", 1) + connect, source=("127.0.0.2", 0)).packet(), NOT_AUTHORISED)
        self.assertEqual(self.raw(site.ports["a"], self.v2("127.0.0.1", 1) + connect, source=("127.0.0.2", 0)).packet(), ACCEPTED)

    def test_a_name_that_the_proxy_has_verified_is_the_user(self):
        site = self.site(self.LISTEN, anonymous="false")
        cn = lambda verify: b"\x20" + struct.pack("!H", 13) + b"\x07" + struct.pack("!I", verify) + b"\x22\0\5alice"
        for verify, expected in ((0, ACCEPTED), (1, NOT_AUTHORISED)):
            raw = self.raw(site.ports["a"], self.v2("192.0.2.8", 1, more=cn(verify)) + raw_connect("c"), source=("127.0.0.2", 0))
            self.assertEqual(raw.packet(), expected)

    def test_before_tls_and_websocket(self):
        site = self.secure(listen="mqtts: 127.0.0.1:{a}\nwss: 127.0.0.1:{b}\nws: 127.0.0.1:{c}\nproxies: 127.0.0.2", anonymous="false")
        plain = socket.create_connection(("127.0.0.1", site.ports["a"]), PATIENCE_S, source_address=("127.0.0.2", 0))
        plain.sendall(b"PROXY TCP4 192.0.2.7 127.0.0.1 5001 8883\r\n")
        raw = Raw.__new__(Raw)
        raw.socket, raw.buffer = ssl.create_default_context(cafile=self.ca.crt).wrap_socket(plain, server_hostname="localhost"), b""
        self.addCleanup(raw.close)
        self.known_as(site, raw.send(UNKNOWN_VERSION), "192.0.2.7:5001")
        web = self.raw(site.ports["c"], self.v2("192.0.2.9", 5003) + b"GET /nowhere HTTP/1.1\r\n\r\n", source=("127.0.0.2", 0))
        self.assertEqual(web._take(12), b"HTTP/1.1 404")
        wait_until("the log names it", lambda: site.log_lines('client_refused address="192.0.2.9:5003"'))

    def test_haproxy(self):
        site = self.site("mqtt: 127.0.0.1:{a}\nws: 127.0.0.1:{b}\nproxies: 127.0.0.2", anonymous="true")
        folder, ports = self.folder(), free_ports(1, bases=3)
        parts = "".join(f"listen l{i}\n bind 127.0.0.1:{port}\n server s 127.0.0.1:{site.ports[letter]} source 127.0.0.2 {how} check\n"
                        for i, (port, letter, how) in enumerate(zip(ports, "aab", ("send-proxy", "send-proxy-v2", "send-proxy-v2 check-send-proxy"))))
        (folder / "haproxy.cfg").write_text(f"global\n maxconn 100\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n{parts}")
        proxy = Haproxy(folder, ports).start()
        self.addCleanup(proxy.stop)
        v1, v2, web = (Way("haproxy", "127.0.0.1", port, port) for port in ports)
        sub = self.closing(MosquittoSub(v1, "t"))
        browser = self.closing(Paho(web, websocket=True))
        browser.subscribe("t")
        mosquitto_pub(v2, "t", b"through a proxy")
        sub.wait_payload(b"through a proxy")
        browser.wait_payload(b"through a proxy")


class UnixSockets(ListenerTest):
    LISTEN = "mqtt: [unix:m.sock, \"127.0.0.1:{a}\"]\nws: unix:{folder}/w.sock\nunix_mode: 0600"

    def unix(self, path, first):
        raw = Raw.__new__(Raw)
        raw.socket, raw.buffer = socket.socket(socket.AF_UNIX), b""
        raw.socket.settimeout(PATIENCE_S)
        raw.socket.connect(str(path))
        self.addCleanup(raw.close)
        return raw.send(first)

    def test_a_client_on_one(self):
        site = self.site(self.LISTEN)
        path = site.folder / "m.sock"
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        sub = self.unix(path, raw_connect("u") + raw_subscribe(1, "t"))
        self.assertEqual(sub.packet(), ACCEPTED)  # it counts as loopback
        self.assertEqual(sub.packet()[0], 0x90)
        mosquitto_pub(site.way("a", "127.0.0.1"), "t", b"hello")
        self.assertEqual(sub.packet(), (0x30, b"\0\1thello"))
        web = self.unix(site.folder / "w.sock", b"GET /x HTTP/1.1\r\n\r\n")
        self.assertEqual(web._take(12), b"HTTP/1.1 404")

    def test_the_file_goes_with_the_broker_and_a_stale_one_is_replaced(self):
        site = self.site(self.LISTEN)
        path = site.folder / "m.sock"
        site.kill()
        self.assertTrue(path.exists())
        site.start()
        self.assertEqual(self.unix(path, raw_connect("u")).packet(), ACCEPTED)
        self.assertEqual(site.stop(), 0)
        self.assertFalse(path.exists())

    def test_what_is_in_use_or_no_socket_is_left_alone(self):
        site = self.site(self.LISTEN)
        path = site.folder / "m.sock"
        second = self.site("mqtt: \"unix:%s\"" % path, start=False)
        done = run(HOBNOBD, second.config, env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use by another process", done.stderr)
        self.assertEqual(self.unix(path, raw_connect("u")).packet(), ACCEPTED)
        other = second.folder / "precious"
        other.write_text("data")
        second.config.write_text(second.config.read_text().replace(str(path), str(other)))
        done = run(HOBNOBD, second.config, env=environment())
        self.assertIn("hobnob.yaml:4: listen.mqtt: unix:", done.stderr)
        self.assertIn("is a file and no socket", done.stderr)
        self.assertEqual(other.read_text(), "data")


class Several(ListenerTest):
    def test_listeners_of_each_kind_on_both_families(self):
        site = self.secure(listen='mqtt: ["127.0.0.1:{a}", "[::1]:{a}", "127.0.0.1:{b}"]\nmqtts: ["127.0.0.1:{c}", "[::1]:{d}"]\n'
                                  'ws: ["127.0.0.1:{e}", "[::1]:{e}"]\nwss: ["127.0.0.1:{f}", "[::1]:{g}"]')
        sub = self.raw(site.ports["a"], raw_connect("sub") + raw_subscribe(1, "#"), host="::1")
        self.assertEqual((sub.packet(), sub.packet()[0]), (ACCEPTED, 0x90))
        for host, letter in (("127.0.0.1", "a"), ("::1", "a"), ("127.0.0.1", "b")):
            raw = self.raw(site.ports[letter], raw_connect(letter + host) + raw_publish("t", b"x"), host=host)
            self.assertEqual(raw.packet(), ACCEPTED)
            self.assertEqual(sub.packet(), (0x30, b"\0\1tx"))
        tls = {"ca_certs": self.ca.crt}
        for way, options in ((site.way("c", "127.0.0.1"), {"tls": tls}), (site.way("d", "::1"), {"tls": tls}),
                             (site.way("e", "127.0.0.1"), {"websocket": True}), (site.way("f", "127.0.0.1"), {"websocket": True, "tls": tls})):
            with self.subTest(way=way):
                self.closing(Paho(way, **options)).publish("t", b"y", qos=1)
                self.assertEqual(sub.packet(), (0x30, b"\0\1ty"))

    def test_one_socket_for_both_families(self):
        site = self.site('mqtt: "[::]:{a}"\nproxies: [127.0.0.2]', anonymous="false")
        for host in ("::1", "127.0.0.1"):
            self.assertEqual(self.raw(site.ports["a"], UNKNOWN_VERSION, host=host).packet()[0], 0x20)
        wait_until("IPv6 is shown in brackets", lambda: site.log_lines("CONNECT from [::1]:"))
        wait_until("IPv4 is shown as what it is", lambda: site.log_lines("CONNECT from 127.0.0.1:"))
        raw = self.raw(site.ports["a"], b"PROXY TCP4 192.0.2.7 127.0.0.1 5001 1883\r\n" + UNKNOWN_VERSION, source=("127.0.0.2", 0))
        self.assertEqual(raw.packet()[0], 0x20)  # and a proxy is known by it
        wait_until("the client's address", lambda: site.log_lines("CONNECT from 192.0.2.7:5001"))


class Fairness(ListenerTest):
    """Who sends a lot, in whatever wrapping, does not keep others waiting."""

    def test_a_flood_over_tls(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}\nwss: 127.0.0.1:{c}")
        flood = raw_publish("flood/a/b/c", b"x" * 20) * 3000
        with ssl.create_default_context(cafile=self.ca.crt).wrap_socket(socket.create_connection(("127.0.0.1", site.ports["b"]), PATIENCE_S),
                                                                          server_hostname="localhost") as loud:
            loud.sendall(raw_connect("loud"))
            self.assertEqual(loud.recv(4), b"\x20\2\0\0")
            quiet = self.raw(site.ports["a"], raw_connect("quiet"))
            self.assertEqual(quiet.packet(), ACCEPTED)
            for _ in range(10):
                loud.sendall(flood)
                quiet.send(b"\xc0\0")
                self.assertEqual(quiet.packet(), (0xd0, b""))
            before = site.metric("hobnob_publications_received_total")
            wait_until("all of it arrives", lambda: site.metric("hobnob_publications_received_total") == 30000)
            self.assertLessEqual(before, 30000)

    def test_descriptors_run_out_for_newcomers_only(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}\nws: 127.0.0.1:{c}", start=False)
        command = site.command
        site.command = lambda: ["prlimit", "--nofile=160:160", *command()]
        site.start()
        self.addCleanup(self._end, site)
        inside = []
        for i in range(200):  # more than there are descriptors
            raw = self.raw(site.ports["a"])
            try:
                if raw.send(raw_connect(f"c{i}")).packet() == ACCEPTED:
                    inside.append(raw)
            except ConnectionError:
                pass
        self.assertGreater(len(inside), 20)
        self.assertLess(len(inside), 100)
        for letter in "bc":
            self.assertTrue(self.hung_up(self.raw(site.ports[letter])))
        wait_until("the log says what to do", lambda: site.log_lines("descriptors", "LimitNOFILE"))
        self.assertGreater(site.metric("hobnob_client_connections_refused_total"), 100)  # and the admin port answers
        for raw in inside:
            raw.send(b"\xc0\0")
            self.assertEqual(raw.packet(), (0xd0, b""))
        for raw in inside[:10]:
            raw.close()

        def accepted():
            try:
                return self.raw(site.ports["a"], raw_connect("late")).packet() == ACCEPTED
            except ConnectionError:
                return False

        wait_until("there is room again", accepted)

    def test_half_open_connections_keep_nobody_out(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}\nws: 127.0.0.1:{c}", more="limits: {{connecting_max: 50}}\n")
        first = {"b": b"\x16\x03\x01\x02\x00", "c": b"GET /mqtt HTTP/1.1\r\n"}
        silent = [self.raw(site.ports[letter], first[letter]) for _ in range(150) for letter in "bc"]
        self.assertEqual(self.tls(site, "b").send(raw_connect("tls")).packet(), ACCEPTED)
        self.closing(Paho(site.way("c"), websocket=True)).publish("t", b"x", qos=1)
        wait_until("the oldest have gone", lambda: site.metric("hobnob_client_handshakes_displaced_total") >= 250)
        self.assertLessEqual(site.metric("hobnob_client_connections_arriving"), 50)
        self.assertTrue(self.hung_up(silent[0]))
