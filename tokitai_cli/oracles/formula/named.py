"""Functions that kernels use and numpy lacks: float64 on plain arrays, their rule on tracked ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokitai_cli.oracles.formula import unary
from tokitai_cli.oracles.formula.parts import Rule, elementwise
from tokitai_cli.oracles.formula.tracked import Tracked
from tokitai_cli.oracles.formula.twofold import on_both


def _by(rule: Rule, a: Tracked) -> Tracked:
    with np.errstate(all="ignore"):
        return Tracked(elementwise(rule, a.parts))


@on_both
def erf(x: Any) -> Any:
    """Error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, as erff."""
    return _by(unary.erf, x) if isinstance(x, Tracked) else unary.erf_of(x)


@on_both
def rsqrt(x: Any) -> Any:
    """1 / sqrt(x) by one function, as rsqrtf."""
    if isinstance(x, Tracked):
        return _by(unary.rsqrt, x)
    return 1.0 / np.sqrt(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), computed in this way."""
    return 1.0 / (1.0 + np.exp(-x))
