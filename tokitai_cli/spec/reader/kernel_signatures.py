"""A variant's launches held against the signatures of the kernels in its source.

What a macro, a template or a header that is not there may decide is left to the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tokitai_cli.core import flags, resources
from tokitai_cli.core.errors import CodeError, SpecError, near
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.buffers import passed_buffers
from tokitai_cli.core.model.spec import Launch, Spec, Variant
from tokitai_cli.cpp import kernel_names
from tokitai_cli.cpp.programs import Programs
from tokitai_cli.cpp.source.signatures import (
    Kernel,
    Parameter,
    instantiated,
    kernels_of,
    may_declare,
)
from tokitai_cli.cpp.whole import Program
from tokitai_cli.devices import foreign
from tokitai_cli.devices.amdgpu.binary import objects
from tokitai_cli.devices.amdgpu.binary.parameters import parameters as parameters_of
from tokitai_cli.spec.reader.document import Document, KeyPath, keys_of
from tokitai_cli.spec.reader.struct_fields import places

_Bound = dict[str, list[Parameter | None]]


class Signatures(NamedTuple):
    """What launches and kernels tell of each other: see LoadedSpec."""

    notes: tuple[str, ...] = ()
    read_back: Mapping[str, frozenset[str]] = {}


def check_signatures(document: Document, spec: Spec, programs: Programs) -> Signatures:
    """Raise SpecError where a launch cannot fit its kernel."""
    said: dict[str, None] = {}
    read: dict[str, frozenset[str]] = {}
    for name, variant in spec.variants.items():
        source = resources.file_of(document.file.parent, variant.source).resolve()
        if is_machine_code(source):
            _check_machine_code(document, ("variants", name), variant, source)
            continue
        given = (*(f"-I{entry}" for entry in variant.include), *variant.flags)
        words = flags.resolved(given, document.file.parent)
        told = _check(document, ("variants", name), variant, source, words, programs)
        said |= dict.fromkeys(told.notes)
        read |= told.read_back
    return Signatures(tuple(said), read)


def _check(
    document: Document,
    path: KeyPath,
    variant: Variant,
    source: Path,
    words: Sequence[str],
    programs: Programs,
) -> Signatures:
    program = programs.of(source, flags.include_folders(words), flags.definitions(words))
    asked = {name for one in program.sources for name in one.unit.tested}
    decided = asked.isdisjoint(variant.defines)  # a spec's own macros may differ from case to case
    kernels = kernels_of(program) if decided else []
    fitted = {}
    for index, launch in enumerate(variant.launches):
        here = (*path, "launches", index)
        fitted[index] = _fitting(document, here, variant, launch, kernels, program)
    bound = _bound(variant, fitted, program)
    _check_written(document, path, variant, bound)
    read = _read_back(variant, fitted, words, program, programs)
    return Signatures(tuple(_remarks(path, variant, bound)), {str(path[-1]): read})


def _check_machine_code(document: Document, path: KeyPath, variant: Variant, source: Path) -> None:
    """Hold launches against the metadata and the symbols of kernels that others compiled."""
    fitted: dict[int, tuple[Parameter, ...]] = {}
    for index, launch in enumerate(variant.launches):
        at: KeyPath = (*path, "source")
        try:
            held = foreign.kernels_in(source)
            at = (*path, "launches", index, "kernel")
            kernel = objects.kernel_of(held, launch.kernel)[1]
        except CodeError as error:
            raise document.fault(at, error.message, error.hint) from None
        known = parameters_of(kernel)
        here, place = (*path, "launches", index), f"`tokitai isa {variant.source}` shows it"
        if len(known) != len(launch.args):
            raise _other_count(document, here, launch, kernel.title, known, place)
        misfit = _misfit(document, here, variant, launch, kernel.title, known, place)
        if misfit is not None:
            raise misfit
        fitted[index] = known
        for number, one in enumerate(known):
            if one.kind == "struct" or launch.args[number] in variant.structs:
                message = f"`{kernel.title}` takes `{one.text}`, whose layout is not known"
                hint = "a spec passes arrays, numbers and lists of arrays to machine code"
                raise document.fault((*here, "args", number), message, hint)
    _check_written(document, path, variant, _bound(variant, fitted, None))


def _fitting(
    document: Document,
    path: KeyPath,
    variant: Variant,
    launch: Launch,
    kernels: Sequence[Kernel],
    program: Program,
) -> tuple[Parameter, ...]:
    """Parameters of the kernel that the launch means; none where it is not known."""
    _, types = kernel_names.overload(launch.kernel)
    last, arguments, _ = kernel_names.instance(launch.kernel)
    same = [one for one in kernels if one.name == last]
    if not same:
        # A header in front of the source is not read here.
        front = any((document.file.parent / entry).is_file() for entry in variant.include)
        front = front or bool(flags.included(variant.flags))
        if kernels and not front and not may_declare(program, last):
            hint = near(last, {one.name for one in kernels})
            known = ", ".join(dict.fromkeys(one.qualified for one in kernels)) or "none"
            raise document.fault(
                (*path, "kernel"),
                f"{variant.source} has no kernel `{last}`",
                hint or f"its kernels: {known}",
            )
        return ()
    lists = [instantiated(one, program, list(arguments or ())) for one in same]
    if types or any(one.open or one.parted for one in same):
        return ()
    given = len(launch.args)
    counted = [
        one[:given]
        for one in lists
        if len(one) >= given and all(rest.default for rest in one[given:])
    ]
    if not counted:
        raise _other_count(document, path, launch, same[0].name, lists[0], _place(same[0]))
    errors: list[SpecError] = []
    for parameters in counted:
        error = _misfit(
            document, path, variant, launch, same[0].name, parameters, _place(same[0])
        ) or _misfit_field(document, path[:-2], variant, launch, parameters, program)
        if error is None:
            return parameters
        errors.append(error)
    raise errors[0]


def _read_back(
    variant: Variant,
    fitted: dict[int, tuple[Parameter, ...]],
    words: Sequence[str],
    program: Program,
    programs: Programs,
) -> frozenset[str]:
    """Workspaces that some kernel reads for certain, so that they are no outputs alone."""
    if not variant.workspaces or not variant.own_oracle:
        return frozenset()
    from tokitai_cli.spec.read_back import Reads  # a parser that other specs do without

    front = [Path(one[2:]) for one in words if one.startswith("-I") and Path(one[2:]).is_file()]
    front += flags.included(words)
    folders, defines = flags.include_folders(words), flags.definitions(words)
    reads = Reads(program.source, folders, front, defines, programs)
    found = set()
    for index, launch in enumerate(variant.launches):
        name, count = kernel_names.last_name(launch.kernel), len(launch.args)
        for at, (argument, known) in enumerate(zip(launch.args, fitted[index], strict=False)):
            if argument in variant.workspaces and reads.certain(name, count, at):
                found.add(str(argument))
            for one in places(program, variant.structs.get(str(argument), {}), known.type):
                if one.value in variant.workspaces and reads.certain(name, count, at, one.at):
                    found.add(str(one.value))
    return frozenset(found)


def _other_count(
    document: Document,
    path: KeyPath,
    launch: Launch,
    kernel: str,
    known: Sequence[Parameter],
    place: str,
) -> SpecError:
    names = ", ".join(one.name or one.text for one in known)
    given = len(launch.args)
    passes = f"{given} argument{'' if given == 1 else 's'}"
    message = f"the spec passes {passes}, `{kernel}` has {len(known)} parameters: {names}"
    return document.fault((*path, "args"), message, place)


def _misfit(
    document: Document,
    path: KeyPath,
    variant: Variant,
    launch: Launch,
    kernel: str,
    parameters: Sequence[Parameter],
    place: str,
) -> SpecError | None:
    for index, (argument, known) in enumerate(zip(launch.args, parameters, strict=True)):
        null = document.value((*path, "args", index)) is None
        wanted = _no_pointer(known) if null else _unfit(variant, argument, known)
        if wanted:
            message = f"the spec passes {wanted}; the parameter of `{kernel}` is `{known.text}`"
            hint = place
            if known.kind == "scalar" and not known.integer and wanted.endswith("integer"):
                hint = f"declare a scalar: {{dtype: {known.dtypes[0]}, value: ...}}"
            return document.fault((*path, "args", index), message, hint)
    return None


def _misfit_field(
    document: Document,
    path: KeyPath,
    variant: Variant,
    launch: Launch,
    parameters: Sequence[Parameter],
    program: Program,
) -> SpecError | None:
    """A field of a struct that the kernel's type does not have, or that is of another type there."""
    filled = (
        (name, one)
        for name, known in zip(map(str, launch.args), parameters, strict=True)
        for one in places(program, variant.structs.get(name, {}), known.type)
    )
    for name, one in filled:
        at = (*path, "structs", name, *keys_of(one.at))
        if one.names:
            message = f"`{one.type}` has no field `{at[-1]}`"
            hint = near(str(at[-1]), one.names)
            return document.fault(at, message, hint, at_key=True)
        wanted = ""
        if one.field is not None:
            null = document.value(at) is None
            wanted = _no_pointer(one.field) if null else _unfit(variant, one.value, one.field)
        if one.field is not None and wanted:
            message = (
                f"the spec passes {wanted} there; the field of `{one.type}` is `{one.field.text}`"
            )
            return document.fault(at, message, "give a value of the field's type")
    return None


