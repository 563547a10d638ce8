#!/usr/bin/python3
"""Holds the tables beside it to the specifications and to the tests.

    check.py [--root DIR]     the tables mqtt-3.1.1.txt, mqtt-5.0.txt and gossip.txt, then the planted faults
    check.py --self-test      only shows that each rule finds a fault put there on purpose

A table has one row for each numbered statement of its specification ([MQTT-x.y.z-n], appendix B of each):

    id | whom it binds | what the broker does, in our words | the tests that show it

Whom it binds is server, client or both. Statements that bind clients alone say what becomes of a client that breaks them; where the
broker cannot see that, the row is "client only" and has no test. A test is PROGRAM:TEST (a cmocka program of tests/unit and a test that
it runs), MODULE.CLASS.METHOD (tests/system), or test_hostile:ROW (a row of that module's table).
gossip.txt has one row for each of the 25 faults that other gossip systems had, and for each promise of the README that gossip keeps: number |
what must hold | what we do | tests. There a path of a file in tests/ is a test too, and one test at least bears the number: in its name, in the
comment above it, or in the one at the top of its file.
Prints one line a check; the last line is a count.
"""
import argparse
import ast
import importlib.util
import re
import sys
from pathlib import Path

# How many statements each section has. They count from 1; where they do not, the numbers are listed.
STATEMENTS = {
    "3.1.1": {
        "1.5.3": 3, "2.2.2": 2, "2.3.1": 7,
        "3.1.0": 2, "3.1.2": 24, "3.1.3": 11, "3.1.4": 5, "3.2.0": 1, "3.2.2": 6, "3.3.1": 12, "3.3.2": 3, "3.3.4": 1, "3.3.5": 2, "3.6.1": 1,
        "3.8.1": 1, "3.8.3": 4, "3.8.4": 6, "3.9.3": 2, "3.10.1": 1, "3.10.3": 2, "3.10.4": 6, "3.12.4": 1, "3.14.1": 1, "3.14.4": 3,
        "4.1.0": 2, "4.3.1": 1, "4.3.2": 2, "4.3.3": 2, "4.4.0": 1, "4.5.0": 2, "4.6.0": 6, "4.7.1": 3, "4.7.2": 1, "4.7.3": 4, "4.8.0": 2,
        "6.0.0": 4, "7.0.0": 2, "7.1.1": 1, "7.1.2": 1,
    },  # the specification prints 3.8.3-4 as 3-8.3-4
    "5.0": {
        "1.5.4": 3, "1.5.5": 1, "1.5.7": 1, "2.1.3": 1, "2.2.1": (2, 3, 4, 5, 6), "2.2.2": 1,
        "3.1.0": 2, "3.1.2": 30, "3.1.3": 12, "3.1.4": 6, "3.2.0": 2, "3.2.2": 22, "3.3.1": 13, "3.3.2": 20, "3.3.4": 10, "3.4.2": 3, "3.5.2": 3,
        "3.6.1": 1, "3.6.2": 3, "3.7.2": 3, "3.8.1": 1, "3.8.3": 5, "3.8.4": 8, "3.9.2": 2, "3.9.3": 2, "3.10.1": 1, "3.10.3": 2, "3.10.4": 6,
        "3.11.2": 2, "3.11.3": 2, "3.12.4": 1, "3.14.0": 1, "3.14.1": 1, "3.14.2": 4, "3.14.4": 3, "3.15.1": 1, "3.15.2": 3,
        "4.1.0": 2, "4.2.0": 1, "4.3.1": 1, "4.3.2": 5, "4.3.3": 13, "4.4.0": 2, "4.5.0": 2, "4.6.0": 6, "4.7.0": 1, "4.7.1": 2, "4.7.2": 1,
        "4.7.3": 4, "4.8.2": 6, "4.9.0": 3, "4.12.0": 7, "4.12.1": 2, "4.13.1": 1, "4.13.2": 1, "6.0.0": 4,
    },  # there is no 2.2.1-1; the body prints 4.2.0-1 as 4.2-1
}
TOTALS = {"3.1.1": 141, "5.0": 251}
CLIENT_ONLY = "client only"


