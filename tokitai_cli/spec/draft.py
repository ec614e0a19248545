"""A spec for a kernel as its signature and the host's launch have it; what is guessed is marked."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tokitai_cli import expressions
from tokitai_cli.errors import SpecError
from tokitai_cli.kernel_source import (
    HostLaunch,
    Kernel,
    Parameter,
    Program,
    instantiated,
    kernels_of,
    launches_of,
)
from tokitai_cli.spec.leaves import Leaves, role_of

_SIZES = (96, 40, 7, 5, 3)
_DEFAULT_BLOCK = 256
_STRUCT_BYTES = 64
_PLAIN_ARGUMENT = re.compile(
    r"(?:float|double|bool|half|__half|__hip_bfloat16|(?:unsigned )?(?:int|char|short|long)|unsigned"
    r"|u?int\d+_t|float[234]|int[234]|true|false|-?\d+[uUlL]*)\*?"
)
_SCALARS = {"eps": "1e-5", "epsilon": "1e-5", "lr": "1e-3", "beta1": "0.9", "beta2": "0.999"}


class Draft(msgspec.Struct, frozen=True):
    """What could be made of a kernel. `reasons` say why it cannot be bound; the texts are empty then.

    instance: the kernel, as a spec names it.
    """

    kernel: Kernel
    instance: str
    reasons: tuple[str, ...]
    spec: str
    formula: str


def drafts(
    program: Program, folder: Path | None = None, include: Sequence[Path] = ()
) -> list[Draft]:
    """A draft for each kernel of a program, by the first launch in it that fits.

    folder: where the spec is to lie; by itself beside the program's source. include: folders that the
    program was read with.
    """
    launches = launches_of(program)
    here = folder or program.source.parent
    source = [os.path.relpath(one, here) for one in (program.source, *include)]
    found = []
    for kernel in kernels_of(program):
        mine = [one for one in launches if one.kernel == kernel.name]
        fitting = [one for one in mine if len(one.args) == len(kernel.parameters)] or mine
        found.append(_draft(program, kernel, fitting[0] if fitting else None, source))
    return found


def _draft(program: Program, kernel: Kernel, launch: HostLaunch | None, source: list[str]) -> Draft:
    arguments = _template_arguments(kernel, launch, program)
    instance = kernel.qualified + (f"<{', '.join(arguments)}>" if kernel.template else "")
    parameters = instantiated(kernel, program, arguments, guess=True)
    leaves = Leaves(program)
    for index, one in enumerate(parameters):
        leaves.add(msgspec.structs.replace(one, name=one.name or f"p{index}"))
    reasons = leaves.reasons
    if kernel.open:
        reasons.append("its parameters could not all be read")
    if not any(one.pointers and not one.const for one in leaves.found) and not reasons:
        reasons.append("it has no array that it could write")
    if reasons:
        return Draft(kernel, instance, tuple(reasons), "", "")
    writer = _Writer(kernel, instance, leaves, launch, source)
    return Draft(kernel, instance, (), writer.spec(), writer.formula())


def _template_arguments(kernel: Kernel, launch: HostLaunch | None, program: Program) -> list[str]:
    """Arguments of the host's launch; where it leaves them to be found out, what is common."""
    given = list(launch.template) if launch is not None else []
    known = {name for pieces in program.pieces.values() for piece in pieces for name in piece.names}
    found = []
    for index, one in enumerate(kernel.template):
        text = given[index] if index < len(given) else one.default
        words = set(re.findall(r"[A-Za-z_]\w*", text))
        builtin = _PLAIN_ARGUMENT.fullmatch(text)
        if text and (builtin or (words and words <= known | program.macros.keys())):
            found.append(text)
        elif one.type:
            low = one.type.split()[-1] == "bool"
            size = re.search(r"block|thread|size|tile|dim", one.name, re.I)
            found.append("true" if low else "256" if size else "4")
        elif any(re.search(rf"\b{p.name}\s*\(", kernel.body) for p in kernel.parameters
                 if p.type == one.name and p.name and not p.pointers):  # fmt: skip
            found.append(one.name)  # a function of its own: no type that could be guessed
        else:
            found.append("int" if re.search(r"idx|index|int", one.name, re.I) else "float")
    return found


