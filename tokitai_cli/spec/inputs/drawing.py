"""Drawing every array of a case that a kernel reads before it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.core import native, parallel
from tokitai_cli.core.dtypes import numpy_dtype
from tokitai_cli.core.errors import near
from tokitai_cli.core.model.case import Case
from tokitai_cli.core.model.draws import KINDS, Group, kind_of
from tokitai_cli.core.model.spec import Draw
from tokitai_cli.core.numerics import array_sha256, round_to
from tokitai_cli.spec.inputs.draw_request import ArrayRequest, requests
from tokitai_cli.spec.inputs.floats import FLOAT_KINDS
from tokitai_cli.spec.inputs.integers import draw_indices, integer_fill
from tokitai_cli.spec.inputs.patterns import draw_pattern
from tokitai_cli.spec.inputs.row_draws import ROW_ORDERS, draw_derived, places_of
from tokitai_cli.spec.inputs.transforms import uniform, words
from tokitai_cli.spec.inputs.user_draws import draw_by_function

# Elements at a time: 120 KiB of float64, below the size from which the C library maps fresh pages
# for each temporary array. Compiled loops take more: each call between them takes Python's lock.
_CHUNK, _COMPILED_CHUNK = 15 * 1024, 120 * 1024
# Elements that a thread draws at once, and numbers that Philox gives for each count.
_TASK, _PER_COUNT = 2 * _COMPILED_CHUNK, 4


class Drawn(msgspec.Struct, frozen=True):
    """An array as a kernel will get it, read-only and C-contiguous."""

    array: NDArray[Any]
    #: Hex digest of its little-endian bytes.
    sha256: str
    #: The kind of draw with its settings.
    generator: str


def draw(
    case: Case, timeout: float = 60.0, log: Callable[[str], None] = lambda text: None
) -> dict[str, Drawn]:
    """Draw the inputs, in-outs and symbols of `case`, by name.

    A user's function has `timeout` seconds for an array; what it prints goes to `log`.

    An array depends on (seed, op, variant, profile, its name, its shape, its draw) alone, so that
    a new array or case never changes another; kinds that reckon with the op's results, such as large,
    on the formats of those as well, and one that follows from other arrays on those arrays' bits.
    SpecError where the spec's draw cannot be carried out, NotRunError where the profile has no meaning
    at the case's shape.
    """
    wanted = requests(case)
    later = (Group.DERIVED, Group.FUNCTION)
    drawn = {one.plan.name: _finished(*_draw(one)) for one in wanted if _group(one) not in later}
    for group in later:
        for request in wanted:
            if _group(request) is not group:
                continue
            arrays = {name: one.array for name, one in drawn.items()}
            if group is Group.DERIVED:
                made = draw_derived(request, arrays)
            else:
                made = draw_by_function(request, arrays, timeout, log)
            drawn[request.plan.name] = _finished(*made)
    drawn |= {one.plan.name: _finished(*_not_set(one)) for one in wanted if one.plan.unset}
    return {request.plan.name: drawn[request.plan.name] for request in wanted}


def _group(request: ArrayRequest) -> Group:
    try:
        return kind_of(request.draw).group
    except KeyError:
        kind = request.draw.kind
        raise request.refuse(f"unknown kind of draw {kind!r}", near(kind, KINDS)) from None


def _draw(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    match _group(request):
        case Group.INDICES:
            return draw_indices(request)
        case Group.PATTERN:
            return draw_pattern(request)
        case Group.MIX:
            return _draw_mix(request)
        case _ if request.is_float:
            return _draw_floats(request)
    return _draw_integers(request)


def _draw_mix(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    """Each element from one of the parts, by their shares."""
    parts = request.draw.parts or []
    ends = np.cumsum([part.share for part in parts])
    turns = uniform(request.source("mix").random_raw(request.plan.elements), 0.0, float(ends[-1]))
    chosen = np.minimum(np.searchsorted(ends, turns, side="right"), len(parts) - 1)
    array = np.empty(request.plan.elements, dtype=numpy_dtype(request.plan.dtype))
    words = []
    for number, part in enumerate(parts):
        draw = Draw(kind=part.draw) if isinstance(part.draw, str) else part.draw
        one = msgspec.structs.replace(request, draw=draw, part=(f"part {number}",))
        values, said = _draw(one)
        array[chosen == number] = values.reshape(-1)[chosen == number]
        words.append(f"{part.share / float(ends[-1]):.3g} {said}")
    return array.reshape(request.plan.shape), f"mix({', '.join(words)})"


def _not_set(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    """What no kernel may make anything of: NaN, of integers the largest."""
    dtype, shape = numpy_dtype(request.plan.dtype), request.plan.shape
    if request.is_float:
        return round_to(np.full(shape, np.nan), request.plan.dtype), "not set (NaN)"
    largest = True if dtype == np.bool_ else np.iinfo(dtype).max
    return np.full(shape, largest, dtype), f"not set ({largest})"


def _finished(array: NDArray[Any], words: str) -> Drawn:
    array.setflags(write=False)
    return Drawn(array, array_sha256(array), words)


def _draw_floats(request: ArrayRequest) -> tuple[NDArray[Any], str]:
    kind = FLOAT_KINDS[request.draw.kind]
    if kind.check is not None:
        kind.check(request)
    array = np.empty(request.plan.shape, dtype=numpy_dtype(request.plan.dtype))
    _fill(request, array, lambda raw: round_to(kind.fill(request, raw), request.plan.dtype))
    if kind.finish is not None and array.size:
        kind.finish(request, array)
    return array, _words(request)


def _fill(
    request: ArrayRequest, array: NDArray[Any], values: Callable[[NDArray[np.uint64]], NDArray[Any]]
) -> None:
    """Fill the array with what `values` makes of the stream's numbers, by threads.

    Philox counts: a thread begins where its part of the one stream does, so that no value hangs on how
    many there are.
    """
    flat = array.reshape(-1)
    size = _CHUNK if native.library() is None else _COMPILED_CHUNK

    def work(first: int) -> None:
        source = request.source()
        source.advance(first // _PER_COUNT)
        for start in range(first, min(first + _TASK, flat.size), size):
            part = flat[start : start + size]
            part[...] = values(words(source, part.size))

    for _ in parallel.in_order(work, range(0, flat.size, _TASK)):
        pass


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
    _fill(request, array, fill)
    if request.draw.kind in ROW_ORDERS and array.size:
        ROW_ORDERS[request.draw.kind](request, array)
        words = f"{request.draw.kind} {words}"
    return array, words