def statements(version):
    found = []
    for section, numbers in STATEMENTS[version].items():
        found += [f"MQTT-{section}-{number}" for number in (range(1, numbers + 1) if isinstance(numbers, int) else numbers)]
    return found


# ---- the tests there are ----

def cmocka_tests(text):
    """Those that main() runs and that have a body."""
    registered = set()
    for listing in re.findall(r"struct CMUnitTest \w+\[\] = \{(.*?)\n\s*\};", text, re.S):
        registered |= set(re.findall(r"\w+\((\w+)[,)]", listing))
    return {name for name in registered if re.search(rf"^static void {name}\(void \*\*", text, re.M)}


def python_tests(module, text):
    tree = ast.parse(text)
    found = {f"{module}.{group.name}.{method.name}" for group in tree.body if isinstance(group, ast.ClassDef)
             for method in group.body if isinstance(method, ast.FunctionDef) and method.name.startswith("test")}
    if module == "test_hostile":
        found |= {f"{module}:{call.args[0].value}" for call in ast.walk(tree)
                  if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "row" and isinstance(call.args[0], ast.Constant)}
    return found


def tests_of(root):
    found = set()
    for path in sorted((root / "tests/unit").glob("test_*.c")):
        found |= {f"{path.stem}:{name}" for name in cmocka_tests(path.read_text())}
    for path in sorted((root / "tests/system").glob("test_*.py")):
        found |= python_tests(path.stem, path.read_text())
    return found


# ---- the tables ----

def rows_of(text):
    """(line number, fields) of each row; # begins a remark."""
    return [(number, [field.strip() for field in line.split("|")]) for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.startswith("#")]


def check_shape(version, text, tests):
    faults = []
    for number, fields in rows_of(text):
        if len(fields) not in (3, 4):
            faults.append(f"line {number}: {len(fields)} fields; write id | whom | what | tests")
        elif fields[1] not in ("server", "client", "both"):
            faults.append(f"line {number}: binds '{fields[1]}'; write server, client or both")
        elif not fields[2]:
            faults.append(f"line {number}: says nothing of what the broker does")
    return faults


def check_statements(version, text, tests):
    wanted = statements(version)
    assert len(wanted) == TOTALS[version]
    ids = [fields[0] for _, fields in rows_of(text)]
    faults = [f"{name} has no row" for name in wanted if name not in ids]
    faults += [f"{name} is not a statement of MQTT {version}" for name in sorted(set(ids) - set(wanted))]
    faults += [f"{name} has {ids.count(name)} rows" for name in sorted(set(ids)) if ids.count(name) > 1]
    if not faults and ids != wanted:
        faults.append(f"{next(a for a, b in zip(ids, wanted) if a != b)} is out of order")
    return faults


def check_tests(version, text, tests):
    faults = []
    for number, fields in rows_of(text):
        named = [name.strip() for name in fields[3].split(",")] if len(fields) > 3 and fields[3] else []
        faults += [f"line {number}: {fields[0]}: there is no test {name}" for name in named if name not in tests]
        if len(fields) > 2 and fields[2] == CLIENT_ONLY:
            if fields[1] != "client" or named:
                faults.append(f"line {number}: {fields[0]}: '{CLIENT_ONLY}' is for what binds clients and no test can see")
        elif not named:
            faults.append(f"line {number}: {fields[0]} has no test")
    return faults


CHECKS = [("every row is whole", check_shape), ("every statement has its row", check_statements), ("every row has tests that exist", check_tests)]

# ---- gossip ----

GOSSIP_ROWS = [f"P{number}" for number in range(1, 26)] + ["G9", "G10", "G11", "G12"]


