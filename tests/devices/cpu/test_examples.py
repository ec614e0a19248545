"""Kernels of the kinds that AMD's public HIP examples show, on every schedule and warp size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.devices.cpu.harness_client import ROOT, Buffer, Child, Launch, build, out, read

EXAMPLES = ROOT / "tests" / "kernels" / "examples"
NAMES = ["reduction", "transpose", "prefix_sum", "histogram", "convolution", "bitonic_sort"]
SIGNATURES: dict[str, list[str]] = {
    "reduce_sum": ["int32*", "int32*", "int"],
    "transpose<float, 32>": ["float32*", "float32*", "int", "int"],
    "transpose<unsigned char, 16>": ["uint8*", "uint8*", "int", "int"],
    "scan_blocks": ["int32*", "int32*", "int32*", "int"],
    "scan_sums": ["int32*", "int"],
    "add_sums": ["int32*", "int32*", "int"],
    "histogram_of_bytes": ["uint8*", "uint32*", "int"],
    "convolve": ["float32*", "float32*", "int", "int"],
    "bitonic_sort_blocks": ["uint32*"],
    "bitonic_step": ["uint32*", "int", "int"],
}
SCHEDULE = [(0xA5, 0), (0x5A, 1), (0xA5, 2), (0x5A, 3)]


@pytest.fixture(scope="module", params=[32, 64])
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    """One harness for all examples, which have no names in common."""
    source = Path(__file__).parent / "examples.hip"
    program, done = build(
        source, SIGNATURES, [("convolution_mask", "float32")],
        [f"-DTOKITAI_WARP_SIZE={request.param}"],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def call(kernel: str, grid: Any, block: Any, args: list[Any], shared: int = 0) -> Launch:
    return Launch(list(SIGNATURES).index(kernel), grid, block, args, shared)


def outcomes(child: Child, buffers: list[Buffer], launches: list[Launch], index: int) -> Any:
    """The buffer, once from each repetition."""
    answer = child.run(buffers, launches, SCHEDULE)
    assert (answer.status, answer.message) == (0, "")
    assert answer.guards == []
    assert all(changed == (0, 0) for changed in answer.inputs_changed)
    return [repetition[index] for repetition in answer.results]


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.mark.parametrize(("n", "block"), [(1, 64), (1000, 128), (20_001, 1024), (4096, 256)])
def test_reduction(child: Child, generator: np.random.Generator, n: int, block: int) -> None:
    data = generator.integers(-1000, 1000, n).astype(np.int32)
    buffers = [read(data), out(1, np.int32, zero=True)]
    launch = call("reduce_sum", (7,), (block,), [("b", 0), ("b", 1), n], 4 * block)
    for total in outcomes(child, buffers, [launch], 1):
        assert total[0] == data.sum()


@pytest.mark.parametrize(
    ("kernel", "tile", "dtype"),
    [("transpose<float, 32>", 32, "f4"), ("transpose<unsigned char, 16>", 16, "u1")],
)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (32, 32), (45, 100), (97, 33)])
def test_transpose(
    child: Child, kernel: str, tile: int, dtype: str, rows: int, columns: int
) -> None:
    data = np.arange(rows * columns).astype(dtype).reshape(rows, columns)
    grid = (-(-columns // tile), -(-rows // tile))
    launch = call(kernel, grid, (tile, 8), [("b", 0), ("b", 1), rows, columns])
    for turned in outcomes(child, [read(data), out((columns, rows), dtype)], [launch], 1):
        assert np.array_equal(turned, data.T)


@pytest.mark.parametrize(("n", "block"), [(1, 32), (1000, 96), (5000, 256), (100_000, 1024)])
def test_prefix_sum(child: Child, generator: np.random.Generator, n: int, block: int) -> None:
    data = generator.integers(-50, 50, n).astype(np.int32)
    blocks = -(-n // block)
    buffers = [
        read(data), out(n, np.int32), Buffer("workspace", np.empty(blocks, np.int32)),
    ]  # fmt: skip
    launches = [
        call("scan_blocks", (blocks,), (block,), [("b", 0), ("b", 1), ("b", 2), n]),
        call("scan_sums", (1,), (1024,), [("b", 2), blocks]),
        call("add_sums", (blocks,), (block,), [("b", 1), ("b", 2), n]),
    ]
    for sums in outcomes(child, buffers, launches, 1):
        assert np.array_equal(sums, np.cumsum(data))


@pytest.mark.parametrize("n", [0, 1, 255, 30_000])
def test_histogram(child: Child, generator: np.random.Generator, n: int) -> None:
    data = (generator.integers(0, 256, n) * generator.integers(0, 2, n)).astype(np.uint8)
    buffers = [read(data), out(256, np.uint32, zero=True)]
    launch = call("histogram_of_bytes", (9,), (192,), [("b", 0), ("b", 1), n])
    for bins in outcomes(child, buffers, [launch], 1):
        assert np.array_equal(bins, np.bincount(data, minlength=256))


@pytest.mark.parametrize(("width", "height"), [(1, 1), (16, 16), (37, 21)])
def test_convolution(child: Child, generator: np.random.Generator, width: int, height: int) -> None:
    # Small integers, whose sums are exact in any order.
    image = generator.integers(-8, 9, (height, width)).astype(np.float32)
    mask = generator.integers(-4, 5, (5, 5)).astype(np.float32)
    padded = np.pad(image, 2)
    want = sum(
        mask[j, i] * padded[j : j + height, i : i + width] for j in range(5) for i in range(5)
    )
    buffers = [read(image), out((height, width), np.float32), Buffer("symbol", mask)]
    launch = call(
        "convolve",
        (-(-width // 16), -(-height // 16)),
        (16, 16),
        [("b", 0), ("b", 1), width, height],
    )
    for got in outcomes(child, buffers, [launch], 1):
        assert np.array_equal(got, want)


@pytest.mark.parametrize(("n", "block"), [(2, 1), (256, 128), (8192, 256)])
def test_bitonic_sort(child: Child, generator: np.random.Generator, n: int, block: int) -> None:
    data = generator.integers(0, 2**32, n, np.uint32)
    launches = [call("bitonic_sort_blocks", (n // (2 * block),), (block,), [("b", 0)], 8 * block)]
    length = 4 * block
    while length <= n:
        stride = length // 2
        while stride:
            launches.append(
                call("bitonic_step", (n // (2 * block),), (block,), [("b", 0), length, stride])
            )
            stride //= 2
        length *= 2
    for values in outcomes(child, [Buffer("inout", data)], launches, 0):
        assert np.array_equal(values, np.sort(data))


def test_each_example_stands_alone() -> None:
    """The collection includes every example, so that none is left untested."""
    included = (Path(__file__).parent / "examples.hip").read_text()
    assert sorted(path.stem for path in EXAMPLES.glob("*.hip")) == sorted(NAMES)
    assert all(f'#include "../../kernels/examples/{name}.hip"' in included for name in NAMES)
