#!/usr/bin/python3
"""Puts faults into the registry's code on purpose, one at a time, and sees that the search over all orders of events (search.c) finds each.

    planted.py [--states N]     at most N states of each world with three replicas (3,000)

A fault is a place in a file of gossip/ (it must be there exactly once) and what stands there instead. Builds in build/model. Prints one
line each; the last line is a count.
"""
import argparse
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["tests/model/search.c", "tests/model/world.c", "broker/topic.c"] + [
    f"gossip/{name}.c" for name in ("registry", "transfer", "staging", "checkpoint", "rowset", "signed", "message", "wire", "shared")]
FLAGS = ["-std=c11", "-O1", "-w", f"-I{ROOT}"]

FAULTS = [
    ("an entry is applied over a gap", "registry", "if (expected != REGISTRY_OK) return expected;\n    enum registry_result within",
     "if (expected == REGISTRY_REPEATED) return expected;\n    enum registry_result within",
     "transfer", "if (expected == REGISTRY_GAP) return keep_early(transfers, *held, entry, bytes, size);\n    if (expected != REGISTRY_OK) return expected;", ""),
    ("a delete is forgotten", "registry", "return op->deletes ? rowset_delete(rows, op->kind, op->filter, op->size)", "return op->deletes ? ROWSET_SAME"),
    ("a checkpoint is shown before all of it is there", "staging", "return staging->size == staging->head.checkpoint_size;",
     "return staging->size > 0 || staging->head.checkpoint_size == 0;",
     "registry", "bool same = base && is_same(base, head);", "bool same = base != NULL;"),
    ("the log is kept when a checkpoint takes its place", "registry", "    drop_log_up_to(registry, base->sequence);\n", ""),
    ("an entry is left out of a fold", "registry", "registry->log[i]->sequence <= sequence; i++) {\n        ok = change_all", "registry->log[i]->sequence < sequence; i++) {\n        ok = change_all",
     "registry", "if (ok && sequence == registry->at.sequence) {", "if (false) {", "registry", "bool same = is_same(base, head);", "bool same = true;"),
    ("a checkpoint goes on coming when the log is beyond it", "transfer", "if (staging->used && staging->head.checkpoint_sequence <= sequence) staging_free(staging);", ""),
    ("a head that came before the entries is forgotten", "transfer",
     "if (!staging->used || staging->head.checkpoint_sequence > registry_sequence(*held)) continue;", "continue;"),
    ("a mixture of two lives is not seen", "registry",
     "if (head->checkpoint_sequence == at.sequence && memcmp(head->checkpoint_chain, at.chain, sizeof at.chain) != 0)\n        return REGISTRY_MIXED;", "",
     "registry", "bool same = is_same(base, head);", "bool same = true;"),
    ("what was coming of a life that was lost goes on coming", "transfer", "    drop_outlived(transfers, head, bytes, size);\n", ""),
]


def patched(fault):
    """{file of gossip/: its text with this fault in it}"""
    texts = {}
    for name, old, new in zip(*[iter(fault[1:])] * 3):
        text = texts.get(name) or (ROOT / "gossip" / f"{name}.c").read_text()
        if text.count(old) != 1:
            raise ValueError(f"in gossip/{name}.c there is {text.count(old)} times: {old}")
        texts[name] = text.replace(old, new)
    return texts


def compile_all(folder, sources):
    def one(source):
        out = folder / (Path(source).stem + ".o")
        subprocess.run(["cc", *FLAGS, "-c", str(source), "-o", str(out)], check=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, sources))


def run(folder, objects, states):
    program = folder / "model"
    libraries = subprocess.run(["pkg-config", "--libs", "msgpack"], capture_output=True, text=True).stdout.split() or ["-lmsgpackc"]
    subprocess.run(["cc", *map(str, objects), "-o", str(program), *libraries], check=True)
    return subprocess.run(["timeout", "120", str(program), "--states", str(states)], capture_output=True, text=True, stdin=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=3000)
    states = parser.parse_args().states
    plain = ROOT / "build/model"
    plain.mkdir(parents=True, exist_ok=True)
    compile_all(plain, [ROOT / source for source in SOURCES])
    objects = {Path(source).stem: plain / (Path(source).stem + ".o") for source in SOURCES}
    passed = failed = 0
    for number, fault in enumerate(FAULTS):
        folder = plain / str(number)
        folder.mkdir(exist_ok=True)
        try:
            changed = patched(fault)
            for name, text in changed.items():
                (folder / f"{name}.c").write_text(text)
            compile_all(folder, [folder / f"{name}.c" for name in changed])
            result = run(folder, [folder / f"{name}.o" if name in changed else built for name, built in objects.items()], states)
        except (ValueError, subprocess.CalledProcessError) as error:
            print(f"FAIL {fault[0]}\n    {error}")
            failed += 1
            continue
        found = [line.strip() for line in result.stdout.splitlines() if line.startswith("     ") and line.endswith(", after:")]
        ok = bool(found) or (result.returncode not in (0, 124) and "Assertion" in result.stderr)
        passed, failed = passed + ok, failed + (not ok)
        why = found[0][:-len(", after:")] if found else (result.stderr.strip() or "not found")[-100:]
        print(f"{'ok  ' if ok else 'FAIL'} {fault[0]}: {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
