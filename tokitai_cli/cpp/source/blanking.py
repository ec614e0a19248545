"""C++ text made ready for the parser: what it cannot read is blanked, every character keeps its place.

CUDA's and HIP's qualifiers, launches `<<<...>>>`, preprocessor lines, and branches of them that no
parser could read beside the first.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tokitai_cli.cpp.source_text import blank

_PAREN = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?P<word>\w*)(?P<rest>(?:\\\r?\n|[^\n])*)", re.MULTILINE)
DEFINE = re.compile(r"[ \t]*(?P<name>\w+)(?P<parameters>\([^)]*\))?(?P<body>.*)", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
_SPLITS = re.compile(r"<<|>>|[-=]>|[()<>\[\]{},]")
_CALLED = """__attribute__ __launch_bounds__ __align__ alignas __declspec __cluster_dims__ __maxnreg__
    __block_size__ __builtin_align__"""
_PLAIN = """__global__ __device__ __host__ __forceinline__ __noinline__ __inline__ __inline
    __restrict__ __restrict restrict __shared__ __constant__ __managed__ __extension__
    __grid_constant__ __volatile__"""
_QUALIFIERS = {name: name in _CALLED.split() for name in f"{_CALLED} {_PLAIN}".split()}
_STORAGE = {"inline", "static", "extern", "C", "constexpr"}
DEVICE_WORDS = frozenset({"__global__", "__device__", "__constant__", "__managed__", "__shared__"})
# An unknown macro that stands like an attribute between qualifier and type: C10_LAUNCH_BOUNDS_1(n).
_ATTRIBUTE_MACRO = re.compile(rf"(?<=__global__)\s+(?P<it>[A-Z][A-Z0-9_]+\s*{_PAREN})(?=\s+\w)")


class Mark(msgspec.Struct, frozen=True):
    """A qualifier that was blanked; `words` are those that it stands for."""

    begin: int
    end: int
    words: frozenset[str]
    #: What of a macro's body is no qualifier, such as `void`; the parser reads that.
    rest: str = ""


class Directive(msgspec.Struct, frozen=True):
    """A preprocessor line: `word` is if, define, include, ...; `rest` what follows, comments blanked."""

    begin: int
    end: int
    word: str
    rest: str


class Macro(msgspec.Struct, frozen=True):
    """All definitions of a macro: words of its bodies, and what it takes as arguments, if anything."""

    words: frozenset[str]
    called: bool
    bodies: tuple[str, ...]
    parameters: tuple[str, ...] = ()

    @property
    def rest(self) -> str | None:
        """What is left of a body without its qualifiers; None where it is none of qualifiers.

        Qualifiers alone or nothing, in every body; or qualifiers with a type, in one of them.
        """
        known = {*_QUALIFIERS, *_STORAGE}
        bodies = [re.sub(r'"[^"]*"', "", re.sub(_PAREN, "", body)) for body in self.bodies]
        rests = [WORD.sub(lambda m: "" if m.group() in known else m.group(), b) for b in bodies]
        if not any(rest.strip() for rest in rests):
            return ""
        is_type = not self.called and self.words & DEVICE_WORDS
        if is_type and all(re.fullmatch(r"[\w\s:*&<>,]*", rest) for rest in rests):
            return max(rests, key=len).strip()
        return None


class SourceText(msgspec.Struct):
    """One file's text and what was found in it. `parsed` has its length."""

    plain: str  # comments blanked, literals hollow
    parsed: str
    directives: list[Directive]
    marks: list[Mark]
    calls: list[tuple[int, int]]  # of macros that stand as declarations of their own
    lines: list[int]  # offsets at which lines start
    numbers: list[int] = []  # of these lines in the file, where they are not counted from 1

    def line(self, offset: int) -> int:
        """Line of an offset, counted from 1."""
        at = bisect.bisect_right(self.lines, offset)
        return self.numbers[max(at, 1) - 1] if self.numbers else at


def blank_qualifiers(text: str) -> str:
    """`text` with CUDA's and HIP's plain qualifiers blanked."""
    return WORD.sub(lambda m: " " * len(m.group()) if m.group() in _QUALIFIERS else m.group(), text)


def words_in(text: str) -> set[str]:
    """All identifiers of a text whose comments and literals are blank."""
    return set(WORD.findall(text))


