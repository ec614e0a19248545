"""A spec for a kernel as its signature and the host's launch have it; what is guessed is marked."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tokitai_cli.core.flags import fault
from tokitai_cli.core.model.harness import MAX_WORDS
from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.arithmetic import polynomial_of
from tokitai_cli.cpp.body.polynomial import Polynomial, constant, variable
from tokitai_cli.cpp.build_macros import as_flags
from tokitai_cli.cpp.comments import launch_in
from tokitai_cli.cpp.host.launch import Launch
from tokitai_cli.cpp.host.launches import launches_of
from tokitai_cli.cpp.host.written import number_of
from tokitai_cli.cpp.source.constants import constants_of
from tokitai_cli.cpp.source.launch_bounds import most_threads
from tokitai_cli.cpp.source.reached import reached
from tokitai_cli.cpp.source.signatures import Kernel, instantiated, kernels_of, types_of
from tokitai_cli.cpp.source.struct_layout import hides_fields, members_of
from tokitai_cli.cpp.source.variables import Variable, variables_of
from tokitai_cli.cpp.tiles import facts_of
from tokitai_cli.cpp.whole import Program
from tokitai_cli.drafts.arguments import as_number, qualified, template_arguments
from tokitai_cli.drafts.host_memory import at_host, numbers_of
from tokitai_cli.drafts.host_words import sizes_of_types
from tokitai_cli.drafts.known_facts import DraftContext, DraftSubject
from tokitai_cli.drafts.leaves import LaunchArguments
from tokitai_cli.drafts.like import TemplateOp, like
from tokitai_cli.drafts.model import SpecDraft
from tokitai_cli.drafts.reading import Reading
from tokitai_cli.drafts.render import spec_text
from tokitai_cli.drafts.texturing import add_textures, textures_of
from tokitai_cli.drafts.writer import draft_of


class Draft(msgspec.Struct, frozen=True):
    """What could be made of a kernel. `reasons` say why no spec can be written for it.

    There is a model then of a kernel that writes nothing alone: it can be run, and nothing be judged.
    """

    kernel: Kernel
    #: The kernel, as a spec names it.
    instance: str
    reasons: tuple[str, ...] = ()
    model: SpecDraft | None = None
    #: Text of formula.py.
    formula: str = ""
    #: The model at the host's own sizes, where these are known.
    of_host: SpecDraft | None = None
    #: Of the tool, for which there is no draft.
    fault: Exception | None = None

    @property
    def spec(self) -> str:
        """Text of spec.yaml; empty where there is none."""
        return spec_text(self.model) if self.model is not None else ""


def drafts(
    program: Program,
    folder: Path | None = None,
    include: Sequence[Path] = (),
    op: TemplateOp | None = None,
    room: bool = True,
    supposed: Collection[str] = (),
    known: Collection[tuple[Path, int]] = (),
) -> list[Draft]:
    """A draft for each kernel of a program, by the first launch in it that fits.

    folder: where the spec is to lie; by itself beside the program's source. include: folders that the
    program was read with. op: a shipped op's variant that formula, profiles and suites are taken from.
    room: see `DraftContext`. supposed: macros of the program that the build is guessed to define.
    known: kernels, by file and line, that need none: other programs have them too.
    """
    kernels = kernels_of(program)
    asked_for = [one for one in kernels if (one.file, one.line) not in known]
    if not asked_for:
        return []
    launches = launches_of(program)
    here = folder or program.source.parent
    paths = [os.path.relpath(one, here) for one in (program.source, *include)]
    given = as_flags(program.defines)
    flags = [one for one in given if not fault(one)[0]]  # a HIP compiler sets the others
    if any(tree.modern for tree in program.trees) and not any(
        one.startswith("-std=") for one in flags
    ):
        flags.append("-std=c++20")
    origin = DraftContext(paths[0], paths[1:], flags, room, sorted(supposed))
    found = []
    variables = variables_of(program)
    by_name: dict[str, list[Launch]] = {}
    for one in launches:
        by_name.setdefault(one.kernel, []).append(one)
    named: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        named.setdefault(kernel.qualified, []).append(kernel)
    for kernel in asked_for:
        mine = by_name.get(kernel.name, [])
        fitting = [one for one in mine if len(one.arguments) == len(kernel.parameters)] or mine
        same = named[kernel.qualified]
        overloaded = any(one.parameters != kernel.parameters for one in same)
        launch = fitting[0] if fitting else None
        asked = _Asked(program, kernel, launch, origin, op, overloaded, variables)
        try:
            found.append(_draft(asked))
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are drafted
            why = ("a fault of tokitai",)
            found.append(Draft(kernel, kernel.qualified, why, fault=error))
    return found


class _Asked(NamedTuple):
    """A kernel that a draft is asked for."""

    program: Program
    kernel: Kernel
    launch: Launch | None
    origin: DraftContext
    op: TemplateOp | None
    #: Whether another one has its name.
    overloaded: bool
    variables: Sequence[Variable]


def _draft(asked: _Asked) -> Draft:
    program, kernel, launch, origin, op, overloaded, variables = asked
    arguments, guessed = template_arguments(kernel, launch, program)
    shown = _told(kernel, arguments, guessed)
    instance = kernel.qualified + (f"<{', '.join(shown)}>" if kernel.template else "")
    parameters = instantiated(kernel, program, arguments, guess=True)
    if overloaded:
        instance += (
            f"({qualified(types_of(parameters), itertools.chain(*program.pieces.values()))})"
        )
    parts = reached(program, kernel)
    leaves = LaunchArguments(program)
    for index, one in enumerate(parameters):
        leaves.add(msgspec.structs.replace(one, name=one.name or f"p{index}"), *parts[:1])
    given = {one.name: text for one, text in zip(kernel.template, arguments, strict=True)}
    numbers = {name: as_number(text) for name, text in given.items()}
    facts = facts_of(program, kernel, numbers)
    leaves.join_sizes(facts.accesses)
    add_textures(leaves, program, facts.fetches)
    reading = Reading(facts, leaves.paths, _any_accessed(program, kernel, numbers))
    leaves.add_variables(variables, reading.variable)
    reasons = _reasons(kernel, leaves)
    silent = _writes_nothing(leaves)
    if reasons or (silent and op is not None):
        reasons = reasons or silent
        return Draft(kernel, instance, tuple(reasons))
    if any(one.kind == "struct" and hides_fields(program, one.type) for one in parameters):
        origin = origin._replace(flags=[*origin.flags, "-fno-access-control"])
    if launch is not None:
        called = dict(zip(launch.template, arguments, strict=False))
        members = _members(program, given) | _members(program, called)
        launch = _with_members(launch, members, given | called)
    constants = constants_of(program) | given
    source = (source_text.read(kernel.file) or b"").decode("utf-8", "replace")
    host = {} if origin.room else _of_host(launch, leaves)
    if launch is None and not origin.room:
        launch = _commented(program, kernel, source, constants)
    subject = DraftSubject(
        kernel, instance, guessed, leaves, launch, origin, constants, source, parts, host, reading,
        most_threads(program, kernel, arguments), own_shapes=op is None,
    )  # fmt: skip
    model, formula = draft_of(subject)
    model = msgspec.structs.replace(model, textures=textures_of(leaves, program))
    if op is not None:
        model, formula = like(model, kernel.name, leaves.found, leaves.args, op)
    of_host = None if origin.room else at_host(model, launch, leaves)
    return Draft(kernel, instance, tuple(silent), model, formula, of_host)


def _any_accessed(program: Program, kernel: Kernel, given: Mapping[str, str]) -> set[str]:
    """Arrays that some instance of a template accesses; none where numbers decide nothing."""
    types = {name: text for name, text in given.items() if not text.lstrip("-").isdigit()}
    if len(types) == len(given):
        return set()
    return {one.array for one in facts_of(program, kernel, types).accesses}


def _told(kernel: Kernel, arguments: Sequence[str], guessed: Sequence[str]) -> list[str]:
    """Template arguments without the last ones that the template has by default."""
    told = list(arguments)
    for one in reversed(kernel.template[1:]):
        if len(told) != len(kernel.template) and not one.default:
            break
        if one.default != told[-1] or one.name in guessed:
            break
        told.pop()
    return told


def _reasons(kernel: Kernel, leaves: LaunchArguments) -> list[str]:
    """Why a kernel cannot be bound."""
    reasons = leaves.reasons
    if kernel.open:
        reasons.append("its parameters could not all be read")
    if leaves.words > MAX_WORDS:
        reasons.append(f"a launch passes {leaves.words} values, {MAX_WORDS} at most can be passed")
    return reasons


def _writes_nothing(leaves: LaunchArguments) -> list[str]:
    """That a kernel gives nothing back which could be judged."""
    if any(one.pointers and not one.const for one in leaves.found):
        return []
    told = f", nor a variable of known extents: {', '.join(leaves.unsized)}"
    return ["it has no array that it could write" + told * bool(leaves.unsized)]


def _commented(
    program: Program, kernel: Kernel, source: str, constants: Mapping[str, str]
) -> Launch | None:
    """The launch that comments beside the kernel say, None where they say none."""
    tree, extents = program.trees[0], launch_in(source, kernel)
    grid, block = (tuple(number_of(tree, one) for one in listed) for listed in extents)
    if not grid + block:
        return None
    args = tuple(variable(one.name) for one in kernel.parameters)
    where = kernel.file, kernel.line
    launch = Launch(kernel.name, (), grid, block, constant(0), args, *where, commented=True)
    return launch.with_values(_numbers(launch, constants))


def _members(program: Program, types: Mapping[str, str]) -> dict[str, str]:
    """Numbers of the classes that names stand for, as `Tile::BM`."""
    return {
        f"{name}::{member}": value
        for name, told in types.items()
        for member, value in members_of(program, told).items()
    }


def _with_members(launch: Launch, members: Mapping[str, str], meaning: Mapping[str, str]) -> Launch:
    """The launch with numbers of classes and bytes of types.

    meaning: what parameters of templates stand for.
    """
    values = _numbers(launch, {**members, **meaning})
    for one in (*launch.grid, *launch.block, launch.shared):
        values |= sizes_of_types(one, meaning)
    return launch.with_values(values)


def _numbers(launch: Launch, meaning: Mapping[str, str]) -> dict[str, Polynomial]:
    """Numbers for names of a launch's extents."""
    every = (*launch.grid, *launch.block, launch.shared)
    names = {name for one in every for name in one.names()} & meaning.keys()
    told = {name: polynomial_of(meaning[name]) for name in names}
    return {name: number for name, number in told.items()
            if number is not None and number.number is not None}  # fmt: skip


def _of_host(launch: Launch | None, leaves: LaunchArguments) -> dict[str, float]:
    """Numbers that the host passes, by the names of the spec."""
    return {name: float(number) for name, number in numbers_of(launch, leaves).items()}
