"""Julia's random numbers (before version 1.5), by which the authors drew spins and splits.

    dSFMT-19937: 382 doubles in [1, 2) at a time, each of 52 random bits      (Saito and Matsumoto, 2009)

A number in [0, 1) is the next double less 1. One of 0 .. n - 1 is its lowest bits, drawn again while they are too
large.
"""

from __future__ import annotations

import numpy as np

from residua.linalg.kernels.compiled import compiled
from residua.validation import check_count

PAIRS, OTHER = 191, 117  # pairs of words, and how far apart two that are mixed lie
MASKS = np.uint64(0x000FFAFFFFFFFB3F), np.uint64(0x000FFDFFFC90FFFD)
CHECK, PARITY = (0x90014964B32F4329, 0x3B8D12AC548A7C7A), (0x3D84E1AC0DC82880, 1)
LEFT, RIGHT, HALF = np.uint64(19), np.uint64(12), np.uint64(32)
FRACTION, ONE = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000  # bits of a double in [1, 2)
WORDS = 4 * (PAIRS + 1)
BITS32 = 2**32 - 1


class Julia:
    """The generator after ``Random.seed!(seed)``.

    Examples
    --------
    >>> Julia(1234).permutation(4).tolist()
    [1, 0, 3, 2]
    """

    def __init__(self, seed: int):
        check_count(seed, "seed", 0)
        self.words = _seeded(int(seed))
        self.at = np.array([2 * PAIRS])  # of the words, those that were given out

    def number(self) -> float:
        """Draw a number in [0, 1)."""
        return float(number(self.words, self.at))

    def permutation(self, n: int) -> np.ndarray:
        """Draw a permutation of 0 .. n - 1."""
        return _permutation(self.words, self.at, n)


def _seeded(seed: int) -> np.ndarray:
    """(384,) the state that dSFMT's ``init_by_array`` makes of the 32-bit digits of the seed."""
    digits = [seed >> shift & BITS32 for shift in range(0, max(seed.bit_length(), 1), 32)]
    s = [0x8B8B8B8B] * WORDS
    middle, further = (WORDS - 11) // 2, (WORDS - 11) // 2 + 11

    def around(i: int) -> tuple[int, int, int]:
        return (i + middle) % WORDS, (i + further) % WORDS, i - 1

    for i in range(WORDS):
        near, far, last = around(i)
        r = s[i] ^ s[near] ^ s[last]
        r = (r ^ r >> 27) * 1664525 & BITS32
        s[near] = s[near] + r & BITS32
        r += len(digits) if i == 0 else i + (digits[i - 1] if i <= len(digits) else 0)
        s[far] = s[far] + r & BITS32
        s[i] = r & BITS32
    for i in range(WORDS):
        near, far, last = around(i)
        r = s[i] + s[near] + s[last] & BITS32
        r = (r ^ r >> 27) * 1566083941 & BITS32
        s[near] ^= r
        r = r - i & BITS32
        s[far] ^= r
        s[i] = r
    words = [low | high << 32 for low, high in zip(s[::2], s[1::2], strict=True)]
    words[:-2] = [word & FRACTION | ONE for word in words[:-2]]
    final = zip(words[-2:], CHECK, PARITY, strict=True)
    odd = sum(((word ^ check) & parity).bit_count() for word, check, parity in final)
    words[-1] ^= 1 - odd % 2  # else the period might be short
    return np.array(words, np.uint64)


@compiled
def _advance(words):
    low, high = words[2 * PAIRS], words[2 * PAIRS + 1]
    for k in range(PAIRS):
        other = 2 * ((k + OTHER) % PAIRS)
        a, b = words[2 * k], words[2 * k + 1]
        low, high = (
            a << LEFT ^ high >> HALF ^ high << HALF ^ words[other],
            b << LEFT ^ low >> HALF ^ low << HALF ^ words[other + 1],
        )
        words[2 * k] = low >> RIGHT ^ low & MASKS[0] ^ a
        words[2 * k + 1] = high >> RIGHT ^ high & MASKS[1] ^ b
    words[2 * PAIRS], words[2 * PAIRS + 1] = low, high


@compiled
def _next(words, at):
    """Draw 52 random bits."""
    if at[0] == 2 * PAIRS:
        _advance(words)
        at[0] = 0
    at[0] += 1
    return words[at[0] - 1] & np.uint64(FRACTION)


@compiled
def number(words, at):
    return _next(words, at) * 2.0**-52


@compiled
def below(words, at, n, mask):
    """Draw one of 0 .. n - 1; ``mask`` is a 2^k - 1 not below n - 1, and decides how often a number is drawn again."""
    while True:
        drawn = np.int64(_next(words, at) & np.uint64(mask))
        if drawn < n:
            return drawn


@compiled
def _permutation(words, at, n):
    order = np.zeros(n, np.int64)
    mask = 3
    for i in range(1, n):
        j = below(words, at, i + 1, mask)
        order[i] = order[j]
        order[j] = i
        if i == mask:
            mask = 2 * mask + 1
    return order
