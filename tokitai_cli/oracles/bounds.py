"""Constants of rounding error analysis, for float32 accumulation."""

from __future__ import annotations

import math

from tokitai_cli.dtypes import FORMATS
from tokitai_cli.errors import Location, NotRunError, SpecError
from tokitai_cli.expressions import evaluate
from tokitai_cli.model.case import Case

UNIT_ROUNDOFF = FORMATS["float32"].unit_roundoff


def gamma(k: int) -> float:
    """gamma_k = k u / (1 - k u); infinite where k u >= 1 (Higham, ASNA 2nd ed., section 3.1)."""
    product = k * UNIT_ROUNDOFF
    return product / (1.0 - product) if product < 1.0 else math.inf


def compound(h: int, k: int) -> float:
    """G(h, k) = gamma_h + gamma_k + gamma_h gamma_k: a sum's h additions and k further roundings.

    (1 + theta_h)(1 + theta_k) - 1, which is at most gamma_(h+k) (Higham, ASNA 2nd ed., Lemma 3.3).
    """
    sums, others = gamma(h), gamma(k)
    return sums + others + sums * others


def gamma_probable(k: int, scale: float) -> float:
    """gammaP_k = exp(scale sqrt(k) u + k u^2 / (1 - u)) - 1, `scale` being lambda.

    N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci.
    Comput. 41(5), 2019, A2815-A2835.
    """
    u = UNIT_ROUNDOFF
    return math.expm1(scale * math.sqrt(k) * u + k * u * u / (1.0 - u))


def is_welford(case: Case) -> bool:
    """Whether the variant claims to update mean and variance together."""
    reduction = case.variant.reduction
    return reduction == "welford" if isinstance(reduction, str) else reduction.welford


def additions(case: Case, terms: int, output: str = "") -> int:
    """h, the additions on the longest path of a sum of `terms` terms: n - 1, or the spec's tree.

    `output` chooses among the trees of a spec whose outputs have sums of several lengths. SpecError
    for a tree that cannot add so many terms, NotRunError where float32 leaves no bound.
    """
    reduction = case.variant.reduction
    steps = max(0, terms - 1)
    if not isinstance(reduction, str):
        own = output in reduction.outputs
        key = f"outputs.{output}" if own else "tree"
        text = reduction.outputs[output] if own else reduction.tree
        steps = int(evaluate(text, case.shape))
        least = math.ceil(math.log2(terms)) if terms > 1 else 0
        if steps < least:
            raise SpecError(
                f"no tree adds {terms} terms with {steps} additions on its longest path",
                where=Location(
                    file=case.loaded.path, key=f"variants.{case.variant_name}.reduction.{key}"
                ),
                mend=f"at least {least} are needed",
            )
    if steps * UNIT_ROUNDOFF > 0.25:
        raise NotRunError(f"a float32 sum of {terms} terms has no error bound", mend="shorten it")
    return steps
