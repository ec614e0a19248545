"""How far a kernel's indices go at given sizes: the elements that an array needs at least.

Each index is bounded from above: threads by the launch, a variable by what it is compared with or made
of, a value of an array by what it is drawn below. Guards that the text has elsewhere are not seen, so
that a bound may be larger than what is reached, and an index that cannot be read has none.
"""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
import warnings
from collections.abc import Mapping, Sequence

from tokitai_cli.cpp.indices.kernel_text import conditions, indices
from tokitai_cli.cpp.source.macro_text import split

_MOST = 1 << 40
_DEEPEST = 40  # definitions put into each other
_NEGATED = re.compile(r"\b(?:return|continue|break)\b")
_KINDS = r"(?:size_t|u?int|long|unsigned|u?int(?:32|64)_t)"
_NUMBER = re.compile(r"\b(\d+|0[xX][\da-fA-F]+)[uUlL]+\b")
_MADE = re.compile(r"(?<![\w.\])>])([A-Za-z_]\w*)\s*([-+*/%|^&]|<<|>>)?=(?!=)\s*(.+)$", re.S)


class Reach:
    """Upper bounds of a kernel's indices.

    body: its text, with pointers made from arrays put in. values: numbers of names, of `threadIdx.x`
    and its like the largest. drawn: the largest value of an array that is read.
    """

    def __init__(
        self,
        body: str,
        values: Mapping[str, int],
        constants: Mapping[str, str],
        drawn: Mapping[str, int],
    ) -> None:
        self._body = _versions(re.sub(r"->", ".", _NUMBER.sub(r"\1", body)))
        self._values, self._constants, self._drawn = dict(values), constants, drawn
        self._packed = re.sub(r"\s+", "", self._body)
        self._scopes = list(conditions(self._body))
        self._here: tuple[int, ...] = ()  # where the conditions begin that the index stands behind
        self._exits = [one.start() for one in _NEGATED.finditer(self._body)]
        self._stage = len(self._exits)  # of them that stand in front of the index
        self._head = (0, 0)  # of the condition that the index is in, where parts are joined by ||
        self._known: dict[tuple[str, int, tuple[int, int], tuple[int, ...]], int | None] = {}
        self._open: set[str] = set()
        self._made: dict[str, list[str]] = {}
        self._raised: set[str] = set(re.findall(r"([A-Za-z_]\w*)\s*\+\+", self._body))
        self._raised |= set(re.findall(r"\+\+\s*([A-Za-z_]\w*)", self._body))
        for statement in re.split(r"[;{}]", self._body):
            for part in split(re.sub(r"^\s*for\s*\(", "", statement)):
                if found := _MADE.search(part):
                    name, changed, text = found.groups()
                    if changed in (None, "&", "%"):
                        self._made.setdefault(name, []).append(text)
                    elif changed in ("+", "*", "|", "^", "<<"):
                        self._raised.add(name)

    def elements(self, array: str, least: bool = False) -> int | None:
        """Elements that are reached, None where an index cannot be bounded or the array is handed on.

        least: those that the bounded indices reach, whatever the others do.
        """
        every = [one.start() for one in re.finditer(rf"(?<![\w.]){array}\b", self._body)]
        tops: set[int | None] = set()
        for at in every:
            text = next(indices(self._body[at:], array, first=True), None)
            self._here = tuple(b for b, _, end in self._scopes if b <= at < end)
            self._stage = bisect.bisect(self._exits, at)
            heads = ((b, h) for b, h, _ in self._scopes if b <= at < h and "||" in self._body[b:at])
            self._head = next(heads, (0, 0))
            tops.add(None if text is None else self.top(text))
        self._here, self._stage, self._head = (), len(self._exits), (0, 0)
        known = [one for one in tops if one is not None]
        return max(0, *known) + 1 if known and (least or len(known) == len(tops)) else None

    def top(self, text: str) -> int | None:
        """Largest value of an expression of C++."""
        if len(self._open) > _DEEPEST:
            return None
        text = re.sub(rf"\(\s*{_KINDS}\s*\)|\b(?:std::)(?=\w)|static_cast\s*<[^<>]*>", "", text)
        if choice := re.fullmatch(r"[^?]*\?([^?:]*):([^?:]*)", text.strip().strip("()")):
            both = [self.top(one) for one in choice.groups()]
            return None if None in both else max(one for one in both if one is not None)
        text = re.sub(r"(?<!/)/(?!/)", "//", text.replace("&&", " and ").replace("||", " or "))
        try:
            with warnings.catch_warnings():  # of what is C++ and looks odd in Python
                warnings.simplefilter("ignore")
                node = ast.parse(" ".join(text.split()), mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            return None
        top = self._of(node)
        return top if top is None or top < _MOST else None

    def _of(self, node: ast.expr) -> int | None:
        match node:
            case ast.Constant(value=bool(told)) | ast.Constant(value=int(told)):
                return int(told)
            case (
                ast.Attribute(value=ast.Subscript(value=ast.Name(id=name)))
                | ast.Subscript(value=ast.Name(id=name))
            ):
                return self._drawn.get(name)
            case ast.Attribute(value=ast.Name(id=name)) if name in self._made:
                return self._name(name)  # a field of what was read from an array of structs
            case ast.Name() | ast.Attribute():
                return self._name(ast.unparse(node))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return 1
            case ast.UnaryOp(op=ast.USub()):
                return 0
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(op, left, right)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node.args)
        return None

    def _call(self, name: str, args: list[ast.expr]) -> int | None:
        tops = [self._of(one) for one in args]
        known = [one for one in tops if one is not None]
        if name == "min" and known:
            return min(known)
        if name == "max" and len(known) == len(tops) == 2:
            return max(known)
        if "mul24" in name and len(args) == 2:
            return self._binary(ast.Mult(), *args)
        return tops[0] if len(tops) == 1 and re.fullmatch(_KINDS, name) else None

    def _binary(self, op: ast.operator, left: ast.expr, right: ast.expr) -> int | None:
        one, other = self._of(left), self._of(right)
        if isinstance(op, ast.Mod | ast.BitAnd):
            below = None if other is None else max(0, other - isinstance(op, ast.Mod))
            return min((top for top in (one, below) if top is not None), default=None)
        if one is not None and isinstance(op, ast.Sub | ast.FloorDiv | ast.RShift):
            exact = self._exact(right) or 0
            if isinstance(op, ast.Sub):
                return one - exact
            return one // max(1, exact) if isinstance(op, ast.FloorDiv) else one >> min(60, exact)
        if one is None or other is None:
            return None
        if isinstance(op, ast.Add):
            text = f"{ast.unparse(left)} + {ast.unparse(right)}"
            packed = text.replace(" ", "")
            compared = f"{packed}<" in self._packed or f"{packed}>" in self._packed
            told = self._guarded(text) if compared else None
            return one + other if told is None else min(told, one + other)
        if isinstance(op, ast.BitOr | ast.BitXor):
            return one + other
        if isinstance(op, ast.Mult | ast.LShift):
            return one * other if isinstance(op, ast.Mult) else one << max(0, min(40, other))
        return None

    def _exact(self, node: ast.expr) -> int | None:
        """The value where nothing in it varies."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for _ in range(4):
            made = [text for name in names for text in self._made.get(name, ())]
            if not made:
                break
            if any("threadIdx" in text or "blockIdx" in text or "[" in text for text in made):
                return None
            names = {word for text in made for word in re.findall(r"[A-Za-z_]\w*", text)}
        if names & (self._raised | {"threadIdx", "blockIdx"}):
            return None
        return self._of(node)

    def _name(self, name: str) -> int | None:
        if name in self._open:
            return None
        if name in self._values and "Idx" not in name:
            return self._values[name]
        key = (name, self._stage, self._head, self._here)
        if key not in self._known:
            self._open.add(name)
            self._known[key] = self._variable(name)
            self._open.discard(name)
        return self._known[key]

    def _variable(self, name: str) -> int | None:
        guard = self._guarded(name)
        made: list[int | None] = [self.top(one) for one in self._made.get(name, ())]
        if not made and name in self._values:
            made = [self._values[name]]
        if not made and name in self._constants:
            return self.top(self._constants[name])
        if not made or None in made or name in self._raised:
            return guard
        top = max(one for one in made if one is not None)
        return top if guard is None else min(top, guard)

    def _guarded(self, text: str) -> int | None:
        """The largest value that a comparison leaves, None where it is compared with nothing known."""
        tops = (self.top(one) for one in self._guards(text))
        return max((one for one in tops if one is not None and one >= 0), default=None)

    def _guards(self, name: str) -> list[str]:
        """What the name is below, or at most, in each comparison of it that holds at the index."""
        return [
            told
            for at, told, leaves in _compared(self._body, name)
            if (self._left(at) if leaves else self._holds(at))
        ]

    def _left(self, at: int) -> bool:
        """Whether the index stands behind the comparison there, after which it would be left."""
        stands = bisect.bisect(self._exits, at) < self._stage
        return bool(self._exits) and (stands or self._head[0] <= at < self._head[1])

    def _holds(self, at: int) -> bool:
        """Whether the comparison there holds at the index, and is no condition of another statement."""
        mine = [begin for begin, head, _ in self._scopes if begin <= at < head]
        if mine:
            return mine[-1] in self._here
        begin = max(self._body.rfind(mark, 0, at) for mark in ";{}") + 1
        told = re.match(r"\s*(?:const\s+)?(?:bool|int|auto)\s+(\w+)\s*=[^?]*;", self._body[begin:])
        return told is None or any(
            re.search(rf"\b{told[1]}\b", self._body[first:head])
            for first, head, _ in self._scopes
            if first in self._here
        )


@functools.lru_cache(maxsize=1 << 14)  # a text is read at many sizes
def _compared(body: str, name: str) -> list[tuple[int, str, bool]]:
    """Where a name is compared, what it is then at most, and whether that holds behind the statement."""
    plain = re.escape(name).replace(r"\ ", r"\s*")
    word, end = rf"(?<![\w.]){plain}", r"\s*(?=[;?,{]|&&|\|\||\)|$)"
    value = r"((?:[^;<>=&|?,{}()]|\([^;<>=&|?,{}()]*\))+)"
    found = [
        (one.start(), f"({one[2]}) - {int(not one[1])}", False)
        for one in re.finditer(rf"{word}\s*<(?!<)(=?)\s*{value}{end}", body)
    ]
    found += [
        (one.start(), f"({one[2]}) - {int(bool(one[1]))}", True)  # else it returns
        for one in re.finditer(rf"{word}\s*>(?!>)(=?)\s*{value}{end}", body)
        if not re.fullmatch(r"\s*0\s*", one[2])
    ]
    found += [
        (one.start(), f"({one[1]}) - {int(not one[2])}", False)
        for one in re.finditer(rf"(?<![\w.*])([\w.*]+)\s*(?<!>)>(?!>)(=?)\s*{plain}\b", body)
    ]
    return found


@functools.lru_cache(maxsize=64)
def _versions(body: str) -> str:
    """`body` with another name for a variable from where it is given a value anew, beside its first."""
    every = list(re.finditer(r"(?<=[;}])\s*([A-Za-z_]\w*)\s*(<<|>>|[-+*/%])?=(?!=)", body))
    for number, again in reversed(list(enumerate(every))):
        name = again[1]
        first = re.search(rf"\w\s+{name}\s*=|,\s*{name}\s*=", body[: again.start()])
        between = body[first.start() : again.start()] if first else "{"
        depth = list(itertools.accumulate((c == "{") - (c == "}") for c in between))
        made = body.find(";", again.end())  # what it is made of may be the value before
        told = body[again.end() : made]
        open_ = itertools.accumulate((c == "(") - (c == ")") for c in told)
        stepped = min(open_, default=0) < 0  # the end of a loop's head
        if first and min(depth) == 0 == depth[-1] and not stepped:
            rest = re.sub(rf"(?<![\w.]){name}\b", f"{name}_v{number:03d}", body[made:])
            value = f"{name} {again[2]} ({told})" if again[2] else told
            body = f"{body[: again.start()]} {name}_v{number:03d} = {value}{rest}"
    return body


def places(axes: str, counts: Sequence[int]) -> dict[str, int]:
    """Largest `threadIdx` (`blockIdx`) and the extents that hold it, by those of a block (a grid)."""
    of = {"thread": "blockDim", "block": "gridDim"}[axes]
    told = list(zip("xyz", [*counts, 1, 1][:3], strict=True))
    return {f"{axes}Idx.{x}": n - 1 for x, n in told} | {f"{of}.{x}": n for x, n in told}
