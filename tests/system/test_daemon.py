"""hobnobd as an administrator meets it: faults named with their remedy, an orderly end, the admin port, the tables of hobnob."""
import contextlib
import fcntl
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import threading
import time

from clients import MosquittoSub, Paho, Raw, mosquitto_pub, raw_connect
from harness import HOBNOBD, MORTAL, PATIENCE_S, PATIENT, THREE, Broker, SystemTest, environment, hobnob, run, wait_until
from ports import free_ports


def single(test, name="solo", more=""):
    """A broker alone with a configuration of its own."""
    broker = Broker(name, test.folder())
    mqtt, ws, admin = free_ports(1, bases=3)
    broker.config.write_text(f"name: {name}\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  ws: 127.0.0.1:{ws}\n  admin: 127.0.0.1:{admin}\n{more}")
    return broker


class Faults(SystemTest):
    """What is in the way is named in one line, with what to do about it."""

    def refuses(self, config, *words, command=None):
        done = run(*(command or []), HOBNOBD, config, env=environment())
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if not re.match(r"\S+Z info ", line)]
        self.assertEqual(len(lines), 1, f"one line:\n{done.stderr}")
        for word in words:
            self.assertIn(word.lower(), lines[0].lower())

    def test_a_port_in_use(self):
        fed = self.federation(("edge-1",))
        broker = fed["edge-1"]
        for listener, kind in (("mqtt", socket.SOCK_STREAM), ("ws", socket.SOCK_STREAM), ("admin", socket.SOCK_STREAM), ("peers", socket.SOCK_STREAM),
                               ("peers", socket.SOCK_DGRAM)):
            with self.subTest(listener=listener, kind=kind), socket.socket(socket.AF_INET, kind) as taken:
                taken.bind(("0.0.0.0", broker.port(listener)))
                if kind == socket.SOCK_STREAM:
                    taken.listen()
                self.refuses(broker.config, "hobnob.yaml:", str(broker.port(listener)), "in use", f"listen.{listener}")
        broker.start()  # the ports are free again: nothing stuck

    def test_check_finds_what_a_start_would(self):
        port = free_ports(1)[0]
        def database(sql):
            path = self.folder() / "made.db"
            with contextlib.closing(sqlite3.connect(path)) as made:
                made.executescript(sql)
            return path.read_bytes()
        newer, foreign = database("CREATE TABLE t (a); PRAGMA user_version = 99"), database("CREATE TABLE t (a)")
        here = f"127.0.0.1:{port}"
        for listen, data_dir, files, words in (
                (f"192.0.2.1:{port}", "data", {}, ("listen.mqtt", "is no address of this host")),
                ("unix:file", "data", {"file": b"x"}, ("listen.mqtt", "is a file and no socket")),
                ("unix:no/such", "data", {}, ("listen.mqtt", "cannot be made: No such file")),
                (here, "file", {"file": b"x"}, ("data_dir", "is there and is no folder")),
                (here, "no/such", {}, ("data_dir", "cannot be made: No such file")),
                (here, "data", {"data/hobnob.db": b"torn" * 100}, ("damaged", "start empty")),
                (here, "data", {"data/hobnob.db": newer}, ("data_dir", "written by a newer hobnobd")),
                (here, "data", {"data/hobnob.db": foreign}, ("data_dir", "of another program")),
                (here, "data", {"data/hobnob.db-wal": b"log"}, ("hobnob.db-wal", "missing or empty"))):
            with self.subTest(listen=listen, data_dir=data_dir, files=list(files)):
                broker = Broker("solo", self.folder())
                broker.config.write_text(f"name: solo\ndata_dir: {data_dir}\nlisten: {{mqtt: \"{listen}\"}}\nclients: {{anonymous: true}}\n")
                for name, content in files.items():
                    (broker.folder / name).parent.mkdir(exist_ok=True)
                    (broker.folder / name).write_bytes(content)
                before = sorted(broker.folder.rglob("*"))
                done = run(HOBNOBD, "--check", broker.config, env=environment())
                self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
                for word in words:
                    self.assertIn(word, done.stdout)
                self.assertEqual(sorted(broker.folder.rglob("*")), before, "nothing is made")
                self.refuses(broker.config, *words)
                for name, content in files.items():
                    self.assertEqual((broker.folder / name).read_bytes(), content, "left as it was")

    def test_check_says_of_a_damaged_page_what_a_start_says(self):
        broker = single(self, more="data_dir: data\n")
        broker.start()
        self.assertEqual(broker.stop(), 0)
        path = broker.folder / "data" / "hobnob.db"
        damaged = bytearray(path.read_bytes())
        damaged[4 * 4096:5 * 4096] = b"\xA5" * 4096
        path.write_bytes(damaged)
        done = run(HOBNOBD, "--check", broker.config, env=environment())
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertEqual((path.read_bytes() == damaged, list(path.parent.iterdir())), (True, [path]))
        self.refuses(broker.config, "damaged hobnob.db")
        self.assertIn(done.stdout.strip(), run(HOBNOBD, broker.config, env=environment()).stderr)

    def test_check_beside_a_running_broker_is_one_line_and_changes_nothing(self):
        broker = self.federation(("edge-1",))["edge-1"]
        broker.start()
        subscriber = self.closing(Paho(broker))
        subscriber.subscribe("a", qos=1)
        before = {path: path.stat().st_mtime_ns for path in (broker.folder / "data").iterdir()}
        done = run(HOBNOBD, "--check", broker.config, env=environment())
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, done.stderr, len(lines)), (0, "", 2), done.stdout)
        for word in ("warning: a broker with this data_dir runs here now", f"process {broker.process.pid} (", f"listen.mqtt 127.0.0.1:{broker.mqtt_port}",
                     "listen.peers (UDP)", "listen.admin"):
            self.assertIn(word, lines[0])
        self.assertEqual({path: path.stat().st_mtime_ns for path in (broker.folder / "data").iterdir()}, before)
        mosquitto_pub(broker, "a", b"goes on", 1)
        subscriber.wait_count(1)
        self.refuses(broker.config, "in use by another hobnobd")

    def test_a_port_that_needs_rights(self):
        broker = single(self)
        broker.edit(r"mqtt: 127.0.0.1:\d+", "mqtt: 127.0.0.1:1")
        command = ["setpriv", "--inh-caps=-net_bind_service", "--bounding-set=-net_bind_service"] if os.geteuid() == 0 else []
        if int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read()) > 1:
            self.refuses(broker.config, "127.0.0.1:1", command=command)

    def test_a_key_that_is_not_there_or_cannot_be_read(self):
        fed = self.federation(("edge-1",))
        broker = fed["edge-1"]
        key = broker.folder / "edge-1.key"
        text = key.read_text()
        key.unlink()
        self.refuses(broker.config, "edge-1.key", "hobnob.yaml:")
        key.mkdir()
        self.refuses(broker.config, "edge-1.key", "hobnob.yaml:")
        key.rmdir()
        key.write_text("not a key\n")
        key.chmod(0o600)
        self.refuses(broker.config, "edge-1.key", "hobnob.yaml:")
        key.write_text(text)
        key.chmod(0)
        # root may read anything, unless it gives that right away
        command = ["setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        self.refuses(broker.config, "edge-1.key", "hobnob.yaml:", "permission", command=command)
        key.chmod(0o600)
        for name in ("gossip.key", "issuer.pub", "edge-1.jwt"):
            with self.subTest(missing=name):
                aside = (broker.folder / name).rename(broker.folder / "aside")
                try:
                    self.refuses(broker.config, name, "hobnob.yaml:")
                finally:
                    aside.rename(broker.folder / name)
        broker.start()

    def test_an_unknown_host_to_listen_on(self):
        broker = single(self)
        broker.edit(r"ws: 127.0.0.1", "ws: no-such-host.invalid")
        self.refuses(broker.config, "no-such-host.invalid")

    def test_an_unknown_bootstrap_host_is_one_line_and_hinders_nothing(self):
        fed = self.federation(("edge-1", "edge-2"), limits=PATIENT)
        fed["edge-2"].edit(r"^(\s+bootstrap:).*(\n\s+- .*)*$", rf"\1 [no-such-host.invalid:7100, 127.0.0.1:{fed['edge-1'].port('peers')}]")
        fed.start()
        lines = wait_until("the log names the host", lambda: fed["edge-2"].log_lines("no-such-host.invalid"))
        self.assertEqual(len(lines), 1, lines)
        subscriber = self.closing(MosquittoSub(fed["edge-2"], "x"))
        mosquitto_pub(fed["edge-1"], "x", b"all the same")
        subscriber.wait_payload(b"all the same")

    def test_a_data_folder_that_cannot_be_made(self):
        broker = single(self, more="data_dir: /proc/nowhere\n")
        self.refuses(broker.config, "/proc/nowhere")

    def test_no_such_file_and_wrong_usage(self):
        self.refuses("/no/such/hobnob.yaml", "/no/such/hobnob.yaml")
        for arguments in (["--chekc", "x"], ["a", "b"]):
            done = run(HOBNOBD, *arguments, env=environment())
            self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(run(HOBNOBD, "--help", env=environment()).returncode, 0)
        self.assertRegex(run(HOBNOBD, "--version", env=environment()).stdout, r"\d+\.\d+\.\d+")


class Check(SystemTest):
    def check(self, text):
        path = self.folder() / "hobnob.yaml"
        path.write_text(text)
        done = run(HOBNOBD, "--check", path, env=environment())
        return path, done

    def test_each_fault_is_named_with_file_and_line(self):
        path, done = self.check("name: edge 1\nlsiten:\n  mqtt: 127.0.0.1:1883\nlisten:\n  mqtt: 127.0.0.1:99999\n  mqtsx: 127.0.0.1:1\nlimits:\n  clients_max: many\n")
        self.assertEqual(done.returncode, 1)
        faults = (done.stdout + done.stderr).splitlines()
        self.assertEqual(sorted({int(re.match(rf"{re.escape(str(path))}:(\d+): ", line).group(1)) for line in faults}), [1, 2, 5, 6, 8], faults)
        whole = "\n".join(faults)
        self.assertIn("listen", next(line for line in faults if ":2: " in line))
        self.assertRegex(whole, r":6: .*mqtt")

    def test_a_good_file_says_so(self):
        _, done = self.check("name: solo\nlisten: {mqtt: 127.0.0.1:1883}\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_broken_yaml_and_missing_name(self):
        for text, line in (("name: [a\n", None), ("listen: {mqtt: 127.0.0.1:1883}\n", None), ("", None), ("- a\n- b\n", None), ("name: a\nname: b\n", 2)):
            with self.subTest(text=text):
                path, done = self.check(text)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stdout + done.stderr, rf"^{re.escape(str(path))}:{line or ''}")

    def test_a_peers_listener_needs_identity_and_gossip_key(self):
        _, done = self.check("name: a\nlisten: {peers: 127.0.0.1:7100}\n")
        self.assertEqual(done.returncode, 1)
        for word in ("identity", "gossip_key"):
            self.assertIn(word, done.stdout + done.stderr)

    def test_an_admin_listener_for_everybody_is_refused(self):
        _, done = self.check("name: a\nlisten: {mqtt: 127.0.0.1:1883, admin: 0.0.0.0:9100}\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("admin", done.stdout + done.stderr)


class OrderlyEnd(SystemTest):
    def test_sigterm_and_sigint_leave_in_order(self):
        fed = self.federation().start()
        for name, number in (("edge-2", signal.SIGTERM), ("edge-3", signal.SIGINT)):
            with self.subTest(signal=number):
                client = self.closing(Raw(fed[name]))
                client.send(raw_connect("told", will=("will", "not sent"), version=5))
                self.assertEqual(client.packet()[0], 0x20)
                watcher = self.closing(Paho(fed["edge-1"]))
                watcher.subscribe("will", qos=1)
                self.assertEqual(fed[name].stop(number, 6), 0)
                for other in fed:
                    if other.wanted:
                        wait_until(f"{other.name} shows that {name} has left", lambda: other.members()[name] == "left", 2)
                        self.assertEqual([row for row in other.rows() if row[0] == name], [])
                        self.assertEqual(other.log_lines(name, "down"), [], "leaving is no death")
                kind, body = client.packet()
                self.assertEqual((kind, body[0]), (0xE0, 0x8B))  # server shutting down
                self.assertIsNone(client.packet())
                self.assertEqual(watcher.payloads(), [])
                fed[name].start()
                fed.wait_alive()

    def test_a_second_signal_ends_at_once_or_soon(self):
        broker = single(self)
        broker.start()
        os.kill(broker.process.pid, signal.SIGTERM)
        self.assertIn(broker.stop(signal.SIGTERM, 5), (0, 1))
        self.assertEqual(broker.faults(), [])

    def test_other_signals_end_nothing_and_some_say_something(self):
        broker = single(self, more="data_dir: data\n")
        broker.start()
        client = self.closing(Paho(broker))
        client.subscribe("a", qos=1)
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT):
            os.kill(broker.process.pid, number)
        for name in ("SIGUSR1", "SIGUSR2"):
            line, = wait_until(f"the log answers {name}", lambda: broker.log_lines("info state", f"{name}: clients 1, sessions 1, subscriptions 1"))
            self.assertIn("writes each change as it comes, 0 bytes wait", line)
        mosquitto_pub(broker, "a", b"goes on", 1)
        client.wait_count(1)
        self.assertEqual(broker.stop(), 0)

    def test_a_limit_of_file_size_is_a_full_disk_and_no_end(self):
        broker = single(self, more="data_dir: data\n")
        broker.start()
        client = self.closing(Paho(broker))
        client.subscribe("a/#", qos=1)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, ((broker.folder / "data" / "hobnob.db").stat().st_size, resource.RLIM_INFINITY))
        filler = self.closing(Paho(broker))
        for i in range(20):
            filler.publish(f"r/{i}", b"x" * 10000, 1, retain=True, wait=False)
        wait_until("the log names the limit", lambda: broker.log_lines("error store", "no file may become larger than", "ulimit -f"))
        mosquitto_pub(broker, "a/b", b"goes on")
        client.wait_count(1)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        wait_until("it recovers", lambda: broker.log_lines("info store", "writes again"))
        self.assertEqual(broker.stop(), 0)

    def test_clients_that_spoke_in_time_outlive_a_pause_of_the_broker(self):
        broker = single(self)
        broker.start()
        clients = [self.closing(Raw(broker)) for _ in range(300)]
        for i, client in enumerate(clients):
            client.send(raw_connect(f"c{i}", keep_alive_s=3))
        for client in clients:
            self.assertEqual(client.packet()[0], 0x20)
        os.kill(broker.process.pid, signal.SIGSTOP)
        end = time.monotonic() + 6
        while time.monotonic() < end:  # each tells in time that it is there, and nobody hears it
            for client in clients:
                client.send(b"\xc0\0")
            time.sleep(1)
        os.kill(broker.process.pid, signal.SIGCONT)
        for client in clients:
            self.assertEqual(client.packet(), (0xD0, b""))

    def test_systemd_is_told(self):
        broker = single(self)
        path = broker.folder / "notify"
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as listener:
            listener.bind(str(path))
            listener.settimeout(PATIENCE_S)
            os.environ["NOTIFY_SOCKET"] = str(path)
            try:
                broker.start()
            finally:
                del os.environ["NOTIFY_SOCKET"]
            self.assertEqual(listener.recv(100), b"READY=1")
            self.assertEqual(broker.stop(), 0)
            self.assertEqual(listener.recv(100), b"STOPPING=1")

    def test_alone_it_ends_in_a_moment(self):
        fed = self.federation()
        fed["edge-1"].start()
        self.assertEqual(fed["edge-1"].stop(timeout_s=7), 0)


