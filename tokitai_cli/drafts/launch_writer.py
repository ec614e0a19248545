"""How a draft's kernel is launched: by the host's launch, else by what the kernel's text counts."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokitai_cli.core import expressions
from tokitai_cli.core.errors import SpecError
from tokitai_cli.cpp.indices.blocks import LANES, WARP
from tokitai_cli.cpp.indices.indexing import Indexing
from tokitai_cli.cpp.indices.kernel_text import unguarded
from tokitai_cli.cpp.source.launches import HostLaunch
from tokitai_cli.cpp.source.signatures import Kernel, Parameter
from tokitai_cli.cpp.source.types import ELEMENTS, VECTOR, item_size
from tokitai_cli.drafts.feedback import NO_FEEDBACK, RunFeedback
from tokitai_cli.drafts.leaves import LaunchArguments
from tokitai_cli.drafts.reading import Reading
from tokitai_cli.spec.reader.plain import plain

_BLOCK, _FLAT_BLOCK = ["256"], ["16", "16"]
_SIZES = (96, 40, 7, 5, 3)
_MANY_BLOCKS, MOST_BLOCK, _FIXED_THREADS = 1024, 1024, 1024
SHARED = re.compile(
    r"\b(?:extern\b(?P<before>[^;]*)\b__shared__|__shared__\s+extern)\b"
    r"\s*(?P<type>[^;]*?)\s*\b(?P<name>\w+)\s*\[\s*\]"
    r"|\bHIP_DYNAMIC_SHARED\s*\(\s*(?P<hip_type>[^,]*),\s*(?P<hip_name>\w+)"
    r"|\bextern\b[^;]*\b__shared__\b"
)
_SHARED, _MOST_SHARED = 16384, 49152  # bytes beside what is known, and where nothing is
MOST_THREADS = 1 << 17  # of a launch: it is to end soon
_NO_ADDRESS = re.compile(r"\s*(?:\([\w\s:<>*]+\)\s*)?(?:nullptr|NULL)\s*")
_NAMED = "  # guess: what the host's variable holds"
_UNSAID = "  # guess: the host's launch does not say it"
_NO_LAUNCH = "  # guess: by the kernel's text, there is no launch"
_COMMENTED = "  # guess: its comment says so"


def defaults(count: int) -> list[int]:
    """Values of so many sizes, told apart and no multiples of each other."""
    return [*_SIZES, *_SIZES[-1:] * count][:count]


class DraftContext(NamedTuple):
    """Where a kernel comes from: its source and folders of headers from the spec on, and flags."""

    source: str
    include: Sequence[str]
    flags: Sequence[str]
    #: Whether arrays that nothing bounds get room enough for a run, in place of a likely shape.
    room: bool
    #: What an earlier run asked for.
    seen: RunFeedback = NO_FEEDBACK


class DraftSubject(NamedTuple):
    """A kernel and what is known of it."""

    kernel: Kernel
    #: As a spec names it.
    instance: str
    #: Its template's parameters whose arguments are guesses.
    guessed: Sequence[str]
    leaves: LaunchArguments
    launch: HostLaunch | None
    origin: DraftContext
    #: Those of its text.
    constants: Mapping[str, str]
    #: Text of its file.
    source: str
    #: Of the kernel and all that it calls.
    reached: str
    #: Numbers that the host passes.
    host: Mapping[str, float]
    #: What a walk over its body tells.
    reading: Reading


class LaunchWriter:
    """The part of a draft that says grid, block, shared memory and arguments."""

    kernel: Kernel
    leaves: LaunchArguments
    launch: HostLaunch | None
    origin: DraftContext
    constants: Mapping[str, str]
    sizes: list[Parameter]
    sizes_of_host: dict[str, str]  # variables of its own in its grid, by what the spec calls them
    text: Indexing
    reached: str
    nulls: set[str]

    @property
    def total(self) -> str:
        """Elements of an array, where nothing says it: the product of the sizes."""
        return " * ".join(one.name for one in self.sizes[:3]) or "elements"

    @property
    def _whole(self) -> int:
        """Threads of a block, where every thread of all blocks has an element; else 0."""
        return 0 if self.sizes or not unguarded(self.text.body) else int(_product(self._block()[0]))

    def filled(self) -> dict[str, int]:
        """Sizes that have to fill blocks, by their threads: all are to step, or none is left out."""
        block = self._block()[0]
        counted = re.match(r"ceil_div\((\w+)", self._grid(block)[0][0])
        found = self.text.strided()
        if counted and counted[1] in {one.name for one in self.sizes} and unguarded(self.text.body):
            found.add(counted[1])
        return dict.fromkeys(found, int(_product(block)))

    def _launch(self) -> list[str]:
        block = self._block()
        grid = self._grid(block[0])
        lines = [
            f"        grid: [{', '.join(map(quoted, self._started(grid[0])))}]{grid[1]}",
            f"        block: [{', '.join(map(quoted, block[0]))}]{block[1]}",
        ]
        if SHARED.search(self.reached) or self.origin.seen.shared:
            shared, guess = self._shared(bool(block[1]))
            lines.append(f"        shared: {quoted(shared)}{guess}")
        args = ", ".join(
            "null" if one.name in self.nulls else _word(self._named(one.name))
            for one in self.leaves.args
        )
        return [*lines, f"        args: [{args}]"]

    def _nulls(self) -> set[str]:
        """Pointers that the host passes no address for."""
        passed = zip(self.launch.args if self.launch else (), self.leaves.args, strict=False)
        return {one.name for text, one in passed if one.pointers and _NO_ADDRESS.fullmatch(text)}

    def _shared(self, guessed: bool) -> tuple[str, str]:
        """Bytes of dynamic shared memory; guessed: whether the block is a guess."""
        known = self._expression(self.launch.shared if self.launch else "")
        if known in ("", "0"):
            return str(_MOST_SHARED), "  # guess: bytes of shared memory"
        if guessed:  # bytes for threads that the host does not start
            return f"{known} + {_SHARED}", "  # guess: bytes of shared memory"
        return known, ""

    def _started(self, grid: list[str]) -> list[str]:
        raise NotImplementedError

    def _block(self) -> tuple[list[str], str]:
        flat = re.search(r"threadIdx\s*\.\s*y", self.text.body) is None
        bounds = re.search(r"__launch_bounds__\s*\(\s*(\w+)", self.kernel.text)
        limit = self.text.value(bounds[1]) if flat and bounds else ""
        most = [limit] if limit else []
        told = self.text.block or most
        told = told if int(_product(told)) <= MOST_BLOCK else []
        return self._extents("block", told or (_BLOCK if flat else _FLAT_BLOCK))

    def _grid(self, block: list[str]) -> tuple[list[str], str]:
        """The grid's extents; those of the host that fit its own sizes alone are not taken."""
        one_block = "threadIdx" in self.text.body and "blockIdx" not in self.text.body
        counted = ["1"] if one_block else self.text.grid(block)
        otherwise = counted or [f"ceil_div({self.total}, {_product(block)})"]
        found = self._extents("grid", otherwise)
        fixed = not any(expressions.names_in(one) for one in found[0])
        if fixed and not self.sizes and not self._whole:  # the host's sizes are its constants
            cut = self._cut(found[0], int(_product(block)))
            had = f"  # guess: the host has {', '.join(found[0])}"
            return cut, found[1] if cut == found[0] else had
        most = 1 if counted else _MANY_BLOCKS
        unfit = fixed and (self._whole or int(_product(found[0])) > most)
        names = [one.name for one in self.sizes]
        values = {**dict(zip(names, defaults(len(names)), strict=True)), WARP: LANES}
        with contextlib.suppress(SpecError):
            unfit = unfit or min(expressions.evaluate(one, values) for one in found[0]) < 1
        if not unfit or found[0] == otherwise:
            return found
        return otherwise, f"  # guess: the host has {', '.join(found[0])}"

    def _cut(self, extents: list[str], threads: int) -> list[str]:
        """A grid of numbers, its largest extents halved until a first run can start all threads."""
        counts = [expressions.evaluate(one, {WARP: LANES}) for one in extents]
        while max(counts) > 1 and self._too_many(counts, threads):
            largest = counts.index(max(counts))
            counts[largest] = -(-counts[largest] // 2)
        return extents if math.prod(counts) == int(_product(extents)) else [*map(str, counts)]

    def _too_many(self, blocks: Sequence[int], threads: int) -> bool:
        return math.prod(blocks) * threads > _FIXED_THREADS

    def _named(self, name: str) -> str:
        """What the spec calls an argument of the kernel."""
        return name

    def _extents(self, key: str, otherwise: list[str]) -> tuple[list[str], str]:
        """What the host's launch says of grid or block; else what the kernel's text does.

        An extent of the block that is a variable of the host's takes its place beside those that are
        told.
        """
        host = getattr(self.launch, key, ())
        found = [self._expression(one, named=key == "grid") for one in host]
        if found and all(found):
            if self.launch and self.launch.commented:
                return found, _COMMENTED
            return found, _NAMED if key == "grid" and self._named_here(host) else ""
        if key == "grid" and any(found) and len(otherwise) == len(found):
            merged = [one or other for one, other in zip(found, otherwise, strict=True)]
            axis = found.index("")
            said = f"{'xyz'[axis]} by the kernel's text, where the host has {host[axis]}"
            return merged, f"  # guess: {said}"
        if key == "block" and any(found):
            beside = max(1, int(_BLOCK[0]) // int(_product([one for one in found if one])))
            words = [one for one, told in zip(host, found, strict=True) if not told]
            if len(words) == 1 and words[0].isidentifier():
                return [one or str(beside) for one in found], _NAMED
        return otherwise, _UNSAID if host else _NO_LAUNCH

    def _variables(self) -> dict[str, str]:
        """Variables of the host's that are extents of its block, by the numbers that were guessed."""
        block = getattr(self.launch, "block", [])
        unknown = [one for one in block if one.isidentifier() and not self._expression(one, False)]
        told, guess = self._block() if unknown else ([], "")
        pairs = zip(block, told, strict=False) if guess and len(told) == len(block) else ()
        return {name: value for name, value in pairs if name in unknown and value.isdigit()}

    def _named_here(self, host: Sequence[str]) -> bool:
        """Whether expressions of the host's hold such variables."""
        known = self._variables()
        return any(re.search(rf"\b{name}\b", one) for name in known for one in host)

    def _expression(self, text: str, named: bool = True) -> str:
        """The host's C++ as an expression of the params; empty where it is none.

        named: with numbers for the variables that are extents of its block.
        """
        told = dict(zip(self.launch.args if self.launch else (), self.leaves.args, strict=False))
        sizes = {one.name for one in self.sizes}
        names = {host: one.name for host, one in told.items() if one.name in sizes}
        names |= self.sizes_of_host
        for host, one in told.items():  # fields of a struct
            fields = rf"(?<![\w.]){re.escape(host)}\s*(?:\.|->)\s*(?=\w)"
            text = re.sub(fields, f"{one.name}_", text)
        variables = self._variables() if named else {}
        text = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda m: variables.get(m[0], m[0]), text)
        text = re.sub(r"\bsizeof\s*\(([^()]*)\)", lambda m: self._bytes(m[1].strip()), text)
        text = re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), _plain(text))
        known = {one.name for one in self.sizes} | {WARP}
        try:
            if text and set(expressions.names_in(text)) <= known:
                return text
        except SpecError:
            pass
        return ""

    def _bytes(self, name: str) -> str:
        """Bytes of a type that the host names; the name itself where they are not known."""
        name = re.sub(r"\b(unsigned|long|short)\s+int\b", r"\1", self.constants.get(name, name))
        if name in ELEMENTS:
            return str(item_size(ELEMENTS[name]))
        vector = VECTOR.fullmatch(name)
        return str(int(self._bytes(vector[1])) * int(name[-1])) if vector else name


