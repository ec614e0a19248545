"""What of a draft's model a run asks to be changed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from tokitai_cli.drafts.array_draws import bits_of
from tokitai_cli.drafts.model import (
    ArrayDraft,
    Flow,
    Guess,
    ParamDraft,
    SpecDraft,
    SuiteShape,
    supposed,
)
from tokitai_cli.drafts.reaching import count
from tokitai_cli.drafts.room import times
from tokitai_cli.drafts.writer import ALL_SHARED

_MACRO = 16  # of a number that only the build knows
_ALIGNED = "its default, and that rows of vectors begin where one may"
_PLACES = 32  # bits of a whole number that may be a place in an array
_CHANGED = "ranges; with other integers it did not run to its end"


def with_elements(draft: SpecDraft, name: str, elements: int) -> SpecDraft:
    """The array with room for so many elements, counted flat."""
    one = draft.arrays.get(name)
    if one is None or one.symbol:
        return draft
    values = {key: param.default for key, param in draft.params.items()}
    held = math.prod(count(str(extent), values) for extent in one.extents)
    weight, names = one.inner or 1, [*draft.params][:3]
    needed = max(held, -(-elements // (weight * (one.rows or 1))))
    total = math.prod(values[key] for key in names)
    extent = times(needed, weight, total, names, structs=one.structs)
    changed = msgspec.structs.replace(one, extents=(extent,), room="reached in a run")
    return _with_array(draft, name, changed)


def with_shared(draft: SpecDraft, more: int) -> SpecDraft:
    """So many bytes of dynamic shared memory more, at least twice, as far as a block can have them."""
    launch = draft.launch
    shared = launch.shared or Guess("0")
    values = {key: param.default for key, param in draft.params.items()}
    told = count(shared.value, values)
    free = ALL_SHARED - told - launch.shared_room
    if more > free:
        return draft
    room = launch.shared_room + min(max(more, told + launch.shared_room), free)
    launch = msgspec.structs.replace(launch, shared=shared, shared_room=room)
    return msgspec.structs.replace(draft, launch=launch)


def with_whole(draft: SpecDraft, draw: Flow) -> SpecDraft:
    """All whole numbers that are read drawn so; places of their own where the text asks nothing else."""
    found = {}
    for name, profile in draft.profiles.value.items():
        inputs = dict(profile.inputs.value)
        for array, one in draft.arrays.items():
            if one.role != "outputs" and not one.structs and "int" in one.dtype:
                bits = bits_of(one.dtype)
                kept = draw["kind"] == "arange" and (array in draft.drawn_to_end or bits < _PLACES)
                inputs[array] = inputs[array] if kept else _unsigned(draw, one.dtype, bits)
        told = Guess[Mapping[str, Flow]](inputs, _CHANGED)
        found[name] = msgspec.structs.replace(profile, inputs=told)
    return msgspec.structs.replace(draft, profiles=Guess(found, draft.profiles.why))


def with_macro(draft: SpecDraft, name: str) -> SpecDraft:
    """The macro defined, as a build would."""
    flags = [*draft.flags.value, f"-D{name}={_MACRO}"]
    names = [*draft.supposed, name]
    return msgspec.structs.replace(draft, flags=Guess(flags, supposed(names)), supposed=names)


def with_fields(draft: SpecDraft, number: int) -> SpecDraft:
    """Whole numbers that stand in arrays of structs, sizes and strides, all as large as that."""

    def changed(value: Flow) -> Flow:
        if isinstance(value, Mapping):
            return {key: changed(one) for key, one in value.items()}
        if isinstance(value, list):
            return [number if isinstance(one, int) else changed(one) for one in value]
        return value

    structs = {
        name: msgspec.structs.replace(one, value=changed(one.value))
        for name, one in draft.structs.items()
    }
    return msgspec.structs.replace(draft, structs=structs)


def with_halves(draft: SpecDraft, times_: int) -> SpecDraft:
    """All sizes halved so often, as far as the kernel takes that."""
    params = dict(draft.params)
    for _ in range(times_):
        params = {
            name: msgspec.structs.replace(one, default=one.fitting(max(1, one.default // 2)))
            for name, one in params.items()
        }
    return msgspec.structs.replace(draft, params=params)


def with_multiples(draft: SpecDraft, step: int) -> SpecDraft:
    """All sizes multiples of `step`, as far as their limits let them, in the suites too."""
    params = {name: _multiple(one, step) for name, one in draft.params.items()}

    def raised(shape: SuiteShape) -> SuiteShape:
        sizes = {
            name: params[name].fitting(size + step - 1) if name in params else size
            for name, size in shape.sizes.items()
        }
        return msgspec.structs.replace(shape, sizes=sizes)

    suites = {name: [*map(raised, shapes)] for name, shapes in draft.suites.value.items()}
    told = msgspec.structs.replace(draft.suites, value=suites)
    return msgspec.structs.replace(draft, params=params, suites=told)


def _multiple(one: ParamDraft, step: int) -> ParamDraft:
    whole = math.lcm(one.multiple_of or 1, step)
    if one.max is not None and one.max < whole:
        return one
    new = msgspec.structs.replace(one, multiple_of=whole, why=_ALIGNED)
    return msgspec.structs.replace(new, default=new.fitting(one.default + whole - 1))


def with_larger(draft: SpecDraft, name: str, factor: int) -> SpecDraft:
    """One size so many times as large, as far as the kernel takes that."""
    one = draft.params[name]
    new = msgspec.structs.replace(one, default=one.fitting(one.default * factor))
    return msgspec.structs.replace(draft, params={**draft.params, name: new})


def _unsigned(draw: Flow, dtype: str, bits: int) -> Flow:
    below = dtype.startswith("u") and draw.get("value") == -1
    return {**draw, "value": f"2 ** {bits} - 1"} if below else draw


def _with_array(draft: SpecDraft, name: str, one: ArrayDraft) -> SpecDraft:
    return msgspec.structs.replace(draft, arrays={**draft.arrays, name: one})
