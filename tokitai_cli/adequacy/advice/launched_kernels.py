"""Kernels as a variant launches them: what their bodies do, in the words of the spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tokitai_cli.adequacy.advice.edit import Path as Place
from tokitai_cli.core import expressions, flags, resources
from tokitai_cli.core.errors import SpecError, TokitaiError
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.buffers import leaves_of, listed, passed_buffers
from tokitai_cli.core.model.case import LoadedSpec
from tokitai_cli.core.model.sizes import params_behind
from tokitai_cli.core.model.spec import Expression, Launch, Variant
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.body.symbolic_values import Facts, Line
from tokitai_cli.cpp.programs import Programs
from tokitai_cli.cpp.source.constants import constants_of
from tokitai_cli.cpp.source.signatures import Kernel, bound_types, kernels_of
from tokitai_cli.cpp.tiles import Tiles, facts_of, tiles_of
from tokitai_cli.cpp.value_constraints import Values
from tokitai_cli.cpp.whole import Program


class Passed(msgspec.Struct, frozen=True):
    """A number by value: the kernel's name, the scalar or expression that it is, and its place."""

    name: str
    text: str
    place: Place
    #: Whether it follows from what extents of arrays and launches follow from.
    is_size: bool


class LaunchedKernel(msgspec.Struct, eq=False):
    """A kernel as a launch runs it.

    words: its whole numbers and those of the launch, in the language of sizes. arrays: the spec's arrays
    that each of its own is, and numbers what is passed by value, or defined
    as a macro, by how its body calls them.
    """

    name: str
    facts: Facts
    values: Values
    words: Mapping[str, str]
    arrays: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, Passed]

    @property
    def tiles(self) -> list[Tiles]:
        """Its loops over tiles of what the spec passes."""
        return tiles_of(self.facts, self.words)

    def buffers(self, arrays: Sequence[str] | frozenset[str]) -> tuple[str, ...]:
        """The spec's names of arrays of the body."""
        found = (name for one in sorted(arrays) for name in self.arrays.get(one, ()))
        return tuple(dict.fromkeys(found))


class Kernels(msgspec.Struct):
    """Kernels of a variant, and why others, or parts of them, are not known."""

    read: list[LaunchedKernel]
    unread: list[str]


