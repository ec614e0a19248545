"""hipRAND's generators and thrust's device parts on the cpu device, by value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import Buffer, Child, Launch, build, compile_errors, out, read

SOURCE = Path(__file__).parent / "libraries.hip"
_RANDOM = ["uint64*", "uint32*", "float32*", "float64*", "int"]
SIGNATURES: dict[str, list[str]] = {
    "random_numbers<hiprandState>": _RANDOM,
    "random_numbers<hiprandStatePhilox4_32_10_t>": _RANDOM,
    "cuda_random_numbers<curandState>": ["uint64*", "float64*"],
    "cuda_random_numbers<curandStatePhilox4_32_10_t>": ["uint64*", "float64*"],
    "complex_numbers": ["float32*", "float32*", "int"],
    "thread_algorithms": ["int32*", "int32*"],
}
WORD = 0xFFFFFFFF
# Seed, sequence and offset.
STARTS = [(0, 0, 0), (1234, 5, 7), (2**63 + 12345, 2**40 + 3, 2**33 + 2), (7, 1, 4 * 2**32 - 1)]


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    program, done = build(SOURCE, SIGNATURES)
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def run(
    child: Child, kernel: str, buffers: list[Buffer], *scalars: int, threads: int = 1
) -> list[NDArray[Any]]:
    args = [*(("b", i) for i in range(len(buffers))), *scalars]
    answer = child.run(buffers, Launch(list(SIGNATURES).index(kernel), (1,), (threads,), args))
    assert (answer.status, answer.message, answer.guards) == (0, "", [])
    return list(answer.results[0].values())


def _philox(key: list[int], counter: int) -> list[int]:
    """Ten rounds, as Random123 has them."""
    c = [counter >> 32 * i & WORD for i in range(4)]
    k = list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & WORD, first >> 32 ^ c[3] ^ k[1], first & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


def _philox_numbers(seed: int, sequence: int, offset: int) -> Callable[[int], int]:
    """Number n of a sequence."""
    key = [seed & WORD, seed >> 32]

    def number(n: int) -> int:
        place = offset + n
        counter = (place // 4 + (sequence << 64)) % 2**128
        return _philox(key, counter)[place % 4]

    return number


def _step_matrix() -> NDArray[np.uint8]:
    """XORWOW's step over its 160 bits: column i is what bit i becomes."""
    columns = []
    for bit in range(160):
        x = [(1 << bit) >> 32 * w & WORD for w in range(5)]
        t = x[0] ^ x[0] >> 2
        last = (x[4] ^ x[4] << 4 ^ t ^ t << 1) & WORD
        whole = sum(word << 32 * w for w, word in enumerate([*x[1:], last]))
        columns.append([whole >> i & 1 for i in range(160)])
    return np.array(columns, np.uint8).T


@functools.cache
def _squared(times: int) -> NDArray[Any]:
    """The step's matrix after `times` squarings; float64 holds its sums of 160 bits, and is fast."""
    if times == 0:
        return _step_matrix().astype(np.float64)
    half = _squared(times - 1)
    return np.asarray(half @ half % 2)


def _stepped(bits: NDArray[np.uint8], steps: int) -> NDArray[Any]:
    """A state of XORWOW after so many steps."""
    state: NDArray[Any] = bits.astype(np.float64)
    for place in range(steps.bit_length()):
        if steps >> place & 1:
            state = _squared(place) @ state % 2
    return state


def _xorwow_numbers(seed: int, sequence: int, offset: int) -> Callable[[int], int]:
    t0 = 1228688033 * ((seed & WORD) ^ 0x2C7F967F) & WORD
    t1 = 2073658381 * ((seed >> 32) ^ 0xA03697CB) & WORD
    words = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
    bits = np.array([(word & WORD) >> i & 1 for word in words for i in range(32)], np.uint8)

    def number(n: int) -> int:
        steps = offset + n + 1
        state = _stepped(bits, (sequence << 67) + steps)
        last = sum(int(bit) << i for i, bit in enumerate(state[128:]))
        return (last + 6615241 + t1 + t0 + 362437 * steps) & WORD

    return number


def _uniform(x: int) -> np.float32:
    return np.float32(2.0**-32) + np.float32(x) * np.float32(2.0**-32)


