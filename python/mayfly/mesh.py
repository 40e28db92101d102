"""Workers that add up their gradients among themselves: a gloo group of torch's own for each formation. Gloo finds its
peers through a store that rank 0 serves; whoever asks it must know the run's secret."""
import ctypes
import datetime
import queue
import socket
import threading

import torch
import torch.distributed as dist

from . import reach, secure
from .frames import FrameReader, ProtocolError, encoded

_PATIENCE_S = 60.0  # of an exchange nobody ends; the controller is faster
_CONNECT_S = 5.0


def available():
    return dist.is_available() and hasattr(dist.distributed_c10d, "ProcessGroupGloo")


class StoreServer:
    """Words by key, for the members of one formation."""

    def __init__(self, host, secret):
        self._secret = secret
        self._words, self._changed, self._over = {}, threading.Condition(), False
        self._socks = []
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._socks.append(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            sock.settimeout(_CONNECT_S)
            secure.receive_guest(sock, self._secret)
            sock.settimeout(None)
            reader = FrameReader()
            while True:
                data = sock.recv(1 << 16)
                if not data:
                    return
                for message in reader.feed(data):
                    sock.sendall(encoded(self._answer(message)))
        except (OSError, ProtocolError, KeyError, ValueError):
            pass
        finally:
            sock.close()

    def _answer(self, message):
        with self._changed:
            if message["message"] == "set":
                self._words[message["key"]] = message["value"]
                self._changed.notify_all()
            elif message["message"] == "add":
                value = int(self._words.get(message["key"], "0")) + int(message["value"])
                self._words[message["key"]] = str(value)
                return {"message": "word", "value": str(value)}
            else:
                self._changed.wait_for(lambda: self._over or message["key"] in self._words)
                if self._over:
                    raise ValueError("the formation is over")
            return {"message": "word", "value": self._words[message["key"]]}

    def close(self):
        with self._changed:
            self._over = True
            self._changed.notify_all()
        secure.shut(self._listener)
        self._listener.close()
        for sock in self._socks:
            secure.shut(sock)


class _Store(dist.Store):
    """The other side, as torch wants it. Calls come from the thread that makes the group, one at a time."""

    def __init__(self, address, secret):
        super().__init__()
        self.sock = socket.create_connection(address, timeout=_CONNECT_S)
        try:
            secure.greet(self.sock, secret)
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(_PATIENCE_S)
        self._reader = FrameReader()

    def _ask(self, message, key, value=""):
        self.sock.sendall(encoded({"message": message, "key": key, "value": value}))
        while True:
            data = self.sock.recv(1 << 16)
            if not data:
                raise RuntimeError("the formation's store is gone")
            answers = self._reader.feed(data)
            if answers:
                return answers[0]["value"]

    def set(self, key, value):
        self._ask("set", key, (value.encode() if isinstance(value, str) else bytes(value)).hex())

    def get(self, key):
        return bytes.fromhex(self._ask("get", key))

    def wait(self, keys, timeout=None):
        for key in keys:
            self._ask("get", key)

    def add(self, key, amount):
        return int(self._ask("add", key, str(amount)))


class Mesh:
    """One formation. Work is done in a thread of its own, in order; what came of it goes to `mail` as ("mesh", (this
    mesh, name, result, error)). A mesh that hangs is left behind: its thread and its group stay until the process ends."""

    def __init__(self, form, host, secret, mail):
        self.form, self._host, self._secret, self._mail = form, host, secret, mail
        self.over = False
        self._group, self._store, self._busy = None, None, False
        self._server = StoreServer(host, secret) if form["rank"] == 0 else None
        self._doorstep = reach.Doorstep()
        self.unreached = []  # addresses that do not answer
        self._work = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mayfly-mesh", daemon=True)
        self._thread.start()

    def word(self):
        """Where the others reach it, and what it speaks."""
        return "torch %s gloo %s:%d" % (torch.__version__, self._host,
                                         self._server.port if self._server else self._doorstep.port)

    def stranger(self, addresses):
        """Why these do not fit together; None where they do. Whoever holds the state decides what is spoken."""
        versions = [address.rpartition(" gloo ")[0] for address in addresses]
        own, wanted = versions[self.form["rank"]], versions[self.form["source"]]
        if own == wanted:
            return None
        return "all-reduce wants equal versions of torch: this worker has %s, the others %s; with a 'servers' block any " \
               "will do" % (own, wanted or "mayfly's own workers")

    def do(self, name, function, *arguments):
        self._work.put((name, function, arguments))

    def _run(self):
        while True:
            name, function, arguments = self._work.get()
            if function is None:
                self._group = None
                if self._store is not None:
                    self._store.sock.close()
                return
            result, error = None, None
            self._busy = True
            try:
                result = function(*arguments)
            except (RuntimeError, OSError, ProtocolError, ValueError) as failure:
                error = str(failure) or type(failure).__name__
            self._busy = False
            self._mail.put(("mesh", (self, name, result, error)))

    def leave(self):
        """From the worker's thread. Whatever hangs in it does not concern anybody any more."""
        if self.over:
            return
        self.over = True
        self._work.put(("", None, ()))
        if self._store is not None:
            secure.shut(self._store.sock)
        if self._server is not None:
            self._server.close()
        self._doorstep.close()
        if self._group is not None and self._busy:
            # Taking a group apart waits for what hangs in it, and so would the end of the process.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._group))
        if not self._busy:
            # Python cannot end well while a thread takes a group apart.
            self._thread.join(1.0)

    # In the mesh's thread.

    def connect(self, addresses):
        form = self.form
        if form["size"] == 1:
            return
        with reach.Watch(self._others(addresses), self._missed):
            group = self._joined(addresses)
        if self.over:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
            raise RuntimeError("the formation is over")
        self._group = group
        reach.limit_silence_of_all()

    def _others(self, addresses):
        return {address: address.rpartition(" ")[2] for rank, address in enumerate(addresses)
                if rank != self.form["rank"]}

    def _missed(self, addresses):
        """In a watch's thread: the worker is told at once, and what hangs is left behind."""
        self.unreached = addresses
        self._mail.put(("mesh", (self, "met", None, "others do not answer")))

    def look(self, addresses):
        """Which of the others do not answer; waits for them."""
        return reach.missing(self._others(addresses))

    def _joined(self, addresses):
        form = self.form
        self._store = _Store(secure.address_of(addresses[0].rpartition(" ")[2]), self._secret)
        gloo = dist.distributed_c10d.ProcessGroupGloo
        options = gloo._Options()
        options._devices = [gloo.create_device(hostname=self._host)]
        options._timeout = datetime.timedelta(seconds=_PATIENCE_S)
        options._threads = 1
        return gloo(self._store, form["rank"], form["size"], options)

    def hand_over(self, data, receivers):
        """The source has the bytes; each receiver gets them. Returns them, or None where this is neither."""
        form = self.form
        if form["rank"] == form["source"]:
            for rank in receivers:
                piece = torch.frombuffer(bytearray(data), dtype=torch.uint8)
                self._group.send([torch.tensor([piece.numel()])], rank, 0).wait()
                self._group.send([piece], rank, 1).wait()
        if form["rank"] not in receivers:
            return None
        size = torch.zeros(1, dtype=torch.int64)
        self._group.recv([size], form["source"], 0).wait()
        piece = torch.empty(int(size), dtype=torch.uint8)
        self._group.recv([piece], form["source"], 1).wait()
        return piece.numpy().tobytes()

    def add_up(self, tensor):
        if self.form["size"] > 1:
            self._group.allreduce([tensor]).wait()
