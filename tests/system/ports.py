"""Free ports for the daemons of a test."""
import random
import socket


class Ports:
    """Ports of a block that no other run of tests on this host uses: a lock that ends with the process, however it ends. The blocks are
    below the range that the kernel hands out by itself, so that no outgoing connection takes one in the meantime."""

    FIRST, SIZE, BLOCKS = 20000, 200, 60

    def __init__(self):
        for block in random.sample(range(self.BLOCKS), self.BLOCKS):
            self.lock = socket.socket(socket.AF_UNIX)
            try:
                self.lock.bind(f"\0hobnob-test-ports-{block}")
            except OSError:
                self.lock.close()
                continue
            self.block = range(self.FIRST + block * self.SIZE, self.FIRST + (block + 1) * self.SIZE)
            self.next = self.block.start
            return
        raise AssertionError(f"{self.BLOCKS} runs of tests have taken all blocks of ports")

    def take(self, count):
        """The first of so many in a row. One comes back only after all the others: a broker that is down for a while keeps its own."""
        for _ in range(2 * self.SIZE):
            base = self.next if self.next + count <= self.block.stop else self.block.start
            self.next = base + 1
            if all(self._is_free(port) for port in range(base, base + count)):
                self.next = base + count
                return base
        raise AssertionError(f"no {count} free ports in a row in {self.block}")

    @staticmethod
    def _is_free(port):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as s:
                if kind == socket.SOCK_STREAM:  # as a daemon does: connections that have ended keep no listener from it
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    s.bind(("0.0.0.0", port))
                except OSError:
                    return False
        return True


_ports = None


def free_ports(count, bases=1):
    """Base ports such that base, base + 1, ... base + count - 1 are free for TCP and UDP."""
    global _ports
    _ports = _ports or Ports()
    return [_ports.take(count) for _ in range(bases)]