class Hosts(SystemTest):
    """Hosts that give less than one would like."""

    def begin(self, broker, script, **options):
        self.addCleanup(lambda: (process.kill(), process.wait(10)))
        process = subprocess.Popen([*MORTAL, "sh", "-c", f'{script}', "sh", str(HOBNOBD), str(broker.config)], env=environment(), **options)
        return process

    def serves(self, broker):
        wait_until("it serves", lambda: broker.ready())
        client = self.closing(Paho(broker))
        client.subscribe("a", qos=1)
        mosquitto_pub(broker, "a", b"hello", 1)
        client.wait_count(1)

    def test_standard_files_may_be_closed_or_full(self):
        for where in ("<&-", "<&- >&- 2>&-", ">/dev/full 2>&1"):
            with self.subTest(where):
                broker = single(self, more="data_dir: data\n")
                process = self.begin(broker, f'exec "$1" "$2" {where}')
                self.serves(broker)
                for name, taken in (("0", "/dev/null"), ("2", "/dev/null")) if where == "<&- >&- 2>&-" else ():
                    self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{name}"), taken)
                process.terminate()
                self.assertEqual(process.wait(PATIENCE_S), 0)
        done = run("sh", "-c", f'"{HOBNOBD}" --check "{broker.config}" >/dev/full', env=environment())
        self.assertEqual((done.returncode, done.stderr), (1, "hobnobd: standard output cannot be written: see what it leads to (a full disk, a closed pipe)\n"))

    def test_a_log_that_nobody_reads_stops_nobody(self):
        broker = single(self, more="log: {level: debug}\n")
        ends = os.pipe()
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 4096)
        process = self.begin(broker, 'exec "$1" "$2"', stderr=ends[1])
        os.close(ends[1])
        wait_until("it serves", lambda: broker.ready())
        for _ in range(40):
            mosquitto_pub(broker, "x", b"x")
        self.serves(broker)
        hang = threading.Timer(PATIENCE_S, process.kill)
        hang.start()
        self.addCleanup(hang.cancel)
        with open(ends[0], "rb") as log:
            lines = [log.readline() for _ in range(50)]  # which an event may have at once, and the pipe has no room for
            self.assertGreater(sum(map(len, lines)), 4096)
            self.assertTrue(all(re.match(rb"20\d\d-\S+Z (info|debug) .*\n$", line) for line in lines), lines)
            process.terminate()
            self.assertIn(b"left in order", log.read())
            self.assertEqual(process.wait(PATIENCE_S), 0)

        fcntl.fcntl((ends := os.pipe())[1], fcntl.F_SETPIPE_SZ, 4096)
        process = self.begin(broker, 'exec "$1" "$2"', stderr=ends[1])
        self.serves(broker)
        for _ in range(20):
            mosquitto_pub(broker, "x", b"x")
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_S), 0)  # nobody ever read it
        os.close(ends[0])
        os.close(ends[1])

    def test_few_descriptors(self):
        for limit in (8, 11, 13, 20, 64):
            with self.subTest(limit):
                broker = single(self, more="data_dir: data\n")
                done = run("sh", "-c", f'ulimit -n {limit}; exec "{HOBNOBD}" "{broker.config}"', env=environment())
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("raise the limit", done.stderr.splitlines()[-1])

    def test_a_data_folder_that_is_gone_and_comes_back(self):
        broker = single(self, more="data_dir: data\n")
        broker.start()
        data = broker.folder / "data"
        data.rename(broker.folder / "elsewhere")
        publisher = self.closing(Paho(broker))
        publisher.publish("r/1", b"x", 1, retain=True, wait=False)
        wait_until("the log says what is gone", lambda: broker.log_lines("error store", "data is not there: No such file or directory: mount its disk"))
        mosquitto_pub(broker, "a", b"goes on")
        (broker.folder / "elsewhere").rename(data)
        wait_until("it recovers", lambda: broker.log_lines("info store", "writes again"))
        publisher.publish("r/2", b"y", 1, retain=True)
        self.assertEqual(broker.stop(), 0)
        with contextlib.closing(sqlite3.connect(data / "hobnob.db")) as database:
            self.assertIn(("r/2",), database.execute("SELECT topic FROM retained").fetchall())

    def test_a_file_system_that_is_read_only(self):
        if os.geteuid() != 0:
            self.skipTest("mounting takes root")
        broker = single(self, more="data_dir: data\n")
        (broker.folder / "data").mkdir()
        script = f'mount -t tmpfs none "{broker.folder}/data" && mount -o remount,ro "{broker.folder}/data"; "{HOBNOBD}" --check "{broker.config}"; "{HOBNOBD}" "{broker.config}"'
        done = run("unshare", "-m", "sh", "-c", script, env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "data cannot be written: Read-only file system; mount it for writing")
        self.assertRegex(done.stderr, "data cannot be written: its file system is mounted read-only, mount it for writing")

    def test_a_full_disk_at_the_start(self):
        if os.geteuid() != 0:
            self.skipTest("mounting takes root")
        broker = single(self, more="data_dir: data\n")
        (broker.folder / "data").mkdir()
        script = f'mount -t tmpfs -o size=256k none "{broker.folder}/data"; cat /dev/zero > "{broker.folder}/data/fill"; "{HOBNOBD}" --check "{broker.config}"; "{HOBNOBD}" "{broker.config}"'
        done = run("unshare", "-m", "sh", "-c", script, env=environment())
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, "warning: data_dir .*data is on a disk with 0 KiB left: .* make some")
        self.assertRegex(done.stderr, "is on a full disk: make room there")

    def test_no_ipv6_no_hosts_file_and_no_host_name(self):
        if os.geteuid() != 0:
            self.skipTest("namespaces like these take root")
        broker = single(self)
        hosts = 'mount --bind /dev/null /etc/hosts; '
        for listen, before, words in (('"[::1]:1883"', "sysctl -qw net.ipv6.conf.all.disable_ipv6=1; ", "[::1]:1883 is no address of this host: write one that is"),
                                      ("localhost:1883", hosts, "the host localhost is unknown")):
            broker.config.write_text(f"name: solo\nlisten: {{mqtt: {listen}}}\n")
            done = run("unshare", "-nmu", "sh", "-c", f'ip link set lo up; {before}"{HOBNOBD}" "{broker.config}"', env=environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
        broker.config.write_text("name: solo\nlisten: {mqtt: 127.0.0.1:1883}\n")
        script = (f'ip link set lo up; {hosts}hostname ""; "{HOBNOBD}" "{broker.config}" & broker=$!; '
                  'for i in $(seq 300); do mosquitto_pub -h 127.0.0.1 -t up -m x 2>/dev/null && break; sleep 0.02; done; mosquitto_pub -h 127.0.0.1 -t a -q 1 -m x && echo served; kill $broker; wait $broker')
        done = run("unshare", "-nmu", "sh", "-c", script, env=environment())
        self.assertEqual((done.returncode, done.stdout), (0, "served\n"), done.stderr)


class Alone(SystemTest):
    def test_without_configuration_there_is_a_broker_on_loopback(self):
        """Port 1883 may be taken on this machine: a network namespace has one of its own."""
        flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
        script = (f'ip link set lo up; "{HOBNOBD}" & broker=$!; for i in $(seq 3000); do mosquitto_pub -h 127.0.0.1 -t up -m x 2>/dev/null && break; sleep 0.02; done; '
                  'mosquitto_pub -h 127.0.0.1 -t kept -r -m "hello alone" && mosquitto_sub -h 127.0.0.1 -t kept -C 1 -W 60; kill $broker; wait $broker; echo "status $?"')
        done = run("unshare", *flags, "sh", "-c", script, env=environment())
        self.assertEqual(done.stdout, "hello alone\nstatus 0\n", done.stderr)
        self.assertEqual(list(self.folder().iterdir()), [])

    def test_anonymous_clients_are_welcome_on_loopback_only(self):
        flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
        place = self.folder()
        (place / "hobnob.yaml").write_text("name: solo\nlisten: {mqtt: [127.0.0.1:1883, 10.9.9.9:1883]}\n")
        script = (f'ip link set lo up; ip link add v0 type veth peer name v1; ip address add 10.9.9.9/24 dev v0; ip link set v0 up; "{HOBNOBD}" "{place}/hobnob.yaml" & broker=$!; '
                  'for i in $(seq 3000); do mosquitto_pub -h 127.0.0.1 -t up -m x 2>/dev/null && break; sleep 0.02; done; '
                  'mosquitto_pub -h 127.0.0.1 -t x -m x; echo "loopback $?"; mosquitto_pub -h 10.9.9.9 -t x -m x -V mqttv5; echo "outside $?"; kill $broker; wait $broker')
        done = run("unshare", *flags, "sh", "-c", script, env=environment())
        self.assertIn("loopback 0", done.stdout, done.stderr)
        self.assertNotIn("outside 0", done.stdout)
        self.assertRegex(done.stderr, "client_refused .*0x87, only loopback is open to all: write clients: {anonymous: true}")

    def test_data_survive_as_promised_the_epoch_rises(self):
        fed = self.federation(("edge-1",))
        epochs = []
        for _ in range(3):
            fed["edge-1"].start()
            epochs.append(fed["edge-1"].api("status")["epoch"])
            fed["edge-1"].kill()
        self.assertEqual(epochs, sorted(set(epochs)))


class Admin(SystemTest):
    def test_endpoints_and_tables(self):
        fed = self.federation(limits=PATIENT).start()
        subscriber = self.closing(Paho(fed["edge-3"]))
        subscriber.subscribe("table/#", "table/+/x", qos=1)
        publisher = self.closing(Paho(fed["edge-1"]))
        publisher.publish("table/a", b"x" * 100, 1, retain=True)
        subscriber.wait_count(1)
        one = fed["edge-1"]
        for path, status in (("/", 200), ("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/api/v1/nothing", 404), ("/../../etc/passwd", 404), ("/nothing", 404)):
            self.assertEqual(one.get(path)[0], status, path)

        members = {m["name"]: m for m in one.api("members")}
        self.assertEqual(set(members), set(THREE))
        for name, member in members.items():
            self.assertEqual(member["state"], "alive")
            self.assertEqual(member["address"], f"127.0.0.1:{fed[name].port('peers')}")
            self.assertRegex(member["id"], r"^[0-9a-f]{32}$")
            self.assertEqual(member["id"], {m["name"]: m for m in fed[name].api("members")}[name]["id"])
            self.assertGreater(member["epoch"], 0)
        for broker in fed:
            wait_until(f"{broker.name} has the rows", lambda: {("edge-3", "newsub", "table/#"), ("edge-3", "newsub", "table/+/x"), ("edge-1", "newpub", "table/a")} <= broker.rows())
        link = one.links()["edge-3"]
        self.assertEqual((link["state"], link["publications_sent"]), ("up", 1))
        other = fed["edge-3"].links()["edge-1"]
        self.assertEqual((other["state"], other["publications_received"]), ("up", 1))
        self.assertNotEqual(link["direction"], other["direction"])
        status = one.api("status")
        self.assertEqual((status["name"], status["ready"], status["clients"], status["retained"]), ("edge-1", True, 1, 1))
        metrics = one.metrics()
        self.assertEqual(metrics['hobnob_link_publications_sent_total{peer="edge-3",outcome="first"}'], 1)
        self.assertEqual(metrics["hobnob_publications_received_total"], 1)
        self.assertEqual(metrics['hobnob_members{state="alive"}'], 3)

        for table, words in (("status", ["edge-1"]), ("members", [*THREE, "alive"]), ("registry", ["edge-3", "newsub", "table/#", "newpub", "table/a"]), ("links", ["edge-3", "up"])):
            with self.subTest(table=table):
                shown = hobnob(table, "--admin", one.admin)
                for word in words:
                    self.assertIn(word, shown.stdout)
                for line in hobnob(table, "--admin", one.admin).stdout.splitlines():
                    self.assertLessEqual(len(line), 79, f"wider than a terminal: {line}")
                parsed = json.loads(hobnob(table, "--admin", one.admin, "--json").stdout)
                self.assertEqual(set(parsed), {table})
        self.assertEqual({m["name"] for m in json.loads(hobnob("members", "--admin", one.admin, "--json").stdout)["members"]}, set(THREE))

    def test_only_get_and_only_by_an_address_of_ours(self):
        broker = single(self)
        broker.start()
        self.addCleanup(broker.stop)
        port = broker.port("admin")

        def ask(request):
            with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as s:
                s.sendall(request)
                answer = b""
                while b"\r\n\r\n" not in answer and (more := s.recv(4096)):
                    answer += more
                return answer.split(b" ")[1:2]

        self.assertEqual(ask(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), [b"200"])
        self.assertNotEqual(ask(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"), [b"200"])
        self.assertEqual(ask(b"GET /api/v1/members HTTP/1.1\r\nHost: evil.example\r\n\r\n"), [b"421"])
        self.assertEqual(broker.get("/healthz")[0], 200)

    def test_a_broker_that_is_not_there_is_one_line(self):
        port = free_ports(1)[0]
        for table in ("status", "members", "registry", "links"):
            done = hobnob(table, "--admin", f"http://127.0.0.1:{port}", status=1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(str(port), done.stderr)
            self.assertEqual(done.stdout, "")

    def test_log_lines_have_time_level_and_event(self):
        broker = single(self)
        broker.start()
        broker.stop()
        lines = [line for line in broker.log().splitlines() if not line.startswith("---- ")]
        self.assertTrue(lines)
        for line in lines:
            self.assertRegex(line, r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) [a-z_-]+( [a-z_]+="([^"\\]|\\.)*")*$')