def _no_pointer(known: Parameter) -> str:
    """That no address is passed, where the parameter is known to be no pointer; else empty."""
    return "" if known.pointers or known.kind == "unknown" else "`null`, no address"


def _unfit(variant: Variant, argument: str | int, known: Parameter) -> str:
    """What the argument is, where it cannot be passed for the parameter; else empty."""
    name = str(argument)
    buffers = passed_buffers(variant)
    if name in buffers:
        kind, dtype = "buffer", str(buffers[name].dtype)
        told = f"an array of {dtype}"
    elif name in variant.scalars:
        kind, dtype = "scalar", variant.scalars[name].dtype
        told = f"a {dtype}"
    elif name in variant.structs:
        several = isinstance(variant.structs[name], list)
        told = "several structs" if several else "a struct"
        kind, dtype = "structs" if several else "struct", ""
    elif name in variant.lists:
        kind, dtype, told = "list", "", "a list of arrays"
    else:
        kind, dtype, told = "zero" if argument == 0 else "integer", "", "an integer"
    return "" if known.takes(kind, dtype) else f"`{argument}`, {told}"


def _check_written(document: Document, path: KeyPath, variant: Variant, bound: _Bound) -> None:
    """Raise SpecError for an output that every launch takes by a pointer to const."""
    for role in ("outputs", "inout"):
        for name in getattr(variant, role):
            seen = bound.get(name, [])
            if seen and all(one is not None and one.const for one in seen):
                (first, *_) = [one for one in seen if one is not None]
                message = f"no kernel can write `{name}`: the parameter is `{first.text}`"
                hint = "make it an input, or check the order of `args`"
                raise document.fault((*path, role, name), message, hint, at_key=True)


def _remarks(path: KeyPath, variant: Variant, bound: _Bound) -> Iterator[str]:
    """Of inputs that a kernel takes by a pointer that is not const, as if it could write them."""
    for name in variant.inputs:
        seen = [one for one in bound.get(name, []) if one is not None and one.pointers]
        if any(not one.const for one in seen):
            yield (
                f"input {name} of {path[-1]}: the kernel's parameter is not a pointer to "
                "const; the array is compared with its original after each launch"
            )


def _bound(
    variant: Variant, fitted: dict[int, tuple[Parameter, ...]], program: Program | None
) -> _Bound:
    """Parameters and fields that each array is passed for; None where a launch's are not known."""
    found: _Bound = {}
    for index, launch in enumerate(variant.launches):
        for at, argument in enumerate(launch.args):
            known = fitted[index][at] if fitted[index] else None
            found.setdefault(str(argument), []).append(known)
            type_name = known.type if known is not None else ""
            for one in places(program, variant.structs.get(str(argument), {}), type_name):
                found.setdefault(str(one.value), []).append(one.field)
    return found


def _place(kernel: Kernel) -> str:
    return f"{kernel.file.name}:{kernel.line} declares it"
