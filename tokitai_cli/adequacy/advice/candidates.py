"""Profiles that may tell what a spec's own do not: those of any spec, and some of this one alone."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping

from tokitai_cli.core import storage
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.draws import CANDIDATES
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.oracles.case_request import scalars
from tokitai_cli.oracles.user.imported import file_of
from tokitai_cli.spec import plan

HALFWAY, ZEROS = "halfway", "zero-rows"
# Constants up to this are taken for what keeps divisors from 0.
_SMALL = 1e-2


def candidates_of(loaded: LoadedSpec, variant: str) -> Mapping[str, tuple[Draw, str]]:
    """Candidates by name, and what they are for; none has the name of another."""
    found = dict(CANDIDATES)
    zeros = found.pop(
        ZEROS
    )  # behind those that tell the size of a number, and not only that it is there
    for name, value in _small_constants(loaded, variant):
        root = float(f"{math.sqrt(value):.2g}")
        told = f"squares of the size of {value:g}, so that it matters"
        found.setdefault(f"beside-{name}", (Draw(kind="normal", scale=root), told))
        told = f"values of the size of {value:g}, so that it matters"
        found.setdefault(f"near-{name}", (Draw(kind="normal", scale=value), told))
    found[ZEROS] = zeros
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


def _small_constants(loaded: LoadedSpec, variant: str) -> Iterator[tuple[str, float]]:
    """Scalars of floats, and numbers in a formula of the user's, that are near 0 and above it."""
    example = plan.example(loaded, variant)
    for name, value in scalars(example).items() if example is not None else ():
        if isinstance(value, float) and 0 < value <= _SMALL:
            yield name.lower().replace("_", "-"), value
    one = loaded.spec.variants[variant]
    if not one.own_oracle:
        return
    file = file_of(one.oracle, loaded.path.parent)
    text = storage.read_plain(file).decode("utf-8", errors="replace")
    values = {
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    for number, value in enumerate(sorted(one for one in values if 0 < one <= _SMALL), 1):
        yield f"constant-{number}", value
