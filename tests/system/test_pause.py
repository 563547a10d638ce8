"""A broker that stood still (SIGSTOP, as a frozen virtual machine or a machine without processor time) blames nobody for it (G10, P24)."""
import os
import signal
import time

from clients import MosquittoSub, Paho
from harness import PATIENT_SUBACK, Stopwatch, SystemTest, wait_until


class Pause(SystemTest):
    def test_a_suback_names_who_stands_still(self):
        fed = self.federation(limits={"subscribe_barrier_ms": 2000, "suspicion_min_ms": 20_000}).start()
        one, stopped = fed["edge-1"], fed["edge-2"]
        client, quiet = self.closing(Paho(one)), self.closing(Paho(one, connect_properties={"RequestProblemInformation": 0}))
        client.subscribe("pause/before")
        self.assertEqual(client.suback_properties, {})
        os.kill(stopped.process.pid, signal.SIGSTOP)
        try:
            client.subscribe("pause/while")
            self.assertEqual(client.suback_properties, {"ReasonString": "not every other broker has answered yet", "UserProperty": [("unconfirmed", "edge-2")]})
            quiet.subscribe("pause/quiet")
            self.assertEqual(quiet.suback_properties, {})
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)
        self.assertEqual(one.links()["edge-2"]["subacks_unconfirmed"], 2)
        self.assertEqual(len(one.log_lines("broker", "not confirmed within 2000 ms by edge-2")), 1)
        fed.wait_alive()
        client.subscribe("pause/after")
        self.assertEqual(client.suback_properties, {})

    def test_ten_seconds_without_a_turn_and_back(self):
        fed = self.federation(limits=PATIENT_SUBACK).start()
        stopped, others = fed["edge-2"], [fed["edge-1"], fed["edge-3"]]
        receiver = self.closing(MosquittoSub(fed["edge-1"], "pause/#", qos=1))
        speaker = self.closing(Paho(stopped))
        speaker.publish("pause/before", b"before", 1)
        receiver.wait_payload(b"before")
        before = len(stopped.log_lines("member", "is down")) + len(stopped.log_lines("member", "suspected"))
        os.kill(stopped.process.pid, signal.SIGSTOP)
        end = time.monotonic() + 10
        try:
            wait_until("the others hold it dead", lambda: all(broker.members()["edge-2"] == "down" for broker in others))
            time.sleep(max(0, end - time.monotonic()))
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)
        watch = Stopwatch()
        fed.wait_alive(timeout_s=3, watch=watch)
        speaker.publish("pause/after", b"after", 1, wait=False)
        receiver.wait_payload(b"after", 5)
        accusations = stopped.log_lines("member", "is down") + stopped.log_lines("member", "suspected")
        self.assertEqual(len(accusations), before, accusations)
        for broker in others:
            other = next(b.name for b in others if b is not broker)
            self.assertEqual([line for line in broker.log_lines("member", "is down") if f'"{other} ' in line], [])
        wait_until("one table", lambda: len({broker.api("status")["table_hash"] for broker in fed}) == 1)
