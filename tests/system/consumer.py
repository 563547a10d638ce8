"""consumer.py PORT FILTER: a paho client in a process of its own, to be killed: prints each payload at QoS 1 before it acknowledges it.
(mosquitto_sub acknowledges first, so that one who is killed may have taken a message that it never showed.)"""
import sys

import paho.mqtt.client as paho


def on_message(client, userdata, message):
    print(message.payload.decode(), flush=True)


client = paho.Client(protocol=paho.MQTTv5)
client.on_message = on_message
client.on_connect = lambda c, *rest: c.subscribe(sys.argv[2], qos=1)
client.on_subscribe = lambda *rest: print("subscribed", flush=True)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
