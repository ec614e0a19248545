"""Conditions, includes and definitions by pcpp; what is not there is passed over and named."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pcpp import Action, OutputDirective

from tokitai_cli.cpp import source_text
from tokitai_cli.cpp.call_lines import CallLines, directive
from tokitai_cli.cpp.expansion import Expansion
from tokitai_cli.cpp.lexing import WHOLE

_DEEPEST = 64  # includes within each other
_NEED_MORE = frozenset({"define", "undef", "pragma", "include", "include_next", "ifdef", "ifndef"})
_CONDITIONS = frozenset({"if", "ifdef", "ifndef", "elif", "else", "endif", "elifdef", "elifndef"})
_PLAIN = frozenset(" \t\r\n\f\v0123456789()!&|<>=+*-")  # of a condition without names
_HAS_INCLUDE = {"__has_include", "__has_include_next"}


class Preprocessor(Expansion):
    """A preprocessor that reads on where a compiler would stop."""

    def __init__(
        self,
        folders: Sequence[Path],
        defines: Mapping[str, str],
        known: Mapping[str, str] | None = None,
        there: Sequence[Path] = (),
    ) -> None:
        self.files: list[Path] = []
        self.conditions: dict[str, list[int]] = {}
        self._known, self._there = known or {}, [str(folder) for folder in there]
        self.inactive: list[tuple[str, int, str]] = []
        self.missing: list[tuple[str, int, str]] = []
        self.undecided: set[str] = set()
        self.defined: set[str] = set()
        self.looked_for: dict[str, str | None] = {}
        self._values: dict[tuple[str, ...], Any] = {}
        super().__init__()
        for folder in folders:
            self.add_path(str(folder))
        self.rewrite_paths: list[Any] = []  # places are absolute, wherever the tool runs
        for name, value in defines.items():
            self.define(f"{name} {value}")
        self.defined.clear()

    def tokens(self, source: Path, text: str | None, front: Sequence[Path] = ()) -> Iterator[Any]:
        """All tokens of a source, macros put in; those of the headers in `front` come first."""
        if text is None:
            text = self._text_of(str(source))
        self.files += [source, *front]
        for header in front:
            yield from self._tokens_of(self._text_of(str(header)), header)
        yield from self._tokens_of(text, source)

    def _tokens_of(self, text: str | None, source: Path) -> Iterator[Any]:
        self.parse(_ended((text or "").replace("\ufeff", " ", 1)), str(source))
        while (token := self._following(source)) is not None:
            if token.type != self.t_LINECONT and token.value:
                yield token

    def _following(self, source: Path) -> Any:
        """The next token. Where pcpp does not find its way through a directive, the unit ends."""
        try:
            return self.token()
        except (LookupError, AssertionError, AttributeError, TypeError, ValueError) as error:
            why = f"could not be read on: {type(error).__name__}"
            self.problems.append((str(source), self.lastdirective.lineno, why))
            return None

    def _text_of(self, path: str) -> str | None:
        """A file's text, None for what is no plain file or too large; each is read once."""
        if path not in self.looked_for:
            room = len(self.looked_for) < source_text.MAX_FILES
            self.looked_for[path] = source_text.text_of(path) if room else None
        return self.looked_for[path]

    # What pcpp asks: its names.

    def group_lines(self, input: str, abssource: str) -> Iterator[list[Any]]:
        """Tokens of each line; kernels in lines that conditions leave out are noted."""
        cut: list[Any] = []
        calls = CallLines(self._opens, self._parts, self._holds, self._pragma)
        for line in map(self._whole, calls.of(self.lexical.lines(input, abssource))):
            if line[0].type != WHOLE:
                self._note_condition(line)
            before = list(line) if cut or any("__global__" in one.value for one in line) else []
            yield line
            if not before or len(line) == len(before):  # pcpp takes the tokens of such a line away
                cut = []
                continue
            cut += before
            if any("{" in one.value or ";" in one.value for one in before):
                self._note_dark(cut)
                cut = []

    def _parts(self, line: list[Any]) -> list[Any]:
        return [part for one in line for part in self.lexical.refined(one)]

    def _opens(self, line: list[Any]) -> int:
        """How many parentheses a call of a macro leaves open at the end of a line."""
        if line[0].type == WHOLE or directive(line):
            return 0
        depth, words = 0, [one for one in line if one.type not in {"CPP_WS", *self.t_COMMENT}]
        for before, one in itertools.pairwise(words):
            macro = self.macros.get(before.value) if before.type == self.t_ID else None
            called = macro is not None and macro.arglist is not None
            if one.value == "(" and (depth or called):
                depth += 1
            elif one.value == ")" and depth:
                depth -= 1
        return depth

    def _holds(self, word: str, line: list[Any]) -> bool:
        """Whether a condition within a call does."""
        self._note_condition(line)
        words = [one for one in line if one.type not in {*self.t_WS, *self.t_COMMENT}][2:]
        if word in {"ifdef", "ifndef"}:
            known = bool(words) and words[0].value in self.macros
            known = known or (bool(words) and self.on_unknown_macro_in_defined_expr(words[0]))
            return known == (word == "ifdef")
        return bool(words) and bool(self.evalexpr(words)[0])

    def _pragma(self, line: list[Any], text: str) -> list[Any]:
        """`_Pragma` in place of `#pragma`, which only a line of its own can be."""
        told = text.replace("\\", "\\\\").replace('"', '\\"')
        new = list(self.tokenize(f' _Pragma("{told}")\n'))
        for one in new:
            one.source, one.lineno = line[0].source, line[0].lineno
        return new

    def _note_condition(self, line: list[Any]) -> None:
        words = [one for one in line if one.type not in {"CPP_WS", *self.t_COMMENT}][:2]
        if len(words) == 2 and words[0].value == "#" and words[1].value in _CONDITIONS:
            self.conditions.setdefault(words[0].source, []).append(words[0].lineno)

    def _whole(self, line: list[Any]) -> list[Any]:
        """The line; a directive without what belongs to it is left out, a condition never holds."""
        words = [one for one in line if one.type not in {"CPP_WS", *self.t_COMMENT}][:3]
        if len(words) != 2 or words[0].value != "#" or words[1].value not in _NEED_MORE:
            return line
        self.problems.append(
            (words[0].source, words[0].lineno, f"#{words[1].value} without a name")
        )
        if words[1].value not in {"ifdef", "ifndef"}:
            return line[-1:] if line[-1].value == "\n" else []
        words[1].value = "if"
        never = self.tokenize(" 0\n")
        for one in never:
            one.source, one.lineno = words[0].source, words[0].lineno
        return [*words, *never]

    def _note_dark(self, cut: list[Any]) -> None:
        """A definition of a kernel that conditions leave out."""
        tokens = [part for one in cut for part in self.lexical.refined(one)]
        at = next((i for i, one in enumerate(tokens) if one.value == "__global__"), None)
        if at is None:
            return
        words = [one for one in tokens[at:] if one.type not in {"CPP_WS", *self.t_COMMENT}]
        text = "".join(one.value for one in words)
        called = (one.value for one, after in itertools.pairwise(words) if after.value == "("
                  and one.type == self.t_ID and one.value not in self.KEPT)  # fmt: skip
        if "{" in text.partition(";")[0]:
            self.inactive.append((tokens[at].source, tokens[at].lineno, next(called, "")))

    def on_error(self, file: str, line: int, msg: str) -> None:
        """Note what a compiler would refuse."""
        self.problems.append((file, line, msg))

    def on_file_open(self, is_system_include: bool, includepath: str) -> io.StringIO:
        """Open a header; raises OSError where there is none."""
        text = self._text_of(includepath) if self.include_depth < _DEEPEST else None
        if text is None:
            raise OSError(includepath)
        if Path(includepath) not in self.files:
            self.files.append(Path(includepath))
        return io.StringIO(_ended(text))

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> None:
        """A header that is not there stays as it is asked for."""
        at = self.lastdirective
        named = f"<{includepath}>" if is_system_include else f'"{includepath}"'
        self.missing.append((at.source, at.lineno, named))
        raise OutputDirective(Action.IgnoreAndPassThrough)

    def on_unknown_macro_in_defined_expr(self, tok: Any) -> bool:
        """A name that neither the program nor its compiler defines is none."""
        self.undecided.add(tok.value)
        return tok.value in self._known

    def on_unknown_macro_in_expr(self, ident: str) -> int:
        """A name that nobody defines is 0, as for a compiler."""
        self.undecided.add(ident)
        told = self._known.get(ident, "0")
        try:
            return int(told, 0) if told[:1].isdigit() else 0
        except ValueError:
            return 0

    def on_unknown_macro_function_in_expr(self, ident: str) -> Any:
        """`__has_builtin(x)` and its like are 0."""
        self.undecided.add(ident)
        return lambda *_: 0

    def on_directive_unknown(
        self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any
    ) -> bool | None:
        """#error is noted, #pragma stays, the others are dropped."""
        if directive.value == "error":
            told = "".join(token.value for token in toks)
            self.problems.append((directive.source, directive.lineno, f"#error {told}"))
        return None if directive.value == "pragma" else True

    def on_comment(self, tok: Any) -> bool:
        """Comments stay: what stands behind a parameter is of use."""
        return True

    def macro_prescan(self, macro: Any) -> None:
        """Nothing: the expansion here works on a definition as it is written."""

    def define(self, tokens: Any) -> None:
        """Define a macro; comments within a definition are no part of it."""
        if not isinstance(tokens, str):
            dropped = {*self.t_COMMENT, self.t_LINECONT}
            tokens = [token for token in tokens if token.type not in dropped]
            if tokens and tokens[0].value in self.KEPT:
                return  # a word of the language: the kernels hang on it
            if tokens:
                self.defined.add(tokens[0].value)
        if tokens:
            super().define(tokens)

    def undef(self, tokens: Any) -> None:
        """Forget a macro; one that the program itself decides about is no open question."""
        if tokens and not isinstance(tokens, str):
            self.defined.add(tokens[0].value)
            super().undef(tokens)

    def evalexpr(self, tokens: Any) -> Any:
        """Value of a condition; `__has_include` is answered by the files."""
        tokens = self._answered([token for token in tokens if token.type not in self.t_COMMENT])
        key = tuple(token.value for token in tokens)
        if key and all(_PLAIN.issuperset(one) for one in key):
            if key not in self._values:
                self._values[key] = super().evalexpr(tokens)
            return self._values[key]
        return super().evalexpr(tokens)

    def _answered(self, tokens: list[Any]) -> list[Any]:
        found: list[Any] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token.value not in _HAS_INCLUDE:
                found.append(token)
                continue
            end = next((i for i in range(at, len(tokens)) if tokens[i].value == ")"), len(tokens))
            name = "".join(one.value for one in tokens[at:end]).strip(" (")
            at = end + 1
            near = self.temp_path if name[:1] == '"' else []
            here = [*near, *self.path, *self._there]
            there = any(self._text_of(f"{folder}/{name[1:-1]}") is not None for folder in here)
            found += self.tokenize("1" if there else "0")
        return found


def _ended(text: str) -> str:
    """The text with an end to its last line, as a compiler takes it: what follows begins a line."""
    return text if text.endswith("\n") or not text else f"{text}\n"
