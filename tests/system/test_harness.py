"""What the other tests rely on: ports that nobody else has, faults that are named at once, a summary that is short."""
import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import run as runner
from harness import DEADLINE_S, PATIENCE_S, Broker, Stopwatch, SystemTest, wait_until
from ports import Ports, free_ports


class Harness(SystemTest):
    def test_two_runs_have_no_port_in_common(self):
        ours = set(free_ports(1, bases=50))
        program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from ports import free_ports; print(*free_ports(1, bases=50))"
        theirs = {int(port) for port in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout.split()}
        self.assertEqual((len(ours), len(theirs), ours & theirs), (50, 50, set()))

    def test_ports_in_a_row_are_free_and_apart(self):
        ports = Ports()
        ports.next += 4  # the second of the second row
        with contextlib.closing(ports.lock), socket.create_server(("127.0.0.1", ports.next)):
            ports.next -= 4
            first = ports.next
            self.assertEqual([ports.take(3) - first for _ in range(3)], [0, 5, 8])
            while ports.take(3) > first:  # round, and from the beginning
                pass

    def test_who_ends_is_named_at_once_with_what_it_said(self):
        broker = Broker("solo", self.folder())
        mqtt, admin = free_ports(1, bases=2)
        broker.config.write_text(f"name: solo\nlisten:\n  mqtt: 127.0.0.1:{mqtt}\n  admin: 127.0.0.1:{admin}\n")
        watch = Stopwatch()
        with socket.create_server(("127.0.0.1", mqtt)), self.assertRaisesRegex(AssertionError, "solo has ended with status 1:(.|\n)*in use"):
            broker.start()
        self.assertLess(watch.seconds(), DEADLINE_S)

    def test_a_deadline_ends_by_the_clock_too(self):
        start = time.monotonic()
        with self.assertRaisesRegex(AssertionError, r"not within 0\.2 s \(\d+\.\d s by the clock\): never \(last seen: 0\)"):
            wait_until("never", lambda: 0, 0.2)
        self.assertGreaterEqual(time.monotonic() - start, 0.2)

    def test_a_failure_is_told_in_a_few_lines(self):
        text = ("(at='edge-3')\nTraceback (most recent call last):\n"
                '  File "/h/tests/system/test_x.py", line 7, in test_y\n    self.wait()\n    ^^^^^^^^^^^\n'
                '  File "/h/tests/system/harness.py", line 9, in wait\n    raise AssertionError(log)\n'
                "AssertionError: it has ended:\n" + "".join(f"line {i}\n" for i in range(200)))
        self.assertEqual(runner.short(text), ["(at='edge-3')", 'File "/h/tests/system/test_x.py", line 7, in test_y',
                                              "AssertionError: it has ended:", "line 0", "...", "line 197", "line 198", "line 199"])
        self.assertEqual(runner.short("AssertionError: no frame at all"), ["AssertionError: no frame at all"])
