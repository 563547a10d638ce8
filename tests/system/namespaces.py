"""Network namespaces: rooms of their own for daemons and clients. Needs root, or CAP_SYS_ADMIN and CAP_NET_ADMIN."""
import contextlib
import ctypes
import os
import subprocess

END_S = 90.0  # for a process that waits for nothing but its end


class Namespace:
    """A network namespace that lives as long as a process that waits for the end of its input: when the test dies, it is gone too.
    With files, a dict of paths and what shall be seen there by who runs in it ({"/etc/hosts": path}), it has its own mounts too."""

    def __init__(self, files=None):
        self.kinds = ["-n", "-m"] if files else ["-n"]
        self.process = subprocess.Popen(["unshare", *self.kinds, "sh", "-c", "echo made; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"made\n":
            raise OSError("unshare -n: no network namespace to be had")
        self.pid = self.process.pid
        self.run("ip", "link", "set", "lo", "up")
        for there, path in (files or {}).items():
            self.run("mount", "--bind", str(path), there)

    def add_bridge(self):
        """For the cables of others; it is called bridge."""
        self.run("ip", "link", "add", "bridge", "type", "bridge")
        self.run("ip", "link", "set", "bridge", "up")

    def run(self, *command):
        subprocess.run(["nsenter", "-t", str(self.pid), *self.kinds, *command], check=True, stdin=subprocess.DEVNULL)

    def close(self):
        self.process.stdin.close()
        self.process.wait(END_S)
        self.process.stdout.close()


def in_namespace(namespace, command):
    """The command, as it runs in the namespace (None: here). What it starts has the process id of the command itself."""
    return (["nsenter", "-t", str(namespace.pid), *namespace.kinds] if namespace else []) + command


@contextlib.contextmanager
def inside(namespace):
    """Sockets that this thread makes in the block belong to the namespace, and stay there afterwards."""
    if namespace is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/proc/{namespace.pid}/ns/net") as there:
        if libc.setns(there.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            if libc.setns(home.fileno(), 0x40000000):
                raise OSError(ctypes.get_errno(), "setns back")
