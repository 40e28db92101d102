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
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import torch

from mayfly import certificate, mesh, notices, secure, shards

SECRET = "0123456789abcdef" * 4
FINGERPRINT = "6aad7f2e59724ead129a0be07aa991786131c05dd7b8c79fbd1ac1e0da021e2d"
PLAIN = SECRET


def sealed():
    return SECRET + "-" + FINGERPRINT


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

    def meshes(self, size, token=PLAIN):
        mail = queue.SimpleQueue()
        made = [mesh.Mesh(self.form(rank, size), "127.0.0.1", token, mail) for rank in range(size)]
        for one in made:
            self.addCleanup(one.leave)
        return made, mail

    def results(self, made, mail, work):
        """By rank: (result, error)."""
        for one in made:
            one.do("worked", work, one)
        return dict((item[1][0].form["rank"], item[1][2:]) for item in (mail.get(timeout=60) for _ in made))

    def test_workers_that_are_no_scripts_are_refused(self):
        made, _ = self.meshes(2)
        words = [one.word() for one in made]
        self.assertIsNone(made[1].stranger(words))
        self.assertIn("mayfly's own workers", made[1].stranger(["127.0.0.1:4000", words[1]]))

    def test_they_find_each_other_hand_over_and_add_up(self):
        # 1 + 2 + ... + n in each place: along the tree, in two hops, and in slices; in the clear and encrypted.
        for token in (PLAIN, sealed()):
            for size in (2, 3, 5):
                made, mail = self.meshes(size, token)
                words = [one.word() for one in made]
                sums = {count: [torch.full((count,), float(rank + 1)) for rank in range(size)]
                        for count in (1, 5, 2000, 1_000_003)}

                def work(one):
                    one.connect(words)
                    data = one.hand_over(b"state" * 100_000, [1])
                    for values in sums.values():
                        one.add_up(values[one.form["rank"]])
                    return data

                found = self.results(made, mail, work)
                self.assertEqual(found.pop(1), (b"state" * 100_000, None))
                self.assertEqual(set(found.values()), {(None, None)})
                for count, values in sums.items():
                    for value in values:
                        self.assertTrue(bool((value == size * (size + 1) / 2).all()), (size, count))

    def test_who_does_not_know_the_secret_is_not_let_in(self):
        made, mail = self.meshes(2)
        words = [one.word() for one in made]
        stranger = mesh.Mesh(self.form(1), "127.0.0.1", "1" * 64, queue.SimpleQueue())
        self.addCleanup(stranger.leave)
        with self.assertRaises(OSError):
            stranger.connect([words[0], stranger.word()])
        self.assertEqual(self.results(made, mail, lambda one: one.connect(words)), {0: (None, None), 1: (None, None)})

    def test_who_is_not_awaited_is_turned_away(self):
        made, mail = self.meshes(2)
        words = [one.word() for one in made]
        late = mesh.Mesh(dict(self.form(1), formation=2), "127.0.0.1", PLAIN, queue.SimpleQueue())
        self.addCleanup(late.leave)
        with self.assertRaises(OSError):
            late.connect([words[0], late.word()])
        self.assertEqual(self.results(made, mail, lambda one: one.connect(words)), {0: (None, None), 1: (None, None)})

    def test_another_number_of_values_is_an_error(self):
        made, mail = self.meshes(2)
        words = [one.word() for one in made]

        def work(one):
            one.connect(words)
            one.add_up(torch.zeros(10_000 + one.form["rank"]))

        self.assertTrue(all(error for _, error in self.results(made, mail, work).values()))

    def test_leaving_ends_an_exchange_that_others_take_no_part_in(self):
        for token in (PLAIN, sealed()):
            made, mail = self.meshes(2, token)
            words = [one.word() for one in made]
            self.assertEqual(self.results(made, mail, lambda one: one.connect(words)), {0: (None, None), 1: (None, None)})
            made[0].do("added", made[0].add_up, torch.zeros(1 << 22))
            time.sleep(0.1)
            made[0].leave()
            self.assertIsNotNone(mail.get(timeout=60)[1][3])
            made[0]._thread.join(60)
            self.assertFalse(made[0]._thread.is_alive())

    def test_a_peer_that_never_comes_is_left_behind_at_once(self):
        made, mail = self.meshes(2)
        made[0].do("worked", made[0].connect, [one.word() for one in made])
        time.sleep(0.1)
        made[0].leave()
        self.assertIsNotNone(mail.get(timeout=60)[1][3])
        made[0]._thread.join(60)
        self.assertFalse(made[0]._thread.is_alive())


class Certificates(unittest.TestCase):
    # RFC 8032, section 7.1, test 2.
    SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    KEY = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    SIGNATURE = ("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                 "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00")

    def test_signatures_are_those_of_the_standard(self):
        self.assertEqual(certificate.public_key(self.SEED).hex(), self.KEY)
        self.assertEqual(certificate.signature(self.SEED, b"\x72").hex(), self.SIGNATURE)

    def test_it_has_the_fingerprint_that_mayfly_puts_into_tokens(self):
        # Made by src/wire/credentials.cpp, as `Credentials.AreTheSameInPython` there says.
        self.assertEqual(hashlib.sha256(certificate.certificate(SECRET.encode())).hexdigest(), FINGERPRINT)


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
