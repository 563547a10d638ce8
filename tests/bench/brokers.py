"""The two brokers that are measured side by side, and what they cost."""
import json
import os
import re
import resource
import shutil
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if "harness" not in sys.modules:  # the system tests have chosen already
    os.environ.setdefault("HOBNOB_BUILD", str(ROOT / "build" / "release"))
sys.path.insert(0, str(ROOT / "tests" / "system"))

from clients import Raw, packet, raw_connect, text  # noqa: E402
from harness import HOBNOB, HOBNOBD, Broker, Daemon, run  # noqa: E402
from ports import free_ports  # noqa: E402

class Cost:
    """CPU time and memory of a daemon, from /proc."""

    def cpu_s(self):
        """Of all its threads."""
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")) / 1e9

    def settle(self):
        """Until it has done what there was to do: it uses less than a hundredth of a core."""
        before, end = self.cpu_s(), time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.1)  # what is measured
            now = self.cpu_s()
            if now - before < 0.001:
                return
            before = now
        raise RuntimeError(f"{self.name} is still busy after a minute")

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text()).group(1)) * 1024

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def bench(self, *arguments):
        """hobnob bench against it: its result, also where QoS 1 or 2 lost some."""
        done = run(HOBNOB, "bench", "--port", self.mqtt_port, "--broker-pid", self.process.pid, "--json", *arguments, timeout_s=600)
        if not done.stdout:
            raise RuntimeError(f"{self.name}: hobnob bench {' '.join(map(str, arguments))}: {done.stderr}")
        return json.loads(done.stdout)["bench"]


class Ours(Cost, Broker):
    """hobnobd, without a federation. more: further lines of its configuration."""

    def __init__(self, folder, more="", name="hobnobd"):
        super().__init__(name, folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        mqtt, ws, admin = free_ports(1, bases=3)
        self.config.write_text(f"name: {name}\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  ws: 127.0.0.1:{ws}\n  admin: 127.0.0.1:{admin}\nlog: {{level: warning}}\n{more}")


class Theirs(Cost, Daemon):
    """Debian's Mosquitto as it comes, but that it keeps nothing, logs nothing and sends at once."""

    host = "127.0.0.1"

    def __init__(self, folder, more=""):
        super().__init__("mosquitto", folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.mqtt_port, = free_ports(1)
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.mqtt_port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nlog_type none\n{more}")

    def command(self):
        return [shutil.which("mosquitto", path="/usr/sbin:/usr/bin"), "-c", self.folder / "mosquitto.conf"]

    def ready(self):
        Raw(self).close()
        return True


def allow_many_files():
    """For thousands of sockets, here and in the daemons started from here."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def need():
    """Complains when something is missing, and makes room for many sockets."""
    for program in (HOBNOB, HOBNOBD):
        if not program.exists():
            sys.exit(f"there is no {program}: build a release (cmake -S . -B build/release -G Ninja && cmake --build build/release), or set HOBNOB_BUILD")
    if shutil.which("mosquitto", path="/usr/sbin:/usr/bin") is None:
        sys.exit("there is no mosquitto: tools/install test")
    allow_many_files()


def connected(broker, client_id, version=4, clean=True):
    """A bare connection, once its CONNACK is here."""
    client = Raw(broker).send(raw_connect(client_id, keep_alive_s=0, clean=clean, version=version))
    answer = client.packet()
    if answer is None or answer[1][1] != 0:
        raise RuntimeError(f"{broker.name} refuses the client {client_id}: {answer}")
    return client


def subscribe_all(client, filters, qos=0):
    """In packets of a hundred, waiting for each SUBACK."""
    for at in range(0, len(filters), 100):
        some = filters[at:at + 100]
        client.send(packet(0x82, b"\0\1" + b"".join(text(item) + bytes([qos]) for item in some)))
        while (answer := client.packet())[0] != 0x90:
            pass
        if any(code > 2 for code in answer[1][2:]):
            raise RuntimeError(f"a subscription was refused: {answer[1][2:].hex()}")


def fence(client):
    """Returns once the broker has had its turn with all that this client sent."""
    client.send(b"\xc0\0")
    while client.packet()[0] != 0xd0:
        pass


def median(values):
    return statistics.median(values)


def number(value):
    return f"{value:,.0f}"


def table(titles, rows):
    """A plain table: the first column to the left, the others to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    for row in [titles, *rows]:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip(), flush=True)
