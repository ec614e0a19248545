"""Cooperative groups and hipCUB on the cpu device: small kernels with exact expected values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.devices.cpu.harness_client import Answer, Buffer, Child, Launch, build, out, read

SOURCE = Path(__file__).parent / "groups.hip"
_LOADS = ("DIRECT", "STRIPED", "TRANSPOSE")
SIGNATURES: dict[str, list[str]] = {
    "groups": ["int32*", "int32*", "int"],
    "tile_sums": ["int32*", "int32*"],
    "warp_primitives<32>": ["int32*", "int32*", "int"],
    "warp_primitives<16>": ["int32*", "int32*", "int"],
    "warp_primitives<6>": ["int32*", "int32*", "int"],
    "block_reductions": ["int32*", "int32*"],
    "block_scans": ["int32*", "int32*", "int"],
    **{
        f"block_transfers<hipcub::BLOCK_LOAD_{one}, hipcub::BLOCK_STORE_{one}>": [
            "int32*", "int32*", "int",
        ]
        for one in _LOADS
    },
    "warp_exchange": ["int32*", "int32*"],
    "block_sorts<int>": ["int32*", "int32*", "int32*", "int"],
    "block_sorts<float>": ["float32*", "float32*", "int32*", "int"],
    "block_neighbours": ["int32*", "int32*", "int"],
    "rocprim_primitives": ["int32*", "int32*", "int"],
    "reused_storage": ["int32*", "int32*"],
    "key_bits": ["float32*", "uint32*"],
}  # fmt: skip
THREADS, ITEMS = 96, 3
SEEDS = [(0xA5, 0), (0x5A, 1), (0xA5, 2), (0x5A, 2**64 - 1)]  # the last: backwards


@pytest.fixture(scope="module", params=[32, 64])
def child(request: pytest.FixtureRequest) -> Iterator[Child]:
    program, done = build(SOURCE, SIGNATURES, (), [f"-DTOKITAI_WARP_SIZE={request.param}"])
    assert done.returncode == 0, done.stderr
    with Child(program, "--threads=2") as running:
        yield running


def answer(
    child: Child, kernel: str, buffers: list[Buffer], *scalars: int, threads: tuple[int, ...]
) -> Answer:
    args = [*(("b", i) for i in range(len(buffers))), *scalars]
    call = Launch(list(SIGNATURES).index(kernel), (1,), threads, args)
    return child.run(buffers, call, SEEDS)


def run(
    child: Child, kernel: str, buffers: list[Buffer], *scalars: int, threads: tuple[int, ...]
) -> list[NDArray[Any]]:
    """Results of the buffers that a kernel writes, the same in every order of threads."""
    got = answer(child, kernel, buffers, *scalars, threads=threads)
    assert (got.status, got.message, got.guards) == (0, "", [])
    for index, array in got.results[0].items():
        for other in got.results[1:]:
            assert array.tobytes() == other[index].tobytes()
    return list(got.results[0].values())


def _drawn(n: int) -> NDArray[np.int32]:
    return np.random.default_rng(5).integers(1, 100, n).astype(np.int32)


def _tiles(x: NDArray[Any], size: int) -> NDArray[Any]:
    return x.reshape(-1, size)


def _spread(values: NDArray[Any], size: int) -> NDArray[Any]:
    return np.repeat(values, size)


def test_cooperative_groups(child: Child) -> None:
    n, x = 64, _drawn(64)
    i, warp = np.arange(n), int(child.hello["warp_size"])
    rank, base, tile = i % 8, i // 8 * 8, _tiles(x, 8)
    bits = 1 << np.arange(8)
    odd = [np.flatnonzero(x[b : b + 8] % 2 == x[j] % 2) + b for j, b in enumerate(base)]
    place = np.array([int(np.flatnonzero(o == j)[0]) for j, o in enumerate(odd)])
    three = [np.flatnonzero(x[b : b + 8] % 3 == x[j] % 3) for j, b in enumerate(base)]
    active = [
        [j for j in range(k // warp * warp, k // warp * warp + warp) if j % 3 == 0] for k in i
    ]
    inside = [list(a).index(k) if k % 3 == 0 else 0 for k, a in enumerate(active)]
    expected = [
        np.full(n, n), i, rank + 800, i // 8, np.full(n, 8), i % 4, i % 16,
        x[base + 3],
        np.where(rank + 2 < 8, x[np.minimum(i + 2, n - 1)], x),
        np.where(rank >= 2, x[np.maximum(i - 2, 0)], x),
        x[i ^ 5],
        _spread((tile == x[8]).any(1), 8), np.ones(n),
        _spread((tile % 2 * bits).sum(1), 8),
        np.array([int((1 << t).sum()) for t in three]),
        _spread(tile.sum(1), 8), _spread(tile.max(1), 8),
        _tiles(x, 4).cumsum(1).ravel(), (tile.cumsum(1) - tile).ravel(),
        6 * x[base + 1],
        np.array([len(o) for o in odd]), place, np.array([x[o[0]] for o in odd]),
        np.array([x[o].sum() for o in odd]),
        np.array([min(2, len(o) - p // 2 * 2) + 10 * (p // 2) for o, p in zip(odd, place, strict=True)]),
        np.array([int(np.flatnonzero(t == r)[0]) for t, r in zip(three, rank, strict=True)]),
        i, np.full(n, n), np.ones(n), rank + 40,
        np.where(i % 3 == 0, [len(a) for a in active], 0), np.array(inside),
        np.array([
            x[a[min(p + 1, len(a) - 1)]] if k % 3 == 0 else 0
            for k, (a, p) in enumerate(zip(active, inside, strict=True))
        ]),
    ]  # fmt: skip
    (got,) = run(child, "groups", [read(x), out((len(expected), n), np.int32)], n, threads=(n,))
    for index, (have, want) in enumerate(zip(got, expected, strict=True)):
        assert have.tolist() == np.asarray(want).astype(int).tolist(), index


def test_a_tile_s_barrier(child: Child) -> None:
    x = _drawn(256)
    (got,) = run(child, "tile_sums", [read(x), out(256, np.int32)], threads=(256,))
    assert np.array_equal(got, _spread(_tiles(x, 32).sum(1), 32))


@pytest.mark.parametrize("width", [32, 16, 6])
def test_warp_primitives(child: Child, width: int) -> None:
    n = {32: 64, 16: 64, 6: 30}[width]
    x = _drawn(n)
    warps = _tiles(x, width)
    lane, none = np.arange(n) % width, np.full(n, -1)
    segments = [x[j : j + min(3, width - lane[j])] for j in range(n)]
    running = warps.cumsum(1).ravel()
    before = running - x
    maxima = np.maximum.accumulate(np.hstack([np.full((len(warps), 1), 7), warps]), 1)[:, :-1]
    expected = [
        np.where(lane == 0, _spread(warps.sum(1), width), none),
        np.where(lane == 0, _spread(warps.max(1), width), none),
        np.where(lane == 0, _spread(warps[:, :3].sum(1), width), none),
        np.where(lane % 3 == 0, [s.sum() for s in segments], none),
        np.where(lane % 3 == 0, [s.min() for s in segments], none),
        running, before, _spread(warps.sum(1), width), maxima.ravel(),
        running, np.where(lane == 0, -5, before), _spread(warps[:, -1], width),
    ]  # fmt: skip
    (got,) = run(
        child, f"warp_primitives<{width}>", [read(x), out((len(expected), n), np.int32)], n,
        threads=(n,),
    )  # fmt: skip
    for index, (have, want) in enumerate(zip(got, expected, strict=True)):
        assert have.tolist() == want.tolist(), index


def test_block_reductions(child: Child) -> None:
    x = _drawn(THREADS)
    (got,) = run(child, "block_reductions", [read(x), out(7, np.int32)], threads=(48, 2))
    best = int(np.argmax(x % 7))
    assert got.tolist() == [x.sum(), x.max(), x[:40].sum(), 6 * x.sum(), x[-1], best, THREADS]


def test_block_scans(child: Child) -> None:
    n, x = THREADS, _drawn(THREADS)
    whole, inclusive = int(x.sum()), x.cumsum()
    exclusive = inclusive - x
    most = np.maximum.accumulate(np.concatenate([[5], x]))[:-1]
    left = np.concatenate([[-1], np.maximum.accumulate(x)[:-1]])
    each = np.repeat(x, 3) * np.tile([1, 2, 3], n)
    sums = (each.cumsum() - each).reshape(n, 3)
    expected = [
        inclusive, exclusive + np.arange(n), np.full(n, whole + n), most, np.full(n, x.max()), left,
        1000 + exclusive, 1000 + whole + inclusive, sums[:, 0], sums[:, 2], np.full(n, 6 * whole),
        np.maximum.accumulate(sums.ravel()).reshape(n, 3)[:, 1],
        1000 + 2 * whole + 3 * inclusive,
        np.where(np.arange(n) == 0, 1000 + 5 * whole, -1),
    ]  # fmt: skip
    (got,) = run(
        child, "block_scans", [read(x), out((len(expected), n), np.int32)], n, threads=(n,)
    )
    for index, (have, want) in enumerate(zip(got, expected, strict=True)):
        assert have.tolist() == np.asarray(want).tolist(), index


@pytest.mark.parametrize("how", _LOADS)
@pytest.mark.parametrize("valid", [THREADS * ITEMS, 200])
def test_block_transfers(child: Child, how: str, valid: int) -> None:
    x = _drawn(THREADS * ITEMS)
    kernel = f"block_transfers<hipcub::BLOCK_LOAD_{how}, hipcub::BLOCK_STORE_{how}>"
    result = Buffer("output", np.empty(len(x), np.int32), zero=True)
    (got,) = run(child, kernel, [read(x), result], valid, threads=(THREADS,))
    loaded = np.where(np.arange(len(x)) < valid, x, -7) * 2
    if how == "STRIPED":  # item j of thread t is element j * threads + t
        order = np.arange(len(x)).reshape(ITEMS, THREADS).T.ravel()
        mine = loaded[order][::-1]
        expected = np.empty_like(mine)
        expected[order] = mine
    else:
        expected = loaded[::-1]
    assert np.array_equal(got[:valid], expected[:valid])
    assert not got[valid:].any()


def test_warp_exchange(child: Child) -> None:
    x = _drawn(THREADS * ITEMS)
    (got,) = run(child, "warp_exchange", [read(x), out(len(x), np.int32)], threads=(THREADS,))
    expected = x.reshape(-1, ITEMS, 16).transpose(0, 2, 1).ravel()
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_block_sorts(child: Child, dtype: Any) -> None:
    n = THREADS * ITEMS
    x = (_drawn(n) - 50).astype(dtype)
    kernel = f"block_sorts<{'int' if dtype is np.int32 else 'float'}>"
    got, places = run(
        child, kernel, [read(x), out((5, n), dtype), out(n, np.int32)], n, threads=(THREADS,)
    )
    ordered = np.sort(x)
    striped = ordered.reshape(ITEMS, THREADS).T.ravel()
    assert np.array_equal(places, np.argsort(x, kind="stable"))
    for row, want in ((0, ordered), (1, ordered[::-1]), (3, ordered[::-1]), (4, striped)):
        assert np.array_equal(got[row], want), row
    low = x.view(np.uint32) & 15
    if dtype is np.float32:  # a negative number's bits are turned over
        low = np.where(x < 0, ~x.view(np.uint32), x.view(np.uint32)) & 15
    assert np.array_equal(got[2], x[np.argsort(low, kind="stable")])


def test_block_neighbours(child: Child) -> None:
    n = THREADS * ITEMS
    x = np.sort(_drawn(n))
    left = np.concatenate([x[:1], x[1:] - x[:-1]])
    firsts = x[::ITEMS]
    offset, rotated = np.full(n, -1), np.full(n, -1)
    offset[::ITEMS][2:] = firsts[:-2]
    rotated[:] = offset
    rotated[1::ITEMS] = np.roll(firsts, -5)
    changes = (x[1:] != x[:-1]).astype(int)
    expected = [
        left, np.concatenate([x[:1] - 1000, left[1:]]),
        np.concatenate([x[:-1] - x[1:], x[-1:]]),
        np.concatenate([[1], changes]), np.concatenate([changes, [1]]),
        np.concatenate([[-1], x[:-1]]), offset, rotated,
        np.bincount(x % 16, minlength=16)[np.arange(n) % 16],
    ]  # fmt: skip
    (got,) = run(
        child,
        "block_neighbours",
        [read(x), out((len(expected), n), np.int32)],
        n,
        threads=(THREADS,),
    )
    for index, (have, want) in enumerate(zip(got, expected, strict=True)):
        assert have.tolist() == want.tolist(), index


def test_rocprim(child: Child) -> None:
    n = THREADS * ITEMS
    x = _drawn(n)
    (got,) = run(
        child, "rocprim_primitives", [read(x), out(n + 3, np.int32)], n, threads=(THREADS,)
    )
    assert got[:n].tolist() == (10 + x.cumsum() - x).tolist()
    assert got[n:].tolist() == [x.sum(), x.max(), x.sum()]


def test_storage_that_is_used_anew_shows_in_some_order(child: Child) -> None:
    x = _drawn(THREADS)
    got = answer(child, "reused_storage", [read(x), out(2, np.int32)], threads=(THREADS,))
    assert (got.status, got.message) == (0, "")
    right = [int(x.sum()), 2 * int(x.sum())]
    assert any(one[1].tolist() != right for one in got.results)


def test_key_bits_have_the_keys_order(child: Child) -> None:
    x = np.array([-np.inf, -3.5, -1e-30, -0.0, 0.0, 1e-30, 2.0, np.inf], np.float32)
    (got,) = run(child, "key_bits", [read(x), out((2, len(x)), np.uint32)], threads=(len(x),))
    assert np.all(np.diff(got[0].astype(np.int64)) > 0)
    assert np.array_equal(got[1], x.view(np.uint32))
