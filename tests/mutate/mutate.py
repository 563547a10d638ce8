#!/usr/bin/python3
"""Breaks a core in one place at a time, and sees whether a unit test fails.

    mutate.py                    400 faults, chosen by seed 1, in what serves clients
    mutate.py --core gossip      in what decides who is there and what they say
    mutate.py --count N --seed S
    mutate.py --tests registry,rowset    asks only the unit tests of the core with these names: what lives may still be seen by others
    mutate.py FILE.c...          only in these files of the core; --count 0: all faults there are

A fault is a comparison turned round or off by one, a condition that always or never holds, a check, call or assignment left out, a wrong
reason code, number or flag. One that the compiler refuses, or makes the same code of, is none. Those that no test sees are listed: each is
a test that is missing, or changes nothing that anybody could see. Tests whose allocations fail (_oom) are asked about those that the others
let live. Builds in build/mutate-CORE (--build DIR). The last line is a count; the exit status is 1 if more than an eighth live.
"""
import argparse
import concurrent.futures
import os
import queue
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-O1", "-fPIC", "-w", "-fsanitize=address", f"-I{ROOT}"]
# What a client can see of the broker. The ways between brokers have the simulator.
SERVES_CLIENTS = ("acks.c admission.c aliases_out.c broker.c client.c delivery.c delivery_qos0.c filters.c gather.c held.c inflight.c input.c "
                  "limits.c message.c mqtt.c mqtt_encode.c on_ack.c on_auth.c on_connect.c on_disconnect.c on_publish.c on_subscribe.c "
                  "on_unsubscribe.c output.c partial.c props.c rates.c reader.c received.c retained.c route.c routes.c session.c share.c share_deliver.c "
                  "shows.c subs.c sys.c timers.c topic.c tree.c tree_walk.c welcome.c").split()
# Its unit tests are whole federations: a fault that none of them sees costs a minute.
DECIDES = ("accusation.c catchup.c checkpoint.c cover_choose.c cover_merge.c cover_path.c cover_split.c cover_traffic.c digest.c evidence.c graves.c holdings.c "
           "identity.c levels.c own_life.c parts.c probe.c quiet.c registry.c rejoin.c repair.c replay.c roll.c rowset.c silence.c suspicion.c told.c transfer.c").split()
CORES = {"broker": SERVES_CLIENTS, "gossip": DECIDES}

# ---- faults ----

SWAPS = [  # what is found, what stands there instead
    (r"==", "!="), (r"!=", "=="), (r"<=", "<"), (r">=", ">"), (r" < ", " <= "), (r" > ", " >= "), (r"&&", "||"), (r"\|\|", "&&"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"!(?=[a-z(])", ""),
    (r" \+ (?!=)", " - "), (r" - (?!=)", " + "), (r" \+= ", " -= "), (r" -= ", " += "), (r"\+\+", "--"), (r"(?<!-)--(?!-)", "++"),
    (r"\bMQTT_PROTOCOL_ERROR\b", "MQTT_MALFORMED"), (r"\bMQTT_MALFORMED\b", "MQTT_PROTOCOL_ERROR"),
    (r"\bMQTT_(?:NOT_AUTHORIZED|QUOTA_EXCEEDED|TOPIC_\w+_INVALID|PACKET_\w+|RECEIVE_MAX_EXCEEDED|BAD_\w+|SERVER_\w+|SESSION_\w+|KEEP_\w+|"
     r"CLIENT_ID_INVALID|UNSUPPORTED_VERSION|RATE_TOO_HIGH|NO_\w+)\b", "MQTT_UNSPECIFIED_ERROR"),
    (r"\bWILL_DUE\b", "WILL_DROPPED"), (r"\bWILL_DROPPED\b", "WILL_DUE"), (r"\bMQTT_50\b", "MQTT_311"),
]
NUMBER = re.compile(r"(?<![\w.])(0x[0-9A-Fa-f]+|\d+)(u|ull)?(?![\w.])")
LEFT_OUT = re.compile(r"^\s+(?:if \(.*\) (?:return\b.*|continue|break)|(?:else )?[a-z_]\w*(?:(?:->|\.)\w+)*(?:\(.*\)| [|+-]?= .*|\+\+|--));(?: /\*.*)?$")
CONDITION = re.compile(r"\bif (\(.*\)) (?:\{$|return\b|break;|continue;|[a-z_]\w*[ (-])|^\s*(?:\} else )?if (\(.*\))$")


def code_of(line):
    """The line with strings and comments blanked, so that places stay."""
    blank = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|/\*.*?(?:\*/|$)|//.*', lambda found: "\x00" * len(found.group()), line)
    return "\x00" * len(line) if re.match(r"\s*(?:#|\*|/\*|static const struct|assert\()", line) else blank