def bearers(number, root):
    """The tests with this number in their name, above them, or at the top of their file."""
    word = re.compile(rf"(?<![A-Za-z0-9]){number}(?![0-9])")
    found = set()
    for path in sorted((root / "tests/unit").glob("test_*.c")):
        text = path.read_text()
        top = re.match(r"/\*.*?\*/", text, re.S)
        everywhere = bool(top and word.search(top.group()))
        for above, name in re.findall(r"(/\*(?:(?!\*/).)*\*/\n)?static void (\w+)\(void \*\*", text, re.S):
            if everywhere or word.search(above) or re.search(rf"(?i)(^|_){number}(_|$)", name):
                found.add(f"{path.stem}:{name}")
    for path in sorted((root / "tests/system").glob("test_*.py")):
        text = path.read_text()
        if word.search(ast.get_docstring(ast.parse(text)) or ""):
            found |= python_tests(path.stem, text)
    for path in sorted((root / "tests/sim").glob("*.c")):
        if word.search(path.read_text().split("*/", 1)[0]):
            found.add(str(path.relative_to(root)))
    return found


def check_gossip(text, tests, root, bearing=bearers):
    rows = rows_of(text)
    faults = [f"line {line}: {len(fields)} fields; write number | what must hold | what we do | tests" for line, fields in rows if len(fields) != 4 or not all(fields)]
    ids = [fields[0] for _, fields in rows]
    faults += [f"{number} has {ids.count(number)} rows" for number in GOSSIP_ROWS if ids.count(number) != 1]
    faults += [f"{number} is none of them" for number in sorted(set(ids) - set(GOSSIP_ROWS))]
    for line, fields in rows:
        named = [name.strip() for name in fields[3].split(",")] if len(fields) > 3 else []
        faults += [f"line {line}: {fields[0]}: there is no test {name}" for name in named
                   if name not in tests and not ("/" in name and (root / name).is_file())]
        if not set(named) & bearing(fields[0], root):
            faults.append(f"line {line}: {fields[0]}: none of its tests bears its number")
    return faults


GOSSIP_FAULTS = [
    lambda t: t.replace("P3 |", "P33 |", 1), lambda t: re.sub(r"^P7 .*\n", "", t, flags=re.M), lambda t: re.sub(r"^(P7 .*\n)", r"\1\1", t, flags=re.M),
    lambda t: t.replace("P9 | holds", "P9 |", 1), lambda t: t.replace("P9 | holds | so", "P9 | holds", 1), lambda t: t.replace("good:one", "good:another", 1),
    lambda t: t.replace("good:one", "tests/none.c", 1), lambda t: t.replace("P12 | holds | so | good:one", "P12 | holds | so | good:two", 1),
]


# ---- faults made on purpose ----

