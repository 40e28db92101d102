"""How a connection begins: both sides prove that they know the run's secret. docs/protocol.md#strangers"""
import functools
import hashlib
import hmac
import os
import socket
import ssl

from . import certificate

PROTOCOL = 8
MAGIC = b"MAYFLY3\n"
_RANDOM = 32


class HandshakeError(OSError):
    """Somebody else is at the other end."""


def split_token(token):
    """Secret, and the fingerprint of the run's certificate, empty where connections are not encrypted."""
    secret, _, fingerprint = token.strip().partition("-")
    return secret.encode(), fingerprint.lower()


def address_of(text):
    """(host, port) of "HOST:PORT"; the host may be an IPv6 address in brackets."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("'%s': want HOST:PORT, such as 127.0.0.1:7070" % text)
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host, int(port)


def receive_exactly(sock, count):
    data = bytearray(count)
    receive_into(sock, memoryview(data))
    return bytes(data)


def receive_into(sock, view):
    while len(view):
        count = sock.recv_into(view)
        if count == 0:
            raise ConnectionError("the connection was closed")
        view = view[count:]


def _proof(secret, who, guest, host):
    return hmac.new(secret, who + guest + host, hashlib.sha256).digest()


def greet(sock, secret):
    """The side that connected."""
    own = os.urandom(_RANDOM)
    sock.sendall(MAGIC + own)
    answer = receive_exactly(sock, 2 * _RANDOM)
    other, proof = answer[:_RANDOM], answer[_RANDOM:]
    if not hmac.compare_digest(proof, _proof(secret, b"host", own, other)):
        raise HandshakeError("whoever answers does not know the run's secret")
    sock.sendall(_proof(secret, b"guest", own, other))


def receive_guest(sock, secret):
    """The side that was connected to."""
    word = receive_exactly(sock, len(MAGIC) + _RANDOM)
    if word[:len(MAGIC)] != MAGIC:
        raise HandshakeError("whoever connects does not speak this protocol")
    other, own = word[len(MAGIC):], os.urandom(_RANDOM)
    sock.sendall(own + _proof(secret, b"host", other, own))
    if not hmac.compare_digest(receive_exactly(sock, _RANDOM), _proof(secret, b"guest", other, own)):
        raise HandshakeError("whoever connects does not know the run's secret")


def _wrapped(sock, fingerprint):
    """The run's certificate is known by its fingerprint alone; nobody has signed it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    wrapped = context.wrap_socket(sock)
    seen = hashlib.sha256(wrapped.getpeercert(binary_form=True)).hexdigest()
    if not hmac.compare_digest(seen, fingerprint):
        wrapped.close()
        raise HandshakeError("the certificate has the fingerprint %s, want %s" % (seen, fingerprint))
    return wrapped


def connected(address, token, patience_s):
    """A socket to (host, port) on which the secret has been proven. Blocks for patience_s at most between two words."""
    secret, fingerprint = split_token(token)
    sock = socket.create_connection(address, timeout=patience_s)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if fingerprint:
            sock = _wrapped(sock, fingerprint)
        greet(sock, secret)
    except BaseException:
        sock.close()
        raise
    return sock


@functools.lru_cache(maxsize=1)
def _host_context(secret):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    with open(os.memfd_create("certificate", os.MFD_CLOEXEC), "wb", buffering=0) as file:
        file.write(certificate.pem(secret))
        context.load_cert_chain("/proc/self/fd/%d" % file.fileno())
    return context


def received(sock, token):
    """A socket that came to this process, once its guest has proven that it knows the secret. Blocks for the socket's own
    patience between two words; closes it where that fails."""
    secret, fingerprint = split_token(token)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if fingerprint:
            sock = _host_context(secret).wrap_socket(sock, server_side=True)
        receive_guest(sock, secret)
    except BaseException:
        sock.close()
        raise
    return sock


def shut(sock):
    """From any thread: whoever waits for it is woken."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not ssl's own, which would take the object away from a reader
    except OSError:
        pass
