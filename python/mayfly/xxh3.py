"""XXH3 (64 bits, seed 0) of more than 240 bytes: the checksum of checkpoints. docs/formats.md#checkpoint

The long form mixes stripes of 64 bytes into eight sums and stirs these after each block of 1024 bytes. Sums within a
block do not depend on each other, so torch adds up all blocks at once; only the stirring goes one by one."""
import struct

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_MASK = (1 << 64) - 1
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P64_4, _P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_STRIPE, _BLOCK = 64, 1024
_STRIPES = (len(_SECRET) - _STRIPE) // 8  # of a block
SHORTEST = 241


def _words(secret_at, count=8):
    return struct.unpack_from("<%dQ" % count, _SECRET, secret_at)


def _stripe_sums(data, secret_at):
    """What one stripe adds to the eight sums."""
    sums = [0] * 8
    for i, (word, secret) in enumerate(zip(struct.unpack("<8Q", data), _words(secret_at))):
        keyed = word ^ secret
        sums[i ^ 1] += word
        sums[i] += (keyed & 0xFFFFFFFF) * (keyed >> 32)
    return sums


def _block_sums(data, blocks):
    """The same of whole blocks, as rows of eight signed numbers."""
    import torch

    words = torch.frombuffer(bytearray(data[:blocks * _BLOCK]), dtype=torch.int64).view(blocks, _STRIPES, 8)
    secret = torch.tensor([struct.unpack_from("<8q", _SECRET, 8 * stripe) for stripe in range(_STRIPES)])
    keyed = words ^ secret
    products = (keyed & 0xFFFFFFFF) * ((keyed >> 32) & 0xFFFFFFFF)
    swapped = words.view(blocks, _STRIPES, 4, 2).flip(3).reshape(blocks, _STRIPES, 8)
    return (products + swapped).sum(1).tolist()


def _folded(a, b):
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def xxh3(data):
    """Of bytes; at least SHORTEST of them."""
    length = len(data)
    if length < SHORTEST:
        raise ValueError("%d bytes, want at least %d" % (length, SHORTEST))
    sums = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    blocks = (length - 1) // _BLOCK
    scramble = _words(len(_SECRET) - _STRIPE)
    for row in _block_sums(data, blocks) if blocks else ():
        for i in range(8):
            total = (sums[i] + row[i]) & _MASK
            sums[i] = ((total ^ (total >> 47) ^ scramble[i]) * _P32_1) & _MASK
    last = (length - 1 - _BLOCK * blocks) // _STRIPE
    parts = [_stripe_sums(data[at:at + _STRIPE], 8 * n)
             for n, at in ((n, _BLOCK * blocks + n * _STRIPE) for n in range(last))]
    parts.append(_stripe_sums(data[length - _STRIPE:], len(_SECRET) - _STRIPE - 7))
    for part in parts:
        sums = [(total + more) & _MASK for total, more in zip(sums, part)]
    result = length * _P64_1
    secret = _words(11)
    for i in range(4):
        result += _folded(sums[2 * i] ^ secret[2 * i], sums[2 * i + 1] ^ secret[2 * i + 1])
    result &= _MASK
    result = ((result ^ (result >> 37)) * 0x165667919E3779F9) & _MASK
    return result ^ (result >> 32)