def check_places(root):
    """Those of broken.py and of tests/model/planted.py: what each changes must be there, or nobody sees that it would no longer be seen."""
    faults = []
    for path in ("tests/conformance/broken.py", "tests/model/planted.py"):
        spec = importlib.util.spec_from_file_location(Path(path).stem, root / path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for fault in module.FAULTS:
            try:
                module.patched(fault)
            except ValueError as error:
                faults.append(f"{path}: {error}: write what stands there now")
    return faults


# ---- the test of the test ----

FAULTS = [  # the rule that must see it, and what is done to a good table
    (check_shape, lambda t: t.replace("| server |", "|", 1)),
    (check_shape, lambda t: t.replace("| server |", "| broker |", 1)),
    (check_shape, lambda t: re.sub(r"\| server \| [^|]*\|", "| server | |", t, count=1)),
    (check_statements, lambda t: t.replace("MQTT-3.1.0-2", "MQTT-3.1.0-3", 1)),
    (check_statements, lambda t: re.sub(r"^MQTT-4.7.2-1 .*\n", "", t, flags=re.M)),
    (check_statements, lambda t: re.sub(r"^MQTT-4.7.2-1 ", "# MQTT-4.7.2-1 ", t, flags=re.M)),
    (check_statements, lambda t: re.sub(r"^(MQTT-4.7.2-1 .*\n)", r"\1\1", t, flags=re.M)),
    (check_statements, lambda t: re.sub(r"^(MQTT-3.1.0-1 .*\n)(MQTT-3.1.0-2 .*\n)", r"\2\1", t, flags=re.M)),
    (check_tests, lambda t: t.replace("good:one", "good:another", 1)),
    (check_tests, lambda t: t.replace("good:one", "good:one, good:undefined", 1)),
    (check_tests, lambda t: t.replace("good:one", "good:unregistered", 1)),
    (check_tests, lambda t: t.replace("good:one", "test_x.Group.helper", 1)),
    (check_tests, lambda t: t.replace("good:one", "", 1)),
    (check_tests, lambda t: t.replace("| server | does it | good:one", f"| server | {CLIENT_ONLY} |", 1)),
]
GOOD_C = ("static void one(void **state) {\n}\nstatic void unregistered(void **state) {\n}\nint main(void) {\n"
          "    const struct CMUnitTest tests[] = {\n        TEST(one),\n        TEST(undefined),\n    };\n")
GOOD_PY = "class Group:\n    def test_it(self):\n        pass\n    def helper(self):\n        pass\n"


def self_test():
    tests = {f"good:{name}" for name in cmocka_tests(GOOD_C)} | python_tests("test_x", GOOD_PY)
    seen, missed = 0, []
    for version in STATEMENTS:
        good = "".join(f"{name} | server | does it | good:one\n" for name in statements(version))
        for rule in (check for _, check in CHECKS):
            missed += [f"a good table of {version} is found at fault: {fault}" for fault in rule(version, good, tests)]
        for number, (rule, spoil) in enumerate(FAULTS):
            if spoil(good) != good and rule(version, spoil(good), tests):
                seen += 1
            else:
                missed.append(f"fault {number + 1} in the table of {version} is not seen by {rule.__name__}")
    bearing = lambda number, root: {"good:one"}  # noqa: E731
    good, tests = "".join(f"{number} | holds | so | good:one\n" for number in GOSSIP_ROWS), tests | {"good:two"}
    missed += [f"a good table of gossip is found at fault: {fault}" for fault in check_gossip(good, tests, Path("/nowhere"), bearing)]
    for number, spoil in enumerate(GOSSIP_FAULTS):
        if spoil(good) != good and check_gossip(spoil(good), tests, Path("/nowhere"), bearing):
            seen += 1
        else:
            missed.append(f"fault {number + 1} in the table of gossip is not seen")
    print(f"{'ok' if not missed else 'FAILED':8}the rules find {seen} of {len(FAULTS) * len(STATEMENTS) + len(GOSSIP_FAULTS)} faults made on purpose")
    for fault in missed:
        print(f"        {fault}")
    return not missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    good = bad = 0
    if not options.self_test:
        tests = tests_of(options.root)
        for version in STATEMENTS:
            text = (options.root / f"tests/conformance/mqtt-{version}.txt").read_text()
            for title, check in CHECKS:
                faults = check(version, text, tests)
                print(f"{'ok' if not faults else 'FAILED':8}MQTT {version}: {title}")
                for fault in faults:
                    print(f"        {fault}")
                good, bad = good + (not faults), bad + bool(faults)
        faults = check_gossip((options.root / "tests/conformance/gossip.txt").read_text(), tests, options.root)
        print(f"{'ok' if not faults else 'FAILED':8}gossip: every fault of others has its row, and tests that exist and bear its number")
        for fault in faults:
            print(f"        {fault}")
        good, bad = good + (not faults), bad + bool(faults)
        faults = check_places(options.root)
        print(f"{'ok' if not faults else 'FAILED':8}faults made on purpose: each has its place in gossip/")
        for fault in faults:
            print(f"        {fault}")
        good, bad = good + (not faults), bad + bool(faults)
    seen = self_test()
    print(f"{good + seen} passed, {bad + (not seen)} failed")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
