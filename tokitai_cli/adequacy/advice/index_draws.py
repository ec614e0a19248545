"""Draws of labels and indices, which are places and no values, and profiles that keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tokitai_cli.adequacy.advice.edit import Advice, Edit
from tokitai_cli.adequacy.advice.launched_kernels import LaunchedKernel, said_at
from tokitai_cli.core.dtypes import FORMATS
from tokitai_cli.core.model.buffers import draw_of, drawn_buffers
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.draws import Group, kind_of
from tokitai_cli.core.model.spec import Draw, Profile
from tokitai_cli.cpp.body.origins import Origins
from tokitai_cli.cpp.body.polynomial import Polynomial, variable
from tokitai_cli.cpp.body.symbolic_values import Access, Line
from tokitai_cli.cpp.size_words import in_sizes, polynomial_of


class Proposed(NamedTuple):
    """A profile that is not the spec's yet."""

    name: str
    edits: tuple[Edit, ...]


def profiles_of(loaded: LoadedSpec, variant: str) -> list[str]:
    """Profiles that a variant runs."""
    return loaded.spec.variants[variant].profiles or list(loaded.spec.profiles)


def base_profile(loaded: LoadedSpec, variant: str) -> str:
    """The profile that others start from: the variant's first one."""
    return profiles_of(loaded, variant)[0]


def profile_name(array: str, kind: str) -> str:
    """What a profile for an array is called."""
    words = re.findall("[a-z0-9]+", array.lower())
    return "-".join(["x" * (not words[:1] or words[0][0].isdigit()), *words, kind]).strip("-")


def kept_draws(loaded: LoadedSpec, variant: str) -> dict[str, Draw | str]:
    """Draws that arrays need in any profile for values: those that a profile has for single arrays, and
    those of whole numbers, which are places, counts, or flags.
    """
    spec, one = loaded.spec, loaded.spec.variants[variant]
    every = (spec.profiles[name].inputs for name in profiles_of(loaded, variant))
    found = dict(next(filter(None, every), {}))
    for name, buffer in drawn_buffers(one).items():
        if buffer.dtype not in FORMATS and buffer.draw is None and name not in found:
            found[name] = draw_of(spec, one, _best_profile(loaded, variant, name), name)
    return found


def with_draws(
    loaded: LoadedSpec, variant: str, key: str, inputs: Mapping[str, Draw | str], purpose: str
) -> tuple[LoadedSpec, Proposed]:
    """The spec with the variant's first profile again, some arrays drawn otherwise; and the edits."""
    base = base_profile(loaded, variant)
    own = loaded.spec.profiles[base]
    names = (key, *(f"{key}-{number}" for number in range(2, 99)))
    name = next(one for one in names if one not in loaded.spec.profiles)
    draw = base if own.draw is None else own.draw
    new = Profile(draw=draw, inputs={**own.inputs, **inputs}, help=purpose)
    edits = [Edit(("profiles", name), msgspec.to_builtins(new))]
    if loaded.spec.variants[variant].profiles:
        edits.append(Edit(("variants", variant, "profiles"), name, appended=True))
    return with_profile(loaded, variant, name, new), Proposed(name, tuple(edits))


def with_profile(loaded: LoadedSpec, name: str, key: str, profile: Profile) -> LoadedSpec:
    """The spec with one more profile that the variant runs."""
    spec, variant = loaded.spec, loaded.spec.variants[name]
    if variant.profiles:
        variant = msgspec.structs.replace(variant, profiles=[*variant.profiles, key])
    spec = msgspec.structs.replace(
        spec,
        profiles={**spec.profiles, key: profile},
        variants={**spec.variants, name: variant},
    )
    return msgspec.structs.replace(loaded, spec=spec)


def of_index_draws(
    loaded: LoadedSpec, variant: str, kernels: Sequence[LaunchedKernel]
) -> Iterator[Advice]:
    """Advice for arrays that are indices in a kernel and that profiles draw as values."""
    drawn = drawn_buffers(loaded.spec.variants[variant])
    seen = set[str]()
    for kernel in kernels:
        for array in kernel.arrays:
            if not kernel.values.indexes(array):
                continue
            for name in kernel.buffers([array]):
                whole = name in drawn and drawn[name].dtype not in FORMATS
                wrong = [one for one in profiles_of(loaded, variant)
                         if whole and _as_value(loaded, variant, one, name)]  # fmt: skip
                if wrong and name not in seen:
                    seen.add(name)
                    yield _of_index(loaded, variant, kernel, array, name, wrong)


def _of_index(
    loaded: LoadedSpec,
    variant: str,
    kernel: LaunchedKernel,
    array: str,
    name: str,
    wrong: Sequence[str],
) -> Advice:
    at, below = _indexed(loaded, variant, kernel, array)
    said = (
        f"{variant}: {name}, by which {said_at(loaded, at)} finds elements, is drawn as values on "
        f"{', '.join(wrong)}"
    )
    if len(wrong) < len(profiles_of(loaded, variant)) or not below:
        return Advice(f"{said}: give it a draw of indices there")
    key = profile_name(name, "places")
    inputs: dict[str, Draw | str] = {name: Draw(kind="index-uniform", below=below)}
    _, proposed = with_draws(loaded, variant, key, inputs, f"{name} below {below}")
    return Advice(said, proposed.edits)


def _best_profile(loaded: LoadedSpec, variant: str, name: str) -> str:
    """The first profile that draws an array as something else than values; else the first."""
    every = profiles_of(loaded, variant)
    return next((one for one in every if not _as_value(loaded, variant, one, name)), every[0])


def _as_value(loaded: LoadedSpec, variant: str, profile: str, name: str) -> bool:
    """Whether an array has what a profile draws for all, and that is no draw of indices."""
    spec, one = loaded.spec, loaded.spec.variants[variant]
    if name in spec.profiles[profile].inputs or drawn_buffers(one)[name].draw is not None:
        return False
    kind = kind_of(draw_of(spec, one, profile, name))
    return kind.group is Group.NUMBERS and not kind.integers


def _indexed(
    loaded: LoadedSpec, variant: str, kernel: LaunchedKernel, array: str
) -> tuple[Line | None, str]:
    """Where elements are found by the array's values, and what these stay below, if that is known."""
    origins, first = Origins(kernel.facts), None
    for access in kernel.facts.accesses:
        for atom in access.offset.names():
            if not any(one.array == array for one in origins.plainly(variable(atom))):
                continue
            at = Line(access.file, access.line)
            first = first or at
            parts = access.offset.linear(atom)
            if parts is not None and (below := _extent(loaded, variant, kernel, access, parts[0])):
                return at, below
    return first, ""


def _extent(
    loaded: LoadedSpec, variant: str, kernel: LaunchedKernel, access: Access, stride: Polynomial
) -> str:
    """The extent of an array along the axis that has a stride; empty where none has."""
    said = polynomial_of(in_sizes(stride, kernel.words) or "?")
    one = loaded.spec.variants[variant]
    buffers = {**one.inputs, **one.outputs, **one.inout, **one.workspaces, **one.symbols}
    for name in kernel.buffers([access.array]):
        shape = [str(extent) for extent in buffers[name].shape]
        for axis, extent in enumerate(shape):
            inner = " * ".join(f"({each})" for each in shape[axis + 1 :]) or "1"
            if said is not None and polynomial_of(inner) == said:
                return extent
    return ""
