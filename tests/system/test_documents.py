"""What the documents promise is what the programs do: keys, limits and their defaults, commands, and the page for those who come from Mosquitto."""
import configparser
import re
import shutil
import subprocess
from pathlib import Path

from clients import MosquittoSub
from harness import HOBNOB, HOBNOBD, ROOT, Broker, SystemTest, environment, run, wait_until
from ports import free_ports

README, LIMITS, PAGE = ROOT / "README.md", ROOT / "broker" / "LIMITS.md", ROOT / "daemon" / "MOSQUITTO.md"
MOSQUITTO_CONF = Path("/usr/share/doc/mosquitto/examples/mosquitto.conf")
SECTIONS = "storage|identity|listen|tls|federation|clients|limits|log"


def keys():
    """All keys of the configuration, as section.key, from the tables that read it."""
    text = (ROOT / "daemon" / "config_keys.c").read_text()
    found = set()
    for array, body in re.findall(r"struct config_key (\w+)_keys\[\] = \{\n(.*?)\n\};", text, re.S):
        section = {"config_top": "", "client": "clients.", "limit": "limits."}.get(array, array + ".")
        names = re.findall(r'\.name = "(\w+)"', body) + re.findall(r"_LIMIT(?:_FROM)?\((\w+),", body)
        found |= {section + name for name in names}
    return found - {"clients.password_file"}  # known, and said not to be there yet


def rows(text, heading):
    """The cells of the table that begins with this row."""
    lines = text[text.index(heading):].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            return table
        table.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return table


def expanded(cell):
    """`listen.mqtt`, `.ws` are listen.mqtt and listen.ws."""
    section, found = "", []
    for name in re.findall(r"`([\w.]+)`", cell):
        if not name.startswith("."):
            section = name.rpartition(".")[0]
        found.append(name if not name.startswith(".") else section + name)
    return found


def number(text):
    found = re.fullmatch(r"([\d,]+)(?: (KiB|MiB))?", text)
    return int(found[1].replace(",", "")) * {None: 1, "KiB": 1 << 10, "MiB": 1 << 20}[found[2]] if found else None


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)[1]


class Documents(SystemTest):
    def test_the_table_of_keys_is_complete(self):
        named = [name for row in rows(README.read_text(), "| key | default |") for name in expanded(row[0])]
        self.assertEqual(sorted(named), sorted(name for name in keys() if not name.startswith("limits.")))

    def test_the_example_has_all_keys(self):
        section, found = "", set()
        for line in (ROOT / "examples" / "edge-1.yaml").read_text().splitlines():
            key = re.match(r"( *)(\w+):", line)
            if key and not key[1]:
                section = key[2]
            if key:
                found.add(f"{section}.{key[2]}" if key[1] else key[2])
        wanted = {name for name in keys() if not name.startswith("limits.")}
        self.assertEqual({name for name in found if not name.startswith("limits.")} - set(SECTIONS.split("|")), wanted)

    def test_every_limit_is_explained_somewhere_and_none_is_invented(self):
        limits = {name.partition(".")[2] for name in keys() if name.startswith("limits.")}
        table = {name for row in rows(LIMITS.read_text(), "| key | unit |") for name in expanded(row[0])}
        between = (ROOT / "broker" / "broker.h").read_text() + (ROOT / "gossip" / "gossip.h").read_text()
        self.assertEqual(table - limits, set())
        self.assertEqual({name for name in limits - table if not re.search(rf"\b{name};\s*/\*", between)}, set())

    def test_the_defaults_are_those_of_the_code(self):
        code = {}
        for name, value in re.findall(r"_default\(&limits->(\w+), (.*)\);", (ROOT / "broker" / "limits.c").read_text()):
            value = value.replace("UINT16_MAX", "65535").replace("TOPIC_SIZE_MAX", "65535").replace("TOPIC_LEVELS_MAX", "128")
            code[name] = eval(re.sub(r"(\d)u\b", r"\1", value), {"__builtins__": {}})
        compared = 0
        for row in rows(LIMITS.read_text(), "| key | unit |"):
            for name, default in zip(expanded(row[0]), row[2].split(", ")):
                if number(default) is not None:
                    self.assertEqual(number(default), code[name], name)
                    compared += 1
        self.assertGreaterEqual(compared, 20)

        named = 0
        for row in rows(PAGE.read_text(), "| mosquitto.conf |"):
            for name in (name.partition(".")[2] for name in expanded(row[1])):
                if name in code and name not in ("session_expiry_max_s", "sys_interval_s") and row[2]:
                    shown = f"{code[name] >> 20} MiB" if code[name] % (1 << 20) == 0 else f"{code[name]:,}"
                    self.assertRegex(row[2], rf"(^|[ ;]){shown}($|[ ;,])", name)
                    named += 1
        self.assertEqual(named, 5)

    def test_keys_in_the_text_exist(self):
        known = keys()
        for path in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/*.md")):
            for name in re.findall(rf"`((?:{SECTIONS})\.\w+)`", path.read_text()):
                self.assertIn(name, known, path)

    def test_commands_in_the_text_exist(self):
        commands = set(re.findall(r"\bhobnob ((?:key |token )?[a-z]+)\b(?=[ `\]])", README.read_text()))
        self.assertGreaterEqual(commands, {"init", "bench", "token mint", "status"})
        for command in sorted(commands):
            done = run(HOBNOB, *command.split(), "--help")
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")

    def test_links_lead_somewhere(self):
        for path in sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("*/*.md")):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
                self.assertTrue((path.parent / link).exists(), f"{path}: {link}")


