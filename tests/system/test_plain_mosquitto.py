"""mosquitto_pub, mosquitto_sub and mosquitto_rr, option by option, as those who use them today would."""
import subprocess
import tempfile
import threading
import unittest

from clients import MosquittoSub, Raw, raw_connect, raw_subscribe
from harness import MORTAL, PATIENCE_S, run, wait_until
from plain import AGAINST_MOSQUITTO, PlainMqtt

VERSIONS = ("mqttv311", "mqttv5")


class Programs(PlainMqtt):
    def program(self, name, *options, status=0):
        """One that ends by itself; what it wrote."""
        done = run(name, "-h", self.broker.host, "-p", self.broker.mqtt_port, *options)
        self.assertEqual(done.returncode, status, f"{name} {' '.join(map(str, options))}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def pub(self, topic, *options, **more):
        return self.program("mosquitto_pub", "-t", topic, *options, **more)

    def sub(self, topic, *options, **more):
        return self.program("mosquitto_sub", "-t", topic, *options, **more)

    def listen(self, *filters, qos=2, version="mqttv5", options=()):
        return self.closing(MosquittoSub(self.broker, *filters, qos=qos, version=version, options=options))

    def background(self, *command):
        """A program that goes on: the lines it writes. Returns once it is subscribed."""
        process = subprocess.Popen([*MORTAL, "stdbuf", "-oL", command[0], "-h", self.broker.host, "-p", str(self.broker.mqtt_port), "-d", *command[1:]],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = []
        reader = threading.Thread(target=lambda: [lines.append(line.rstrip("\n")) for line in process.stdout], daemon=True)
        reader.start()

        def end():
            process.terminate()
            process.wait(PATIENCE_S)
            reader.join(PATIENCE_S)
            process.stdout.close()
        self.addCleanup(end)
        wait_until("SUBACK", lambda: any("SUBACK" in line for line in lines))
        return lines

    def each_version(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                yield version

    # ---- mosquitto_pub ----

    def test_pub_qos(self):
        for version in self.each_version():
            subscriber = self.listen(self.topic(version), version=version)
            for qos in (0, 1, 2):
                self.pub(self.topic(version), "-m", f"qos {qos}", "-q", qos, "-V", version)
                self.assertEqual(subscriber.wait_payload(b"qos %d" % qos).qos, qos)

    def test_pub_retain_and_null_message(self):
        for version in self.each_version():
            self.pub(self.topic(version), "-m", "kept", "-r", "-V", version)
            late = self.listen(self.topic(version), version=version)
            self.assertTrue(late.wait_payload(b"kept").retain)
            self.pub(self.topic(version), "-n", "-r", "-q", 1, "-V", version)
            late.wait_payload(b"")
            self.assertEqual(self.sub(self.topic(version), "-E", "-V", version), "")

    def test_pub_file_lines_and_stdin(self):
        subscriber = self.listen(self.topic())
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"from a file\n\0binary")
            file.flush()
            self.pub(self.topic(), "-f", file.name)
        subscriber.wait_payload(b"from a file\n\0binary")
        for option, payloads in (("-l", [b"one", b"two", b"three"]), ("-s", [b"one\ntwo\nthree\n"])):
            subprocess.run(["mosquitto_pub", "-h", self.broker.host, "-p", str(self.broker.mqtt_port), "-t", self.topic(), "-q", "1", option],
                           input=b"one\ntwo\nthree\n", check=True, timeout=PATIENCE_S)
            for payload in payloads:
                subscriber.wait_payload(payload)

    def test_pub_repeat(self):
        subscriber = self.listen(self.topic())
        self.pub(self.topic(), "-m", "again", "--repeat", 20, "-q", 1)
        self.assertEqual(len(subscriber.wait_count(20)), 20)

    def test_pub_names_and_passwords_are_taken(self):
        subscriber = self.listen(self.topic())
        for number, options in enumerate((["-i", "a name"], ["-I", "prefix-"], ["-u", "somebody"], ["-u", "somebody", "-P", "secret"], ["-k", 5],
                                          ["-c", "-i", "lasting"], ["--nodelay"], ["-A", "127.0.0.1"])):
            self.pub(self.topic(), "-m", number, *options)
            subscriber.wait_payload(b"%d" % number)

    def test_pub_by_url(self):
        subscriber = self.listen(self.topic("by/url"))
        done = run("mosquitto_pub", "-L", f"mqtt://user:pw@{self.broker.host}:{self.broker.mqtt_port}/{self.topic('by/url')}", "-m", "x")
        self.assertEqual(done.returncode, 0, done.stderr)
        subscriber.wait_payload(b"x")

    def test_pub_properties(self):
        text = "%U|%A|%C|%D|%E|%F|%P|%R|%S|%t|%p"  # all that -F knows of MQTT 5.0
        lines = self.background("mosquitto_sub", "-V", "mqttv5", "-t", self.topic(), "-F", text)
        self.pub(self.topic(), "-m", "payload", "-V", "5", "-D", "publish", "content-type", "text/plain", "-D", "publish", "response-topic", "answer",
                 "-D", "publish", "correlation-data", "17", "-D", "publish", "message-expiry-interval", "500", "-D", "publish",
                 "payload-format-indicator", "1", "-D", "publish", "user-property", "k", "1", "-D", "publish", "user-property", "k", "2")
        line = wait_until("the message", lambda: next((line for line in lines if "payload" in line), None))
        self.assertRegex(line, rf"\|\|text/plain\|17\|(500|4\d\d)\|1\|k:1 k:2\|answer\|\|{self.topic()}\|payload$")

    def test_pub_topic_alias(self):
        subscriber = self.listen(self.topic())
        self.pub(self.topic(), "-m", "aliased", "--repeat", 5, "-V", "mqttv5", "-D", "publish", "topic-alias", "3")
        self.assertEqual({m.topic for m in subscriber.wait_count(5)}, {self.topic()})

    def test_pub_session_expiry(self):
        self.pub(self.topic(), "-m", "x", "-V", "mqttv5", "-x", 60, "-i", "expiring" + self._testMethodName, "-c")
        raw = self.closing(Raw(self.broker))
        raw.send(raw_connect("expiring" + self._testMethodName, clean=False, version=5))
        self.assertEqual(raw.packet()[1][:2], b"\1\0")

    def test_pub_will(self):
        """A client of Mosquitto that is killed."""
        for version in self.each_version():
            watcher = self.listen(self.topic(version + "/#"))
            process = subprocess.Popen([*MORTAL, "mosquitto_sub", "-h", self.broker.host, "-p", str(self.broker.mqtt_port), "-V", version, "-t",
                                        self.topic(version + "/hello"), "--will-topic", self.topic(version + "/will"), "--will-payload", "gone",
                                        "--will-qos", "1", "--will-retain"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            wait_until("it is there", lambda: self.pub(self.topic(version + "/hello"), "-m", "hello", "-r") == "" and watcher.payloads())
            process.stdout.readline()
            process.kill()
            process.wait(PATIENCE_S)
            process.stdout.close()
            self.assertEqual(watcher.wait_payload(b"gone").qos, 1)
            self.assertEqual(self.sub(self.topic(version + "/will"), "-C", 1, "-F", "%r %p"), "1 gone\n")

    def test_31_is_refused_clearly(self):
        if AGAINST_MOSQUITTO:
            self.skipTest("Mosquitto still speaks MQTT 3.1")
        for name in ("mosquitto_pub", "mosquitto_sub"):
            options = ["-t", "t", "-V", "mqttv31"] + (["-m", "x"] if name == "mosquitto_pub" else [])
            self.assertIn("unacceptable protocol version", self.program(name, *options, status=1).lower())

    # ---- mosquitto_sub ----

    def test_sub_count_and_format(self):
        self.pub(self.topic("a"), "-m", "payload", "-r", "-q", 2)
        for version in self.each_version():
            self.assertEqual(self.sub(self.topic("#"), "-C", 1, "-q", 2, "-V", version, "-F", "%t %q %r %l %p %x"), f"{self.topic('a')} 2 1 7 payload 7061796c6f6164\n")
            self.assertEqual(self.sub(self.topic("#"), "-C", 1, "-V", version, "-v"), f"{self.topic('a')} payload\n")
            self.assertEqual(self.sub(self.topic("#"), "-C", 1, "-V", version, "-N"), "payload")
            self.assertIn('"payload":"payload"', self.sub(self.topic("#"), "-C", 1, "-V", version, "-F", "%j"))

    def test_sub_retained_options(self):
        for name in ("a", "b"):
            self.pub(self.topic(name), "-m", name, "-r", "-q", 1)
        for version in self.each_version():
            self.assertEqual(self.sub(self.topic("#"), "-R", "-W", 1, "-V", version, status=27), "Timed out\n")
            self.assertEqual(sorted(self.sub(self.topic("#"), "--retained-only", "-C", 2, "-V", version).split()), ["a", "b"])

        def removed():  # it may be that the second was over before
            self.sub(self.topic("#"), "--remove-retained", "-W", 1, status=27)
            return self.sub(self.topic("#"), "-W", 1, status=27) == "Timed out\n"
        wait_until("all are removed", removed)

    def test_sub_retain_as_published(self):
        for option, flag in (("--retain-as-published", True), (None, False)):
            subscriber = self.listen(self.topic(), options=[option] if option else [])
            self.pub(self.topic(), "-m", f"live {flag}", "-r", "-q", 1)
            self.assertEqual(subscriber.wait_payload(f"live {flag}".encode()).retain, flag)

    def test_sub_exits_once_subscribed(self):
        for version in self.each_version():
            self.assertEqual(self.sub(self.topic(version), "-E", "-V", version, "-i", "stays" + version, "-c", "-q", 1), "")
            self.pub(self.topic(version), "-m", "while away", "-q", 1)
            self.assertEqual(self.sub(self.topic(version), "-C", 1, "-V", version, "-i", "stays" + version, "-c", "-q", 1), "while away\n")

    def test_sub_several_filters_filtered_out_and_unsubscribed(self):
        subscriber = self.listen(self.topic("a"), self.topic("b/+"), self.topic("c/#"), options=["-T", self.topic("b/no"), "-U", self.topic("a")])
        for name in ("a", "b/no", "b/yes", "c/x/y"):
            self.pub(self.topic(name), "-m", name, "-q", 1)
        subscriber.wait_payload(b"c/x/y")
        self.assertEqual([p for p in subscriber.payloads() if p != b"a"], [b"b/yes", b"c/x/y"])

    def test_sub_properties(self):
        lines = self.background("mosquitto_sub", "-V", "mqttv5", "-t", self.topic(), "-F", "%S %p", "-D", "subscribe", "subscription-identifier", "42",
                                "-D", "connect", "receive-maximum", "3", "-D", "connect", "maximum-packet-size", "200", "-D", "connect",
                                "topic-alias-maximum", "4", "-D", "connect", "request-problem-information", "0", "-D", "connect", "user-property", "k", "v")
        self.pub(self.topic(), "-m", "x" * 300)
        self.pub(self.topic(), "-m", "small")
        wait_until("the small one", lambda: "42 small" in lines)
        self.assertFalse([line for line in lines if "xxx" in line])

    def test_sub_shared(self):
        members = [self.listen(f"$share/g/{self.topic()}", version=version) for version in VERSIONS]
        self.pub(self.topic(), "-m", "one of many", "--repeat", 20, "-q", 1)
        wait_until("20 messages", lambda: sum(len(member.messages) for member in members) >= 20)
        self.assertEqual(sum(len(member.messages) for member in members), 20)
        self.assertTrue(all(member.messages for member in members))

    def test_sub_dollar_topics_are_hidden(self):
        subscriber = self.listen("#")
        self.pub(self.topic(), "-m", "mark", "-q", 1)
        subscriber.wait_payload(b"mark")
        self.assertFalse([m for m in subscriber.messages if m.topic.startswith("$")])

    # ---- all ----

    @unittest.skipIf(AGAINST_MOSQUITTO, "its user may not write into the folder of the test")
    def test_unix_socket(self):
        self.pub(self.topic(), "-m", "by TCP", "-r", "-q", 1)
        for version in self.each_version():
            done = run("mosquitto_sub", "--unix", self.unix, "-t", self.topic(), "-C", 1, "-V", version)
            self.assertEqual((done.returncode, done.stdout), (0, "by TCP\n"), done.stderr)
            subscriber = self.listen(self.topic(version), version=version)
            done = run("mosquitto_pub", "--unix", self.unix, "-t", self.topic(version), "-m", "by file", "-q", 2, "-V", version)
            self.assertEqual(done.returncode, 0, done.stderr)
            subscriber.wait_payload(b"by file")

    # ---- mosquitto_rr ----

    def test_rr(self):
        """A request, answered by a bare socket."""
        server = self.closing(Raw(self.broker))
        server.send(raw_connect("server" + self._testMethodName, version=4) + raw_subscribe(1, self.topic("ask")))
        self.assertEqual((server.packet()[0], server.packet()[0]), (0x20, 0x90))
        for version in self.each_version():
            asker = subprocess.Popen([*MORTAL, "mosquitto_rr", "-h", self.broker.host, "-p", str(self.broker.mqtt_port), "-V", version, "-t", self.topic("ask"),
                                      "-e", self.topic("answer"), "-m", "question", "-q", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            first, body = server.packet()
            self.assertEqual((first & 0xF0, body[-8:]), (0x30, b"question"))
            self.pub(self.topic("answer"), "-m", "answer", "-q", 1)
            self.assertEqual(asker.communicate(timeout=PATIENCE_S)[0], b"answer\n")


del PlainMqtt  # only its classes are tests
