"""Texts of a draft: a spec and a formula by a kernel's arguments, guesses and gaps marked."""

from __future__ import annotations

import keyword
import re

from tokitai_cli.drafts.indexing import Indexing
from tokitai_cli.drafts.launch_writer import Subject, quoted
from tokitai_cli.drafts.leaves import free
from tokitai_cli.drafts.room import RoomWriter
from tokitai_cli.kernel_source.signatures import Parameter
from tokitai_cli.kernel_source.uses import role_of
from tokitai_cli.spec.gaps import GAP, GUESS

_STRUCT_BYTES = 64
_DIMENSIONS = 8  # that an array of a spec has at most
_SCALARS = {
    "eps": "1e-5",
    "epsilon": "1e-5",
    "lr": "1e-3",
    "beta1": "0.9",
    "beta2": "0.999",
    "ignore_index": "-100",
    "base": "10000",
    "theta": "10000",
    "weight_decay": "0.01",
}
_HEAD = re.compile(r"^(?:head_?)?(?:dim|size)$|^d_?(?:k|head)?$", re.I)  # of attention
_BYTES = {"int8": (-127, 127), "uint8": (0, 255)}
# Second moments, variances and what is made of them.
_NOT_BELOW_0 = re.compile(r"_sq$|moment2|second|^var|variance|std$|norms?$|^rand", re.I)
_DOES = {"inputs": "only reads", "outputs": "only writes", "inout": "reads and writes"}
# Whole numbers that say no extent.
_NO_SIZE = re.compile(
    r"ignore|pad|seed|offset|flag|mode|steps?$|iter(?:ation)?s?$|repeats?$|ind(?:ex|ices)$|idx$",
    re.I,
)
# Shapes of suites, from the last size to the first: one, a tail, a multiple of blocks, a large one.
# No shape but the first has two equal sizes.
_EXTENTS = ((1, 257, 512, 1031), (1, 5, 3, 67), (1, 7, 2, 13), (1, 2, 5, 3), (1, 3, 4, 2))
_WHY = ("one of each", "a tail", "a multiple of blocks", "a large one")


