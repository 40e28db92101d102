"""What goes between this process and its peers at the same time, moved by one thread, and what they add up with it: as
src/train/traffic.cpp and src/train/add_up.cpp do it. docs/protocol.md#between-workers"""
import collections
import select
import ssl

import numpy

from .shards import HEADER, header

ADDEND, TOTAL, HANDED = 13, 14, 15
_TURN = 256 << 10  # bytes that one peer may take or give before the next one's turn
_SLICE = 256 << 10  # bytes that are added up, and sent on, at a time
_LEAST_SHARE = 1 << 10  # bytes; smaller ones go along the tree
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Peer:
    def __init__(self, sock):
        self.sock = sock
        self.out, self.heard = collections.deque(), collections.deque()  # views to send; (view to fill, wanted header)
        self.filled = 0  # of the first view

    def send_some(self):
        """Whether anything went."""
        view = self.out[0]
        try:
            sent = self.sock.send(view[:_TURN])
        except _LATER:
            return False
        if sent < len(view):
            self.out[0] = view[sent:]
        else:
            self.out.popleft()
        return True

    def receive_some(self):
        view, wanted = self.heard[0]
        try:
            count = self.sock.recv_into(view[self.filled:self.filled + _TURN])
        except _LATER:
            return False
        if count == 0:
            raise ConnectionError("the connection was closed")
        self.filled += count
        if self.filled == len(view):
            if wanted is not None and view != wanted:
                raise ConnectionError("%s, want %s" % (HEADER.unpack(view)[1:], HEADER.unpack(wanted)[1:]))
            self.heard.popleft()
            self.filled = 0
        return True


class Traffic:
    """Sockets by rank; they do not block, and may be shut down from elsewhere. What is sent stays as it is until finish()."""

    def __init__(self, socks):
        self._peers = {rank: _Peer(sock) for rank, sock in socks.items()}
        self.rooms = {rank: bytearray(_SLICE) for rank in socks}  # for what is on its way

    def send(self, rank, *views):
        self._peers[rank].out.extend(memoryview(view) for view in views if len(view))

    def receive(self, rank, view):
        if len(view):
            self._peers[rank].heard.append((memoryview(view), None))

    def expect(self, rank, wanted):
        """This header, and no other."""
        self._peers[rank].heard.append((memoryview(bytearray(HEADER.size)), wanted))

    def hear_all(self):
        self._move(lambda peer: peer.heard)

    def finish(self):
        self._move(lambda peer: peer.heard or peer.out)

    def _move(self, left):
        while True:
            moved = False
            for peer in self._peers.values():
                if peer.out:
                    moved = peer.send_some() or moved
                if peer.heard:
                    moved = peer.receive_some() or moved
            if not any(map(left, self._peers.values())):
                return
            if not moved:
                self._wait()

    def _wait(self):
        poll, idle = select.poll(), set()
        for peer in self._peers.values():
            poll.register(peer.sock, (select.POLLIN if peer.heard else 0) | (select.POLLOUT if peer.out else 0))
            if not peer.heard and not peer.out:
                idle.add(peer.sock.fileno())
        # One of whom nothing is wanted now must be within reach all the same: its turn comes.
        if any(fd in idle and event & (select.POLLERR | select.POLLHUP) for fd, event in poll.poll()):
            raise ConnectionError("a connection broke")


def _bytes(array):
    return memoryview(array).cast("B")


class _AddUp:
    """One exchange: the sums of `values`, a flat array of numpy, take their place."""

    def __init__(self, traffic, rank, size, formation, number, values):
        self._traffic, self._rank, self._size, self._values = traffic, rank, size, values
        self._header = lambda kind, first, count: header(kind, formation, number, first * values.itemsize,
                                                         count * values.itemsize)

    def run(self):
        if self._size == 1 or not len(self._values):
            return
        if self._values.nbytes < _LEAST_SHARE * self._size:
            self._along_tree()
        else:
            self._in_two_hops()

    def _share(self, rank):
        begin, end = (len(self._values) * r // self._size for r in (rank, rank + 1))
        return begin, self._values[begin:end]

    def _others(self):
        return [(self._rank + step) % self._size for step in range(1, self._size)]

    def _in_two_hops(self):
        traffic = self._traffic
        first, own = self._share(self._rank)
        for rank in self._others():
            begin, theirs = self._share(rank)
            traffic.send(rank, self._header(ADDEND, begin, len(theirs)), _bytes(theirs),
                         self._header(TOTAL, first, len(own)))
            traffic.expect(rank, self._header(ADDEND, first, len(own)))
        step = _SLICE // own.itemsize
        room = {rank: numpy.frombuffer(own_room, own.dtype) for rank, own_room in traffic.rooms.items()}
        for at in range(0, len(own), step):
            part = own[at:at + step]
            for rank in self._others():
                traffic.receive(rank, _bytes(room[rank][:len(part)]))
            traffic.hear_all()
            self._add_in_order(part, room)
            for rank in self._others():
                traffic.send(rank, _bytes(part))
        # A sum comes only after the addend was sent that it replaces here.
        for rank in self._others():
            begin, theirs = self._share(rank)
            traffic.expect(rank, self._header(TOTAL, begin, len(theirs)))
            traffic.receive(rank, _bytes(theirs))
        traffic.finish()

    def _add_in_order(self, part, room):
        for rank in range(1, self._rank):
            numpy.add(room[0][:len(part)], room[rank][:len(part)], out=room[0][:len(part)])
        if self._rank > 0:
            numpy.add(part, room[0][:len(part)], out=part)
        for rank in range(self._rank + 1, self._size):
            numpy.add(part, room[rank][:len(part)], out=part)

    def _along_tree(self):
        traffic, values = self._traffic, self._values
        addend, total = (self._header(kind, 0, len(values)) for kind in (ADDEND, TOTAL))
        theirs = numpy.empty_like(values)
        # A rank's parent is the rank without its lowest bit; its children have one more bit below that one.
        bit = 1
        while bit < self._size and not self._rank & bit:
            if self._rank + bit < self._size:
                traffic.expect(self._rank + bit, addend)
                traffic.receive(self._rank + bit, _bytes(theirs))
                traffic.hear_all()
                numpy.add(values, theirs, out=values)
            bit <<= 1
        if self._rank > 0:
            traffic.send(self._rank - bit, addend, _bytes(values))
            traffic.finish()
            traffic.expect(self._rank - bit, total)
            traffic.receive(self._rank - bit, _bytes(values))
            traffic.hear_all()
        while bit > 1:
            bit >>= 1
            if self._rank + bit < self._size:
                traffic.send(self._rank + bit, total, _bytes(values))
        traffic.finish()


def add_up(traffic, rank, size, formation, number, values):
    """Replaces the values by their sums over all ranks: the same bits everywhere. Where it fails they are garbage."""
    _AddUp(traffic, rank, size, formation, number, values).run()
