"""Constants of rounding error analysis, for float32 accumulation."""

from __future__ import annotations

import math

from tokitai_cli.numerics import FORMATS

UNIT_ROUNDOFF = FORMATS["float32"].unit_roundoff


def gamma(k: int) -> float:
    """gamma_k = k u / (1 - k u); infinite where k u >= 1 (Higham, ASNA 2nd ed., section 3.1)."""
    product = k * UNIT_ROUNDOFF
    return product / (1.0 - product) if product < 1.0 else math.inf


def gamma_probable(k: int, scale: float) -> float:
    """gammaP_k = exp(scale sqrt(k) u + k u^2 / (1 - u)) - 1, `scale` being lambda.

    N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci.
    Comput. 41(5), 2019, A2815-A2835.
    """
    u = UNIT_ROUNDOFF
    return math.expm1(scale * math.sqrt(k) * u + k * u * u / (1.0 - u))