def balanced(text):
    """The condition at the begin of text, up to the bracket that ends it."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[:at + 1]
    return None


def faults_of_line(line):
    code = code_of(line)
    for pattern, other in SWAPS:
        for found in re.finditer(pattern, code):
            yield line[:found.start()] + other + line[found.end():]
    for found in NUMBER.finditer(code):
        value = int(found.group(1), 0)
        yield line[:found.start()] + str(value + 1) + (found.group(2) or "") + line[found.end():]
    if LEFT_OUT.match(code):
        yield re.match(r"\s*", line).group() + ";"
    at = code.find("if (")
    condition = balanced(code[at + 3:]) if at >= 0 else None
    if condition:
        for value in "01":
            yield line[:at + 3] + f"({value})" + line[at + 3 + len(condition):]


def faults_of(core, name):
    lines = (ROOT / core / name).read_text().split("\n")
    inside = False  # of a comment
    for number, line in enumerate(lines):
        if not inside:
            for other in faults_of_line(line):
                yield name, number, other
        inside = (inside or "/*" in line) and "*/" not in line[line.rfind("/*") + 2 if "/*" in line else 0:]


# ---- building and running ----


def run(command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **more)


def must(command):
    done = run(command)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout.decode(errors='replace')[-3000:]}")


class House:
    """The core as it is, and its tests."""

    def __init__(self, core, only, build):
        self.core, self.build = core, build
        (build / "objects").mkdir(parents=True, exist_ok=True)
        sources = sorted((ROOT / core).glob("*.c"))
        if core != "broker":
            sources.append(ROOT / "broker/topic.c")  # all that the other cores know of it
        self.sources = [source.name for source in sources]
        tests = sorted((ROOT / "tests/unit").glob(f"test_{core}_*.c"))
        if only:
            tests = [path for path in tests if path.stem.removeprefix(f"test_{core}_") in only]
        jobs = [["gcc", *FLAGS, "-c", source, "-o", self.object(source.name)] for source in sources]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(must, jobs))
            self.link(build)
            list(pool.map(self.build_test, tests))
        self.oom = [path for path in tests if path.stem.endswith("_oom")]
        self.seconds = {}
        for path in tests:
            if path in self.oom:
                continue
            begin = time.monotonic()
            if run([build / path.stem], timeout=300).returncode:
                sys.exit(f"{path.stem} fails as it is")
            self.seconds[path.stem] = time.monotonic() - begin
        self.kills = {name: {} for name in self.sources}  # by file: which tests have seen its faults

    def object(self, name):
        return self.build / "objects" / (name[:-2] + ".o")

    def objects(self, changed=None, other=None):
        return [other if name == changed else self.object(name) for name in self.sources]

    def link(self, folder, changed=None, other=None):
        must(["gcc", "-shared", "-fsanitize=address", "-o", folder / "libcore.so", *self.objects(changed, other), "-lmsgpackc"])

    def build_test(self, path):
        base = ["gcc", *FLAGS, path, "-o", self.build / path.stem]
        if path.stem.endswith("_oom"):
            return
        must([*base, f"-L{self.build}", "-lcore", "-lcmocka", f"-Wl,-rpath,{self.build},--enable-new-dtags"])

    def order(self, name):
        """Those that have seen faults of this file first, then the quick ones."""
        return sorted(self.seconds, key=lambda test: (-self.kills[name].get(test, 0), self.seconds[test]))

    def oom_sees(self, folder, changed, other):
        for path in self.oom:
            program = folder / path.stem
            must(["gcc", *FLAGS, path, *self.objects(changed, other), "-o", program, "-lmsgpackc", "-lcmocka",
                  "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"])
            if fails([program], 300):
                return path.stem
        return None


def fails(command, seconds, **more):
    try:
        return run(command, timeout=seconds, **more).returncode != 0
    except subprocess.TimeoutExpired:
        return True  # a loop without end is seen too


def try_fault(house, folder, fault):
    """"none" if it is no fault; else the test that saw it, or ""."""
    name, number, other = fault
    lines = (ROOT / house.core / name).read_text().split("\n")
    lines[number] = other
    source, result = folder / name, folder / "changed.o"
    source.write_text("\n".join(lines))
    if run(["gcc", *FLAGS, "-c", source, "-o", result]).returncode:
        return "none"
    if result.read_bytes() == house.object(name).read_bytes():
        return "none"
    house.link(folder, name, result)
    environment = dict(os.environ, LD_LIBRARY_PATH=str(folder))
    for test in house.order(name):
        if fails([house.build / test], 20 + 20 * house.seconds[test], env=environment):
            house.kills[name][test] = house.kills[name].get(test, 0) + 1
            return test
    return house.oom_sees(folder, name, result) or ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.c")
    parser.add_argument("--core", choices=CORES, default="broker")
    parser.add_argument("--tests", type=lambda names: names.split(","), default=[])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=None)
    options = parser.parse_args()
    strange = [name for name in options.files if not (ROOT / options.core / name).is_file()]
    if strange:
        parser.error(f"there is no {options.core}/{strange[0]}")
    every = [fault for name in options.files or CORES[options.core] for fault in faults_of(options.core, name)]
    random.Random(options.seed).shuffle(every)
    house = House(options.core, options.tests, (options.build or ROOT / f"build/mutate-{options.core}").resolve())
    folders = queue.SimpleQueue()
    for worker in range(os.cpu_count()):
        folder = house.build / f"worker-{worker}"
        folder.mkdir(exist_ok=True)
        folders.put(folder)
    wanted = options.count or len(every)
    killed, alive = 0, []

    def attempt(fault):
        folder = folders.get()
        try:
            return fault, try_fault(house, folder, fault)
        finally:
            folders.put(folder)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        while every and killed + len(alive) < wanted:
            some = [every.pop() for _ in range(min(len(every), wanted - killed - len(alive)))]
            for (name, number, other), seen_by in pool.map(attempt, some):
                if seen_by == "none":
                    continue
                killed += seen_by != ""
                if seen_by:
                    continue
                alive.append(name)
                was = (ROOT / options.core / name).read_text().split("\n")[number]
                print(f"ALIVE   {name}:{number + 1}\n    was {was.strip()}\n    is  {other.strip()}", flush=True)
    print(f"seed {options.seed}: of {killed + len(alive)} faults {killed} were seen")
    good = killed * 8 >= (killed + len(alive)) * 7
    print(f"{int(good)} passed, {int(not good)} failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
