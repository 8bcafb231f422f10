"""Damage to bytes and to JSON values, drawn from a generator: the same seed does the same damage."""

import json
import re

import numpy as np

HOSTILE_BYTES = (
    b"\x00",
    b"\x00" * 300,
    b"\xff\xfe",
    b"\xc3\x28",  # not UTF-8
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\r",
    b"\n\n",
    b'"',
    b'""""',
    b",",
    b";",
    b"\t",
    b"-",
    b"nan",
    b"-inf",
    b"1e999",
    b"9" * 40,
    b"0x10",
    b"\xe2\x80\xa8",  # a line break of Unicode
    b"\x1b[2J",
    b"[" * 3000,
    b"<script>alert(1)</script>",
    b"../../../etc/passwd",
    b"\x85",
    b"\x1a",
    b"x" * 140_000,  # more than Python's csv takes for one cell
)
HOSTILE_VALUES = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    1.5,
    -0.0,
    1e308,
    5e-324,
    "",
    "nan",
    "inf",
    "\x00",
    "\ud800",
    "a\nb",
    "x" * 5000,
    [],
    [[]],
    [None],
    [1, "a", None],
    {},
    {"": None},
    {"type": "Polygon"},
)
NUMBER = re.compile(rb"\d+")


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes after one to three changes."""
    for _ in range(rng.integers(1, 4)):
        change = CHANGES[rng.integers(len(CHANGES))]
        data = change(data, rng)
    return data


def _place(data: bytes, rng: np.random.Generator) -> int:
    """Anywhere, but often near an end, where headers and directories are."""
    near = min(len(data), 64)
    where = rng.integers(4)
    if where == 0:
        return int(rng.integers(near + 1))
    if where == 1:
        return len(data) - int(rng.integers(near + 1))
    return int(rng.integers(len(data) + 1))


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: _place(data, rng)]


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(rng.integers(1, 9)):
        changed[_place(data, rng) % len(data)] ^= 1 << rng.integers(8)
    return bytes(changed)


def _overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = _place(data, rng), int(rng.integers(1, 9))
    return data[:at] + rng.bytes(size) + data[at + size :]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    at = _place(data, rng)
    return data[:at] + HOSTILE_BYTES[rng.integers(len(HOSTILE_BYTES))] + data[at:]


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + int(rng.integers(1, 200)) :]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    at, size = _place(data, rng), int(rng.integers(1, 500))
    return data[:at] + data[at : at + size] * int(rng.integers(2, 5)) + data[at + size :]


def _swap(data: bytes, rng: np.random.Generator) -> bytes:
    first, second = sorted((_place(data, rng), _place(data, rng)))
    return data[:first] + data[second:] + data[first:second]


def _renumber(data: bytes, rng: np.random.Generator) -> bytes:
    """Another number in place of one that is written in digits."""
    found = list(NUMBER.finditer(data))
    if not found:
        return _overwrite(data, rng)
    numbers = (
        b"0",
        b"-1",
        b"999999999999",
        b"9" * 25,
        b"1e308",
        b"1e-320",
        b"nan",
        b"",
        b"00",
        b"1_000",
        b"2147483648",
    )
    at = found[rng.integers(len(found))]
    return data[: at.start()] + numbers[rng.integers(len(numbers))] + data[at.end() :]


CHANGES = (_cut, _flip, _overwrite, _insert, _remove, _repeat, _swap, _renumber)


def damaged_json(data: bytes, rng: np.random.Generator) -> bytes:
    """JSON in which some values are others, missing or twice, still JSON."""
    value = json.loads(data)
    for _ in range(rng.integers(1, 4)):
        value = _changed_value(value, rng)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed_value(value: object, rng: np.random.Generator, depth: int = 0) -> object:
    """One value somewhere inside is replaced; the deeper, the likelier to stop."""
    inside = isinstance(value, dict | list) and len(value) > 0
    if not inside or rng.random() < 0.1 * depth:
        if rng.random() < 0.1:
            return json.loads("[" * 500 + "]" * 500)
        return HOSTILE_VALUES[rng.integers(len(HOSTILE_VALUES))]
    if isinstance(value, dict):
        keys = list(value)
        key = keys[rng.integers(len(keys))]
        if rng.random() < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        return value | {key: _changed_value(value[key], rng, depth + 1)}
    at = int(rng.integers(len(value)))
    if rng.random() < 0.1:
        return value[:at] + value[at + 1 :] if rng.random() < 0.5 else [*value, value[at]]
    return [*value[:at], _changed_value(value[at], rng, depth + 1), *value[at + 1 :]]
