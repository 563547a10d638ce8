"""Brokers in network namespaces of their own, with cables to a bridge. Needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN)."""
from harness import THREE, SystemTest
from namespaces import Namespace


class LanTest(SystemTest):
    def lan(self, names=THREE, files=None, **options):
        """A federation in rooms with these files (see Namespace); no cable is connected yet."""
        try:
            self.hub = Namespace()
        except OSError as error:
            self.skipTest(str(error))
        self.addCleanup(self.hub.close)
        self.hub.add_bridge()
        fed = self.federation(names, hosts={name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}, **options)
        for broker in fed:
            broker.edit("anonymous: false", "anonymous: true")
            broker.namespace = Namespace(files)
            self.addCleanup(broker.namespace.close)
        return fed

    def plug(self, broker, address, cable="eth0"):
        port = f"{broker.name}-{cable}"
        self.hub.run("ip", "link", "add", port, "type", "veth", "peer", "name", cable, "netns", str(broker.namespace.pid))
        self.hub.run("ip", "link", "set", port, "master", "bridge", "up")
        broker.namespace.run("ip", "address", "add", address, "dev", cable, *(["nodad"] if ":" in address else []))
        broker.namespace.run("ip", "link", "set", cable, "up")

    def plug_all(self, fed):
        for number, broker in enumerate(fed, 1):
            self.plug(broker, f"10.77.0.{number}/24")

    def cable(self, name, state):
        """Pulls the cable of a broker ("down") and puts it back ("up")."""
        self.hub.run("ip", "link", "set", f"{name}-eth0", state)
