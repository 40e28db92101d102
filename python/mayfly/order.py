"""In which order the samples of a data set are trained: each epoch is a permutation of its own, drawn from the seed.
The same numbers as src/data/order.cpp, so that workers of both kinds can share a run."""

_MASK = (1 << 64) - 1
_ROUNDS = 6
_BLOCK = 4096  # places whose samples are computed at once
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mixed(number):
    """The finaliser of SplitMix64."""
    z = (number + _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return z ^ (z >> 31)


def _signed(number):
    return number - (1 << 64) if number >> 63 else number


def _mixed_tensor(z):
    # torch has no unsigned 64-bit numbers: products wrap as they should, shifts must lose the sign.
    z = z + _signed(_GOLDEN)
    z = (z ^ ((z >> 30) & ((1 << 34) - 1))) * _signed(_FIRST)
    z = (z ^ ((z >> 27) & ((1 << 37) - 1))) * _signed(_SECOND)
    return z ^ ((z >> 31) & ((1 << 33) - 1))


def reading_of(samples):
    """Tells what has been read from what was not; as in src/data/order.cpp."""
    import torch

    total = int(_mixed_tensor(torch.tensor(samples, dtype=torch.int64)).sum()) if samples else 0
    return (total & _MASK) >> 1


class SampleOrder:
    def __init__(self, size, seed):
        if not 0 < size <= 1 << 62:
            raise ValueError("a data set has samples, this one %d" % size)
        self.size = size
        self._key = mixed(seed)
        self._half = 1
        while self._half < 31 and 1 << (2 * self._half) < size:
            self._half += 1
        self._blocks = {}

    def sample_at(self, place):
        """Places count from the first sample of the run; place // size is the epoch."""
        key = mixed((self._key + place // self.size) & _MASK)
        number = place % self.size
        mask = (1 << self._half) - 1
        while True:  # walking on along the cycle of a number outside the data set comes back inside
            left, right = number >> self._half, number & mask
            for turn in range(_ROUNDS):
                left, right = right, left ^ (mixed((key + (right << 3 | turn)) & _MASK) >> 32 & mask)
            number = left << self._half | right
            if number < self.size:
                return number

    def samples(self, first, count):
        """The samples at places [first, first + count)."""
        found = []
        while count > 0:
            block, at = divmod(first, _BLOCK)
            if block not in self._blocks:
                while len(self._blocks) > 1:
                    self._blocks.pop(next(iter(self._blocks)))
                self._blocks[block] = self._computed(block * _BLOCK)
            found += self._blocks[block][at:at + count]
            taken = min(count, _BLOCK - at)
            first, count = first + taken, count - taken
        return found

    def _computed(self, first):
        import torch

        places = torch.arange(first, first + _BLOCK, dtype=torch.int64)
        epochs = torch.div(places, self.size, rounding_mode="floor")
        keys = _mixed_tensor(epochs + _signed(self._key))
        numbers = places - epochs * self.size
        mask = (1 << self._half) - 1
        outside = torch.ones_like(numbers, dtype=torch.bool)
        while bool(outside.any()):
            number, key = numbers[outside], keys[outside]
            left, right = number >> self._half, number & mask
            for turn in range(_ROUNDS):
                left, right = right, left ^ ((_mixed_tensor(key + (right << 3 | turn)) >> 32) & mask)
            numbers[outside] = left << self._half | right
            outside = numbers >= self.size
        return numbers.tolist()
