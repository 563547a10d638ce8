#!/usr/bin/python3
"""Runs the system tests: run.py [--times N] [--against mosquitto] [--valgrind] [NAME ...]; a NAME is a module, class or test, or a part of one.

HOBNOB_BUILD is the build folder with hobnobd and hobnob (default build/debug). Prints one line a test with the seconds it took; at the
end what failed once more, in short, and as the last line a count. --against mosquitto runs the tests of plain MQTT on Debian's Mosquitto instead: they must hold there too.
--valgrind runs each hobnobd under valgrind's memcheck, which needs a build without sanitizers (HOBNOB_BUILD=build/release); without names
only the tests in UNDER_VALGRIND: in the others time matters, or they would take hours.
"""
import argparse
import os
import shutil
import signal
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

UNDER_VALGRIND = ["test_plain_", "test_crossing", "test_daemon.Admin", "test_daemon.OrderlyEnd", "test_hostile", "test_restart.FullDisk", "test_listeners.Proxies",
                  "test_listeners.Several", "test_listeners.UnixSockets", "test_listeners.ClientCertificates", "test_bench.Bench.test_all_arrives_at_ours"]


def short(text):
    """Of a traceback: where in the test it was, and the beginning and the end of what was said."""
    lines = [line for line in text.splitlines() if line.strip()]
    frames = [i for i, line in enumerate(lines) if line.startswith("  File ")]
    ours = [i for i in frames if "/test_" in lines[i]] or frames
    said = next((i for i in range(frames[-1] + 1, len(lines)) if not lines[i].startswith("    ")), 0) if frames else 0
    said = lines[said:] if len(lines) - said <= 6 else [*lines[said:said + 2], "...", *lines[-3:]]
    place = [lines[0]] if lines and lines[0].startswith(("(", "[")) else []  # of a subtest
    return [line.strip()[:300] for line in [*place, *(lines[i] for i in ours[-1:]), *said]]


TEST_S = 900  # the longest have 200 rounds of kill -9, or valgrind


def too_long(*_):
    raise AssertionError(f"not done after {TEST_S} s: what it waits for has no deadline")


class Result(unittest.TextTestResult):
    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TEST_S)

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)
        bad = [kind for kind, found in (("FAILED", self.failures + self.errors), ("skipped", self.skipped)) if any(t is test for t, _ in found)]
        print(f"{bad[0] if bad else 'ok':8}{time.monotonic() - self.started:7.2f} s  {test.id()}", flush=True)
        for found, text in self.failures + self.errors:
            if found is test:
                print(text, flush=True)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            kind = self.failures if issubclass(error[0], test.failureException) else self.errors
            _, text = kind.pop()
            kind.append((test, f"{subtest._subDescription()}\n{text}"))


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1, help="run all of it so often; stops after the first round with a failure")
    parser.add_argument("--against", choices=["mosquitto"], help="what plays the single broker")
    parser.add_argument("--valgrind", action="store_true", help="memcheck with a search for leaks; deadlines are ten times as long")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.valgrind:
        if shutil.which("valgrind") is None:
            print("there is no valgrind: apt-get install valgrind")
            return 2
        os.environ["HOBNOB_SYSTEM_VALGRIND"] = "1"
        options.names = options.names or UNDER_VALGRIND
    if options.against:
        os.environ["HOBNOB_SYSTEM_AGAINST"] = options.against
    build = Path(os.environ.get("HOBNOB_BUILD", HERE.parents[1] / "build" / "debug"))
    if not options.against and not (build / "hobnobd").exists():
        print(f"there is no hobnobd in {build}: build it, or set HOBNOB_BUILD")
        return 2
    passed = failed = skipped = 0
    faults = []
    for turn in range(options.times):
        found = unittest.TestLoader().discover(str(HERE), pattern="test_plain_*.py" if options.against else "test_*.py")
        tests = [test for test in flatten(found) if not options.names or any(name in test.id() for name in options.names)]
        if not tests:
            print(f"no test has {' or '.join(options.names)} in its name")
            return 2
        if options.times > 1:
            print(f"round {turn + 1} of {options.times}", flush=True)
        result = unittest.TextTestRunner(stream=open(os.devnull, "w"), resultclass=Result, verbosity=0).run(unittest.TestSuite(found) if not options.names else unittest.TestSuite(tests))
        bad = {id(test) for test, _ in result.failures + result.errors}
        for test, text in result.errors:
            if not isinstance(test, unittest.TestCase) or "_FailedTest" in type(test).__name__ or "_ErrorHolder" in type(test).__name__:
                print(f"FAILED  {test}\n{text}", flush=True)
        faults += [(test.id(), text) for test, text in result.failures + result.errors]
        failed += len(bad)
        skipped += len(result.skipped)
        passed += result.testsRun - len({id(t) for t, _ in result.failures + result.errors if isinstance(t, unittest.TestCase)}) - len(result.skipped)
        if bad:
            break
    for test, reason in result.skipped:
        print(f"skipped {test}: {reason}")
    for name, text in faults:
        print("\n        ".join([f"FAILED  {name}", *short(text)]))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
