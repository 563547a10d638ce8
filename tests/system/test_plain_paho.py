"""What users of paho do that the other tests of plain MQTT do not: bursts, long lists, reason codes, reconnecting in the midst of QoS 2."""
from clients import V311, V5, Raw, packet, properties, raw_connect, raw_publish, text
from harness import wait_until
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCodes
from plain import PlainMqtt, both


class PahoClients(PlainMqtt):
    @both
    def test_a_burst_arrives_in_order(self, version):
        subscriber = self.paho(version=version)
        subscriber.subscribe(self.topic(self.kind + "/+"), qos=2)
        publisher = self.paho(version=version)
        for qos in (1, 2):
            for number in range(400):
                publisher.publish(self.topic(f"{self.kind}/{qos}"), b"%d" % number, qos, wait=False)
        subscriber.wait_count(800, 30)
        for qos in (1, 2):
            self.assertEqual([int(p) for p in subscriber.payloads(self.topic(f"{self.kind}/{qos}"))], list(range(400)))

    @both
    def test_many_filters_in_one_packet(self, version):
        client = self.paho(version=version)
        filters = [self.topic(f"{self.kind}/{n}/{'+' if n % 2 else '#'}") for n in range(200)]
        self.assertEqual(client.subscribe(*filters, qos=1), [1] * 200)
        for n in (0, 1, 198, 199):
            client.publish(self.topic(f"{self.kind}/{n}/x"), b"%d" % n, 1)
            client.wait_payload(b"%d" % n)
        client.unsubscribe(*filters)
        client.publish(self.topic(f"{self.kind}/0/x"), b"late", 1)
        client.subscribe(self.topic("fence"), qos=1)
        self.fence(client, client, self.topic("fence"))
        self.assertNotIn(b"late", client.payloads())

    @both
    def test_names_and_passwords_are_taken_by_a_broker_open_to_all(self, version):
        client = self.paho("named" + self.kind, version=version, connect=False)
        client.client.username_pw_set("somebody", "some secret")
        client.connect()
        client.publish(self.topic(), b"x", 1)

    @both
    def test_a_connection_lost_in_the_midst_of_qos_2_repeats_nothing(self, version):
        """The client has sent PUBLISH and lost its connection before PUBREC, or before PUBCOMP: it says all again."""
        level = 5 if version == V5 else 4
        watcher = self.paho(version=version)
        watcher.subscribe(self.topic(self.kind), qos=2)
        blank = b"\0" if level == 5 else b""
        connect = raw_connect("midst" + self.kind, clean=False, version=level)
        if level == 5:  # with a session expiry
            connect = packet(0x10, text("MQTT") + b"\5\0\0\x3c\5\x11\0\0\0\x3c" + text("midst" + self.kind))
        publish = packet(0x34, text(self.topic(self.kind)) + b"\0\7" + blank + b"once")
        again = packet(0x3C, text(self.topic(self.kind)) + b"\0\7" + blank + b"once")
        for step, data in enumerate((publish, again, again + b"\x62\2\0\7", b"\x62\2\0\7")):
            raw = self.closing(Raw(self.broker))
            raw.send(connect)
            self.assertEqual(raw.packet()[1][:2], bytes([step > 0, 0]))
            raw.send(data)
            raw.packet()
            raw.close()
        raw = self.closing(Raw(self.broker))
        raw.send(connect + publish)  # the id is free again
        self.assertEqual([raw.packet()[0], raw.packet()[0]], [0x20, 0x50])
        raw.send(b"\x62\2\0\7")
        wait_until("a second, new publication", lambda: watcher.payloads().count(b"once") == 2)

    def test_will_with_properties(self):
        watcher = self.paho()
        watcher.subscribe(self.topic(), qos=2)
        client = self.paho("willing", connect=False)
        client.client.will_set(self.topic(), b"\0\xff", 2, False, properties(
            PacketTypes.WILLMESSAGE, PayloadFormatIndicator=0, ContentType="a/b", ResponseTopic="r", CorrelationData=b"\0\1", MessageExpiryInterval=999,
            UserProperty=[("z", "1"), ("a", "2"), ("z", "3")]))
        client.connect().drop()
        message = watcher.wait_payload(b"\0\xff")
        self.assertEqual((message.qos, message.properties.ContentType, message.properties.ResponseTopic, message.properties.CorrelationData),
                         (2, "a/b", "r", b"\0\1"))
        self.assertEqual(message.properties.UserProperty, [("z", "1"), ("a", "2"), ("z", "3")])
        self.assertTrue(900 <= message.properties.MessageExpiryInterval <= 999, message.properties.MessageExpiryInterval)

    def test_unsubscribe_is_answered_for_each_filter(self):
        client = self.paho()
        seen = []
        client.client.on_unsubscribe = lambda c, u, mid, props, codes: seen.append([code.value for code in (codes if isinstance(codes, list) else [codes])])
        client.subscribe(self.topic("a"), self.topic("b"))
        client.client.unsubscribe([self.topic("b"), self.topic("never"), self.topic("a")])
        self.assertEqual(wait_until("UNSUBACK", lambda: seen)[0], [0, 0x11, 0])

    def test_connack_says_what_the_broker_can(self):
        client = self.paho("", connect=False)
        seen = []
        client.client.on_connect = lambda c, u, flags, code, props: (seen.append(props), client._on_connect(c, u, flags, code))
        client.connect()
        told = seen[0]
        self.assertTrue(told.AssignedClientIdentifier)
        self.assertGreater(told.TopicAliasMaximum, 0)
        for name in ("RetainAvailable", "WildcardSubscriptionAvailable", "SubscriptionIdentifierAvailable", "SharedSubscriptionAvailable"):
            self.assertEqual(getattr(told, name, 1), 1, name)
        self.assertFalse(hasattr(told, "MaximumQoS"))

    def test_the_session_ends_with_a_disconnect_that_says_so(self):
        client = self.paho("leaves", clean=False, expiry_s=60)
        client.disconnect(reasoncode=ReasonCodes(PacketTypes.DISCONNECT), properties=properties(PacketTypes.DISCONNECT, SessionExpiryInterval=0))
        self.assertFalse(self.paho("leaves", clean=False, expiry_s=60).session_present)

    def test_a_311_client_and_one_of_5_take_over_from_each_other(self):
        first = self.paho("mixed", version=V311, clean=False)
        first.subscribe(self.topic(), qos=1)
        second = self.paho("mixed", clean=False, expiry_s=60)
        self.assertTrue(second.session_present)
        wait_until("the first is closed", lambda: first.disconnects)
        self.paho().publish(self.topic(), b"to the second", 1)
        second.wait_payload(b"to the second")
        third = self.paho("mixed", version=V311, clean=False)
        self.assertTrue(third.session_present)
        self.paho().publish(self.topic(), b"to the third", 1)
        third.wait_payload(b"to the third")

    def test_a_message_for_the_wire_only_once(self):
        """Retained, live and of overlapping filters: a client gets one copy of what is published."""
        client = self.paho(version=V311)
        for item in (self.topic("#"), self.topic("a/+"), self.topic("a/b")):
            client.subscribe(item, qos=2)
        raw = self.closing(Raw(self.broker))
        raw.send(raw_connect("once") + raw_publish(self.topic("a/b"), b"x", 2, 3, retain=True))
        self.assertEqual([raw.packet()[0], raw.packet()[0]], [0x20, 0x50])
        raw.send(b"\x62\2\0\3")
        self.assertEqual(raw.packet(), (0x70, b"\0\3"))
        client.wait_payload(b"x")
        self.fence(client, client, self.topic("fence"))
        self.assertEqual(client.payloads(), [b"x", b"fence 1"])


del PlainMqtt  # only its classes are tests