class _Writer:
    """Texts of one draft."""

    def __init__(
        self,
        kernel: Kernel,
        instance: str,
        leaves: Leaves,
        launch: HostLaunch | None,
        source: list[str],
    ) -> None:
        self.source, *self.include = source
        self.kernel = kernel
        self.instance = instance
        self.launch = launch
        self.leaves = leaves
        self.parameters = leaves.found
        self.sizes = [one for one in self.parameters if one.integer and "bool" not in one.dtypes]
        self.roles = {
            one.name: role_of(one, leaves.places[one.name], kernel.body)
            for one in self.parameters
            if one.pointers
        }
        if not {"outputs", "inout"} & {*self.roles.values()}:
            # At least one is written: a call or a macro hides it.
            self.roles |= {p.name: "inout" for p in self.parameters if p.pointers and not p.const}

    def spec(self) -> str:
        """Text of spec.yaml; its source is named relative to the kernel's own folder."""
        name = self.kernel.name
        lines = [
            "schema: tokitai/spec/v1",
            f"op: {_op(name)}",
            f"title: {name}  # fill in: what it computes",
            f"summary: {name} of {self.kernel.file.name}.  # fill in: a sentence",
            "params:" if self._params() else "params: {}",
            *self._params(),
            "variants:",
            "  main:",
            '    formula: ""  # fill in: for reports, such as y = x / sum(x)',
            f"    source: {_quoted(self.source)}",
        ]
        if self.include:
            lines.append(f"    include: [{', '.join(map(_quoted, self.include))}]")
        for role in ("inputs", "outputs", "inout"):
            mine = [one for one in self.parameters if self.roles.get(one.name) == role]
            lines += [f"    {role}:"] if mine else []
            lines += [self._array(one) for one in mine]
        lines += self._scalars()
        for key, rows in (("structs", self.leaves.structs), ("lists", self.leaves.lists)):
            lines += [f"    {key}:", *rows] if rows else []
        lines += ["    launches:", f"      - kernel: {_quoted(self.instance)}", *self._launch()]
        lines += [f"    oracle: {{formula: formula.py:{_word(name)}}}", "    checks:"]
        lines += self._checks()
        lines += [*self._profiles(), *self._suites()]
        return "\n".join(lines) + "\n"

    def formula(self) -> str:
        """Text of formula.py."""
        written = [name for name, role in self.roles.items() if role in {"outputs", "inout"}]
        read = [name for name, role in self.roles.items() if role in {"inputs", "inout"}]
        lines = [
            "import numpy as np",
            "",
            "",
            f"def {_word(self.kernel.name)}(params, inputs, scalars):",
        ]
        lines += [f'    """{self.kernel.name}, as numpy says it."""']
        lines += [f'    {name} = inputs["{name}"]' for name in read]
        lines += [f'    {one.name} = params["{one.name}"]' for one in self.sizes]
        told = ", ".join(f'"{name}": ...' for name in written)
        lines += [f"    return {{{told}}}  # fill in: an array of each output's shape"]
        return "\n".join(lines) + "\n"

    def _params(self) -> list[str]:
        rows = [
            f'  {one.name}: {{default: {size}, help: "{one.text}"}}  # guess: its default'
            for one, size in zip(self.sizes, _SIZES + _SIZES[-1:] * len(self.sizes), strict=False)
        ]
        return rows or [
            '  elements: {default: 96, help: "elements of each array"}  # guess: a size'
        ]

    @property
    def total(self) -> str:
        """Elements of an array, where nothing says it: the product of the sizes."""
        return " * ".join(one.name for one in self.sizes[:3]) or "elements"

    def _array(self, one: Parameter) -> str:
        dtype = one.dtypes[0] if one.dtypes else "float32"
        guess = "its shape" if one.dtypes else "its shape and dtype"
        if one.kind == "structs":
            dtype, guess = "uint8", f"its shape, the last extent the bytes of a {one.type}"
        role = self.roles[one.name]
        also = f", and that it is {role}" if not one.const else ""
        before = "2, " if one.name in self.leaves.rows else ""
        behind = f", {_STRUCT_BYTES}" if one.kind == "structs" else ""
        shape = f'[{before}"{self.total}"{behind}]'
        return f"      {one.name}: {{dtype: {dtype}, shape: {shape}}}  # guess: {guess}{also}"

    def _checks(self) -> list[str]:
        """A bound for floats; whole numbers are equal."""
        written = [
            one for one in self.parameters if self.roles.get(one.name) in {"outputs", "inout"}
        ]
        whole = [one for one in written if one.dtypes and "float" not in one.dtypes[0]]
        if not whole:
            return ["      - {metric: bound, why: the error that a float32 kernel may have}"]
        return [
            f"      - {{metric: {'exact' if one in whole else 'bound'}, output: {one.name}}}"
            for one in written
        ]

    def _scalars(self) -> list[str]:
        mine = [one for one in self.parameters if not one.pointers and one not in self.sizes]
        lines = ["    scalars:"] if mine else []
        for one in mine:
            value = _SCALARS.get(one.name, "0.5" if "float" in one.dtypes[0] else "1")
            if one.dtypes == ("bool",):
                value = "true"
            lines.append(
                f"      {one.name}: {{dtype: {one.dtypes[0]}, value: {value}}}  # guess: its value"
            )
        return lines

    def _launch(self) -> list[str]:
        block = self._extents(self.launch.block if self.launch else [], str(_DEFAULT_BLOCK))
        size = _product(block[0])
        grid = self._extents(
            self.launch.grid if self.launch else [], f"ceil_div({self.total}, {size})"
        )
        lines = [
            f"        grid: [{', '.join(map(_quoted, grid[0]))}]{grid[1]}",
            f"        block: [{', '.join(map(_quoted, block[0]))}]{block[1]}",
        ]
        if re.search(r"\bextern\b[^;]*\b__shared__\b|\bHIP_DYNAMIC_SHARED\b", self.kernel.body):
            shared = self._expression(self.launch.shared if self.launch else "")
            guess = "" if shared and shared != "0" else "  # guess: bytes of shared memory"
            lines.append(f"        shared: {_quoted(shared if not guess else '16384')}{guess}")
        args = ", ".join(one.name for one in self.leaves.args)
        return [*lines, f"        args: [{args}]"]

    def _extents(self, given: Sequence[str], otherwise: str) -> tuple[list[str], str]:
        found = [self._expression(one) for one in given]
        if found and all(found):
            return found, ""
        return [otherwise], "  # guess: the host's launch does not say it"

    def _expression(self, text: str) -> str:
        """The host's C++ as an expression of the params; empty where it is none."""
        told = dict(zip(self.launch.args if self.launch else (), self.leaves.args, strict=False))
        sizes = {one.name for one in self.sizes}
        names = {host: one.name for host, one in told.items() if one.name in sizes}
        text = re.sub(r"sizeof\((?:float|int|unsigned|unsigned int|int32_t)\)", "4", text)
        text = re.sub(r"sizeof\((?:double|long|size_t|float2|int64_t)\)", "8", text)
        text = re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)
        text = re.sub(r"(?<!/)/(?!/)", "//", text)
        known = {one.name for one in self.sizes}
        try:
            if text and set(expressions.names_in(text)) <= known:
                return text
        except SpecError:
            pass
        return ""

    def _profiles(self) -> list[str]:
        whole = [
            one.name for one in self.parameters
            if self.roles.get(one.name) in {"inputs", "inout"} and one.dtypes and "int" in one.dtypes[0]
        ]  # fmt: skip
        lines = ["profiles:", "  normal:", "    draw: normal", '    help: "N(0,1)"']
        if whole:
            below = self.sizes[0].name if self.sizes else "elements"
            drawn = ", ".join(f"{name}: {{kind: index-uniform, below: {below}}}" for name in whole)
            lines.append(f"    inputs: {{{drawn}}}  # guess: indices")
        return lines

    def _suites(self) -> list[str]:
        names = [one.name for one in self.sizes] or ["elements"]
        shapes = [(1,) * len(names), (33, 17, 5, 3, 2), (64, 96, 4, 2, 2), (257, 129, 9, 5, 3)]
        words = ("one of each", "a tail", "a multiple", "a large one")
        lines = ["suites:", "  quick:"]
        for shape, why in zip(shapes, words, strict=True):
            told = ", ".join(f"{n}: {v}" for n, v in zip(names, [*shape, *shape], strict=False))
            lines.append(f"    - {{shape: {{{told}}}, why: {why}}}")
        return lines


def _product(extents: Sequence[str]) -> str:
    numbers = [int(one) for one in extents if one.isdigit()]
    size = 1
    for number in numbers:
        size *= number
    return str(size)


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _op(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "kernel"


def _quoted(text: str) -> str:
    if re.fullmatch(r"\d+|[A-Za-z_][\w.]*", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
