"""Every way in, used by somebody who means harm: what a stranger may cost, and that those beside him are served as before."""
import os
import select
import signal
import socket
import subprocess

from clients import raw_connect
from harness import wait_until
from test_listeners import ACCEPTED, ListenerTest

PINGREQ, PINGRESP = b"\xc0\0", (0xd0, b"")


def greeting(*options):
    """The first record that openssl s_client sends with these options."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = subprocess.Popen(["openssl", "s_client", "-connect", f"127.0.0.1:{server.getsockname()[1]}", *options], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        connection, _ = server.accept()
        with connection:
            bytes_ = b""
            while len(bytes_) < 5 or len(bytes_) < 5 + int.from_bytes(bytes_[3:5], "big"):
                bytes_ += connection.recv(65536)
        client.wait(10)
        return bytes_


def answered(sockets):
    """How many of them have something to read."""
    poll = select.poll()
    for one in sockets:
        poll.register(one, select.POLLIN)
    return len(poll.poll(0))


class Handshakes(ListenerTest):
    COSTLY = ["ffdhe2048", "ffdhe8192", "P-521", "X448"]

    def first_record(self, port, first):
        """The type of the first record that answers, 22 for a handshake and 21 for an alert."""
        with socket.create_connection(("127.0.0.1", port), 10) as raw:
            raw.sendall(first)
            return raw.recv(1)[0]

    def test_who_asks_for_costly_arithmetic_gets_none(self):
        site = self.secure()
        for group in self.COSTLY:
            self.assertEqual(self.first_record(site.ports["a"], greeting("-tls1_3", "-groups", group)), 21, group)
        self.assertEqual(self.first_record(site.ports["a"], greeting("-tls1_2", "-groups", "P-521")), 21)
        wait_until("the log says why", lambda: site.log_lines("client_refused", "none of the groups X25519, P-256 and P-384: let it offer one"))
        for group in ("X25519", "P-256", "P-384"):
            self.assertEqual(self.first_record(site.ports["b"], greeting("-tls1_3", "-groups", group)), 22, group)

    def test_nor_does_another_broker(self):
        federation = self.federation(["one"])
        federation.start()
        port = federation["one"].port("peers")
        for group in self.COSTLY + ["P-384"]:
            self.assertEqual(self.first_record(port, greeting("-tls1_3", "-groups", group)), 21, group)
        for group in ("X25519", "P-256"):
            self.assertEqual(self.first_record(port, greeting("-tls1_3", "-groups", group)), 22, group)

    def test_a_crowd_of_them_is_served_beside_the_others(self):
        site = self.secure(listen="mqtt: 127.0.0.1:{a}\nmqtts: 127.0.0.1:{b}")
        healthy = self.raw(site.ports["a"], raw_connect("healthy"))
        self.assertEqual(healthy.packet(), ACCEPTED)
        crowd = [self.raw(site.ports["b"]).socket for _ in range(600)]
        wait_until("all are in", lambda: site.metric("hobnob_client_connections_arriving") == 600)
        first = greeting("-tls1_3")
        os.setpriority(os.PRIO_PROCESS, site.process.pid, 19)  # so that this test is quicker to count than the broker to answer
        os.kill(site.process.pid, signal.SIGSTOP)  # so that it finds all of it at once
        for one in crowd:
            one.sendall(first)
        healthy.send(PINGREQ)
        os.kill(site.process.pid, signal.SIGCONT)
        self.assertEqual(healthy.packet(), PINGRESP)
        self.assertLess(answered(crowd), 300)
        self.assertEqual(self.tls(site, "b").send(raw_connect("late")).packet(), ACCEPTED)
        wait_until("all are answered", lambda: answered(crowd) == 600)

    def test_who_hangs_up_while_it_waits_costs_nothing(self):
        site = self.secure(listen="mqtts: 127.0.0.1:{a}")
        first = greeting("-tls1_3")
        os.kill(site.process.pid, signal.SIGSTOP)
        for _ in range(500):
            with socket.create_connection(("127.0.0.1", site.ports["a"]), 10) as one:
                one.sendall(first)
        os.kill(site.process.pid, signal.SIGCONT)
        self.assertEqual(self.tls(site).send(raw_connect("late")).packet(), ACCEPTED)
        wait_until("all are gone", lambda: site.metric("hobnob_client_connections_arriving") == 0)