def split(text: str) -> list[str]:
    """Parts of a list of arguments, split at its own commas; `<<` and `>>` may be shifts."""
    found, depth, angles, at = [], 0, 0, 0
    for match in _SPLITS.finditer(text):
        mark = match.group()
        if mark == "," and depth + angles == 0:
            found.append(text[at : match.start()].strip())
            at = match.end()
        elif mark == ">>":
            angles = angles - 2 if angles > 1 else angles
        elif mark in "<>":
            angles += 1 if mark == "<" else -1
        elif mark not in {"<<", "->", "=>"}:
            depth += (mark in "([{") - (mark in ")]}")
    return [*found, text[at:].strip()] if text.strip() else []


def macros_of(texts: Iterable[str]) -> dict[str, Macro]:
    """Macros that the texts define, by name; those that stand for a qualifier's macro resolved."""
    found: dict[str, list[tuple[str, bool]]] = {}
    parameters: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for line in DIRECTIVE.finditer(text):
            match = DEFINE.match(line["rest"]) if line["word"] == "define" else None
            if match is not None:
                body = re.sub(r"\\\r?\n", "  ", match["body"])
                found.setdefault(match["name"], []).append((body, match["parameters"] is not None))
                parameters[match["name"]] = tuple(re.findall(r"[\w.]+", match["parameters"] or ""))
    # One macro may stand for another: its words are put in, a few times over.
    for _ in range(3):
        for name, bodies in found.items():
            found[name] = [(_expanded(body, found, name), called) for body, called in bodies]
    return {
        name: Macro(
            frozenset(word for body, _ in bodies for word in WORD.findall(body)),
            any(called for _, called in bodies),
            tuple(body for body, _ in bodies),
            parameters[name],
        )
        for name, bodies in found.items()
    }


def _expanded(body: str, found: Mapping[str, list[tuple[str, bool]]], name: str) -> str:
    """`body` with short macros that take no arguments put in: those that may be qualifiers."""

    def put(match: re.Match[str]) -> str:
        other = found.get(match.group(), [])
        short = bool(other) and all(len(text) < 80 and not called for text, called in other)
        return other[-1][0] if short and match.group() != name else match.group()

    return WORD.sub(put, body) if len(body) < 200 else body


def source_text(text: str, macros: Mapping[str, Macro]) -> SourceText:
    """Read one file's text; `macros` are those of all files that belong together."""
    plain = blank(text, quotes=True)
    directives = [
        Directive(match.start(), match.end(), match["word"], match["rest"])
        for match in DIRECTIVE.finditer(plain)
    ]
    inactive = list(_inactive_branches(plain, directives))
    out = erased(plain, [*((one.begin, one.end) for one in directives), *inactive])
    marks = list(_marks(out, macros))
    spans = [(mark.begin, mark.end) for mark in marks]
    spans += [(one.start("it"), one.end("it")) for one in _ATTRIBUTE_MACRO.finditer(out)]
    spans += configurations(out)
    letters = list(erased(out, spans))
    for mark in marks:
        rest = (
            mark.rest if len(mark.rest) <= mark.end - mark.begin else "int"[: mark.end - mark.begin]
        )
        letters[mark.begin : mark.begin + len(rest)] = rest
    out = "".join(letters)
    calls = list(_calls(out, macros))
    out = erased(out, [*calls, *_bodies(out)])
    parsed = out.encode("ascii", "replace").decode("ascii")
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return SourceText(plain, parsed, directives, marks, calls, starts)


