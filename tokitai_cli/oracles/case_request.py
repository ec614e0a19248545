"""What is asked of a formula for a case, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core.dtypes import FORMATS, numpy_dtype
from tokitai_cli.core.expressions import evaluate
from tokitai_cli.core.matrix_units import sums_named
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.case import Case, Role
from tokitai_cli.core.model.draws import KINDS, Group
from tokitai_cli.core.model.sizes import params_behind

Arrays = Mapping[str, NDArray[Any]]


def request(case: Case) -> dict[str, Any]:
    """What is asked of the case's formula, as plain JSON (see `variants.request.Request`)."""
    oracle = case.variant.by_formula
    assert oracle is not None
    claim = reduction(case)
    plans = case.buffers_of(Role.OUTPUT, Role.INOUT)
    rounds = {}
    if isinstance(claim, dict):
        rounds = {plan.name: claim["outputs"].get(plan.name, claim["tree"]) for plan in plans}
    checks = case.variant.checks
    return {
        "outputs": {plan.name: plan.dtype for plan in plans},
        "rounds": rounds,
        "precision": {
            "ulps": oracle.precision,
            "accumulate": sums(case),
            "flush_to_zero": case.variant.flush_to_zero,
            "welford": claim == "welford" or (isinstance(claim, dict) and claim["welford"]),
        },
        "probable": any(check.metric == "bound-prob" for check in checks),
        "replay": any(check.against == "replay" for check in checks),
        "turn": case.seed,
        "trees": list(claim["outputs"]) if isinstance(claim, dict) else [],
        "shapes": shapes(case),
        "indices": _indices(case),
        "tied": list(_tied(case)),
    }


def sums(case: Case) -> str:
    """Where the formula's sums are kept, and how: a dtype, and behind it the matrix unit's name."""
    oracle = case.variant.by_formula
    assert oracle is not None
    given = oracle.accumulate
    if isinstance(given, str):
        return given
    dtypes = [buffer.dtype for buffer in drawn_buffers(case.variant).values()]
    eight_bits = any(dtype.startswith("float8") for dtype in dtypes)
    return f"float32-{sums_named(given, eight_bits=eight_bits)}"


def reduction(case: Case) -> Any:
    """The variant's claim on the order of additions: a word, or its trees at this shape."""
    claim = case.variant.reduction
    if isinstance(claim, str):
        return claim
    trees = {name: int(evaluate(text, case.sizes)) for name, text in claim.outputs.items()}
    tree = int(evaluate(claim.tree, case.sizes))
    return {"tree": tree, "outputs": trees, "welford": claim.welford}


def scalars(case: Case) -> dict[str, Any]:
    """Scalars of the case as the kernels get them: decoded from their bits."""
    values: dict[str, Any] = {}
    for one in case.scalars:
        number = np.frombuffer(one.bits, dtype=numpy_dtype(one.dtype))[0]
        values[one.name] = float(number) if one.dtype in FORMATS else number.item()
    return values


def _tied(case: Case) -> tuple[str, ...]:
    """Sizes, and params that others follow from: with fewer rows of one they would disagree."""
    sizes = case.loaded.spec.sizes
    return (*sizes, *params_behind(sizes, sizes))


def _indices(case: Case) -> dict[str, str]:
    """Inputs that the profile draws below a param, and that param."""
    spec, variant = case.loaded.spec, case.variant
    if case.profile not in spec.profiles:
        return {}
    draws = {name: draw_of(spec, variant, case.profile, name) for name in drawn_buffers(variant)}
    below = {
        name: str(draw.below)
        for name, draw in draws.items()
        if draw.kind in KINDS and KINDS[draw.kind].group is Group.INDICES
    }
    return {name: text for name, text in below.items() if text in case.sizes}


def shapes(case: Case) -> dict[str, list[str]]:
    """Shapes of inputs and outputs as the spec writes them."""
    return {
        name: [str(extent) for extent in buffer.shape]
        for buffers in (drawn_buffers(case.variant), case.variant.outputs)
        for name, buffer in buffers.items()
    }
