"""Texts of a draft: a spec and a formula by a kernel's arguments, guesses and gaps marked."""

from __future__ import annotations

import keyword
import re

from tokitai_cli.core.dtypes import DTYPES, FORMATS
from tokitai_cli.core.model.spec import MOST_OF_NAME
from tokitai_cli.cpp.indices.comments import known, shapes_in
from tokitai_cli.cpp.indices.indexing import Indexing
from tokitai_cli.cpp.indices.values import Values
from tokitai_cli.cpp.source.signatures import Parameter
from tokitai_cli.cpp.source.uses import reads_back
from tokitai_cli.drafts.accessors import blocks_of
from tokitai_cli.drafts.extents import STRUCT_BYTES
from tokitai_cli.drafts.launch_writer import DraftSubject, quoted
from tokitai_cli.drafts.leaves import last_word
from tokitai_cli.drafts.likely_values import likely
from tokitai_cli.drafts.suites import SuiteWriter
from tokitai_cli.spec.reader.gaps import GAP, GUESS

_DIMENSIONS = 8  # that an array of a spec has at most
_HEAD = re.compile(r"^k?(?:head_?)?(?:dim|size)$|^d_?(?:k|head)?$|^HS$", re.I)  # of attention
_DOES = {"inputs": "only reads", "outputs": "only writes", "inout": "reads and writes"}
# Whole numbers that say no extent.
_NO_SIZE = re.compile(
    r"ignore|pad|seed|offset|flag|mode|step$|iter(?:ation)?s?$|repeats?$|bits?$|ind(?:ex|ices)$|idx$",
    re.I,
)


