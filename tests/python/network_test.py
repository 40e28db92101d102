#!/usr/bin/python3
"""What the Python package says to others: handshake, notices, meshes, shards."""
import hashlib
import http.server
import json
import os
import queue
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import torch

from mayfly import mesh, notices, secure, shards


class Handshake(unittest.TestCase):
    def meet(self, guest_secret, host_secret):
        guest, host = socket.socketpair()
        failures = []

        def receive():
            try:
                secure.receive_guest(host, host_secret)
            except OSError as error:
                failures.append(error)
            host.close()

        thread = threading.Thread(target=receive)
        thread.start()
        try:
            secure.greet(guest, guest_secret)
        except OSError as error:
            failures.append(error)
        guest.close()
        thread.join()
        return failures

    def test_who_knows_the_secret_is_let_in(self):
        self.assertEqual(self.meet(b"secret", b"secret"), [])

    def test_others_are_not(self):
        self.assertTrue(any(isinstance(e, secure.HandshakeError) for e in self.meet(b"guess", b"secret")))

    def test_the_proofs_are_those_of_the_protocol(self):
        guest, host = socket.socketpair()
        thread = threading.Thread(target=secure.greet, args=(guest, b"key"))
        thread.start()
        word = secure.receive_exactly(host, 40)
        self.assertEqual(word[:8], b"MAYFLY3\n")
        import hmac
        own = bytes(range(32))
        host.sendall(own + hmac.new(b"key", b"host" + word[8:] + own, hashlib.sha256).digest())
        self.assertEqual(secure.receive_exactly(host, 32), hmac.new(b"key", b"guest" + word[8:] + own,
                                                                    hashlib.sha256).digest())
        thread.join()
        guest.close()
        host.close()

    def test_a_token_is_a_secret_and_a_fingerprint(self):
        self.assertEqual(secure.split_token("ab12-FF00\n"), (b"ab12", "ff00"))
        self.assertEqual(secure.split_token("ab12"), (b"ab12", ""))

    def test_only_the_runs_certificate_is_believed(self):
        with tempfile.TemporaryDirectory() as folder:
            certificate, key = os.path.join(folder, "c.pem"), os.path.join(folder, "k.pem")
            try:
                subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=run", "-days", "1",
                                "-keyout", key, "-out", certificate], check=True, capture_output=True)
            except FileNotFoundError:
                self.skipTest("no openssl to make a certificate with")
            with open(certificate, encoding="ascii") as file:
                fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(file.read())).hexdigest()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            listener = socket.create_server(("127.0.0.1", 0))

            def serve():
                for _ in range(2):
                    sock, _ = listener.accept()
                    try:
                        with context.wrap_socket(sock, server_side=True) as wrapped:
                            secure.receive_guest(wrapped, b"secret")
                            wrapped.sendall(b"hello")
                    except OSError:
                        pass

            thread = threading.Thread(target=serve)
            thread.start()
            address = listener.getsockname()
            sock = secure.connected(address, "secret-" + fingerprint, 5)
            self.assertEqual(secure.receive_exactly(sock, 5), b"hello")
            sock.close()
            with self.assertRaises(secure.HandshakeError):
                secure.connected(address, "secret-" + "0" * 64, 5)
            thread.join()
            listener.close()


