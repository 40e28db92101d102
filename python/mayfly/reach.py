"""Whether packets get through: told apart from slow, frozen or ended processes, whose machines answer all the same. As
src/train/reach.cpp does it."""
import errno
import select
import socket
import threading
import time

from . import secure

_LOOKS_AFTER_S = 1.5  # connections that take longer are looked after
_PATIENCE_S = 2.0
_ANSWERS = (0, errno.ECONNREFUSED, errno.ECONNRESET)


def missing(places):
    """Of {name: "HOST:PORT"}, the names of those from which nothing comes back in time, not even that nobody listens."""
    found, waiting = [], {}
    for name, place in places.items():
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            error = sock.connect_ex(secure.address_of(place))
        except (OSError, ValueError, OverflowError):  # no place at all: others say so
            error = 0
        if error == errno.EINPROGRESS:
            waiting[sock] = name
            continue
        sock.close()
        if error not in _ANSWERS:
            found.append(name)
    end = time.monotonic() + _PATIENCE_S
    while waiting and time.monotonic() < end:
        _, ready, _ = select.select([], list(waiting), [], max(0.0, end - time.monotonic()))
        for sock in ready:
            name = waiting.pop(sock)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) not in _ANSWERS:
                found.append(name)
            sock.close()
    for sock, name in waiting.items():
        sock.close()
        found.append(name)
    return found


class Watch:
    """While connections are being made: where that takes long, calls missed(names), in a thread of its own, if some
    places do not answer."""

    def __init__(self, places, missed):
        self._places, self._missed, self._over = places, missed, threading.Event()
        self._thread = threading.Thread(target=self._look, name="mayfly-reach", daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *failure):
        self._over.set()

    def _look(self):
        if self._over.wait(_LOOKS_AFTER_S):
            return
        found = missing(self._places)
        if found and not self._over.is_set():
            self._missed(found)


def limit_silence(sock):
    """A connection whose other machine does not answer any more ends within seconds."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3),
                          (socket.TCP_USER_TIMEOUT, 4000)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