class Writer(RoomWriter):
    """Texts of one draft: spec.yaml and formula.py."""

    def __init__(self, subject: Subject) -> None:
        self.origin = subject.origin
        self.kernel, self.leaves = subject.kernel, subject.leaves
        self.instance, self.launch = subject.instance, subject.launch
        self.constants, self.guessed = subject.constants, subject.guessed
        self.parameters = self.leaves.found
        self.sizes = [
            one
            for one in self.parameters
            if one.integer and "bool" not in one.dtypes and not _NO_SIZE.search(one.name)
        ]
        self.function = _word(self.kernel.name)
        fixed = self.leaves.variables
        arrays = [one for one in self.parameters if one.pointers and one.name not in fixed]
        self._plain = self.leaves.plain(self.kernel.body)
        self.text = Indexing(
            self._plain,
            [one.name for one in arrays],
            [one.name for one in self.sizes],
            subject.constants,
        )
        self.roles = {one.name: role_of(one, self.text.body) for one in arrays}
        self.roles |= {name: role for name, (_, _, role) in fixed.items()}
        if not {"outputs", "inout"} & {*self.roles.values()}:
            # At least one is written: a call or a macro hides it.
            self.roles |= {p.name: "inout" for p in self.parameters if p.pointers and not p.const}
        self._add_rows()
        self._limits, self._multiples = self.text.limits(), self.text.multiples()
        filled = self.filled().items()
        self._multiples |= {name: n for name, n in filled if n <= self._limits.get(name, n)}

    def spec(self) -> str:
        """Text of spec.yaml; its source is named relative to the kernel's own folder."""
        name = self.kernel.name
        lines = [
            "schema: tokitai/spec/v1",
            f"op: {_op(name)}",
            f"title: {self._title()}",
            f"summary: {name} of {self.kernel.file.name}; formula.py says what it computes.",
            "params:" if self._params() else "params: {}",
            *self._params(),
            "variants:",
            "  main:",
            f"    formula: {self._told()}",
            f"    source: {quoted(self.origin.source)}",
        ]
        for key, words in (("include", self.origin.include), ("flags", self.origin.flags)):
            lines += [f"    {key}: [{', '.join(map(quoted, words))}]"] if words else []
        for role in ("inputs", "outputs", "inout", "symbols"):
            mine = [one for one in self.parameters if self.roles.get(one.name) == role]
            lines += [f"    {role}:"] if mine else []
            lines += [self._array(one) for one in mine]
        lines += self._scalars()
        for key, rows in (("structs", self.leaves.structs), ("lists", self.leaves.lists)):
            lines += [f"    {key}:", *rows] if rows else []
        told = f"{', '.join(self.guessed)} stand{'s' * (len(self.guessed) == 1)}"
        guess = f"  # guess: what {told} for" if self.guessed else ""
        lines += ["    launches:", f"      - kernel: {quoted(self.instance)}{guess}"]
        lines += self._launch()
        lines += [f"    oracle: {{formula: formula.py:{self.function}}}", "    checks:"]
        lines += self._checks()
        unbound = [
            quoted(f"variable {name}: " + ("read as it starts" if reads else "written, not judged"))
            + f"  # guess: that this is {'meant' if reads else f'no output (symbol: {name})'}"
            for name, reads in self.leaves.unbound
        ]
        lines += ["    non_claims:", *(f"      - {line}" for line in unbound)] if unbound else []
        lines += [*self._profiles(), *self._suites()]
        return "\n".join(lines) + "\n"

    def _add_rows(self) -> None:
        """A new size where blocks count what no argument of the kernel says: the host knows it."""
        unknown = ["xyz".index(axis) for axis, size in self.text.axes.items() if not size]
        if not unknown or not self.sizes:
            return
        grid = self.launch.grid if self.launch is not None else ()
        told = grid[unknown[0]] if unknown[0] < len(grid) else ""
        if told and self._expression(told):
            return  # the host's own expression says it
        taken = {one.name for one in self.parameters}
        name = next(one for one in ("rows", "blocks", "count") if one not in taken)
        if re.fullmatch(r"[A-Za-z]\w*", told) and free(told) not in taken:
            name = free(told)
        self.sizes.insert(0, Parameter(name, "int", "scalar", ("int32",), 0, False, ""))
        self.text.add_rows(name)

    def _title(self) -> str:
        return f"{self.kernel.name}  {GAP} what it computes"

    def _told(self) -> str:
        return f'""  {GAP} for reports, such as y = x / sum(x)'

    def formula(self) -> str:
        """Text of formula.py: a function that raises until its body is written."""
        written = [name for name, role in self.roles.items() if role in {"outputs", "inout"}]
        read = [name for name, role in self.roles.items() if role != "outputs"]
        scalars = [one.name for one in self._numbers()]
        lines = [
            "import numpy as np",
            "",
            "",
            f"def {self.function}(params, inputs, scalars):",
            f'    """{self.kernel.name}, as numpy says it."""',
        ]
        sizes = [one.name for one in self.sizes]
        for role, names in (("inputs", read), ("params", sizes), ("scalars", scalars)):
            lines += [f'    {_local(name)} = {role}["{name}"]' for name in names]
        told = ", ".join(f'"{name}": ...' for name in written)
        lines += [
            f"    {GAP} in place of the next line, return {{{told}}}, each of its array's shape",
            f'    raise NotImplementedError("nobody has written yet what {self.kernel.name} computes")',
        ]
        return "\n".join(lines) + "\n"

    def _params(self) -> list[str]:
        rows = []
        for one in self.sizes:
            told = {"multiple_of": self._multiples.get(one.name), "max": self._limits.get(one.name)}
            said = "".join(f", {key}: {value}" for key, value in told.items() if value)
            default = self._values[one.name]
            text = f'{{default: {default}{said}, help: "{one.text}"}}'
            rows.append(
                f"  {one.name}: {text}  # guess: its default{' and limits' if said else ''}"
            )
        count = str(self._values.get("elements", 0)) + f", multiple_of: {self._whole}" * bool(
            self._whole
        )
        return rows or [
            f'  elements: {{default: {count}, help: "elements of each array"}}  # guess: a size'
        ]

    def _array(self, one: Parameter) -> str:
        dtype = one.dtypes[0] if one.dtypes else "float32"
        guess = "its shape" if one.dtypes else "its shape and dtype"
        if one.kind == "structs":
            dtype, guess = "uint8", f"its shape, the last extent the bytes of a {one.type}"
        role = self.roles[one.name]
        if one.name in self.leaves.variables:
            variable, exact, _ = self.leaves.variables[one.name]
            symbol = f", symbol: {quoted(variable.qualified)}" if role != "symbols" else ""
            guess = f"  # guess: that the kernel {_DOES[role]} it" if symbol else ""
            return f"      {one.name}: {{dtype: {dtype}, shape: {exact}{symbol}}}{guess}"
        also = "" if one.const else f", and that the kernel {_DOES[role]} it"
        before = "2, " if one.name in self.leaves.rows else ""
        inner = str(self.leaves.inner.get(one.name, _STRUCT_BYTES if one.kind == "structs" else ""))
        behind = f", {inner}" if inner else ""
        sizes = [size.name for size in self.sizes[:3]] or ["elements"]
        left = _DIMENSIONS - bool(before) - bool(behind)
        extents = self.text.shape(one.name)[-left:]
        room = self._room(one.name, extents)
        if room:
            said = f", where its strides say [{', '.join(extents)}]" if extents else ""
            guess += f" (room for what its indices may reach{said})"
        told = ", ".join(map(quoted, room or extents or sizes))
        shape = f"[{before}{told}{behind}]"
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

    def _numbers(self) -> list[Parameter]:
        """Arguments by value that are no sizes."""
        return [one for one in self.parameters if not one.pointers and one not in self.sizes]

    def _scalars(self) -> list[str]:
        mine = self._numbers()
        lines = ["    scalars:"] if mine else []
        for one in mine:
            value = _SCALARS.get(one.name, "0.5" if "float" in one.dtypes[0] else "1")
            if one.dtypes == ("bool",):
                value = "true"
            heads = [size.name for size in self.sizes if _HEAD.search(size.name)]
            if heads and re.fullmatch(r"(?:sm_|softmax_|attn_)?scale", one.name):
                value = f'"1 / sqrt({self._named(heads[-1])})"'
            lines.append(
                f"      {one.name}: {{dtype: {one.dtypes[0]}, value: {value}}}  # guess: its value"
            )
        return lines

    def _profiles(self) -> list[str]:
        read = [p for p in self.parameters if self.roles.get(p.name, "outputs") != "outputs"]
        drawn = [f"{one.name}: {told}" for one in read if (told := self._draw(one))]
        lines = ["profiles:", "  normal:", "    draw: normal", '    help: "N(0,1)"']
        return lines + [f"    inputs: {{{', '.join(drawn)}}}  # guess: ranges"] * bool(drawn)

    def _draw(self, one: Parameter) -> str:
        """Draw of an array that is not N(0,1); empty for one that may be."""
        if one.kind == "structs":
            return "{kind: constant, value: 0}"  # whole numbers in it may be indices
        dtype = one.dtypes[0] if one.dtypes else ""
        squares = one.name == "v" and "m" in self.roles
        if "float" in dtype:
            whole = (
                rf"\(\s*(?:unsigned\s+)?int\s*\)\s*\(?[^;]*(?<![\w.]){one.name}\s*\["  # an index
            )
            positive = squares or _NOT_BELOW_0.search(one.name) or re.search(whole, self._plain)
            return "{kind: uniform}" if positive else ""
        if "int" not in dtype:
            return ""
        if re.search("mask", one.name, re.I):
            return "{kind: index-uniform, below: 2}"
        if re.search(rf"[/%]\s*{one.name}\s*\[", self._plain):  # not by 0
            return f"{{kind: uniform, lo: 1, hi: {self._last}}}"
        if end := self.text.offsets_to(one.name):
            return f"{{kind: offsets, end: {quoted(end)}}}"
        if below := self.text.values_below(one.name):
            return f"{{kind: index-uniform, below: {quoted(below)}}}"
        if dtype in _BYTES:
            return f"{{kind: uniform, lo: {_BYTES[dtype][0]}, hi: {_BYTES[dtype][1]}}}"
        return f"{{kind: index-uniform, below: {100 if 'pos' in one.name else self._last}}}"

    @property
    def _last(self) -> str:
        return self.sizes[-1].name if self.sizes else "elements"

    def _suites(self) -> list[str]:
        names = [one.name for one in self.sizes] or ["elements"]
        more = _EXTENTS + _EXTENTS[-1:] * len(names)
        lines = ["suites:", "  quick:"]
        for index, why in enumerate(_WHY):
            extents = [extent[index] for extent in more[: len(names)]][::-1]
            pairs = zip(names, extents, strict=True)
            told = ", ".join(f"{name}: {self._fitting(name, n)}" for name, n in pairs)
            told = f"elements: {self._whole * (index + 1)}" if self._whole else told
            lines.append(f"    - {{shape: {{{told}}}, why: {why}}}  {GUESS} its sizes")
        return lines


def _local(name: str) -> str:
    """A name for it in the formula: no word of Python's, nor one that stands there already."""
    taken = keyword.iskeyword(name) or name in ("np", "params", "inputs", "scalars")
    return f"{name}_" if taken else name


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _op(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "kernel"
