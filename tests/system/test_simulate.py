"""hobnob simulate as an admin uses it: the examples hold, a run can be repeated, and what is wrong in a plan is said."""
import json
import re

from harness import ROOT, SystemTest, hobnob

EXAMPLES = ROOT / "examples" / "simulate"
# Shorter and smaller than an admin would run them; the sanitizers take their time.
SIZES = {"ship": ["--duration", "150s"], "convoy": ["--duration", "4m"], "hospital": [], "factory": ["--brokers", "20", "--duration", "2m"],
         "edges": ["--brokers", "12", "--duration", "4m"]}


class Simulate(SystemTest):
    def simulated(self, *arguments, status=0):
        done = hobnob("simulate", "--quiet", "--json", *arguments, status=status)
        return json.loads(done.stdout)["simulation"], done

    def test_every_example_holds(self):
        self.assertEqual(sorted(SIZES), sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
        for name, size in SIZES.items():
            with self.subTest(name):
                found, done = self.simulated(EXAMPLES / f"{name}.yaml", *size)
                self.assertIsNone(found["broken"])
                self.assertGreater(found["counts"]["changes"], 0)
                self.assertIsNotNone(found["seconds"]["formed"])
                self.assertEqual(done.stderr, "")

    def test_a_seed_gives_the_same_run_and_another_gives_another(self):
        plan = [EXAMPLES / "hospital.yaml", "--duration", "60s"]
        first, again, other = (self.simulated(*plan, "--seed", seed)[0] for seed in ("5", "5", "6"))
        self.assertEqual(first["trace"], again["trace"])
        self.assertNotEqual(first["trace"], other["trace"])
        self.assertEqual(other["plan"]["seed"], 6)

    def test_a_table_for_people(self):
        done = hobnob("simulate", "--quiet", EXAMPLES / "hospital.yaml", "--duration", "60s")
        for words in ("a change known to all", "an idle broker sends", "All invariants held."):
            self.assertIn(words, done.stdout)

    def test_a_run_that_breaks_says_the_seed_and_how_to_see_it(self):
        plan = self.folder() / "impossible.yaml"  # two brokers that never reach each other
        plan.write_text("sites: [{name: a}, {name: b}]\nduration: 5s\nsettle: 5s\npaths: [{between: [a, b], loss: 100%}]\n")
        done = hobnob("simulate", "--quiet", plan, "--seed", "3", status=1)
        self.assertIn("BROKEN", done.stdout)
        self.assertEqual(done.stderr, f"hobnob: seed 3 broke; to see how: hobnob simulate {plan} --seed 3 --trace FILE\n")
        plan.write_text("sites: [{name: a, brokers: 2}]\nduration: 5s\nsettle: 5s\ntokens_valid: 1s\n")
        found, done = self.simulated(plan, "--loss", "33.3333333%", "--duration", "4567ms", "--brokers", "3", status=1)
        self.assertIsNotNone(found["broken"])
        told = re.search(r"to see how: hobnob (.*) --trace FILE$", done.stderr.strip())[1].split()
        trace = self.folder() / "trace"
        again = json.loads(hobnob(*told, "--quiet", "--json", "--trace", trace, status=1).stdout)["simulation"]
        self.assertEqual((again["trace"], again["broken"]), (found["trace"], found["broken"]))
        self.assertIn(found["broken"], trace.read_text().splitlines()[-1])

    def test_many_seeds_are_counted(self):
        done = hobnob("simulate", "--quiet", "--seeds", "3")
        self.assertRegex(done.stdout, r"^3 seeds, 0 broke an invariant; \d+ faults, \d+ events, [\d.]+ s\n$")

    def test_a_trace_tells_what_happened(self):
        trace = self.folder() / "trace"
        hobnob("simulate", "--quiet", "--seed", "2", "--trace", trace, "--datagrams")
        text = trace.read_text()
        for words in (" starts, epoch 1", " sees ", " fault: ", " bytes: PING"):
            self.assertIn(words, text)

    def test_faults_of_a_plan_are_named_with_their_lines(self):
        plan = self.folder() / "plan.yaml"
        plan.write_text("sites:\n  - {name: edge, brokers: 4}\ndurration: 5m\nfaults:\n  - {at: 5s, crash: edge-9}\n")
        done = hobnob("simulate", plan, status=1)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertIn(f'{plan}:5: there is no broker or site "edge-9"', done.stderr)
        self.assertIn(f'{plan}:3: unknown key "durration" of the plan; write "duration"', done.stderr)
        for text, said in (("sites: [{name: a, brokers: 2}, {name: b, brokers: 3, nat: true}]", "the first 3 brokers are everybody's bootstrap, and site b is behind NAT"),
                           ("sites: [{name: a, brokers: 2}]\nload: {filter_size: 1000}", ":2: filter_size: 1000; write bytes, up to 250")):
            plan.write_text(text)
            self.assertIn(said, hobnob("simulate", plan, status=1).stderr)
        done = hobnob("simulate", self.folder() / "none.yaml", status=1)
        self.assertIn("cannot be read", done.stderr)

    def test_figures_that_were_stopped_go_on(self):
        asked = ["--numbers", "--quiet", "--markdown", "--brokers", "3", "--loss", "0", "--strategy", "hobnob", "--cut", "10s", "--part", "know,cut,memory"]
        tables = hobnob("simulate", *asked).stdout
        rows = [line for line in tables.splitlines() if line.startswith("| 3 | hobnob |")]
        self.assertEqual(len(rows), 3, tables)
        earlier = self.folder() / "earlier.md"
        known = rows[0].replace("| 3 | hobnob | 0 % | ", "| 3 | hobnob | 0 % | a ")  # as nothing that is run would print
        earlier.write_text(tables.replace(rows[0], known).replace(rows[2], rows[2][:-6]))  # and the last was cut off
        again = hobnob("simulate", *asked, "--resume", earlier).stdout.splitlines()
        self.assertIn(known, again)
        self.assertIn(rows[1], again)
        self.assertNotIn(rows[2][:-6], again)
        self.assertEqual(len(again), len(tables.splitlines()))
        # Several outputs in one file: what one of them lacks is in another.
        earlier.write_text("\n".join(line for line in tables.splitlines() if line != rows[0]) + "\n\n" + tables.replace(rows[0], known))
        self.assertIn(known, hobnob("simulate", *asked, "--resume", earlier).stdout)
        # Another seed gives other figures.
        self.assertNotIn(known, hobnob("simulate", *asked, "--seed", "2", "--resume", earlier).stdout)
        short = hobnob("simulate", *asked, "--longest", "1ms").stdout
        self.assertIn("not run: takes about", short)
        self.assertIn("cannot be read", hobnob("simulate", *asked, "--resume", self.folder() / "none", status=1).stderr)

    def test_wrong_words_are_wrong_usage(self):
        for arguments in (["--seeds", "0"], ["--loss", "2"], ["--strategy", "raft"], ["a.yaml", "b.yaml"], ["--datagrams"], ["--brokers", "1"], ["--seeds", "2", "--trace", "x"], ["--seeds", "2", "--json"], ["--quiet", "--numbers"],
                          ["--numbers", "--part", "all"], ["--numbers", "--longest", "soon"], ["--numbers", "--resume", "x"]):
            done = hobnob("simulate", *arguments, status=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_the_manual_names_every_key_of_a_plan(self):
        page = (ROOT / "tools" / "hobnob.1").read_text().replace("\\-", "-")
        sources = "".join((ROOT / "tools" / "simulate" / name).read_text() for name in ("plan_read.c", "plan_faults.c"))
        keys = set(re.findall(r'\{"(\w+)", (?:plan_)?read_', sources))
        self.assertGreater(len(keys), 40)
        missing = sorted(key for key in keys if not re.search(rf"\b{key}\b", page))
        self.assertEqual(missing, [])