class Notices(unittest.TestCase):
    NOW = 1578358967.0  # 2020-01-07T01:02:47Z

    def test_aws_says_when(self):
        self.assertEqual(notices.aws_left_s('{"action":"terminate","time":"2020-01-07T01:03:47Z"}', self.NOW), 60)
        self.assertEqual(notices.aws_left_s('{"action":"terminate","time":"2020-01-07T00:00:00Z"}', self.NOW), 0)
        self.assertEqual(notices.aws_left_s('{"action":"stop"}', self.NOW), 120)
        self.assertIsNone(notices.aws_left_s('{"action":"none"}', self.NOW))

    def test_gcp_says_that(self):
        self.assertEqual(notices.gcp_left_s("TRUE\n", self.NOW), 30)
        self.assertIsNone(notices.gcp_left_s("FALSE", self.NOW))

    def test_azure_says_what_else_is_planned_too(self):
        def left_s(*events):
            return notices.azure_left_s(json.dumps({"Events": events}), self.NOW, "vm1")

        event = {"EventType": "Preempt", "NotBefore": "Tue, 07 Jan 2020 01:03:07 GMT", "Resources": ["vm0", "vm1"]}
        self.assertEqual(left_s({"EventType": "Reboot", "Resources": ["vm1"]}, event), 20)
        self.assertEqual(left_s(dict(event, NotBefore="")), 30)
        self.assertIsNone(left_s(dict(event, Resources=["vm2"])))
        self.assertIsNone(left_s())

    def test_a_controller_cannot_send_a_worker_anywhere(self):
        self.assertTrue(notices.on_loopback("http://127.0.0.1:4000"))
        for endpoint in ("http://169.254.169.254", "http://127.0.0.1@example.com", "", "file:///etc/passwd"):
            self.assertFalse(notices.on_loopback(endpoint), endpoint)

    def test_each_cloud_is_asked_as_it_wants(self):
        asked = []

        class Service(http.server.BaseHTTPRequestHandler):
            def answer(self):
                asked.append((self.command, self.path, {key.lower(): value for key, value in self.headers.items()}))
                bodies = {"/latest/api/token": b"key", "/latest/meta-data/spot/instance-action": b'{"action":"stop"}',
                          "/computeMetadata/v1/instance/preempted": b"TRUE",
                          "/metadata/instance/compute/name": b"vm1", "/metadata/scheduledevents":
                              b'{"Events":[{"EventType":"Preempt","NotBefore":"","Resources":["vm1"]}]}'}
                body = bodies.get(self.path.partition("?")[0])
                self.send_response(200 if body else 404)
                self.end_headers()
                self.wfile.write(body or b"")

            do_GET = do_PUT = answer

            def log_message(self, *arguments):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            base = "http://127.0.0.1:%d" % server.server_port
            self.assertEqual([notices.look(cloud, base, self.NOW) for cloud in notices.CLOUDS], [120, 30, 30])
            self.assertIsNone(notices._answer(base + "/nothing", {}))
            server.shutdown()
        self.assertEqual(asked[0][0], "PUT")
        self.assertEqual(asked[1][2]["x-aws-ec2-metadata-token"], "key")
        self.assertEqual(asked[2][2]["metadata-flavor"], "Google")
        self.assertEqual(asked[3][2]["metadata"], "true")

    def test_endpoints_can_be_given(self):
        self.assertEqual(notices.endpoint_of("aws", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://a"}), "http://a")
        self.assertEqual(notices.endpoint_of("gcp", {"GCE_METADATA_HOST": "b:1"}), "http://b:1")
        self.assertEqual(notices.endpoint_of("azure", {"MAYFLY_AZURE_METADATA_ENDPOINT": "http://c"}), "http://c")


class Meshes(unittest.TestCase):
    def form(self, rank, size=2, source=0):
        return {"formation": 3, "rank": rank, "size": size, "source": source}

    def test_another_version_of_torch_is_refused_by_who_has_it(self):
        words = ["torch 1.13.1 gloo 127.0.0.1:9", "torch 2.4.0 gloo 127.0.0.1:0"]
        meshes = [mesh.Mesh(self.form(rank), "127.0.0.1", b"s", queue.SimpleQueue()) for rank in range(2)]
        self.assertIsNone(meshes[0].stranger(words))
        self.assertIn("this worker has torch 2.4.0, the others torch 1.13.1", meshes[1].stranger(words))
        self.assertIn("mayfly's own workers", meshes[1].stranger(["127.0.0.1:0,4000", words[1]]))
        for one in meshes:
            one.leave()

    def test_two_find_each_other_hand_over_and_add_up(self):
        mail = queue.SimpleQueue()
        pair = [mesh.Mesh(self.form(rank), "127.0.0.1", b"s", mail) for rank in range(2)]
        words = [one.word() for one in pair]
        values = [torch.full((5,), float(rank + 1)) for rank in range(2)]

        def work(one):
            one.connect(words)
            data = one.hand_over(b"state" * 1000, [1])
            one.add_up(values[one.form["rank"]])
            return data

        for one in pair:
            one.do("worked", work, one)
        found = dict((item[1][0].form["rank"], item[1][2:]) for item in (mail.get(timeout=60), mail.get(timeout=60)))
        self.assertEqual(found, {0: (None, None), 1: (b"state" * 1000, None)})
        for value in values:
            self.assertEqual(value.tolist(), [3.0] * 5)
        for one in pair:
            one.leave()

    def test_the_store_lets_nobody_in_who_does_not_know_the_secret(self):
        own = mesh.Mesh(self.form(0), "127.0.0.1", b"right", queue.SimpleQueue())
        address = secure.address_of(own.word().rpartition(" ")[2])
        with self.assertRaises(OSError):
            mesh._Store(address, b"wrong")
        own.leave()

    def test_a_peer_that_never_comes_is_left_behind_at_once(self):
        mail = queue.SimpleQueue()
        own = mesh.Mesh(self.form(0), "127.0.0.1", b"s", mail)
        own.do("worked", own.connect, [own.word(), own.word()])
        own.leave()
        self.assertIsNotNone(mail.get(timeout=60)[1][3])
        own._thread.join(60)


class Shards(unittest.TestCase):
    def test_they_lie_one_behind_the_other(self):
        for size in (1, 7, 100):
            for count in (1, 2, 3, 7):
                at = 0
                for shard in range(count):
                    first, floats = shards.shard_range(size, shard, count)
                    self.assertEqual(first, at)
                    at += floats
                self.assertEqual(at, size)

    def test_a_header_has_forty_bytes(self):
        self.assertEqual(shards.header(3, 1, 2, 5, 6), b"MYF1" + struct.pack("<IqqQQ", 3, 1, 2, 5, 6))


if __name__ == "__main__":
    unittest.main()
