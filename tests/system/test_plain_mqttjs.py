"""What MQTT.js expects of a broker (mqttjs_cases.js), over TCP and WebSocket, in both versions."""
import json
import os
import shutil
import subprocess
from pathlib import Path

from harness import PATIENCE_S
from plain import AGAINST_MOSQUITTO, PlainMqtt


# What its manual says to write: MQTT.js 4.3 then asks for aliases, and ends with an exception at the first (its pull request 1519).
BY_THE_MANUAL = """
const client = require('mqtt').connect(process.argv[1], { protocolVersion: 5, properties: { topicAliasMaximum: 10 } })
const topic = process.argv[2]
client.on('connect', () => client.subscribe(topic, () => { for (const n of [1, 2, 3]) client.publish(topic, `${n}`, { qos: 1 }) }))
client.on('message', (_, payload) => { console.log(payload.toString()); if (payload.toString() === '3') client.end() })
"""


class MqttJsAsItComes(PlainMqtt):
    def test_it_may_ask_for_aliases(self):
        done = subprocess.run([shutil.which("node"), "-e", BY_THE_MANUAL, f"mqtt://{self.broker.host}:{self.broker.mqtt_port}", self.topic("a/long/one")],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, env=dict(os.environ, NODE_PATH="/usr/share/nodejs"))
        self.assertEqual((done.returncode, done.stdout.split()), (0, ["1", "2", "3"]), done.stderr)


class MqttJsCases(PlainMqtt):
    settings = "limits: {topic_alias_out_max: 32}\n"

    def play(self, url, version, at_least):
        done = subprocess.run([shutil.which("node"), str(Path(__file__).with_name("mqttjs_cases.js")), url, str(version),
                               str(int(AGAINST_MOSQUITTO and url.startswith("ws"))), str(int(not AGAINST_MOSQUITTO))],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, env=dict(os.environ, NODE_PATH="/usr/share/nodejs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertGreaterEqual(len(results), at_least, done.stderr)
        for result in results:
            with self.subTest(result["case"]):
                self.assertIsNone(result["error"], result["error"])

    def test_311_over_tcp(self):
        self.play(f"mqtt://{self.broker.host}:{self.broker.mqtt_port}", 4, 20)

    def test_311_over_websocket(self):
        self.play(f"ws://{self.broker.host}:{self.broker.ws_port}/mqtt", 4, 20)

    def test_5_over_tcp(self):
        self.play(f"mqtt://{self.broker.host}:{self.broker.mqtt_port}", 5, 35)

    def test_5_over_websocket(self):
        self.play(f"ws://{self.broker.host}:{self.broker.ws_port}/mqtt", 5, 35)


del PlainMqtt  # only its classes are tests
