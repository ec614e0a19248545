"""Drawing every array of a case that a kernel reads before it writes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.errors import near
from tokitai_cli.inputs.floats import FLOAT_KINDS
from tokitai_cli.inputs.integers import draw_indices, integer_fill
from tokitai_cli.inputs.request import ArrayRequest, requests
from tokitai_cli.inputs.rows import draw_derived, places_of
from tokitai_cli.model.case import Case
from tokitai_cli.model.draws import KINDS, Group
from tokitai_cli.numerics import array_sha256, round_to

# Elements at a time: 120 KiB of float64, below the size from which the C library maps fresh pages
# for each temporary array.
_CHUNK = 15 * 1024


class Drawn(msgspec.Struct, frozen=True):
    """An array as a kernel will get it, read-only and C-contiguous.

    sha256: hex digest of its little-endian bytes. generator: the kind of draw with its settings.
    """

    array: NDArray[Any]
    sha256: str
    generator: str


def draw(case: Case) -> dict[str, Drawn]:
    """Draw the inputs, in-outs and symbols of `case`, by name.

    An array depends on (seed, op, variant, profile, its name, its shape, its draw) alone, so that
    a new array or case never changes another; kinds that reckon with the op's results, such as large,
    on the formats of those as well, and one that follows from another array on that one's bits.
    SpecError where the spec's draw cannot be carried out, NotRunError where the profile has no meaning
    at the case's shape.
    """
    wanted = requests(case)
    drawn = {one.plan.name: _draw(one) for one in wanted if _group(one) is not Group.DERIVED}
    arrays = {name: one.array for name, one in drawn.items()}
    for request in wanted:
        if request.plan.name not in drawn:
            drawn[request.plan.name] = _finished(*draw_derived(request, arrays))
    return {request.plan.name: drawn[request.plan.name] for request in wanted}


def _group(request: ArrayRequest) -> Group:
    kind = request.draw.kind
    if kind not in KINDS:
        raise request.refuse(f"unknown kind of draw {kind!r}", near(kind, KINDS))
    return KINDS[kind].group


def _draw(request: ArrayRequest) -> Drawn:
    if _group(request) is Group.INDICES:
        array, words = draw_indices(request)
    elif request.is_float:
        array, words = _draw_floats(request)
    else:
        array, words = _draw_integers(request)
    return _finished(array, words)


def _finished(array: NDArray[Any], words: str) -> Drawn:
    array.setflags(write=False)
    return Drawn(array, array_sha256(array), words)


def _draw_floats(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    kind = FLOAT_KINDS[request.draw.kind]
    if kind.check is not None:
        kind.check(request)
    array = np.empty(request.plan.shape, dtype=numpy_dtype(request.plan.dtype))
    flat, source = array.reshape(-1), request.source()
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = round_to(kind.fill(request, source.random_raw(part.size)), request.plan.dtype)
    if kind.finish is not None and array.size:
        kind.finish(request, array)
    return array, _words(request)


def _words(request: ArrayRequest) -> str:
    """The kind with its settings; a value that is put at places stands behind them."""
    draw = request.draw
    numbers = {name: f"{name}={request.setting(name):g}" for name in KINDS[draw.kind].numbers}
    placed = [numbers.pop("value")] if draw.kind == "softmax" else []
    shown = list(numbers.values())
    if draw.sign is not None:
        shown.append(f"sign={draw.sign}")
    if draw.at is not None:
        shown += ["at=" + "/".join(map(str, places_of(request))), *placed]
    return draw.kind + (f"({', '.join(shown)})" if shown else "")


def _draw_integers(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    fill, words = integer_fill(request)
    array = np.empty(request.plan.shape, dtype=numpy_dtype(request.plan.dtype))
    flat, source = array.reshape(-1), request.source()
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = fill(source.random_raw(part.size))
    return array, words