def test_philox_gives_the_numbers_of_its_authors() -> None:
    assert _philox([0, 0], 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    pi = 0x0370734413198A2E85A308D3243F6A88
    assert _philox([0xA4093822, 0x299F31D0], pi) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


@pytest.mark.parametrize(
    ("kernel", "numbers"),
    [
        ("random_numbers<hiprandState>", _xorwow_numbers),
        ("random_numbers<hiprandStatePhilox4_32_10_t>", _philox_numbers),
    ],
)
def test_random_numbers(
    child: Child, kernel: str, numbers: Callable[[int, int, int], Callable[[int], int]]
) -> None:
    n = len(STARTS)
    raw, floats, doubles = run(
        child, kernel,
        [
            read(np.array(STARTS, np.uint64)), out((8, n), np.uint32), out((10, n), np.float32),
            out((3, n), np.float64),
        ],
        n, threads=n,
    )  # fmt: skip
    for i, (seed, sequence, offset) in enumerate(STARTS):
        number = numbers(seed, sequence, offset)
        x = [number(k) for k in range(6)]
        assert raw[:6, i].tolist() == x
        assert raw[6, i] == number(6 + 1000003)
        later = numbers(seed, sequence + 3, offset)
        assert raw[7, i] == later(7 + 1000003)
        assert floats[:5, i].tolist() == [_uniform(one) for one in x[:5]]
        single, whole = [float(_uniform(one)) for one in x], 2 * np.pi / 2**32
        lengths = [np.sqrt(-2 * np.log(one)) for one in single]
        angles = [whole * (one + 1) for one in x]
        normal = [
            lengths[0] * np.sin(angles[1]), lengths[0] * np.cos(angles[1]),
            lengths[2] * np.sin(angles[3]), lengths[2] * np.cos(angles[3]),
        ]  # fmt: skip
        assert np.allclose(floats[5:9, i], normal, rtol=2e-6, atol=2e-6)
        assert np.isclose(floats[9, i], np.exp(0.5 + 2 * normal[0]), rtol=2e-5)
        assert doubles[0, i] == 2.0**-53 * (1 + (x[0] | x[1] >> 11 << 32))
        u, v = (2.0**-53 * (1 + (x[k] ^ x[k + 1] << 21)) for k in (0, 2))
        pair = np.sqrt(-2 * np.log(u)) * np.array([np.sin(2 * np.pi * v), np.cos(2 * np.pi * v)])
        assert np.allclose(doubles[1:, i], pair, rtol=1e-12, atol=1e-12)


def test_other_generators_are_refused_by_name(tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    text = "#include <hiprand/hiprand_kernel.h>\n__global__ void k() { hiprandStateSobol32_t s; }\n"
    source.write_text(text)
    errors = compile_errors(source, {"k": []})
    assert "has the XORWOW and Philox4x32-10 generators of hipRAND and" in errors


@pytest.mark.parametrize("state", ["curandState", "curandStatePhilox4_32_10_t"])
def test_random_numbers_are_those_that_curand_gave(child: Child, state: str) -> None:
    lines = SOURCE.with_name("curand_numbers.txt").read_text("utf-8").splitlines()
    rows = [words[1:] for words in map(str.split, lines) if words[0] == state]
    starts = np.array([[int(one) for one in words[:3]] for words in rows], np.uint64)
    told = [
        [float.fromhex(one) if "x" in one else float(one) for one in words[3:]] for words in rows
    ]
    (got,) = run(
        child, f"cuda_random_numbers<{state}>",
        [read(starts), out((len(rows), 19), np.float64)], threads=len(rows),
    )  # fmt: skip
    exact = [*range(11), 14, 15]
    assert got[:, exact].tolist() == np.array(told)[:, exact].tolist()
    assert np.allclose(got, told, rtol=2e-6, atol=2e-6)
    assert np.allclose(got[:, 16:18], np.array(told)[:, 16:18], rtol=1e-12, atol=1e-12)


def test_complex_numbers(child: Child) -> None:
    draw = np.random.default_rng(2)
    n = 16
    given = draw.normal(size=(2, n, 2)).astype(np.float32)
    (got,) = run(child, "complex_numbers", [read(given), out((14, n, 2), np.float32)], n, threads=n)
    a, b = (one[:, 0].astype(np.float64) + 1j * one[:, 1] for one in given)
    expected = [
        a + b, a - 2, a * b, a / b, 1 / a, -a, a.conj(), abs(a) + 1j * abs(b) ** 2, np.exp(a),
        np.sqrt(b), np.full(n, 2 * np.exp(0.5j)), a**2, a * b + 1 - a, np.ones(n),
    ]  # fmt: skip
    assert np.allclose(got[..., 0] + 1j * got[..., 1], expected, rtol=1e-5, atol=1e-5)


def test_algorithms_of_one_thread(child: Child) -> None:
    given = np.array([5, 3, 8, 9, 1, 7, 5, 2], np.int32)
    (got,) = run(child, "thread_algorithms", [read(given), out(16, np.int32)])
    assert got.tolist() == [1, 2, 3, 5, 5, 7, 8, 9, 1, 9, 40, 9, 7, 4, 2, 16]
