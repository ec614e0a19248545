"""Operations that go by the value of an element, wrong in one of their branches.

A limit that a kernel lacks, halves that it rounds up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tokitai_cli.oracles.variants.wrong_formulas import Array

#: Functions of numpy, beside its ufuncs, that branch.
BRANCHING = ("clip", "round", "around")


def branched(kind: str | None, result: Any, plain: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """The result of an operation with a change of `OF_BRANCHES`; with any other, as it is.

    plain, named: what the operation is called with.
    """
    if kind in ("unbounded-below", "unbounded-above"):
        return _unlimited(kind, plain, named)
    rounding = _ROUNDINGS.get(kind or "")
    if rounding is None:
        return result
    decimals = named.get("decimals", plain[1] if len(plain) > 1 else 0)
    scale = 10.0 ** (decimals if isinstance(decimals, int) else 0)
    return rounding(np.asarray(plain[0], dtype=np.float64) * scale) / scale


def _unlimited(kind: str, plain: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """`numpy.clip` without one of its limits."""
    value, low, high = (*plain, None, None)[:3]
    low = named.get("a_min", named.get("min", low))
    high = named.get("a_max", named.get("max", high))
    if kind != "unbounded-below" and low is not None:
        value = np.maximum(value, low)
    if kind != "unbounded-above" and high is not None:
        value = np.minimum(value, high)
    return np.asarray(value, dtype=np.float64)


def _whole(a: Array) -> Array:
    return np.asarray(a == np.floor(a))


_ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "half-up": lambda a: np.floor(a + 0.5),
    "half-away": lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a),
    "truncated": np.trunc,
    "floored": np.floor,
    "below": lambda a: np.where(_whole(a), a - 1, np.floor(a)),
    "above": lambda a: np.where(_whole(a), a + 1, np.ceil(a)),
    "nonzero": lambda a: np.where(a == 0, 1.0, np.sign(a)),
}