def _plain(text: str) -> str:
    """The host's C++ as the language of sizes has it, as far as it can be said there."""
    text = re.sub(r"\bstd\s*::\s*|\b(?:dim3|unsigned|size_t|int)(?=\s*\()", "", text)
    text = re.sub(r"\b(min|max)\s*<[^<>]*>\s*\(", r"\1(", text)
    text = re.sub(r"\b(?:[A-Za-z_]\w*\s*(?:\.|->)\s*)?[wW]arp_?[sS]ize\b", WARP, text)
    text = re.sub(r"\b(\d+)\.0*[fF]?(?![\w.])", r"\1", text)
    text = re.sub(r"\(\s*(?:float|double)\s*\)|\b(?:float|double)(?=\s*\()|\b1\s*\*\s*", "", text)
    part = r"((?:[\w\s*+-]|\([\w\s*+-]*\))+)"
    text = re.sub(
        rf"\bceilf?\s*\(\s*\(?{part}/{part}\)?\s*\)",
        lambda m: f"ceil_div({m[1].strip()}, {m[2].strip()})", text,
    )  # fmt: skip
    text = re.sub(r"<<\s*(\d+)\b", lambda m: f"* {2 ** min(31, int(m[1]))}", text)
    text = re.sub(r">>\s*(\d+)\b", lambda m: f"// {2 ** min(31, int(m[1]))}", text)
    side = r"\(?\s*([\w\s*+%-]+?)\s*\)?"
    text = re.sub(rf"\({side}\s*([<>])=?\s*{side}\s*\)?\s*\?\s*{side}:{side}\)", _smaller, text)
    text = re.sub(rf"\({side}(?:(?:!=|>)\s*0\s*)?\)?\s*\?\s*1\s*:\s*0\s*\)", r"min(1, \1)", text)
    return re.sub(r"(?<!/)/(?!/)", "//", text)


def _smaller(choice: re.Match[str]) -> str:
    """min or max for a choice between what was compared; the choice itself where it is another."""
    one, sign, other, then, rest = (" ".join(told.split()) for told in choice.groups())
    if {one, other} != {then, rest}:
        return choice[0]
    return f"{'min' if (sign == '<') == (one == then) else 'max'}({one}, {other})"


def _product(extents: Sequence[str]) -> str:
    """Of those that are numbers."""
    size = 1
    for one in extents:
        with contextlib.suppress(SpecError):
            size *= expressions.evaluate(one, {WARP: LANES})
    return str(size)


def _word(argument: str) -> str:
    """An argument as YAML: a name that YAML has another meaning for stands in quotes."""
    return quoted(argument) if argument.isidentifier() else argument


def quoted(text: str) -> str:
    """As YAML, in quotes where it is no plain word."""
    if text.isdigit() or (re.fullmatch(r"[A-Za-z_][\w.]*", text) and plain(text) == text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
