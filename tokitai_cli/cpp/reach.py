"""What of a unit's parts its kernels reach, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from tokitai_cli.cpp.lexing import names_in
from tokitai_cli.cpp.program_parts import DEVICE_WORDS, Part

# Of the host alone, whoever declares it.
_HOST = frozenset({"std", "malloc", "free", "exit", "new", "delete", "throw"})


def reached(parts: Sequence[Part], names: Collection[str]) -> dict[int, Part]:
    """The parts to keep by their indices: kernels, and what they reach, without members of the host's.

    names: all names of the kernels and symbols to serve, those of template arguments among them; empty
    for every kernel. Host functions are never kept. A name reaches every declaration of that name.
    """
    host = _host_names(parts)
    parts = [_without(one, host) for one in parts]
    roots = {name for one in parts if one.kernel for name in one.names}
    chosen = roots & set(names) or roots
    keeper = _Keeper(host, {name for one in parts if one.kind == "class" for name in one.names})
    keeper.used |= {*names, *chosen}
    kept: dict[int, Part] = {}
    while more := {i for i, one in enumerate(parts) if i not in kept and keeper.keeps(one)}:
        for index in more:
            kept[index] = parts[index]
            keeper.used |= parts[index].words
    return kept


def recursive(parts: Iterable[Part]) -> set[str]:
    """Functions that are always inlined and reach themselves: no compiler of a host can do that."""
    called: dict[str, set[str]] = {}
    for one in parts:
        if one.function and "__forceinline__" in one.head:
            body = one.plain.partition("{")[2]
            for name in one.names:
                called.setdefault(name, set()).update(names_in(body))
    for _ in range(len(called)):
        known = {
            n: w | {o for one in w & called.keys() for o in called[one]} for n, w in called.items()
        }
        if known == called:
            break
        called = known
    return {name for name, words in called.items() if name in words}


def _host_names(parts: Sequence[Part]) -> set[str]:
    """Names that stand for the host's alone: functions and members that no GPU can run, and its API."""
    own = [one for one in parts if one.kind == "function"]
    host = {name for one in own if not one.device for name in one.names}
    host |= {cut.name for one in parts for cut in one.cuts if cut.name}
    host -= {name for one in own if one.device for name in one.names}
    return host | {word for one in parts for word in one.words if _is_host(word)}


def _is_host(word: str) -> bool:
    interface = any(word.startswith(one) and word[len(one) : len(one) + 1].isupper()
                    for one in ("hip", "cuda", "cu"))  # fmt: skip
    return interface or word in _HOST or word.endswith("printf")


def _without(part: Part, host: set[str]) -> Part:
    """The part with those cuts that have to be: whole members, and bodies that use host names."""
    if not part.cuts:
        return part
    cuts = [one for one in part.cuts if one.name or one.words & host]
    texts, at = [], 0
    for one in cuts:
        texts.append(part.plain[at : one.begin - part.begin])
        at = one.end - part.begin
    words = set(names_in(" ".join([*texts, part.plain[at:]])))
    return msgspec.structs.replace(part, cuts=cuts, words=words)


class _Keeper:
    def __init__(self, host: set[str], classes: set[str]) -> None:
        self._host = host
        self._classes = classes
        self.used: set[str] = set()

    def keeps(self, part: Part) -> bool:
        if part.kind == "space":
            return True
        if part.kind == "instantiation" or (part.kind == "using" and part.names & self._host):
            return False
        if not part.names:  # it could not be read, or is an assertion
            return bool(part.words & DEVICE_WORDS)
        if part.function:
            if not part.device:
                return False
            if any(name.startswith("operator") for name in part.names):
                own = part.head & self._classes
                return not own or bool(own & self.used)
        return bool(part.names & self.used)
