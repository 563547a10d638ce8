#!/usr/bin/python3
"""Breaks what gossip.txt promises, one promise at a time, and sees that a test which its row names fails.

    broken.py [P7 ...] [--build DIR]     only the rows with these numbers

A fault is a place in a file of gossip/ (it must be there exactly once) and what stands there instead. Only the unit tests that the row
names run: a fault that none of them sees is a test that does not show what its row says. Builds in build/broken. Prints one line each;
the last line is a count.
"""
import argparse
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check import rows_of

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-O1", "-w", "-fno-common", f"-I{ROOT}"]
RUN_S = 60  # of a processor: a test that no longer ends has seen the fault too
# cmocka runs only what the environment names.
CHOICE = """#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>
__attribute__((constructor)) static void choose(void) { if (getenv("ONLY")) cmocka_set_test_filter(getenv("ONLY")); }
"""

FAULTS = [  # number, what is broken, then file, what is there, what stands there instead, once or more
    ("P1", "members that are down are not called", "rejoin", "    call_one(gossip);\n    gossip->next_rejoin_ms", "    gossip->next_rejoin_ms"),
    ("P1", "a broker alone dials nobody", "rejoin", "        dial_some(gossip, first);\n    else", "        ;\n    else"),
    ("P1", "who sees others does not dial an address that is silent", "rejoin", "        dial_one(gossip);\n    call_one", "        ;\n    call_one"),
    ("P1", "every broker calls the one that is down", "rejoin", "if (chance_below(&gossip->chance, visible) < DIALS_OF_ALL * choices) call(", "if (true) call("),
    ("P1", "the gap between dials does not grow", "rejoin", "return gap < most ? gap : most;", "return least;"),
    ("P1", "dialling ends after an hour", "rejoin", "    if (gossip->now_ms < gossip->next_rejoin_ms) return;", "    if (gossip->now_ms < gossip->next_rejoin_ms) return;\n    if (gossip->now_ms > 3600000) { gossip->next_rejoin_ms = NEVER; return; }"),
    ("P2", "who sees less than half takes nobody in", "evidence", "if (member_is_visible(member) || buried) return;", "if (member_is_visible(member) || buried || members_absent_count(gossip) > members_visible_count(gossip)) return;"),
    ("P2", "merging begins a new life", "evidence", "        digest_meet(gossip, member);", "        digest_meet(gossip, member);\n        if (member->down_epoch) own_raise_epoch(gossip, gossip->self->epoch, &member->address);"),
    ("P3", "only the first addresses are tried", "rejoin", "gossip->dial_from = count > 0 ? (gossip->dial_from + tried) % count : 0;", "gossip->dial_from = 0;"),
    ("P3", "our own address is not noticed", "rejoin", "    contact->self_until_ms = gossip->now_ms + SELF_KEEP_MS;", ""),
    ("P3", "remembered peers are not dialled", "rejoin", "return gossip->bootstrap_count + gossip->remembered_count;", "return gossip->bootstrap_count;"),
    ("P3", "no peer is named for the cache", "rejoin", "if (good <= max || seen * max / good >= taken) out[taken++] = member->address;", ""),
    ("P4", "a new address is not followed", "evidence", "    member->address = head->address;\n", "    if (member->address.family == 0) member->address = head->address;\n"),
    ("P4", "a token is good for any key", "identity", "if (!who.allowed || who.valid_for_ms == 0) {", "if (false) {"),
    ("P5", "the name of the federation is not in the seal", "seal", "return 5 + seal->federation_size;", "return 5;"),
    ("P5", "it is not asked for over links", "receive", "if (gossip->over_link && memcmp(header.cookie, gossip->federation_mark, sizeof header.cookie) != 0) {", "if (false) {"),
    ("P6", "who is older is not told so", "evidence", "    struct message head = evidence_head_of(member);\n    reply_add(gossip, &head);\n}\n\n/* ---- heads", "}\n\n/* ---- heads"),
    ("P6", "what we are told of our earlier life is not believed", "own_life", "    note_raise(gossip, from);\n    raise_epoch(gossip, above);", "    note_raise(gossip, from);"),
    ("P6", "the epoch goes on by one only", "own_life", "self->epoch = above + 1;", "self->epoch++;"),
    ("P6", "the new epoch is not kept on disk", "own_life", "    tell_epoch(gossip);\n    say_head(gossip);\n}\n\nbool own_is_cloned", "    say_head(gossip);\n}\n\nbool own_is_cloned"),
    ("P6", "an older life passes the grave", "holdings", "if (!grave || head->epoch > grave->epoch) return true;", "return true;"),
    ("P6", "who does not pass the grave is not told why", "holdings", "    reply_add(gossip, &accusation);\n    return false;", "    return false;"),
    ("P6", "rows are numbered before anybody has answered", "own", "    return own->ask_until_ms != 0;\n", "    return false;\n"),
    ("P7", "a newer head of the dead is not kept", "evidence", "    if (newer && !holdings_let_pass", "    if (newer && member->state == MEMBER_DOWN && member->fresh_epoch != head->epoch) return;\n    if (newer && !holdings_let_pass"),
    ("P7", "the death is not kept", "evidence", "    member->down_epoch = member->epoch;\n    member->down_incarnation = member->incarnation;\n", ""),
    ("P7", "the accusation is not kept", "accusation", "    member->accused_epoch = member->epoch;\n    member->accused_incarnation = member->incarnation;\n", ""),
    ("P7", "a probe does not say of what its member is accused", "probe", "    if (accusation_stands(member)) {", "    if (false) {"),
    ("P7", "as new is taken for newer", "evidence", "(epoch == than_epoch && incarnation > than_incarnation);\n}\n\nstruct message evidence_head_of", "(epoch == than_epoch && incarnation >= than_incarnation);\n}\n\nstruct message evidence_head_of"),
    ("P8", "a checkpoint is shown before all of it is there", "staging", "return staging->size == staging->head.checkpoint_size;", "return staging->size > 0 || staging->head.checkpoint_size == 0;", "registry", "bool same = base && is_same(base, head);", "bool same = base != NULL;"),
    ("P8", "an entry is applied over a gap", "registry", "if (expected != REGISTRY_OK) return expected;\n    enum registry_result within", "if (expected == REGISTRY_REPEATED) return expected;\n    enum registry_result within", "transfer", "if (expected == REGISTRY_GAP) return keep_early(transfers, *held, entry, bytes, size);\n    if (expected != REGISTRY_OK) return expected;", ""),
    ("P8", "a delete is forgotten", "registry", "return op->deletes ? rowset_delete(rows, op->kind, op->filter, op->size)", "return op->deletes ? ROWSET_SAME"),
    ("P8", "rows that are not in a new checkpoint stay", "registry", "    tell_missing(registry_rows(*held), &other->rows, false, watch);\n", ""),
    ("P9", "hearsay makes alive", "evidence", "    if (member->fresh_epoch == member->epoch)\n", "    if (true)\n"),
    ("P9", "what is forgotten leaves no grave", "holdings", "if (member->epoch > 0 && graves_put(&gossip->graves, &grave)) member->has_grave = true;", ""),
    ("P9", "rows older than the grave are shown", "holdings", "return member_is_visible(member) && !member->has_grave;", "return member_is_visible(member);"),
    ("P9", "who died is alive again by the same head", "evidence", "if (member_is_visible(member) || buried) return;", "if (member_is_visible(member)) return;"),
    ("P10", "anybody's signature will do for an entry", "repair", "    if (!signed_verify(message->bytes, message->size, &gossip->crypto, member->public_key)) {\n        receive_forged(gossip);\n        return;\n    }\n    if (!holdings_have_room", "    if (!holdings_have_room"),
    ("P10", "a replica deletes a row by itself", "registry", "    rowset_free(&registry->rows);\n    registry->rows = rows;\n    registry->log[registry->log_count++]", "    if (entry->sequence == 5) { struct rowset_walk w; struct rowset_row r; rowset_begin(&rows, &w); if (rowset_next(&w, &r)) rowset_delete(&rows, r.kind, r.filter, r.size); }\n    rowset_free(&registry->rows);\n    registry->rows = rows;\n    registry->log[registry->log_count++]"),
    ("P11", "a replica never folds", "registry", "    if (head->checkpoint_sequence > at.base_sequence) return fold(held, rules, head, bytes, size);", "    if (head->checkpoint_sequence > at.base_sequence) return REGISTRY_OK;"),
    ("P11", "a head that came before the entries is forgotten", "transfer", "if (!staging->used || staging->head.checkpoint_sequence > registry_sequence(*held)) continue;", "continue;"),
    ("P11", "a fold drops what is above the checkpoint", "registry", "    drop_log_up_to(registry, base->sequence);\n", "    drop_log_up_to(registry, UINT64_MAX);\n"),
    ("P12", "nobody is ever forgotten", "rejoin", "    if (!is_gone(member) || gossip->now_ms - member->down_since_ms < FORGET_MS) return false;\n", "    return false;\n"),
    ("P12", "with the member its address is forgotten", "rejoin", "    if (member->state == MEMBER_DOWN && member->address.family != 0) remember(gossip, &member->address);\n", ""),
    ("P12", "members have no limit", "members", "members->count >= gossip->limits.members_max)", "false)"),
    ("P12", "strangers have no limit", "members", "(members->unverified >= UNVERIFIED_MAX || members->count", "(members->count"),
    ("P12", "strangers displace members", "members", "        if (strangers && member->has_key) continue;\n", ""),
    ("P12", "the living are displaced", "members", "for (size_t i = members_visible_count(gossip) - 1; i < gossip->members.count; i++) {\n        struct member *member = members_at(gossip, i);\n        if (!member || member->self || member == gossip->sender) continue;", "for (size_t i = 0; i < gossip->members.count; i++) {\n        struct member *member = members_at(gossip, i);\n        if (!member || member->self || member == gossip->sender) continue;"),
    ("P12", "graves have no limit", "graves", "    if (graves->count >= GRAVES_MAX) make_room(graves, grave->made_ms);\n", ""),
    ("P12", "the newest grave makes room", "graves", "slot->made_ms < graves->slots[oldest].made_ms)) oldest = i;", "slot->made_ms > graves->slots[oldest].made_ms)) oldest = i;"),
    ("P12", "rows have no limit", "holdings", "    if (holdings->bytes + transfers_bytes(&gossip->transfers) <= max) return true;\n", "    return true;\n"),
    ("P13", "all buckets are listed", "digest", "        if (gossip->digest.buckets[bucket] == wire_load_u64(hashes + 8 * bucket)) continue;\n", "", "digest", "unsigned left = catchup_buckets(gossip, differing);", "unsigned left = MESSAGE_BUCKET_COUNT;", "digest", "if (left > LISTED_MAX && !gossip->over_link) left = LISTED_MAX;", ""),
    ("P14", "what does not fit is left out", "outbox", "        message_put(&packet->out, message);\n        assert(!packet->out.failed); /* every message fits a packet of its own */\n", ""),
    ("P15", "the first class that has something goes", "budget", "    for (;;) {\n        enum budget_class class", "    for (int i = 0; i < BUDGET_CLASSES; i++)\n        if (budget->queues[i].first) return (enum budget_class)i;\n    for (;;) {\n        enum budget_class class"),
    ("P15", "all classes weigh the same", "budget", "deficit += weight[class] * QUANTUM;", "deficit += 3 * QUANTUM;"),
    ("P15", "all is of one class", "outbox", "    enum budget_class class = class_of(gossip, message);\n    packet->", "    enum budget_class class = BUDGET_MEMBERS;\n    packet->"),
    ("P16", "the queue of datagrams has no bound", "outbox", "    if (gossip->budget.count >= gossip->limits.datagrams_queued_max) drop(gossip, budget_take_back(&gossip->budget));\n", ""),
    ("P16", "what is said has no bound", "budget", "    if (budget->credit < cost) return NULL;\n", ""),
    ("P17", "a sleep is not noticed", "lag", "    if (lag_ms > 2 * (uint64_t)gossip->limits.probe_interval_ms)\n        paused(gossip);\n    else\n        lagged(gossip, lag_ms);", ""),
    ("P17", "probes that we slept through have failed", "lag", "    probe_forget(gossip);\n", ""),
    ("P17", "many suspects at once are evicted", "probe", "return gossip->now_ms < gossip->partition_since_ms + PARTITION_MAX_MS;", "return false;"),
    ("P18", "one accuser condemns all", "accusation", "    if (live >= allowed) return false;\n", "    if (live >= allowed) return true;\n"),
    ("P18", "helpers are not asked", "helpers", "        send_one(gossip, helpers[i], &request);\n", ""),
    ("P18", "what helpers say counts for nothing", "helpers", "    if (asked->number != message->number) return;\n", "    return;\n"),
    ("P19", "datagrams that are lost and a link that answers change nothing", "carrier", "    if (enough == 0 || (way->misses >= enough && way->doubt >= DOUBT_DOWN)) set_by_link(gossip, member, true);\n", ""),
    ("P19", "addresses are not dialled by link", "carrier", "    call(gossip, address, false);\n", ""),
    ("P19", "all goes by datagram, link or not", "members", "    if (member->way.link && (member->way.by_link || nowhere)) return carrier_address(&member->id);\n", ""),
    ("P19", "the link is not asked beside", "carrier", "    if (way->link)\n        probe_by(gossip, member, &link);\n    else if", "    if (way->link)\n        ;\n    else if"),
    ("P20", "older evidence is answered without a limit", "evidence", "if (member->head_size == 0 || gossip->now_ms < member->evidence_sent_ms) return;", "if (member->head_size == 0) return;"),
    ("P20", "heads are answered with heads without a limit", "receive", "if (holds_old && gossip->now_ms >= sender->head_told_ms) {", "if (holds_old) {"),
    ("P20", "a head is told without end", "rumors", "        rumor->head_sends--;\n", ""),
    ("P20", "an entry is told without end", "rumors", "        rumor->entry_sends--;\n", ""),
    ("P20", "what was had twice goes in full on and on", "rumors", "if (rumor->entry_had < HAD_ENOUGH && entry) {", "if (entry) {"),
    ("P21", "it goes before anybody heard", "own", "#define LEAVE_ACKNOWLEDGED 3u", "#define LEAVE_ACKNOWLEDGED 0u"),
    ("P21", "it never goes unheard", "own", " || gossip->now_ms >= own->leave_deadline_ms)", ")"),
    ("P21", "a last head is not believed", "evidence", "    if (member->leaving) {\n", "    if (false) {\n"),
    ("P22", "a ring is not given over a link", "ring", "    if (carrier_send_one(gossip, member, &ring))\n        gossip->counters.rings_sent++;\n    else\n        carrier_want(gossip, member, CARRIER_NEED_MS);", ""),
    ("P22", "a ring is taken from a datagram", "ring", "    if (!gossip->over_link) {\n        gossip->counters.rings_refused++; /* by a datagram, which an old key has sealed */\n        return;\n    }\n", ""),
    ("P22", "the oldest ring wins", "ring", "if (number != than_number) return number < than_number ? -1 : 1;", "if (number != than_number) return number < than_number ? 1 : -1;"),
    ("P23", "memory for a checkpoint is taken by the size in its head", "staging", "size_t room = staging->room ? staging->room * 2 : 4 * MESSAGE_CHUNK_SIZE;", "size_t room = staging->head.checkpoint_size + MESSAGE_CHUNK_SIZE;"),
    ("P23", "an unproven address gets thirty times its bytes", "strangers", "AMPLIFICATION * stranger->received", "10 * AMPLIFICATION * stranger->received"),
    ("P23", "a chunk needs no proof", "transfer", " ||\n            !checkpoint_proves(&staging->head, chunk->number, chunk, &rules->crypto))", ")"),
    ("P23", "a length beyond the bytes is believed", "wire", "if (in->failed || size > in->size - in->at) {", "if (in->failed || size > 70000) {"),
    ("P23", "each new life is answered in full", "receive", "    if (!strangers_greet(gossip, gossip->source_cookie)) return;\n", ""),
    ("P23", "a false life takes the greeting of a true one", "receive", "epoch == member->greeted_epoch) return;", "epoch <= member->greeted_epoch) return;"),
    ("G12", "one may have others ping without end", "helpers", "asks_too_much(gossip) ? NULL : free_relay", "free_relay"),
    ("G12", "a helper floods whom all ask for", "helpers", "    if (*count >= HELPED_PER_S) return false;\n", ""),
    ("G12", "pings for others take the place of its own", "probe", "receive_may(gossip, brought ? ALLOW_BROUGHT : ALLOW_PINGS, 1)", "receive_may(gossip, ALLOW_PINGS, 1)"),
    ("P24", "time runs backwards", "gossip", "    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;\n}\n\nint gossip_set_token", "    gossip->now_ms = now_ms;\n}\n\nint gossip_set_token"),
    ("P25", "transfers have no turns", "catchup", "    if (place == SIZE_MAX) return false;\n", "    if (place == SIZE_MAX) return true;\n"),
    ("P25", "transfers have no pace", "catchup", "    if (catchup->tokens >= size) {\n        catchup->tokens -= size;\n        return true;\n    }", "    return true;"),
    ("P25", "a transfer begins anew with another", "catchup", "        if (other) *from = other;\n", "        if (other) *from = other, staging_free((struct staging *)staging);\n"),
    ("P25", "whoever hears a seeker dials it", "seek", "if (chance_below(&gossip->chance, members_visible_count(gossip)) < ANSWERS) keep(", "if (true) keep("),
    ("P25", "every seeker seeks on", "seek", "bool suppressed = seek->heard >= HEARD_ENOUGH || gossip->self->leaving;", "bool suppressed = gossip->self->leaving;"),
    ("P25", "all of a checkpoint goes by datagrams", "catchup", "    bool small = staging_chunks(staging) <= CATCHUP_SMALL_CHUNKS;\n", "    bool small = true;\n"),
]