PAGES = [ROOT / "daemon" / "hobnobd.8", ROOT / "daemon" / "hobnobd.yaml.5", ROOT / "tools" / "hobnob.1"]


def plain(text):
    """A manual page, or what a program prints, as words alone."""
    text = re.sub(r"(?m)^\.(B|I|BR|RI|RB) ", "", text)
    return " ".join(re.sub(r"\\f[BPI]", "", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").split())


def paragraphs(text):
    """{what .TP names: its text}"""
    return {plain(head): plain(body) for head, body in re.findall(r"^\.TP\n(.*)\n((?:(?!\.TP|\.S[SH]|\.PP).*\n)*)", text, re.M)}


class ManualPages(SystemTest):
    def test_they_are_well_formed_and_installed(self):
        for page in PAGES:
            self.assertIn(str(page.relative_to(ROOT)), (ROOT / "CMakeLists.txt").read_text())
            if shutil.which("groff") is not None:
                done = run("groff", "-man", "-ww", "-z", "-Tutf8", page)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), page)

    def test_options_of_hobnobd_are_those_of_its_help(self):
        shown = re.findall(r"^  ((?:-\w, )?--\w+) ", run(HOBNOBD, "--help", env=environment()).stdout, re.M)
        named = [name for name in paragraphs(PAGES[0].read_text()) if name.startswith("-")]
        self.assertEqual(named, shown)

    def test_options_of_hobnob_are_in_the_words_of_its_help(self):
        page = PAGES[2].read_text()
        sections = {plain(name): body for name, body in re.findall(r"^\.SS (.*)\n((?:(?!\.S[SH]).*\n)*)", page, re.M)}
        commands = set(re.findall(r"^  (\w+) +\S", run(HOBNOB, "--help").stdout, re.M))
        self.assertEqual({name.split()[0] for name in sections}, commands)
        for name, section in sections.items():
            done = run(HOBNOB, *name.split(), "--help")
            self.assertEqual(done.returncode, 0, name)
            shown = dict(re.findall(r"^ {2,6}((?:-\w, )?--\S+) +((?:.*)(?:\n {20,}\S.*)*)", done.stdout.partition("\nExample")[0], re.M))
            shown = {option: plain(text) for option, text in shown.items() if option not in ("-?, --help", "--usage")}
            self.assertEqual({option: text.rstrip(".") for option, text in paragraphs(section).items()},
                             {option: text.rstrip(".") for option, text in shown.items()}, name)
            usage, text = re.match(r"Usage: (.*)\n((?:.+\n)+)", done.stdout).groups()
            self.assertIn(plain(usage) + " .PP " + plain(text), plain(section))

    def test_examples_in_the_help_fit_into_a_terminal(self):
        for name in re.findall(r"^\.SS (.*)$", PAGES[2].read_text(), re.M):
            _, found, examples = run(HOBNOB, *plain(name).split(), "--help").stdout.partition("\nExample")
            block = examples.partition("\n\n")[0].splitlines()[1:]
            for line in block:  # what does not fit goes on at the beginning of the next line
                self.assertRegex(line, r"^  .{0,76}$", name)

    def test_all_keys_and_limits_are_there(self):
        page = paragraphs(PAGES[1].read_text())
        named = [name for head in page for name in head.split(", ")]
        self.assertEqual(sorted(named), sorted(keys()))
        for row in rows(LIMITS.read_text(), "| key | unit |"):
            head = ", ".join(f"limits.{name}" for name in expanded(row[0]))
            self.assertIn(f"; {row[2]}. At the limit: ".replace("`", ""), page[head])


    def test_defaults_of_gossips_limits_are_those_of_the_core(self):
        page = paragraphs(PAGES[1].read_text())
        found = re.findall(r"\.(\w+) = ([\du<* ]+),", re.search(r"const struct gossip_limits defaults = {(.*?)};", (ROOT / "gossip" / "gossip.c").read_text(), re.S)[1])
        self.assertGreater(len(found), 15)
        for name, value in found:
            text = page.get(f"limits.{name}")
            if text is None:  # no key of the configuration
                continue
            number = eval(value.replace("u", ""))
            words = [f"{number:,}"] + [f"{number >> shift} {unit}" for shift, unit in ((20, "MiB"), (10, "KiB")) if number % (1 << shift) == 0]
            self.assertTrue(any(re.search(rf"(^|[ (]){word}($|[.,;) ])", text) for word in words), f"{name}: {words} not in: {text}")


