"""What every system test needs: real daemons in a folder of their own, and waiting that ends.

Nothing here sleeps and hopes: wait_until() polls a condition up to a deadline, holds() watches that one stays true. Seconds are those of
a Stopwatch, so that a busy machine fails no test. Processes are ended by their pid. A test fails when a daemon of its died unasked or a sanitizer reported something, and then
the logs of all its daemons are printed.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from namespaces import in_namespace, inside
from ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HOBNOB_BUILD", ROOT / "build" / "debug")).resolve()
HOBNOBD = BUILD / "hobnobd"
HOBNOB = BUILD / "hobnob"
# hobnobd under valgrind (run.py --valgrind): slower by a factor that the deadlines share; all that valgrind says is a fault.
VALGRIND = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible", "--error-exitcode=99",
            f"--suppressions={Path(__file__).with_name('valgrind.supp')}"] if os.environ.get("HOBNOB_SYSTEM_VALGRIND") else []
SLOWER = 10 if VALGRIND else 1
DEADLINE_S = 15.0 * SLOWER  # by the Stopwatch
PATIENCE_S = 90.0 * SLOWER  # by the clock on the wall, for calls that wait by themselves: longer than the above can become
SANITIZER = re.compile(r"ERROR: (Address|Leak)Sanitizer|runtime error:|Assertion .* failed|^==\d+== \S.*", re.M)

THREE = ("edge-1", "edge-2", "edge-3")
# Limits for tests of what is delivered: a SUBACK waits for the other brokers however long a busy machine takes, and, where nobody is to
# die, nobody is taken for dead because it had no processor.
PATIENT_SUBACK = {"subscribe_barrier_ms": 30_000}
PATIENT = {**PATIENT_SUBACK, "suspicion_min_ms": 20_000}


# ---- time ----

def held_up_s():
    """Seconds since the machine started in which somebody waited for a processor or the disk, or a processor was with another guest
    of the host: what the kernel knows of it (pressure stall information; 0 without)."""
    held = 0.0
    for resource in ("cpu", "io"):
        try:
            held += int(re.search(r"^some .*total=(\d+)", Path("/proc/pressure", resource).read_text(), re.M)[1]) / 1e6
        except (OSError, TypeError):
            pass
    stolen = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
    return held + stolen / os.sysconf("SC_CLK_TCK") / os.cpu_count()


class Stopwatch:
    """Seconds of a machine that has time for us: those in which anybody was held up do not count, but at least a quarter of all does.
    So a bound on time fails when somebody waits who need not, and not when others keep the machine busy."""

    def __init__(self):
        self.start, self.held_up = time.monotonic(), held_up_s()

    def seconds(self):
        passed = time.monotonic() - self.start
        return max(passed - (held_up_s() - self.held_up), passed / 4)


def wait_until(what, condition, timeout_s=DEADLINE_S, watch=None):
    """The first true value of condition(), polled; fails with what was waited for and what was seen last. With a watch that runs
    already, the time is over when it shows timeout_s."""
    watch = watch or Stopwatch()
    while True:
        late = time.monotonic() - watch.start >= timeout_s and watch.seconds() >= timeout_s
        try:
            seen = condition()
            if seen:
                return seen
        except (OSError, urllib.error.URLError) as error:
            seen = error
        if late:
            raise AssertionError(f"not within {timeout_s:g} s ({time.monotonic() - watch.start:.1f} s by the clock): {what} (last seen: {seen!r})")
        time.sleep(0.01)


def holds(what, condition, seconds):
    """Fails if condition() turns false within the given time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = condition()
        if not seen:
            raise AssertionError(f"did not stay true: {what} (seen: {seen!r})")
        time.sleep(0.02)


# ---- programs ----

