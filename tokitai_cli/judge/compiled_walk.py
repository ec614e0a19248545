"""Whether the compiled walk is what numpy's code is, on drawn and special chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native
from tokitai_cli.core.numerics import round_to
from tokitai_cli.judge import native_walk
from tokitai_cli.judge.checks.compared import Compared
from tokitai_cli.judge.checks.output_checks import ResolvedCheck, values_of
from tokitai_cli.judge.checks.reference_tally import BoundTally, part_of_summary
from tokitai_cli.judge.checks.tally import MetricsTally
from tokitai_cli.judge.checks.target import Chunk, Target
from tokitai_cli.judge.roundings import LeanTally

# Rows that no chunk ends with, and elements of a chunk of the check.
_SHAPE = (97, 331)
_SIZE = _SHAPE[0] * _SHAPE[1]
_SIZES = (1e-7, 1e-4, 1.0, 1e3)


def check_native(library: native.Library) -> None:
    """Raise MismatchError for the first field of the first chunk that differs."""
    with native.by(library), np.errstate(all="ignore"):
        for what, target, got, refined in _chunks():
            if not native_walk.can_measure(target):
                raise native.MismatchError(f"the compiled walk does not serve {what}")
            _check(what, target, got, refined)


def _check(
    what: str, target: Target, got: NDArray[Any], refined: NDArray[np.float64] | None
) -> None:
    where = slice(0, target.size)
    metrics, sizes = MetricsTally(target), BoundTally(target)
    one = Compared(Chunk(target, where), got, refined=refined)
    found = native_walk.measured(one, metrics, stride=sizes.stride, leans=True)
    if found is None:
        raise native.MismatchError(f"the compiled walk does not serve {what}")
    chunk = Chunk(target, where)
    other = Compared(chunk, got, refined=refined)
    pairs: dict[str, tuple[Any, Any]] = {
        "metrics": (found.metrics, metrics.measured(other)),
        "summary": (found.summary, part_of_summary(chunk, None)),
        "sizes of the bound": (found.sizes, sizes.measured(chunk)),
        "leaning": (found.leans, LeanTally.measured(other)),
        "misrounded elements": (one.misrounded, other.misrounded),
    }
    for metric in ("bound", "bound-chained", "bound-prob"):
        check = ResolvedCheck(metric, "reference", 1.0, judges=True, note="")
        pairs[metric] = (values_of(check, one), values_of(check, other))
    for name, (left, right) in pairs.items():
        native_walk.require_same(f"{name} of {what}", left, right)


def _chunks() -> Iterator[tuple[str, Target, NDArray[Any], NDArray[np.float64] | None]]:
    """What each is, its target, values of a kernel and errors that other outputs leave."""
    rng = np.random.default_rng(28)
    for dtype in ("float16", "bfloat16", "float32"):
        for size in _SIZES:
            for several in (False, True):
                reference = rng.standard_normal(_SIZE) * size
                reference[::97] = 0.0
                reference[5::101] *= 1e-5
                reference[7::89] = round_to(reference[7::89], dtype)  # what the format holds
                below, above = (np.abs(reference) * rng.random(_SIZE) * 1e-3 for _ in range(2))
                below[::31] = above[::37] = 0.0
                below[:64] = above[:64] = 0.0
                reference[:64] = _ties(dtype)
                noise = rng.uniform(-1.2, 1.2, _SIZE)
                got = round_to(reference + np.where(noise < 0, below, above) * noise, dtype)
                got[:64] = round_to(reference[:64] * (1 + 1e-9 * (-1.0) ** np.arange(64)), dtype)
                target = Target(
                    "y",
                    dtype,
                    _SHAPE,
                    reference,
                    error=np.maximum(below, above),
                    sides=(below, above) if several else None,
                    probable=below / 2 if several else None,
                )
                refined = above / 3 if several else None
                yield f"{dtype} of size {size:g}", target, got, refined


def _ties(dtype: str) -> NDArray[np.float64]:
    """Numbers half way between two of the format."""
    precision = {"float16": 11, "bfloat16": 8, "float32": 24}[dtype]
    steps = np.arange(64) + 2.0 ** (precision - 1)
    return np.asarray((steps + 0.5) * 2.0 ** (2 - precision))
