"""The hobnob program offline: init, keys, tokens; and what it says when something is in the way."""
import base64
import json
import os
import stat
import subprocess

from harness import HOBNOB, HOBNOBD, SystemTest, environment, hobnob, run
from ports import free_ports


class Init(SystemTest):
    def made(self, *arguments):
        folder = self.folder() / "fed"
        hobnob("init", folder, "--brokers", "edge-1,edge-2,edge-3", *arguments)
        return folder

    def test_the_files_are_there_and_private_ones_are_private(self):
        folder = self.made()
        expected = {"issuer.key", "issuer.pub", "gossip.key"}
        for name in ("edge-1", "edge-2", "edge-3"):
            expected |= {f"{name}/{item}" for item in ("hobnob.yaml", f"{name}.jwt", f"{name}.key", "issuer.pub", "gossip.key")}
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        self.assertLessEqual(expected, found)
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix == ".key":
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
            if path.is_file() and b"PRIVATE" in path.read_bytes():
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        self.assertFalse([path for path in folder.rglob("issuer.key") if path.parent != folder], "the issuer's private key stays with the admin")
        self.assertEqual(len({path.read_bytes() for path in folder.rglob("gossip.key")}), 1)
        self.assertEqual(len({path.read_bytes() for path in folder.rglob("edge-*.key")}), 3)

    def test_a_wide_umask_does_not_open_the_keys(self):
        folder = self.folder() / "fed"
        done = subprocess.run(["sh", "-c", f'umask 0; exec "{HOBNOB}" init "{folder}" --brokers a,b'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in folder.rglob("*.key"):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)

    def test_configurations_pass_the_check(self):
        folder = self.made()
        for name in ("edge-1", "edge-2", "edge-3"):
            done = run(HOBNOB.with_name("hobnobd"), "--check", folder / name / "hobnob.yaml", env=environment())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_folder_that_is_there_is_never_overwritten(self):
        folder = self.made()
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        done = hobnob("init", folder, "--brokers", "edge-1,edge-2,edge-3", status=1)
        self.one_line(done, str(folder), "exists")
        self.assertEqual(before, {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
        empty = self.folder() / "file"
        empty.write_text("mine")
        self.one_line(hobnob("init", empty, "--brokers", "a", status=1), str(empty))
        self.assertEqual(empty.read_text(), "mine")

    def one_line(self, done, *words):
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertNotIn("Sanitizer", done.stderr)

    def test_a_full_disk_is_one_line_and_leaves_nothing(self):
        """A tiny file system in a mount namespace of its own; sizes so that init fails at its beginning, middle and end."""
        unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if run(*unshare, "true").returncode != 0:  # in a chroot, / is no mount whose propagation could be changed
            unshare += ["--propagation", "unchanged"]
        for size in (4, 8, 16, 32, 48):
            with self.subTest(kilobytes=size):
                place = self.folder()
                script = (f'mount -t tmpfs -o size={size}k tmpfs "{place}" && '
                          f'"{HOBNOB}" init "{place}/fed" --brokers edge-1,edge-2,edge-3; echo "status $?"; find "{place}/fed"; echo "then"; '
                          f'mount -o remount,size=10m "{place}" && "{HOBNOB}" init "{place}/fed" --brokers edge-1,edge-2,edge-3 >/dev/null; echo "status $?"; umount "{place}"')
                done = run(*unshare, "sh", "-c", script, env=environment())
                first, second = done.stdout.split("then\n")
                self.assertIn("status 1", first, done.stdout + done.stderr)
                complaints = [line for line in done.stderr.splitlines() if not line.startswith("find:")]
                self.assertEqual(len(complaints), 1, done.stderr)
                self.assertIn("space", complaints[0].lower())
                self.assertEqual([line for line in first.splitlines() if line.endswith((".key", ".jwt", ".yaml", ".pub"))], [], "nothing half made is left")
                self.assertEqual(second, "status 0\n", "with room made, the same command works")

    def test_a_place_that_does_not_exist_or_may_not_be_written(self):
        self.one_line(hobnob("init", self.folder() / "no" / "such" / "fed", "--brokers", "a", status=1), "no/such")
        self.one_line(hobnob("init", "/proc/fed", "--brokers", "a", status=1), "/proc")

    def test_names_that_cannot_be(self):
        for names in ("", "a,a", "a/b", "..", "a,,b", "x" * 64, "a b"):
            with self.subTest(brokers=names):
                folder = self.folder() / "fed"
                done = hobnob("init", folder, "--brokers", names, status=None)
                self.assertIn(done.returncode, (1, 2))
                self.one_line(done)
                self.assertFalse(folder.exists())

    def test_hosts_and_ports_are_written(self):
        base = free_ports(3)[0]
        folder = self.made("--host", "edge-1=10.1.2.2", "--host", "edge-2=10.1.2.3", "--host", "edge-3=site.example", "--ports", f"mqtt={base},peers={base + 1000}")
        self.assertIn("10.1.2.3", (folder / "edge-1" / "hobnob.yaml").read_text())
        self.assertIn("site.example", (folder / "edge-1" / "hobnob.yaml").read_text())
        self.assertIn(f":{base}\n", (folder / "edge-3" / "hobnob.yaml").read_text(), "each host has the first port")


class KeysAndTokens(SystemTest):
    def setUp(self):
        self.place = self.folder()
        hobnob("key", "new", "--out", self.place / "issuer", "--kind", "issuer")
        hobnob("key", "new", "--out", self.place / "edge", "--kind", "broker")

    def mint(self, *more, status=0):
        return hobnob("token", "mint", "--issuer", self.place / "issuer.key", "--broker", "edge", "--key", self.place / "edge.key", *more, status=status)

    def test_openssl_reads_the_keys(self):
        for name in ("issuer", "edge"):
            done = run("openssl", "pkey", "-in", self.place / f"{name}.key", "-pubout")
            self.assertEqual(done.stdout, (self.place / f"{name}.pub").read_text())
            self.assertEqual(stat.S_IMODE((self.place / f"{name}.key").stat().st_mode), 0o600)
            details = run("openssl", "pkey", "-in", self.place / f"{name}.key", "-noout", "-text").stdout
            self.assertIn("prime256v1", details)

    def test_a_key_that_is_there_is_never_overwritten(self):
        before = (self.place / "issuer.key").read_bytes()
        done = hobnob("key", "new", "--out", self.place / "issuer", "--kind", "issuer", status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(before, (self.place / "issuer.key").read_bytes())

    def test_minted_verified_and_shown(self):
        token = self.place / "edge.jwt"
        token.write_text(self.mint("--expires", "90d").stdout)
        done = hobnob("token", "verify", "--issuer", self.place / "issuer.pub", token)
        self.assertIn("edge", done.stdout)
        shown = hobnob("token", "show", token).stdout
        for word in ("edge", "hobnob:broker"):
            self.assertIn(word, shown)
        header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.read_text().split(".")[:2])
        self.assertEqual(header["alg"], "ES256")
        self.assertEqual((claims["sub"], claims["aud"]), ("edge", "hobnob:broker"))
        self.assertEqual(claims["exp"] - claims["iat"], 90 * 86400)
        self.assertTrue(claims["jti"] and claims["cnf"]["jkt"])

    def test_another_issuer_does_not_verify_it(self):
        hobnob("key", "new", "--out", self.place / "other", "--kind", "issuer")
        token = self.place / "edge.jwt"
        token.write_text(self.mint("--expires", "90d").stdout)
        done = hobnob("token", "verify", "--issuer", self.place / "other.pub", token, status=1)
        self.assertEqual(len((done.stdout + done.stderr).strip().splitlines()), 1, done.stdout + done.stderr)

    def test_a_public_key_signs_nothing(self):
        done = hobnob("token", "mint", "--issuer", self.place / "issuer.pub", "--broker", "edge", "--key", self.place / "edge.key", "--expires", "1d", status=1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_wrong_usage_is_status_2_with_a_suggestion(self):
        table = [(["int"], "init"), (["token", "mnit"], "mint"), (["key", "new", "--kind", "brokr", "--out", self.place / "x"], "broker"),
                 (["init", self.place / "y", "--brokres", "a"], "--brokers"), (["members", "--jsno"], "--json"), (["--verson"], "--version"),
                 (["--json", "members"], "after a command"), ([], "hobnob"), (["init"], "DIR")]
        for arguments, suggestion in table:
            with self.subTest(arguments=[str(a) for a in arguments]):
                done = hobnob(*arguments, status=2)
                self.assertIn(suggestion, done.stdout + done.stderr)
        self.assertFalse((self.place / "y").exists())

    def test_every_command_has_help(self):
        for arguments in ([], ["init"], ["key"], ["key", "new"], ["token"], ["token", "mint"], ["token", "show"], ["token", "verify"], ["status"],
                          ["members"], ["registry"], ["links"], ["why"]):
            with self.subTest(arguments=arguments):
                done = hobnob(*arguments, "--help")
                self.assertIn("sage", done.stdout)
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 79)
                self.assertEqual(done.stderr, "")
        self.assertLessEqual(max(map(len, run(HOBNOBD, "--help").stdout.splitlines())), 79)