def run(*command, timeout_s=PATIENCE_S, **options):
    """A program that ends by itself: its exit status and what it wrote, as text."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=timeout_s,
                          stdin=subprocess.DEVNULL, **options)


def hobnob(*arguments, status=0, **options):
    done = run(HOBNOB, *arguments, **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hobnob {' '.join(map(str, arguments))}: exit status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done


def environment():
    return dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "abort_on_error=0:detect_leaks=1"),
                UBSAN_OPTIONS=os.environ.get("UBSAN_OPTIONS", "print_stacktrace=1"))


# Before a command: it is not to outlive the tests, however they end.
MORTAL = ["setpriv", "--pdeathsig", "KILL"]

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy, whatever the environment says


class Daemon:
    """A server process with a log file; what Broker and the tests' Mosquitto have in common."""

    ends_with_0 = True  # after SIGTERM

    def __init__(self, name, folder):
        self.name = name
        self.folder = Path(folder)
        self.process = None
        self.log_path = self.folder / f"{name}.log"
        self.namespace = None
        self.wanted = False  # should be running now

    def command(self):
        raise NotImplementedError

    def ready(self):
        raise NotImplementedError

    def spawn(self):
        assert self.process is None or self.process.poll() is not None, f"{self.name} runs already"
        command = in_namespace(self.namespace, MORTAL + [str(part) for part in self.command()])
        with open(self.log_path, "ab") as log:
            log.write(f"---- {' '.join(command)}\n".encode())
            log.flush()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment(), cwd="/")
        self.wanted = True
        return self

    def start(self):
        self.spawn()
        self.wait_ready()
        return self

    def wait_ready(self):
        def ready():
            self.check_alive()
            return self.ready()
        wait_until(f"{self.name} is ready", ready)

    def check_alive(self):
        """Says so at once when it has ended unasked, with its log: no deadline need be waited for."""
        if self.wanted and self.process.poll() is not None:
            raise AssertionError(f"{self.name} has ended with status {self.process.returncode}:\n{tail(self.log(), 20)}")

    def _end(self, number):
        self.wanted = False
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def kill(self):
        self._end(signal.SIGKILL)
        if self.process is not None:
            self.process.wait(PATIENCE_S)

    def stop(self, number=signal.SIGTERM, timeout_s=DEADLINE_S):
        """Asks it to end and returns the exit status."""
        self._end(number)
        return self.wait_end(timeout_s)

    def wait_end(self, timeout_s=DEADLINE_S):
        try:
            wait_until(f"{self.name} ends", lambda: self.process.poll() is not None, timeout_s)
        except AssertionError:
            self.kill()
            raise
        return self.process.returncode

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_lines(self, *parts):
        """The lines of its log that contain all these words, in any case."""
        return [line for line in self.log().splitlines() if all(part.lower() in line.lower() for part in parts) and not line.startswith("---- ")]

    def faults(self):
        found = []
        if self.wanted and self.process is not None and self.process.poll() is not None:
            found.append(f"{self.name} died unasked with status {self.process.returncode}")
        report = SANITIZER.search(self.log())
        if report:
            found.append(f"{self.name}: sanitizer or assertion report in its log: {report.group(0)}")
        return found


