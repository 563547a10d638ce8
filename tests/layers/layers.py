#!/usr/bin/python3
"""The architecture as a test: who may include what, and which functions the cores may call.

    layers.py [--root DIR] [--build DIR]     checks the sources, and the objects of a build (DIR/libhobnob_*.a)
    layers.py --self-test [--build DIR]      shows that each rule finds a violation put there on purpose

The rules are the tables below; what they mean is in section 4 of the design: the cores broker/, gossip/ and auth/ have no clock, socket,
file, log or randomness of their own, know each other only by topic.h, and are entered by their doors.
Prints one line a check; the last line is a count.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CORES = ("broker", "gossip", "auth")

# The headers by which a folder is entered. Everything else in it is its own affair.
DOORS = {
    "broker": {"broker.h", "foreign.h", "peering.h", "policy.h", "record.h", "topic.h", "why.h"},
    "gossip": {"gossip.h", "inspect.h"},
    "auth": {"keys.h", "token.h", "trust.h", "seal.h", "signed_ring.h"},
    "daemon": {"node.h"},  # the node is what the simulator runs
    "tools": {"commands.h", "complain.h", "nearest.h", "options.h", "table.h"},
    "tools/simulate": {"dice.h"},  # both simulators draw with the same dice
    "tests/hostile": {"attacks.h"},
}
# Files that may look behind a door, and why: they play brokers that do not behave, and write packets by hand, or explain them.
BEHIND_DOORS = {
    "tools/simulate/explain.c": {"gossip/message.h", "gossip/seal.h"},
    "tools/simulate/hostile.c": {"gossip/message.h", "gossip/seal.h", "gossip/signed.h"},
    "tools/simulate/older.c": {"gossip/message.h", "gossip/seal.h"},
}

# Folder -> folders whose doors it may use. A folder may always include its own headers.
USES = {
    "broker": (),
    "gossip": (),
    "auth": (),
    "daemon": ("broker", "gossip", "auth"),
    "tools": ("broker", "gossip", "auth"),
    "tools/simulate": ("gossip", "auth", "tools"),  # auth: the steps by which an admin changes the gossip key
    "tests/sim": ("broker", "gossip", "auth", "daemon", "tools/simulate", "tests/hostile"),
}
# The only edge between cores.
SHARED = {"broker/topic.h"}

# Standard headers that cores may include: no clock, no file, no socket, no thread, no locale.
CORE_HEADERS = {"assert.h", "inttypes.h", "limits.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "strings.h",
                "uthash.h", "utlist.h"}
# Third-party headers: pattern -> files that may include them; a core's single msgpack file is checked apart.
THIRD_PARTY = [
    (re.compile(r"msgpack(\.h|/.*)"), ("broker/", "gossip/")),
    (re.compile(r"jwt\.h|openssl/.*"), ("auth/", "daemon/tls", "daemon/web", "tests/")),
    (re.compile(r"jansson\.h"), ("auth/", "daemon/", "tools/", "tests/")),
    (re.compile(r"yaml\.h"), ("daemon/", "tools/simulate/", "tests/unit/")),
    (re.compile(r"uv\.h|libwebsockets\.h|sqlite3\.h"), ("daemon/", "tests/unit/")),
    (re.compile(r"curl/.*|libsmartcols.*|argp\.h"), ("tools/",)),
]

# What the objects of a core may import. Memory and string functions, assert, and what compilers and sanitizers add by themselves.
PLAIN = {
    "malloc", "calloc", "realloc", "free", "memcpy", "memmove", "memset", "memcmp", "memchr", "memmem",
    "strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr", "strstr", "strspn", "strcspn", "strpbrk", "strdup", "strndup",
    "strtol", "strtoul", "strtoll", "strtoull", "explicit_bzero", "qsort", "bsearch", "snprintf", "vsnprintf", "__assert_fail",
    "htonl", "htons", "ntohl", "ntohs",  # byte order: functions when nothing is optimised, called by msgpack's headers
}
COMPILER = re.compile(r"__(asan|ubsan|sanitizer|sancov|gcov|llvm)_\w+|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__(mem|str|v?snprintf|explicit_bzero)\w*_chk|__tls_get_addr"
                      r"|_{0,2}__start___sancov\w*|__stop___sancov\w*|llvm_gcov\w*|mangled_\w+")
LIBRARY = {
    "broker": re.compile(r"msgpack_\w+"),
    "gossip": re.compile(r"msgpack_\w+"),
    "auth": re.compile(r"(EVP|EC|ECDSA|BN|OPENSSL|CRYPTO|OSSL|PEM|BIO|X509|ASN1|d2i|i2d|ERR|SHA256|OBJ|i2o|o2i|jwt|json|jsonp)_?\w*"),
}
# Parts of those libraries that read files, clocks or randomness.
NEVER = re.compile(r"RAND_\w+|BIO_(new_file|new_fp|read_filename|s_file|s_connect|s_accept|s_socket|new_socket)|json_(load_?f\w*|dump_?f\w*|load_file|dump_file|object_seed)"
                   r"|X509_(gmtime_adj|time_adj\w*|cmp_current_time|get_default\w*|LOOKUP\w*)|PEM_(read|write)_(?!bio)\w+|OSSL_STORE\w*|CONF_\w+|jwt_(set_alloc|checker)\w*")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources(root, folder):
    return sorted(path for path in (root / folder).glob("*.[ch]"))


def includes(path):
    return INCLUDE.findall(path.read_text(errors="replace"))


def resolve(root, path, name):
    """Where a quoted include leads, relative to the root; None if nowhere in this tree."""
    for base in (path.parent, root):
        found = (base / name).resolve()
        if found.is_file() and root in found.parents:
            return str(found.relative_to(root))
    return None


def check_directions(root):
    faults = []
    for folder, uses in USES.items():
        for path in sources(root, folder):
            here = str(path.relative_to(root))
            for kind, name in includes(path):
                if kind != '"':
                    continue
                target = resolve(root, path, name)
                if target is None:
                    faults.append(f"{here}: includes \"{name}\", which is not in this tree")
                    continue
                to, header = target.rsplit("/", 1)
                if to == folder or (target in SHARED and folder in CORES) or target in BEHIND_DOORS.get(here, ()):
                    continue
                if to not in uses:
                    faults.append(f"{here}: includes {target}; {folder} may not know {to}")
                elif header not in DOORS[to]:
                    faults.append(f"{here}: includes {target}, which is no door of {to}: {', '.join(sorted(DOORS[to]))}")
    return faults


def check_tests_stay_out(root):
    """No production file includes anything of tests/ or tools/ (but tools its own)."""
    faults = []
    for folder in (*CORES, "daemon", "tools", "tools/simulate"):
        for path in sources(root, folder):
            for kind, name in includes(path):
                target = resolve(root, path, name) if kind == '"' else None
                if target and (target.startswith("tests/") or (target.startswith("tools/") and not folder.startswith("tools"))):
                    faults.append(f"{path.relative_to(root)}: includes {target}")
    return faults


def check_unit_tests_keep_to_their_core(root):
    """tests/unit/test_CORE_NAME.c looks inside its own core, and uses the doors of those below it."""
    faults = []
    for kind_of, pattern in (("unit", "test_*.c"), ("fuzz", "fuzz_*.c")):
        for path in sorted((root / "tests" / kind_of).glob(pattern)):
            core = path.stem.split("_")[1]
            core = "tools/simulate" if core == "simulate" else core
            for kind, name in includes(path):
                target = resolve(root, path, name) if kind == '"' else None
                if not target or "/" not in target:
                    continue
                to, header = target.rsplit("/", 1)
                if to == core or to.startswith("tests/") or target in SHARED:
                    continue
                if core == "daemon" and header in DOORS.get(to, ()):
                    continue
                faults.append(f"{path.relative_to(root)}: includes {target}; a test of {core} may not")
    return faults


def check_system_headers(root):
    faults = []
    for core in CORES:
        for path in sources(root, core):
            for kind, name in includes(path):
                if kind == "<" and name not in CORE_HEADERS and not any(pattern.fullmatch(name) and any(a == core + "/" for a in allowed) for pattern, allowed in THIRD_PARTY):
                    faults.append(f"{path.relative_to(root)}: includes <{name}>; a core has no business with it")
    return faults


def check_third_party(root):
    faults = []
    for folder in (*USES, "tests/unit", "tests/fuzz"):
        for path in sources(root, folder):
            here = str(path.relative_to(root))
            for kind, name in includes(path):
                for pattern, allowed in THIRD_PARTY:
                    if kind == "<" and pattern.fullmatch(name) and not here.startswith(allowed):
                        faults.append(f"{here}: includes <{name}>; that is for {', '.join(allowed)}")
    return faults


def check_one_msgpack_file(root):
    faults = []
    for core in CORES:
        users = sorted(str(path.relative_to(root)) for path in sources(root, core) if any(kind == "<" and name.startswith("msgpack") for kind, name in includes(path)))
        if len(users) > 1 or any(user.endswith(".h") for user in users):
            faults.append(f"msgpack in more than one .c file of {core}: {', '.join(users)}")
    return faults


# ---- objects ----

def nm(archive, *options):
    done = subprocess.run(["nm", *options, str(archive)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"nm {archive}: {done.stderr.strip()}")
    return done.stdout


def symbols(archive):
    """{object: (defined, undefined)}"""
    found, current = {}, Path(archive).name
    for line in nm(archive).splitlines():
        if line.endswith(":"):
            current = line[:-1]
        elif line.strip():
            kind, name = line.split()[-2:]
            defined, undefined = found.setdefault(current, (set(), set()))
            (undefined if kind in ("U", "w", "v") else defined).add(name)
    return found


def allowed_import(core, name):
    if NEVER.fullmatch(name):
        return False
    return name in PLAIN or bool(COMPILER.fullmatch(name)) or bool(core in LIBRARY and LIBRARY[core].fullmatch(name))


def check_imports(build, core):
    faults = []
    archive = build / f"libhobnob_{core}.a"
    own = symbols(archive)
    inside = set().union(*(defined for defined, _ in own.values()))
    if core != "broker":
        inside |= {name for name in set().union(*(d for d, _ in symbols(build / "libhobnob_broker.a").values())) if name.startswith("topic_")}
    users = []
    for name, (_, undefined) in sorted(own.items()):
        for symbol in sorted(undefined - inside):
            if not allowed_import(core, symbol):
                faults.append(f"{core}/{name.removesuffix('.o')}: calls {symbol}")
        if any(symbol.startswith("msgpack_") for symbol in undefined):
            users.append(name)
    if len(users) > 1:
        faults.append(f"msgpack is called from more than one file of {core}: {', '.join(users)}")
    return faults


def check_node_imports(build):
    """The node is as pure as the cores: it only joins them."""
    faults, inside = [], set()
    for core in CORES:
        inside |= set().union(*(defined for defined, _ in symbols(build / f"libhobnob_{core}.a").values()))
    objects = {name: found for name, found in symbols(build / "libhobnob_daemon.a").items() if name.startswith("node")}
    if not objects:
        return ["libhobnob_daemon.a has no node"]
    inside |= set().union(*(defined for defined, _ in objects.values()))
    for name, (_, undefined) in sorted(objects.items()):
        for symbol in sorted(undefined - inside):
            if symbol not in PLAIN | {"inet_ntop"} and not COMPILER.fullmatch(symbol):  # addresses as text, for the log
                faults.append(f"daemon/{name.removesuffix('.o')}: calls {symbol}")
    return faults


def check_no_globals(build, core):
    """No object of a core has writable data: tables of constants only."""
    faults, current = [], ""
    done = subprocess.run(["objdump", "-t", str(build / f"libhobnob_{core}.a")], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.endswith("file format elf64-x86-64") or re.match(r"\S+:\s+file format", line):
            current = line.split(":")[0]
            continue
        found = re.match(r"[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (?:\.hidden )?(.+)$", line)
        if not found:
            continue
        flags, section, name = found.groups()
        writable = section == "*COM*" or re.match(r"\.(data|bss|tdata|tbss)(\.(?!rel\.ro)|$)", section)
        if writable and "O" in flags and not re.match(r"(__odr_asan|__asan_|__ubsan|__sancov|\.?L|__emutls|__llvm|__prof|__gcov|\.?LASAN)", name):
            faults.append(f"{core}/{current.removesuffix('.o')}: {name} in {section} can be written")
    return faults


def source_checks(root):
    return [
        ("includes follow the layers", lambda: check_directions(root)),
        ("nothing in production knows the tests or tools", lambda: check_tests_stay_out(root)),
        ("unit tests keep to their core", lambda: check_unit_tests_keep_to_their_core(root)),
        ("cores include no header of the outside world", lambda: check_system_headers(root)),
        ("third-party headers stay in their folders", lambda: check_third_party(root)),
        ("msgpack is in one file per core", lambda: check_one_msgpack_file(root)),
    ]


def object_checks(build):
    checks = []
    for core in CORES:
        checks.append((f"{core} calls memory and string functions and its library only", lambda core=core: check_imports(build, core)))
        checks.append((f"{core} has no writable data of its own", lambda core=core: check_no_globals(build, core)))
    checks.append(("the node calls nothing but the cores", lambda: check_node_imports(build)))
    return checks


# ---- the test of the test ----

BAD_SOURCES = {
    "includes follow the layers": [
        ("broker/bad.c", '#include "gossip/gossip.h"\n'), ("gossip/bad.c", '#include "broker/broker.h"\n'), ("auth/bad.c", '#include "daemon/log.h"\n'),
        ("daemon/bad.c", '#include "broker/federation.h"\n'), ("tools/bad.c", '#include "auth/pair.h"\n'), ("broker/bad.h", '#include "tests/unit/x.h"\n'),
        ("tests/sim/bad.c", '#include "broker/session.h"\n')],
    "nothing in production knows the tests or tools": [("daemon/bad.c", '#include "tools/table.h"\n'), ("broker/bad.c", '#include "../tools/table.h"\n')],
    "unit tests keep to their core": [("tests/unit/test_broker_bad.c", '#include "gossip/gossip.h"\n'), ("tests/fuzz/fuzz_gossip_bad.c", '#include "auth/token.h"\n')],
    "cores include no header of the outside world": [
        ("broker/bad.c", "#include <time.h>\n"), ("gossip/bad.c", "#include <sys/socket.h>\n"), ("auth/bad.c", "#include <unistd.h>\n"),
        ("gossip/bad.h", "#include <openssl/evp.h>\n"), ("broker/bad.c", "# include <pthread.h>\n")],
    "third-party headers stay in their folders": [("daemon/bad.c", "#include <msgpack.h>\n"), ("tools/bad.c", "#include <openssl/evp.h>\n"), ("daemon/node_bad.c", "#include <jwt.h>\n")],
    "msgpack is in one file per core": [("gossip/bad.c", "#include <msgpack.h>\n"), ("broker/bad.h", "#include <msgpack/unpack.h>\n")],
}
BAD_OBJECTS = {
    "calls memory and string functions and its library only": [
        "#include <time.h>\nlong bad(void);\nlong bad(void) { return (long)time(0); }\n", "#include <stdio.h>\nvoid bad(void);\nvoid bad(void) { puts(\"x\"); }\n",
        "#include <stdlib.h>\nint bad(void);\nint bad(void) { return rand(); }\n", "extern int RAND_bytes(unsigned char *, int);\nint bad(void);\nint bad(void) { return RAND_bytes(0, 0); }\n"],
    "has no writable data of its own": ["int bad;\n", "static int count;\nint bad(void);\nint bad(void) { return ++count; }\n", "const char *bad = \"x\";\n"],
}


def self_test(root, build):
    passed, faults = 0, []
    with tempfile.TemporaryDirectory(prefix="hobnob-layers-") as temporary:
        for title, violations in BAD_SOURCES.items():
            for name, text in violations:
                tree = Path(temporary).resolve() / "tree"
                for folder in (*CORES, "daemon", "tools", "tests/unit", "tests/fuzz", "tests/sim"):
                    shutil.copytree(root / folder, tree / folder, ignore=shutil.ignore_patterns("presets", "__pycache__"))
                for header in ("tests/unit/x.h", "broker/session.h", "auth/pair.h", "tools/table.h"):
                    (tree / header).touch()
                (tree / name).write_text(text)
                found = dict(source_checks(tree))[title]()
                if any(Path(name).name in fault for fault in found):
                    passed += 1
                else:
                    faults.append(f"{title}: did not see {text.strip()} in {name}")
                shutil.rmtree(tree)
        for title, texts in BAD_OBJECTS.items() if build else ():
            for core in CORES:
                for text in texts:
                    copy = Path(temporary) / "build"
                    copy.mkdir()
                    for archive in build.glob("libhobnob_*.a"):
                        shutil.copy(archive, copy)
                    (copy / "bad.c").write_text(text)
                    subprocess.run(["cc", "-c", "bad.c", "-o", "bad.o"], cwd=copy, check=True)
                    subprocess.run(["ar", "rs", f"libhobnob_{core}.a", "bad.o"], cwd=copy, check=True, capture_output=True)
                    found = dict(object_checks(copy))[f"{core} {title}"]()
                    if any("bad" in fault for fault in found):
                        passed += 1
                    else:
                        faults.append(f"{core} {title}: did not see {text.splitlines()[-1]}")
                    shutil.rmtree(copy)
    print(f"{'ok' if not faults else 'FAILED':8}the rules find {passed} of {passed + len(faults)} violations made on purpose")
    for fault in faults:
        print(f"        {fault}")
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=Path)
    parser.add_argument("--self-test", action="store_true", help="only show that the rules find violations")
    options = parser.parse_args()
    root = options.root.resolve()
    good = bad = 0
    if not options.self_test:
        for title, check in source_checks(root) + (object_checks(options.build) if options.build else []):
            faults = check()
            print(f"{'ok' if not faults else 'FAILED':8}{title}")
            for fault in faults:
                print(f"        {fault}")
            good, bad = good + (not faults), bad + bool(faults)
    seen = self_test(root, options.build)
    good, bad = good + seen, bad + (not seen)
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
