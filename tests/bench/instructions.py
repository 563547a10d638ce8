#!/usr/bin/python3
"""Instructions of the core per delivery, by callgrind, for the six loads of bench_core and variants of them: instructions.py [--messages N] [--top N] [CASE ...]

HOBNOB_BUILD is the folder of a release build (default build/release) in which bench_core was built too. Only the time within the
broker's door counts: neither bench_core's own work nor what sockets would cost. Unlike time, the count is the same on a busy machine.
--top N names the N functions that take most of each.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HOBNOB_BUILD", ROOT / "build" / "release")).resolve() / "tests" / "bench_core"
CASES = {
    "one": (), "pairs": (), "fan-out": (), "fan-in": (), "pairs-1": (), "pairs-2": (),
    # What may be in the way of a publication that goes to many in the same bytes.
    "fan-out, receivers of 3.1.1 and 5.0": ("--mixed", 1),
    "fan-out, subscription identifiers": ("--version", 5, "--identifiers", 1),
    "fan-out, topic aliases": ("--version", 5, "--aliases", 10),
    "fan-out, retained": ("--retain", 1),
    "fan-out, 10 subscribers": ("--subscribers", 10),
    "fan-out, 1,000 subscribers": ("--subscribers", 1000),
    "one, retained": ("--retain", 1),
    "pairs-1, sessions that last": ("--lasting", 1),
    "pairs-2, sessions that last": ("--lasting", 1),
}


def measure(case, messages, top, folder):
    """(deliveries, instructions, what callgrind_annotate says of the functions)"""
    out = folder / "callgrind.out"
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=core_*", f"--callgrind-out-file={out}",
               PROGRAM, case.split(",")[0], *map(str, CASES[case]), "--messages", str(messages)]
    done = subprocess.run(command, capture_output=True, text=True)
    deliveries = re.search(r"(\d+) deliveries", done.stdout)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or deliveries is None or collected is None:
        sys.exit(f"{case}: valgrind ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    functions = []
    if top:
        text = subprocess.run(["callgrind_annotate", str(out)], capture_output=True, text=True, check=True).stdout
        functions = [line for line in text.splitlines() if re.match(r"\s*[\d,]+ \(\s*[\d.]+%\)\s+\S+:", line)][:top]
    return int(deliveries.group(1)), int(collected.group(1)), functions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=20000, help="published in each case (default 20000)")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="name so many functions of each")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="; ".join(CASES))
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("there is no valgrind: apt-get install valgrind")
    if not PROGRAM.exists():
        sys.exit(f"there is no {PROGRAM}: build it in a release build (cmake --build build/release --target bench_core), or set HOBNOB_BUILD")
    folder = Path(tempfile.mkdtemp(prefix="hobnob-bench-"))
    try:
        print(f"{'':36}  {'deliveries':>12}  instructions each")
        for case in options.cases or CASES:
            deliveries, instructions, functions = measure(case, options.messages, options.top, folder)
            print(f"{case:36}  {deliveries:12,}  {instructions / deliveries:17.1f}", flush=True)
            for line in functions:
                print(f"    {line.strip()[:130]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