class Broker(Daemon):
    """One hobnobd, run from a folder with a hobnob.yaml that init (or the test) wrote."""

    host = "127.0.0.1"

    @property
    def config(self):
        return self.folder / "hobnob.yaml"

    def command(self):
        return [*VALGRIND, HOBNOBD, self.config]

    def edit(self, pattern, replacement):
        """Changes the configuration by a regular expression that must match."""
        text, count = re.subn(pattern, replacement, self.config.read_text(), flags=re.M)
        assert count, f"{pattern} is not in {self.config}:\n{text}"
        self.config.write_text(text)

    def limit(self, **limits):
        """Writes a section of limits, once."""
        self.config.write_text(self.config.read_text() + "limits:\n" + "".join(f"  {name}: {value}\n" for name, value in limits.items()))

    def port(self, listener):
        found = re.search(rf"^\s+{listener}:\s*\[?\s*['\"]?([^\s'\"#]*):(\d+)", self.config.read_text(), re.M)
        assert found, f"no listener {listener} in {self.config}:\n{self.config.read_text()}"
        return int(found.group(2))

    @property
    def mqtt_port(self):
        return self.port("mqtt")

    @property
    def ws_port(self):
        return self.port("ws")

    @property
    def admin(self):
        return f"http://127.0.0.1:{self.port('admin')}"

    def get(self, path):
        """Status and body of the admin port's answer."""
        with inside(self.namespace):
            try:
                with DIRECT.open(self.admin + path, timeout=PATIENCE_S) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()
            except OSError:
                self.check_alive()
                raise

    def api(self, name):
        status, body = self.get(f"/api/v1/{name}")
        assert status == 200, f"/api/v1/{name} answered {status}: {body}"
        return json.loads(body)[name]

    def metrics(self):
        """{'name{labels}': value} of /metrics."""
        status, body = self.get("/metrics")
        assert status == 200, body
        found = {}
        for line in body.splitlines():
            if line and not line.startswith("#"):
                key, value = line.rsplit(" ", 1)
                found[key] = float(value)
        return found

    def metric(self, name):
        """The sum over all labels; fails when there is no such metric."""
        values = [value for key, value in self.metrics().items() if key.split("{")[0] == name]
        assert values, f"{self.name} has no metric {name}: {sorted(self.metrics())}"
        return sum(values)

    def ready(self):
        return self.get("/readyz")[0] == 200

    def members(self):
        """{name: state}"""
        return {member["name"]: member["state"] for member in self.api("members")}

    def rows(self, kind=None):
        """{(owner, kind, filter)} of the active rows."""
        return {(row["owner"], row["kind"], row["filter"]) for row in self.api("registry")
                if row["active"] and (kind is None or row["kind"] == kind)}

    def links(self):
        """{peer: row}"""
        return {link["peer"]: link for link in self.api("links")}


class Mosquitto(Daemon):
    """Debian's Mosquitto: what the single-broker tests must hold on too, so that they test MQTT and not us."""

    host = "127.0.0.1"
    ends_with_0 = False

    def __init__(self, name, folder):
        super().__init__(name, folder)
        self.mqtt_port, self.ws_port = free_ports(1, bases=2)
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.mqtt_port} 127.0.0.1\nlistener {self.ws_port} 127.0.0.1\nprotocol websockets\nallow_anonymous true\n"
            f"persistence false\nset_tcp_nodelay true\nlog_type all\n")

    def command(self):
        return [shutil.which("mosquitto", path="/usr/sbin:/usr/bin"), "-c", self.folder / "mosquitto.conf"]

    def ready(self):
        for port in (self.mqtt_port, self.ws_port):
            socket.create_connection((self.host, port), 1).close()
        return True


class Federation:
    """Brokers as `hobnob init` makes them, on free ports of this host. No configuration is edited unless a test asks for it."""

    def __init__(self, names=THREE, hosts=None, ports=True):
        self.folder = Path(tempfile.mkdtemp(prefix="hobnob-test-"))
        self.made = self.folder / "fed"
        arguments = ["init", self.made, "--brokers", ",".join(names)]
        if ports:
            mqtt, ws, peers, admin = free_ports(len(names), bases=4)
            arguments += ["--ports", f"mqtt={mqtt},ws={ws},peers={peers},admin={admin}"]
        for name, address in (hosts or {}).items():
            arguments += ["--host", f"{name}={address}"]
        try:
            hobnob(*arguments)
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        self.brokers = {name: Broker(name, self.made / name) for name in names}
        self.namespaces = []

    def __getitem__(self, name):
        return self.brokers[name]

    def __iter__(self):
        return iter(self.brokers.values())

    def start(self, order=None):
        """Starts all, waits until each is ready and knows all the others alive."""
        for name in order or self.brokers:
            self.brokers[name].spawn()
        for name in order or self.brokers:
            self.brokers[name].wait_ready()
        self.wait_alive()
        return self

    def wait_alive(self, names=None, timeout_s=DEADLINE_S, watch=None):
        names = set(names or self.brokers)
        for name in names:
            wait_until(f"{name} sees all of {sorted(names)} alive",
                       lambda: (seen := self.brokers[name].members()) and all(seen.get(n) == "alive" for n in names), timeout_s, watch)

    def wait_row(self, row, names=None):
        """Until the row (owner, kind, filter) is in the registry at all brokers."""
        for name in names or self.brokers:
            wait_until(f"{name} has the row {row}", lambda: row in self.brokers[name].rows())

    def faults(self):
        return [fault for broker in self for fault in broker.faults()]

    def logs(self):
        return "\n".join(f"======== log of {broker.name}\n{tail(broker.log())}" for broker in self)

    def close(self):
        """Ends everything. Returns the faults found, those of an orderly end included."""
        found = self.faults()
        ending = [broker for broker in self if broker.wanted]
        for broker in ending:
            broker._end(signal.SIGTERM)
        for broker in ending:
            try:
                status = broker.wait_end()
                if status != 0 and not found:
                    found.append(f"{broker.name}: exit status {status} after SIGTERM")
            except AssertionError as error:
                found.append(str(error))
        for fault in self.faults():
            if fault not in found:
                found.append(fault)
        for namespace in self.namespaces:
            namespace.close()
        return found

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def tail(text, lines=120):
    kept = text.splitlines()
    return "\n".join(([f"... {len(kept) - lines} lines before"] if len(kept) > lines else []) + kept[-lines:])