class Readings:
    """Kernels of each variant, read once for all that ask."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, str], Kernels] = {}

    def of(self, loaded: LoadedSpec, name: str) -> Kernels:
        """Of a variant."""
        key = loaded.path, name
        if key not in self._known:
            self._known[key] = _kernels(loaded, name)
        return self._known[key]


def kernels_in(loaded: LoadedSpec, name: str) -> Kernels:
    """Kernels that a variant launches."""
    return loaded.models.of(Readings).of(loaded, name)


def said_at(loaded: LoadedSpec, at: Line | None) -> str:
    """A line of a source as file:line, the file from the spec on where it is beside it."""
    if at is None:
        return "the kernel"
    inside = Path(at.file).is_relative_to(loaded.folder.resolve())
    file = os.path.relpath(at.file, loaded.folder.resolve()) if inside else Path(at.file).name
    return f"{Path(file).as_posix()}:{at.line}"


def _kernels(loaded: LoadedSpec, name: str) -> Kernels:
    variant = loaded.spec.variants[name]
    source = resources.file_of(loaded.path.parent, variant.source).resolve()
    if not source.is_file():
        return Kernels([], [f"{variant.source} is not there"])
    if is_machine_code(source):
        return Kernels([], [f"{variant.source} is machine code"])
    given = (*(f"-I{entry}" for entry in variant.include), *variant.flags)
    words = flags.resolved(given, loaded.path.parent)
    try:
        folders = [*flags.include_folders(words)]
        program = loaded.models.of(Programs).of(source, folders, flags.definitions(words))
        kernels = kernels_of(program)
    except (TokitaiError, ValueError, LookupError) as error:
        return Kernels([], [f"{variant.source} could not be read: {error}"])
    found = Kernels([], [])
    for at, launch in enumerate(variant.launches):
        mine = [*_of_launch(loaded, name, at, kernels, program)]
        found.read += mine
        if not mine:
            told = f"{launch.kernel} with {len(launch.args)} arguments was not found"
            found.unread.append(f"{told} in {variant.source}")
        found.unread += [f"{one.name}: {why}" for one in mine for why in one.facts.undecided]
    found.unread = list(dict.fromkeys(found.unread))
    return found


def _of_launch(
    loaded: LoadedSpec, name: str, at: int, kernels: Sequence[Kernel], program: Program
) -> Iterator[LaunchedKernel]:
    variant = loaded.spec.variants[name]
    launch = variant.launches[at]
    named = kernel_names.instance(launch.kernel)
    for kernel in kernels:
        left_out = kernel.parameters[len(launch.args) :]
        if kernel.name != named.last or not all(one.default for one in left_out):
            continue
        if len(kernel.parameters) < len(launch.args):
            continue
        facts = facts_of(program, kernel, bound_types(kernel, [*(named.arguments or ())]))
        if not facts.words:
            continue
        arrays, numbers = _arguments(loaded, name, at, kernel)
        words = _extents(launch)
        for path, passed in numbers.items():
            words[path] = f"({passed.text})" if " " in passed.text else passed.text
        constants = {key: told for key, told in constants_of(program).items() if key not in words}
        values = Values(facts, constants)
        yield LaunchedKernel(launch.kernel, facts, values, words, arrays, numbers)


def _sizes(loaded: LoadedSpec, name: str) -> Callable[[str], bool]:
    """Whether an expression has params that extents of arrays or launches have."""
    spec, one = loaded.spec, loaded.spec.variants[name]
    buffers = {**one.inputs, **one.outputs, **one.inout, **one.workspaces, **one.symbols}
    extents = [extent for buffer in buffers.values() for extent in buffer.shape]
    extents += [extent for launch in one.launches for extent in (*launch.grid, *launch.block)]
    names = (word for extent in extents for word in expressions.names_in(extent))
    known = {*params_behind(spec.sizes, names)}

    def is_size(text: str) -> bool:
        try:
            own = expressions.names_in(text, real=True)
        except SpecError:  # a literal such as 1e-5
            return False
        return not known.isdisjoint(params_behind(spec.sizes, own))

    return is_size


def _extents(launch: Launch) -> dict[str, str]:
    return {
        f"{key}.{axis}": f"({one})"
        for key, extents in (("blockDim", launch.block), ("gridDim", launch.grid))
        for axis, one in zip("xyz", [*extents, 1, 1], strict=False)
    }


def _variables(variant: Variant) -> dict[str, tuple[str, ...]]:
    """Arrays that are variables of the source, by their names there without namespaces."""
    own = {name: name for name in variant.symbols}
    buffers = {**variant.inputs, **variant.outputs, **variant.inout}
    own |= {one.symbol: name for name, one in buffers.items() if one.symbol}
    return {full.rpartition("::")[2]: (name,) for full, name in own.items()}


def _arguments(
    loaded: LoadedSpec, name: str, at: int, kernel: Kernel
) -> tuple[dict[str, tuple[str, ...]], dict[str, Passed]]:
    """Arrays and numbers by how the body calls them."""
    variant, sizes = loaded.spec.variants[name], _sizes(loaded, name)
    arrays = _variables(variant)
    numbers: dict[str, Passed] = {}

    def put(path: str, given: Expression, place: Place) -> None:
        told = str(given)
        if told in variant.structs:
            for field, inner in leaves_of(variant.structs[told]):
                plain = ("variants", name, "structs", told, field.removeprefix("."))
                put(path + field, inner, plain)
        elif told in variant.lists:
            arrays[path] = tuple(listed(variant, told))
        elif told in passed_buffers(variant):
            arrays[path] = (told,)
        elif told in variant.scalars:
            value = str(variant.scalars[told].value)
            place = ("variants", name, "scalars", told, "value")
            numbers[path] = Passed(path, told, place, sizes(value))
        else:
            numbers[path] = Passed(path, told, place, sizes(told))

    for macro, value in variant.defines.items():
        put(macro, value, ("variants", name, "defines", macro))
    for index, (parameter, given) in enumerate(
        zip(kernel.parameters, variant.launches[at].args, strict=False)
    ):
        put(parameter.name, given, ("variants", name, "launches", at, "args", index))
    return arrays, numbers