class FromMosquitto(SystemTest):
    def test_its_options_are_all_there(self):
        if not MOSQUITTO_CONF.exists():
            self.skipTest("Mosquitto's example configuration is not installed")
        options = set(re.findall(r"^#([a-z_0-9.]+)(?: |$)", MOSQUITTO_CONF.read_text(), re.M))
        self.assertGreater(len(options), 60)
        named = " ".join(row[0] for row in rows(PAGE.read_text(), "| mosquitto.conf |"))
        bridge = {"cleansession", "keepalive_interval", "notifications", "notification_topic", "restart_timeout", "round_robin",
                  "start_type", "threshold", "idle_timeout", "try_private"}  # "what belongs to them"
        missing = {option for option in options - bridge
                   if not re.search(rf"`{re.escape(option)}`|`{option.split('_')[0]}_…`|`{option} ", named)}
        self.assertEqual(missing, set())

    def test_its_configuration_and_certificates_work(self):
        folder = self.folder()
        done = subprocess.run(["sh", "-e"], input=block("sh"), text=True, capture_output=True, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        broker = Broker("home", folder)
        ports = dict(zip(("1883", "8883", "9001", "9100"), free_ports(1, bases=4)))
        config = block("yaml").replace("/var/lib/hobnob", "data") + "log: {level: debug}\n"
        for standard, port in ports.items():
            config = config.replace(f":{standard}", f":{port}")
        broker.config.write_text(config)
        checked = run(HOBNOBD, "--check", broker.config, env=environment())
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, f"{broker.config}: good\n", ""))
        broker.start()
        self.addCleanup(broker.stop)
        watcher = self.closing(MosquittoSub(broker, "kitchen/#"))
        command = re.search(r"^    (mosquitto_pub .*)$", PAGE.read_text(), re.M)[1].replace("-p 8883", f"-p {ports['8883']}")
        done = subprocess.run(["sh", "-c", command], text=True, capture_output=True, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_until("it arrives", lambda: [m.payload for m in watcher.messages] == [b"on"])
        wait_until("the log names the client", lambda: broker.log_lines(" debug client ", "has connected", "certificate 'kitchen'"))
        wait_until("and its end", lambda: broker.log_lines(" debug client ", "is gone: it has disconnected"))
        done = subprocess.run(["sh", "-c", re.sub(r"--cert \S+ --key \S+", "", command)], text=True, capture_output=True, cwd=folder)
        self.assertNotEqual(done.returncode, 0)
        wait_until("who has none is refused, and named", lambda: broker.log_lines(" client_refused ", "no client certificate"))

    def test_events_of_the_log_are_those_of_the_code(self):
        code = "".join(path.read_text() for path in (ROOT / "daemon").glob("*.c"))
        events = [name for row in rows(PAGE.read_text(), "| event |") for name in expanded(row[0])]
        self.assertGreaterEqual(len(events), 10)
        for event in events:
            self.assertIn(f'"{event}"', code)

    def test_the_unit_for_systemd(self):
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read(ROOT / "examples" / "hobnob.service")
        service = unit["Service"]
        self.assertEqual(service["ExecStart"].split(), ["/usr/local/bin/hobnobd", "/etc/hobnob/hobnob.yaml"])
        self.assertGreater(int(service["TimeoutStopSec"]), 6 + 5)  # LEAVE_MAX_MS of server.c, STOP_MAX_MS of storing.c
        self.assertEqual(f"/var/lib/{service['StateDirectory']}", re.search(r"data_dir: (\S+)", block("yaml"))[1])
