#!/usr/bin/python3
"""The Python package without a run: bytes, order, checksums, files, the two halves of a step."""
import json
import os
import random
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import torch

import mayfly
from mayfly import checkpoint, frames, safetensors, trainer
from mayfly.order import SampleOrder, reading_of
from mayfly.xxh3 import xxh3


class Frames(unittest.TestCase):
    def test_a_message_is_its_length_and_json(self):
        self.assertEqual(frames.encoded({"message": "alive"}), b"\x13\0\0\0" + b'{"message":"alive"}')

    def test_what_diverged_travels_as_null(self):
        self.assertIn(b'"loss":null', frames.encoded({"message": "step-done", "loss": float("nan")}))

    def test_messages_come_out_whole_however_the_bytes_are_cut(self):
        sent = [{"message": "halt", "formation": n} for n in range(40)]
        data = b"".join(map(frames.encoded, sent))
        for seed in range(20):
            cuts, reader, heard, at = random.Random(seed), frames.FrameReader(), [], 0
            while at < len(data):
                size = cuts.randint(1, 9)
                heard += reader.feed(data[at:at + size])
                at += size
            self.assertEqual(heard, sent)

    def test_what_is_no_message_is_refused(self):
        for body in (b"", b"[]", b"{}", b'{"message":1}', b'{"message":"a","message":"b"}', b"\xff", b"[" * 100_000,
                     b'{"message":"halt"}', b'{"message":"halt","formation":true}', b'{"message":"halt","formation":"1"}'):
            with self.assertRaises(frames.ProtocolError, msg=body[:40]):
                frames.FrameReader().feed(struct.pack("<I", len(body)) + body)
        with self.assertRaises(frames.ProtocolError):
            frames.FrameReader().feed(struct.pack("<I", frames.LARGEST + 1))

    def test_noise_never_does_more_than_end_the_connection(self):
        noise = random.Random(1)
        good = frames.encoded({"message": "lease", "formation": 1, "lease": 2, "sample": 3, "first_sample": 4, "samples": 5,
                               "share": 1, "evaluate": False})
        refused = 0
        for _ in range(3000):
            data = bytearray(good * 3)
            for _ in range(noise.randint(1, 6)):
                data[noise.randrange(len(data))] = noise.randrange(256)
            try:
                for message in frames.FrameReader().feed(bytes(data)):
                    self.assertIsInstance(message["message"], str)
            except frames.ProtocolError:
                refused += 1
        self.assertGreater(refused, 100)


class Order(unittest.TestCase):
    # From src/data/order.cpp.
    NUMBERS = ((2000, 1, 0, 1108), (2000, 1, 1, 356), (2000, 1, 1999, 1423), (2000, 1, 2000, 277), (2000, 7, 123456, 635),
               (60000, 1, 59999, 32233), (65537, 3, 1000000, 18693), (1, 1, 5, 0),
               (1 << 40, 9, (1 << 41) + 12345, 293061792761))

    def test_it_is_that_of_mayflys_own_workers(self):
        for size, seed, place, sample in self.NUMBERS:
            self.assertEqual(SampleOrder(size, seed).sample_at(place), sample)

    def test_so_is_what_it_says_of_what_was_read(self):
        self.assertEqual(reading_of(SampleOrder(2000, 1).samples(0, 64)), 2584526794994004367)
        self.assertEqual(reading_of([]), 0)

    def test_many_at_once_are_the_same_as_one_by_one(self):
        for size, seed in ((1, 1), (3, 2), (100, 1), (4097, 5), (1 << 33, 6)):
            order = SampleOrder(size, seed)
            for first, count in ((0, 10), (4090, 12), (1_000_000, 5)):
                self.assertEqual(order.samples(first, count), [order.sample_at(first + i) for i in range(count)])

    def test_an_epoch_has_every_sample_once(self):
        for size in (1, 2, 5, 1000, 4096, 4097):
            self.assertEqual(sorted(SampleOrder(size, 3).samples(2 * size, size)), list(range(size)))