# ---- test cases ----

def failed(test):
    """True if the running test has failed already (for its clean-ups)."""
    result = test._outcome.result
    return any(found is test or getattr(found, "test_case", None) is test for found, _ in result.failures + result.errors)


class SystemTest(unittest.TestCase):
    """A test that makes what it needs. Everything made here is ended, checked and removed afterwards, in the opposite order."""

    def federation(self, names=THREE, limits=None, **options):
        made = Federation(names, **options)
        self.addCleanup(self._end_federation, made)
        for broker in made if limits else ():
            broker.limit(**limits)
        return made

    def _end_federation(self, made):
        faults = made.close()
        if faults or failed(self):
            print(f"\n{self.id()}\n{made.logs()}", flush=True)
        made.remove()
        self.assertEqual(faults, [])

    def folder(self):
        made = Path(tempfile.mkdtemp(prefix="hobnob-test-"))
        self.addCleanup(shutil.rmtree, made, ignore_errors=True)
        return made

    def closing(self, client):
        self.addCleanup(client.close)
        return client


class OneBrokerTest(SystemTest):
    """Tests that share one broker in a room of its own: setUpClass() of a subclass makes both, and starts it."""

    room = broker = None

    @classmethod
    def tearDownClass(cls):
        faults = cls.broker.faults()
        status = cls.broker.stop()
        if status != 0 and cls.broker.ends_with_0:
            faults.append(f"exit status {status} after SIGTERM")
        if faults:
            print(cls.broker.log(), flush=True)
        cls.room.cleanup()
        assert not faults, faults

    def setUp(self):
        self.addCleanup(self._check)

    def _check(self):
        if failed(self):
            print(f"\n{self.id()}\n{self.broker.log()[-8000:]}", flush=True)
        self.assertEqual(self.broker.faults(), [])


class FederationTest(SystemTest):
    """Tests that share one running federation, because each only sends messages on topics of its own."""

    shared = None

    @classmethod
    def setUpClass(cls):
        cls.shared = Federation()
        for broker in cls.shared:
            broker.limit(**PATIENT)
        try:
            cls.shared.start()
        except BaseException:
            cls.shared.close()
            print(cls.shared.logs())
            cls.shared.remove()
            raise

    @classmethod
    def tearDownClass(cls):
        faults = cls.shared.close()
        if faults:
            print(cls.shared.logs(), flush=True)
        cls.shared.remove()
        cls.shared = None
        if faults:
            raise AssertionError("; ".join(faults))

    def setUp(self):
        self.fed = self.shared
        self.addCleanup(self._check)

    def _check(self):
        faults = self.fed.faults()
        if faults or failed(self):
            print(f"\n{self.id()}\n{self.fed.logs()}", flush=True)
        self.assertEqual(faults, [])

    def topic(self, rest=""):
        return f"{self._testMethodName}/{rest}" if rest else self._testMethodName
