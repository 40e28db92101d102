"""The certificate that every process of a run shows where connections are encrypted, byte for byte as src/wire/credentials.cpp
makes it: Ed25519, signed by itself, all of it follows from the run's secret. Python's own modules sign nothing."""
import base64
import hashlib
import hmac

# RFC 8032, section 5.1. Not in constant time: whoever could measure it runs on this machine, and the run's user is alone there.
_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_BASE_Y = 4 * pow(5, _P - 2, _P) % _P


def _x_of(y):
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    return x if x % 2 == 0 else _P - x


_BASE = (_x_of(_BASE_Y), _BASE_Y, 1, _x_of(_BASE_Y) * _BASE_Y % _P)


def _added(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * p[3] * q[3] * _D % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(number, point):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = _added(result, point)
        point = _added(point, point)
        number >>= 1
    return result


def _packed(point):
    inverse = pow(point[2], _P - 2, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _hash(data):
    return int.from_bytes(hashlib.sha512(data).digest(), "little")


def _parts_of(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
    return scalar, digest[32:]


def public_key(seed):
    return _packed(_times(_parts_of(seed)[0], _BASE))


def signature(seed, message):
    scalar, prefix = _parts_of(seed)
    own = _packed(_times(scalar, _BASE))
    r = _hash(prefix + message) % _L
    point = _packed(_times(r, _BASE))
    return point + ((r + _hash(point + own + message) % _L * scalar) % _L).to_bytes(32, "little")


def _der(tag, *parts):
    body = b"".join(parts)
    length = bytes([len(body)]) if len(body) < 128 else bytes([0x81, len(body)]) if len(body) < 256 else \
        bytes([0x82]) + len(body).to_bytes(2, "big")
    return bytes([tag]) + length + body


_SEQUENCE, _SET, _INTEGER, _BITS, _OCTETS, _OID, _UTF8, _UTC_TIME, _TIME = 0x30, 0x31, 2, 3, 4, 6, 12, 23, 24
_ED25519 = _der(_SEQUENCE, _der(_OID, bytes([0x2b, 0x65, 0x70])))


def _seed(secret):
    return hmac.new(secret, b"certificate", hashlib.sha256).digest()


def certificate(secret):
    """In DER."""
    seed = _seed(secret)
    name = _der(_SEQUENCE, _der(_SET, _der(_SEQUENCE, _der(_OID, bytes([0x55, 4, 3])), _der(_UTF8, b"mayfly"))))
    valid = _der(_SEQUENCE, _der(_UTC_TIME, b"200101000000Z"), _der(_TIME, b"99991231235959Z"))
    key = _der(_SEQUENCE, _ED25519, _der(_BITS, b"\0", public_key(seed)))
    signed = _der(_SEQUENCE, _der(0xa0, _der(_INTEGER, b"\2")), _der(_INTEGER, b"\1"), _ED25519, name, valid, name, key)
    return _der(_SEQUENCE, signed, _ED25519, _der(_BITS, b"\0", signature(seed, signed)))


def _pem(what, data):
    text = base64.encodebytes(data)
    return b"-----BEGIN %s-----\n%s-----END %s-----\n" % (what, text, what)


def pem(secret):
    """Certificate and private key, as ssl reads them from a file."""
    key = _der(_SEQUENCE, _der(_INTEGER, b"\0"), _ED25519, _der(_OCTETS, _der(_OCTETS, _seed(secret))))
    return _pem(b"CERTIFICATE", certificate(secret)) + _pem(b"PRIVATE KEY", key)
