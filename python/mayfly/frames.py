"""Messages between the controller and its workers: docs/protocol.md#bytes."""
import json
import math
import struct

LARGEST = 16 << 20


_COUNT, _TEXT, _FLAG, _TIME, _LIST = (int,), (str,), (bool,), (int, float), (list,)
# What a worker hears, and the keys it relies on.
_KEYS = {
    "welcome": {"worker": _COUNT, "directory": _TEXT, "heartbeat_s": _TIME, "lease_s": _TIME, "orphan_s": _TIME,
                "seed": _COUNT, "sum": _FLAG, "network": _TEXT},
    "refused": {"why": _TEXT},
    "form": {"formation": _COUNT, "rank": _COUNT, "size": _COUNT, "sample": _COUNT, "source": _COUNT,
             "checkpoint": _TEXT, "from_checkpoint": _FLAG, "receivers": _LIST},
    "peers": {"formation": _COUNT, "addresses": _LIST},
    "proceed": {"formation": _COUNT, "committed": _COUNT, "step": _COUNT, "counts": _LIST, "evaluate": _FLAG,
                "compare": _FLAG},
    "attach": {"formation": _COUNT, "shards": _COUNT, "addresses": _LIST},
    "lease": {"formation": _COUNT, "lease": _COUNT, "sample": _COUNT, "first_sample": _COUNT, "samples": _COUNT,
              "share": _TIME, "evaluate": _FLAG},
    "write-checkpoint": {"formation": _COUNT},
    "halt": {"formation": _COUNT},
    "leave": {"why": _TEXT},
    "watch": {"cloud": _TEXT, "endpoint": _TEXT},
    "alive": {},
}


class ProtocolError(Exception):
    """The other side says what is no message."""


def encoded(message):
    def checked(value):
        # What diverged is no number; it travels as null.
        return None if isinstance(value, float) and not math.isfinite(value) else value

    body = json.dumps({key: checked(value) for key, value in message.items()}, ensure_ascii=False,
                      separators=(",", ":")).encode("utf-8", "replace")
    if len(body) > LARGEST:
        raise ProtocolError("a message of %d bytes, at most %d" % (len(body), LARGEST))
    return struct.pack("<I", len(body)) + body


def _pairs(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ProtocolError("a key twice in one message")
    return found


def decoded(body):
    try:
        message = json.loads(body.decode("utf-8"), object_pairs_hook=_pairs)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("no message: %s" % error) from None
    if not isinstance(message, dict) or not isinstance(message.get("message"), str):
        raise ProtocolError("no message: an object with its name is wanted")
    for key, kinds in _KEYS.get(message["message"], {}).items():
        value = message.get(key)
        if not isinstance(value, kinds) or isinstance(value, bool) != (kinds is _FLAG):
            raise ProtocolError("message %s: '%s' cannot be %.60r" % (message["message"], key, value))
    return message


class FrameReader:
    """Takes bytes as they come, gives whole messages."""

    def __init__(self):
        self._bytes = bytearray()

    def feed(self, data):
        self._bytes += data
        messages = []
        while len(self._bytes) >= 4:
            length = struct.unpack_from("<I", self._bytes)[0]
            if length > LARGEST:
                raise ProtocolError("a frame of %d bytes, at most %d" % (length, LARGEST))
            if len(self._bytes) < 4 + length:
                break
            messages.append(decoded(bytes(self._bytes[4:4 + length])))
            del self._bytes[:4 + length]
        return messages
