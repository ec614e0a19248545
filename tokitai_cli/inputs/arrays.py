"""Drawing every array of a case that a kernel reads before it writes."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tokitai_cli.dtypes import numpy_dtype
from tokitai_cli.errors import near
from tokitai_cli.inputs.field import Field, fields
from tokitai_cli.inputs.floats import FLOAT_KINDS
from tokitai_cli.inputs.integers import INDEX_KINDS, draw_indices, integer_fill
from tokitai_cli.inputs.rows import DERIVED_KINDS, draw_derived, places_of
from tokitai_cli.model.case import Case
from tokitai_cli.numerics import round_to

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


def kinds() -> tuple[str, ...]:
    """Names of the kinds of draws."""
    return (*FLOAT_KINDS, *DERIVED_KINDS, *INDEX_KINDS)


def draw(case: Case) -> dict[str, Drawn]:
    """Draw the inputs, in-outs and symbols of `case`, by name.

    An array depends on (seed, op, variant, profile, its name, its shape, its draw) alone, so that
    a new array or case never changes another; one that follows from another array, on that one's
    bits. SpecError where the spec's draw cannot be carried out, NotRunError where the profile has no
    meaning at the case's shape.
    """
    wanted = fields(case)
    drawn = {f.plan.name: _draw(f) for f in wanted if f.draw.kind not in DERIVED_KINDS}
    arrays = {name: one.array for name, one in drawn.items()}
    for field in wanted:
        if field.plan.name not in drawn:
            drawn[field.plan.name] = _finished(*draw_derived(field, arrays))
    return {field.plan.name: drawn[field.plan.name] for field in wanted}


def sha256_of(array: NDArray[Any]) -> str:
    """Hex digest of the array's bytes in C order, little-endian."""
    flat = np.ascontiguousarray(array)
    if flat.dtype.byteorder == ">" or (flat.dtype.byteorder == "=" and not np.little_endian):
        flat = flat.byteswap()
    return hashlib.sha256(flat.reshape(-1).view(np.uint8).data).hexdigest()


def _draw(field: Field) -> Drawn:
    kind = field.draw.kind
    if kind not in kinds():
        raise field.refuse(f"unknown kind of draw {kind!r}", near(kind, kinds()))
    if kind in INDEX_KINDS:
        array, words = draw_indices(field)
    elif field.is_float:
        array, words = _draw_floats(field)
    else:
        array, words = _draw_integers(field)
    return _finished(array, words)


def _finished(array: NDArray[Any], words: str) -> Drawn:
    array.setflags(write=False)
    return Drawn(array, sha256_of(array), words)


def _draw_floats(field: Field) -> tuple[NDArray[Any], str]:
    kind = FLOAT_KINDS[field.draw.kind]
    if kind.check is not None:
        kind.check(field)
    array = np.empty(field.plan.shape, dtype=numpy_dtype(field.plan.dtype))
    flat, source = array.reshape(-1), field.source()
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = round_to(kind.fill(field, source.random_raw(part.size)), field.plan.dtype)
    if kind.finish is not None and array.size:
        kind.finish(field, array)
    shown = [f"{name}={field.setting(name, default):g}" for name, default in kind.settings]
    if field.draw.sign is not None:
        shown.append(f"sign={field.draw.sign}")
    if field.draw.at is not None:
        shown.append("at=" + "/".join(map(str, places_of(field))))
        if field.draw.kind == "softmax":
            shown.append(f"value={field.setting('value', 12.0):g}")
    return array, field.draw.kind + (f"({', '.join(shown)})" if shown else "")


def _draw_integers(field: Field) -> tuple[NDArray[Any], str]:
    fill, words = integer_fill(field)
    array = np.empty(field.plan.shape, dtype=numpy_dtype(field.plan.dtype))
    flat, source = array.reshape(-1), field.source()
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = fill(source.random_raw(part.size))
    return array, words
