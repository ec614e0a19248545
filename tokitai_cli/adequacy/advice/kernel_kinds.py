"""Values at which kernels of a kind often fail, where a variant's kernels are of that kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tokitai_cli.adequacy.advice.drawn_values import Arrays, cases_of_suites, elements, unreached
from tokitai_cli.adequacy.advice.kinds import KINDS
from tokitai_cli.adequacy.advice.launched_kernels import LaunchedKernel, kernels_in, said_at
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.buffers import drawn_buffers
from tokitai_cli.core.model.case import Case, LoadedSpec
from tokitai_cli.cpp.float_arithmetic import Numerics
from tokitai_cli.cpp.telling_values import Telling, telling_values


class Asked(NamedTuple):
    """A kind of values that a kernel asks for, and arrays one of which is to have them."""

    kind: str
    said: str
    buffers: tuple[str, ...]


def asked_by_kernels(loaded: LoadedSpec, name: str) -> list[Asked]:
    """Kinds of values that the variant's kernels ask for, by what they compute."""
    found: dict[str, Asked] = {}
    for kernel in kernels_in(loaded, name).read:
        for told in _telling(loaded, name, kernel):
            buffers = _floats(loaded, name, kernel.buffers(told.arrays))
            said = f"{said_at(loaded, told.at)} {told.does}"
            if told.profile in KINDS and buffers:
                found.setdefault(told.profile, Asked(told.profile, said, buffers))
    return list(found.values())


def missing_in(loaded: LoadedSpec, name: str) -> dict[str, Asked]:
    """Those of them that no case has."""
    asked = asked_by_kernels(loaded, name)
    goals: Mapping[Asked, Callable[[Case, Arrays], bool]] = {one: met_by(one) for one in asked}
    left, skipped = unreached(cases_of_suites(loaded, name) if asked else [], goals)
    said = f" ({skipped})" if skipped else ""
    return {one.kind: one._replace(said=one.said + said) for one in left}


def met_by(kind: Asked) -> Callable[[Case, Arrays], bool]:
    """Whether a case has the values in one of the arrays."""

    def met(case: Case, arrays: Arrays) -> bool:
        del case
        has = KINDS[kind.kind][1]
        every = (np.asarray(one, np.float64) for one in elements(arrays, kind.buffers))
        return any(has(one) for one in every if one.size > 1 and np.isfinite(one).all())

    return met


def _telling(loaded: LoadedSpec, name: str, kernel: LaunchedKernel) -> list[Telling]:
    variant = loaded.spec.variants[name]
    buffers = {**variant.inputs, **variant.inout, **variant.symbols, **variant.outputs}
    buffers |= variant.workspaces
    floats = [
        path
        for path, own in kernel.arrays.items()
        if any(buffers[one].dtype in FORMATS for one in own)
    ]
    drawn = drawn_buffers(variant)
    read = [path for path in floats if any(one in drawn for one in kernel.arrays[path])]
    written = [one.dtype for one in (*variant.outputs.values(), *variant.inout.values())]
    numerics = Numerics(kernel.facts, floats)
    return [*telling_values(numerics, kernel.values, read, written, list(kernel.numbers))]


def _floats(loaded: LoadedSpec, name: str, buffers: tuple[str, ...]) -> tuple[str, ...]:
    drawn = drawn_buffers(loaded.spec.variants[name])
    return tuple(one for one in buffers if one in drawn and drawn[one].dtype in FORMATS)