def configurations(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each `<<<...>>>` in a text whose comments are blank."""
    end = 0
    for match in re.finditer("<<<", text):
        if match.start() < end:
            continue
        depth = 0
        for mark in re.compile(r"[(\[{]|[)\]}]|>>>|;").finditer(text, match.end()):
            if mark.group() in "([{":
                depth += 1
            elif mark.group() in ")]}":
                depth -= 1
            if depth < 0 or mark.group() == ";":
                break
            if mark.group() == ">>>" and depth == 0:
                end = mark.end()
                yield match.start(), end
                break


def erased(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """`text` with the spans blanked, line breaks kept."""
    parts: list[str] = []
    at = 0
    for begin, end in sorted(spans):
        if end <= at:
            continue
        parts.append(text[at : max(at, begin)])
        parts.append(re.sub(r"[^\n]", " ", text[max(at, begin) : end]))
        at = end
    return "".join(parts) + text[at:]


def _marks(text: str, macros: Mapping[str, Macro]) -> Iterator[Mark]:
    stands = {name: (frozenset({name}), "") for name in _QUALIFIERS}
    called = {name for name, with_arguments in _QUALIFIERS.items() if with_arguments}
    for name, macro in macros.items():
        rest = macro.rest
        if rest is not None and name not in stands:
            stands[name] = macro.words, rest
            if macro.called:
                called.add(name)
    for word in WORD.finditer(text):
        name = word.group()
        if name not in stands:
            continue
        end = word.end()
        if name in called:
            arguments = re.compile(rf"\s*{_PAREN}").match(text, end)
            if arguments is None:
                continue
            end = arguments.end()
        yield Mark(word.start(), end, *stands[name])


def _calls(text: str, macros: Mapping[str, Macro]) -> Iterator[tuple[int, int]]:
    """Calls of the source's own macros that stand like a declaration, a semicolon behind or none."""
    names = [name for name, macro in macros.items() if macro.called and macro.rest is None]
    if not names:
        return
    call = rf"(?P<it>\b(?:{'|'.join(map(re.escape, names))})\s*{_PAREN}[ \t\r]*"
    for match in re.finditer(rf"(?:^|(?<=[;{{}})]))\s*{call}(?:;|(?=\n\s*(?:[\w~}}]|$))))", text):
        yield match.start("it"), match.end("it")


def _bodies(text: str) -> Iterator[tuple[int, int]]:
    """What stands between the braces of functions: whatever macros make of it, it is not parsed."""
    end = 0
    for brace in re.finditer("{", text):
        if brace.start() < end or not _opens_body(text, brace.start()):
            continue
        depth = 0
        for mark in re.compile("[{}]").finditer(text, brace.start()):
            depth += 1 if mark.group() == "{" else -1
            if depth == 0:
                end = mark.end()
                yield brace.end(), mark.start()
                break


def _opens_body(text: str, at: int) -> bool:
    begin = max(text.rfind(mark, max(0, at - 4000), at) for mark in ";{}") + 1
    before, bracket, behind = text[max(begin, at - 4000) : at].rpartition(")")
    words = behind.replace("&", " ").split()
    if not bracket:
        return False
    if not words or words[0].startswith(("->", ":")):  # a trailing type, or members' initial values
        return True
    known = {"const", "noexcept", "override", "final", "mutable", "volatile", "try"}
    return (
        set(words) <= known or "->" in words or ") :" in re.sub(r"\)\s*:(?!:)", ") :", before + ")")
    )


def _inactive_branches(text: str, directives: list[Directive]) -> Iterator[tuple[int, int]]:
    """Branches that the parser must not see.

    Those of `#if 0`, those that this tool's build leaves out, and all but the first of a group whose
    branches are no whole declarations or statements.
    """
    stack: list[list[Directive]] = []
    for one in directives:
        if one.word in {"if", "ifdef", "ifndef"}:
            stack.append([one])
        elif one.word in {"elif", "else", "elifdef", "elifndef"} and stack:
            stack[-1].append(one)
        elif one.word == "endif" and stack:
            yield from _inactive_of_group(text, [*stack.pop(), one])


def _inactive_of_group(text: str, group: list[Directive]) -> Iterator[tuple[int, int]]:
    branches = [(a.end, b.begin) for a, b in itertools.pairwise(group)]
    first = group[0]
    never = first.word == "if" and first.rest.strip() == "0"
    ours = first.rest.strip() == "TOKITAI" or "defined(TOKITAI)" in first.rest.replace(" ", "")
    left_out = first.word == "ifndef" or "!" in first.rest
    chosen = 1 if never or (ours and left_out) else 0
    if never or ours:
        keep = branches[chosen : chosen + 1]
    elif all(_whole(text[begin:end]) for begin, end in branches):
        return
    else:
        keep = branches[:1]
    yield from (branch for branch in branches if branch not in keep)


def _whole(branch: str) -> bool:
    code = DIRECTIVE.sub("", branch).strip()
    balanced = all(code.count(a) == code.count(b) for a, b in ("{}", "()"))
    return not code or (balanced and code[-1] in ";}:")
