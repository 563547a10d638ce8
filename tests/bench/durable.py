"""Part durable of run.py: what keeping costs, by storage.sync."""
import re

from brokers import Ours, Theirs, median, number, table

LOADS = (("1 to 1", ()), ("10 pairs", ("--topics", 10)))


def persistent(folder):
    """Mosquitto writes its whole state anew each autosave_interval (30 minutes), and never waits for the disk: what it acknowledges is lost with a crash."""
    broker = Theirs(folder, "max_queued_messages 0\nmax_inflight_messages 100\n")
    path = folder / "mosquitto.conf"
    path.write_text(re.sub("^persistence false$", f"persistence true\npersistence_location {folder}/", path.read_text(), flags=re.MULTILINE) + "user root\n")
    return broker


def once(broker, options, qos, load):
    before = broker.metrics() if isinstance(broker, Ours) else {}
    cpu_s = broker.cpu_s()
    result = broker.bench("--mqtt", 5, "--durable", "--qos", qos, "--seconds", options.seconds, *load)
    cpu_s = broker.cpu_s() - cpu_s
    found = {"per_s": result["delivered_per_s"], "cpu_us": cpu_s / result["arrived"] * 1e6, "lost": result["lost"]}
    if before:
        after = broker.metrics()
        commits, took_s = (after[name] - before[name] for name in ("hobnob_store_commits_total", "hobnob_store_commit_seconds_sum"))
        found.update(per_commit=result["arrived"] / max(commits, 1), commits_per_s=commits / (options.seconds + 0.5), commit_ms=took_s / max(commits, 1) * 1e3)
    return found


def durable(options, folder):
    rows = []
    kinds = [(f"hobnobd, {sync}", Ours(folder / sync, f"storage: {{sync: {sync}}}\n")) for sync in ("full", "normal", "off")]
    for name, broker in [*kinds, ("mosquitto", persistent(folder / "theirs"))]:
        broker.start()
        for title, load in LOADS:
            for qos in (1, 2):
                found = [once(broker, options, qos, load) for _ in range(options.rounds)]
                row = {key: median(result[key] for result in found) for key in found[0]}
                rows.append((f"{name}: {title}, QoS {qos}", number(row["per_s"]), f"{row['cpu_us']:.1f}", number(row["lost"]),
                             *((f"{row[key]:,.1f}") if key in row else "" for key in ("per_commit", "commits_per_s", "commit_ms"))))
        broker.stop()
    print("\nSubscribers with sessions that outlive their connection, 64 B, 100 in flight: publications a second, microseconds of the broker's CPU for each, how\n"
          "many of them a commit holds, commits a second and milliseconds of each. full waits for an fsync in each commit, normal for the system alone, off for\n"
          "nothing, and commits each second. mosquitto keeps all in memory, and writes it out each half hour: no crash leaves what it acknowledged.")
    table(("", "per s", "us", "lost", "per commit", "commits/s", "ms"), rows)
