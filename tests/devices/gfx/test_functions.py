"""The device functions of kernels/gfx against float64, over the whole range of floats."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tokitai_cli.core import resources

HERE = Path(__file__).parent
POINTER = ctypes.POINTER(ctypes.c_float)
# What kernels/gfx/tokitai_gfx/functions.hpp states, in ulp.
STATED = {
    "tanh": 2, "erf": 2, "sin": 2, "cos": 2, "tan": 4, "log1p": 3, "expm1": 3, "atan": 3,
    "asin": 4, "acos": 4, "sinh": 3, "cosh": 3, "cbrt": 2, "pow": 2, "arctan2": 3, "hypot": 2,
    "arcsinh": 4, "arccosh": 4, "arctanh": 4, "fmod": 0,
}  # fmt: skip
NUMPY = {"atan": "arctan", "asin": "arcsin", "acos": "arccos", "pow": "power"}
OF_TWO = {"pow", "arctan2", "hypot", "fmod"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = next(
        (found for name in ("clang++", "clang++-19", "g++") if (found := shutil.which(name))), None
    )
    if compiler is None:
        pytest.skip("no C++ compiler")
    target = tmp_path_factory.mktemp("functions") / "functions.so"
    argv = [compiler, "-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-mfma"]
    argv += ["-shared", "-fPIC", f"-I{resources.kernels_dir() / 'gfx'}", "-w"]
    subprocess.run([*argv, str(HERE / "functions.cpp"), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def called(library: ctypes.CDLL, name: str, *given: NDArray[np.float32]) -> NDArray[np.float32]:
    x, y = given[0], given[-1]
    z = np.empty_like(x)
    pointers = [one.ctypes.data_as(POINTER) for one in (x, y, z)]
    getattr(library, f"call_{name}")(*pointers, ctypes.c_long(x.size))
    return z


def reference(name: str) -> Callable[..., NDArray[Any]]:
    if name == "erf":
        return np.vectorize(math.erf, otypes=[np.float64])
    found: Callable[..., NDArray[Any]] = getattr(np, NUMPY.get(name, name))
    return found


def floats(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    """Floats of every exponent, and as many of moderate size."""
    bits = rng.integers(0, 1 << 32, count // 2, dtype=np.uint32).view(np.float32)
    return np.concatenate(
        [bits[np.isfinite(bits)], rng.normal(0, 3, count // 2).astype(np.float32)]
    )


@pytest.mark.parametrize("name", STATED)
def test_stated_ulp(library: ctypes.CDLL, name: str) -> None:
    rng = np.random.default_rng(7)
    x = floats(rng, 400_000 if name != "erf" else 100_000)
    given = [x]
    if name in OF_TWO:
        given.append(rng.permutation(x))
        if name == "pow":  # most of all powers are 0 or infinite
            given = [np.abs(x) + np.float32(0), rng.normal(0, 20, x.size).astype(np.float32)]
    with np.errstate(all="ignore"):
        exact = reference(name)(*(one.astype(np.float64) for one in given))
        rounded = exact.astype(np.float32)
        got = called(library, name, *given)
        unit = np.spacing(np.maximum(np.abs(rounded), np.float32(2.0**-126))).astype(np.float64)
        plain = np.isfinite(rounded)
        error = np.where(plain, np.abs(got.astype(np.float64) - exact) / unit, 0)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= STATED[name], (error[worst], [one[worst] for one in given], got[worst])
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    edge = ~plain & ~same  # at the very end of the range an ulp may be the way to infinity
    assert np.all(np.abs(got[edge]) > 3.4028e38), [one[edge][:3] for one in given]


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, math.inf, -math.inf, math.nan, 1e-45,
     -1e-45, 3.4e38, -3.4e38, 1e30],
    np.float32,
)  # fmt: skip


@pytest.mark.parametrize("name", STATED)
def test_special_values(library: ctypes.CDLL, name: str) -> None:
    given = [SPECIAL]
    if name in OF_TWO:
        grid = np.meshgrid(SPECIAL, SPECIAL)
        given = [np.ascontiguousarray(one.ravel()) for one in grid]
    with np.errstate(all="ignore"):
        want = reference(name)(*(one.astype(np.float64) for one in given)).astype(np.float32)
        got = called(library, name, *given)
        close = np.isclose(got, want, rtol=1e-6, atol=0, equal_nan=True)
        close |= np.isclose(got, want, rtol=0, atol=3e-45)
    # Powers to the largest floats, and sums of their squares, end where rounding has them end.
    assert close.all(), [(one[~close][:5], got[~close][:5], want[~close][:5]) for one in given]
    signs = (want == 0) & (np.signbit(got) != np.signbit(want)) & (got == 0)
    assert not signs.any(), [one[signs] for one in given]
