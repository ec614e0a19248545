"""Macros put in, so that every token knows its place and the macro that made it.

The algorithm is that of hide sets (Dave Prosser's, which the text of the C standard was written from): a
token carries the names of the macros it came of, and is not replaced by one of them again.
"""

from __future__ import annotations

from typing import Any

import pcpp

from tokitai_cli.cpp.lexing import WHOLE, Lexer

_NONE: frozenset[str] = frozenset()
_MOST = 4_000_000  # tokens that macros may make of one unit


class Expansion(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    """pcpp with an expansion of its own."""

    #: Words of the language: a program that defines one away would take its kernels from a reader.
    KEPT = frozenset(
        {"__global__", "__device__", "__host__", "__shared__", "__constant__", "__launch_bounds__"}
        | {"__restrict__", "__syncthreads", "__syncwarp", "__forceinline__", "__noinline__"}
    )

    def __init__(self) -> None:
        self.problems: list[tuple[str, int, str]] = []
        self._made = 0
        super().__init__()
        self.lexical = Lexer(type(self.tokenize("a")[0]), self.tokenize, self.macros)

    def expand_macros(self, tokens: list[Any], expanding_from: Any = ()) -> list[Any]:
        """Put macros into a list of tokens, in place."""
        waiting, out = tokens[::-1], []
        while waiting:
            token = waiting.pop()
            macro = self.macros.get(token.value) if token.type == self.t_ID else None
            hidden = getattr(token, "hidden", _NONE)
            if macro is None or token.value in hidden or token.value in self.KEPT:
                out.append(self._special(token))
                continue
            given = None
            if macro.arglist is not None:
                given = self._arguments(waiting, macro)
                if given is None:
                    out.append(token)
                    continue
            outer = getattr(token, "macro", "") or token.value
            new = []
            for part in self._substituted(macro, given):
                made = self._copied(part, hidden | {token.value} | getattr(part, "hidden", _NONE))
                made.macro, made.source, made.lineno = outer, token.source, token.lineno
                new.append(made)
            self._made += len(new)
            if self._made > _MOST:
                self.problems.append((token.source, token.lineno, "macros make too many tokens"))
                self.macros.clear()
            waiting.extend(reversed(new))
        tokens[:] = out
        return tokens

    def _special(self, token: Any) -> Any:
        if token.value == "__COUNTER__":
            token.value, token.type = str(self.countermacro), self.t_INTEGER
            self.countermacro += 1
        elif token.value == "__LINE__":
            token.value, token.type = str(token.lineno), self.t_INTEGER
        return token

    def _copied(self, token: Any, hidden: frozenset[str]) -> Any:
        new = object.__new__(type(token))
        new.__dict__.update(token.__dict__)
        new.hidden = hidden
        return new

    def _arguments(self, waiting: list[Any], macro: Any) -> dict[str, list[Any]] | None:
        """Arguments of a call, taken off `waiting` (its next token last); None where it is no call."""
        blank = {*self.t_WS, *self.t_COMMENT}
        at = len(waiting) - 1
        while at >= 0 and waiting[at].type in {*blank, WHOLE}:
            if waiting[at].type == WHOLE:
                at = self._refine(waiting, at)
                continue
            at -= 1
        if at < 0 or waiting[at].value != "(":
            return None
        start = waiting[at]
        lists, at = self._split(waiting, at, macro)
        if lists is None:
            self.problems.append(
                (start.source, start.lineno, f"the call of {macro.name} is not closed")
            )
            return None
        found = [self.tokenstrip(one) for one in lists]
        if macro.variadic and len(found) == len(macro.arglist) - 1:
            found.append([])
        if not macro.arglist and found == [[]]:
            found = []
        if len(found) != len(macro.arglist):
            told = f"{macro.name} takes {len(macro.arglist)} arguments, not {len(found)}"
            self.problems.append((start.source, start.lineno, told))
            return None
        del waiting[at + 1 :]
        return dict(zip(macro.arglist, found, strict=True))

    def _split(
        self, waiting: list[Any], opened: int, macro: Any
    ) -> tuple[list[list[Any]] | None, int]:
        """Tokens of each argument of the call that opens at `opened`, and where it closes."""
        dropped = {*self.t_COMMENT, self.t_LINECONT}
        depth, lists, at = 1, [list[Any]()], opened - 1
        while at >= 0:
            if waiting[at].type == WHOLE:
                at = self._refine(waiting, at)
            token = waiting[at]
            depth += (token.value == "(") - (token.value == ")")
            if depth == 0:
                return lists, at - 1
            at -= 1
            if token.type in dropped:
                continue
            last = macro.variadic and len(lists) >= len(macro.arglist)
            if token.value == "," and depth == 1 and not last:
                lists.append([])
            else:
                lists[-1].append(token)
        return None, at

    def _refine(self, waiting: list[Any], at: int) -> int:
        """Take a line apart that stands as one token at `at`; where its first part stands."""
        parts = self.lexical.refined(waiting[at])
        waiting[at : at + 1] = parts[::-1]
        return at + len(parts) - 1

    def _substituted(self, macro: Any, given: dict[str, list[Any]] | None) -> list[Any]:
        """The macro's text with its arguments put in: `#` makes a string, `##` one token of two."""
        body = macro.value
        if given is None and not any(token.value == "##" for token in body):
            return list(body)
        given = given or {}
        full: dict[str, list[Any]] = {}
        out: list[Any] = []
        at = 0
        while at < len(body):
            token = body[at]
            at += 1
            if token.value == "#" and at < len(body) and body[at].value in given:
                out += self._quoted(given[body[at].value])
                at += 1
            elif token.value == "##" and at < len(body):
                at = self._pasted(macro, body, at, given, out)
            elif token.type == self.t_ID and token.value in given:
                if self._before_paste(body, at):
                    out += given[token.value] or [self._empty(token)]
                    continue
                if token.value not in full:
                    plain = [
                        self._copied(one, getattr(one, "hidden", _NONE))
                        for one in given[token.value]
                    ]
                    full[token.value] = self.expand_macros(plain)
                out += full[token.value]
            else:
                out.append(token)
        return [token for token in out if token.value]

    def _empty(self, token: Any) -> Any:
        """What an empty argument leaves beside `##`."""
        new = self._copied(token, _NONE)
        new.value = ""
        return new

    def _before_paste(self, body: list[Any], at: int) -> bool:
        while at < len(body) and body[at].type in self.t_WS:
            at += 1
        return at < len(body) and body[at].value == "##"

    def _pasted(
        self, macro: Any, body: list[Any], at: int, given: dict[str, list[Any]], out: list[Any]
    ) -> int:
        """Join what stands left of `##`, the end of `out`, with what stands right of it."""
        while body[at].type in self.t_WS and at + 1 < len(body):
            at += 1
        right = given.get(body[at].value, [body[at]]) if body[at].type == self.t_ID else [body[at]]
        while out and out[-1].type in self.t_WS and out[-1].value:
            out.pop()
        if out and out[-1].value == "," and macro.variadic and body[at].value == macro.arglist[-1]:
            out[-1:] = [out[-1], *right] if right else []  # GNU's: the comma goes with the list
        elif out and right:
            out[-1:] = [*self.tokenize(out[-1].value + right[0].value), *right[1:]]
        else:
            out += right
        return at + 1

    def _quoted(self, tokens: list[Any]) -> list[Any]:
        text = "".join(one.value for one in tokens).replace("\\", "\\\\").replace('"', '\\"')
        return list(self.tokenize(f'"{" ".join(text.split())}"'))
