"""Workers that add up their gradients among themselves: a connection between each two of a formation, as src/train/mesh.cpp
makes them. docs/protocol.md#between-workers"""
import collections
import queue
import socket
import threading

from . import reach, secure
from .shards import HELLO, WELCOME, HEADER, header
from .traffic import HANDED, Traffic, add_up

_PATIENCE_S = 60.0  # with a peer that is connected to; the controller is faster
_PROOF_S = 5.0  # for a guest to prove that it is no stranger
_MOST_STRANGERS = 64  # that may do so at a time; the oldest makes room
_WORD = "script "  # before the address: mayfly's own workers hand over another state


def opens(rank, other):
    """Of each pair one opens the connection."""
    return (rank < other) == ((rank + other) % 2 == 0)


class _Door:
    """Lets in whom the formation awaits."""

    def __init__(self, form, host, token):
        self._form, self._token = form, token
        self._changed, self._over = threading.Condition(), False
        self._socks = {}
        self._strangers = collections.deque()
        self._listener = socket.create_server((host, 0))
        self.address = "%s:%d" % (host, self._listener.getsockname()[1])
        threading.Thread(target=self._accept, name="mayfly-door", daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                if len(self._strangers) >= _MOST_STRANGERS:
                    secure.shut(self._strangers.popleft())
                self._strangers.append(sock)
            threading.Thread(target=self._meet, args=(sock,), daemon=True).start()

    def _meet(self, sock):
        guest = None
        try:
            sock.settimeout(_PROOF_S)
            # TLS takes its descriptor away from a socket: this one stays for who ends it from elsewhere.
            guest = secure.received(sock.dup(), self._token)
            if self._seat(guest):
                guest = None
        except OSError:
            pass
        finally:
            with self._changed:
                if sock in self._strangers:
                    self._strangers.remove(sock)
            sock.close()
            if guest is not None:
                guest.close()

    def _seat(self, guest):
        form = self._form
        word = secure.receive_exactly(guest, HEADER.size)
        rank = HEADER.unpack(word)[3]
        awaited = 0 <= rank < form["size"] and opens(rank, form["rank"])
        if not awaited or word != _greeting(HELLO, form, rank, form["rank"]):
            return False
        guest.sendall(_greeting(WELCOME, form, form["rank"], rank))
        with self._changed:
            if self._over or rank in self._socks:
                return False
            self._socks[rank] = guest
            self._changed.notify_all()
        return True

    def visit(self, rank, address):
        form = self._form
        sock = secure.connected(secure.address_of(address), self._token, _PATIENCE_S)
        with self._changed:
            self._socks[rank] = sock
            if self._over:
                raise ConnectionError("the formation is over")
        sock.sendall(_greeting(HELLO, form, form["rank"], rank))
        if secure.receive_exactly(sock, HEADER.size) != _greeting(WELCOME, form, rank, form["rank"]):
            raise ConnectionError("%s: another rank answers, want %d" % (address, rank))

    def all(self):
        """Sockets by rank, once all are there."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or len(self._socks) == self._form["size"] - 1)
            if self._over:
                raise ConnectionError("the formation is over")
            return dict(self._socks)

    def close(self):
        """Ends all that waits for the others, in whatever thread."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
            for sock in (*self._socks.values(), *self._strangers):
                secure.shut(sock)
        secure.shut(self._listener)
        self._listener.close()

    def forget(self):
        """After close(), when nobody waits in them any more."""
        with self._changed:
            for sock in self._socks.values():
                sock.close()


def _greeting(kind, form, rank, other):
    return header(kind, form["formation"], rank, other, form["size"])


class Mesh:
    """One formation. Work is done in a thread of its own, in order; what came of it goes to `mail` as ("mesh", (this
    mesh, name, result, error)). Where it waits for others, leave() ends that."""

    def __init__(self, form, host, token, mail):
        self.form, self._mail = form, mail
        self.over = False
        self._door = _Door(form, host, token)
        self._traffic, self._number, self._busy = None, 0, False
        self.unreached = []  # addresses that do not answer
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mayfly-mesh", daemon=True)
        self._thread.start()

    def word(self):
        """Where the others reach it."""
        return _WORD + self._door.address

    def stranger(self, addresses):
        """Why these do not fit together; None where they do. Whoever holds the state decides what is spoken."""
        if addresses[self.form["source"]].startswith(_WORD):
            return None
        return "scripts and mayfly's own workers add up gradients only among themselves; with a 'servers' block they mix"

    def do(self, name, function, *arguments):
        self._work.put((name, function, arguments))

    def _run(self):
        while True:
            name, function, arguments = self._work.get()
            if function is None:
                self._door.forget()
                return
            result, error = None, None
            self._busy = True
            try:
                result = function(*arguments)
            except (RuntimeError, OSError, ValueError, MemoryError, OverflowError) as failure:
                error = str(failure) or type(failure).__name__
                self._door.close()  # nobody is to wait for this worker
            self._busy = False
            self._mail.put(("mesh", (self, name, result, error)))

    def leave(self):
        """From the worker's thread. What is under way in the mesh's ends with an error."""
        if self.over:
            return
        self.over = True
        self._work.put(("", None, ()))
        self._door.close()
        if not self._busy:
            self._thread.join(1.0)

    # In the mesh's thread.

    def connect(self, addresses):
        form = self.form
        if form["size"] == 1:
            return
        with reach.Watch(self._others(addresses), self._missed):
            for rank in ((form["rank"] + step) % form["size"] for step in range(1, form["size"])):
                if opens(form["rank"], rank):
                    self._door.visit(rank, addresses[rank][len(_WORD):])
            socks = self._door.all()
        for sock in socks.values():
            reach.limit_silence(sock)
            sock.setblocking(False)
        self._traffic = Traffic(socks)

    def _others(self, addresses):
        return {address: address.rpartition(" ")[2] for rank, address in enumerate(addresses)
                if rank != self.form["rank"]}

    def _missed(self, addresses):
        """In a watch's thread: the worker is told at once, and what waits is ended."""
        self.unreached = addresses
        self._mail.put(("mesh", (self, "met", None, "others do not answer")))

    def look(self, addresses):
        """Which of the others do not answer; waits for them."""
        return reach.missing(self._others(addresses))

    def _header(self, count):
        return header(HANDED, self.form["formation"], self._number, 0, count)

    def hand_over(self, data, receivers):
        """The source has the bytes; each receiver gets them. Returns them, or None where this is neither."""
        form, result = self.form, None
        if form["rank"] == form["source"]:
            for rank in receivers:
                self._traffic.send(rank, self._header(8), len(data).to_bytes(8, "little"), self._header(len(data)), data)
            if receivers:
                self._traffic.finish()
        elif form["rank"] in receivers:
            size = bytearray(8)
            self._traffic.expect(form["source"], self._header(8))
            self._traffic.receive(form["source"], size)
            self._traffic.hear_all()
            result = bytearray(int.from_bytes(size, "little"))
            self._traffic.expect(form["source"], self._header(len(result)))
            self._traffic.receive(form["source"], result)
            self._traffic.hear_all()
        self._number += 1
        return bytes(result) if result is not None else None

    def add_up(self, tensor):
        form = self.form
        if form["size"] > 1:
            add_up(self._traffic, form["rank"], form["size"], form["formation"], self._number, tensor.numpy())
            self._number += 1
