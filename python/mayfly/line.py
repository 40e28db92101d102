"""A worker's line to its controller, with a thread of its own: heartbeats go out whatever the training does. A line that
breaks is mended, and what the controller may have missed is said again. The same rules as src/train/line.cpp."""
import collections
import faulthandler
import os
import queue
import select
import socket
import ssl
import sys
import threading
import time

from . import secure
from .frames import FrameReader, ProtocolError, encoded

RETRY_S = 0.2
CONNECT_S = 1.0
FAREWELL_S = 2.0
FOREVER = 1 << 62
_REPEATED = ("ready", "reachable", "formed", "step-done", "pushed", "broken")
_ANSWERS = ("form", "peers", "proceed", "attach", "lease", "halt")


def log(text):
    print("%s worker[%d]: %s" % (time.strftime("%H:%M:%S"), os.getpid(), text), file=sys.stderr, flush=True)


class Line:
    """Mail is (kind, value): ("message", dict), ("dropped", None): the controller no longer knows this worker, a welcome
    as newcomer follows; ("orphaned", None): no word for as long as the job allows; ("rejected", why). Whoever else has
    something for the worker's thread puts it there too."""

    def __init__(self, address, token, slot, notice_s, ended, watch=None, patience_s=10.0):
        self._address, self._token, self._slot = address, token, slot
        self._notice_s, self._patience_s = notice_s, patience_s
        self._ended = ended  # in the line's thread: no formation up to and including this will be heard of again
        self._watch = watch  # in the line's thread: the controller says where notices come from
        self.mail = queue.SimpleQueue()
        self._calls = collections.deque()  # appending is all that other threads and signal handlers do
        self._wake_end, self._wake = socket.socketpair()
        self._wake_end.setblocking(False)
        self._wake.setblocking(False)
        self._sock = None
        self._reader = FrameReader()
        self._attached = False
        self._closing = False
        self._terms = None
        self._sample = None
        self._doing = None
        self._last_word = time.monotonic()
        self._next_tick = 0.0
        self._next_attempt = 0.0
        self._unanswered = None
        self._checkpoint = None
        self._unheard = 0
        self._leaves = None  # when; monotonic
        self._gave_up = False
        self._thread = threading.Thread(target=self._run, name="mayfly-line", daemon=True)
        self._thread.start()

    # From any thread.

    def say(self, message, **fields):
        self._call(self._say, dict({"message": message}, **fields))

    def holds(self, sample):
        """The weights hold this many samples; None: nothing that counts."""
        self._sample = sample

    def doing(self, what):
        """Where in a step the training is, for heartbeats: "data", "compute", "exchange"; None: in none."""
        self._doing = what

    def notice(self, left_s=None):
        """This machine will be taken away. From a signal handler too."""
        self._call(self._notice, left_s)

    def left_s(self):
        """Seconds until this machine is taken away; None: no notice."""
        leaves = self._leaves
        return None if leaves is None else max(0.0, leaves - time.monotonic())

    def close(self):
        """Says what is still to be said."""
        self._call(self._close)
        self._thread.join(FAREWELL_S)

    def _call(self, function, *arguments):
        self._calls.append((function, arguments))
        try:
            self._wake.send(b"\0")
        except OSError:
            pass  # full: it is awake

    # In the line's thread.

    def _run(self):
        while not self._closing:
            while self._calls:
                function, arguments = self._calls.popleft()
                function(*arguments)
            if self._closing:
                break
            now = time.monotonic()
            if self._sock is None and not self._gave_up and now >= self._next_attempt:
                self._attempt()
            if self._sock is not None and now >= self._next_tick:
                self._tick()
            self._listen()
        self._wake.close()
        self._wake_end.close()

    def _listen(self):
        pending = isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0
        next_s = self._next_tick if self._sock is not None else self._next_attempt
        wait_s = 0 if pending or self._calls else min(1.0, max(0.0, next_s - time.monotonic()))
        sources = [self._wake_end] + ([self._sock] if self._sock is not None else [])
        ready = select.select(sources, [], [], wait_s)[0]
        if self._wake_end in ready:
            try:
                self._wake_end.recv(4096)
            except OSError:
                pass
        if self._sock is not None and (pending or self._sock in ready):
            self._receive()

    def _receive(self):
        sock = self._sock
        try:
            sock.setblocking(False)
            data = sock.recv(1 << 16)
            if not data:
                raise ConnectionError("the connection was closed")
            messages = self._reader.feed(data)
        except (ssl.SSLWantReadError, BlockingIOError):
            return
        except (OSError, ProtocolError) as error:
            return self._lost(str(error))
        for message in messages:
            if self._sock is not sock:
                return
            self._hear(message)

    def _attempt(self):
        self._next_attempt = time.monotonic() + RETRY_S
        hello = {"message": "hello", "protocol": secure.PROTOCOL, "pid": os.getpid(), "role": "worker",
                 "slot": self._slot}
        if self._slot >= 0:
            hello["machine"] = os.environ.get("MAYFLY_MACHINE", "")
        if self._terms:
            hello["worker"] = self._terms["worker"]
            if self._sample is not None:
                hello["sample"] = self._sample
            done = self._unanswered
            if done and done["message"] == "step-done" and done["samples"] > 0:
                hello["pending"] = done["first_sample"] + done["samples"]
                hello["formation"] = done["formation"]
        try:
            self._sock = secure.connected(self._address, self._token, CONNECT_S)
        except OSError as error:
            return self._lost(str(error))
        self._reader = FrameReader()
        self._send(hello)
        self._next_tick = time.monotonic() + RETRY_S

    def _send(self, message):
        if self._sock is None:
            return
        try:
            self._sock.settimeout(5)
            self._sock.sendall(encoded(message))
        except OSError as error:
            self._lost(str(error))

    def _lost(self, why):
        self._hang_up()
        if self._attached:
            log("line to the controller lost (%s); mending it" % why)
        self._attached = False
        if self._too_silent():
            self._give_up(why)

    def _hang_up(self):
        if self._sock is not None:
            self._sock.close()
        self._sock = None

    def _hear(self, message):
        self._last_word = time.monotonic()
        kind = message["message"]
        if kind == "welcome":
            return self._welcome(message)
        if kind == "refused":
            return self._refuse(message.get("why", ""))
        if kind == "alive":
            if self._checkpoint and self._unheard > 0:
                self._checkpoint = None
            return
        if kind == "explain":
            log("does not get on; the stacks of its threads:")
            faulthandler.dump_traceback(file=sys.__stderr__, all_threads=True)
            return
        if kind == "watch":
            if self._watch:
                self._watch(message)
            return
        if kind in _ANSWERS:
            self._unanswered = None
        if kind in ("form", "attach"):
            self._ended(message["formation"] - 1)
        elif kind == "halt":
            self._ended(message["formation"])
        elif kind == "leave":
            self._ended(FOREVER)
        self.mail.put(("message", message))

    def _welcome(self, message):
        again = self._terms is not None and self._terms["worker"] == message["worker"]
        if self._terms is not None and not again:
            self.mail.put(("dropped", None))
        self._attached = True
        self._terms = message
        self._tick()
        if self._leaves is not None:
            self._send({"message": "leaving", "left_s": self.left_s()})
        if not again:
            self._unanswered = self._checkpoint = None
            self.mail.put(("message", message))
            return
        log("attached again as worker %d" % message["worker"])
        self._unheard = 0
        for kept in (self._checkpoint, self._unanswered):
            if kept:
                self._send(kept)

    def _refuse(self, why):
        self._hang_up()
        self._attached = False
        if self._terms is None:
            self._gave_up = True
            self.mail.put(("rejected", "%s:%d: refused: %s" % (self._address + (why,))))
            return
        log("refused (%s); starting again as a newcomer" % why)
        self._terms = self._unanswered = self._checkpoint = None
        self._ended(FOREVER)
        self.mail.put(("dropped", None))
        self._next_attempt = 0.0

    def _tick(self):
        """Beats, and watches for silence: a frozen controller's system still accepts connections."""
        self._next_tick = time.monotonic() + (self._terms["heartbeat_s"] if self._attached else RETRY_S)
        if self._too_silent():
            return self._give_up("connected, but no answer")
        if self._attached:
            self._unheard += 1
            doing = self._doing
            self._send({"message": "alive", "doing": doing} if doing else {"message": "alive"})

    def _too_silent(self):
        return time.monotonic() - self._last_word > (self._terms["orphan_s"] if self._terms else self._patience_s)

    def _give_up(self, why):
        if self._gave_up:
            return
        self._gave_up = True
        self._hang_up()
        if self._terms is None:
            self.mail.put(("rejected", "%s:%d: %s" % (self._address + (why,))))
            return
        self._ended(FOREVER)
        self.mail.put(("orphaned", None))

    def _say(self, message):
        kind = message["message"]
        if kind in _REPEATED:
            self._unanswered = message
        if kind == "checkpoint-written":
            self._checkpoint, self._unheard = message, 0
        # What was said before the line broke is said again when it is mended; the rest is of no use by then.
        if self._attached or kind == "unable":
            self._send(message)

    def _notice(self, left_s):
        left_s = self._notice_s if left_s is None else left_s
        leaves = time.monotonic() + left_s
        if self._leaves is not None and leaves >= self._leaves - 1:
            return
        self._leaves = leaves
        log("notice: leaving in %.0f s at the latest" % left_s)
        if self._attached:
            self._send({"message": "leaving", "left_s": left_s})

    def _close(self):
        self._closing = True
        sock = self._sock
        if sock is not None:
            try:
                # With words unread the system would throw away those that are on their way.
                socket.socket.shutdown(sock, socket.SHUT_WR)
                sock.settimeout(FAREWELL_S / 4)
                while sock.recv(1 << 16):
                    pass
            except OSError:
                pass
        self._hang_up()
