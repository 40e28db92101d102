#!/usr/bin/python3
"""The line of a Python worker against a controller made of a socket."""
import os
import socket
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
from mayfly import frames, secure
from mayfly.line import FOREVER, Line

HANG_S = 60
WELCOME = {"message": "welcome", "worker": 2, "job": "name: x\n", "job_file": "/j.yaml", "directory": "/c", "heartbeat_s": 0.05,
           "lease_s": 2, "orphan_s": 30, "run": "test-1", "seed": 1, "sum": False, "network": ""}


class Controller:
    """One connection at a time."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(HANG_S)
        self.address = self.listener.getsockname()
        self.sock = None

    def accept(self, **terms):
        """Lets somebody in; their hello."""
        self.cut()
        self.sock, _ = self.listener.accept()
        self.sock.settimeout(HANG_S)
        secure.receive_guest(self.sock, b"secret")
        self.reader, self.heard = frames.FrameReader(), []
        hello = self.hear()
        self.say(dict(WELCOME, **terms))
        return hello

    def say(self, message):
        self.sock.sendall(frames.encoded(message))

    def hear(self, skip=("alive",)):
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if message["message"] == "alive":
                    self.say({"message": "alive"})
                if message["message"] not in skip:
                    return message
            data = self.sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the worker hung up")
            self.heard += self.reader.feed(data)

    def cut(self):
        if self.sock:
            self.sock.close()


class Lines(unittest.TestCase):
    def setUp(self):
        self.controller = Controller()
        self.ended = []
        self.line = None

    def tearDown(self):
        if self.line:
            self.line.close()
        if self.controller.sock:
            self.controller.sock.close()
        self.controller.listener.close()

    def open(self, **more):
        self.line = Line(self.controller.address, "secret", 5, 30, self.ended.append, **more)
        return self.line

    def mail(self):
        return self.line.mail.get(timeout=HANG_S)

    def test_a_newcomer_says_hello_and_beats(self):
        self.open()
        self.assertEqual(self.controller.accept(), {"message": "hello", "protocol": 8, "pid": os.getpid(), "role": "worker",
                                                    "slot": 5, "machine": os.environ.get("MAYFLY_MACHINE", "")})
        self.assertEqual(self.mail()[1]["worker"], 2)
        for _ in range(3):
            self.assertEqual(self.controller.hear(skip=()), {"message": "alive"})

    def test_a_line_that_breaks_is_mended_and_what_was_not_answered_is_said_again(self):
        self.open()
        self.controller.accept()
        self.mail()
        self.line.holds(192)
        done = {"formation": 1, "first_sample": 192, "samples": 64, "loss": 0.5, "compute_s": 1.0, "exchange_s": 0.0}
        self.line.say("step-done", **done)
        self.assertEqual(self.controller.hear()["message"], "step-done")
        self.controller.cut()
        hello = self.controller.accept()
        self.assertEqual((hello["worker"], hello["sample"], hello["pending"], hello["formation"]), (2, 192, 256, 1))
        self.assertEqual(self.controller.hear(), dict(done, message="step-done"))
        self.assertTrue(self.line.mail.empty())
        # What has been answered is not.
        self.controller.say({"message": "proceed", "formation": 1, "committed": 256, "step": 4, "counts": [],
                             "evaluate": False, "compare": False})
        self.assertEqual(self.mail()[1]["committed"], 256)
        self.controller.cut()
        self.controller.accept()
        self.line.say("formed", formation=9)
        self.assertEqual(self.controller.hear(), {"message": "formed", "formation": 9})

    def test_who_is_refused_comes_again_as_a_newcomer(self):
        self.open()
        self.controller.accept()
        self.mail()
        self.controller.cut()
        self.assertEqual(self.controller.accept(**{})["worker"], 2)
        self.controller.cut()
        self.controller.sock, _ = self.controller.listener.accept()
        secure.receive_guest(self.controller.sock, b"secret")
        self.controller.reader, self.controller.heard = frames.FrameReader(), []
        self.controller.hear()
        self.controller.say({"message": "refused", "why": "its lease has ended"})
        self.assertEqual(self.mail(), ("dropped", None))
        self.controller.cut()
        self.assertNotIn("worker", self.controller.accept(worker=3))
        self.assertEqual(self.mail()[1]["worker"], 3)
        self.assertIn(FOREVER, self.ended)

    def test_who_hears_nothing_for_too_long_is_an_orphan(self):
        self.open()
        self.controller.accept(orphan_s=0.2)
        self.mail()
        self.assertEqual(self.mail(), ("orphaned", None))  # connected all the time

    def test_who_is_not_let_in_is_told_why(self):
        self.open(patience_s=0.5)
        self.controller.sock, _ = self.controller.listener.accept()
        self.controller.sock.sendall(b"x" * 64)
        kind, why = self.mail()
        self.assertEqual(kind, "rejected")
        self.assertIn(":%d: " % self.controller.address[1], why)

    def test_a_notice_is_said_once_and_again_after_the_line_is_mended(self):
        self.open()
        self.controller.accept()
        self.mail()
        self.assertIsNone(self.line.left_s())
        self.line.notice()
        self.assertEqual(self.controller.hear(), {"message": "leaving", "left_s": 30})
        self.assertLessEqual(self.line.left_s(), 30)
        self.controller.cut()
        self.controller.accept()
        self.assertLessEqual(self.controller.hear()["left_s"], 30)

    def test_a_nearer_end_is_said_too(self):
        self.open()
        self.controller.accept()
        self.mail()
        self.line.notice(120)
        self.assertEqual(self.controller.hear()["left_s"], 120)
        self.line.notice(10)
        self.assertEqual(self.controller.hear()["left_s"], 10)
        self.line.notice(500)
        self.line.say("formed", formation=1)
        self.assertEqual(self.controller.hear()["message"], "formed")

    def test_a_word_of_where_notices_come_from_is_passed_on(self):
        watched = []
        self.open(watch=watched.append)
        self.controller.accept()
        self.controller.say({"message": "watch", "cloud": "aws", "endpoint": "http://127.0.0.1:1"})
        self.controller.say({"message": "halt", "formation": 7})
        self.mail()
        self.assertEqual(self.mail()[1]["formation"], 7)
        self.assertEqual(watched[0]["cloud"], "aws")
        self.assertEqual(self.ended, [7])

    def test_noise_ends_the_connection_and_the_line_comes_back(self):
        self.open()
        self.controller.accept()
        self.mail()
        self.controller.sock.sendall(b"\xff" * 100)
        self.assertEqual(self.controller.accept()["worker"], 2)


if __name__ == "__main__":
    unittest.main()
