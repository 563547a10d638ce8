#!/usr/bin/python3
"""Subscribes at one broker and publishes at another: hello.py SUBSCRIBE_PORT PUBLISH_PORT

With the brokers of tools/try: hello.py 1885 1883. Needs Debian's python3-paho-mqtt.
"""
import queue
import sys

import paho.mqtt.client as mqtt


def connect(port):
    client = mqtt.Client(protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", port)
    client.loop_start()
    return client


def main():
    there, here = (int(port) for port in sys.argv[1:3])
    arrived, subscribed = queue.Queue(), queue.Queue()
    subscriber = connect(there)
    subscriber.on_message = lambda client, userdata, message: arrived.put(message)
    subscriber.on_subscribe = lambda *arguments: subscribed.put(True)
    subscriber.subscribe("hello/+", qos=1)
    subscribed.get(timeout=10)  # from here on, what any broker of the federation accepts is delivered

    publisher = connect(here)
    publisher.publish("hello/python", "Hello from Python", qos=1)
    message = arrived.get(timeout=10)
    print(f"{message.topic}: {message.payload.decode()}")
    for client in (subscriber, publisher):
        client.disconnect()
        client.loop_stop()


if __name__ == "__main__":
    main()