class Checksums(unittest.TestCase):
    # Of bytes (i * 7 + i // 256) % 256, by xxhash 0.8.1.
    NUMBERS = {241: "541b19226f0052e8", 256: "ff5a1cefade75bb9", 1000: "d1db6a0afea2cc82", 1024: "71bee625238addb4",
               1025: "d9b414f4e1bbf7ad", 1088: "b74e423e955e509d", 2048: "3293e8238bd8f743", 2049: "922549b11c04c2eb",
               5000: "ed0146266d138bd8", 100003: "a9b717cb7935c575"}

    def test_they_are_those_of_xxhash(self):
        for length, sum_ in self.NUMBERS.items():
            self.assertEqual("%016x" % xxh3(bytes((i * 7 + i // 256) & 255 for i in range(length))), sum_)


class Tensors(unittest.TestCase):
    def test_a_file_gives_back_what_was_put_in(self):
        tensors = {"a": torch.arange(6.0).view(2, 3), "n": torch.tensor(7), "none": torch.zeros(0, 4),
                   "half": torch.ones(3, dtype=torch.float16), "flags": torch.tensor([True, False])}
        data = safetensors.encoded(tensors, {"note": "text"})
        found = safetensors.decoded(data)
        self.assertEqual(set(found), set(tensors))
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(found[name], tensor), name)
            self.assertEqual(found[name].dtype, tensor.dtype)

    def test_tensors_cover_the_bytes_from_first_to_last_widest_first(self):
        data = safetensors.encoded({"small": torch.ones(3, dtype=torch.uint8), "wide": torch.ones(2)})
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        self.assertEqual(header["wide"]["data_offsets"], [0, 8])
        self.assertEqual(header["small"]["data_offsets"], [8, 11])
        self.assertEqual(len(data), 8 + length + 11)
        self.assertEqual(length % 8, 0)

    def test_damaged_files_are_refused(self):
        data = safetensors.encoded({"a": torch.ones(100)})
        noise = random.Random(2)
        for bad in [b"", data[:5], data[:40], struct.pack("<Q", 1 << 60) + data[8:]] + [
                data[:at] + bytes([noise.randrange(256)]) + data[at + 1:] for at in range(8, 60)]:
            try:
                safetensors.decoded(bad)
            except ValueError:
                continue


def small_model():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))


def made(rate=0.1, **more):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    return model, optimizer, trainer.Trainer(model, optimizer, **more)


class Halves(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.inputs, self.labels = torch.randn(8, 4), torch.randint(0, 2, (8,))

    def loss(self, model, rows=slice(None)):
        return torch.nn.functional.cross_entropy(model(self.inputs[rows]), self.labels[rows])

    def plain(self, steps):
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(steps):
            optimizer.zero_grad()
            self.loss(model).backward()
            optimizer.step()
        return model.state_dict()

    def assert_same(self, one, other):
        for name, tensor in one.items():
            self.assertTrue(torch.equal(tensor, other[name]), name)

    def test_computing_leaves_everything_as_it_was(self):
        model, _, own = made()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        own.begin()
        own.compute(self.loss(model), 1)
        self.assert_same(before, model.state_dict())

    def test_both_halves_are_a_plain_loop_to_the_bit(self):
        model, _, own = made()
        for _ in range(5):
            own.begin()
            own.compute(self.loss(model), 1)
            own.apply(True)
        self.assert_same(self.plain(5), model.state_dict())

    def test_a_gradient_of_two_shares_is_that_of_the_batch(self):
        torch.manual_seed(1)
        model = torch.nn.Linear(4, 2)
        own = trainer.Trainer(model, torch.optim.SGD(model.parameters(), lr=1.0))
        total = torch.zeros(own.size + 1)
        for rows, share in ((slice(0, 6), 0.75), (slice(6, 8), 0.25)):
            own.begin()
            own.compute(self.loss(model, rows), share)
            total += own.exchanged
        own.begin()
        whole = own.compute(self.loss(model), 1)
        self.assertTrue(torch.allclose(total, own.exchanged, atol=1e-6))
        self.assertAlmostEqual(float(total[-1]), whole, places=5)

    def test_a_state_goes_over_whole(self):
        model, _, own = made()
        for _ in range(3):
            own.begin()
            own.compute(self.loss(model), 1)
            own.apply(True)
        other_model, other_optimizer, other = made(rate=0.5)
        state, step, loss = trainer.unpacked(trainer.packed(own.state(), 3, 0.25))
        other.load(state)
        self.assertEqual((step, loss), (3, 0.25))
        self.assertEqual(other_optimizer.param_groups[0]["lr"], 0.1)
        for side, part in ((model, own), (other_model, other)):
            part.begin()
            part.compute(self.loss(side), 1)
            part.apply(True)
        self.assert_same(model.state_dict(), other_model.state_dict())
        other.reset()
        self.assert_same(small_model().state_dict(), other_model.state_dict())

    def test_the_state_of_another_network_is_refused(self):
        model = torch.nn.Linear(2, 2)
        stranger = trainer.Trainer(model, torch.optim.SGD(model.parameters(), lr=1.0))
        with self.assertRaises(ValueError):
            made()[2].load(stranger.state())

    def test_a_first_pass_is_undone(self):
        model = small_model()
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        forwards = trainer.Forwards()
        self.loss(model)
        self.assertFalse(torch.equal(before["1.running_mean"], model.state_dict()["1.running_mean"]))
        forwards.undo()
        self.assert_same(before, model.state_dict())

    def test_pushed_statistics_are_changes(self):
        model, _, own = made()
        own.begin()
        own.compute(self.loss(model), 0.5)
        own.finish_push(0.5)
        moved = small_model()
        moved(self.inputs)
        first = own.parameters
        want = 0.5 * moved[1].running_mean  # it was 0
        self.assertTrue(torch.allclose(own.exchanged[first:first + 3], want, atol=1e-6))


class Checkpoints(unittest.TestCase):
    FIELDS = {"job": "test", "run": "test-1", "seed": 1, "data": "4 samples", "sample": 12, "step": 3, "loss": 0.5,
              "ledger": [{"first": 0, "count": 12}]}

    def test_what_was_written_is_read_and_damage_is_seen(self):
        _, _, own = made()
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):  # the second replaces the first
                place = checkpoint.write(folder, own.state(), self.FIELDS)
            self.assertEqual(os.listdir(folder), ["checkpoint-3"])
            state, fields = checkpoint.read(place)
            own.load(state)
            self.assertEqual(fields["sample"], 12)
            self.assertEqual(checkpoint.newest_sample(folder), 12)
            for name in os.listdir(place):
                with open(os.path.join(place, name), "rb") as file:
                    data = file.read()
                for at in range(0, len(data), max(1, len(data) // 50)):
                    with open(os.path.join(place, name), "wb") as file:
                        file.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
                    with self.assertRaises(ValueError, msg="%s at %d" % (name, at)):
                        checkpoint.read(place)
                with open(os.path.join(place, name), "wb") as file:
                    file.write(data)
            checkpoint.read(place)

    def test_a_folder_of_somebody_else_is_not_replaced(self):
        _, _, own = made()
        with tempfile.TemporaryDirectory() as folder:
            place = checkpoint.write(folder, own.state(), self.FIELDS)
            open(os.path.join(place, "notes.txt"), "w", encoding="utf-8").close()
            with self.assertRaises(OSError):
                checkpoint.write(folder, own.state(), self.FIELDS)
            self.assertEqual(os.listdir(folder), ["checkpoint-3"])


class Alone(unittest.TestCase):
    def test_a_script_trains_by_itself(self):
        os.environ.pop("MAYFLY_JOIN", None)
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = [(torch.tensor([float(i)]), torch.tensor([2.0 * i])) for i in range(10)]
        seen = []
        for inputs, labels in mayfly.batches(data, batch=4, epochs=2):
            seen += inputs[:, 0].tolist()
            self.assertTrue(mayfly.step(model, optimizer, ((model(inputs) - labels) ** 2).mean() * 0.01))
            self.assertIsNone(mayfly.notice())
        self.assertEqual(sorted(seen), sorted(list(range(10)) * 2))
        self.assertEqual(mayfly.position(), (20, 5))

    def test_a_batch_without_its_step_is_an_error(self):
        with self.assertRaises(RuntimeError):
            for _ in mayfly.batches([1.0, 2.0], batch=1):
                pass


if __name__ == "__main__":
    unittest.main()