def must(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr[-3000:]}")


def patched(fault):
    """{file of gossip/: its text with this fault in it}"""
    texts = {}
    for name, old, new in zip(*[iter(fault[2:])] * 3):
        text = texts.get(name) or (ROOT / "gossip" / f"{name}.c").read_text()
        if text.count(old) != 1:
            raise ValueError(f"in gossip/{name}.c there is {text.count(old)} times: {old}")
        texts[name] = text.replace(old, new)
    return texts


class House:
    """Gossip as it is, compiled, and the test programs that the table names."""

    def __init__(self, build, programs):
        self.build = build
        build.mkdir(parents=True, exist_ok=True)
        (build / "choice.c").write_text(CHOICE)
        self.gossip = sorted((ROOT / "gossip").glob("*.c"))
        sources = [*self.gossip, build / "choice.c", *(ROOT / f"tests/unit/{name}.c" for name in programs)]
        jobs = [["gcc", *FLAGS, "-c", source, "-o", self.object(source.stem)] for source in sources]
        broker = sorted((ROOT / "broker").glob("*.c"))
        jobs += [["gcc", *FLAGS, "-c", source, "-o", build / f"broker-{source.stem}.o"] for source in broker]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(must, jobs))
        (build / "libbroker.a").unlink(missing_ok=True)
        must(["ar", "rcs", build / "libbroker.a", *(build / f"broker-{source.stem}.o" for source in broker)])

    def object(self, name):
        return self.build / f"{name}.o"

    def link(self, folder, program, instead=()):
        wrap = ["-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc"] if program.endswith("_oom") else []
        objects = [folder / f"{path.stem}.o" if path.stem in instead else self.object(path.stem) for path in self.gossip]
        must(["gcc", self.object(program), self.object("choice"), *objects, self.build / "libbroker.a", "-o", folder / program, "-lmsgpackc", "-lcmocka", *wrap])

    def seen_by(self, folder, texts, tests):
        """The first of the tests (program, name) that fails with these files, or ""."""
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.c").write_text(text)
            must(["gcc", *FLAGS, "-c", folder / f"{name}.c", "-o", folder / f"{name}.o"])
        for program in sorted({program for program, _ in tests}):
            self.link(folder, program, texts)
            for test in (test for in_program, test in tests if in_program == program):
                done = subprocess.run([str(folder / program)], capture_output=True, env=dict(os.environ, ONLY=test),
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (RUN_S, RUN_S)))
                if b"Running 1 test" not in done.stdout + done.stderr and done.returncode == 0:
                    sys.exit(f"{program} did not run {test}:\n{done.stdout.decode()[-1000:]}")
                if done.returncode:
                    return test
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="P7")
    parser.add_argument("--build", type=Path, default=ROOT / "build/broken")
    options = parser.parse_args()
    wanted = [fault for fault in FAULTS if not options.rows or fault[0] in options.rows]
    if not wanted:
        parser.error(f"there is no row {options.rows[0]}")
    tests = {}
    for _, fields in rows_of((ROOT / "tests/conformance/gossip.txt").read_text()):
        named = [name.strip() for name in fields[3].split(",")]
        tests[fields[0]] = [tuple(name.split(":")) for name in named if name.startswith("test_gossip_")]
    house = House(options.build.resolve(), sorted({program for fault in wanted for program, _ in tests[fault[0]]}))
    for number in sorted({fault[0] for fault in wanted}):
        if seen := house.seen_by(house.build / "whole", {}, tests[number]):
            sys.exit(f"{number}: {seen} fails as it is")

    def attempt(job):
        place, fault = job
        try:
            return fault, house.seen_by(house.build / f"fault-{place}", patched(fault), tests[fault[0]])
        except ValueError as error:
            return fault, error

    seen = missed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for fault, by in pool.map(attempt, enumerate(wanted)):
            good = isinstance(by, str) and by != ""
            print(f"{'ok' if good else 'FAILED':8}{fault[0]:4}{fault[1]:60}{by or 'none of its tests fails'}", flush=True)
            seen, missed = seen + good, missed + (not good)
    print(f"{seen} passed, {missed} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
