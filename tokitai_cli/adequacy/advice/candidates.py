"""Profiles that may tell what a spec's own do not: those of any spec, and some of this one alone."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence

from tokitai_cli.adequacy.advice.kinds import nodes_of
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.oracles.case_request import scalars
from tokitai_cli.spec import plan

HALFWAY = "halfway"
# Behind those that tell the size of a number, and not only that it is there.
_LAST = ("powers", "some-zeros", "overflowing", "zero-rows")
# Constants up to this are taken for what keeps divisors from 0.
_SMALL = 1e-2
# Limits that N(0,1) reaches, and the size of those and the number of them that are tried.
_REACHED, _MOST, _LIMITS = 2.0, 1e30, 6


def candidates_of(loaded: LoadedSpec, variant: str) -> Mapping[str, tuple[Draw, str]]:
    """Candidates by name, and what they are for; none has the name of another."""
    found = dict(CANDIDATES)
    last = {name: found.pop(name) for name in _LAST}
    nodes = nodes_of(loaded, variant)
    for name, value in _small_constants(loaded, variant, nodes):
        root = float(f"{math.sqrt(value):.2g}")
        told = f"squares of the size of {value:g}, so that it matters"
        found.setdefault(f"beside-{name}", (Draw(kind="normal", scale=root), told))
        told = f"values of the size of {value:g}, so that it matters"
        found.setdefault(f"near-{name}", (Draw(kind="normal", scale=value), told))
    for number, value in enumerate(_limits(nodes), 1):
        told = f"values on both sides of {value:g} and of {-value:g}"
        found[f"beyond-{number}"] = (Draw(kind="uniform", lo=-2 * value, hi=2 * value), told)
    found |= last
    if (bits := _narrowest(loaded, variant)) is not None:
        told = "values halfway between two numbers of the output's format, which round to even"
        found[HALFWAY] = (Draw(kind="halfway", value=bits), told)
    return found


def _narrowest(loaded: LoadedSpec, variant: str) -> int | None:
    """Bits of the narrowest output of floats that some input is wider than; None for none."""
    one = loaded.spec.variants[variant]
    written = (*one.outputs.values(), *one.inout.values())
    bits = [FORMATS[buffer.dtype].precision for buffer in written if buffer.dtype in FORMATS]
    drawn = (*one.inputs.values(), *one.inout.values())
    most = [FORMATS[buffer.dtype].precision for buffer in drawn if buffer.dtype in FORMATS]
    narrow = [count for count in bits if most and count < min(most)]
    return min(narrow, default=None)


def _small_constants(
    loaded: LoadedSpec, variant: str, nodes: Sequence[ast.AST]
) -> Iterator[tuple[str, float]]:
    """Scalars of floats, and numbers in a formula of the user's, that are near 0 and above it."""
    example = plan.example(loaded, variant)
    for name, value in scalars(example).items() if example is not None else ():
        if isinstance(value, float) and 0 < value <= _SMALL:
            yield name.lower().replace("_", "-"), value
    values = {one for one in _numbers(nodes) if 0 < one <= _SMALL}
    for number, value in enumerate(sorted(values), 1):
        yield f"constant-{number}", value


def _limits(nodes: Sequence[ast.AST]) -> list[float]:
    """Numbers of a user's formula that standard normal values do not reach: the largest few."""
    called = {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    if not called & {"clip", "where", "minimum", "maximum"}:
        return []
    values = {float(one) for one in _numbers(nodes) if _REACHED < one < _MOST}
    return sorted(values)[-_LIMITS:]


def _numbers(nodes: Sequence[ast.AST]) -> Iterator[float]:
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, (int, float))
            and not isinstance(node.value, bool)
        ):
            yield node.value
