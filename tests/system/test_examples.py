"""What stands in examples/ works as it is written there."""
import os
import shutil

from certificates import Authority
from harness import HOBNOBD, ROOT, FederationTest, environment, run

EXAMPLES = ROOT / "examples"


class Examples(FederationTest):
    def test_configurations_pass_the_check(self):
        folder = self.fed.made / "edge-1"
        Authority(folder, "clients").sign("site")
        for path in sorted(EXAMPLES.glob("*.yaml")):
            with self.subTest(path.name):
                copy = folder / path.name  # beside the files that init has made
                shutil.copy(path, copy)
                done = run(HOBNOBD, "--check", copy, env=environment())
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_programs_say_hello(self):
        ports = [str(self.fed[name].mqtt_port) for name in ("edge-3", "edge-1")]
        done = run("/usr/bin/python3", EXAMPLES / "hello.py", *ports)
        self.assertEqual(done.stdout, "hello/python: Hello from Python\n", done.stderr)
        ports = [str(self.fed[name].ws_port) for name in ("edge-3", "edge-1")]
        done = run(shutil.which("node"), EXAMPLES / "hello.js", *ports, env=dict(os.environ, NODE_PATH="/usr/share/nodejs"))
        self.assertEqual(done.stdout, "hello/javascript: Hello from JavaScript\n", done.stderr)
