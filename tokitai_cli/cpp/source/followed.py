"""What a walk over the host's functions adds to launches as its text has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokitai_cli.cpp.arithmetic import polynomial_of
from tokitai_cli.cpp.body.polynomial import Polynomial
from tokitai_cli.cpp.launches import Launch, launches_in
from tokitai_cli.cpp.whole import Program

if TYPE_CHECKING:
    from tokitai_cli.cpp.source.launches import HostLaunch


def followed(
    program: Program, written: Sequence[HostLaunch], new: type[HostLaunch]
) -> list[HostLaunch]:
    """Launches with what variables hold where they stand, and those that only a walk finds.

    A variable that the host sets again, or counts from others, is worth what it holds at the launch.
    Launches that the walk does not come by stand last: conditions may leave them out.
    """
    known: dict[tuple[Path, int, str], Launch] = {}
    for tree in program.trees:
        for one in launches_in(tree):
            known.setdefault((Path(one.file), one.line, one.kernel.name), one)
    found: list[HostLaunch] = []
    passed_by: list[HostLaunch] = []
    for launch in written:
        other = known.pop((launch.file, launch.line, launch.kernel), None)
        if other is None:
            passed_by.append(launch)
        else:
            found.append(_joined(launch, other))
    found += passed_by
    for (file, line, name), one in known.items():
        if not any(launch.kernel == name for launch in found):
            found.append(_made(program, one, file, line, new))
    return found


def _joined(launch: HostLaunch, other: Launch) -> HostLaunch:
    args, values = launch.args, dict[str, Polynomial]()
    if len(args) == len(other.arguments):
        pairs = list(zip(args, other.arguments, strict=True))
        args = [_argument(text, told, args) for text, told in pairs]
        values = {text: told for text, told in pairs if told is not None and text.isidentifier()}
    grid = _extents(launch.grid, other.grid, values)
    block = _extents(launch.block, other.block, values)
    fields = _texts(other)
    return msgspec.structs.replace(launch, grid=grid, block=block, args=args, fields=fields)


def _extents(
    texts: Sequence[str], told: Sequence[Polynomial | None], values: Mapping[str, Polynomial]
) -> list[str]:
    """The host's text where it says the same, or where nothing is known; else what is known.

    values: of the variables that are passed, which the text may speak of.
    """
    found = []
    for at, extent in enumerate(told):
        text = texts[at] if at < len(texts) else "1"
        said = polynomial_of(text)
        same = said is not None and said.with_values(values) == extent
        plain = same and "?" not in text  # a choice that is a sum, the language of sizes can say
        found.append(text if extent is None or plain else str(extent))
    while len(found) > max(len(texts), 1) and found[-1] == "1":
        found.pop()
    return found if texts or any(one != "1" for one in found) else []


def _argument(text: str, told: Polynomial | None, others: Sequence[str]) -> str:
    """An argument by the others, where the host counts it from them: `stride` is `heads * size`."""
    if told is None or not text.isidentifier() or told.number is not None:
        return text
    names = told.names()
    return str(told) if text not in names and names <= {*others} - {text} else text


def _made(
    program: Program, one: Launch, file: Path, line: int, new: type[HostLaunch]
) -> HostLaunch:
    source = program.sources[0]
    begin = source.unit.offset(file, line)
    grid, block = (_extents([], told, {}) for told in (one.grid, one.block))
    shared = str(one.shared) if one.shared is not None else "0"
    return new(
        one.kernel.name,
        [*one.template],
        grid,
        block,
        shared,
        [*one.written],
        line,
        file,
        source.path,
        begin,
        fields=_texts(one),
    )


def _texts(launch: Launch) -> dict[str, str]:
    return {path: str(number) for path, number in launch.fields.items()}
