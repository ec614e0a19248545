"""What a variant's launches must fulfil: kernels, loops, and everything that is passed to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tokitai_cli.core import resources
from tokitai_cli.core.file_kind import is_machine_code
from tokitai_cli.core.model.buffers import leaves_of, listed, passed_buffers
from tokitai_cli.core.model.harness import MAX_WORDS
from tokitai_cli.core.model.spec import WARP_SIZE, Buffer, Expression, Launch, Spec, Variant
from tokitai_cli.core.model.textures import references
from tokitai_cli.cpp import kernel_names
from tokitai_cli.spec.reader.document import Document, KeyPath, keys_of
from tokitai_cli.spec.reader.symbols import check_expression, check_known, check_real

ROLES = ("inputs", "outputs", "inout", "workspaces", "symbols")


def buffers_of(variant: Variant) -> dict[str, tuple[str, Buffer]]:
    """Name -> (role key, buffer) over all roles; a repeated name keeps its first role."""
    found: dict[str, tuple[str, Buffer]] = {}
    for role in ROLES:
        for name, buffer in getattr(variant, role).items():
            found.setdefault(name, (role, buffer))
    return found


def check_launches(document: Document, path: KeyPath, spec: Spec, variant: Variant) -> None:
    """Raise SpecError at the first thing of launches, structs, lists or scalars that cannot be meant."""
    _check_lists(document, path, variant)
    for index, launch in enumerate(variant.launches):
        _check_launch(document, (*path, "launches", index), spec, variant, launch)
    for name in variant.structs:
        _check_struct(document, (*path, "structs", name), spec, variant, name)
    for name, scalar in variant.scalars.items():
        if isinstance(scalar.value, str) and scalar.dtype != "bool":
            check = check_real if "float" in scalar.dtype else check_expression
            names = {*spec.names, WARP_SIZE, *_steps(variant, name)}
            check(document, (*path, "scalars", name, "value"), scalar.value, names)
    _check_all_passed(document, path, variant)


def _steps(variant: Variant, name: str) -> set[str]:
    """Names of loops that are around every launch that `name` is passed by."""
    found = [
        {loop.name for loop in launch.loops}
        for launch in variant.launches
        if name in _passed(variant, launch.args)
    ]
    return set.intersection(*found) if found else set()


def _check_lists(document: Document, path: KeyPath, variant: Variant) -> None:
    buffers = buffers_of(variant)
    known = list(passed_buffers(variant))
    for name in variant.lists:
        here = (*path, "lists", name)
        arrays = listed(variant, name)
        if not arrays:
            raise document.fault(here, "an empty list", "name the arrays that it points to")
        for array in arrays:
            check_known(document, here, array, known, "array")
        dtypes = {buffers[array][1].dtype for array in arrays}
        if len(dtypes) > 1:
            said = f"arrays of {' and '.join(sorted(dtypes))} in one list"
            raise document.fault(here, said, "all its pointers must have one type")


def _check_struct(
    document: Document, path: KeyPath, spec: Spec, variant: Variant, name: str
) -> None:
    names = {*spec.names, WARP_SIZE, *_steps(variant, name)}
    for at, value in leaves_of(variant.structs[name]):
        here = (*path, *keys_of(at))
        if value in variant.structs:
            hint = "write its fields here"
            raise document.fault(here, f"`{value}` is a struct of its own", hint)
        _check_argument(document, here, names, variant, value)


def _passed(variant: Variant, args: Collection[Expression]) -> Iterator[str]:
    """Names that arguments stand for, those in structs and lists too."""
    for arg in args:
        name = str(arg)
        yield name
        if name in variant.structs:
            yield from _passed(variant, [one for _, one in leaves_of(variant.structs[name])])
        elif name in variant.lists:
            yield from listed(variant, name)


def _check_launch(
    document: Document, path: KeyPath, spec: Spec, variant: Variant, launch: Launch
) -> None:
    # In machine code the name is looked up (signatures).
    file = resources.file_of(document.file.parent, variant.source)
    if not kernel_names.is_kernel_name(launch.kernel) and not is_machine_code(file):
        hint = (
            "write the name of a __global__ function, an instantiation such as sum<float, 256>, or "
            "one of several by its types: scale(float*, int)"
        )
        raise document.fault((*path, "kernel"), f"{launch.kernel!r} names no kernel", hint)
    names = {*spec.names, WARP_SIZE}
    for number, loop in enumerate(launch.loops):
        at = (*path, "loop", number) if isinstance(launch.loop, list) else (*path, "loop")
        taken = {*names, *buffers_of(variant), *variant.scalars, *variant.structs, *variant.lists}
        if loop.name in taken:
            message = f"`{loop.name}` is already the name of something else"
            raise document.fault((*at, "name"), message, "rename one")
        check_expression(document, (*at, "count"), loop.count, names)
        names.add(loop.name)
    for key, extents in (("grid", launch.grid), ("block", launch.block)):
        if not 1 <= len(extents) <= 3:
            message = f"{len(extents)} entries, a {key} has 1 to 3"
            raise document.fault((*path, key), message, "write [x], [x, y] or [x, y, z]")
        for index, extent in enumerate(extents):
            check_expression(document, (*path, key, index), extent, names)
    check_expression(document, (*path, "shared"), launch.shared, names)
    for index, argument in enumerate(launch.args):
        _check_argument(document, (*path, "args", index), names, variant, argument)
    fields = [list(leaves_of(variant.structs.get(str(one), {}))) for one in launch.args]
    words = len(fields) + sum(map(len, fields))
    if words > MAX_WORDS:
        message = f"the launch passes {words} values, structs and their fields; {MAX_WORDS} at most"
        raise document.fault((*path, "args"), message, "pass the rest by a pointer")


def _check_argument(
    document: Document,
    path: KeyPath,
    names: Collection[str],
    variant: Variant,
    argument: str | int,
) -> None:
    buffers = buffers_of(variant)
    if argument in buffers:
        if argument not in passed_buffers(variant):
            hint = "kernels see it by its own name; remove the argument"
            raise document.fault(path, f"`{argument}` is a symbol, not an argument", hint)
        return
    others = {**variant.scalars, **variant.structs, **variant.lists}
    if argument in others:
        return
    if isinstance(argument, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", argument):
        known = [*buffers, *others, *names]
        check_known(document, path, argument, known, "argument")
        return
    check_expression(document, path, argument, names)


def _check_all_passed(document: Document, path: KeyPath, variant: Variant) -> None:
    every = [*references(variant), *(arg for launch in variant.launches for arg in launch.args)]
    passed = {*_passed(variant, every)}
    for name in passed_buffers(variant):
        if name in passed:
            continue
        role = buffers_of(variant)[name][0]
        message = f"`{name}` is not an argument of any launch"
        raise document.fault((*path, role, name), message, "add it to `args`", at_key=True)
    for key in ("scalars", "structs", "lists"):
        for name in getattr(variant, key):
            if name not in passed:
                message = f"`{name}` is not an argument of any launch"
                at = (*path, key, name)
                raise document.fault(at, message, "add it to `args`", at_key=True)