class Writer(SuiteWriter):
    """Texts of one draft: spec.yaml and formula.py."""

    def __init__(self, subject: DraftSubject) -> None:
        self.origin = subject.origin
        self.kernel, self.leaves = subject.kernel, subject.leaves
        self.instance, self.launch = subject.instance, subject.launch
        self.constants, self.guessed = subject.constants, subject.guessed
        self.reading = subject.reading
        self.reached, self.host = subject.reached, subject.host
        self._blocks, self.sizes_of_host = {}, {}
        self.nulls = self._nulls()
        self.parameters = [one for one in self.leaves.found if one.name not in self.nulls]
        self.sizes = [
            one
            for one in self.parameters
            if one.integer and "bool" not in one.dtypes and not _NO_SIZE.search(one.name)
        ]
        self.passed = {} if self.origin.room else self._passed()
        self.sizes = [one for one in self.sizes if one.name not in self.passed]
        self.function = _local(_word(self.kernel.name))
        fixed = self.leaves.variables
        arrays = [one for one in self.parameters if one.pointers and one.name not in fixed]
        self._plain = self.leaves.plain(self.kernel.body)
        self.text = Indexing(
            self._plain,
            [one.name for one in arrays],
            [one.name for one in self.sizes],
            subject.constants,
            self.passed,
        )
        said = {one.name: one.name for one in self.sizes}
        said |= {name: f"({told})" for name, told in self.passed.items()}
        self.text.by_tree = {one.name: self.reading.shape(one.name, said) for one in arrays}
        own = {one.name for one in self.parameters}
        named = {name: told for name, told in self.constants.items() if name not in own}
        self.values = Values(self.text.body, self.reached, named)
        self.roles = {one.name: self.reading.role(one) for one in arrays}
        self.roles |= {name: role for name, (_, _, role) in fixed.items()}
        if not {"outputs", "inout"} & {*self.roles.values()}:
            # At least one is written: a call or a macro hides it.
            self.roles |= {p.name: "inout" for p in self.parameters if p.pointers and not p.const}
        self.text.said = {one.array: one.sizes for one in self.leaves.accessors}
        self.text.axes |= blocks_of(self.leaves.accessors, self.kernel.body)
        if not self.origin.room:
            self._read_comments(subject.source)
        self._add_rows()
        if not self.origin.room and "gridDim" in self.text.body:
            counted = zip("xyz", self.text.grid(["1"]), strict=False)
            self.text.put_grid({axis: one for axis, one in counted if "ceil_div" not in one})
        self._padded = {} if self.origin.room else self._keeping()
        self.roles |= dict.fromkeys(self._padded, "inout")
        self._limits = self.leaves.limits | self.text.limits()
        self._multiples = self.text.multiples()
        filled = self.filled().items()
        self._multiples |= {name: n for name, n in filled if n <= self._limits.get(name, n)}

    def spec(self) -> str:
        """Text of spec.yaml; its source is named relative to the kernel's own folder."""
        name = self.kernel.name
        lines = [
            "schema: tokitai/spec/v1",
            f"op: {quoted(_op(name))}",
            f"title: {self._title()}",
            f"summary: {name} of {self.kernel.file.name}; formula.py says what it computes.",
            "params:" if self._params() else "params: {}",
            *self._params(),
            "variants:",
            "  main:",
            *self._told(),
            f"    source: {quoted(self.origin.source)}",
        ]
        lines += self._requires() if not self.origin.room else []
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
        if added := self._added():
            said = f"the order in which {', '.join(added)} is added to is not fixed"
            lines.append(f"    deterministic: false  {GUESS} {said}")
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

    def _read_comments(self, source: str) -> None:
        """Shapes as comments say them, and sizes that they, or indices that arrays hold, tell of."""
        owns = {name: last_word(place) for name, place in self.leaves.places.items()}
        sizes = {owns[one.name]: one.name for one in self.sizes if one.name in owns}
        arrays = {name: owns[name] for name in self.text.arrays if name in owns}
        numbers = {name: self.text.value(name) for name in self.constants}
        for array, words in shapes_in(source, self.kernel, arrays).items():
            told = known(words, sizes, numbers)
            found = self.text.shape(array)
            new = re.fullmatch(r"[A-Za-z]\w+|[A-Z]", words[0]) and all(told[1:]) and told[1:]
            if new and not told[0] and not self.text.outermost(array):
                told[0] = sizes[words[0]] = self._add_size(words[0])
            if len(found) == len(told):  # what the comment has no word for
                told = [one or two for one, two in zip(told, found, strict=True)]
            if all(told):
                self.text.said[array] = told
        made: dict[str, str] = {}
        for array, name in self.text.unsaid().items():
            made[name] = made.get(name) or self._add_size(name)
            self.text.name_rows({array: made[name]})

    def _keeping(self) -> dict[str, str]:
        """How numpy says what outputs with rows longer than what is written keep behind it."""
        found = {}
        for name in (one for one, role in self.roles.items() if role == "outputs"):
            axis, end = self.text.padded(name) if name in self.text.arrays else (0, "")
            if end:
                kept = f"{_local(name)}[{':, ' * axis}{_local(end)}:]"
                found[name] = f"np.concatenate([new, {kept}], axis={axis})"
        return found

    def _title(self) -> str:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.kernel.name).lower().split("_")
        kept = [one for one in words if one not in {"", "kernel", "cuda", "hip", "gpu"}]
        return (
            f"{quoted(' '.join(kept) or self.kernel.name)}  {GUESS} its name says what it computes"
        )

    def _told(self) -> list[str]:
        """The variant's formula in words, where it is known."""
        return []

    def _added(self) -> list[str]:
        """Arrays of floats that are added to with atomics."""
        return [
            one.name for one in self.parameters
            if one.pointers and one.dtypes and "float" in one.dtypes[0]
            and re.search(rf"\b\w*[aA]tomic\w*\s*\(\s*&?\s*\(?{one.name}\b", self.text.body)
        ]  # fmt: skip

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
            f"    # {name} is added to: what it held is one more term of the sum"
            for name in self._added()
            if self.roles.get(name) == "inout"
        ]
        lines += [
            f"    # {name} is stored in {dtype} and read again: go on from"
            f' stored({_local(name)}, "{dtype}") of tokitai_cli.formula'
            for name, dtype in self._narrow()
        ]
        kept = self._padded.items()
        lines += [f"    # {name} keeps what is behind its rows: {told}" for name, told in kept]
        lines += [
            f"    {GAP} in place of the next line, return {{{told}}}, each of its array's shape",
            f'    raise NotImplementedError("nobody has written yet what {self.kernel.name} computes")',
        ]
        return "\n".join(lines) + "\n"

    def _narrow(self) -> list[tuple[str, str]]:
        """Written arrays of a narrow float that the kernel goes on from, and their dtypes."""
        return [
            (one.name, one.dtypes[0])
            for one in self.parameters
            if self.roles.get(one.name) in {"outputs", "inout"}
            and one.dtypes
            and one.dtypes[0] in FORMATS
            and DTYPES[one.dtypes[0]].nbytes < DTYPES["float32"].nbytes
            and reads_back(one, self.text.body)
        ]

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
        if any(one.name == other.array for other in self.leaves.accessors):
            guess += ", with rows one behind the other"
        elif one.name in self.text.said:
            guess += ", its comment says so"
        if one.kind == "structs":
            dtype, guess = "uint8", f"its shape, the last extent the bytes of a {one.type}"
        role = self.roles[one.name]
        if one.name in self.leaves.variables:
            variable, exact, _ = self.leaves.variables[one.name]
            symbol = f", symbol: {quoted(variable.qualified)}" if role != "symbols" else ""
            guess = f"  # guess: that the kernel {_DOES[role]} it" if symbol else ""
            return f"      {one.name}: {{dtype: {dtype}, shape: {exact}{symbol}}}{guess}"
        does = (
            "keeps what lies behind its rows" if one.name in self._padded else f"{_DOES[role]} it"
        )
        also = "" if one.const else f", and that the kernel {does}"
        before = "2, " if one.name in self.leaves.rows else ""
        inner = str(self.leaves.inner.get(one.name, STRUCT_BYTES if one.kind == "structs" else ""))
        behind = f", {inner}" if inner else ""
        sizes = [size.name for size in self.sizes[:3]] or ["elements"]
        left = _DIMENSIONS - bool(before) - bool(behind)
        extents = self.text.shape(one.name)[-left:]
        room = self._room(one.name, extents)
        if room:
            said = f", where its strides say [{', '.join(extents)}]" if extents else ""
            reach = "reached in a run" if one.name in self.origin.seen.elements else "may reach"
            guess += f" (room for what its indices {reach}{said})"
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
        known = {*self.passed, *(one.name for one in self.sizes)}
        return [one for one in self.parameters if not one.pointers and one.name not in known]

    def _scalars(self) -> list[str]:
        mine = self._numbers()
        return ["    scalars:"] * bool(mine) + [
            f"      {one.name}: {{dtype: {one.dtypes[0]}, value: {value}}}  # guess: its value{whose}"
            for one in mine
            for value, whose in [self._value(one)]
        ]

    def _value(self, one: Parameter) -> tuple[str, str]:
        """A number's value as YAML, and where it is from."""
        told, real = self.host.get(one.name), "float" in one.dtypes[0]
        if told or (told == 0 and not real):  # 0 would take a term away
            return (f"{told:g}" if real else f"{int(told)}"), ", the host's"
        if re.search(r"(?:^|_)(?:sm_|softmax_|attn_)?scale$", one.name):
            fixed = [value for name, value in self.constants.items() if _HEAD.search(name)]
            fixed = [number for value in fixed if (number := self.text.value(value))]
            heads = [self._named(size.name) for size in self.sizes if _HEAD.search(size.name)]
            if heads or fixed:
                return f'"1 / sqrt({(heads or fixed)[-1]})"', ""
        others = {other.name for other in self._numbers()}
        return likely(one.name, one.dtypes[0], self.kernel.name, others), ""


def _local(name: str) -> str:
    """A name for it in the formula: no word of Python's, nor one that stands there already."""
    taken = keyword.iskeyword(name) or name in ("np", "params", "inputs", "scalars")
    return f"{name}_" if taken else name


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _op(name: str) -> str:
    """The kernel's name as an op's: lower-case words, as many as one may have."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    words = words if words[:1].isalpha() else f"kernel-{words}"
    return words[:MOST_OF_NAME].strip("-")
