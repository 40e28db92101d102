"""A worker's connections to the servers that hold the parameters: docs/protocol.md#the-data-connections."""
import struct
import threading

import torch

from . import reach, secure

HEADER = struct.Struct("<4sIqqQQ")
_MAGIC = b"MYF1"
HELLO, WELCOME, PUSH, STAGED, PULL, WEIGHTS = 1, 2, 3, 4, 5, 6
_CONNECT_S = 5.0


def header(kind, formation, number=0, first=0, count=0):
    return HEADER.pack(_MAGIC, kind, formation, number, first, count)


def shard_range(size, shard, shards):
    """(first, count)"""
    first = size * shard // shards
    return first, size * (shard + 1) // shards - first


class _Server:
    """One connection; calls come from one thread."""

    def __init__(self, address, formation, token, first, count):
        self.address, self._formation, self.first, self.count = address, formation, first, count
        self.sock = secure.connected(secure.address_of(address), token, _CONNECT_S)
        self.sock.settimeout(None)
        reach.limit_silence(self.sock)
        self.sock.sendall(header(HELLO, formation))

    def meet(self):
        _, first, count = self.expect(WELCOME)
        if (first, count) != (self.first, self.count):
            raise ConnectionError("%s: holds floats %d + %d, want %d + %d" % (self.address, first, count, self.first,
                                                                             self.count))

    def expect(self, kind):
        """(number, first, count) of the next header."""
        magic, seen, formation, number, first, count = HEADER.unpack(
            secure.receive_exactly(self.sock, HEADER.size))
        if magic != _MAGIC or seen != kind or formation != self._formation:
            raise ConnectionError("%s: said %d of formation %d, want %d of %d" % (self.address, seen, formation, kind,
                                                                                 self._formation))
        return number, first, count

    def say(self, kind, number, view=None):
        count = len(view) // 4 if view is not None else 0
        self.sock.sendall(header(kind, self._formation, number, self.first if view is not None else 0, count))
        if count:
            self.sock.sendall(view)


def _view(tensor):
    return memoryview(tensor.numpy()).cast("B")


class Shards:
    """The servers of one formation. Calls come from the worker's thread, but for abort(); after an OSError it is over."""

    def __init__(self, attach, token, size, worker):
        self.formation, self._shards = attach["formation"], attach["shards"]
        self.addresses, self._token, self._size, self._worker = attach["addresses"], token, size, worker
        self._servers, self._readers = [], []
        self._lock, self._over = threading.Lock(), False
        self.weights = torch.zeros(size)

    def connect(self):
        for shard in range(self._shards):
            alike = [address for address in self.addresses[shard::self._shards] if address]
            if not alike:
                raise ConnectionError("no server for shard %d" % shard)
            for i, address in enumerate(alike):
                server = _Server(address, self.formation, self._token, *shard_range(self._size, shard, self._shards))
                with self._lock:
                    self._servers.append(server)
                    if self._over:
                        secure.shut(server.sock)
                server.meet()
                if i == self._worker % len(alike):  # each worker pulls from one, pushes to all
                    self._readers.append(server)

    def pull(self, sample):
        """The parameters at this state or later into `weights`; returns the oldest state among the shards."""
        for server in self._readers:
            server.say(PULL, sample)
        oldest = None
        for server in self._readers:
            number, _, count = server.expect(WEIGHTS)
            if count != server.count or number < sample:
                raise ConnectionError("%s: %d floats at the state %d, want %d at %d" % (server.address, count, number,
                                                                                       server.count, sample))
            secure.receive_into(server.sock, _view(self.weights)[4 * server.first:4 * (server.first + count)])
            oldest = number if oldest is None else min(oldest, number)
        return oldest

    def push(self, lease, values):
        """Returns when all of it is staged at every server."""
        data = _view(values)
        for server in self._servers:
            server.say(PUSH, lease, data[4 * server.first:4 * (server.first + server.count)])
        for server in self._servers:
            number, _, _ = server.expect(STAGED)
            if number != lease:
                raise ConnectionError("%s: lease %d is staged, want %d" % (server.address, number, lease))

    def abort(self):
        """From any thread: every call fails from now on."""
        with self._lock:
            self._over = True
            for server in self._servers:
                secure.shut(server.sock)

    def close(self):
        self.abort()
        for server in self._servers:
            server.sock.close()
